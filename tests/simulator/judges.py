"""The judge as the simulator drives it: four steps. A broken one overrides one of them."""

from __future__ import annotations

from muster.engine.judge.attempt_verdict import judge_attempt
from muster.engine.judge.liveness import RunWatch, count_conviction
from muster.engine.judge.signal_history import SignalHistory, Thresholds, begin_history, fold_readings
from muster.model.attempt import Attempt
from muster.model.attempt_snapshot import AttemptSnapshot, RunReadings
from muster.model.campaign import Job
from muster.model.verdict import Verdict


class Judge:
    name = "real"

    def floors(self, floors: Thresholds) -> Thresholds:
        return floors

    def begin(self, began: float, now: float) -> SignalHistory:
        return begin_history(began, now)

    def note(self, history: SignalHistory, seen: RunReadings, main_state: str, floors: Thresholds) -> None:
        fold_readings(history, seen, main_state, floors)

    def confirm(self, watch: RunWatch, job: Job, now: float) -> None:
        count_conviction(watch, job, now)

    def verdict(self, attempt: Attempt, seen: AttemptSnapshot, job: Job, watch: RunWatch | None) -> Verdict:
        return judge_attempt(attempt, seen, job, watch, explain=False)


REAL = Judge()
