"""`muster look`: inspects several runs for a while at the same time, and judges each."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from muster.app.look.judge_run import judge_run
from muster.app.look.look_report import LookReport
from muster.engine.ports.clock import SystemClock
from muster.engine.ports.run_snapshot import INSPECTION_PERIOD_S
from muster.engine.ports.services import installed_services
from muster.model.foreign_run import RunQuery


def inspect_runs(
    asked: Sequence[RunQuery], for_s: float, told: Callable[[float], None] = lambda _: None
) -> list[LookReport]:
    """All of them at the same time. `told` is called with the seconds that are left."""
    clock = SystemClock()
    peeks = [installed_services().processes.inspect(each, clock) for each in asked]
    end = clock.boot() + for_s
    while True:
        began = clock.boot()
        for each in peeks:
            each.look()
        left = end - clock.boot()
        if left < INSPECTION_PERIOD_S / 2 or not any(each.watchable for each in peeks):
            for each in peeks:
                each.settle()
            return [judge_run(each.sight()) for each in peeks]
        told(left)
        time.sleep(max(0.0, min(INSPECTION_PERIOD_S, left) - (clock.boot() - began)))
