"""How many seeds a difference that matters needs, from the spread that was seen and never from the difference seen."""

from __future__ import annotations

import math
from collections.abc import Sequence

from muster.stats.quantiles import chi2_quantile, t_power
from muster.stats.sample import Sample

MOST_SEEDS = 1000
CAUTION = 0.8  # the true spread is below the one used in this share of cases


def pooled_sd(samples: Sequence[Sample]) -> float | None:
    df = _degrees(samples)
    if not df:
        return None
    return math.sqrt(sum((sample.n - 1) * sample.sd**2 for sample in samples if sample.sd is not None) / df)


def cautious_sd(samples: Sequence[Sample]) -> float | None:
    """The pooled sd times its 80 % upper factor: few seeds show a spread that is as likely too small as too large."""
    pooled, df = pooled_sd(samples), _degrees(samples)
    return None if pooled is None else pooled * math.sqrt(df / chi2_quantile(1 - CAUTION, df))


def _degrees(samples: Sequence[Sample]) -> int:
    return sum(sample.n - 1 for sample in samples if sample.sd is not None)


def power_of(n: int, effect: float, sd: float, alpha: float) -> float:
    """Of a two-sided t test of two groups of n."""
    if sd == 0:
        return 1.0 if effect else 0.0
    return t_power(abs(effect) / (sd * math.sqrt(2 / n)), 2 * n - 2, alpha)


def seeds_for(effect: float, sd: float, alpha: float, power: float) -> int | None:
    """The least n in each group; None: not even a thousand will do."""
    low, high = 1, 2
    while power_of(high, effect, sd, alpha) < power:
        low, high = high, 2 * high
        if low >= MOST_SEEDS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power_of(middle, effect, sd, alpha) >= power else (middle, high)
    return high if high <= MOST_SEEDS else None


def detectable(n: int, sd: float, alpha: float, power: float) -> float | None:
    """The smallest difference that n seeds in each group would show; None for fewer than two, or an endless spread."""
    if n < 2 or not math.isfinite(sd * sd):
        return None
    low, high = 0.0, sd or 1.0
    while power_of(n, high, sd, alpha) < power:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if power_of(n, middle, sd, alpha) >= power else (middle, high)
    return high
