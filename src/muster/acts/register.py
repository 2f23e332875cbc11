"""What the register says of its campaigns: a line for each, and whether one still has work to do. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from muster.acts import finish
from muster.acts.status import Status
from muster.domain.state import CampaignState

Standing = Literal["there", "moved", "gone", "unread"]


@dataclass(frozen=True, slots=True)
class Listed:
    """One campaign of the register, as it was found."""

    id: str
    name: str
    path: str  # where it lies now; of one that is gone: where it lay
    standing: Standing
    status: Status | None = None  # None: there is none to look at
    why: str = ""  # why it can't be read
    before: str = ""  # of a renamed one: where it lay

    @property
    def state(self) -> str:
        """complete, running, finishing, held, down, stopped; of what can't be looked at: gone, unread."""
        if self.status is None:
            return "gone" if self.standing == "gone" else "unread"
        return state_word(self.status)

    @property
    def verdict(self) -> str:
        """Of its last report; empty: there is none."""
        return self.status.report.found.verdict if self.status and self.status.report else ""


def state_word(found: Status) -> str:
    if found.complete and not found.going_on:
        return "stopped" if found.finish and found.finish.failed else "complete"
    if found.state.intent.kind != "running":
        return found.state.intent.kind
    if not found.going_on:
        return "stopped"
    return "finishing" if found.complete else "running"


def unfinished(state: CampaignState, boot: float) -> str:
    """What is still to be done in a campaign that nobody put down; empty: nothing."""
    if state.intent.wants_down:
        return ""
    left = sum(not (record.done or record.given_up is not None) for record in state.declared)
    if left or state.open_attempts:
        return f"{left or len(state.open_attempts)} of {len(state.declared)} cells are not done"
    if not finish.settled(state):
        return "its loop has not come to its end"
    view = finish.view(state, boot)
    undone = [f"{each.step.name} is {each.standing}" for each in view.undone] if view else []
    return f"its finish is not done: {', '.join(undone)}" if undone else ""


def listed_json(each: Listed) -> dict[str, Any]:
    """One element of `muster ls --json`: a contract."""
    found = each.status
    return {
        "id": each.id,
        "campaign": each.name,
        "path": each.path,
        "standing": each.standing,
        "state": each.state,
        "controller": bool(found and found.controller.alive),
        "done": found.counts["DONE"] if found else None,
        "declared": len(found.cells) if found else None,
        "verdict": each.verdict or None,
        "before": each.before or None,
        "why": each.why or None,
    }
