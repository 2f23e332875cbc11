"""Judges that break one rule each. The simulator must catch every one of them, or it proves nothing of the real one."""

from __future__ import annotations

import math
from dataclasses import replace

from muster.engine.judge.liveness import RunWatch
from muster.engine.judge.signal_history import SignalHistory, Thresholds
from muster.model.attempt import Attempt
from muster.model.attempt_snapshot import AttemptSnapshot, GpuUse, ProgressMark, ProofReading, RunReadings
from muster.model.campaign import Job
from muster.model.verdict import Cause, Verdict, VerdictState
from simulator.figures import Figures
from simulator.judges import REAL, Judge
from simulator.single import simulate

MANY = 1e9


class Broken(Judge):
    """`shape` and `fault`: where it shows soonest; None: as the seed draws them."""

    shape: str | None = None
    fault: str | None = None

    @property
    def name(self) -> str:  # type: ignore[override]
        return type(self).__name__


# -- what is folded in


class ActivityIsProgress(Broken):
    fault = "spin"

    def note(self, history: SignalHistory, seen: RunReadings, main_state: str, floors: Thresholds) -> None:
        busy = (seen.vitals.cpu_s or 0.0) + (seen.vitals.io_bytes or 0.0)
        mark = ProgressMark("activity", "files", busy, "busy")
        super().note(history, replace(seen, marks=(*seen.marks, mark)), main_state, floors)


class TroubleIsSilence(Broken):
    shape, fault = "plain_steps", "nfs_hang"

    def note(self, history: SignalHistory, seen: RunReadings, main_state: str, floors: Thresholds) -> None:
        marks = tuple(replace(mark, trouble="") for mark in seen.marks)
        super().note(history, replace(seen, marks=marks), main_state, floors)


class UnreadGpuIsIdle(Broken):
    shape, fault = "gpu_loop", "nvml_hang"

    def note(self, history: SignalHistory, seen: RunReadings, main_state: str, floors: Thresholds) -> None:
        gpus = tuple(GpuUse(gpu.device, 0.0) if gpu.trouble else gpu for gpu in seen.vitals.gpus)
        super().note(history, replace(seen, vitals=replace(seen.vitals, gpus=gpus)), main_state, floors)


class GpuDoesNotCount(Broken):
    shape = "gpu_loop"

    def note(self, history: SignalHistory, seen: RunReadings, main_state: str, floors: Thresholds) -> None:
        super().note(history, replace(seen, vitals=replace(seen.vitals, gpus=(), opens_gpu=False)), main_state, floors)


class StopsAreNotSeen(Broken):
    fault = "sigstop"

    def note(self, history: SignalHistory, seen: RunReadings, main_state: str, floors: Thresholds) -> None:
        super().note(history, seen, main_state, floors)
        history.stopped_polls = 0


class LostIsSilence(Broken):
    """Without its memory it counts the silence from the start of the run."""

    shape, fault = "bursts", "controller_lost"

    def begin(self, began: float, now: float) -> SignalHistory:
        history = super().begin(began, now)
        history.since = began
        return history


# -- floors and cadence


class NoConfirmation(Broken):
    fault = "profiler"

    def floors(self, floors: Thresholds) -> Thresholds:
        return replace(floors, confirm=1, confirm_stopped=1)


class LateLooksCount(Broken):
    shape, fault = "remote_waits", "suspend"

    def floors(self, floors: Thresholds) -> Thresholds:
        return replace(floors, late_s=MANY)


class NoPrior(Broken):
    shape = "bursts"

    def floors(self, floors: Thresholds) -> Thresholds:
        return replace(floors, stranger_s=120.0)


class NoGrace(Broken):
    shape = "compile_first"

    def floors(self, floors: Thresholds) -> Thresholds:
        return replace(floors, grace_s=300.0)


