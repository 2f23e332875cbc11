"""DONE cells are run again, and with them the DONE cells that rest on them."""

from __future__ import annotations

import glob
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.campaign_status import Status
from muster.app.campaign.observe_campaign import REDO_HINT, refuse_changed_definitions
from muster.app.campaign.start_controller import Tell, observe_and_revive, start_if_running
from muster.app.campaign.verbs.await_attempts import AttemptEndWaiter
from muster.app.campaign.verbs.choose_cells import choose_cells
from muster.app.campaign.verbs.retry_cells import RestartedCell, restarted_cells
from muster.engine.plan.cell_standing import is_outdated_cell
from muster.model.attempt import CellRecord
from muster.model.campaign import Job
from muster.model.campaign_state import CampaignState
from muster.text.phrases import phrase


@dataclass(frozen=True, slots=True)
class RedoResult:
    redone: tuple[RestartedCell, ...]  # in declared order, the followers too
    followers: tuple[str, ...]  # of them: nobody named them, they rest on what is redone
    refused: Mapping[str, str]  # cell -> why
    overwritten: tuple[str, ...]  # of the redone: their job writes to one and the same place again


def redo_cells(
    desk: CampaignHandle, patterns: Sequence[str], reason: str, tell: Tell, *, outdated: bool = False
) -> RedoResult:
    """`outdated`: all DONE cells whose definition has changed since they ran, instead of patterns."""
    AttemptEndWaiter(desk).record_ended()
    before = observe_and_revive(desk, tell)
    declared = [record.cell.id for record in before.state.declared]
    names = _outdated_names(before) if outdated else choose_cells("redo", patterns, before)
    plan = plan_redo(before.state, names)
    again = declared if outdated else [step.cell for step in plan.steps]
    refuse_changed_definitions(desk, before.state, again, REDO_HINT)
    decisions = [
        desk.person(
            "redo",
            reason,
            cell=step.cell,
            data={"campaign": before.state.campaign_hash, "needed_by": list(step.needed_by)},
        )
        for step in plan.steps
    ]
    answers = dict(zip((step.cell for step in plan.steps), desk.decide(decisions) if decisions else [], strict=True))
    refused = {**plan.refused, **{cell: why for cell, why in answers.items() if why}}
    redone = [cell for cell in declared if cell in answers and cell not in refused]
    after = start_if_running(desk, tell) if redone else before
    return RedoResult(
        tuple(restarted_cells(redone, before, after, after.state.intent)),
        tuple(cell for cell in plan.followers if cell in redone),
        refused,
        tuple(cell for cell in plan.overwritten if cell in redone),
    )


def redo_as_json(result: RedoResult) -> dict[str, Any]:
    return {
        "muster": 1,
        "redone": [each.cell for each in result.redone],
        "followers": list(result.followers),
        "refused": [{"cell": cell, "why": why} for cell, why in result.refused.items()],
        "overwritten": list(result.overwritten),
    }


def _outdated_names(found: Status) -> list[str]:
    return [cell.record.cell.id for cell in found.cells if is_outdated_cell(cell.record)]


@dataclass(frozen=True, slots=True)
class RedoStep:
    """One cell to redo. `needed_by`: every cell that rests on it; none of them may be DONE or running by then."""

    cell: str
    needed_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RedoPlan:
    steps: tuple[RedoStep, ...]  # what rests on a cell comes before it: a DONE cell never rests on a superseded one
    followers: tuple[str, ...]  # nobody named them; they rest on what is redone
    refused: Mapping[str, str]  # named cells that can't be redone, and why
    overwritten: tuple[str, ...]  # cells whose job writes to one and the same place again


def plan_redo(state: CampaignState, names: Sequence[str]) -> RedoPlan:
    """Cells that are not DONE are in it, too: the fold tells why they can't be redone."""
    behind = _followers_of_cells(state)
    refused = {name: why for name in names if (why := _describe_running_followers(behind(name), state))}
    chosen = [name for name in names if name not in refused]
    steps: dict[str, RedoStep] = {}

    def add(name: str) -> None:
        following = behind(name)
        for follower in following:
            if follower not in steps and state.cells[follower].done:
                add(follower)
        steps.setdefault(name, RedoStep(name, following))

    for name in chosen:
        add(name)
    followers = tuple(name for name in state.cells if name in steps and name not in chosen)
    overwritten = tuple(name for name in steps if _overwrites_output(state.cells[name], state))
    return RedoPlan(tuple(steps.values()), followers, refused, overwritten)


def _followers_of_cells(state: CampaignState) -> Callable[[str], tuple[str, ...]]:
    """A function: every cell that needs the given one, directly or through others, in declared order."""
    needs = state.needs
    direct: dict[str, list[str]] = {}
    for name, needed in needs.items():
        for need in needed:
            direct.setdefault(need, []).append(name)
    position = {name: at for at, name in enumerate(state.cells)}
    known: dict[str, tuple[str, ...]] = {}

    def behind(name: str) -> tuple[str, ...]:
        if name not in known:
            found = {each for follower in direct.get(name, ()) for each in (follower, *behind(follower))}
            known[name] = tuple(sorted(found, key=position.__getitem__))
        return known[name]

    return behind


def _describe_running_followers(followers: Sequence[str], state: CampaignState) -> str:
    running = [name for name in followers if state.cells[name].open]
    return phrase("campaign.follower_runs", cells=", ".join(running[:3])) if running else ""


def _overwrites_output(record: CellRecord, state: CampaignState) -> bool:
    job: Job = state.job(record.cell.job)
    return not ("{out}" in job.output or "{attempt}" in job.output or glob.has_magic(job.output))
