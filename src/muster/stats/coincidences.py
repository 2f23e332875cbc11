"""How likely it is that runs have equal values by chance, given how coarse the metric is.

Accuracies are multiples of 1/N, costs are counts, papers round to a decimal or two: all values lie on a lattice. Two
runs meet on a coarse lattice by chance, and never on a fine one. The model is a normal distribution with the spread
that was seen, laid on that lattice. Every estimate errs on the side where meeting is no surprise: honest runs are not
to be accused.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from muster.stats.samples import Sample, group_by_key

SINGLE_PRECISION = 2.0**-23  # as trainers compute
DOUBLE_PRECISION = 1e-12
ROUNDING_TOLERANCE = 1e-9  # sums of decimals
DECIMALS = range(-6, 8)
MOST_PARTS = 60_000
RATE_UNITS = (1.0, 100.0)  # a rate, and one in percent
ENOUGH_DISTINCT_VALUES = 6  # distinct values, before their common divisor says anything
SPURIOUS_CHANCE = 1e-3  # the chance that a lattice of parts fits numbers that have none

FloatArray = npt.NDArray[np.float64]


def grain_of_values(values: Iterable[float]) -> float:
    """The step of the coarsest lattice through 0 that fits, in the metric's unit; at least what a number resolves."""
    known = np.unique(np.abs(np.fromiter(values, dtype=float)))
    known = known[known > 0]
    if not known.size:
        return 1.0
    with np.errstate(over="ignore"):
        single = bool(np.all(known == known.astype(np.float32)))
    relative = SINGLE_PRECISION if single else ROUNDING_TOLERANCE
    decimals, slack = _fewest_decimals(known, relative), float(known[-1]) * relative
    finest = float(known[-1]) * (SINGLE_PRECISION if single else DOUBLE_PRECISION)
    if decimals is None:
        return max(finest, _step_of_parts(known, slack))
    step = 10.0**-decimals
    shared = int(np.gcd.reduce(np.rint(known / step).astype(np.int64))) if known.size >= ENOUGH_DISTINCT_VALUES else 1
    return max(step * shared, _step_of_parts(known, max(slack, step / 2)))


def _fewest_decimals(known: FloatArray, relative: float) -> int | None:
    """The fewest with which all can be written; negative: tens and hundreds. None: none tells anything."""
    for decimals in DECIMALS:
        scaled = known * 10.0**decimals
        off = np.maximum(scaled * relative, ROUNDING_TOLERANCE)
        if off[-1] > 0.01 or scaled[-1] > 2.0**53:
            return None
        if np.all(np.abs(scaled - np.rint(scaled)) <= off):
            return decimals
    return None


def _step_of_parts(known: FloatArray, slack: float) -> float:
    """The step of k/N, of 1 or of 100, from which no value is further than the slack; 0: there is none."""
    return max(_step_of_parts_of_unit(unit, known, slack) for unit in RATE_UNITS)


def _step_of_parts_of_unit(unit: float, known: FloatArray, slack: float) -> float:
    last = _most_plausible_parts(known.size, slack / unit)
    counts = np.arange(1, last + 1, dtype=float)
    for value in known:  # the first leaves few of them
        scaled = counts * (value / unit)
        counts = counts[np.abs(scaled - np.rint(scaled)) <= slack / unit * (1 + 1e-9) * counts + 1e-12]
        if not counts.size:
            return 0.0
    return unit / float(counts[0])


def _most_plausible_parts(values: int, slack: float) -> int:
    """Up to so many parts it is no chance that they fit: the sum of (2 slack N)^values stays below SPURIOUS."""
    logarithm = (math.log((values + 1) * SPURIOUS_CHANCE) - values * math.log(2 * slack)) / (values + 1)
    return int(min(MOST_PARTS, 0.25 / slack, math.exp(min(logarithm, 50.0))))


Numbers = npt.NDArray[np.float64]

EQUAL_TOLERANCE = 1e-12  # relative
ALIKE = 1e-3  # of the spread: means and sds that agree so well are not independent
NATURAL_BOUNDS = (0.0, 1.0, 100.0)  # where rates and costs end
TIGHTEST_SPREAD = 1e-4  # of a value: seeds that have an effect scatter by more, where nothing else tells
COARSE = 1e-6  # of a value: a grain above it is that of a count or of rounding, not of a number's precision
APART = 6.0  # sds: a gap so wide lies between groups of runs, not inside one, where many values tell the sd
LEAST_GROUP_EVIDENCE = 0.05  # evidence of one group below which it is part of what its column shows


