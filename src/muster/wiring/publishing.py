"""Makes the report: tables, figures, texts with their stamp, and the bound documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import muster
from muster.acts.docs import Documents, update_all
from muster.acts.docs_stamp import document_stamp
from muster.acts.manifest import Entry
from muster.acts.stamping import PARTIAL, REPORTS, Derived, Kept, load, publish, relevant, seal
from muster.acts.verify import with_needs
from muster.domain.attempt import CellRecord
from muster.domain.cell import needed_cells
from muster.observe.hashes import HashCache
from muster.report.analysis import Analysis, analyse
from muster.report.documents.sidecar import SUFFIX
from muster.report.facts import Text
from muster.report.quantities import cells_by_key, quantities_of
from muster.report.stamp import Basis, FileStamp, Stamp, footer
from muster.wiring.desk import Desk
from muster.wiring.listing import files_of
from muster.wiring.reporting import Gathered, Step, gather, silent

NO_RESULT = "the matrix is INVALID: its numbers are no result, and none is written"

LATE_S = 2.0
CHANGED = "it was changed after its job had ended"


@dataclass(frozen=True, slots=True)
class Report:
    """What `muster report` made. `kept` None: the matrix is incomplete, and nothing was written."""

    analysis: Analysis
    kept: Kept | None = None
    documents: Documents | None = None


def make(desk: Desk, *, partial: bool = False, documents: bool = True, step: Step = silent) -> Report:
    found = gather(desk, step)
    analysis = analyse(found.facts)
    if found.facts.partial and not partial:
        return Report(analysis)
    command = "muster report --partial" if partial else "muster report"
    files = list(_files(found, analysis, step))
    made = PARTIAL if found.facts.partial else "report"
    kept = publish(found.root, made, command, found.facts.at, muster.__version__, found.basis, files)
    stamp_once(desk, found)
    names = _documents(found) if documents else ()
    if analysis.errors:
        refused = tuple((name, NO_RESULT) for name in names)
        return Report(analysis, kept, Documents(refused=refused) if names else None)
    updated = _update(found, names) if names else None
    stamp_documents(found, updated.updated if updated else ())
    return Report(analysis, kept, updated)


def stamp_documents(found: Gathered, names: Sequence[str | Path]) -> None:
    """One stamp for each text: they are updated at different times."""
    cells = cells_by_key(found.facts) if names else {}
    for path in [(found.root / name).resolve() for name in names]:
        home = found.root.resolve()
        name = str(path.relative_to(home)) if path.is_relative_to(home) else str(path)
        stamped = document_stamp(path, cells)
        if stamped:
            made = f"document-{name.replace('/', '_')}"
            command = "muster docs update"
            seal(found.root, Stamp(made, command, found.facts.at, muster.__version__, found.basis, {name: stamped}))


def stamp_once(desk: Desk, found: Gathered) -> None:
    """What a person's own jobs made of the results (`axes: []`, plots, notes) carries a stamp like our own files."""
    campaign = found.status.state.campaign
    users = {job.name for job in campaign.jobs if job.needs and job.name not in relevant(campaign)}
    using = [cell.record for cell in found.status.cells if cell.record.done and cell.record.cell.job in users]
    if not using:
        return
    needs = needed_cells(campaign, [cell.record.cell for cell in found.status.cells])
    entries = [entry for entry in files_of(desk.root, found.status.state) if entry.kind in ("output", "artifact")]
    hashes = HashCache(desk.state)
    for record in using:
        _stamp_job(
            found, record, needs.get(record.cell.id, ()), [e for e in entries if e.cell == record.cell.id], hashes
        )
    hashes.save()