class BusyIsNoExcuse(Broken):
    """A long evaluation is a stall as soon as it is longer than five steps."""

    shape = "recompiles"

    def floors(self, floors: Thresholds) -> Thresholds:
        return replace(floors, active_s=0.0)


class MeanAndSigma(Broken):
    """A normal tail in place of the empirical one."""

    shape = "remote_waits"

    def floors(self, floors: Thresholds) -> Thresholds:
        return replace(floors, convict_factor=1.0)

    def confirm(self, watch: RunWatch, job: Job, now: float) -> None:
        for pulse in watch.history.pulses.values():
            gaps = pulse.cadence.gaps
            if gaps:
                mean = sum(gaps) / len(gaps)
                pulse.cadence.longest = mean + 3 * math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps))
        super().confirm(watch, job, now)


class LastGapOnly(Broken):
    shape = "remote_waits"

    def confirm(self, watch: RunWatch, job: Job, now: float) -> None:
        for pulse in watch.history.pulses.values():
            if pulse.cadence.gaps:
                pulse.cadence.longest = pulse.cadence.gaps[-1]
        super().confirm(watch, job, now)


# -- verdicts of living runs


class FiveMinutes(Broken):
    """Whoever is silent for five minutes is stalled."""

    shape = "recompiles"

    def verdict(self, attempt: Attempt, seen: AttemptSnapshot, job: Job, watch: RunWatch | None) -> Verdict:
        found = super().verdict(attempt, seen, job, watch)
        advanced = watch.history.advanced if watch else None
        if advanced is not None and seen.boot - advanced > 300:
            return Verdict(VerdictState.STALLED, "five minutes of silence", "waiting", "presumed")
        return found


class KernelWaitIsProven(Broken):
    shape = "hiccups"

    def verdict(self, attempt: Attempt, seen: AttemptSnapshot, job: Job, watch: RunWatch | None) -> Verdict:
        if watch and watch.history.blocked_polls >= 3:
            return Verdict(VerdictState.STALLED, "state D", "blocked", "proven")
        return super().verdict(attempt, seen, job, watch)


class BusyIsProven(Broken):
    fault = "gpu_spin"

    def verdict(self, attempt: Attempt, seen: AttemptSnapshot, job: Job, watch: RunWatch | None) -> Verdict:
        found = super().verdict(attempt, seen, job, watch)
        return replace(found, confidence="proven") if found.state is VerdictState.STALLED else found


class SilenceIsDeath(Broken):
    fault = "deadlock"

    def verdict(self, attempt: Attempt, seen: AttemptSnapshot, job: Job, watch: RunWatch | None) -> Verdict:
        found = super().verdict(attempt, seen, job, watch)
        return replace(found, state=VerdictState.DEAD, final=True) if found.state is VerdictState.STALLED else found


class UnreadIsRunning(Broken):
    fault = "nfs_hang_blind"

    def verdict(self, attempt: Attempt, seen: AttemptSnapshot, job: Job, watch: RunWatch | None) -> Verdict:
        found = super().verdict(attempt, seen, job, watch)
        return replace(found, state=VerdictState.RUNNING) if watch and found.state is VerdictState.UNKNOWN else found


# -- ends


class OrphansAreDead(Broken):
    fault = "orphans"

    def verdict(self, attempt: Attempt, seen: AttemptSnapshot, job: Job, watch: RunWatch | None) -> Verdict:
        exit_ = replace(seen.exit, orphans=()) if seen.exit else None
        alone = seen if watch else replace(seen, exit=exit_, tree_locked=False, strays=(), shim_locked=False)
        return super().verdict(attempt, alone, job, watch)


class GoneIsRunning(Broken):
    """As long as nobody has written the exit down it is shown as running."""

    fault = "pid_reuse"

    def verdict(self, attempt: Attempt, seen: AttemptSnapshot, job: Job, watch: RunWatch | None) -> Verdict:
        if seen.exit is None and seen.main != "alive" and seen.host == "same":
            return Verdict(VerdictState.RUNNING, "its exit is not known")
        return super().verdict(attempt, seen, job, watch)


