"""Ranks the variants of a loop by the scores of their runs, and finds hopeless runs: worse than the median of the
others at the step that they have reached. Pure.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from muster.model.provenance import Resumption
from muster.model.variant import Variant
from muster.rules.evaluate_expressions import MetricSummaries, evaluate_expression
from muster.rules.expressions import ExpressionError, keys_in_expression, parse_expression
from muster.rules.metric_summary import Summary
from muster.text.phrases import phrase

MOST_TRAIL_POINTS = 1024
NEARLY_ALL = 0.9  # of its steps: from there on a run is left alone


@dataclass(frozen=True, slots=True)
class PruneRule:
    key: str
    better: str  # higher | lower
    after: int = 0  # a run is left alone until it has come that far
    least: int = 4  # others that must have come as far


@dataclass(slots=True)
class BestValueTrail:
    """The best value so far of one key, by step, in bounded memory: only where it became better."""

    better: str
    steps: list[float] = field(default_factory=list)
    bests: list[float] = field(default_factory=list)
    last: float = -math.inf  # the newest step

    def add_many(self, steps: Sequence[float], values: Sequence[float]) -> None:
        for step, value in zip(steps, values, strict=True):
            if not math.isfinite(step) or step < self.last:
                continue  # a run that was resumed says again what it said before
            self.last = step
            if math.isfinite(value) and (not self.bests or is_better_value(value, self.bests[-1], self.better)):
                self.steps.append(step)
                self.bests.append(value)
        while len(self.steps) > MOST_TRAIL_POINTS:
            keep = range(0, len(self.steps) - 1, 2)
            self.steps = [*(self.steps[at] for at in keep), self.steps[-1]]
            self.bests = [*(self.bests[at] for at in keep), self.bests[-1]]

    def at(self, step: float) -> float | None:
        """The best up to this step; None: it has not come that far, or had none yet."""
        found = bisect_right(self.steps, step)
        return self.bests[found - 1] if found and self.last >= step else None


def is_better_value(one: float, other: float, better: str) -> bool:
    return one > other if better == "higher" else one < other


def explain_hopeless_run(
    rule: PruneRule, trail: BestValueTrail, others: Sequence[BestValueTrail], steps: float | None = None
) -> str:
    """Why it is not worth going on, with the numbers; "": it is, or that can't be told.

    `steps`: what the run has to do. Near its end a stop saves next to nothing and costs a score that is nearly paid.
    """
    best = trail.at(trail.last)
    if best is None or trail.last < rule.after or (steps is not None and trail.last >= NEARLY_ALL * steps):
        return ""
    known = [value for each in others if (value := each.at(trail.last)) is not None]
    if len(known) < rule.least:
        return ""
    median = statistics.median(known)
    if not is_better_value(median, best, rule.better):
        return ""
    return (
        f"its best {rule.key} at step {trail.last:g} is {best:.6g}, the median of the {len(known)} others there is "
        f"{median:.6g}, and {rule.better} is better"
    )


def single_key_of_expression(by: str) -> str | None:
    """The one key that an expression is about; None: none, or several."""
    try:
        keys = set(keys_in_expression(parse_expression(by, "number")))
    except ExpressionError:
        return None
    return keys.pop() if len(keys) == 1 else None


FINAL_VERDICTS = ("DONE", "DEAD", "GIVEN_UP")


@dataclass(frozen=True, slots=True)
class VariantRun:
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
        return self.verdict in FINAL_VERDICTS


@dataclass(frozen=True, slots=True)
class TriedVariant:
    variant: Variant
    runs: tuple[VariantRun, ...]
    text: str = ""  # of its config
    kind: str = "json"
    trouble: str = ""  # why the config can't be read any more

    @property
    def summaries(self) -> dict[str, Summary]:
        """Over its repeats: a rule must not fire by one seed's luck."""
        read = [run.summaries for run in self.runs if run.readable]
        keys = [key for key in (read[0] if read else {}) if all(key in each for each in read)]
        return {key: average_summaries([each[key] for each in read]) for key in keys}


