"""Which step of a training a number belongs to: the best one, which was chosen to be good, or the last one."""

from __future__ import annotations

import re
from collections.abc import Iterable

from muster.domain.campaign import Campaign, Result
from muster.domain.origins import Origins, Series

_WORDS = re.compile(r"(?<![a-z])(?:(best)|last|latest|final)(?![a-z])", re.IGNORECASE)
_SERIES = ("jsonl", "csv")


def called(names: Iterable[str]) -> str | None:
    """Best or last, as paths or keys say it; None: they say nothing, or both."""
    words = {"best" if found[1] else "last" for name in names for found in _WORDS.finditer(name)}
    return words.pop() if len(words) == 1 else None


def best_step(campaign: Campaign, job: str, mine: Origins) -> tuple[float | None, tuple[float, ...]]:
    """The best of its evaluations, and the first and the last of them, where the best is what is reported.

    Known exactly where a result is taken at the best row of a file; else by what the training logged of the metric that
    the declaration chooses the checkpoint by.
    """
    better = _directions(campaign)
    for result in campaign.job(job).results:
        tested = mine.picked.get(result.name)
        if tested and _at_best(result, better):
            return _best_of(tested, lower=_looks_low(result))
    asked = (campaign.decision or {}).get("checkpoint", "last")
    by = None if isinstance(asked, str) else asked["best"]
    if by in mine.tested and by in better:
        return _best_of(mine.tested[by], lower=better[by] == "lower")
    return None, ()


def picked(campaign: Campaign) -> dict[str, str]:
    """The metrics that are decided on -> best or last, by the keys and reductions that are declared for them.

    Only of one job: what several jobs measure is nobody's mixture.
    """
    better = _directions(campaign)
    for job in campaign.jobs:
        mine = [result for result in job.results if result.name in better]
        if len(mine) == len(better) > 1:
            return {result.name: step for result in mine if (step := _step_of(result, better))}
    return {}


def _step_of(result: Result, better: dict[str, str]) -> str | None:
    """A file that has one row, or one value, says nothing of steps."""
    told = called([result.key or ""])
    if told or result.kind not in _SERIES:
        return told
    if _at_best(result, better):
        return "best"
    return "last" if result.reduce == "last" else None


def _at_best(result: Result, better: dict[str, str]) -> bool:
    if isinstance(result.reduce, str):
        return result.reduce == {"lower": "min", "higher": "max"}.get(better.get(result.name, ""))
    return True


def _looks_low(result: Result) -> bool:
    return result.reduce == "min" if isinstance(result.reduce, str) else result.reduce["at"].get("better") == "lower"


def _best_of(tested: Series, *, lower: bool) -> tuple[float | None, tuple[float, ...]]:
    several = tested.first != tested.last
    return tested.lowest if lower else tested.highest, (tested.first, tested.last) if several else ()


def _directions(campaign: Campaign) -> dict[str, str]:
    """Of the metrics that are decided on."""
    told = campaign.decision
    if not told:
        return {}
    limit = told.get("limit")
    found = {limit["metric"]: "lower" if "max" in limit else "higher"} if limit else {}
    return found | {told["primary"]["metric"]: told["primary"]["better"]}
