"""Made-up runs for whole campaigns: how long they take, what they show, whether they hang, what they die of."""

from __future__ import annotations

import random
from dataclasses import dataclass

from muster.model.attempt_snapshot import GpuUse, PostMortem, ProgressMark, TreeVitals
from muster.model.campaign import DeclaredProgress, Job
from simulator.truth import Ending, Moment, Truth

Orphan = tuple[float, bool, bool]  # (for how long, holds a GPU, keeps tree.lock)
Reaction = tuple[float, int | None, int | None]  # to SIGTERM: (after, code, signal)
HANGS = ("waiting", "spinning", "blocked")


@dataclass(frozen=True, slots=True)
class Shown:
    """A progress signal of a run: it advances every `period_s`, now and then with a longer pause."""

    progress: DeclaredProgress
    period_s: float
    pause_every: int  # advances
    pause_s: float

    def count(self, worked: float) -> float | None:
        if worked < self.period_s:
            return None
        block = self.pause_every * self.period_s + self.pause_s
        whole, rest = divmod(worked, block)
        return whole * self.pause_every + min(self.pause_every, rest // self.period_s)


@dataclass(slots=True)
class MadeRun:
    """One execution. `hangs_at` is when it stops working for ever, if it does."""

    ending: Ending | None
    shown: tuple[Shown, ...]
    first_s: float  # until it begins to work towards its first step
    cores: float
    gpus: tuple[int, ...] = ()
    hangs_at: float | None = None
    hang: str = "waiting"
    saved: bool | None = None

    def look(self, t: float) -> Moment:
        worked = max(0.0, min(t, self.hangs_at if self.hangs_at is not None else t) - self.first_s)
        return Moment(tuple(_mark(shown, worked) for shown in self.shown), self._vitals(t), self._letter(t))

    def _letter(self, t: float) -> str:
        if self.works(t):
            return "R"
        return {"waiting": "S", "spinning": "R", "blocked": "D"}[self.hang]

    def _vitals(self, t: float) -> TreeVitals:
        before = min(t, self.hangs_at) if self.hangs_at is not None else t
        busy = t if self.hang == "spinning" else before
        working = self.works(t) or self.hang == "spinning"
        gpus = tuple(GpuUse(gpu, 92.0 if working else 0.0, 240.0 if working else 60.0, 8 << 30) for gpu in self.gpus)
        return TreeVitals(
            states=self._letter(t) + "S",
            cpu_s=self.cores * busy,
            io_bytes=4096 * before,
            out_bytes=int(80 * before),
            rss_bytes=2 << 30,
            opens_gpu=bool(gpus),
            gpus=gpus,
            disk_free=1 << 40,
            oom_kills=0,
        )

    def works(self, t: float) -> bool:
        return self.hangs_at is None or t < self.hangs_at

    def stalled_since(self, t: float) -> float | None:
        return None if self.works(t) else self.hangs_at


@dataclass(frozen=True, slots=True)
class MadePlan:
    """An execution and what goes with it."""

    truth: Truth
    exec_error: str | None = None
    orphans: tuple[Orphan, ...] = ()
    on_term: Reaction | None = (0.1, None, 15)
    proof_s: float = 0.0
    saved: bool | None = None


def _mark(shown: Shown, worked: float) -> ProgressMark:
    count = shown.count(worked)
    made = shown.progress
    return ProgressMark(
        made.path, made.kind, count, "nothing yet" if count is None else f"step {count:g}", made.every_s
    )


@dataclass(frozen=True, slots=True)
class Habit:
    """What the runs of one job have in common."""

    mean_s: float
    fails: float  # how often a first attempt dies of itself
    hangs: float
    cores: float


def make_plan(rng: random.Random, job: Job, habit: Habit, n: int, gpus: tuple[int, ...]) -> MadePlan:
    lasts = habit.mean_s * rng.uniform(0.6, 1.5)
    shown = tuple(_shown(rng, progress, lasts) for progress in job.progress)
    first = min(lasts * 0.2, rng.expovariate(1 / 40))
    luck = rng.random() * (1 + 0.6 * (n - 1))  # later attempts go better
    hangs_at: float | None = None
    ending: Ending | None = Ending(lasts, 0)
    if luck < habit.hangs:
        hangs_at, ending = lasts * rng.uniform(0.1, 0.9), None
    elif luck < habit.hangs + habit.fails:
        ending = _death(rng, lasts * rng.uniform(0.02, 1.0), bool(gpus))
    checkpoints = any(progress.kind == "checkpoint" for progress in job.progress)
    saved = rng.random() < 0.6 if checkpoints else None
    run = MadeRun(ending, shown, first, habit.cores, gpus, hangs_at, rng.choice(HANGS), saved)
    return MadePlan(run, _exec_error(rng), _orphans(rng, bool(gpus)), _on_term(rng), _proof_s(rng), saved)


def _shown(rng: random.Random, progress: DeclaredProgress, lasts: float) -> Shown:
    period = progress.every_s or rng.choice((3.0, 10.0, 30.0, 60.0))
    if progress.kind == "checkpoint":
        period = max(60.0, lasts / rng.randint(3, 12))
    return Shown(progress, period, rng.randint(20, 60), rng.choice((0.0, 2.0, 5.0)) * period)


def _traceback(line: str) -> str:
    return f'Traceback (most recent call last):\n  File "train.py", line 7, in <module>\n    main()\n{line}\n'


PREEMPTED = "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO PREEMPTION ***\n"
CUDA_OOM = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
NO_SPACE = "OSError: [Errno 28] No space left on device: 'out/log'"
Death = tuple[str, int | None, int | None, PostMortem, bool]  # cause, code, signal, what is left, proof holds
DEATHS: tuple[Death, ...] = (
    ("exit_code", 3, None, PostMortem(), False),
    ("exit_code", 137, None, PostMortem(), False),
    ("exit_code", 1, None, PostMortem(), True),  # in its teardown: all artifacts are there
    ("signal", None, 9, PostMortem(), False),
    ("signal", None, 11, PostMortem(), False),
    ("hangup", None, 1, PostMortem(), False),
    ("oom_kill", None, 9, PostMortem(oom_before=0, oom_after=1), False),
    ("exception", 1, None, PostMortem(err=_traceback("ValueError: bad value")), False),
    ("cuda_oom", 1, None, PostMortem(err=_traceback(CUDA_OOM)), False),
    ("disk_full", 1, None, PostMortem(err=_traceback(NO_SPACE), disk_free=0), False),
    ("preempted", None, 15, PostMortem(err=PREEMPTED), False),
    ("gpu_lost", 1, None, PostMortem(gpu_lost="NVML: GPU is lost"), False),
    ("early_exit", 0, None, PostMortem(), False),
)


def _death(rng: random.Random, at: float, gpu: bool) -> Ending:
    cause, code, signal, after, holds = rng.choice(DEATHS)
    if cause == "gpu_lost" and not gpu:
        cause, after = "exit_code", PostMortem()
    return Ending(at, code, signal, after, cause, holds)


def _exec_error(rng: random.Random) -> str | None:
    return "No such file or directory: 'python9'" if rng.random() < 0.01 else None


def _orphans(rng: random.Random, gpu: bool) -> tuple[Orphan, ...]:
    if rng.random() > 0.1:
        return ()
    return tuple(
        (rng.choice((0.5, 5.0, 40.0, 200.0)) * rng.uniform(0.5, 1.5), gpu and rng.random() < 0.5, rng.random() < 0.8)
        for _ in range(rng.randint(1, 2))
    )


def _on_term(rng: random.Random) -> Reaction | None:
    draw = rng.random()
    if draw < 0.2:
        return None
    after = rng.uniform(0.01, 3.0)
    return (after, None, 15) if draw < 0.7 else (after, rng.choice((0, 1, 143)), None)


def _proof_s(rng: random.Random) -> float:
    draw = rng.random()
    return 0.0 if draw < 0.8 else rng.uniform(0.1, 2.0) if draw < 0.97 else rng.uniform(5.0, 40.0)
