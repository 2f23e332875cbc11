"""What the last report found, for `status`, `up` and the finish: from its stamp, without reading a single result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from muster.domain.attempt import CellRecord
from muster.domain.state import CampaignState
from muster.ports.regular_files import read_regular
from muster.report.report_verdict import ReportVerdict

STAMPS = "reports/stamps"
PARTIAL, WHOLE = "report-partial", "report"
NAMED = 3
LARGEST = 256 << 20  # bytes
NO_RESULT = "the matrix is INVALID: its numbers are no result, and none is written"


class ReportView(msgspec.Struct, frozen=True):
    found: ReportVerdict
    at: str
    partial: bool
    stale: str = ""  # why it no longer tells of the matrix as it is; `muster verify` looks at the files, too


# as much of a stamp as is needed: the claims, most of it, are skipped unread


class _Cell(msgspec.Struct):
    token: str


class _Basis(msgspec.Struct):
    sections: dict[str, str]
    cells: dict[str, _Cell]
    missing: tuple[str, ...] = ()
    accepted: str = ""


class _Stamp(msgspec.Struct):
    at: str
    basis: _Basis
    verdict: ReportVerdict | None = None


_decode = msgspec.json.Decoder(_Stamp).decode


def last_verdict(root: Path) -> ReportVerdict | None:
    """Of the last report that was written."""
    found = _last_stamp(root)
    return found[0].verdict if found else None


def report_view(root: Path, state: CampaignState, accepted: Callable[[], str] = lambda: "") -> ReportView | None:
    """None: there is no report, its stamp is damaged, or it is older than this.

    `accepted`: a digest of the red flags that people have accepted.
    """
    found = _last_stamp(root)
    if found is None or found[0].verdict is None:
        return None
    stamp, partial = found
    return ReportView(found[0].verdict, stamp.at, partial, "; ".join(_changes(root, stamp, state, accepted)))


def _last_stamp(root: Path) -> tuple[_Stamp, bool] | None:
    """A whole report takes a partial one away: where both are there, the partial one came later."""
    for name in (PARTIAL, WHOLE):
        try:
            return _decode(read_regular(root / STAMPS / f"{name}.json", LARGEST)), name == PARTIAL
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
    return None


def _changes(root: Path, stamp: _Stamp, state: CampaignState, accepted: Callable[[], str]) -> Iterator[str]:
    """By the same rules as `verify`, as far as the record tells."""
    told = stamp.verdict
    if told is None:
        return
    if told.campaign == state.campaign_hash and not told.file:
        jobs = frozenset(told.jobs)
    else:
        from muster.acts.stamping import relevant, sections_of  # most looks need none of it

        now, jobs = sections_of(state.campaign, state.origin), relevant(state.campaign)
        changed = [name for name, digest in now.items() if stamp.basis.sections.get(name) != digest]
        if changed and not (told.file and told.file == file_digest(root)):
            yield f"campaign.yaml changed: {', '.join(changed)}"
        if changed:  # a file that was not taken in: the matrix that is known here is another one
            return
    records = {record.cell.id: record for record in state.declared if record.cell.job in jobs}
    yield from _cells(stamp.basis, records)
    if stamp.basis.accepted != accepted():
        yield "a red flag was accepted since"


def _cells(known: _Basis, records: Mapping[str, CellRecord]) -> Iterator[str]:
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
        yield f"{_few(new)} came in since"
    if lost:
        yield f"{_few(lost)}: not DONE any more, or no longer declared"
    if again:
        yield f"{_few(again)}: run again since"
    if missing:
        yield f"{_few(missing)}: declared since, and missing"


def file_digest(root: Path) -> str:
    """Of campaign.yaml as it lies there; empty: it is gone."""
    import hashlib  # not at the top: it loads OpenSSL

    try:
        return hashlib.sha256(read_regular(root / "campaign.yaml", LARGEST)).hexdigest()[:16]
    except OSError:
        return ""


def _few(names: list[str]) -> str:
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")


def verdict_line(view: ReportView) -> str:
    """One line for people: `report: INVALID: ...`."""
    found = view.found
    config = f" {found.config}" if found.config else ""
    because = f": {found.flag}" if found.flag else ""
    marks = [*(["PARTIAL"] if view.partial else []), *([f"stale: {view.stale}"] if view.stale else [])]
    marked = f" ({'; '.join(marks)})" if marks else ""
    return f"report: {found.verdict}{config}{because}{marked}; {found.path}"


def view_json(view: ReportView) -> dict[str, Any]:
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
