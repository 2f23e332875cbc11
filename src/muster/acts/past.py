"""What was declared when: the campaign that was in force as each attempt began, by the decision log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import PurePosixPath
from typing import Any

from muster.domain.campaign import AxisValue, Campaign, Job
from muster.domain.cell import all_cells
from muster.ports.store import Event


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A campaign as it was taken in, with the hash of each cell's definition."""

    campaign: Campaign
    hashes: Mapping[str, str] = field(default_factory=dict)
    root: str = ""  # the campaign's folder at that time; "": not known
    former: Mapping[tuple[str, str], str] = field(default_factory=dict)  # (axis, name today) -> the name it had then


Load = Callable[[str], Snapshot | None]  # of a campaign's hash; None: it can't be read any more


@dataclass(frozen=True, slots=True)
class Renamed:
    """A rename, by the data of its decision: an older campaign is looked at as if it had had the new name."""

    data: Mapping[str, Any]

    def over(self, at: Snapshot) -> Snapshot:
        old, campaign = at.campaign, self._campaign(at.campaign)
        pairs = zip(all_cells(old), all_cells(campaign), strict=True)
        hashes = {is_.id: self._hash(was.id, is_.id, at) for was, is_ in pairs}
        return replace(at, campaign=campaign, hashes=hashes, former=self._former(at))

    def _former(self, at: Snapshot) -> dict[tuple[str, str], str]:
        axis, old, new = (str(self.data[key]) for key in ("axis", "old", "new"))
        known = {(a, new if (a, name) == (axis, old) else name): then for (a, name), then in at.former.items()}
        had = any(a.name == axis and any(value.name == old for value in a.values) for a in at.campaign.axes)
        return {(axis, new): old, **known} if had else known

    def _hash(self, was: str, is_: str, at: Snapshot) -> str:
        definition, dash, code = at.hashes.get(was, "").partition("-")
        old, new = self.data["same"].get(is_, ("", ""))
        return f"{new if definition == old else definition}{dash}{code}"

    def _campaign(self, campaign: Campaign) -> Campaign:
        axis, old, new = (str(self.data[key]) for key in ("axis", "old", "new"))

        def value(each: AxisValue) -> AxisValue:
            return replace(each, name=new, value=new) if each.name == old else each

        def job(each: Job) -> Job:
            points = tuple({a: new if (a, n) == (axis, old) else n for a, n in p.items()} for p in each.exclude)
            edited = {
                ", ".join(f"{axis} {new}" if part == f"{axis} {old}" else part for part in key.split(", ")): path
                for key, path in each.configs.items()
            }
            return replace(each, exclude=points, configs=edited)

        axes = tuple(replace(a, values=tuple(map(value, a.values))) if a.name == axis else a for a in campaign.axes)
        return replace(campaign, axes=axes, jobs=tuple(map(job, campaign.jobs)), decision=self._decision(campaign))

    def _decision(self, campaign: Campaign) -> Mapping[str, Any] | None:
        """A procedure that names the value is still the one that was declared."""
        axis, old, new = (str(self.data[key]) for key in ("axis", "old", "new"))
        told = dict(campaign.decision or {})
        if axis == "config" and told.get("baseline") == old:
            told["baseline"] = new
        for part in ("primary", "limit"):
            if axis == "split" and (told.get(part) or {}).get("split") == old:
                told[part] = {**told[part], "split": new}
        return told if campaign.decision else campaign.decision


@dataclass(frozen=True, slots=True)
class Begun:
    """An attempt that was claimed or adopted."""

    cell: str
    attempt: int
    campaign: str  # the hash of the one that was in force


@dataclass(frozen=True, slots=True)
class Past:
    begun: tuple[Begun, ...] = ()  # in the order of the log
    snapshots: Load = lambda _: None

    def in_force(self) -> dict[tuple[str, int], str]:
        return {(each.cell, each.attempt): each.campaign for each in self.begun}


def past_of(events: Iterable[Event], load: Load) -> Past:
    """A decision that was refused is none."""
    current = ""
    roots: dict[str, str] = {}
    begun: list[Begun] = []
    renames: list[tuple[frozenset[str], Renamed]] = []  # with the campaigns that came before each
    for event in events:
        decision = event.decision
        if event.void:
            continue
        if decision.kind == "rename":
            renames.append((frozenset(roots), Renamed(decision.data)))
        if decision.kind in ("campaign", "round", "rename") and decision.data.get("hash"):
            before = roots.get(current, "")
            current = str(decision.data["hash"])
            roots[current] = _root(str(decision.data.get("env_file") or "")) or before
        elif decision.kind in ("start", "adopt") and decision.cell is not None and decision.attempt is not None:
            begun.append(Begun(decision.cell, decision.attempt, current))

    @cache
    def snapshot(name: str) -> Snapshot | None:
        found = load(name)
        for _, renamed in (each for each in renames if found and name in each[0]):
            found = renamed.over(found) if found else None
        return found and replace(found, root=found.root or roots.get(name, ""))

    return Past(tuple(begun), snapshot)


def _root(env_file: str) -> str:
    """Of `ROOT/.muster/env/HASH.json`."""
    path = PurePosixPath(env_file)
    return str(path.parents[2]) if path.is_absolute() and path.parts[-3:-1] == (".muster", "env") else ""
