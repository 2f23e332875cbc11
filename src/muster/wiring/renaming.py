"""Renames a value of an axis: in the record first, where one decision moves its cells, then in campaign.yaml.

Whoever is killed in between says it again: the record knows that it was done, and the file is brought up to it.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from muster.acts.take_in import missing_config_files, renamed_definitions
from muster.domain.campaign import Campaign
from muster.domain.cell import all_cells
from muster.domain.errors import MusterError, UsageError
from muster.domain.state import CampaignState
from muster.domain.variants import AXIS
from muster.ports.write_files import write_atomically
from muster.spec.renaming import rename_value
from muster.store import campaigns
from muster.wiring.config_files import write_configs
from muster.wiring.desk import Desk
from muster.wiring.taking import Read, read, up_to_date


@dataclass(frozen=True, slots=True)
class Renaming:
    axis: str
    old: str
    new: str
    cells: dict[str, str]  # new name -> the old one
    edited: bool  # campaign.yaml was
    already: bool = False  # the record had it; only the file was behind, or nothing
    passed_by: tuple[str, ...] = ()  # jobs whose command is given the name: later runs get the new one


@dataclass(frozen=True, slots=True)
class _Names:
    axis: str
    old: str
    new: str

    def values(self, campaign: Campaign) -> list[str]:
        return [value.name for value in campaign.axis(self.axis).values]

    def turned(self) -> _Names:
        return _Names(self.axis, self.new, self.old)

    def over(self, text: str) -> str:
        return rename_value(text, self.axis, self.old, self.new)


def rename(desk: Desk, axis: str, old: str, new: str, reason: str) -> Renaming:
    state = desk.load()
    names = _Names(axis, old, new)
    _refuse_axis(state, axis)
    taken = campaigns.taken(desk.state, state.campaign_hash)
    known = names.values(state.campaign)
    if old in known and new in known:
        raise UsageError(f"the axis {axis} has a value {new!r} already; nothing was changed", where=str(desk.file))
    edited = _edited_file(desk, state, names)
    moved = _moved(state, names)
    if old not in known and new in known and moved and not _left_behind(state, names):
        if edited is not None:
            _write(desk.file, edited)
        return Renaming(axis, old, new, moved, edited is not None, already=True)
    before, after = _campaigns(desk, state, names, taken.text, known)
    _refuse_missing_files(before.campaign, after.campaign, desk)
    _decide(desk, state, names, before, after, reason)
    if edited is not None:
        _write(desk.file, edited)
    passed_by = _jobs_that_pass(after.campaign, axis)
    return Renaming(axis, old, new, _moved(desk.load(), names), edited is not None, passed_by=passed_by)


def _jobs_that_pass(campaign: Campaign, axis: str) -> tuple[str, ...]:
    named = f"{{{axis}}}"
    return tuple(
        job.name for job in campaign.jobs if any(named in word for word in (*job.command, *(job.resume or ())))
    )


def _refuse_axis(state: CampaignState, axis: str) -> None:
    axes = [each.name for each in state.campaign.axes]
    if axis not in axes:
        near = difflib.get_close_matches(axis, axes, 1)
        hint = f"did you mean {near[0]}?" if near else f"axes are {', '.join(axes)}"
        raise UsageError(f"there is no axis {axis!r}", hint=hint)
    if axis == AXIS and state.campaign.loop:
        raise UsageError("variants of a loop are named by what is in their config, and can't be renamed")


def _campaigns(desk: Desk, state: CampaignState, names: _Names, text: str, known: list[str]) -> tuple[Read, Read]:
    """As it was taken in, and the same with the new name. If `up` has taken the new name in already: the other way."""
    if names.old in known:
        return _parsed(desk, state, text), _parsed(desk, state, names.over(text))
    if names.new in known and _left_behind(state, names):
        return _parsed(desk, state, names.turned().over(text)), _parsed(desk, state, text)
    near = difflib.get_close_matches(names.old, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"values are {', '.join(known[:10])}"
    raise UsageError(f"the axis {names.axis} has no value {names.old!r}", hint=hint)


def _parsed(desk: Desk, state: CampaignState, text: str) -> Read:
    return up_to_date(read(desk.file, text), state)


def _left_behind(state: CampaignState, names: _Names) -> bool:
    """Cells of the old name have run and are no longer declared: it was renamed in the file, and `up` took that in."""
    return any(
        record.attempts and (names.axis, names.old) in ((axis, value.name) for axis, value in record.cell.values)
        for record in state.cells.values()
        if not record.declared
    )


def _moved(state: CampaignState, names: _Names) -> dict[str, str]:
    """Cells that have the new name, and the old one that they had before."""
    found = {}
    for record in state.cells.values():
        if (names.axis, names.new) in ((axis, value.name) for axis, value in record.cell.values) and record.formerly:
            found[record.cell.id] = record.formerly[-1]
    return found


def _edited_file(desk: Desk, state: CampaignState, names: _Names) -> str | None:
    """The file as it must become; None: it has the new name already. Mistakes in either are told."""
    try:
        text = desk.file.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"campaign.yaml can't be read: {error}", where=str(desk.file)) from None
    campaign = read(desk.file, text).campaign
    values = names.values(campaign) if any(axis.name == names.axis for axis in campaign.axes) else []
    if names.old in values and names.new in values:
        what = f"campaign.yaml has both {names.old!r} and {names.new!r} on the axis {names.axis}; nothing was changed"
        raise UsageError(what, where=str(desk.file), hint="keep one of them")
    if names.new in values:
        return None
    if names.old not in values:
        if names.old in names.values(state.campaign):
            what = f"campaign.yaml has neither {names.old!r} nor {names.new!r} on the axis {names.axis}"
            raise UsageError(what, where=str(desk.file), hint="put one of them back, or run `muster up` first")
        return None
    edited = names.over(text)
    read(desk.file, edited)
    return edited


def _refuse_missing_files(before: Campaign, after: Campaign, desk: Desk) -> None:
    missing = missing_config_files(before, after, str(desk.root))
    if missing:
        old, new = next(iter(missing.items()))
        raise UsageError(
            f"the command would name {new}, which is not there; nothing was changed", where=str(desk.file),
            hint=f"rename the file first: mv {old} {new}",
        )  # fmt: skip


def _decide(desk: Desk, state: CampaignState, names: _Names, before: Read, after: Read, reason: str) -> None:
    same = renamed_definitions(before.campaign, after.campaign, str(desk.root), desk.store.origin())
    name = state.campaign_hash
    if names.old in names.values(state.campaign):
        write_configs(after.configs, after.originals(desk.file))
        name = campaigns.save(desk.state, after.text, after.campaign, _hashes(state, before, after, same))
    data = {"axis": names.axis, "old": names.old, "new": names.new, "after": state.campaign_hash, "hash": name,
            "same": {cell: list(pair) for cell, pair in same.items()}}  # fmt: skip
    (refused,) = desk.decide([desk.person("rename", reason, data=data)])
    if refused:
        raise MusterError(f"{names.old} was not renamed: {refused}", where=str(desk.root), hint="nothing was changed")


def _hashes(state: CampaignState, before: Read, after: Read, same: dict[str, tuple[str, str]]) -> dict[str, str]:
    """As they were, but for the definition of renamed cells: a rename takes neither code nor config files in."""
    found = {}
    for old, new in zip(all_cells(before.campaign), all_cells(after.campaign), strict=True):
        record = state.cells.get(old.id)
        was, dash, code = record.hash.partition("-") if record else ("", "", "")
        ran, is_ = same.get(new.id, (was, was))
        found[new.id] = f"{is_ if was == ran else was}{dash}{code}"
    return found


def _write(file: Path, text: str) -> None:
    """Whole or not at all; a link stays one."""
    target = file.resolve()
    try:
        write_atomically(target, text, mode=target.stat().st_mode & 0o7777, exact=True, sync=True)
    except OSError as error:
        raise MusterError(
            f"the record has the new name, and campaign.yaml could not be written: {error.strerror or error}",
            where=str(target), hint="say the same again once it can be written",
        ) from None  # fmt: skip
