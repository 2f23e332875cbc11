"""What the run of a cell logged: the attempt that counts, where its numbers may lie, and why there are none."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from muster.acts.status import CellStatus
from muster.domain.attempt import Attempt, CellRecord
from muster.execute.paths import attempt_folder
from muster.observe.metrics.discover import Run, run_of
from muster.observe.metrics.meter import Measured, Meter
from muster.observe.metrics.names import LOOKED_FOR
from muster.rounds.summary import Summary

Keys = Callable[[str], bool]


def every_key(_: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class History:
    """`run` and `measured` go together; both None: nothing was found."""

    output: str  # where it should lie
    run: Run | None = None
    measured: Measured | None = None
    told: tuple[str, ...] = ()  # what was not looked at, or can't be read
    printed: bool = False  # nothing is in the output: it is what the run printed

    @property
    def keys(self) -> Mapping[str, Summary]:
        return self.measured.keys if self.measured else {}

    @property
    def unread(self) -> str:
        """Why there is no value; empty where there is one."""
        if self.keys:
            return ""
        if self.run is None or self.measured is None or self.printed:
            return self._missing()
        skipped = [text for said in self.measured.sources for text in said.skipped]
        said = [*self.measured.troubles, *skipped] or [f"no value in {self.run.sources[0].path}"]
        return "; ".join([*said, *self.told])

    def _missing(self) -> str:
        printed = ["what it printed holds no number"] if self.printed else []
        if self.told:  # it may well be where nobody could look
            return "; ".join([f"what it logged was not found in {self.output}", *self.told, *printed])
        return "; ".join([f"nothing that it logged is in {self.output}: {LOOKED_FOR}", *printed])


def measure(run: Run, keys: Keys = every_key) -> Measured:
    meter = Meter(run.feeds(), keys)
    meter.look()
    return meter.measured()


def attempt_of(record: CellRecord) -> Attempt | None:
    """The one that counts: the one that was completed, else the newest."""
    return record.completed or record.last


def output_of(state: Path, cell: CellStatus) -> str | None:
    """Where that one writes; None: there is none. `state`: the campaign's `.muster`."""
    attempt = attempt_of(cell.record)
    if attempt is None:
        return None
    found = attempt.outcome.output if attempt.outcome else cell.output
    return found or str(attempt_folder(state, *attempt.key) / "out")


def history_of(state: Path, cell: CellStatus, keys: Keys = every_key) -> History | None:
    """Of the attempt that counts. None: it never ran."""
    attempt, output = attempt_of(cell.record), output_of(state, cell)
    if attempt is None or output is None:
        return None
    return read_history([output, str(attempt_folder(state, *attempt.key))], keys)


def read_history(places: Sequence[str], keys: Keys = every_key) -> History:
    """Of the first place with a value in it; the output comes first, then the folder with what the run printed."""
    found = History(places[0])
    told: list[str] = []
    for number, place in enumerate(places):
        looked = run_of(place) if os.path.lexists(place) else None
        if looked is None:
            continue
        told += [each for each in looked.told if each not in told]
        if looked.run is None:
            continue
        measured = measure(looked.run, keys)
        some = bool(measured.keys or measured.others)
        if some or found.run is None:
            found = History(places[0], looked.run, measured, printed=number > 0)
        if some:
            break
    return History(found.output, found.run, found.measured, tuple(told), found.printed)
