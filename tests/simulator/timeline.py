"""A training run drawn as a timeline: what its processes do when, and when each of its signals advances.

Times are the run's own: while it is stopped or suspended they stand still.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from muster.model.attempt_snapshot import ProgressMark
from muster.model.campaign import ProgressKind

WOBBLE = 2.5  # seconds by which work runs ahead of its mean rate and behind it
WAVE = 0.3


@dataclass(frozen=True, slots=True)
class Doing:
    """What the whole process tree does for a while."""

    cpu: float = 0.0  # cores
    io: float = 0.0  # bytes a second
    gpu: float = 0.0  # percent
    letters: tuple[str, ...] = ("S",)  # states of its processes, one of these at each look

    @property
    def idle(self) -> bool:
        return self.cpu < 0.001 and not self.io and not self.gpu and "D" not in "".join(self.letters)


@dataclass(frozen=True, slots=True)
class Pause:
    """The steps rest: an evaluation, a checkpoint, a hiccup."""

    at: float  # in seconds of work
    length: float
    doing: Doing
    marks: str = ""  # the signal that advances when it ends
    back: float = 0.0  # the step counter falls by this much: it resumed from a checkpoint


@dataclass(frozen=True, slots=True)
class Pace:
    """From here on the steps take `factor` times as long."""

    at: float
    factor: float
    stage: str = ""  # as the run says it


@dataclass(frozen=True, slots=True)
class Signal:
    name: str
    kind: ProgressKind
    period: float = math.inf  # between advances; inf: only pauses move it
    first: float | None = None  # seconds of work until the first; None: one period
    burst: int = 1  # by how much it rises at once
    every_s: float | None = None
    clock: bool = False  # its period is one of a clock, which goes on in pauses
    began_at: float | None = None  # what an earlier attempt left behind
    row_bytes: int = 200


@dataclass(slots=True)
class Style:
    """A run as its shape draws it."""

    signals: list[Signal] = field(default_factory=list)
    start: list[tuple[float, Doing]] = field(default_factory=list)  # before the first step
    work: Doing = Doing(1.0, 1e4)
    pauses: list[Pause] = field(default_factory=list)
    paces: list[Pace] = field(default_factory=list)
    heart_bytes: int = 0  # a side thread writes this every 15 s
    processes: int = 1
    respawn_s: float = math.inf  # workers end and others begin: what they used is no longer counted
    gpus: int = 0
    shared_gpu: bool = False
    clocks: tuple[tuple[str, float], ...] = ()  # periods in its config
    prior: dict[str, float] = field(default_factory=dict)  # the longest gaps of its siblings
    prior_first_s: float | None = None


@dataclass(slots=True)
class Track:
    """When one signal advances, and what it shows then."""

    signal: Signal
    times: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    stages: list[tuple[float, str]] = field(default_factory=list)

    def mark(self, index: int) -> ProgressMark:
        """What a look shows after the advance number `index`; -1: before the first."""
        signal = self.signal
        count = self.values[index] if index >= 0 else signal.began_at
        if count is None:
            return ProgressMark(signal.name, signal.kind, None, "nothing yet", signal.every_s)
        unit = "step" if signal.kind not in ("files", "checkpoint") else "number"
        stage = self.stage_at(self.times[index]) if index >= 0 and self.stages else ""
        return ProgressMark(signal.name, signal.kind, count, f"{unit} {count:g}", signal.every_s, stage)

    def stage_at(self, own: float) -> str:
        return next((label for at, label in reversed(self.stages) if at <= own), "")


@dataclass(frozen=True, slots=True)
class Stretch:
    """Seconds of undisturbed work, in the run's own time."""

    start: float
    end: float
    pace: Pace
    after: Pause | None  # that it follows


Row = tuple[float, float, float, float, float, float, tuple[str, ...]]


