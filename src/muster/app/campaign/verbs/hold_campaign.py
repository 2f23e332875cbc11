"""Nothing new starts until it is released."""

from __future__ import annotations

from dataclasses import dataclass

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.campaign_status import Status
from muster.app.campaign.start_controller import Tell, start_if_running
from muster.model.campaign_state import Intent
from muster.model.errors import MusterError
from muster.text.phrases import phrase


@dataclass(frozen=True, slots=True)
class HoldResult:
    before: Intent
    living: int  # attempts that go on


def hold_campaign(desk: CampaignHandle, reason: str) -> HoldResult:
    before = desk.load().intent
    if refused := desk.decide([desk.person("hold", reason)])[0]:
        raise MusterError(phrase("campaign.not_held", reason=refused))
    return HoldResult(before, len(desk.load().open_attempts))


def release_campaign(desk: CampaignHandle, reason: str, tell: Tell) -> Status:
    if refused := desk.decide([desk.person("release", reason)])[0]:
        raise MusterError(phrase("campaign.not_released", reason=refused))
    return start_if_running(desk, tell)
