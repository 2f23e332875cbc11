"""The wish that the machine is powered off when all is done: recorded, and taken back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.finish_steps import countdown_seconds, list_finish_steps, power_off_command
from muster.app.campaign.observe_campaign import observe_campaign
from muster.app.campaign.start_controller import ensure_controller_started
from muster.model.errors import MusterError

if TYPE_CHECKING:
    from muster.app.finish.power_off import ShutdownResult


@dataclass(frozen=True, slots=True)
class ShutdownWish:
    command: str  # that powers the machine off
    intent: str  # of the campaign: nothing happens before it is `running`


def record_shutdown_wish(desk: CampaignHandle, countdown_s: float | None) -> ShutdownWish:
    data = {"what": "wish", "countdown_s": countdown_s}
    if refused := desk.decide([desk.person("shutdown", "power off when all is done", data=data)])[0]:
        raise MusterError(f"not recorded: {refused}")
    state = desk.load()
    if state.intent.kind == "running":
        ensure_controller_started(desk)
    return ShutdownWish(power_off_command(state), state.intent.kind)


def cancel_shutdown(desk: CampaignHandle) -> bool:
    """Whether one was wished for. A shutdown that somebody counts down to now is cancelled in any case."""
    state = desk.load()
    wanted = any(step.kind == "shutdown" for step in list_finish_steps(state)) and not state.finish.cancelled
    desk.decide([desk.person("shutdown", "taken back by a person", data={"what": "cancel"})])
    return wanted


def shutdown_as_json(desk: CampaignHandle, what: str, done: ShutdownResult | None = None) -> dict[str, Any]:
    """`what` was done; the reasons and the command where there was a look."""
    status = done.status if done else observe_campaign(desk)
    state = desk.load()
    wish = state.finish.wish
    return {
        "muster": 1,
        "campaign": status.state.campaign.name,
        "as_of": status.as_of,
        "what": what,
        "reasons": list(done.reasons) if done else [],
        "others": list(done.others) if done else [],
        "command": done.command if done else power_off_command(state),
        "countdown_s": countdown_seconds(status.state),
        "wish": {"who": wish.who, "at": wish.at, "command": wish.command, "countdown_s": wish.countdown_s}
        if wish
        else None,
    }
