"""What a loop's report is made from: variants with their runs, the course of the best, the rules."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.domain.resumed import Resumption
from muster.domain.variants import BASE, Variant
from muster.rounds.summary import Summary
from muster.rounds.tried import OVER, mean_of

LIVELY = frozenset({"PENDING", "RUNNING", "QUIET", "BLOCKED", "HELD"})  # not over, and nothing is wrong with it
LEAST_ALIKE = 3  # variants with the very same score: two may be chance


@dataclass(frozen=True, slots=True)
class LoopRun:
    """One cell."""

    cell: str
    verdict: str
    why: str = ""  # its cause, where it is not DONE
    unread: str = ""  # why no history of it could be read
    output: str = ""  # its folder; from the campaign's folder, where it lies there
    url: str = ""  # of W&B, if one was logged
    summaries: Mapping[str, Summary] = field(default_factory=dict)
    pruned: bool = False
    resumed: Resumption | None = None  # what counts of the attempts that wrote its history; None: one wrote all

    @property
    def over(self) -> bool:
        return self.verdict in OVER

    @property
    def trouble(self) -> bool:
        """Over without a history, or with a bad end, or not to be told."""
        return self.verdict not in LIVELY and not self.pruned and (self.verdict != "DONE" or not self.summaries)


@dataclass(frozen=True, slots=True)
class LoopVariant:
    variant: Variant
    config: str  # its file; from the campaign's folder, where it lies there
    runs: tuple[LoopRun, ...] = ()
    values: tuple[float, ...] = ()  # by the expression that ranks: one for each run that is over and tells one
    unscored: str = ""  # why there is none
    gain: float | None = None  # over its parent: above zero is better, whichever direction that is

    @property
    def name(self) -> str:
        return self.variant.name

    @property
    def is_base(self) -> bool:
        return self.variant.by == BASE

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def mean(self) -> float:
        return mean_of(self.values)

    @property
    def sd(self) -> float | None:
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def state(self) -> str:
        """scored | waiting | failed | unscored (it ran, and the expression gives nothing or there is none)"""
        if self.values:
            return "scored"
        if not self.runs or any(run.verdict in LIVELY for run in self.runs):
            return "waiting"
        return "failed" if all(run.trouble for run in self.runs) else "unscored"


@dataclass(frozen=True, slots=True)
class RoundBest:
    """After a round. Another variant takes the place only if it is better beyond the noise of the seeds."""

    round: int
    best: str
    gained: bool


@dataclass(frozen=True, slots=True)
class Against:
    """The best, compared with the base that it comes from."""

    base: str
    difference: float  # above zero: better
    interval: tuple[float, float] | None = None
    p: float | None = None  # Welch's; None: one seed, or no spread
    beyond: bool | None = None  # the noise of the seeds; None: can't be told


@dataclass(frozen=True, slots=True)
class RulePays:
    """A rule, and what became of the variants that it made."""

    rule: str
    reason: str
    made: int
    gains: tuple[float, ...] = ()  # of those that have a score, as their parents have: above zero is better
    interval: tuple[float, float] | None = None  # of the mean gain, from three on

    @property
    def mean(self) -> float | None:
        return statistics.fmean(self.gains) if self.gains else None

    @property
    def better(self) -> int:
        return sum(gain > 0 for gain in self.gains)


@dataclass(frozen=True, slots=True)
class LoopFacts:
    campaign: str
    language: str
    at: str
    version: str
    job: str
    variants: tuple[LoopVariant, ...]
    round: int  # the newest
    most: int  # rounds that were asked for
    by: str = ""  # the expression that ranks; "": none is declared
    better: str = "higher"
    repeats: int = 1
    stopped: str = ""  # why no further round comes
    intent: str = "running"  # running | held | down
    busy: bool = True  # a controller is at work
    course: tuple[RoundBest, ...] = ()
    against: Against | None = None
    rules: tuple[RulePays, ...] = ()
    noise: float | None = None  # sd over the seeds of a variant, pooled over all variants
    keys: tuple[str, ...] = ()  # whose numbers the text shows
    more_keys: int = 0  # that it does not
    directions: Mapping[str, str] = field(default_factory=dict)  # key -> higher | lower, where it is known

    @property
    def best(self) -> LoopVariant | None:
        return self.variant(self.course[-1].best) if self.course else None

    @property
    def top(self) -> LoopVariant | None:
        """By its mean alone, whatever the noise."""
        scored = [each for each in self.variants if each.values]
        sign = 1 if self.better == "higher" else -1
        return max(scored, key=lambda each: sign * each.mean, default=None)

    @property
    def identical(self) -> bool:
        """All scores are the same number: the variants can hardly have been different runs."""
        scored = [each.values for each in self.variants if each.values]
        return len(scored) >= LEAST_ALIKE and len({value for values in scored for value in values}) == 1

    @property
    def runs(self) -> list[LoopRun]:
        return [run for each in self.variants for run in each.runs]

    @property
    def over(self) -> bool:
        return all(run.over for run in self.runs)

    def variant(self, name: str) -> LoopVariant:
        return next(each for each in self.variants if each.name == name)

    def of_round(self, number: int) -> list[LoopVariant]:
        return [each for each in self.variants if each.variant.round == number]
