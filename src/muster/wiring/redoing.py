"""What a redo decides: each cell, and the cells that are run again because of it."""

from __future__ import annotations

from muster.acts.redo import RedoPlan
from muster.domain.decision import Decision
from muster.domain.state import CampaignState
from muster.wiring.desk import Desk


def redo_decisions(desk: Desk, state: CampaignState, plan: RedoPlan, reason: str) -> list[Decision]:
    return [
        desk.person("redo", reason, cell=step.cell,
                    data={"campaign": state.campaign_hash, "needed_by": list(step.needed_by)})
        for step in plan.steps
    ]  # fmt: skip
