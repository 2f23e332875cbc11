"""Whether a campaign fits this machine, before anything starts: the cheap part of the preflight, for `up`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from muster.acts.check import Machine, advise, locate
from muster.acts.periods import period_warnings
from muster.domain.campaign import Campaign
from muster.domain.cell import all_cells
from muster.domain.errors import Mistake, MusterError
from muster.domain.state import CampaignState, Only
from muster.execute.gpus import GpuWatch, find_gpus
from muster.execute.slot_folder import closed_slots
from muster.execute.slots import home
from muster.plan.standing import wanted
from muster.wiring.desk import FILE, Desk
from muster.wiring.taking import Read


def fit(root: Path, found: Read, only: Only) -> tuple[Mistake, ...]:
    """Warnings; or, where a GPU is missing that something still to run asks for, an error: nothing has started."""
    state = known_state(root)
    noticed = misfits(found.campaign, state, only)
    noticed += period_warnings(found.campaign, str(root), state.declared if state else ())
    return refuse_failures(root, locate(noticed, found.text))


def refuse_failures(root: Path, placed: Sequence[Mistake]) -> tuple[Mistake, ...]:
    """The warnings among them; of failures an error is raised."""
    failures = [each for each in placed if each.level == "failure"]
    if failures:
        first = failures[0]
        where = f"{root / FILE}:{first.line}:{first.column}" if first.line else str(root / FILE)
        what = "; ".join(each.message for each in failures)
        raise MusterError(f"{what}; nothing was started", where=where, hint=first.hint, code="preflight")
    return tuple(each for each in placed if each.level == "warning")


def misfits(campaign: Campaign, state: CampaignState | None, only: Only = ()) -> list[Mistake]:
    """What this machine lacks for the jobs that still have something to run."""
    machine = Machine(_gpus(campaign), None, {})
    left = jobs_to_do(campaign, state, only)
    return [*advise(campaign, machine, left), *(no_slots() if left else ())]


def no_slots() -> list[Mistake]:
    found = closed_slots(home() / "slots")
    return [Mistake(found.why, hint=found.hint, level="failure")] if found else []


def jobs_to_do(campaign: Campaign, state: CampaignState | None, only: Only = ()) -> frozenset[str]:
    """Jobs with a cell that is neither done nor given up, and that the filter lets through."""
    known = state.cells if state else {}
    settled = {name for name, record in known.items() if record.done or record.given_up is not None}
    return frozenset(cell.job for cell in all_cells(campaign) if cell.id not in settled and wanted(cell, only))


def known_state(root: Path) -> CampaignState | None:
    """What was decided so far; None before the first time, and where the state can't be read: others say so."""
    state = root / ".muster"
    if not (state / "campaign.db").exists() and not (state / "decisions.jsonl").exists():
        return None
    try:
        desk = Desk.open(root)
    except MusterError:
        return None
    try:
        return desk.store.load()
    except (MusterError, OSError):
        return None
    finally:
        desk.close()


def _gpus(campaign: Campaign) -> tuple[Mapping[str, Any], ...]:
    if campaign.slots.gpus == ():
        return ()
    return tuple({"index": gpu.index} for gpu in GpuWatch(find_gpus).gpus)
