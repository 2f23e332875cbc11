"""Verdicts of living runs, over looks that are five seconds apart unless a test says otherwise."""

from dataclasses import replace
from typing import Any

import pytest

from muster.engine.judge.liveness import (
    NO_SIBLING_PRIOR,
    LivenessFinding,
    RunWatch,
    SiblingPrior,
    count_conviction,
    judge_liveness,
)
from muster.engine.judge.run_evidence import list_rhythms, living_run_evidence
from muster.engine.judge.signal_history import Thresholds, begin_history, fold_readings
from muster.model.attempt_snapshot import GpuUse, ProgressMark, RunReadings, TreeVitals
from muster.model.campaign import DeclaredProgress, Job

JSONL = DeclaredProgress("jsonl", "metrics.jsonl", "step")
CHUNKS = DeclaredProgress("files", "replay/*.npz")
JOB = Job("train", (), ("python",), progress=(JSONL, CHUNKS))
MIN = 60.0


class Run:
    """A made-up run that is looked at; what a test does not say stays as it is."""

    def __init__(
        self, job: Job = JOB, prior: SiblingPrior = NO_SIBLING_PRIOR, every_s: float | None = None, **floors: Any
    ) -> None:
        self.job, self.now = job, 1000.0
        self.watch = RunWatch(begin_history(self.now, self.now), prior, Thresholds(**floors))
        self.step: float | None = None
        self.chunks: float | None = None
        self.every_s = every_s
        self.cpu, self.io = 0.0, 0.0
        self.state, self.states = "S", ""
        self.gpus: tuple[GpuUse, ...] = ()
        self.clocks: tuple[tuple[str, float], ...] = ()
        self.trouble = ""
        self.readable, self.own = True, False
        self.unfit = 0
        self.seen: list[LivenessFinding] = []

    def look(self, after_s: float = 5.0, *, cpu: float = 1.0, io: float = 1000.0) -> LivenessFinding:
        self.now += after_s
        self.cpu += cpu * after_s
        self.io += io * after_s
        counters = (self.cpu, self.io) if self.readable else (None, None)
        vitals = TreeVitals(
            self.states or self.state, *counters, out_bytes=0, opens_gpu=bool(self.gpus), gpus=self.gpus
        )
        marks = [
            ProgressMark("metrics.jsonl", "jsonl", self.step, f"step {self.step}", self.every_s, trouble=self.trouble,
                 unfit=self.unfit, own=self.own)
        ]  # fmt: skip
        if len(self.job.progress) > 1:
            marks.append(
                ProgressMark("replay/*.npz", "files", self.chunks, f"{self.chunks} files", trouble=self.trouble)
            )
        fold_readings(
            self.watch.history, RunReadings(self.now, tuple(marks), vitals, self.clocks), self.state, self.watch.floors
        )
        count_conviction(self.watch, self.job, self.now)
        self.seen.append(judge_liveness(self.watch, self.job, self.now))
        return self.seen[-1]

    def train(
        self, seconds: float, *, log_s: float | None = 10.0, chunk_s: float | None = None, **activity: Any
    ) -> LivenessFinding:
        """Advances on its clocks."""
        began = self.now
        while self.now < began + seconds:
            ahead = self.now + 5.0
            if log_s and int(ahead / log_s) > int(self.now / log_s):
                self.step = (self.step or 0) + 1
            if chunk_s and int(ahead / chunk_s) > int(self.now / chunk_s):
                self.chunks = (self.chunks or 0) + 1
            self.look(**activity)
        return self.seen[-1]

    def hang(self, seconds: float, **activity: Any) -> LivenessFinding:
        began = self.now
        while self.now < began + seconds:
            self.look(**activity)
        return self.seen[-1]

    @property
    def verdicts(self) -> set[str]:
        return {f"{each.state}({each.kind})" if each.kind else str(each.state) for each in self.seen}


def test_a_run_that_advances_is_running() -> None:
    run = Run()
    found = run.train(10 * MIN)
    assert (found.state, found.kind, found.confidence) == ("RUNNING", None, "proven")
    assert run.verdicts == {"RUNNING(starting)", "RUNNING"}