@dataclass(slots=True)
class Woven:
    """Counters as straight lines: (start, cpu until then, cpu rate, io until then, io rate, gpu, letters)."""

    starts: list[float]
    rows: list[Row]
    tracks: list[Track]
    stretches: list[Stretch]

    def row_at(self, own: float) -> Row:
        return self.rows[bisect_right(self.starts, own) - 1]


def weave(style: Style, until: float, grain: float, rng: Random) -> Woven:
    """`grain`: steps that follow each other faster than this are told together, as a look would see them."""
    doings: list[tuple[float, Doing]] = []
    own = 0.0
    for length, doing in style.start:
        doings.append((own, doing))
        own += length
    stretches = _stretches(style, own, until, doings, rng)
    tracks = [_track(signal, style, stretches, grain, rng) for signal in style.signals]
    rows = list(_rows(doings))
    return Woven([row[0] for row in rows], rows, tracks, stretches)


def _stretches(style: Style, own: float, until: float, doings: list[tuple[float, Doing]], rng: Random) -> list[Stretch]:
    found: list[Stretch] = []
    paces = [Pace(0.0, 1.0), *style.paces]
    cuts: list[tuple[float, Pause | Pace]] = sorted(
        [*((pause.at, pause) for pause in style.pauses), *((pace.at, pace) for pace in style.paces)],
        key=lambda cut: cut[0],
    )
    pace, work, after = paces[0], 0.0, None
    for at, cut in cuts:
        end = own + max(0.0, at - work)
        found.append(Stretch(own, end, pace, after))
        _noisy_work(style.work, own, end, doings, rng)
        own, work, after = end, max(work, at), None
        if isinstance(cut, Pace):
            pace = cut
        else:
            doings.append((own, cut.doing))
            own, after = own + cut.length, cut
        if own > until:
            return found
    found.append(Stretch(own, max(until, own), pace, after))
    _noisy_work(style.work, own, until, doings, rng)
    return found


def _noisy_work(work: Doing, start: float, end: float, doings: list[tuple[float, Doing]], rng: Random) -> None:
    """A run does not do the same every minute."""
    own = start
    while own < end:
        more = math.exp(rng.gauss(0.0, 0.25))
        doings.append((own, Doing(work.cpu * more, work.io * more, work.gpu, work.letters)))
        own += 60 + 500 * rng.random()


def _rows(doings: list[tuple[float, Doing]]) -> Iterator[Row]:
    cpu = io = last = 0.0
    before = Doing()
    for start, doing in doings:
        spent = run_of(start - last)
        cpu, io = cpu + before.cpu * spent, io + before.io * spent
        yield (start, cpu, doing.cpu, io, doing.io, doing.gpu, doing.letters)
        last, before = start, doing


def run_of(seconds: float) -> float:
    """Work is not even: this much of it is done after so many seconds."""
    return seconds + WOBBLE * math.sin(WAVE * seconds)


def _track(signal: Signal, style: Style, stretches: list[Stretch], grain: float, rng: Random) -> Track:
    track = Track(signal)
    if any(pace.stage for pace in style.paces):
        track.stages = [(stretch.start, stretch.pace.stage) for stretch in stretches]
    value = signal.began_at or 0.0
    rand, times, values = rng.random, track.times, track.values
    wait = signal.period if signal.first is None else signal.first
    own = stretches[0].start + wait if stretches else math.inf
    for number, stretch in enumerate(stretches):
        if stretch.after is not None:
            if stretch.after.back and signal.kind not in ("files", "checkpoint"):
                value = max(0.0, value - stretch.after.back)
            if stretch.after.marks == signal.name:
                value += 1
                times.append(stretch.start)
                values.append(value)
        if number:
            own = max(own, stretch.start) if signal.clock else own + (stretch.start - stretches[number - 1].end)
        period = signal.period * stretch.pace.factor
        together = max(1, int(grain / period))
        step, rise = period * together, signal.burst * together
        while own < stretch.end:
            value += rise
            times.append(own)
            values.append(value)
            own += step * (0.85 + 0.3 * rand())
    return track
