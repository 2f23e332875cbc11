"""How far a loop has come, whether its next round is due, and how `status` shows it. Pure; asked when nothing runs
and nothing may start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from muster.app.campaign.finish_steps import BeginStep, FinishStep, NothingDue, TendStep, matrix_state_key
from muster.engine.plan.cell_standing import format_cell_filter
from muster.model.campaign_state import CampaignState, FinishStepRecord
from muster.model.variant import VARIANT_AXIS
from muster.text.phrases import phrase

ROUND_STEP_PREFIX = "round-"


def rounds_at_most(state: CampaignState) -> int:
    """What the last `loop run` asked for, else the campaign."""
    return state.loop.most or (state.campaign.loop.rounds if state.campaign.loop else 1)


def steps_for_next_round(state: CampaignState) -> list[FinishStep]:
    """The step that proposes the next round, if one may come, or says why none does; none once that is known."""
    if not state.campaign.loop or state.loop.stopped or not state.loop.round or filter_excludes_new_variants(state):
        return []
    following = state.loop.round + 1
    return [FinishStep(f"{ROUND_STEP_PREFIX}{following}", "round", f"muster loop propose --take --round {following}")]


def failed_round_step(state: CampaignState) -> FinishStepRecord | None:
    """The step that should have proposed the next round, and could not: somebody must fix something."""
    for step in steps_for_next_round(state):
        last = state.finish.steps.get(step.name)
        if last and last.ok is not None and not last.ok and last.key == matrix_state_key(state):
            return last
    return None


def filter_excludes_new_variants(state: CampaignState) -> bool:
    """A filter on `variant` leaves out every variant to come. A loop that is over is over, whatever the filter."""
    return state.loop.round < rounds_at_most(state) and any(VARIANT_AXIS in part for part in state.only)


def is_round_step_overtaken(state: CampaignState, step: str) -> bool:
    """A round's step whose round is decided: whatever becomes of it now stops nobody."""
    return step.startswith(ROUND_STEP_PREFIX) and step not in {each.name for each in steps_for_next_round(state)}


def is_next_round_due(state: CampaignState) -> bool:
    """Whether a controller has something to do about it. One that ended by itself has done what it could."""
    return not state.at_rest and not isinstance(next_round_action(state), NothingDue)


def next_round_action(state: CampaignState) -> BeginStep | TendStep | NothingDue:
    """The last round is followed by a step, too: it says why no more come. Each writes the report, after its decision:
    whoever is at it is seen to its end, lest an older report takes the place of a newer one."""
    if state.intent.kind != "running":
        return NothingDue(over=True)
    for record in state.finish.steps.values():
        if record.step.startswith(ROUND_STEP_PREFIX) and record.ended is None:
            return TendStep(record)
    for step in steps_for_next_round(state):
        last = state.finish.steps.get(step.name)
        mine = last if last and last.key == matrix_state_key(state) else None
        if mine is None or mine.ok is None:
            return BeginStep(step, last.n + 1 if last else 1, mine.lost if mine else 0)
    return NothingDue(over=True)


@dataclass(frozen=True, slots=True)
class LoopProgress:
    round: int
    rounds: int  # at most
    variants: int
    stopped: str = ""  # why no further round comes
    failed: str = ""  # why the next round could not be proposed
    folder: str = ""  # with the output of whoever tried
    left_out: str = ""  # the filter that leaves every further variant out
    due: bool = False


def view_loop_progress(state: CampaignState) -> LoopProgress | None:
    loop = state.loop
    if not state.campaign.loop or not loop.round:
        return None
    step = failed_round_step(state)
    return LoopProgress(
        loop.round,
        rounds_at_most(state),
        len(loop.variants),
        loop.stopped,
        step.why or phrase("campaign.step_failed") if step else "",
        f".muster/finish/{step.step}/{step.n}" if step else "",
        format_cell_filter(state.only) if filter_excludes_new_variants(state) else "",
        is_next_round_due(state),
    )


def describe_loop_progress(view: LoopProgress) -> str:
    """One line for people."""
    at = phrase(
        "campaign.loop_round_of",
        round=view.round,
        rounds=view.rounds,
        variants=phrase("count.variant", n=view.variants),
    )
    following = view.round + 1
    if view.failed:
        where = phrase("campaign.output_fix_then_up", folder=view.folder)
        return phrase("campaign.loop_round_failed", at=at, following=following, reason=view.failed, hint=where)
    if view.stopped:
        return phrase("campaign.loop_has_stopped", at=at, following=following, reason=view.stopped)
    if view.left_out:
        return phrase("campaign.loop_left_out_by_filter", at=at, following=following, filter=view.left_out)
    if view.due:
        return phrase("campaign.loop_round_on_its_way", at=at, following=following)
    return phrase("campaign.loop_next_when_over", at=at)


def loop_progress_as_json(view: LoopProgress) -> dict[str, Any]:
    """The `loop` of `muster status --json`: a contract."""
    return {
        "round": view.round,
        "rounds": view.rounds,
        "variants": view.variants,
        "stopped": view.stopped or None,
        "failed": view.failed or None,
        "due": view.due,
    }