@dataclass(frozen=True, slots=True)
class VariantScore:
    """Of a variant, by the expression that ranks: one value for each run that tells one."""

    values: tuple[float, ...] = ()
    why: str = ""  # why there is none
    cut: tuple[float, int] | None = None  # of one that was pruned: its value then, and the step

    @property
    def mean(self) -> float:
        return finite_mean(self.values)

    @property
    def sd(self) -> float | None:
        return statistics.stdev(self.values) if len(self.values) > 1 else None


def average_summaries(summaries: Sequence[Summary]) -> Summary:
    """Of one key in several runs: each figure is the mean of theirs."""
    head = summaries[0]
    if len(summaries) == 1:
        return head
    length = min(len(each.tail) for each in summaries)

    def ends(name: str) -> tuple[float, ...]:
        columns = [getattr(each, name)[len(each.tail) - length :] for each in summaries]
        return tuple(map(finite_mean, zip(*columns, strict=True)))  # steps, too: runs may log at different ones

    def mean(name: str) -> float | None:
        known = [value for each in summaries if (value := getattr(each, name)) is not None]
        return finite_mean(known) if len(known) == len(summaries) else None

    def number(name: str) -> int:
        return math.ceil(finite_mean([getattr(each, name) for each in summaries]))  # one NaN in one seed is one

    return Summary(
        head.key,
        number("count"),
        number("nan"),
        mean("first"),
        mean("last"),
        mean("min"),
        mean("max"),
        mean("mean"),
        mean("slope"),
        mean("first_step"),
        mean("last_step"),
        ends("tail_steps"),
        ends("tail"),
    )


def finite_mean(values: Sequence[float]) -> float:
    """NaN where one of them is no finite number: seeds that diverge in both directions have no mean."""
    if not values or not all(map(math.isfinite, values)):
        return math.nan
    return (
        math.fsum(value / len(values) for value in values)
        if max(map(abs, values)) > 1e300
        else statistics.fmean(values)
    )


def score_variant(tried: TriedVariant, by: str) -> VariantScore:
    """Of the runs that ended well: what a run had reached when it died is no result of its config."""
    if not by:
        return VariantScore(why="nothing is declared to rank by")
    pruned = [run for run in tried.runs if run.pruned]
    found = _score_variant_runs(tried.runs, by)
    if not pruned:
        return found
    steps = [each.last_step for run in pruned for each in run.summaries.values() if each.last_step is not None]
    cut = (found.mean, int(max(steps))) if found.values and steps else None
    return VariantScore(
        (), f"pruned in {len(pruned)} of {phrase('count.run', n=len(tried.runs))}", cut
    )  # half a run is no score


def _score_variant_runs(runs: Sequence[VariantRun], by: str) -> VariantScore:
    node = parse_expression(by, "number")
    values: list[float] = []
    why = ""
    for run in runs:
        if run.over and run.verdict != "DONE" and not run.pruned:
            why = why or run.unread or f"{run.cell} is {run.verdict}" + (f": {run.why}" if run.why else "")
            continue
        told = evaluate_expression(node, MetricSummaries(run.summaries))
        if isinstance(told.value, bool) or told.value is None or not math.isfinite(told.value):
            why = why or run.unread or told.why or f"{by} is no finite number"
        else:
            values.append(float(told.value))
    return VariantScore(tuple(values), "" if values else why or "it has no run")


def rank_scored_variants(
    tried: Sequence[TriedVariant], by: str, better: str
) -> list[tuple[TriedVariant, VariantScore]]:
    """The best first; those without a score are left out. Of equals the older one."""
    scored = [(each, score_variant(each, by)) for each in tried]
    sign = -1 if better == "higher" else 1
    return sorted([pair for pair in scored if pair[1].values], key=lambda pair: sign * pair[1].mean)