class RebootIsForgotten(Broken):
    fault = "host_reboot"

    def verdict(self, attempt: Attempt, seen: AttemptSnapshot, job: Job, watch: RunWatch | None) -> Verdict:
        if seen.host != "same" and seen.exit is None:
            return Verdict(VerdictState.RUNNING, "a process has its pid")
        return super().verdict(attempt, seen, job, watch)


class RebootErasesExits(Broken):
    fault = "kill_9"

    def verdict(self, attempt: Attempt, seen: AttemptSnapshot, job: Job, watch: RunWatch | None) -> Verdict:
        lost = replace(seen, exit=None) if seen.host != "same" else seen
        return super().verdict(attempt, lost, job, watch)


class ExitZeroIsDone(Broken):
    fault = "early_exit"

    def verdict(self, attempt: Attempt, seen: AttemptSnapshot, job: Job, watch: RunWatch | None) -> Verdict:
        proven = replace(seen, proof=ProofReading(True)) if seen.exit and seen.exit.code == 0 else seen
        return super().verdict(attempt, proven, job, watch)


class Exit137IsOom(Broken):
    fault = "exit_137"

    def verdict(self, attempt: Attempt, seen: AttemptSnapshot, job: Job, watch: RunWatch | None) -> Verdict:
        found = super().verdict(attempt, seen, job, watch)
        killed = seen.exit is not None and seen.exit.code == 137 and found.cause is not None
        return replace(found, cause=Cause("oom_kill")) if killed else found


class AnyMemoryWordIsTheCause(Broken):
    fault = "kill_9"

    def verdict(self, attempt: Attempt, seen: AttemptSnapshot, job: Job, watch: RunWatch | None) -> Verdict:
        found = super().verdict(attempt, seen, job, watch)
        said = seen.exit is not None and "out of memory" in seen.exit.log
        return replace(found, cause=Cause("cuda_oom")) if said and found.cause else found


BROKEN: tuple[type[Broken], ...] = (
    ActivityIsProgress,
    TroubleIsSilence,
    UnreadGpuIsIdle,
    GpuDoesNotCount,
    StopsAreNotSeen,
    LostIsSilence,
    NoConfirmation,
    LateLooksCount,
    NoPrior,
    NoGrace,
    BusyIsNoExcuse,
    MeanAndSigma,
    LastGapOnly,
    FiveMinutes,
    KernelWaitIsProven,
    BusyIsProven,
    SilenceIsDeath,
    UnreadIsRunning,
    OrphansAreDead,
    GoneIsRunning,
    RebootIsForgotten,
    RebootErasesExits,
    ExitZeroIsDone,
    Exit137IsOom,
    AnyMemoryWordIsTheCause,
)


def missed_goal(figures: Figures) -> str:
    """The first goal that these histories miss. Shares of a few cases say nothing; coverage is no goal here."""
    if figures.wrongs:
        return next(iter(figures.wrongs))
    if figures.presumed >= 5 and figures.presumed_rate > 1:
        return "presumed"
    told = figures.causes.total()
    return "causes" if told >= 20 and figures.causes["right"] < 0.95 * told else ""


def seeds_until_caught(judge: Judge, most: int, shape: str | None = None, fault: str | None = None) -> int | None:
    """How many histories it takes to see that a judge is broken; None: so many were not enough."""
    figures = Figures()
    for seed in range(most):
        figures.add(simulate(seed, judge=judge, shape=shape, fault=fault))
        if missed_goal(figures):
            return seed + 1
    return None


def passes(histories: int, shape: str | None = None, fault: str | None = None) -> str:
    """The goal that the real judge misses on the same seeds; empty: none."""
    figures = Figures()
    for seed in range(histories):
        figures.add(simulate(seed, judge=REAL, shape=shape, fault=fault))
    return missed_goal(figures)
