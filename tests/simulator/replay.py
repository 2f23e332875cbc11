"""One history as text: what was seen when, and which verdict followed."""

from __future__ import annotations

from dataclasses import dataclass, field

from muster.model.attempt_snapshot import ProgressMark
from muster.model.verdict import Verdict
from simulator.drawing import draw
from simulator.judges import REAL, Judge
from simulator.run import Run
from simulator.single import Play, Result, seeded
from simulator.truth import Moment

QUIET_S = 1800.0  # a line at least this often


@dataclass(slots=True)
class Recorder:
    """Keeps a line for each change of the verdict, and one now and then."""

    run: Run
    lines: list[str] = field(default_factory=list)
    _sort: object = None
    _at: float = -QUIET_S
    _cpu: float | None = None
    _io: float | None = None
    _t: float = 0.0

    def __call__(self, t: float, moment: Moment | None, verdict: Verdict) -> None:
        seen = self._seen(t, moment) if moment else "no process"
        if verdict.sort != self._sort or t - self._at >= QUIET_S:
            self._sort, self._at = verdict.sort, t
            truth = self._truth(t)
            kind = f"({verdict.kind})" if verdict.kind else ""
            self.lines.append(f"{clock(t)}  {truth:<8} {verdict.state}{kind} {verdict.confidence:<9} {seen}")
            self.lines.append(f"{'':22}{verdict.reason}")
        if moment:
            self._cpu, self._io, self._t = moment.vitals.cpu_s, moment.vitals.io_bytes, t

    def _truth(self, t: float) -> str:
        if self.run.ending and t >= self.run.ending.at:
            return "ended"
        return "works" if self.run.works(t) else "hangs"

    def _seen(self, t: float, moment: Moment) -> str:
        vitals, took = moment.vitals, max(t - self._t, 1e-9)
        parts = [_mark(mark) for mark in moment.marks]
        if vitals.cpu_s is not None and self._cpu is not None:
            parts.append(f"cpu {(vitals.cpu_s - self._cpu) / took * 100:.1f} %")
        if vitals.io_bytes is not None and self._io is not None:
            parts.append(f"io {(vitals.io_bytes - self._io) / took:.0f} B/s")
        for gpu in vitals.gpus[:1]:
            parts.append(f"gpu {gpu.lost or gpu.trouble or f'{gpu.utilisation:.0f} %'}")
        return ", ".join([*parts, f"state {vitals.states or moment.main_state}"])


def _mark(mark: ProgressMark) -> str:
    return f"{mark.signal} {mark.trouble or mark.reading}"


def clock(t: float) -> str:
    return f"{int(t // 3600):3}:{int(t // 60) % 60:02}:{t % 60:04.1f}"


def replay(
    seed: int, judge: Judge = REAL, shape: str | None = None, fault: str | None = None, poll_s: float | None = None
) -> tuple[str, Result]:
    case, rng = draw(seed, shape, fault, poll_s)
    run = case.weave(rng)
    recorder = Recorder(run)
    result = Play(case, run, judge, recorder).play(seeded(seed))
    head = [
        f"seed {seed}: {case.shape}, {case.fault} at {clock(case.at).strip()}, "
        f"{case.length / 3600:.1f} h, a poll every {case.poll_s:g} s",
        *(
            f"  signal {s.name} ({s.kind}) every {s.period:.0f} s{', declared' if s.every_s else ''}"
            for s in case.style.signals
        ),
        *(f"  stands still from {clock(f.start)} to {_end(f.end)}: {f.kind}" for f in run.freezes),
        *(f"  can't be read from {clock(v.start)} to {_end(v.end)}: {v.what}" for v in run.veils),
        *(f"  nobody looks from {clock(h.start)} to {_end(h.end)}: {h.kind}" for h in case.holes),
    ]
    if case.ending:
        head.append(f"  ends at {clock(case.ending.at)}: {case.expected} {case.ending.cause}")
    tail = [f"WRONG {clock(w.t).strip()} {w.kind}: {w.text}" for w in result.wrongs]
    tail += [f"presumed stalled at {clock(t).strip()} although it worked" for t in result.presumed]
    if result.cause:
        tail.append(f"cause {result.causes[1] or 'none'}: {result.cause}")
    return "\n".join([*head, *recorder.lines, *(tail or ["nothing is wrong"])]), result


def _end(t: float) -> str:
    return clock(t) if t < 1e9 else "the end"
