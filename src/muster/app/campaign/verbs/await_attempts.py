"""Waits from a command until attempts have ended and it is recorded; where no controller lives, one is started for it.

A campaign that is down or held may have none. The one we start carries out what was decided, records what has ended and
goes again.
"""

from __future__ import annotations

import time
from collections.abc import Collection

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.observe_campaign import observe_campaign
from muster.model.attempt import Attempt, AttemptKey
from muster.model.campaign_state import CampaignState

END_LOOK_S = 0.05
RECORD_TIMEOUT_S = 10.0  # an end is recorded within this, even if a controller must be started for it
RESTART_PAUSE_S = 2.0  # a controller that was started needs a moment to take its lock


class AttemptEndWaiter:
    def __init__(self, desk: CampaignHandle) -> None:
        self.desk = desk
        self._asked = float("-inf")

    def ensure_controller(self) -> None:
        if self.desk.controller() is None and time.monotonic() - self._asked > RESTART_PAUSE_S:
            self._asked = time.monotonic()
            self.desk.start_controller()

    def _may_start(self) -> bool:
        """Somebody is there, or one may be started: in what came from elsewhere none is."""
        return self.desk.controller() is not None or self.desk.started_here()

    def until_ended(self, keys: Collection[AttemptKey], timeout_s: float) -> list[Attempt]:
        """Until these attempts have ended and it is recorded; returns those that have not when the time is up."""
        deadline = time.monotonic() + timeout_s
        while True:
            left = [attempt for attempt in self.desk.load().open_attempts if attempt.key in keys]
            if not left or time.monotonic() > deadline:
                return left
            self.ensure_controller()
            time.sleep(END_LOOK_S)

    def record_ended(self) -> CampaignState:
        """What has ended is recorded before anybody decides about it: who is seen dead must not count as running."""
        deadline = time.monotonic() + RECORD_TIMEOUT_S
        while True:
            found = observe_campaign(self.desk)
            ending = any(c.record.open and (c.verdict.final or c.verdict.kind == "ending") for c in found.cells)
            if not ending or time.monotonic() > deadline or not self._may_start():
                return found.state
            self.ensure_controller()
            time.sleep(END_LOOK_S)