def test_before_the_first_progress_it_is_starting_for_an_hour() -> None:
    run = Run()
    assert run.hang(25 * MIN).kind == "starting"
    assert run.hang(34 * MIN).kind == "starting"
    assert run.hang(2 * MIN).kind != "starting"
    found = run.hang(1 * MIN)
    assert (found.state, found.kind, found.confidence) == ("STALLED", "spinning", "presumed")


def test_grace_is_stretched_by_the_job_and_by_slow_siblings() -> None:
    slow = Run(replace(JOB, grace_s=2 * 3600))
    assert slow.hang(110 * MIN).kind == "starting"
    sibling = Run(prior=SiblingPrior(first_s=30 * MIN))
    assert sibling.hang(140 * MIN).kind == "starting"


def test_a_quiet_log_with_growing_chunks_is_quiet_and_never_stalled() -> None:
    """The reference story: a log clock of 1000 s, chunks every minute."""
    run = Run()
    run.train(5940, log_s=1000, chunk_s=60)
    after_start = run.seen[24:]  # two chunks, so that their cadence is known
    assert {(each.state, each.confidence) for each in after_start} <= {("QUIET", "proven"), ("RUNNING", "proven")}
    quiet = sum(each.state == "QUIET" for each in after_start)
    assert quiet > 0.9 * len(after_start)
    assert "metrics.jsonl silent for" in after_start[-1].reason
    assert "replay/*.npz: " in after_start[-1].reason


def test_an_idle_tree_is_proven_stalled_after_two_minutes() -> None:
    run = Run()
    run.train(10 * MIN)
    assert run.hang(115, cpu=0, io=0).state == "RUNNING"
    found = run.hang(30, cpu=0, io=0)
    assert (found.state, found.kind, found.confidence) == ("STALLED", "waiting", "proven")


def test_a_busy_tree_is_not_convicted_before_half_an_hour_and_then_presumed() -> None:
    run = Run(replace(JOB, progress=(JSONL,)))
    run.train(10 * MIN)
    found = run.hang(29 * MIN)
    assert (found.state, found.kind, found.confidence) == ("RUNNING", "overdue", "presumed")
    found = run.hang(2 * MIN)
    assert (found.state, found.kind, found.confidence) == ("STALLED", "spinning", "presumed")


def test_a_busy_tree_whose_other_signal_is_still_awaited_has_its_grace() -> None:
    run = Run()
    run.train(10 * MIN)
    assert run.hang(45 * MIN).kind == "overdue"  # the first evaluation may take long
    assert run.hang(10 * MIN).state == "STALLED"


def test_a_declared_period_convicts_a_busy_tree_sooner() -> None:
    run = Run(replace(JOB, progress=(JSONL,)), every_s=10.0)
    run.train(10 * MIN)
    assert run.hang(2 * MIN + 20).state == "STALLED"


def test_a_heartbeat_is_no_work() -> None:
    run = Run()
    run.train(10 * MIN)
    found = run.hang(6 * MIN, cpu=0.02, io=5)
    assert (found.state, found.kind, found.confidence) == ("STALLED", "waiting", "presumed")


def test_gpu_at_full_load_without_steps_is_never_running_for_ever() -> None:
    run = Run(replace(JOB, progress=(JSONL,)))
    run.gpus = (GpuUse(0, 100.0, 122.0),)
    run.train(10 * MIN)
    found = run.hang(32 * MIN, cpu=0, io=0)
    assert (found.state, found.kind, found.confidence) == ("STALLED", "spinning", "presumed")


def test_state_t_on_two_looks_is_stopped_at_once_and_goes_back() -> None:
    run = Run()
    run.train(5 * MIN)
    run.state = "T"
    assert run.look(cpu=0, io=0).state == "RUNNING"
    found = run.look(cpu=0, io=0)
    assert (found.state, found.kind, found.confidence) == ("STALLED", "stopped", "proven")
    run.state = "S"
    assert run.train(1 * MIN).state == "RUNNING"


