"""What a campaign would do now, whether or not it was ever started. Changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from muster.app.campaign.campaign_code import CodeReader
from muster.app.campaign.campaign_handle import CAMPAIGN_FILE_NAME, CampaignHandle
from muster.app.campaign.campaign_status import (
    ControllerStatus,
    Status,
    build_status,
    next_code_as_json,
    reason_code_as_json,
)
from muster.app.campaign.cell_definitions import DefinitionChanges, find_definition_changes, hash_definitions
from muster.app.campaign.load_campaign import (
    count_usable_slots,
    find_local_mistakes,
    find_misfits,
    read_campaign_file,
)
from muster.app.campaign.observe_campaign import observe_campaign
from muster.app.campaign.preflight.config_warnings import warn_of_long_periods
from muster.app.campaign.unknown_runs import add_unknown_runs, describe_unknown_runs
from muster.engine.plan.scheduling import RemainingEstimate, estimate_remaining
from muster.engine.plan.up_preview import SkippedCell, UpPreview, preview_up, state_as_declared
from muster.engine.ports.clock import SystemClock
from muster.files.process_identity import read_boot_id
from muster.files.state_folder import has_started_state
from muster.model.campaign_location import NEVER_MOVED
from muster.model.errors import Mistake
from muster.spec.read_yaml import locate_mistakes


@dataclass(frozen=True, slots=True)
class PlanPreview:
    status: Status
    outlook: UpPreview
    changes: DefinitionChanges  # what `up` would take in; empty before the first time
    estimate: RemainingEstimate
    slots: int
    started: bool  # whether the campaign was ever taken in
    warnings: tuple[Mistake, ...]
    mistakes: int = 0  # that `check` finds, and that keep `up` from starting


def build_plan_preview(root: Path) -> PlanPreview:
    found = read_campaign_file(root / CAMPAIGN_FILE_NAME)
    desk = CampaignHandle.open(root) if has_started_state(root) else None
    origin = desk.store.origin() if desk else NEVER_MOVED
    hashed = hash_definitions(found.campaign, str(root), CodeReader(found.campaign, root), origin)
    before = desk.store.load() if desk else None
    state = state_as_declared(found.campaign, hashed, before)
    if desk and before:
        status = observe_campaign(desk, state)
    else:
        clock = SystemClock()
        status = build_status(
            state, {}, ControllerStatus(False), wall=clock.wall(), boot=clock.boot(), boot_id=read_boot_id()
        )
    status = add_unknown_runs(root, status)
    slots = count_usable_slots(found.campaign)
    noticed = [*find_local_mistakes(found, root), *find_misfits(found.campaign, before)]
    return PlanPreview(
        status,
        without_unknown_runs(preview_up(state, status.spending.purse if status.spending else None), status),
        find_definition_changes(before, hashed) if before else DefinitionChanges(),
        estimate_remaining(state, slots),
        slots,
        before is not None,
        (
            *found.warnings,
            *locate_mistakes(warn_of_long_periods(found.campaign, str(root), state.declared), found.text),
        ),
        sum(each.level in ("error", "failure") for each in noticed),
    )


def without_unknown_runs(found: UpPreview, status: Status) -> UpPreview:
    """`up` starts no cell whose run lives without being known to the state."""
    told = {cell.record.cell.id: cell for cell in status.cells}
    names = describe_unknown_runs(status.cells)
    start = [item for item in found.would_run if item.cell not in names]
    left = [
        SkippedCell(item.cell, told[item.cell].verdict.state, told[item.cell].verdict.reason, told[item.cell].next)
        for item in found.would_run
        if item.cell in names
    ]
    return UpPreview(tuple(replace(item, position=at) for at, item in enumerate(start, 1)), (*left, *found.others))


def plan_as_json(found: PlanPreview) -> dict[str, Any]:
    expected, what, state = found.estimate, found.changes, found.status.state
    return {
        "muster": 1,
        "campaign": state.campaign.name,
        "as_of": found.status.as_of,
        "started": found.started,
        "declared": len(found.status.cells),
        "counts": dict(found.status.counts),
        "would_run": [
            {"cell": i.cell, "why": i.why, **reason_code_as_json(i.why), "position": i.position}
            for i in found.outlook.would_run
        ],
        "not": [_other_cell_as_json(other, found) for other in found.outlook.others],
        "mistakes": found.mistakes,
        "changes": {
            "new": what.new,
            "gone": what.gone,
            "changed": what.changed,
            "changed_done": what.changed_done,
            "code_changed": what.code_changed,
        },
        "estimate": {
            "cells": expected.cells,
            "slots": found.slots,
            "slot_hours": _seconds_as_hours(expected.slot_seconds),
            "wall_hours": _seconds_as_hours(expected.wall_seconds),
            "money": expected.money,
            "money_range": expected.money_range,
            "spent": found.status.spending.spent if found.status.spending else None,
            "budget": state.campaign.money.budget if state.campaign.money else None,
            "currency": state.campaign.money.currency if state.campaign.money else None,
            "basis": expected.basis,
        },
    }


def _other_cell_as_json(other: SkippedCell, found: PlanPreview) -> dict[str, Any]:
    """An open attempt was looked at; everything else stands as planned."""
    if other.verdict is None:
        now = next(cell for cell in found.status.cells if cell.record.cell.id == other.cell)
        return {
            "cell": other.cell,
            "verdict": str(now.verdict.state),
            "reason": now.verdict.reason,
            **reason_code_as_json(now.verdict.reason),
            "next": now.next,
            **next_code_as_json(now.next),
            "later": False,
        }
    return {
        "cell": other.cell,
        "verdict": str(other.verdict),
        "reason": other.reason,
        **reason_code_as_json(other.reason),
        "next": other.next,
        **next_code_as_json(other.next),
        "later": other.later,
    }


def _seconds_as_hours(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds / 3600, 4)
