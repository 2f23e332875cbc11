"""Shapes of healthy runs, as they are met in the field. Each draws a `Style` from a seeded source of chance.

A healthy run may be silent for long while it is busy. An idle one is healthy only for less than 100 s, or for less than
four of the longest gaps that it has shown before: beyond that an idle tree is a stall, by definition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from random import Random

from simulator.timeline import Doing, Pace, Pause, Signal, Style

MINUTE = 60.0
STEPS, CHUNKS, SAVED, SCORES, STDOUT = "metrics.jsonl", "replay/*.npz", "checkpoints/*.ckpt", "eval.csv", "stdout"


def log_uniform(rng: Random, low: float, high: float) -> float:
    return low * math.exp(rng.random() * math.log(high / low))


def _steps(rng: Random, low: float = 1.0, high: float = 120.0) -> Signal:
    return Signal(STEPS, "jsonl", log_uniform(rng, low, high), row_bytes=rng.randrange(80, 2000))


def _letters(rng: Random, processes: int = 1) -> tuple[str, ...]:
    """What looks show of a busy tree: mostly asleep or running, at times in the kernel."""
    return tuple("".join(rng.choice("SSSRRD" if pid else "SSRR") for pid in range(processes)) for _ in range(7))


def _cpu_work(rng: Random, processes: int = 1) -> Doing:
    cores = log_uniform(rng, 0.3, 4.0) * max(1, processes // 2)
    reads = 0.0 if rng.random() < 0.4 else log_uniform(rng, 1e3, 1e8)
    return Doing(cores, reads, letters=_letters(rng, processes))


def _base(rng: Random, processes: int = 1) -> Style:
    """Imports and the first batch, then steps."""
    work = _cpu_work(rng, processes)
    start = [(rng.uniform(3, 60), Doing(0.8, log_uniform(rng, 1e4, 1e7), letters=("R" + "S" * (processes - 1),)))]
    heart = rng.choice((0, 0, 0, 0, 350))
    return Style([_steps(rng)], start, work, heart_bytes=heart, processes=processes)


def _times(rng: Random, mean: float, length: float, first: float = 0.0) -> Iterator[float]:
    """Moments of work, about `mean` apart."""
    at = first + mean * rng.uniform(0.5, 1.5)
    while at < length:
        yield at
        at += mean * rng.uniform(0.5, 1.5)


def _late_first(style: Style, seconds: float) -> float:
    """When a pause may come first: after the steps have shown their cadence."""
    return max(seconds, 9.5 * min(signal.period for signal in style.signals))


def _busy(rng: Random, style: Style) -> Doing:
    """As an evaluation is: about as busy as training, in its own way."""
    work = style.work
    return replace(
        work, cpu=work.cpu * rng.uniform(0.4, 1.3), io=work.io * rng.uniform(0, 1), gpu=work.gpu * rng.uniform(0.3, 1.2)
    )


# -- what is written


def plain_steps(rng: Random, _: float) -> Style:
    return _base(rng)


def log_clock(rng: Random, _: float) -> Style:
    """The reference story: `log_every` counts seconds; replay chunks tell more."""
    style, period = _base(rng), rng.choice((300.0, 600.0, 1000.0, 1000.0, 2000.0))
    log = Signal(STEPS, "jsonl", period, first=rng.uniform(1, 30), clock=True)
    chunks = Signal(CHUNKS, "files", rng.uniform(40, 90), row_bytes=200_000)
    style.signals, style.clocks = [log, chunks], (("log_every", period), ("save_every", 10_000.0))
    return style


def stdout_only(rng: Random, _: float) -> Style:
    style = _base(rng)
    style.signals = [Signal(STDOUT, "stdout", log_uniform(rng, 1, 300), row_bytes=90)]
    return style


def no_progress(rng: Random, _: float) -> Style:
    style = _base(rng)
    style.signals = []
    return style


def chunk_deletion(rng: Random, _: float) -> Style:
    """Old chunks are deleted: there are ever as many, and new names."""
    style = _base(rng)
    style.signals = [Signal(CHUNKS, "files", log_uniform(rng, 10, 200), row_bytes=100_000)]
    return style


def bursts(rng: Random, length: float) -> Style:
    """Many steps at once, then silence; the tree may rest in between, while it waits for somebody else's numbers."""
    style, period = _base(rng), log_uniform(rng, 60, 900)
    style.signals = [Signal(STEPS, "jsonl", period, burst=rng.randrange(10, 5000))]
    if rng.random() < 0.4:
        style.work = Doing(letters=("S",))
        short = rng.uniform(2, 20)
        moments = [period * (0.2 + number) for number in range(int(length / period) + 1)]
        style.pauses = [Pause(at, short, Doing(1.0, 1e5, letters=("R",))) for at in moments]
    return style


