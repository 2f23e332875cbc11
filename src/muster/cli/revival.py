"""What commands that look say of a controller that was gone: another was started, or why none was."""

from __future__ import annotations

from muster.acts.status import Status
from muster.wiring.desk import Desk
from muster.wiring.started_here import MOVED, moved_since, not_started_here

REVIVED = "its controller was gone: another one was started"


def not_started_line(desk: Desk, found: Status) -> str:
    """Of a campaign that nobody goes on with unasked; empty: somebody does, or nothing is left to do in it."""
    if not found.going_on or found.controller.alive or found.controller.started_here:
        return ""
    if desk.stranger:
        return f"this campaign {desk.stranger.only_read}"
    if moved_since(desk.state):
        return f"{MOVED}: nothing goes on by itself; `muster up` goes on here"
    return f"{not_started_here()}: nothing goes on by itself; `muster up` takes it over"