@dataclass(frozen=True, slots=True)
class MetricScale:
    """What the campaign declares of a metric."""

    grain: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class TieColumn:
    """One metric on one split: all configs."""

    split: str
    metric: str
    samples: tuple[Sample, ...]
    grain: float
    bounds: tuple[float, ...]  # of the metric, by nature or as declared
    ends: tuple[float, ...] = ()  # of the values seen, where they look like bounds

    @property
    def where(self) -> str:
        return f"{self.split}/{self.metric}" if self.split else self.metric

    def at_bound(self, value: float) -> bool:
        return any(equal_within_rounding(value, bound) for bound in (*self.bounds, *self.ends))

    def inner(self, sample: Sample) -> list[float]:
        """Its values without those at a bound, in which many runs may end."""
        return [value for value in sample.values if not self.at_bound(value)]

    def meeting(self, config: str) -> float:
        """The chance that a run of this config meets a given value: that of its likeliest point."""
        return _chance_of_meeting(self.grain, self._spreads[config])

    @cached_property
    def _spreads(self) -> Mapping[str, float]:
        """Own ones; where all seeds agree, the least that other configs show, or the configs among themselves."""
        own = {sample.config: self.spread(sample) for sample in self.samples}
        seen = {config: spread for config, spread in own.items() if spread > 0}
        found = {}
        for sample in self.samples:
            found[sample.config] = own[sample.config] or self._borrowed(sample, seen)
        return found

    def spread(self, sample: Sample) -> float:
        """What its own values show: where they lie in groups, how they scatter inside of these. 0: no two differ."""
        inner = self.inner(sample)
        return min((each for each in (self._in_groups(inner), tightest_spread(inner)) if each > 0), default=0.0)

    def near(self, values: Sequence[float]) -> float:
        """The same, of values whose sd counts as it is where they lie in no groups."""
        return self._in_groups(values) or float(np.std(values, ddof=1))

    def _in_groups(self, values: Sequence[float]) -> float:
        groups = groups_of(values, self.grain)
        return (_inside(groups) or self._inside_all) if len(groups) > 1 else 0.0

    @cached_property
    def _inside_all(self) -> float:
        """How runs scatter inside of their groups, over all configs: rounding may leave no two apart in one of them."""
        return _inside([group for sample in self.samples for group in groups_of(self.inner(sample), self.grain)])

    def _borrowed(self, sample: Sample, seen: Mapping[str, float]) -> float:
        inner = self.inner(sample)
        if not inner:
            return 0.0
        here = float(np.median(inner))
        others = [
            spread * self._narrower(here, float(np.median(self.inner(other))))
            for other in self.samples
            if (spread := seen.get(other.config))
        ]
        middles = [float(np.median(self.inner(each))) for each in self.samples if self.inner(each)]
        between = float(np.std(middles, ddof=1)) / 2 if len(middles) > 1 else 0.0
        if not others and (near := self._of_rounding):
            return near
        least = TIGHTEST_SPREAD * abs(here)
        whole = float(np.std(inner, ddof=1)) if len(inner) > 1 else 0.0  # all but one agree
        return min(others) if others else max(between, least, whole, self._of_sampling(here))

    def _narrower(self, here: float, there: float) -> float:
        """Rates scatter less near their ends: by sqrt(p (1 - p))."""
        end = self._end
        if end is None or not 0 < there < end:
            return 1.0
        return min(1.0, math.sqrt(max(0.0, here * (end - here)) / (there * (end - there))))

    @cached_property
    def _of_rounding(self) -> float:
        """Of all configs, where most seeds agree and a few lie on the next points of a coarse lattice."""
        squares, free = 0.0, 0
        for sample in self.samples:
            here = float(np.median(sample.values)) if sample.n else 0.0
            near = [value for value in sample.values if abs(value - here) < 1.5 * self.grain > COARSE * abs(here)]
            squares += float(np.var(near)) * len(near) if len(set(map(_round_to_key, near))) > 1 else 0.0
            free += max(0, len(near) - 1)
        return math.sqrt(squares / free) if free else 0.0

    def _of_sampling(self, here: float) -> float:
        """A quarter of what N examples scatter by: models that differ at all do not differ on next to none of them."""
        if self._end is None or self.grain < 1e-6 * self._end:
            return 0.0
        share = here / self._end
        return self._end * math.sqrt(share * (1 - share) * self.grain / self._end) / 4

    @cached_property
    def _end(self) -> float | None:
        """1 or 100, where it may be a rate."""
        values = [value for sample in self.samples for value in sample.values]
        if not values or min(values) < 0 or max(values) > 100:
            return None
        return 1.0 if max(values) <= 1 else 100.0


@dataclass(frozen=True, slots=True)
class SeedTies:
    """Seeds of one config that meet on one column. `chance`: of so much anywhere in the campaign."""

    column: TieColumn
    sample: Sample
    seeds: tuple[str, ...]  # the first clump
    whole: bool  # all seeds agree
    bound: bool  # and they meet at a bound
    chance: float


