"""The cells that are not settled, in the order they should start, kept up to date as decisions come in."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from muster.domain.attempt import Attempt, CellRecord
from muster.domain.cell import needed_cells
from muster.domain.state import CampaignState
from muster.plan.order import durations, in_order
from muster.plan.trust import RECENT, counts, recently_ended


class Agenda:
    def __init__(self, state: CampaignState) -> None:
        self.state = state
        self.needs = needed_cells(state.campaign, [record.cell for record in state.declared])
        self._open = {attempt.key: attempt for attempt in state.open_attempts}
        self.recent = deque(recently_ended(state), maxlen=RECENT)
        self._known_jobs: set[str] = set()
        self._order()

    def _order(self) -> None:
        left = [record for record in self.state.declared if not record.done and record.given_up is None]
        known = durations(self.state.declared)
        self._known_jobs = set(known)
        self._cells = {record.cell.id: record for record in in_order(left, self.state.campaign, known)}

    @property
    def cells(self) -> Sequence[CellRecord]:
        return list(self._cells.values())

    @property
    def open(self) -> Sequence[Attempt]:
        return list(self._open.values())

    def update(self, records: Iterable[CellRecord]) -> None:
        for record in records:
            self.state.cells[record.cell.id] = record
            for attempt in record.attempts:
                if self._open.pop(attempt.key, None) and counts(attempt, self.state):
                    self.recent.append(attempt)
            if record.open:
                self._open[record.open.key] = record.open
            self._file(record)

    def _file(self, record: CellRecord) -> None:
        cell = record.cell.id
        if record.done or record.given_up is not None or not record.declared:
            self._cells.pop(cell, None)
            if record.done and record.cell.job not in self._known_jobs:
                self._order()  # the first duration of a job is known: chains can be compared now
        elif cell in self._cells:
            self._cells[cell] = record
        else:
            self._order()
