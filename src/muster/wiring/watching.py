"""Plugs probes and progress readers together into the signals of living runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from muster.domain.attempt import Attempt
from muster.domain.campaign import Job
from muster.domain.cell import Cell
from muster.domain.order import Order
from muster.domain.reading import Readings
from muster.domain.sighting import Sighting
from muster.domain.state import CampaignState
from muster.execute.local import read_order, slot_of
from muster.execute.log_cut import cut_logs
from muster.observe.clocks import clocks
from muster.observe.progress import ProgressReader
from muster.observe.vitals import Ask, VitalsReader
from muster.ports.clock import Clock
from muster.wiring.shift import Shift

Key = tuple[str, int]
OLD_S = 3.0  # an answer about files that is older than this, and than two looks, abstains


class Files:
    """What the files of one run say. Used by one thread at a time."""

    def __init__(self, job: Job, cell: Cell, order: Order) -> None:
        self._reader = ProgressReader(job, cell, order)
        self._argv = order.argv
        self._clocks: tuple[tuple[str, float], ...] | None = None
        self.output: str | None = None

    def look(self) -> Readings:
        marks = self._reader.look()
        self.output = self._reader.output
        if self._clocks is None and self.output and any(mark.count is not None for mark in marks):
            self._clocks = clocks(self.output, self._argv)
        return Readings(0.0, marks, clocks=self._clocks or (), output=self.output)


class Watching:
    """The signals of the runs of one campaign."""

    def __init__(
        self,
        folder_of: Callable[[str, int], Path],
        clock: Clock,
        vitals: VitalsReader,
        poll_s: float = 0.0,
        *,
        cuts: bool = False,
    ) -> None:
        """`cuts`: logs are cut where the campaign says so. That is the controller's to do, and nobody else's."""
        self._cuts = cuts
        self.folder_of, self.clock, self.vitals = folder_of, clock, vitals
        self._old_s = max(OLD_S, 2 * poll_s)
        self._state: CampaignState | None = None
        self._files: dict[Key, Files] = {}
        self._shift: Shift[Key, Readings] = Shift(clock)

    def configure(self, state: CampaignState) -> None:
        self._state = state

    def read(self, living: Sequence[tuple[Attempt, Sighting]]) -> Mapping[Key, Readings]:
        boot = self.clock.boot()
        files = {attempt.key: found for attempt, _ in living if (found := self._files_of(attempt))}
        self._shift.read({key: found.look for key, found in files.items()})
        vitals = self.vitals.look_all([self._ask(attempt, seen) for attempt, seen in living])
        if self._cuts and self._state and (most := self._state.campaign.log_max):
            for attempt, _ in living:  # after they were read
                cut_logs(str(self.folder_of(*attempt.place)), most)
        return {
            attempt.key: replace(self._answer(attempt.key, boot), boot=boot, vitals=vitals[attempt.key])
            for attempt, _ in living
        }

    def forget(self, key: Key) -> None:
        self._files.pop(key, None)
        self._shift.forget(key)

    def _files_of(self, attempt: Attempt) -> Files | None:
        assert self._state is not None
        if attempt.key not in self._files:
            order = read_order(self.folder_of(*attempt.place))
            if order is None:
                return None
            cell = self._state.cells[attempt.cell].cell
            self._files[attempt.key] = Files(self._state.job(cell.job), cell, order)
        return self._files[attempt.key]

    def _answer(self, key: Key, boot: float) -> Readings:
        """The newest answer about its files; an old one abstains, and what it said stands."""
        newest = self._shift.newest.get(key)
        if newest is None:
            return Readings(boot)
        if newest.boot >= boot - self._old_s:
            return newest.value
        why = f"its files have not answered for {boot - newest.boot:.0f} s"
        return replace(newest.value, marks=tuple(replace(mark, trouble=why) for mark in newest.value.marks))

    def _ask(self, attempt: Attempt, seen: Sighting) -> Ask:
        assert self._state is not None
        assert seen.identity is not None
        gpus = tuple(gpu for name in attempt.slots if (gpu := slot_of(name).gpu) is not None)
        files = self._files.get(attempt.key)
        return Ask(
            attempt.key,
            seen.identity.pid,
            seen.identity.ticks,
            seen.identity.shim_pid,
            str(self.folder_of(*attempt.place)),
            files.output if files else None,
            gpus,
            self._state.campaign.slots.per_gpu > 1,
        )
