"""What the run of a cell logged: the attempt that counts, where its numbers may lie, and why there are none."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from muster.acts.status import CellStatus
from muster.domain.attempt import Attempt, CellRecord
from muster.domain.resumed import Resumption
from muster.execute.paths import attempt_folder
from muster.execute.resumed import resume_chain
from muster.observe.joining import step_in_name
from muster.observe.metrics.around import PATIENCE_S
from muster.observe.metrics.discover import Run, run_of
from muster.observe.metrics.joined import AttemptRun, joined_run
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
    def resumed(self) -> Resumption | None:
        """None: one attempt wrote all of it."""
        return self.measured.resumed if self.measured else None

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
    return found or str(attempt_folder(state, *attempt.place) / "out")


@dataclass(frozen=True, slots=True)
class Trace:
    """Where one attempt of a run wrote."""

    attempt: int
    places: tuple[str, ...]  # the likeliest first
    saved: float | None = None  # the step of the checkpoint that it went on from, as far as its name tells


def chain_of(state: Path, record: CellRecord, attempt: Attempt, output: str) -> tuple[Trace, ...]:
    """The attempts that make one run, the first one first. `output`: where `attempt` writes."""
    links = resume_chain(state, *attempt.place) if attempt.n > 1 and not attempt.adopted else ()
    known = {each.n: each for each in record.attempts}
    found = []
    for link in links[:-1]:
        folder = attempt_folder(state, link.cell, link.n)
        outcome = known[link.n].outcome if link.n in known else None
        place = outcome.output if outcome and outcome.output else str(folder / "out")
        found.append(Trace(link.n, (place, str(folder)), step_in_name(link.resumed_from)))
    saved = step_in_name(links[-1].resumed_from) if links else None
    return (*found, Trace(attempt.n, (output, str(attempt_folder(state, *attempt.place))), saved))


def history_of(state: Path, cell: CellStatus, keys: Keys = every_key) -> History | None:
    """Of the attempt that counts and those that it goes on from. None: it never ran."""
    attempt, output = attempt_of(cell.record), output_of(state, cell)
    if attempt is None or output is None:
        return None
    return read_history(chain_of(state, cell.record, attempt, output), keys)


def read_history(chain: Sequence[Trace], keys: Keys = every_key) -> History:
    """From the first kind of place with a value in it; outputs come first, then the folders with what was printed."""
    output = chain[-1].places[0]
    found = History(output)
    told: list[str] = []
    for number, (run, more) in enumerate(runs_in(chain)):
        told += [each for each in more if each not in told]
        if run is None:
            continue
        measured = measure(run, keys)
        some = bool(measured.keys or measured.others)
        if some or found.run is None:
            found = History(output, run, measured, printed=number > 0)
        if some:
            break
    return History(found.output, found.run, found.measured, tuple(told), found.printed)


def is_newest(chain: Sequence[Trace], run: Run) -> bool:
    """Whether the newest attempt has logged something of it."""
    return any(run.folder == place or run.folder.startswith(f"{place}/") for place in chain[-1].places)


def runs_in(chain: Sequence[Trace], patience_s: float = PATIENCE_S) -> Iterator[tuple[Run | None, tuple[str, ...]]]:
    """What the attempts logged, as one run, for each kind of place; and what was not looked at, or can't be read."""
    for places in zip(*(each.places for each in chain), strict=True):
        looked = {place: run_of(place, patience_s) for place in dict.fromkeys(places) if os.path.lexists(place)}
        runs = [found.run if (found := looked.get(place)) else None for place in places]
        parts = [AttemptRun(each.attempt, run, each.saved) for each, run in zip(chain, runs, strict=True)]
        yield joined_run(parts), tuple(text for found in looked.values() for text in found.told)
