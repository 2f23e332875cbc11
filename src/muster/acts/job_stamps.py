"""What a person's own jobs made of the results (`axes: []`, plots, notes) carries a stamp like our own files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from muster.acts.manifest import Entry
from muster.acts.stamping import load, relevant, seal
from muster.acts.status import Status
from muster.acts.verify import with_needs
from muster.domain.attempt import CellRecord
from muster.domain.cell import needed_cells
from muster.report.stamp import Basis, FileStamp, Stamp

LATE_S = 2.0
CHANGED = "it was changed after its job had ended"
Hash = Callable[[str], str | None]


def using_results(status: Status) -> list[CellRecord]:
    """DONE cells that need results and are no part of the matrix."""
    campaign = status.state.campaign
    users = {job.name for job in campaign.jobs if job.needs and job.name not in relevant(campaign)}
    return [cell.record for cell in status.cells if cell.record.done and cell.record.cell.job in users]


@dataclass(frozen=True, slots=True)
class JobStamps:
    root: Path
    status: Status
    basis: Basis
    version: str  # of Muster
    sha256: Hash

    def make(self, entries: Iterable[Entry]) -> None:
        """`entries`: every file of the campaign, with the cell that it belongs to."""
        using = using_results(self.status)
        needs = needed_cells(self.status.state.campaign, [cell.record.cell for cell in self.status.cells])
        by_cell: dict[str | None, list[Entry]] = {}
        for entry in entries:
            if entry.kind in ("output", "artifact"):
                by_cell.setdefault(entry.cell, []).append(entry)
        for record in using:
            name = record.cell.id
            self._stamp(record, needs.get(name, ()), by_cell.get(name, []))

    def _stamp(self, record: CellRecord, needs: Sequence[str], entries: Sequence[Entry]) -> None:
        """Once for each attempt: a file that was edited since must not be vouched for anew."""
        attempt, made = record.completed, f"job-{record.cell.id.replace('/', '_')}"
        before = load(self.root, made)
        if attempt is None or (before and before.token == attempt.token):
            return
        ended = attempt.outcome.ended if attempt.outcome else None
        files = {self._name(Path(entry.path)): self._file(entry, ended) for entry in entries}
        order = attempt.outcome.order if attempt.outcome else 0
        then = [name for name in needs if self._order_of(name) < order]
        known = self.basis.cells
        chain = with_needs(then, {name: cell.needs for name, cell in known.items()})
        cells = {name: known[name] for name in chain if name in known}
        basis = Basis(self.basis.campaign, {}, cells, len(then), len(then), closed=True)
        seal(self.root, Stamp(made, f"job {record.cell.job}", attempt.claimed_at, self.version, basis, files,
                              attempt.token, record.cell.id))  # fmt: skip

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)

    def _file(self, entry: Entry, ended: float | None) -> FileStamp:
        path = Path(entry.path)
        late = ended is not None and path.exists() and path.stat().st_mtime > ended + LATE_S
        digest = None if late or not entry.plain else self.sha256(entry.path)
        return FileStamp(digest or CHANGED, "job")

    def _order_of(self, name: str) -> int:
        record = self.status.state.cells.get(name)
        done = record.completed if record else None
        return done.outcome.order if done and done.outcome else 0
