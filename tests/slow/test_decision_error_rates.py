"""How often the declared procedure is wrong, simulated: false RECOMMEND by number of candidates, false feasible by shape.

The rules are written once more here, for arrays, because `decide` takes milliseconds; that both agree is tested on a part.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pytest
from scipy import special

from muster.stats.decision_procedure import (
    DecisionProcedure,
    compare_with_baseline,
    decide_by_procedure,
    judge_feasibility,
)
from muster.stats.quantiles import lognormal_shift
from muster.stats.samples import Sample

pytestmark = pytest.mark.slow
Array = npt.NDArray[np.float64]
RUNS = CAMPAIGNS = 20_000
SEEDS, SIGMAS, CANDIDATES = (5, 10), (0.3, 0.5, 0.7, 1.0), (1, 3, 9, 19)
ALPHA, LOOKS, DELTA, LIMIT = 0.05, (5, 10), 1.0, 1.0
WORST = ("infeasible, log-normal", "infeasible, normal", "worse by delta", "half of each")


def named(config: str, values: Array) -> Sample:
    return Sample(config, "ood", "score", {str(seed): float(value) for seed, value in enumerate(values)})


# -- the same rules, for arrays


def upper_bounds(costs: Array, alpha: float) -> Array:
    """Of each row; no cost is 0."""
    n = costs.shape[-1]
    spread = costs.std(axis=-1, ddof=1)
    student = costs.mean(axis=-1) + special.stdtrit(n - 1, 1 - alpha) * spread / math.sqrt(n)
    positive = costs.min(axis=-1) > 0
    logs = np.log(np.where(positive[..., None], costs, 1.0))
    sd = logs.std(axis=-1, ddof=1)
    shift = sd * np.interp(np.log(np.maximum(sd, 1e-300)), *shifts(n, alpha))
    return np.where(positive, np.maximum(student, np.exp(np.minimum(logs.mean(axis=-1) + shift, 700))), student)


@lru_cache
def shifts(n: int, alpha: float) -> tuple[Array, Array]:
    """The log-normal shift in sd, for logarithms of the sd; the table is finer than the draws' noise."""
    at = np.linspace(math.log(1e-3), math.log(20), 400)
    return at, np.array([lognormal_shift(1 - alpha, n, math.exp(each)) / math.exp(each) for each in at])


def welch(candidates: Array, baseline: Array) -> tuple[Array, Array, Array]:
    """Gain, standard error and degrees of freedom of every candidate of every campaign."""
    n = candidates.shape[-1]
    va, vb = candidates.var(axis=-1, ddof=1) / n, (baseline.var(axis=-1, ddof=1) / n)[:, None]
    df = (va + vb) ** 2 * (n - 1) / (va**2 + vb**2)
    return candidates.mean(axis=-1) - baseline.mean(axis=-1)[:, None], np.sqrt(va + vb), df


def holm_rejects(p: Array, alpha: float) -> npt.NDArray[np.bool_]:
    order = np.argsort(p, axis=1)
    m = p.shape[1]
    going = np.logical_and.accumulate(np.take_along_axis(p, order, 1) <= alpha / (m - np.arange(m)), axis=1)
    rejected = np.zeros_like(going)
    np.put_along_axis(rejected, order, going, axis=1)
    return rejected


