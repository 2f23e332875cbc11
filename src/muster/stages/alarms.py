"""Warnings that a type of stage runs out: with the share that is left, patience, onset and duration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from muster.stages.notation import GateError, SettingProblem, SpecError
from muster.stages.schedule import Schedule


class Watch(NamedTuple):
    """Warns once the share of a type that is left has been below `ratio` for `patience` iterations."""

    ratio: float
    patience: int = 1

    def checked(self) -> Watch:
        problems = []
        if not 0 < self.ratio <= 1:
            problems.append(SettingProblem(f"the ratio must lie between 0 and 1, found {self.ratio:g}"))
        if self.patience < 1:
            problems.append(SettingProblem(f"the patience must be 1 at least, found {self.patience}"))
        if problems:
            raise SpecError("warning", problems)
        return self


class StageWarning(NamedTuple):
    """One spell of a warning, as of its last iteration."""

    type: str
    onset: int  # the first iteration below the ratio
    iteration: int  # when it was told: `patience` iterations later
    ratio: float  # what was left then
    duration: int  # iterations since it was told, that one included
    total: int  # of all spells of this type

    def row(self, threshold: float) -> dict[str, Any]:
        return {
            "type": self.type,
            "onset": self.onset,
            "iteration": self.iteration,
            "ratio": round(self.ratio, 6),
            "threshold": threshold,
            "duration": self.duration,
            "total": self.total,
        }


class Alarm:
    """Sees the shares iteration by iteration. Where they rise again the spell is over, and the next one counts on."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch.checked()
        self.events: list[StageWarning] = []
        self._iteration = -1  # the last one that was observed; -1: none yet
        self._below: dict[str, int] = {}  # onset of the spell, told or not
        self._last: dict[str, int] = {}  # where the spell's event is
        self._total: dict[str, int] = {}

    def observe(self, iteration: int, ratios: Mapping[str, float]) -> list[StageWarning]:
        """Those that are told at this iteration for the first time."""
        if iteration <= self._iteration:
            raise GateError(
                f"iteration {iteration} was observed after {self._iteration}: a resumed run loads its alarm"
            )
        self._iteration = iteration
        told = []
        for name, ratio in ratios.items():
            if not ratio < self.watch.ratio:  # NaN too: it proves nothing
                self._below.pop(name, None)
                self._last.pop(name, None)
                continue
            onset = self._below.setdefault(name, iteration)
            if iteration - onset + 1 < self.watch.patience:
                continue
            if name in self._last:
                self._goes_on(name, iteration)
            else:
                self._total[name] = self._total.get(name, 0) + 1
                self._last[name] = len(self.events)
                self.events.append(StageWarning(name, onset, iteration, ratio, 1, self._total[name]))
                told.append(self.events[-1])
        return told

    def _goes_on(self, name: str, iteration: int) -> None:
        """In iterations, also where not every one of them is looked at."""
        old = self.events[self._last[name]]
        duration = iteration - old.iteration + 1
        self._total[name] += duration - old.duration
        self.events[self._last[name]] = old._replace(duration=duration, total=self._total[name])

    def durations(self) -> dict[str, int]:
        """Of the spells that last."""
        return {name: self.events[at].duration for name, at in self._last.items()}

    def state(self) -> dict[str, Any]:
        """For the checkpoint."""
        return {
            "iteration": self._iteration,
            "events": [list(each) for each in self.events],
            "below": dict(self._below),
            "last": dict(self._last),
            "total": dict(self._total),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        self._iteration = int(state["iteration"])
        self.events = [StageWarning(*each) for each in state["events"]]
        self._below, self._last, self._total = dict(state["below"]), dict(state["last"]), dict(state["total"])


def describe_early_exhaustion(schedule: Schedule, within: int) -> Iterator[str]:
    """What can be told before the run: `ne is exhausted at iteration 35 of 60`."""
    for name, last in schedule.runs_out(within).items():
        if last:
            yield f"{name} is exhausted at iteration {last} of {within}"
        else:
            yield f"{name} never comes in {within} iterations"
