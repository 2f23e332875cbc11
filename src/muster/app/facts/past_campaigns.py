"""Which campaign was in force when each attempt began, by the decision log; and so whether the decision was declared
before its results were seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import PurePosixPath
from typing import Any

from muster.engine.ports.store import LoggedDecision
from muster.model.campaign import AxisValue, Campaign, DeclaredDecision, Job
from muster.model.cell import list_campaign_cells


@dataclass(frozen=True, slots=True)
class CampaignSnapshot:
    """A campaign as it was taken in, with the hash of each cell's definition."""

    campaign: Campaign
    hashes: Mapping[str, str] = field(default_factory=dict)
    root: str = ""  # the campaign's folder at that time; "": not known
    former: Mapping[tuple[str, str], str] = field(default_factory=dict)  # (axis, name today) -> the name it had then


LoadSnapshot = Callable[[str], CampaignSnapshot | None]  # of a campaign's hash; None: it can't be read any more


@dataclass(frozen=True, slots=True)
class RenamedValue:
    """A rename, by the data of its decision: an older campaign is looked at as if it had had the new name."""

    data: Mapping[str, Any]

    def over(self, at: CampaignSnapshot) -> CampaignSnapshot:
        old, campaign = at.campaign, self._campaign(at.campaign)
        pairs = zip(list_campaign_cells(old), list_campaign_cells(campaign), strict=True)
        hashes = {is_.id: self._hash(was.id, is_.id, at) for was, is_ in pairs}
        return replace(at, campaign=campaign, hashes=hashes, former=self._former(at))

    def _former(self, at: CampaignSnapshot) -> dict[tuple[str, str], str]:
        axis, old, new = (str(self.data[key]) for key in ("axis", "old", "new"))
        known = {(a, new if (a, name) == (axis, old) else name): then for (a, name), then in at.former.items()}
        had = any(a.name == axis and any(value.name == old for value in a.values) for a in at.campaign.axes)
        return {(axis, new): old, **known} if had else known

    def _hash(self, was: str, is_: str, at: CampaignSnapshot) -> str:
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

    def _decision(self, campaign: Campaign) -> DeclaredDecision | None:
        """A procedure that names the value is still the one that was declared."""
        axis, old, new = (str(self.data[key]) for key in ("axis", "old", "new"))
        told = campaign.decision
        if told and axis == "config" and told.baseline == old:
            return replace(told, baseline=new)
        if told and axis == "split" and told.primary.split == old:
            told = replace(told, primary=replace(told.primary, split=new))
        if told and axis == "split" and told.limit and told.limit.split == old:
            told = replace(told, limit=replace(told.limit, split=new))
        return told


@dataclass(frozen=True, slots=True)
class BegunAttempt:
    """An attempt that was claimed or adopted."""

    cell: str
    attempt: int
    campaign: str  # the hash of the one that was in force


@dataclass(frozen=True, slots=True)
class PastCampaigns:
    begun: tuple[BegunAttempt, ...] = ()  # in the order of the log
    snapshots: LoadSnapshot = lambda _: None

    def in_force(self) -> dict[tuple[str, int], str]:
        return {(each.cell, each.attempt): each.campaign for each in self.begun}


def read_past_campaigns(events: Iterable[LoggedDecision], load: LoadSnapshot) -> PastCampaigns:
    """A decision that was refused is none."""
    current = ""
    roots: dict[str, str] = {}
    begun: list[BegunAttempt] = []
    renames: list[tuple[frozenset[str], RenamedValue]] = []  # with the campaigns that came before each
    for event in events:
        decision = event.decision
        if event.void:
            continue
        if decision.kind == "rename":
            renames.append((frozenset(roots), RenamedValue(decision.data)))
        if decision.kind in ("campaign", "round", "rename") and decision.data.get("hash"):
            before = roots.get(current, "")
            current = str(decision.data["hash"])
            roots[current] = _root_of_env_file(str(decision.data.get("env_file") or "")) or before
        elif decision.kind in ("start", "adopt") and decision.cell is not None and decision.attempt is not None:
            begun.append(BegunAttempt(decision.cell, decision.attempt, current))

    @cache
    def snapshot(name: str) -> CampaignSnapshot | None:
        found = load(name)
        for _, renamed in (each for each in renames if found and name in each[0]):
            found = renamed.over(found) if found else None
        return found and replace(found, root=found.root or roots.get(name, ""))

    return PastCampaigns(tuple(begun), snapshot)


def _root_of_env_file(env_file: str) -> str:
    """Of `ROOT/.muster/env/HASH.json`."""
    path = PurePosixPath(env_file)
    return str(path.parents[2]) if path.is_absolute() and path.parts[-3:-1] == (".muster", "env") else ""


def count_done_at_decision_change(campaign: Campaign, events: Iterable[LoggedDecision], past: PastCampaigns) -> int:
    """Cells that had shown their results when the decision became what it is now; 0: none had.

    `past` looks at a value that was renamed as if it had always had its new name.
    """
    if campaign.decision is None:
        return 0
    metrics = set(campaign.decision.metrics)
    jobs = {job.name for job in campaign.jobs if metrics & {result.name for result in job.results}}
    now, shown, changed, same = _ways_to_decide(campaign, metrics), 0, 0, False
    for event in events:
        decision = event.decision
        if event.void or decision.kind not in ("settle", "adopt", "campaign"):
            continue
        if decision.kind == "campaign":
            before = past.snapshots(str(decision.data.get("hash")))
            was, same = same, before is not None and _ways_to_decide(before.campaign, metrics) == now
            changed = shown if same and not was else changed
        elif (decision.cell or "").partition("/")[0] in jobs:
            shown += decision.data.get("outcome", {}).get("verdict") == "DONE"
    return changed if same else shown


def _ways_to_decide(campaign: Campaign, metrics: set[str]) -> tuple[Any, ...]:
    """What decides, and where the numbers that it decides on are read from."""
    read = [(job.name, result) for job in campaign.jobs for result in job.results if result.name in metrics]
    return declared_procedure(campaign), sorted(read, key=lambda each: (each[0], each[1].name))


def declared_procedure(campaign: Campaign) -> DeclaredDecision | None:
    """What decides; factors and notes may be added at any time."""
    return campaign.decision and replace(campaign.decision, factors={}, notes=())
