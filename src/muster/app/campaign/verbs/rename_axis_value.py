"""`muster rename`: gives a value of an axis another name, first in the record, where one decision moves its cells,
then in `campaign.yaml`.

Whoever is killed in between runs the command again: the record knows what was done, and the file is brought up to it.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.cell_definitions import find_missing_config_files, renamed_definitions
from muster.app.campaign.load_campaign import LoadedCampaign, read_campaign_file, with_current_variants
from muster.app.campaign.run_configs import write_run_configs
from muster.app.campaign.verbs.await_attempts import AttemptEndWaiter
from muster.files.atomic_write import write_atomically
from muster.files.campaign_snapshots import load_campaign_snapshot, save_snapshot
from muster.model.campaign import Campaign
from muster.model.campaign_state import CampaignState
from muster.model.cell import list_campaign_cells
from muster.model.errors import MusterError, UsageError
from muster.model.variant import VARIANT_AXIS
from muster.spec.rename_in_text import rename_value_in_text
from muster.text.phrases import phrase


@dataclass(frozen=True, slots=True)
class RenameResult:
    axis: str
    old: str
    new: str
    cells: dict[str, str]  # new name -> the old one
    edited: bool  # campaign.yaml was
    already: bool = False  # the record had it; only the file was behind, or nothing
    passed_by: tuple[str, ...] = ()  # jobs whose command is given the name: later runs get the new one


@dataclass(frozen=True, slots=True)
class _ValueNames:
    axis: str
    old: str
    new: str

    def values(self, campaign: Campaign) -> list[str]:
        return [value.name for value in campaign.axis(self.axis).values]

    def turned(self) -> _ValueNames:
        return _ValueNames(self.axis, self.new, self.old)

    def over(self, text: str) -> str:
        return rename_value_in_text(text, self.axis, self.old, self.new)


def rename_axis_value(desk: CampaignHandle, axis: str, old: str, new: str, reason: str) -> RenameResult:
    AttemptEndWaiter(desk).record_ended()
    state = desk.load()
    names = _ValueNames(axis, old, new)
    _refuse_unknown_axis(state, axis)
    taken = load_campaign_snapshot(desk.state, state.campaign_hash)
    known = names.values(state.campaign)
    if old in known and new in known:
        raise UsageError(phrase("campaign.axis_has_value_already", axis=axis, new=new), where=str(desk.file))
    edited = _edited_campaign_text(desk, state, names)
    moved = _renamed_cells(state, names)
    if old not in known and new in known and moved and not _has_cells_of_old_name(state, names):
        if edited is not None:
            _write_campaign_file(desk.file, edited)
        return RenameResult(axis, old, new, moved, edited is not None, already=True)
    before, after = _campaigns_before_and_after(desk, state, names, taken.text, known)
    _refuse_missing_configs(before.campaign, after.campaign, desk)
    _record_rename(desk, state, names, before, after, reason)
    if edited is not None:
        _write_campaign_file(desk.file, edited)
    passed_by = _jobs_that_take_axis(after.campaign, axis)
    return RenameResult(axis, old, new, _renamed_cells(desk.load(), names), edited is not None, passed_by=passed_by)


def _jobs_that_take_axis(campaign: Campaign, axis: str) -> tuple[str, ...]:
    named = f"{{{axis}}}"
    return tuple(
        job.name for job in campaign.jobs if any(named in word for word in (*job.command, *(job.resume or ())))
    )


def _refuse_unknown_axis(state: CampaignState, axis: str) -> None:
    axes = [each.name for each in state.campaign.axes]
    if axis not in axes:
        near = difflib.get_close_matches(axis, axes, 1)
        hint = (
            phrase("campaign.did_you_mean", near=near[0]) if near else phrase("campaign.axes_are", axes=", ".join(axes))
        )
        raise UsageError(phrase("campaign.no_such_axis", axis=axis), hint=hint)
    if axis == VARIANT_AXIS and state.campaign.loop:
        raise UsageError(phrase("campaign.loop_variants_keep_names"))


def _campaigns_before_and_after(
    desk: CampaignHandle, state: CampaignState, names: _ValueNames, text: str, known: list[str]
) -> tuple[LoadedCampaign, LoadedCampaign]:
    """As it was taken in, and the same with the new name. If `up` has taken the new name in already: the other way."""
    if names.old in known:
        return _load_campaign_text(desk, state, text), _load_campaign_text(desk, state, names.over(text))
    if names.new in known and _has_cells_of_old_name(state, names):
        return _load_campaign_text(desk, state, names.turned().over(text)), _load_campaign_text(desk, state, text)
    near = difflib.get_close_matches(names.old, known, 1)
    hint = (
        phrase("campaign.did_you_mean", near=near[0])
        if near
        else phrase("campaign.values_are", known=", ".join(known[:10]))
    )
    raise UsageError(phrase("campaign.axis_no_value", axis=names.axis, old=names.old), hint=hint)


def _load_campaign_text(desk: CampaignHandle, state: CampaignState, text: str) -> LoadedCampaign:
    return with_current_variants(read_campaign_file(desk.file, text), state)


def _has_cells_of_old_name(state: CampaignState, names: _ValueNames) -> bool:
    """Cells of the old name have run and are no longer declared: it was renamed in the file, and `up` took that in."""
    return any(
        record.attempts and (names.axis, names.old) in ((axis, value.name) for axis, value in record.cell.values)
        for record in state.cells.values()
        if not record.declared
    )


def _renamed_cells(state: CampaignState, names: _ValueNames) -> dict[str, str]:
    """Cells that have the new name, and the old one that they had before."""
    found = {}
    for record in state.cells.values():
        if (names.axis, names.new) in ((axis, value.name) for axis, value in record.cell.values) and record.formerly:
            found[record.cell.id] = record.formerly[-1]
    return found


def _edited_campaign_text(desk: CampaignHandle, state: CampaignState, names: _ValueNames) -> str | None:
    """The file as it must become; None: it has the new name already. Mistakes in either are told."""
    try:
        text = desk.file.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(phrase("campaign.file_unreadable", reason=error), where=str(desk.file)) from None
    campaign = read_campaign_file(desk.file, text).campaign
    values = names.values(campaign) if any(axis.name == names.axis for axis in campaign.axes) else []
    if names.old in values and names.new in values:
        what = phrase("campaign.file_has_both_values", old=names.old, new=names.new, axis=names.axis)
        raise UsageError(what, where=str(desk.file), hint=phrase("campaign.keep_one"))
    if names.new in values:
        return None
    if names.old not in values:
        if names.old in names.values(state.campaign):
            what = phrase("campaign.file_has_neither_value", old=names.old, new=names.new, axis=names.axis)
            raise UsageError(what, where=str(desk.file), hint=phrase("campaign.put_one_back_or_up"))
        return None
    edited = names.over(text)
    read_campaign_file(desk.file, edited)
    return edited


def _refuse_missing_configs(before: Campaign, after: Campaign, desk: CampaignHandle) -> None:
    missing = find_missing_config_files(before, after, str(desk.root))
    if missing:
        old, new = next(iter(missing.items()))
        raise UsageError(
            phrase("campaign.renamed_config_missing", new=new),
            where=str(desk.file),
            hint=phrase("campaign.rename_file_first_mv", old=old, new=new),
        )


def _record_rename(
    desk: CampaignHandle,
    state: CampaignState,
    names: _ValueNames,
    before: LoadedCampaign,
    after: LoadedCampaign,
    reason: str,
) -> None:
    same = renamed_definitions(before.campaign, after.campaign, str(desk.root), desk.store.origin())
    name = state.campaign_hash
    if names.old in names.values(state.campaign):
        write_run_configs(after.configs, after.originals(desk.file))
        name = save_snapshot(desk.state, after.text, after.campaign, _hashes_after_rename(state, before, after, same))
    data = {
        "axis": names.axis,
        "old": names.old,
        "new": names.new,
        "after": state.campaign_hash,
        "hash": name,
        "same": {cell: list(pair) for cell, pair in same.items()},
    }
    (refused,) = desk.decide([desk.person("rename", reason, data=data)])
    if refused:
        raise MusterError(
            phrase("campaign.not_renamed", old=names.old, reason=refused),
            where=str(desk.root),
            hint=phrase("campaign.nothing_changed"),
        )


def _hashes_after_rename(
    state: CampaignState, before: LoadedCampaign, after: LoadedCampaign, same: dict[str, tuple[str, str]]
) -> dict[str, str]:
    """As they were, but for the definition of renamed cells: a rename takes neither code nor config files in."""
    found = {}
    for old, new in zip(list_campaign_cells(before.campaign), list_campaign_cells(after.campaign), strict=True):
        record = state.cells.get(old.id)
        was, dash, code = record.hash.partition("-") if record else ("", "", "")
        ran, is_ = same.get(new.id, (was, was))
        found[new.id] = f"{is_ if was == ran else was}{dash}{code}"
    return found


def _write_campaign_file(file: Path, text: str) -> None:
    """Whole or not at all; a link stays one."""
    target = file.resolve()
    try:
        write_atomically(target, text, mode=target.stat().st_mode & 0o7777, exact=True, sync=True)
    except OSError as error:
        raise MusterError(
            phrase("campaign.renamed_file_unwritable", reason=error.strerror or error),
            where=str(target),
            hint=phrase("campaign.say_same_again"),
        ) from None


def rename_as_json(done: RenameResult) -> dict[str, object]:
    return {
        "muster": 1,
        "axis": done.axis,
        "old": done.old,
        "new": done.new,
        "cells": [{"cell": cell, "formerly": old} for cell, old in done.cells.items()],
        "edited": done.edited,
        "already": done.already,
        "passed_by": list(done.passed_by),
    }
