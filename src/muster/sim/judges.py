"""The judge as the simulator drives it: four steps. A broken one overrides one of them."""

from __future__ import annotations

from muster.domain.attempt import Attempt
from muster.domain.campaign import Job
from muster.domain.reading import Readings
from muster.domain.sighting import Sighting
from muster.domain.verdict import Verdict
from muster.judge.attempt import judge_attempt
from muster.judge.floors import Floors
from muster.judge.history import History, begin, note
from muster.judge.living import Watch, confirm


class Judge:
    name = "real"

    def floors(self, floors: Floors) -> Floors:
        return floors

    def begin(self, began: float, now: float) -> History:
        return begin(began, now)

    def note(self, history: History, seen: Readings, main_state: str, floors: Floors) -> None:
        note(history, seen, main_state, floors)

    def confirm(self, watch: Watch, job: Job, now: float) -> None:
        confirm(watch, job, now)

    def verdict(self, attempt: Attempt, seen: Sighting, job: Job, watch: Watch | None) -> Verdict:
        return judge_attempt(attempt, seen, job, watch, explain=False)


REAL = Judge()
