"""DONE cells that are run again, and with them the DONE cells that rest on them. Pure."""

from __future__ import annotations

import glob
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from muster.domain.attempt import CellRecord
from muster.domain.campaign import Job
from muster.domain.cell import needed_cells
from muster.domain.state import CampaignState


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
    behind = _followers(state)
    refused = {name: why for name in names if (why := _in_use(behind(name), state))}
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
    overwritten = tuple(name for name in steps if _overwrites(state.cells[name], state))
    return RedoPlan(tuple(steps.values()), followers, refused, overwritten)


def _followers(state: CampaignState) -> Callable[[str], tuple[str, ...]]:
    """A function: every cell that needs the given one, directly or through others, in declared order."""
    needs = needed_cells(state.campaign, [record.cell for record in state.declared])
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


def _in_use(followers: Sequence[str], state: CampaignState) -> str:
    running = [name for name in followers if state.cells[name].open]
    return f"{', '.join(running[:3])} runs on it; stop it first, or wait for its end" if running else ""


def _overwrites(record: CellRecord, state: CampaignState) -> bool:
    job: Job = state.job(record.cell.job)
    return not ("{out}" in job.output or "{attempt}" in job.output or glob.has_magic(job.output))