def build_tie_columns(samples: Iterable[Sample], scales: Mapping[str, MetricScale]) -> list[TieColumn]:
    known = list(samples)
    found = []
    for metric, of_metric in group_by_key(known, lambda s: s.metric):
        scale = scales.get(metric, MetricScale())
        everywhere = scale.grain or grain_of_values(value for sample in of_metric for value in sample.values)
        for split, group in group_by_key(of_metric, lambda s: s.split):
            alone = len(group) == len(of_metric)
            here = everywhere if scale.grain else max(everywhere, _grain_of_split(group, everywhere if alone else None))
            declared = [bound for bound in (scale.low, scale.high) if bound is not None]
            found.append(
                TieColumn(split, metric, tuple(group), here, (*NATURAL_BOUNDS, *declared), _saturated_ends(group))
            )
    return found


def _grain_of_split(group: Sequence[Sample], known: float | None) -> float:
    """Splits differ in their number of examples; result files may name it."""
    told = {sample.episodes for sample in group}
    counted = 1 / max(told) if min(told) > 1 else 0.0
    return max(known or grain_of_values(value for sample in group for value in sample.values), counted)


def _saturated_ends(group: Sequence[Sample]) -> tuple[float, ...]:
    """The least and the largest value, where it is a whole number that several seeds of a config ended at: -21 in Pong.

    Not where no seed makes a difference in any config: that is no saturation.
    """
    met = [{_round_to_key(value) for value in sample.values} for sample in group]
    values = set().union(*met)
    if not values or (len(values) > 1 and all(len(each) == 1 for each in met)):
        return ()
    ends = [end for end in {min(values), max(values)} if end.is_integer()]
    return tuple(end for end in ends if any(end in find_clumps(sample) for sample in group))


def find_seed_ties(columns: Sequence[TieColumn]) -> list[SeedTies]:
    """Every config and column in which seeds meet, with the chance of it over all of the campaign."""
    count = sum(len(column.samples) for column in columns)
    found = []
    for column in columns:
        whole = _chance_of_column_ties(column)
        for sample in column.samples:
            clumps = find_clumps(sample)
            if not clumps:
                continue
            inner = [seeds for value, seeds in clumps.items() if not column.at_bound(value)]
            own = _chance_of_sample_ties(column, sample)
            same = len(set(map(_round_to_key, sample.values))) == 1
            chance = own * count
            if own < LEAST_GROUP_EVIDENCE or same:
                chance = min(chance, whole * len(columns))
            seeds = (inner or list(clumps.values()))[0]
            found.append(
                SeedTies(column, sample, tuple(seeds), same, not inner, min(1.0, 2 * chance) if inner else 1.0)
            )
    return found


def find_clumps(sample: Sample) -> dict[float, list[str]]:
    """Values that several seeds have -> these."""
    by_value: dict[float, list[str]] = {}
    for seed, value in sample.by_seed.items():
        by_value.setdefault(_round_to_key(value), []).append(seed)
    return {value: seeds for value, seeds in by_value.items() if len(seeds) > 1}


def _chance_of_sample_ties(column: TieColumn, sample: Sample) -> float:
    """Of so many coincidences, or of a clump so large, whichever is rarer; doubled, since either is looked at."""
    inner = [_round_to_key(value) for value in column.inner(sample)]
    if len(set(inner)) == len(inner):
        return 1.0
    meeting = column.meeting(sample.config)
    many = chance_of_at_least(len(inner) - len(set(inner)), _chances_to_meet_in_turn(len(inner), meeting))
    largest = max(inner.count(value) for value in set(inner))
    return min(1.0, 2 * min(many, math.comb(len(inner), largest) * meeting ** (largest - 1)))


def _chance_of_column_ties(column: TieColumn) -> float:
    """Of so many coincidences in all configs together, or of so many configs without any spread."""
    chains: list[float] = []
    met, still = 0, []
    for sample in column.samples:
        inner = [_round_to_key(value) for value in column.inner(sample)]
        chains += _chances_to_meet_in_turn(len(inner), column.meeting(sample.config))
        met += len(inner) - len(set(inner))
        if len(inner) > 1 and len(set(inner)) == 1:
            still.append(column.meeting(sample.config) ** (len(inner) - 1))
    frozen = math.comb(len(column.samples), len(still)) * math.prod(still)
    return min(1.0, 2 * min(chance_of_at_least(met, chains), frozen if still else 1.0))


def _chances_to_meet_in_turn(count: int, meeting: float) -> list[float]:
    """Run by run: an upper bound of the chance to meet one of those before it."""
    return [min(1.0, before * meeting) for before in range(1, count)]


def chance_of_at_least(count: int, chances: Sequence[float]) -> float:
    """That so many of these happen."""
    spread = np.ones(1)
    for chance in chances:
        spread = np.convolve(spread, (1 - chance, chance))
    return float(min(1.0, spread[count:].sum()))


