"""Quantiles by scipy.special, which loads in a fraction of the time that scipy.stats takes."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

_STEP = 0.6  # of the sum in t_power: in sd of its narrowest bell: the error is far below rounding
_TAIL = 1e-17
_LOG_STEP, _LOG_TAIL = 0.005, 1e-13  # of the sum in lognormal_shift
_CLOSE = 1e-12


def student_t_quantile(share: float, df: float) -> float:
    return float(special.stdtrit(df, share))


def student_t_p_value(t: float, df: float) -> float:
    """The p value of |t|."""
    return float(2 * special.stdtr(df, -abs(t)))


def student_t_power(shift: float, df: int, alpha: float) -> float:
    """That a two-sided t test with this noncentrality rejects; `df` is even, as two groups of one size have it.

    scipy's noncentral t is NaN here and there, at few seeds above all; so this sums over the spread that is met: given
    it, the mean is normal. Both factors are analytic and their product is even in it, so equal steps lose nothing.
    """
    critical = -student_t_quantile(alpha / 2, df)
    spread, weight = _sd_estimates_at_steps(df, _STEP / math.hypot(critical, math.sqrt(2 * df)))
    missed = special.ndtr(critical * spread - shift) - special.ndtr(-critical * spread - shift)
    return min(1.0, max(0.0, 1.0 - float(np.sum(weight * missed))))


@lru_cache(maxsize=64)
def _sd_estimates_at_steps(df: int, step: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Estimates of a sd of 1 that have `df` degrees of freedom, at multiples of `step`, and how likely each is."""
    half = df / 2
    least = math.sqrt(special.gammaincinv(half, _TAIL) / half)
    most = math.sqrt(special.gammainccinv(half, _TAIL) / half)
    spread = step * np.arange(max(1, int(least / step)), int(most / step) + 2, dtype=np.float64)
    scale = math.log(2) + half * math.log(half) - log_gamma_function(half)
    return spread, step * np.exp(scale + (df - 1) * np.log(spread) - half * spread**2)


@lru_cache(maxsize=4096)
def lognormal_shift(share: float, n: int, sd: float) -> float:
    """How far the log of a log-normal mean lies above the mean of n logs with this sd, at this share of its pivot.

    The generalised pivotal quantity of Krishnamoorthy and Mathew (2003): mean of logs - t sd / sqrt(n) + sd^2 / (2 v),
    where v is a chi-square over its degrees of freedom. Given v it is normal; the sum over v takes equal steps of its
    logarithm, in which both factors are analytic and die out at either end.
    """
    spread, weight = _sd_estimates_at_log_steps(n - 1)
    lift, slope = sd / (2 * spread**2), math.sqrt(n) * spread

    def below(z: float) -> float:
        return float(np.sum(weight * special.ndtr((z - lift) * slope)))

    low, high = -1.0, 1.0
    while below(low) > share:
        low *= 2
    while below(high) < share:
        high *= 2
    while high - low > _CLOSE * max(1.0, abs(high)):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < share else (low, middle)
    return sd * high


@lru_cache(maxsize=16)
def _sd_estimates_at_log_steps(df: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Estimates of a sd of 1 at equal steps of their logarithm, and how likely each is."""
    half = df / 2
    least = 0.5 * math.log(special.gammaincinv(half, _LOG_TAIL) / half)
    most = 0.5 * math.log(special.gammainccinv(half, _LOG_TAIL) / half)
    at = np.arange(least, most + _LOG_STEP, _LOG_STEP, dtype=np.float64)
    weight = np.exp(df * at - half * np.exp(2 * at))
    return np.exp(at), weight / np.sum(weight)


def beta_quantile(share: float, a: float, b: float) -> float:
    return float(special.betaincinv(a, b, share))


def chi2_quantile(share: float, df: float) -> float:
    return float(2 * special.gammaincinv(df / 2, share))


def log_gamma_function(x: float) -> float:
    return float(special.gammaln(x))