def rotation(rng: Random, length: float) -> Style:
    """The log is replaced by a new one that counts from the start."""
    style = _base(rng)
    for at in _times(rng, length / 4, length):
        style.pauses.append(Pause(at, rng.uniform(0, 3), style.work, back=1e9))
    return style


def counter_restart(rng: Random, length: float) -> Style:
    """It catches an error, reads its last checkpoint and counts from there."""
    style = _base(rng)
    for at in _times(rng, length / 4, length):
        reading = Doing(0.7, log_uniform(rng, 1e6, 1e8), letters=("D", "R", "S"))
        style.pauses.append(Pause(at, rng.uniform(5, 240), reading, back=rng.randrange(1, 5000)))
    return style


def resumed(rng: Random, _: float) -> Style:
    """Its output folder holds what an earlier attempt wrote."""
    style = _base(rng)
    style.start.append((log_uniform(rng, 10, 600), Doing(0.6, 2e7, letters=("D", "R"))))
    style.signals = [replace(signal, began_at=float(rng.randrange(100, 100_000))) for signal in style.signals]
    return style


def declared_every(rng: Random, _: float) -> Style:
    """`every:` is declared, and kept."""
    style = _base(rng)
    style.signals = [replace(signal, every_s=signal.period * rng.uniform(1.0, 1.3)) for signal in style.signals]
    return style


# -- when it rests


def evaluations(rng: Random, length: float) -> Style:
    style = _base(rng)
    if rng.random() < 0.5:
        style.work, style.gpus = replace(style.work, gpu=rng.uniform(20, 100)), 1
    takes = math.exp(rng.triangular(math.log(30), math.log(40 * MINUTE), math.log(5 * MINUTE)))
    first = _late_first(style, 2 * MINUTE)
    doing, name = _busy(rng, style), ""
    if rng.random() < 0.4:
        style.signals.append(Signal(SCORES, "csv"))
        name = SCORES
    for at in _times(rng, max(first, log_uniform(rng, 10 * MINUTE, 90 * MINUTE)), length, first):
        style.pauses.append(Pause(at, takes * rng.uniform(0.9, 1.2), doing, name))
    return style


def checkpoints(rng: Random, length: float) -> Style:
    style, takes = _base(rng), log_uniform(rng, 5, 5 * MINUTE)
    saving = Doing(0.5, log_uniform(rng, 1e7, 1e9), letters=("D", "R", "D"))
    declared = rng.random() < 0.6
    if declared:
        style.signals.append(Signal(SAVED, "checkpoint"))
    for at in _times(rng, log_uniform(rng, 2 * MINUTE, 60 * MINUTE), length):
        style.pauses.append(Pause(at, takes * rng.uniform(0.7, 1.5), saving, SAVED if declared else ""))
    return style


def hiccups(rng: Random, length: float) -> Style:
    """Data come late: short pauses, and now and then a long one. The disk is read meanwhile, or waited for."""
    style = _base(rng)
    style.work = replace(style.work, io=log_uniform(rng, 1e5, 1e8))
    for at in _times(rng, log_uniform(rng, 2 * MINUTE, 20 * MINUTE), length):
        long = 3 * rng.paretovariate(1.3)
        reads = Doing(rng.uniform(0.005, 0.3), style.work.io * rng.uniform(0.15, 1.5), letters=("D", "S", "D"))
        waits = Doing(letters=rng.choice((("D",), ("S",))))
        pause = Pause(at, min(long, 15 * MINUTE), reads) if rng.random() < 0.6 else Pause(at, min(long, 95.0), waits)
        style.pauses.append(pause)
    return style


def remote_waits(rng: Random, length: float) -> Style:
    """It waits, wholly idle, for a scorer elsewhere; each wait is less than four of the longest gap before it."""
    style = _base(rng)
    first = _late_first(style, 3 * MINUTE)
    period = style.signals[0].period
    longest, last = 25.0, first
    for at in _times(rng, max(5 * MINUTE, 20 * period), length, first):
        longest *= 0.5 ** ((at - last) / max(period, 5.0) / 1024)  # what was long ago fades
        takes = min(rng.uniform(0.5, 3.6) * longest, 25 * MINUTE)
        longest, last = max(longest, takes, 25.0), at
        style.pauses.append(Pause(at, takes, Doing(letters=("S",))))
    return style


def recompiles(rng: Random, length: float) -> Style:
    """A new shape of input, and XLA compiles again."""
    style = _base(rng)
    for at in _times(rng, length / rng.randrange(2, 7), length, _late_first(style, MINUTE)):
        compiling = Doing(log_uniform(rng, 1, 8), 1e4, letters=("R", "S"))
        style.pauses.append(Pause(at, log_uniform(rng, 20, 20 * MINUTE), compiling))
    return style


