"""Who goes on with a campaign: its controller is revived, started, and followed to the end. Prints nothing.

`tell` gets what a person should know meanwhile, line by line: an error that comes after it must not swallow it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.campaign_status import Status
from muster.app.campaign.observe_campaign import observe_campaign, with_next_by_file
from muster.app.campaign.unknown_runs import add_unknown_runs
from muster.files.campaign_ownership import describe_moved_here, describe_not_started_here, moved_since
from muster.model.errors import MusterError
from muster.text.phrases import phrase

Tell = Callable[[str], None]
START_TRIES = 3  # another command that decides something holds the lock for a moment; a controller that meets it ends
REFRESH_S = 0.5


def revived_line() -> str:
    return phrase("campaign.controller_revived")


def observe_and_revive(
    desk: CampaignHandle, tell: Tell, by: Callable[[CampaignHandle], Status] = observe_campaign
) -> Status:
    """The truth now; revives a controller that died while something should be going on."""
    found = by(desk)
    if found.going_on and not found.controller.alive:
        if desk.revive():
            tell(revived_line())
        elif line := describe_why_not_started(desk, found):
            tell(line)
    return found


def observe_for_status(desk: CampaignHandle) -> Status:
    """As `status` shows it: with runs that the state does not know, and what follows by the files of today.

    A controller that it revived is named in it.
    """
    found = add_unknown_runs(desk.root, with_next_by_file(desk, observe_campaign(desk)))
    if found.going_on and not found.controller.alive and desk.revive():
        return replace(found, controller=replace(found.controller, revived=True))
    return found


def describe_why_not_started(desk: CampaignHandle, found: Status) -> str:
    """Of a campaign that nobody goes on with unasked; empty: somebody does, or nothing is left to do in it."""
    if not found.going_on or found.controller.alive or found.controller.started_here:
        return ""
    if desk.stranger:
        return phrase("campaign.folder_is_foreign", only_read=desk.stranger.only_read)
    if moved_since(desk.state):
        return phrase("campaign.moved_up_goes_on", reason=describe_moved_here())
    return phrase("campaign.foreign_up_takes_over", reason=describe_not_started_here())


def describe_origin(desk: CampaignHandle, found: Status) -> str:
    """Of a folder that was copied or brought here, or is somebody else's; empty: this user started it in its place."""
    if desk.stranger:
        return phrase("campaign.it_is_foreign", only_read=desk.stranger.only_read)
    standing, origin = desk.standing(), desk.brought_from()
    if standing == "copy":
        return phrase("campaign.copy_of_campaign", origin=origin)
    if standing == "moved" and found.going_on:
        return phrase("campaign.brought_here", origin=origin)
    return describe_why_not_started(desk, found)


def ensure_controller_started(desk: CampaignHandle) -> None:
    """One controller, whoever starts it; a hung one is taken over from by the one we start."""
    if desk.controller() is None or desk.lock.hung():
        for _ in range(START_TRIES):
            if not observe_campaign(desk).going_on or desk.await_controller(desk.start_controller()) is not None:
                return
        if observe_campaign(desk).going_on:
            raise MusterError(
                phrase("campaign.controller_did_not_start"),
                where=str(desk.state / "controller.log"),
                hint=phrase("campaign.that_file_says_why"),
            )


def start_if_running(desk: CampaignHandle, tell: Tell) -> Status:
    """Starts a controller where a decision gave it something to do; returns where everything stands."""
    if desk.load().intent.kind == "running":
        if desk.started_here():
            ensure_controller_started(desk)
        else:
            why = describe_moved_here() if moved_since(desk.state) else describe_not_started_here()
            tell(phrase("campaign.nothing_starts_before_up", reason=why))
    return observe_campaign(desk)


def follow_campaign(desk: CampaignHandle, tell: Tell, timeout_s: float | None = None) -> Iterator[Status]:
    """Where everything stands, again and again, until it is over or the time is up. Revives a controller that died."""
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    began = time.monotonic()
    found = observe_campaign(desk)
    pause = max(REFRESH_S, 4 * (time.monotonic() - began))  # a large matrix takes long to look at
    while True:
        yield found
        if not found.going_on or (deadline is not None and time.monotonic() >= deadline):
            return
        if not found.controller.alive and not found.controller.pid and desk.revive():
            tell(revived_line())
        time.sleep(pause if deadline is None else max(0.01, min(pause, deadline - time.monotonic())))
        found = observe_campaign(desk)
