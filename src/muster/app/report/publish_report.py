"""`muster report`: makes tables, figures and texts with one stamp, updates the bound documents, and stamps what the
user's own jobs made of the results (`axes: []`, plots, notes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import muster
from muster.app.campaign.accepted_flags import flags_as_json
from muster.app.campaign.campaign_digests import jobs_behind_results
from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.campaign_status import Status
from muster.app.campaign.file_manifest import ManifestEntry, campaign_files
from muster.app.campaign.last_report import PARTIAL, ReportVerdict, campaign_file_digest, no_result_message
from muster.app.campaign.stamp import FileStamp, ReportClaim, ReportText, Stamp, StampBasis, stamp_footer
from muster.app.campaign.stamp_files import (
    REPORTS_FOLDER,
    DerivedFile,
    PublishedFiles,
    publish_derived_files,
    read_stamp,
    read_stamp_or_none,
    write_stamp,
)
from muster.app.documents.bind_update_audit import UpdatedDocuments, update_campaign_documents
from muster.app.documents.document_files import document_stamp
from muster.app.documents.report_quantities import cells_by_quantity_key, quantities_of_facts
from muster.app.facts.gather_facts import GatheredFacts, ProgressStep, gather_report_facts, ignore_progress
from muster.app.facts.report_analysis import ReportAnalysis, analyse_facts
from muster.app.facts.stamp_basis import refuse_to_lose_report
from muster.app.report.red_flag_text import sort_flags_by_level
from muster.app.report.verdict_sentences import plain_verdict_sentence
from muster.files.state_folder import SIDECAR_SUFFIX
from muster.model.attempt import CellRecord
from muster.model.cell import cells_with_needs, map_needed_cells
from muster.readers.file_hashes import HashCache

LATE_WRITE_S = 2.0
CHANGED_AFTER_JOB = "it was changed after its job had ended"
HashOfFile = Callable[[str], str | None]


def cells_using_results(status: Status) -> list[CellRecord]:
    """DONE cells that need results and are no part of the matrix."""
    campaign = status.state.campaign
    users = {job.name for job in campaign.jobs if job.needs and job.name not in jobs_behind_results(campaign)}
    return [cell.record for cell in status.cells if cell.record.done and cell.record.cell.job in users]


@dataclass(frozen=True, slots=True)
class JobStampWriter:
    root: Path
    status: Status
    basis: StampBasis
    version: str  # of Muster
    sha256: HashOfFile

    def make(self, entries: Iterable[ManifestEntry]) -> None:
        """`entries`: every file of the campaign, with the cell that it belongs to."""
        using = cells_using_results(self.status)
        needs = map_needed_cells(self.status.state.campaign, [cell.record.cell for cell in self.status.cells])
        by_cell: dict[str | None, list[ManifestEntry]] = {}
        for entry in entries:
            if entry.kind in ("output", "artifact"):
                by_cell.setdefault(entry.cell, []).append(entry)
        for record in using:
            name = record.cell.id
            self._stamp(record, needs.get(name, ()), by_cell.get(name, []))

    def _stamp(self, record: CellRecord, needs: Sequence[str], entries: Sequence[ManifestEntry]) -> None:
        """Once for each attempt: a file that was edited since must not be vouched for anew."""
        attempt, made = record.completed, f"job-{record.cell.id.replace('/', '_')}"
        before = read_stamp(self.root, made)
        if attempt is None or (before and before.token == attempt.token):
            return
        ended = attempt.outcome.ended if attempt.outcome else None
        files = {self._name(Path(entry.path)): self._file(entry, ended) for entry in entries}
        order = attempt.outcome.order if attempt.outcome else 0
        then = [name for name in needs if self._order_of(name) < order]
        known = self.basis.cells
        chain = cells_with_needs(then, {name: cell.needs for name, cell in known.items()})
        cells = {name: known[name] for name in chain if name in known}
        basis = StampBasis(self.basis.campaign, {}, cells, len(then), len(then), closed=True)
        write_stamp(
            self.root,
            Stamp(
                made,
                f"job {record.cell.job}",
                attempt.claimed_at,
                self.version,
                basis,
                files,
                attempt.token,
                record.cell.id,
            ),
        )

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)

    def _file(self, entry: ManifestEntry, ended: float | None) -> FileStamp:
        path = Path(entry.path)
        late = ended is not None and path.exists() and path.stat().st_mtime > ended + LATE_WRITE_S
        digest = None if late or not entry.plain else self.sha256(entry.path)
        return FileStamp(digest or CHANGED_AFTER_JOB, "job")

    def _order_of(self, name: str) -> int:
        record = self.status.state.cells.get(name)
        done = record.completed if record else None
        return done.outcome.order if done and done.outcome else 0


@dataclass(frozen=True, slots=True)
class PublishedReport:
    """What `muster report` made. `kept` None: the matrix is incomplete, and nothing was written."""

    analysis: ReportAnalysis
    kept: PublishedFiles | None = None
    documents: UpdatedDocuments | None = None

    @property
    def usable(self) -> bool:
        """Whether these numbers may be used as they are."""
        return not self.analysis.facts.partial and self.analysis.decision.verdict != "INVALID"


def published_report_as_json(made: PublishedReport) -> dict[str, Any]:
    """The object of `muster report --json`: a contract."""
    from muster.app.report.table_files import table_rows_as_json

    analysis, facts, documents = made.analysis, made.analysis.facts, made.documents or UpdatedDocuments()
    return {
        "verdict": analysis.decision.verdict,
        "config": analysis.decision.config,
        "reason": plain_verdict_sentence(analysis),
        "k": facts.k,
        "n": facts.n,
        "missing": [each.cell for each in facts.missing],
        "flags": flags_as_json(analysis.flags),
        "table": list(table_rows_as_json(analysis)),
        "documents": {
            "updated": list(documents.updated),
            "unbound": list(documents.unbound),
            "refused": [{"path": path, "because": why} for path, why in documents.refused],
        },
        "files": list(made.kept.written) if made.kept else [],
    }


def make_report(
    desk: CampaignHandle, *, partial: bool = False, documents: bool = True, step: ProgressStep = ignore_progress
) -> PublishedReport:
    found = gather_report_facts(desk, step)
    analysis = analyse_facts(found.facts)
    made = PARTIAL if found.facts.partial and partial else "report"
    refuse_to_lose_report(read_stamp_or_none(found.root, made), found.unread, str(found.root))
    if found.facts.partial and not partial:
        return PublishedReport(analysis)
    command = "muster report --partial" if partial else "muster report"
    files = list(_render_report_files(found, analysis, step))
    told = make_report_verdict(desk, found, analysis)
    kept = publish_derived_files(
        found.root, made, command, found.facts.at, muster.__version__, found.basis, files, told
    )
    write_job_stamps(desk, found)
    names = _documents_to_update(found) if documents else ()
    if analysis.errors:
        refused = tuple((name, no_result_message()) for name in names)
        return PublishedReport(analysis, kept, UpdatedDocuments(refused=refused) if names else None)
    updated = _update_bound_documents(found, names) if names else None
    write_document_stamps(found, updated.updated if updated else ())
    return PublishedReport(analysis, kept, updated)


def make_report_verdict(desk: CampaignHandle, found: GatheredFacts, analysis: ReportAnalysis) -> ReportVerdict:
    decision, flag = analysis.decision, next(iter(sort_flags_by_level(analysis.errors)), None)
    taken, now = desk.load(), found.status.state.campaign
    return ReportVerdict(
        decision.verdict,
        decision.config,
        plain_verdict_sentence(analysis),
        flag.message if flag else "",
        flag.code if flag else "",
        f"{REPORTS_FOLDER}/{_mark_partial_name(found, 'decision.md')}",
        taken.campaign_hash,
        "" if now == taken.campaign else campaign_file_digest(found.root),
        tuple(sorted(jobs_behind_results(now))),
    )


def write_document_stamps(found: GatheredFacts, names: Sequence[str | Path]) -> None:
    """One stamp for each text: they are updated at different times."""
    cells = cells_by_quantity_key(found.facts) if names else {}
    for path in [(found.root / name).resolve() for name in names]:
        home = found.root.resolve()
        name = str(path.relative_to(home)) if path.is_relative_to(home) else str(path)
        stamped = document_stamp(path, cells)
        if stamped:
            made = f"document-{name.replace('/', '_')}"
            command = "muster docs update"
            write_stamp(
                found.root, Stamp(made, command, found.facts.at, muster.__version__, found.basis, {name: stamped})
            )


def write_job_stamps(desk: CampaignHandle, found: GatheredFacts) -> None:
    if not cells_using_results(found.status):
        return
    hashes = HashCache(desk.state)
    stamps = JobStampWriter(found.root, found.status, found.basis, muster.__version__, hashes.sha256)
    stamps.make(campaign_files(desk.root, found.status.state))
    hashes.save()


def _update_bound_documents(found: GatheredFacts, names: Sequence[str]) -> UpdatedDocuments:
    return update_campaign_documents(
        found.root, names, tuple(quantities_of_facts(found.facts)), found.facts.mark or None
    )


def _documents_to_update(found: GatheredFacts) -> Sequence[str]:
    """Those that the campaign names, and what is bound beside its file."""
    named = found.status.state.campaign.documents
    bound = (path.name.removesuffix(SIDECAR_SUFFIX) for path in sorted(found.root.glob(f"*{SIDECAR_SUFFIX}")))
    return tuple(dict.fromkeys([*named, *(name for name in bound if (found.root / name).exists())]))


def _render_report_files(found: GatheredFacts, analysis: ReportAnalysis, step: ProgressStep) -> Iterator[DerivedFile]:
    """Figures last to be drawn and first to be named: the texts show them."""
    from muster.app.report.decision_report import render_decision_report
    from muster.app.report.defence_notes import render_defence_notes
    from muster.app.report.figures import draw_report_figures
    from muster.app.report.table_files import render_report_tables

    for table in render_report_tables(analysis):
        for suffix, text in (("csv", table.csv), ("md", table.markdown), ("tex", table.latex)):
            name, claims = f"tables/{table.name}.{suffix}", table.claims[suffix]
            yield _make_derived_file(found, name, text.encode(), "table", table.cells, claims)
    shown = []
    for at, figure in enumerate(draw_report_figures(analysis)):
        step("drawing figures", at, 0)
        for suffix, data in figure.files.items():
            yield _make_derived_file(found, f"figures/{figure.name}.{suffix}", data, "figure", figure.cells)
        shown.append((_mark_partial_name(found, f"figures/{figure.name}.png"), figure.caption))
    yield _text_as_derived_file(found, "decision.md", render_decision_report(analysis, shown))
    yield _text_as_derived_file(found, "defence.md", render_defence_notes(analysis))


def _text_as_derived_file(found: GatheredFacts, name: str, text: ReportText) -> DerivedFile:
    path = f"{REPORTS_FOLDER}/{_mark_partial_name(found, name)}"
    body = f"{text.body.rstrip()}\n\n---\n{stamp_footer(found.basis, found.facts.version, path)}\n"
    return DerivedFile(path, body.encode(), "text", None, text.claims)


def _make_derived_file(
    found: GatheredFacts,
    name: str,
    data: bytes,
    kind: str,
    cells: tuple[str, ...],
    claims: tuple[ReportClaim, ...] = (),
) -> DerivedFile:
    path = f"{REPORTS_FOLDER}/{_mark_partial_name(found, name)}"
    if name.endswith(".tex"):
        data += f"% {stamp_footer(found.basis, found.facts.version, path)}\n".encode()
    elif name.endswith(".md"):
        data += f"\n{stamp_footer(found.basis, found.facts.version, path)}\n".encode()
    return DerivedFile(path, data, kind, cells, claims)


def _mark_partial_name(found: GatheredFacts, name: str) -> str:
    """`tables/main.PARTIAL-16of40.csv`."""
    if not found.facts.partial:
        return name
    path = PurePosixPath(name)
    return str(path.with_name(f"{path.stem}.PARTIAL-{found.facts.k}of{found.facts.n}{path.suffix}"))
