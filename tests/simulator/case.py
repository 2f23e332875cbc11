"""One history to simulate: a run, what befalls it and its watcher, and how often it is looked at."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from random import Random
from typing import Literal

from muster.engine.judge.signal_history import Thresholds
from simulator.run import Freeze, Host, Run, Veil
from simulator.timeline import Style, weave
from simulator.truth import Ending

HoleKind = Literal["starved", "suspended", "restart", "lost"]


@dataclass(frozen=True, slots=True)
class Hole:
    """Nobody looks from `start` to `end`: a busy or sleeping machine, or a controller that is away."""

    start: float
    end: float
    kind: HoleKind


@dataclass(slots=True)
class Leaving:
    """What life shows around the end of a run."""

    shim_dies: float = math.inf
    exit_delay: float = 0.05  # from the death to exit.json
    proof_delay: float = 0.1  # and from there until the proof is read
    woken: float | None = 0.05  # how soon the controller hears of it; None: at the next poll
    zombie: bool = False  # seen before its shim has reaped it
    orphans_s: float = 0.0  # processes of it live on for so long
    orphans_told: bool = True  # the shim wrote their pids down
    host: Literal["same", "rebooted", "restarted"] = "same"
    stop_reason: str | None = None
    never_executed: bool = False
    exec_error: str | None = None
    proof_fails: bool = False


@dataclass(slots=True)
class Case:
    seed: int
    shape: str
    fault: str
    length: float
    floors: Thresholds
    style: Style
    at: float  # when the fault strikes
    proof_declared: bool
    began: float  # boot time of the start
    freezes: list[Freeze] = field(default_factory=list)
    veils: list[Veil] = field(default_factory=list)
    holes: list[Hole] = field(default_factory=list)
    ending: Ending | None = None
    leaving: Leaving = field(default_factory=Leaving)
    host: Host = field(default_factory=Host)
    expected: str = "DEAD"  # what a run that has ended is

    @property
    def poll_s(self) -> float:
        return self.floors.poll_s

    def hole(self, start: float, length: float, kind: HoleKind) -> None:
        self.holes.append(Hole(start, start + length, kind))
        if kind == "suspended":
            self.freezes.append(Freeze(start, start + length, "suspended"))

    def weave(self, rng: Random) -> Run:
        """Only as far as it is looked at: a run that hangs or dies needs no later steps."""
        until = self.length if self.ending is None else min(self.length, self.ending.at)
        freezes = _apart(self.freezes, 3 * self.poll_s)
        if freezes and freezes[-1].end == math.inf:
            until = min(until, freezes[-1].start)
        woven = weave(self.style, until + 1.0, self.poll_s / 2, rng)
        self.holes.sort(key=lambda hole: hole.start)
        return Run(woven, self.style, freezes, self.veils, self.ending, self.host)


def _apart(freezes: list[Freeze], between: float) -> list[Freeze]:
    """One after the other: who stands still already can't be stopped again. A profiler looks once in a while."""
    found: list[Freeze] = []
    for freeze in sorted(freezes, key=lambda each: each.start):
        end = found[-1].end if found else -math.inf
        start = max(freeze.start, end)
        if start < freeze.end and not (freeze.kind == "glance" and start < end + between):
            found.append(replace(freeze, start=start))
    return found