def chance_of_twin_configs(column: TieColumn, samples: Sequence[Sample], columns: int) -> float:
    """That configs agree in every seed, or in mean and sd, anywhere in the campaign."""
    pairs = max(1, math.comb(len(column.samples), 2)) * columns
    return min(1.0, 2 * pairs * math.prod(_chance_of_twin_pair(column, samples[0], other) for other in samples[1:]))


def _chance_of_twin_pair(column: TieColumn, a: Sample, b: Sample) -> float:
    fixed = replace(column, ends=())
    inner, other = sorted(fixed.inner(a)), sorted(fixed.inner(b))
    if not inner or not other:
        return 1.0
    # seeds without an effect are told of elsewhere: then one coincidence is left
    if len(set(inner)) == 1 and equal_within_rounding(inner[0], other[0]):
        return 1.0 if column.at_bound(inner[0]) else column.meeting(a.config)
    if len(inner) == len(other) and all(map(equal_within_rounding, inner, other)):
        ordered = all(equal_within_rounding(a.by_seed[seed], b.by_seed.get(seed, math.nan)) for seed in a.by_seed)
        return _chance_of_values(inner, column.grain, column.near(inner), ordered=ordered)
    return _chance_of_like_moments(column, a, b)


def _chance_of_values(values: Sequence[float], grain: float, spread: float, *, ordered: bool) -> float:
    """That another config has just these. Where runs end on a plateau the next one may well do so, too."""
    meeting, ways, chance = _chance_of_meeting(grain, spread), math.factorial(len(values)), 1.0
    counts = Counter(map(_round_to_key, values)).values()
    for many in counts:
        ways //= math.factorial(many)
        plateau = 2 * many > len(values) + 1 or len(counts) <= 2
        chance *= max(meeting, (many - 1) / max(1, len(values) - 1) if plateau else 0.0) ** many
    return min(1.0, chance if ordered else ways * chance)


def _chance_of_meeting(grain: float, spread: float) -> float:
    return math.erf(grain / (2 * math.sqrt(2) * spread)) if spread > 0 else 1.0


def _chance_of_like_moments(column: TieColumn, a: Sample, b: Sample) -> float:
    """Roughly, and fivefold: means lie on a lattice of grain/n, sds on one of their own.

    What counts as alike goes by the sd, which one failed seed makes large; the others scatter as they do without it.
    """
    n, spread = min(a.n, b.n), min(column.spread(a), column.spread(b))
    if n < 2 or spread <= 0:
        return 1.0
    step, alike = column.grain / spread, 2 * ALIKE * max(a.sd or 0.0, b.sd or 0.0) / spread
    means = min(1.0, (step / n + alike) * math.sqrt(n / (4 * math.pi)))
    sds = min(1.0, (step * step / (n - 1) + alike) * math.sqrt((n - 1) / (2 * math.pi)))
    return min(1.0, 5 * means * sds)


def tightest_spread(values: Sequence[float]) -> float:
    """The sd of the tightest four fifths: a seed that failed says nothing of how the others scatter."""
    ordered = np.sort(np.asarray(values, dtype=float))
    if len(ordered) < 2:
        return 0.0
    kept = len(ordered) - max(1, len(ordered) // 5) if len(ordered) > 3 else len(ordered)
    spreads = [float(np.std(ordered[at : at + kept], ddof=1)) for at in range(len(ordered) - kept + 1)]
    least = min(spreads)
    return least if least > EQUAL_TOLERANCE * float(np.abs(ordered).max()) else 0.0


def groups_of(values: Sequence[float], grain: float) -> list[Numbers]:
    """Runs that found one of several solutions lie in groups, far apart for what they scatter by inside of them.

    As many as can be told; half of the values have to say how they scatter, and two at least.
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    gaps = np.diff(ordered)
    widest = np.argsort(-gaps, kind="stable")
    found = [ordered]
    for cuts in range(1, len(ordered) - max(2, len(ordered) // 2)):
        parts = np.split(ordered, np.sort(widest[:cuts]) + 1)
        apart = APART * (1 + 4 / (len(ordered) - len(parts)))
        if gaps[widest[cuts - 1]] > apart * max(_inside(parts), grain / 2):
            found = parts
    return found


def _inside(groups: Iterable[Numbers]) -> float:
    """The pooled sd."""
    squares, free = 0.0, 0
    for group in groups:
        squares += float(np.var(group)) * len(group) if len(group) and group[0] != group[-1] else 0.0
        free += max(0, len(group) - 1)
    return math.sqrt(squares / free) if free else 0.0


def equal_within_rounding(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=EQUAL_TOLERANCE)


def _round_to_key(value: float) -> float:
    """The same for values that are equal."""
    return float(f"{value:.12g}")
