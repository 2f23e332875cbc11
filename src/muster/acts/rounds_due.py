"""Whether a loop's next round is due. Pure: asked when nothing runs and nothing may start."""

from __future__ import annotations

from muster.acts.finish import Begin, Nothing, Step, Tend, key_of
from muster.domain.finish import StepRecord
from muster.domain.state import CampaignState
from muster.domain.variants import AXIS

STEP = "round-"


def most_rounds(state: CampaignState) -> int:
    """What the last `loop run` asked for, else the campaign."""
    return state.loop.most or int((state.campaign.loop or {}).get("rounds", 1))


def steps(state: CampaignState) -> list[Step]:
    """The step that proposes the next round, if one may come, or says why none does; none once that is known."""
    if not state.campaign.loop or state.loop.stopped or not state.loop.round or kept_back(state):
        return []
    following = state.loop.round + 1
    return [Step(f"{STEP}{following}", "round", f"muster loop propose --take --round {following}")]


def failed_step(state: CampaignState) -> StepRecord | None:
    """The step that should have proposed the next round, and could not: somebody must mend something."""
    for step in steps(state):
        last = state.finish.steps.get(step.name)
        if last and last.ok is not None and not last.ok and last.key == key_of(state):
            return last
    return None


def kept_back(state: CampaignState) -> bool:
    """A filter on `variant` leaves out every variant to come. A loop that is over is over, whatever the filter."""
    return state.loop.round < most_rounds(state) and any(AXIS in part for part in state.only)


def overtaken(state: CampaignState, step: str) -> bool:
    """A round's step whose round is decided: whatever becomes of it now stops nobody."""
    return step.startswith(STEP) and step not in {each.name for each in steps(state)}


def is_due(state: CampaignState) -> bool:
    """Whether a controller has something to do about it. One that ended by itself has done what it could."""
    return not state.at_rest and not isinstance(due(state), Nothing)


def due(state: CampaignState) -> Begin | Tend | Nothing:
    """The last round is followed by a step, too: it says why no more come. Each writes the report, after its decision:
    whoever is at it is seen to its end, lest an older report takes the place of a newer one."""
    if state.intent.kind != "running":
        return Nothing(over=True)
    for record in state.finish.steps.values():
        if record.step.startswith(STEP) and record.ended is None:
            return Tend(record)
    for step in steps(state):
        last = state.finish.steps.get(step.name)
        mine = last if last and last.key == key_of(state) else None
        if mine is None or mine.ok is None:
            return Begin(step, last.n + 1 if last else 1, mine.lost if mine else 0)
    return Nothing(over=True)
