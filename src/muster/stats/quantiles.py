"""Quantiles by scipy.special, which loads in a fraction of the time that scipy.stats takes."""

from __future__ import annotations

from scipy import special


def t_quantile(share: float, df: float) -> float:
    return float(special.stdtrit(df, share))


def t_two_sided(t: float, df: float) -> float:
    """The p value of |t|."""
    return float(2 * special.stdtr(df, -abs(t)))


def t_power(shift: float, df: float, alpha: float) -> float:
    """That a two-sided t test with this noncentrality rejects."""
    critical = t_quantile(1 - alpha / 2, df)
    return float(1 - special.nctdtr(df, shift, critical) + special.nctdtr(df, shift, -critical))


def beta_quantile(share: float, a: float, b: float) -> float:
    return float(special.betaincinv(a, b, share))


def chi2_quantile(share: float, df: float) -> float:
    return float(2 * special.gammaincinv(df / 2, share))


def log_gamma(x: float) -> float:
    return float(special.gammaln(x))
