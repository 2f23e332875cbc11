"""What became of each variant of a loop: its runs, their summaries, and the score that ranks it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from muster.domain.resumed import Resumption
from muster.domain.variants import Variant
from muster.domain.wording import counted
from muster.rounds.evaluating import Metrics, evaluate
from muster.rounds.expressions import parse
from muster.rounds.summary import Summary

OVER = ("DONE", "DEAD", "GIVEN_UP")


@dataclass(frozen=True, slots=True)
class Run:
    """One cell of the loop's job."""

    cell: str
    verdict: str  # DONE, DEAD, GIVEN_UP, ...
    why: str = ""  # its cause, where it is not DONE
    summaries: Mapping[str, Summary] = field(default_factory=dict)
    unread: str = ""  # why no history of it could be read
    pruned: bool = False  # stopped before its end, because it was hopeless
    resumed: Resumption | None = None  # what counts of the attempts that wrote its history; None: one wrote all

    @property
    def readable(self) -> bool:
        return bool(self.summaries)

    @property
    def over(self) -> bool:
        return self.verdict in OVER


@dataclass(frozen=True, slots=True)
class Tried:
    variant: Variant
    runs: tuple[Run, ...]
    text: str = ""  # of its config
    kind: str = "json"
    trouble: str = ""  # why the config can't be read any more

    @property
    def summaries(self) -> dict[str, Summary]:
        """Over its repeats: a rule must not fire by one seed's luck."""
        read = [run.summaries for run in self.runs if run.readable]
        keys = [key for key in (read[0] if read else {}) if all(key in each for each in read)]
        return {key: averaged([each[key] for each in read]) for key in keys}


@dataclass(frozen=True, slots=True)
class Score:
    """Of a variant, by the expression that ranks: one value for each run that tells one."""

    values: tuple[float, ...] = ()
    why: str = ""  # why there is none
    cut: tuple[float, int] | None = None  # of one that was pruned: its value then, and the step

    @property
    def mean(self) -> float:
        return mean_of(self.values)

    @property
    def sd(self) -> float | None:
        return statistics.stdev(self.values) if len(self.values) > 1 else None


def averaged(summaries: Sequence[Summary]) -> Summary:
    """Of one key in several runs: each figure is the mean of theirs."""
    head = summaries[0]
    if len(summaries) == 1:
        return head
    length = min(len(each.tail) for each in summaries)

    def ends(name: str) -> tuple[float, ...]:
        columns = [getattr(each, name)[len(each.tail) - length :] for each in summaries]
        return tuple(map(mean_of, zip(*columns, strict=True)))  # steps, too: runs may log at different ones

    def mean(name: str) -> float | None:
        known = [value for each in summaries if (value := getattr(each, name)) is not None]
        return mean_of(known) if len(known) == len(summaries) else None

    def number(name: str) -> int:
        return math.ceil(mean_of([getattr(each, name) for each in summaries]))  # one NaN in one seed is one

    return Summary(
        head.key, number("count"), number("nan"), mean("first"), mean("last"), mean("min"), mean("max"), mean("mean"),
        mean("slope"), mean("first_step"), mean("last_step"), ends("tail_steps"), ends("tail"),
    )  # fmt: skip


def mean_of(values: Sequence[float]) -> float:
    """NaN where one of them is no finite number: seeds that diverge in both directions have no mean."""
    if not values or not all(map(math.isfinite, values)):
        return math.nan
    return (
        math.fsum(value / len(values) for value in values)
        if max(map(abs, values)) > 1e300
        else statistics.fmean(values)
    )


def score(tried: Tried, by: str) -> Score:
    """Of the runs that ended well: what a run had reached when it died is no result of its config."""
    if not by:
        return Score(why="nothing is declared to rank by")
    pruned = [run for run in tried.runs if run.pruned]
    found = _score(tried.runs, by)
    if not pruned:
        return found
    steps = [each.last_step for run in pruned for each in run.summaries.values() if each.last_step is not None]
    cut = (found.mean, int(max(steps))) if found.values and steps else None
    return Score((), f"pruned in {len(pruned)} of {counted(len(tried.runs), 'run')}", cut)  # half a run is no score


def _score(runs: Sequence[Run], by: str) -> Score:
    node = parse(by, "number")
    values: list[float] = []
    why = ""
    for run in runs:
        if run.over and run.verdict != "DONE" and not run.pruned:
            why = why or run.unread or f"{run.cell} is {run.verdict}" + (f": {run.why}" if run.why else "")
            continue
        told = evaluate(node, Metrics(run.summaries))
        if isinstance(told.value, bool) or told.value is None or not math.isfinite(told.value):
            why = why or run.unread or told.why or f"{by} is no finite number"
        else:
            values.append(float(told.value))
    return Score(tuple(values), "" if values else why or "it has no run")


def ranked(tried: Sequence[Tried], by: str, better: str) -> list[tuple[Tried, Score]]:
    """The best first; those without a score are left out. Of equals the older one."""
    scored = [(each, score(each, by)) for each in tried]
    sign = -1 if better == "higher" else 1
    return sorted([pair for pair in scored if pair[1].values], key=lambda pair: sign * pair[1].mean)
