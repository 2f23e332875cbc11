"""A simulated run: a timeline, where it stands still, what of it can't be read; the truth, and what probes show."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from typing import Literal

from muster.model.attempt_snapshot import GpuUse, ProgressMark, TreeVitals
from simulator.timeline import WAVE, WOBBLE, Doing, Style, Track, Woven
from simulator.truth import Ending, Moment

BEAT_S = 15.0
BEAT_CPU_S = 0.02
OTHERS_GPU = 60.0  # what other runs on a shared GPU keep it busy with
_NOTHING = Doing()


@dataclass(frozen=True, slots=True)
class Freeze:
    """From `start` to `end` the run's own time stands still."""

    start: float
    end: float
    kind: Literal["stopped", "idle", "busy", "suspended", "glance"]
    doing: Doing = _NOTHING
    heart: bool = False  # a side thread goes on

    @property
    def hangs(self) -> bool:
        """Only somebody's help lets it go on. A suspend or a profiler's glance ends by itself."""
        return self.kind in ("stopped", "idle", "busy")


@dataclass(frozen=True, slots=True)
class Veil:
    """What can't be read for a while."""

    start: float
    end: float
    what: Literal["marks", "torn", "vitals", "io", "gpus", "lost", "all"]
    why: str


@dataclass(slots=True)
class Host:
    """What the machine shows besides."""

    oom_kills: int | None = 0
    oom_rises: float = math.inf  # a child was killed then
    disk_free: int = 1 << 40
    non_finite: float = math.inf  # from then on the newest row holds a NaN


_IDLE_GPU = {count: tuple(GpuUse(at, 0.0, 121.0, 3 << 30) for at in range(count)) for count in (1, 2, 4, 8)}


