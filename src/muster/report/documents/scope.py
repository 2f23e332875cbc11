"""What the text around a number says about it: which quantities its names allow, and what forbids to bind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from muster.domain.wording import counted
from muster.report.documents import aliases
from muster.report.documents.names import Names
from muster.report.documents.quantity import Group

FIELDS = ("all_configs", "splits", "metrics")
NEVER = 99  # digits: the value alone is never enough


@dataclass(frozen=True, slots=True)
class Scope:
    groups: tuple[Group, ...] = ()  # what the names near allow
    rivals: tuple[Group, ...] = ()  # what they would allow, were only the certain names believed
    exact: bool = False  # the place alone tells which one it is
    forbidden: str = ""  # why it must not be bound
    ignored: bool = False  # a name or a count: no result
    least: int = NEVER  # digits that make the value enough
    stat: str = ""  # sd or n, where the text says so
    seed: str = ""
    metric: bool = False  # a metric is named near
    percent: bool = False
    spread: str = ""  # what ± stands for, where the text says so: sd or other
    loose: bool = False  # several configs are named near, or none for certain
    former: bool = False  # the text speaks of a former state
    note: str = ""


def union(names: Sequence[Names], kind: str) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for each in names:
        found |= getattr(each, kind)
    return found


def first(above: Sequence[Names], kind: str) -> frozenset[str]:
    """From the nearest that names one. A part of a config's name counts in its own sentence or cell only."""
    kind = "configs" if kind == "all_configs" else kind
    return next((found for each in above if (found := getattr(each, kind))), frozenset())


def sure(above: Sequence[Names]) -> frozenset[str]:
    """The config that the nearest of these names, if it names one and every word of it is understood."""
    for each in above:
        if each.all_configs:
            return each.configs if len(each.all_configs) == 1 and each.understood else frozenset()
    return frozenset()


def stat_of(stats: frozenset[str]) -> str:
    return "sd" if stats == {"sd"} else ""


def spread_of(texts: Sequence[str], stats: frozenset[str]) -> str:
    if any(map(_tells_another_spread, texts)):
        return "other"
    return "sd" if "sd" in stats else ""


def best_note(near: Sequence[Names], groups: Sequence[Group]) -> str:
    if any(each.at_best for each in near) and groups:
        return f"there is no {groups[0].metric}@best: read as {groups[0].metric}"
    return ""


def seeds_only(seeds: frozenset[str], counts: frozenset[int], groups: Sequence[Group]) -> str:
    """Why it is no number over all seeds."""
    if len(seeds) > 1:
        return f"it is about seeds {', '.join(sorted(seeds))} only"
    declared = {quantity.n for group in groups for quantity in group.stats.values()}
    if counts and declared and not counts & declared:
        return f"it is about {counted(min(counts), 'seed')} only"
    return ""


def is_former(texts: Sequence[str]) -> bool:
    return any(map(_tells_of_former, texts))


@lru_cache(maxsize=256)  # one heading may stand over all numbers of a text
def _tells_of_former(text: str) -> bool:
    return aliases.FORMER.search(text) is not None


@lru_cache(maxsize=256)
def _tells_another_spread(text: str) -> bool:
    return aliases.SPREAD_IS_OTHER.search(text) is not None
