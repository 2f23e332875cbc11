"""The verdict of the last report, for `status`, `up` and the finish: read from the report's stamp, without opening
any result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from muster.files.safe_open import read_regular_file
from muster.locales import LANGUAGES
from muster.model.attempt import CellRecord
from muster.model.campaign_state import CampaignState
from muster.text.phrases import PSEUDO_LANGUAGE, join_phrases, phrase, translate
from muster.text.sentences import join_few_names


class ReportVerdict(msgspec.Struct, frozen=True):
    """A struct, not a dataclass: `status` reads it all day long, and this one is made in no time."""

    verdict: str
    config: str | None = None
    reason: str = ""  # the sentence, in the campaign's language
    flag: str = ""  # the first red flag of level ERROR
    code: str = ""  # of that flag
    path: str = ""  # of the decision report, relative to the campaign's folder
    campaign: str = ""  # hash of the campaign that was taken in last
    file: str = ""  # hash of campaign.yaml where it was not taken in
    jobs: tuple[str, ...] = ()  # that the matrix of results is made of


STAMP_FOLDER = "reports/stamps"
PARTIAL, WHOLE = "report-partial", "report"
MOST_CELLS_NAMED = 3
LARGEST_READ = 256 << 20  # bytes
NO_RESULT_MESSAGE = (
    "the matrix is INVALID: its numbers are no result, and none is written"  # as `docs` says it in a log
)


def no_result_message() -> str:
    return phrase("campaign.no_result_written")


def says_no_result(line: str) -> bool:
    """A line that a command of ours wrote, in the language that it spoke."""
    told = (translate(no_result_message(), each) for each in (*LANGUAGES, PSEUDO_LANGUAGE))
    return line.startswith((NO_RESULT_MESSAGE, *told))


class ReportView(msgspec.Struct, frozen=True):
    found: ReportVerdict
    at: str
    partial: bool
    stale: str = ""  # why it no longer tells of the matrix as it is; `muster verify` looks at the files, too


# as much of a stamp as is needed: the claims, most of it, are skipped unread


class _StampedCell(msgspec.Struct):
    token: str


class _StampedBasis(msgspec.Struct):
    sections: dict[str, str]
    cells: dict[str, _StampedCell]
    missing: tuple[str, ...] = ()
    accepted: str = ""


class _StampHead(msgspec.Struct):
    at: str
    basis: _StampedBasis
    verdict: ReportVerdict | None = None


_decode_stamp_head = msgspec.json.Decoder(_StampHead).decode


def read_last_verdict(root: Path) -> ReportVerdict | None:
    """Of the last report that was written."""
    found = _read_last_stamp(root)
    return found[0].verdict if found else None


def read_report_view(root: Path, state: CampaignState, accepted: Callable[[], str] = lambda: "") -> ReportView | None:
    """None: there is no report, its stamp is damaged, or it is older than this.

    `accepted`: a digest of the red flags that people have accepted.
    """
    found = _read_last_stamp(root)
    if found is None or found[0].verdict is None:
        return None
    stamp, partial = found
    return ReportView(
        found[0].verdict, stamp.at, partial, join_phrases("; ", _changes_since_report(root, stamp, state, accepted))
    )


def _read_last_stamp(root: Path) -> tuple[_StampHead, bool] | None:
    """A whole report takes a partial one away: where both are there, the partial one came later."""
    for name in (PARTIAL, WHOLE):
        try:
            return _decode_stamp_head(
                read_regular_file(root / STAMP_FOLDER / f"{name}.json", LARGEST_READ)
            ), name == PARTIAL
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
    return None


def _changes_since_report(
    root: Path, stamp: _StampHead, state: CampaignState, accepted: Callable[[], str]
) -> Iterator[str]:
    """By the same rules as `verify`, as far as the record tells."""
    told = stamp.verdict
    if told is None:
        return
    if told.campaign == state.campaign_hash and not told.file:
        jobs = frozenset(told.jobs)
    else:
        from muster.app.campaign.campaign_digests import (
            digest_campaign_sections,
            jobs_behind_results,
        )  # most looks need none of it

        now, jobs = digest_campaign_sections(state.campaign, state.origin), jobs_behind_results(state.campaign)
        changed = [name for name, digest in now.items() if stamp.basis.sections.get(name) != digest]
        if changed and not (told.file and told.file == campaign_file_digest(root)):
            yield phrase("campaign.file_changed", sections=", ".join(changed))
        if changed:  # a file that was not taken in: the matrix that is known here is another one
            return
    records = {record.cell.id: record for record in state.declared if record.cell.job in jobs}
    yield from _cell_changes_since_report(stamp.basis, records)
    if stamp.basis.accepted != accepted():
        yield phrase("campaign.red_flag_accepted_since")


def _cell_changes_since_report(known: _StampedBasis, records: Mapping[str, CellRecord]) -> Iterator[str]:
    new = [name for name, record in records.items() if record.done and name not in known.cells]
    lost = [name for name in known.cells if name not in records or not records[name].done]
    again = [
        name
        for name, cell in known.cells.items()
        if name in records and (done := records[name].completed) and done.token != cell.token
    ]
    missing = [
        name
        for name, record in records.items()
        if not record.done and name not in known.cells and name not in known.missing
    ]
    if new:
        yield phrase("campaign.cells_came_since", cells=join_few_names(new, MOST_CELLS_NAMED))
    if lost:
        yield phrase("campaign.cells_not_done_any_more", cells=join_few_names(lost, MOST_CELLS_NAMED))
    if again:
        yield phrase("campaign.cells_run_again_since", cells=join_few_names(again, MOST_CELLS_NAMED))
    if missing:
        yield phrase("campaign.cells_declared_since", cells=join_few_names(missing, MOST_CELLS_NAMED))


def campaign_file_digest(root: Path) -> str:
    """Of campaign.yaml as it lies there; empty: it is gone."""
    import hashlib  # not at the top: it loads OpenSSL

    try:
        return hashlib.sha256(read_regular_file(root / "campaign.yaml", LARGEST_READ)).hexdigest()[:16]
    except OSError:
        return ""


def format_report_line(view: ReportView) -> str:
    """One line for people: `report: INVALID: ...`."""
    found = view.found
    verdict = phrase("campaign.report_line", verdict=f"{found.verdict} {found.config or ''}".rstrip())
    marks = ["PARTIAL"] if view.partial else []
    marks += [phrase("campaign.report_stale", reason=view.stale)] if view.stale else []
    told = join_phrases(": ", filter(None, (verdict, found.flag)))
    marked = join_phrases("", (" (", join_phrases("; ", marks), ")")) if marks else ""
    return join_phrases("; ", (join_phrases("", (told, marked)), found.path))


def report_view_as_json(view: ReportView) -> dict[str, Any]:
    """The `report` of `muster status --json`: a contract."""
    found = view.found
    return {
        "verdict": found.verdict,
        "config": found.config,
        "reason": found.reason,
        "flag": {"level": "ERROR", "code": found.code, "message": found.flag} if found.flag else None,
        "at": view.at,
        "partial": view.partial,
        "stale": bool(view.stale),
        "because": view.stale or None,
        "path": found.path,
    }
