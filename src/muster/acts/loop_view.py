"""How far a loop has come and what comes next, for `status` and all who ask whether it is over. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from muster.acts.rounds_due import failed_step, is_due, kept_back, most_rounds
from muster.domain.state import CampaignState
from muster.domain.wording import counted
from muster.plan.standing import describe


@dataclass(frozen=True, slots=True)
class LoopView:
    round: int
    rounds: int  # at most
    variants: int
    stopped: str = ""  # why no further round comes
    failed: str = ""  # why the next round could not be proposed
    folder: str = ""  # with the output of whoever tried
    left_out: str = ""  # the filter that leaves every further variant out
    due: bool = False


def loop_view(state: CampaignState) -> LoopView | None:
    loop = state.loop
    if not state.campaign.loop or not loop.round:
        return None
    step = failed_step(state)
    return LoopView(
        loop.round,
        most_rounds(state),
        len(loop.variants),
        loop.stopped,
        step.why or "it failed" if step else "",
        f".muster/finish/{step.step}/{step.n}" if step else "",
        describe(state.only) if kept_back(state) else "",
        is_due(state),
    )


def told(view: LoopView) -> str:
    """One line for people."""
    at = f"loop: round {view.round} of {view.rounds}, {counted(view.variants, 'variant')}"
    following = view.round + 1
    if view.failed:
        where = f"its output is in {view.folder}. Mend it, then `muster up` tries it again"
        return f"{at}; round {following} could not be proposed: {view.failed}; {where}"
    if view.stopped:
        return f"{at}; no round {following}: {view.stopped}. `muster loop report` tells what it brought"
    if view.left_out:
        return f"{at}; no round {following} while --only {view.left_out} holds; `muster loop run` goes on"
    if view.due:
        return f"{at}; round {following}, or the reason why none comes, is on its way"
    return f"{at}; the next one comes when all of this one is over"


def as_json(view: LoopView) -> dict[str, Any]:
    """The `loop` of `muster status --json`: a contract."""
    return {
        "round": view.round,
        "rounds": view.rounds,
        "variants": view.variants,
        "stopped": view.stopped or None,
        "failed": view.failed or None,
        "due": view.due,
    }
