"""Refuses to start cells whose runs live and are not known to the state: `.muster` was deleted meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from muster.domain.campaign import Campaign
from muster.domain.cell import all_cells
from muster.domain.errors import UsageError
from muster.domain.state import CampaignState, Only
from muster.observe.left_runs import LeftRun, left_runs
from muster.plan.standing import wanted

MOST = 5


def refuse_left_runs(root: Path, campaign: Campaign, before: CampaignState | None, only: Only) -> None:
    """Those that `only` leaves out may live on."""
    names = {cell.id for cell in all_cells(campaign) if wanted(cell, only)}
    found = [run for run in unknown_runs(root, before) if run.cell in names]
    if not found:
        return
    error = UsageError(
        f"runs of this campaign live that its state does not know, because it was deleted: {told(found)}; "
        "nothing was changed",
        where=str(root / ".muster"),
        hint="wait for their end, or end them with `kill PID`, then `muster up` again; "
        "`muster up --only AXIS=VALUE` starts the other cells now",
        code="left_runs",
    )
    error.exit = 3
    raise error


def unknown_runs(root: Path, before: CampaignState | None) -> list[LeftRun]:
    attempts = [each for record in before.cells.values() for each in record.attempts] if before else []
    places = {each.place for each in attempts}
    found = left_runs(root / ".muster", {each.token for each in attempts})
    return [run for run in found if run.token or (run.cell, run.n) not in places]


def told(runs: Sequence[LeftRun]) -> str:
    """One pid of each cell."""
    first: dict[str, int] = {}
    for run in runs:
        first.setdefault(run.cell, run.pid)
    shown = [f"{cell} (pid {pid})" for cell, pid in list(first.items())[:MOST]]
    return ", ".join(shown) + (f" and {len(first) - MOST} more" if len(first) > MOST else "")