@dataclass(slots=True)
class Run:
    """Implements the protocol `Truth`."""

    woven: Woven
    style: Style
    freezes: list[Freeze] = field(default_factory=list)
    veils: list[Veil] = field(default_factory=list)
    ending: Ending | None = None
    host: Host = field(default_factory=Host)
    _at: list[int] = field(init=False)
    _marks: tuple[ProgressMark, ...] = field(init=False)
    _hung: tuple[Freeze, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._at = [-1] * len(self.woven.tracks)
        self._marks = tuple(track.mark(-1) for track in self.woven.tracks)
        self.freezes.sort(key=lambda freeze: freeze.start)
        self._hung = tuple(freeze for freeze in self.freezes if freeze.hangs)

    # -- the truth

    def works(self, t: float) -> bool:
        return self.stalled_since(t) is None and (self.ending is None or t < self.ending.at)

    def stalled_since(self, t: float) -> float | None:
        for freeze in self._hung:
            if freeze.start <= t < freeze.end:
                return freeze.start
        return None

    def own(self, t: float) -> float:
        """The run's own time."""
        return t - sum(min(t, freeze.end) - freeze.start for freeze in self.freezes if t > freeze.start)

    # -- what probes show

    def answers(self, t: float) -> bool:
        """Whether the probes bring anything at all."""
        return not any(veil.what == "all" and veil.start <= t < veil.end for veil in self.veils)

    def look(self, t: float) -> Moment:
        own, cpu, io, beats, doing = self._held(t) if self.freezes else (t, 0.0, 0.0, t, None)
        start, cpu_before, cpu_rate, io_before, io_rate, gpu, letters = self.woven.row_at(own)
        done = own - start
        done += WOBBLE * math.sin(WAVE * done)
        cpu += cpu_before + cpu_rate * done
        io += io_before + io_rate * done
        if doing is not None:
            gpu, letters = doing.gpu, doing.letters
        if self.style.respawn_s < math.inf:
            cpu -= 0.5 * self.woven.row_at(own - own % self.style.respawn_s)[1]
        if self.style.heart_bytes:
            beat = int(beats / BEAT_S)
            cpu += beat * BEAT_CPU_S
            io += beat * self.style.heart_bytes
        marks = self._look_at_marks(own)
        if self._at:
            io += self._at[0] * self.style.signals[0].row_bytes
        states = letters[int(t) % len(letters)]
        host = self.host
        oom = None if host.oom_kills is None else host.oom_kills + (t >= host.oom_rises)
        vitals = TreeVitals(
            states,
            int(cpu * 100) / 100,
            float(int(io)),
            0,
            1 << 30,
            self.style.gpus > 0,
            self._gpus(t, gpu),
            host.disk_free,
            oom,
        )
        if self.veils or t >= host.non_finite:
            marks, vitals = self._veiled(t, marks, vitals)
        return Moment(marks, vitals, states[0])

    def _held(self, t: float) -> tuple[float, float, float, float, Doing | None]:
        """The run's own time, what was used while it stood still, how long its side thread lived, what it does now."""
        lost = cpu = io = heart = 0.0
        doing = None
        for freeze in self.freezes:
            if t < freeze.start:
                break
            length = min(t, freeze.end) - freeze.start
            lost += length
            cpu += freeze.doing.cpu * length
            io += freeze.doing.io * length
            heart += length if freeze.heart else 0.0
            if t < freeze.end:
                doing = freeze.doing
        return t - lost, cpu, io, t - lost + heart, doing

    def _look_at_marks(self, own: float) -> tuple[ProgressMark, ...]:
        changed = False
        for number, track in enumerate(self.woven.tracks):
            index = bisect_right(track.times, own) - 1
            if index != self._at[number]:
                self._at[number], changed = index, True
        if changed:
            self._marks = tuple(track.mark(at) for track, at in zip(self.woven.tracks, self._at, strict=True))
        return self._marks

    def _gpus(self, t: float, level: float) -> tuple[GpuUse, ...]:
        count = self.style.gpus
        if not count:
            return ()
        if self.style.shared_gpu:
            level = max(level, OTHERS_GPU)
        if not level:
            return _IDLE_GPU[count]
        noise = (t * 0.6180339887) % 1.0
        shown = 0.0 if level < 20 and noise < 0.1 else min(100.0, float(int(level * (0.7 + 0.6 * noise))))
        power = 121.0 + 5 * shown
        return tuple(GpuUse(at, shown, power, 20 << 30, self.style.shared_gpu) for at in range(count))

    def _veiled(
        self, t: float, marks: tuple[ProgressMark, ...], vitals: TreeVitals
    ) -> tuple[tuple[ProgressMark, ...], TreeVitals]:
        if t >= self.host.non_finite:
            marks = tuple(replace(mark, non_finite="loss") if mark.is_log else mark for mark in marks)
        for veil in self.veils:
            if not veil.start <= t < veil.end:
                continue
            if veil.what in ("marks", "torn"):
                marks = tuple(self._stale(track, veil) for track in self.tracks)
            elif veil.what == "vitals":
                vitals = TreeVitals(gpus=vitals.gpus, trouble=(("process", veil.why),))
            elif veil.what == "io":
                vitals = replace(vitals, io_bytes=None, trouble=(("io", veil.why),))
            elif veil.what == "gpus":
                blind = tuple(GpuUse(gpu.device, shared=gpu.shared, trouble=veil.why) for gpu in vitals.gpus)
                vitals = replace(vitals, gpus=blind)
            elif veil.what == "lost":
                gone = tuple(GpuUse(gpu.device, shared=gpu.shared, lost=veil.why) for gpu in vitals.gpus)
                vitals = replace(vitals, gpus=gone)
        return marks, vitals

    def _stale(self, track: Track, veil: Veil) -> ProgressMark:
        """What a probe that does not answer said last; a torn line is passed over without a word."""
        index = bisect_right(track.times, self.own(veil.start)) - 1
        return replace(track.mark(index), trouble=veil.why)

    @property
    def tracks(self) -> list[Track]:
        return self.woven.tracks