def _stamp_job(
    found: Gathered, record: CellRecord, needs: Sequence[str], entries: Sequence[Entry], hashes: HashCache
) -> None:
    """Once for each attempt: a file that was edited since must not be vouched for anew."""
    attempt, made = record.completed, f"job-{record.cell.id.replace('/', '_')}"
    before = load(found.root, made)
    if attempt is None or (before and before.token == attempt.token):
        return
    ended = attempt.outcome.ended if attempt.outcome else None
    files = {}
    for entry in entries:
        path = Path(entry.path)
        name = str(path.relative_to(found.root)) if path.is_relative_to(found.root) else entry.path
        late = ended is not None and path.exists() and path.stat().st_mtime > ended + LATE_S
        digest = None if late or not entry.plain else hashes.sha256(entry.path)
        files[name] = FileStamp(digest or CHANGED, "job")
    order = attempt.outcome.order if attempt.outcome else 0
    then = [name for name in needs if _order_of(found, name) < order]
    cells = {name: found.basis.cells[name] for name in with_needs(then, _needs(found)) if name in found.basis.cells}
    basis = Basis(found.basis.campaign, {}, cells, len(then), len(then), closed=True)
    seal(found.root, Stamp(made, f"job {record.cell.job}", attempt.claimed_at, muster.__version__, basis, files,
                           attempt.token, record.cell.id))  # fmt: skip


def _needs(found: Gathered) -> dict[str, tuple[str, ...]]:
    return {name: cell.needs for name, cell in found.basis.cells.items()}


def _order_of(found: Gathered, name: str) -> int:
    record = found.status.state.cells.get(name)
    done = record.completed if record else None
    return done.outcome.order if done and done.outcome else 0


def _update(found: Gathered, names: Sequence[str]) -> Documents:
    return update_all(found.root, names, tuple(quantities_of(found.facts)), found.facts.mark or None)


def _documents(found: Gathered) -> Sequence[str]:
    """Those that the campaign names, and what is bound beside its file."""
    named = (found.status.state.campaign.report or {}).get("documents") or ()
    bound = (path.name.removesuffix(SUFFIX) for path in sorted(found.root.glob(f"*{SUFFIX}")))
    return tuple(dict.fromkeys([*named, *(name for name in bound if (found.root / name).exists())]))


def _files(found: Gathered, analysis: Analysis, step: Step) -> Iterator[Derived]:
    """Figures last to be drawn and first to be named: the texts show them."""
    from muster.report.decision_report import decision_report
    from muster.report.defence import defence_notes
    from muster.report.figures import figures
    from muster.report.tables import tables

    for table in tables(analysis):
        for suffix, text in (("csv", table.csv), ("md", table.markdown), ("tex", table.latex)):
            yield _derived(found, f"tables/{table.name}.{suffix}", text.encode(), "table", table.cells)
    shown = []
    for at, figure in enumerate(figures(analysis)):
        step("drawing figures", at, 0)
        for suffix, data in figure.files.items():
            yield _derived(found, f"figures/{figure.name}.{suffix}", data, "figure", figure.cells)
        shown.append((_named(found, f"figures/{figure.name}.png"), figure.caption))
    yield _text(found, "decision.md", decision_report(analysis, shown))
    yield _text(found, "defence.md", defence_notes(analysis))


def _text(found: Gathered, name: str, text: Text) -> Derived:
    path = f"{REPORTS}/{_named(found, name)}"
    body = f"{text.body.rstrip()}\n\n---\n{footer(found.basis, found.facts.version, path)}\n"
    return Derived(path, body.encode(), "text", None, text.claims)


def _derived(found: Gathered, name: str, data: bytes, kind: str, cells: tuple[str, ...]) -> Derived:
    path = f"{REPORTS}/{_named(found, name)}"
    if name.endswith(".tex"):
        data += f"% {footer(found.basis, found.facts.version, path)}\n".encode()
    elif name.endswith(".md"):
        data += f"\n{footer(found.basis, found.facts.version, path)}\n".encode()
    return Derived(path, data, kind, cells)


def _named(found: Gathered, name: str) -> str:
    """`tables/main.PARTIAL-16of40.csv`."""
    if not found.facts.partial:
        return name
    path = PurePosixPath(name)
    return str(path.with_name(f"{path.stem}.PARTIAL-{found.facts.k}of{found.facts.n}{path.suffix}"))