def test_time_in_state_t_is_no_silence_of_its_own() -> None:
    """After SIGCONT it may finish the pause that it was in."""
    run = Run(replace(JOB, progress=(JSONL,)))
    run.train(10 * MIN)
    run.hang(60, cpu=0, io=0)
    run.state = "T"
    assert run.hang(30 * MIN, cpu=0, io=0).kind == "stopped"
    run.state = "S"
    assert run.hang(50, cpu=0, io=0).state == "RUNNING"
    found = run.hang(2 * MIN, cpu=0, io=0)
    assert (found.state, found.kind) == ("STALLED", "waiting")


def test_who_is_stopped_for_moments_only_is_not_stopped() -> None:
    """A CPU limiter, a tracer or a profiler: T at every look, and it works in between."""
    run = Run()
    run.state = "T"
    run.train(10 * MIN)
    run.hang(MIN, cpu=0.5)
    assert not [each for each in run.seen if each.state == "STALLED"]


def test_what_was_seen_stopped_long_ago_is_not_called_proven() -> None:
    run = Run()
    run.train(5 * MIN)
    run.state = "T"
    run.hang(15, cpu=0, io=0)
    later = judge_liveness(run.watch, run.job, run.now + 60)
    assert (later.state, later.kind, later.confidence) == ("STALLED", "stopped", "presumed")


def test_a_pattern_that_never_fits_is_named_and_convicts_nobody() -> None:
    run = Run(replace(JOB, progress=(JSONL,)))
    run.unfit = 40
    assert "has fitted none of 40 lines" in run.hang(MIN).reason
    found = run.hang(90 * MIN)
    assert (found.state, found.confidence) == ("QUIET", "presumed")
    assert "is its pattern or key right?" in found.reason
    assert run.hang(30 * MIN, cpu=0, io=0).state == "UNKNOWN"
    assert not [each for each in run.seen if each.state == "STALLED"]


def test_a_step_in_a_folder_of_its_own_is_progress_at_the_first_sight() -> None:
    run = Run(replace(JOB, progress=(JSONL,)))
    run.own, run.step = True, 5.0
    found = run.look()
    assert (found.state, found.kind, found.confidence) == ("RUNNING", None, "proven")
    late = Run(replace(JOB, progress=(JSONL,)))
    late.own, late.step = True, 5.0
    late.watch = RunWatch(begin_history(late.now, late.now + 3600), NO_SIBLING_PRIOR, Thresholds())
    late.now += 3600
    assert late.look().kind == "starting"  # who comes late has not seen it advance


def test_a_stretch_that_can_not_be_read_is_neither_learned_nor_silence() -> None:
    run = Run(replace(JOB, progress=(JSONL,)))
    run.train(10 * MIN)
    run.trouble = "Stale file handle"
    run.hang(30 * MIN, cpu=0, io=0)
    run.trouble = ""
    assert run.look(cpu=0, io=0).state == "RUNNING"
    run.train(10 * MIN)
    assert max(run.watch.history.pulses["metrics.jsonl"].cadence.gaps) <= 15
    found = run.hang(10 * MIN, cpu=0, io=0)
    assert (found.state, found.confidence) == ("STALLED", "presumed")  # it may have had such pauses unseen
    assert run.hang(150 * MIN, cpu=0, io=0).confidence == "proven"


def test_a_launcher_that_sleeps_over_a_stopped_child_is_stopped() -> None:
    run = Run()
    run.train(5 * MIN)
    run.states = "ST"
    run.hang(15, cpu=0, io=0)
    assert run.seen[-1].kind == "stopped"


def test_a_stopped_side_process_does_not_stop_a_working_run() -> None:
    run = Run()
    run.states = "ST"
    run.train(5 * MIN)
    assert run.verdicts == {"RUNNING(starting)", "RUNNING"}


def test_waiting_in_the_kernel_is_blocked_and_presumed() -> None:
    run = Run()
    run.train(10 * MIN)
    run.state = "D"
    found = run.hang(6 * MIN, cpu=0, io=0)
    assert (found.state, found.kind, found.confidence) == ("STALLED", "blocked", "presumed")