def curriculum(rng: Random, length: float) -> Style:
    """Its stages differ tenfold in cadence; the run may say which one it is in."""
    style, told = _base(rng), rng.random() < 0.5
    style.signals = [_steps(rng, 5, 90)]
    slow = False
    for number, at in enumerate(_times(rng, length / rng.randrange(2, 5), length)):
        slow = not slow
        style.paces.append(Pace(at, rng.uniform(6, 10) if slow else 1.0, f"stage{number + 1}" if told else ""))
    return style


# -- how it starts


def compile_first(rng: Random, _: float) -> Style:
    style = _base(rng)
    compiling = Doing(log_uniform(rng, 0.9, 8), log_uniform(rng, 1, 1e5), letters=("R", "S", "R"))
    style.start.append((log_uniform(rng, MINUTE, 50 * MINUTE), compiling))
    return style


def slow_start(rng: Random, _: float) -> Style:
    """It downloads: I/O and next to no CPU, and at times the network rests."""
    style, left = _base(rng), log_uniform(rng, MINUTE, 45 * MINUTE)
    while left > 0:
        loading = Doing(rng.uniform(0.005, 0.05), log_uniform(rng, 1e4, 5e7), letters=("S", "D"))
        style.start += [(log_uniform(rng, 20, 600), loading), (rng.uniform(0, 90), Doing(letters=("S",)))]
        left -= sum(seconds for seconds, _ in style.start[-2:])
    return style


# -- what it runs on


def low_gpu(rng: Random, _: float) -> Style:
    """Small reinforcement learning: 9 % of a GPU, a tenth of a core."""
    style = _base(rng)
    style.gpus, style.shared_gpu = 1, rng.random() < 0.25
    style.work = Doing(log_uniform(rng, 0.03, 1.0), rng.choice((0.0, 1e3)), rng.uniform(5, 13), ("S", "R", "S"))
    return style


def gpu_loop(rng: Random, length: float) -> Style:
    """One compiled loop: the process sleeps while its GPU works; evaluations are such a loop, too."""
    style = _base(rng)
    style.gpus = rng.choice((1, 1, 4))
    style.heart_bytes = 0
    style.work = Doing(rng.choice((0.0, 0.0005, 0.02)), 0.0, rng.uniform(30, 100), ("S",))
    style.signals = [_steps(rng, 10, 400)]
    takes = log_uniform(rng, MINUTE, 25 * MINUTE)
    first = _late_first(style, 5 * MINUTE)
    for at in _times(rng, max(first, log_uniform(rng, 20 * MINUTE, 90 * MINUTE)), length, first):
        style.pauses.append(Pause(at, takes * rng.uniform(0.9, 1.2), replace(style.work, gpu=style.work.gpu * 0.8)))
    return style


def workers(rng: Random, _: float) -> Style:
    """A launcher that sleeps, and workers below it, which may be replaced after each epoch."""
    style = _base(rng, rng.randrange(3, 18))
    style.respawn_s = rng.choice((math.inf, log_uniform(rng, 100, 3000)))
    style.work = replace(style.work, letters=tuple("S" + letters[1:] for letters in style.work.letters))
    if rng.random() < 0.5:
        style.gpus, style.work = rng.choice((1, 2, 8)), replace(style.work, gpu=rng.uniform(40, 100))
    return style


def side_heartbeat(rng: Random, _: float) -> Style:
    """A side process writes statistics every 15 s, whatever the training does."""
    style = _base(rng)
    style.heart_bytes = rng.randrange(100, 3000)
    return style


def siblings(rng: Random, length: float) -> Style:
    """Cells with the same code have shown their cadence; this one may be a little slower."""
    style = rng.choice((plain_steps, log_clock, checkpoints, compile_first))(rng, length)
    saves = [pause.at for pause in style.pauses]
    for signal in style.signals:
        gap = signal.period if signal.period < math.inf else max((b - a for a, b in pairwise(saves)), default=0.0)
        if gap:
            style.prior[signal.name] = gap * rng.uniform(0.9, 1.4)
    style.prior_first_s = sum(seconds for seconds, _ in style.start) * rng.uniform(0.7, 1.4)
    return style


Shape = Callable[[Random, float], Style]

SHAPES: dict[str, Shape] = {
    shape.__name__: shape
    for shape in (
        plain_steps,
        log_clock,
        stdout_only,
        no_progress,
        chunk_deletion,
        bursts,
        rotation,
        counter_restart,
        resumed,
        declared_every,
        evaluations,
        checkpoints,
        hiccups,
        remote_waits,
        recompiles,
        curriculum,
        compile_first,
        slow_start,
        low_gpu,
        gpu_loop,
        workers,
        side_heartbeat,
        siblings,
    )
}