def qualify(scores: Array, baseline: Array, costs: Array, unsafe: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Who may be recommended. The exact test is left out: it can only take somebody away."""
    a_look = ALPHA / len(LOOKS)
    each = a_look / scores.shape[1]
    gain, se, df = welch(scores, baseline)
    supported = holm_rejects(2 * special.stdtr(df, -np.abs(gain / se)), a_look) & (gain > 0)
    no_loss = gain - special.stdtrit(df, 1 - each / 2) * se > -DELTA
    return (upper_bounds(costs, each) <= LIMIT) & (supported | (no_loss & unsafe[:, None]))


def lower_breaks(costs: Array) -> npt.NDArray[np.bool_]:
    """Of a baseline with costs so far beyond the limit that both lower bounds agree."""
    return costs.min(axis=-1) > 2 * LIMIT


# -- campaigns in which every candidate is wrong to recommend


def drawn(rng: np.random.Generator, kind: str, m: int, runs: int, n: int) -> tuple[Array, Array, Array, Array]:
    """Scores and costs of the candidates, then of the baseline."""
    scores, base = rng.normal(0.0, 0.5, (runs, m, n)), rng.normal(0.0, 0.5, (runs, n))
    skewed = LIMIT * np.exp(0.5 * rng.standard_normal((runs, m, n)) - 0.125)  # their mean is the limit
    cheap, dear = 0.1 * skewed, 50 * LIMIT * np.exp(0.1 * rng.standard_normal((runs, n)))
    if kind == "worse by delta":
        return scores - DELTA, cheap, base, dear
    if kind == "half of each":
        bad = np.arange(m) < (m + 1) // 2
        return scores + np.where(bad, 5.0, -DELTA)[:, None], np.where(bad[:, None], skewed, cheap), base, dear
    if kind == "infeasible, normal":
        return scores + 5.0, rng.normal(LIMIT, 0.2 * LIMIT, (runs, m, n)), base, dear
    return scores + 5.0, skewed, base, dear


def false_recommendations(kind: str, m: int, runs: int = CAMPAIGNS) -> npt.NDArray[np.bool_]:
    """At either look: the seeds of the first are among those of the second."""
    rng = np.random.default_rng([m, WORST.index(kind)])
    scores, costs, base, dear = drawn(rng, kind, m, runs, max(LOOKS))
    wrong = np.zeros(runs, dtype=bool)
    for n in LOOKS:
        unsafe = lower_breaks(dear[:, :n])
        wrong |= qualify(scores[..., :n], base[:, :n], costs[..., :n], unsafe).any(axis=1)
    return wrong


def test_what_is_recommended_is_wrong_in_five_percent_at_most() -> None:
    print(f"\nfalse RECOMMEND, {CAMPAIGNS} campaigns each, looks at 5 and 10 seeds, every candidate wrong to recommend")
    print(f"{'':26}{''.join(f'{m:>8}' for m in CANDIDATES)} candidates")
    for kind in WORST:
        rates = [float(false_recommendations(kind, m).mean()) for m in CANDIDATES]
        print(f"{kind:26}{''.join(f'{rate:8.4f}' for rate in rates)}")
        assert max(rates) <= ALPHA, kind


@pytest.mark.parametrize("kind", WORST)
@pytest.mark.parametrize("m", [1, 3])
def test_the_rules_for_arrays_are_those_of_the_procedure(kind: str, m: int) -> None:
    """`decide` may say less: the exact test vetoes. Where it says RECOMMEND, the arrays do, and without a veto both do."""
    rng = np.random.default_rng(7)
    runs, n = 60, 5
    scores, costs, base, dear = drawn(rng, kind, m, runs, n)
    costs = costs * rng.uniform(0.1, 1.2, (runs, m, 1))  # so that some are feasible
    scores = scores + rng.uniform(0.0, 1.5, (runs, m, 1))
    found = qualify(scores, base, costs, lower_breaks(dear))
    procedure = DecisionProcedure("base", limit=LIMIT, delta=DELTA, alpha=ALPHA, looks=LOOKS)
    said = 0
    for run in range(runs):
        primary = [named("base", base[run]), *(named(f"c{c}", scores[run, c]) for c in range(m))]
        cost = [named("base", dear[run]), *(named(f"c{c}", costs[run, c]) for c in range(m))]
        decision = decide_by_procedure(procedure, primary, cost)
        qualified = {decision.config, *decision.rivals} - {None}
        arrays = {f"c{c}" for c in range(m) if found[run, c]}
        said += bool(qualified)
        assert qualified <= arrays
        if not any(each.vetoed for each in compare_with_baseline(procedure, primary)):
            assert bool(qualified) == bool(arrays)
    assert 0 < said < runs


# -- feasible


def costs_of(rng: np.random.Generator, shape: str, sigma: float, n: int, runs: int = RUNS) -> Array:
    """Their true mean is 1."""
    if shape == "normal":
        return rng.normal(1.0, sigma, (runs, n))
    return np.exp(sigma * rng.standard_normal((runs, n)) - sigma**2 / 2)


@pytest.mark.parametrize("n", SEEDS)
def test_feasible_is_wrong_in_six_percent_at_most(n: int) -> None:
    """A mean at the limit, one candidate and one look: alpha .05. Looks and candidates share it, and make it less."""
    rng = np.random.default_rng(n)
    print(f"\nfalse feasible, n = {n}, {RUNS} runs, alpha .05\n{'':14}{''.join(f'{s:>8}' for s in SIGMAS)} sigma")
    for shape in ("normal", "log-normal"):
        rates = [float((upper_bounds(costs_of(rng, shape, s, n), ALPHA) <= 1.0).mean()) for s in SIGMAS]
        print(f"{shape:14}{''.join(f'{rate:8.4f}' for rate in rates)}")
        assert max(rates) <= 0.06, shape


def test_a_cost_at_half_of_its_limit_is_feasible_in_most_campaigns() -> None:
    rng = np.random.default_rng(11)
    print(f"\nfeasible, limit = 2 x mean, log-normal, sigma 0.3, {RUNS} runs")
    shares = {}
    for n in SEEDS:
        costs = costs_of(rng, "log-normal", 0.3, n)
        for looks, m in ((1, 1), (2, 1), (2, 3), (2, 9)):
            shares[n, looks, m] = float((upper_bounds(costs, ALPHA / looks / m) <= 2.0).mean())
            print(f"n = {n:2}, {looks} look(s), {m} candidate(s): {shares[n, looks, m]:.4f}")
    assert shares[5, 1, 1] >= 0.8
    assert shares[10, 2, 9] >= 0.8


@pytest.mark.parametrize("shape", ["normal", "log-normal"])
def test_bounds_for_arrays_are_those_of_feasibility(shape: str) -> None:
    rng = np.random.default_rng(5)
    for n in SEEDS:
        costs = costs_of(rng, shape, 0.4, n, 100)
        uppers = [judge_feasibility(named("a", row), 1.0).upper for row in costs]
        logs = np.log(np.array(uppers, dtype=float))
        np.testing.assert_allclose(np.log(upper_bounds(costs, ALPHA)), logs, atol=1e-3)