def test_a_late_look_convicts_nobody_and_its_gap_is_not_learned() -> None:
    run = Run()
    run.train(10 * MIN)
    learned = run.watch.history.pulses["metrics.jsonl"].cadence.count
    assert run.look(5 * MIN, cpu=0, io=0).state == "RUNNING"
    run.step = (run.step or 0) + 1
    run.look()
    assert run.watch.history.pulses["metrics.jsonl"].cadence.count == learned
    assert run.watch.history.pulses["metrics.jsonl"].cadence.longest < 30


def test_a_suspended_host_is_not_stalled() -> None:
    run = Run()
    run.train(10 * MIN)
    run.look(3600, cpu=0, io=0)
    assert run.train(5 * MIN).state == "RUNNING"
    assert not {verdict for verdict in run.verdicts if "STALLED" in verdict}


def test_the_second_long_evaluation_is_learned() -> None:
    run = Run()
    run.train(10 * MIN, log_s=30)
    found = run.hang(20 * MIN)
    assert (found.state, found.kind) == ("RUNNING", "overdue")
    run.train(10 * MIN, log_s=30)
    run.hang(20 * MIN, cpu=0, io=0)
    assert run.seen[-1].state == "RUNNING"
    assert "STALLED(waiting)" not in run.verdicts


def test_a_signal_that_cannot_be_read_keeps_a_run_from_conviction() -> None:
    run = Run()
    run.train(10 * MIN)
    run.trouble = "its files have not answered for 9 s"
    found = run.hang(20 * MIN)
    assert (found.state, found.confidence) == ("QUIET", "presumed")
    run.readable = False
    found = run.hang(5 * MIN)
    assert found.state in ("QUIET", "UNKNOWN")
    assert found.confidence != "proven"


def test_without_progress_and_activity_it_is_unknown() -> None:
    run = Run(replace(JOB, progress=(JSONL,)))
    run.train(10 * MIN)
    run.trouble = "stale file handle"
    assert run.hang(5 * MIN, cpu=0, io=0).state == "UNKNOWN"


def test_a_fall_of_the_step_is_no_progress() -> None:
    run = Run(replace(JOB, progress=(JSONL,)))
    run.train(10 * MIN)
    run.step = 3.0
    before = run.watch.history.pulses["metrics.jsonl"].advances
    run.look()
    assert run.watch.history.pulses["metrics.jsonl"].advances == before


def test_a_clock_in_the_config_is_named() -> None:
    run = Run(replace(JOB, progress=(JSONL, CHUNKS)))
    run.clocks = (("log_every", 1000.0),)
    run.train(2600, log_s=1000, chunk_s=60)
    rhythm = next(each for each in list_rhythms(run.watch, run.now) if each.signal == "metrics.jsonl")
    assert "clock of 1000 s" in rhythm.note
    assert "`log_every`" in rhythm.note
    assert rhythm.convict_s >= 5000


def test_evidence_names_every_signal_and_its_class() -> None:
    run = Run()
    run.gpus = (GpuUse(3, 9.0, 124.0, 1 << 30),)
    run.train(5 * MIN, chunk_s=20)
    rows = {row.signal: row for row in living_run_evidence(run.watch, run.now)}
    assert rows["metrics.jsonl"].kind == "progress"
    assert rows["metrics.jsonl"].says == "advances"
    assert rows["cpu"].kind == "activity"
    assert "usually" in rows["cpu"].reading
    assert rows["gpu3"].reading == "9 % busy, 124 W, 1024 MiB"


@pytest.mark.parametrize("shared", [True, False])
def test_a_shared_gpu_speaks_for_nobody(shared: bool) -> None:
    run = Run()
    run.train(10 * MIN)
    run.gpus = (GpuUse(0, 100.0, shared=shared),)
    found = run.hang(6 * MIN, cpu=0, io=0)
    assert found.confidence == "presumed"  # its own kernels may be among those that run
    assert (found.state == "STALLED") == shared
