"""How much a comparison hangs on a single seed: the same test again, with each seed left out in turn."""

from __future__ import annotations

from dataclasses import dataclass, replace

from muster.report.analysis import Analysis
from muster.stats.compare import welch
from muster.stats.decision import Comparison
from muster.stats.quantiles import t_two_sided
from muster.stats.sample import Sample


@dataclass(frozen=True, slots=True)
class LeftOut:
    config: str
    seed: str
    p: float  # Welch's, without it; 1 where the rest has no spread or turns the other way


def leave_each_out(analysis: Analysis, each: Comparison) -> list[LeftOut]:
    """From the surest to the least sure; empty with too few seeds to leave one out."""
    plan = analysis.facts.plan
    if plan is None:
        return []
    candidate, baseline = (analysis.sample(name, plan.primary) for name in (each.config, plan.procedure.baseline))
    if min(candidate.n, baseline.n) <= 2:
        return []
    found = [
        *(LeftOut(candidate.config, seed, _p(_without(candidate, seed), baseline, each)) for seed in candidate.by_seed),
        *(LeftOut(baseline.config, seed, _p(candidate, _without(baseline, seed), each)) for seed in baseline.by_seed),
    ]
    return sorted(found, key=lambda one: one.p)


def _without(sample: Sample, seed: str) -> Sample:
    return replace(sample, by_seed={name: value for name, value in sample.by_seed.items() if name != seed})


def _p(candidate: Sample, baseline: Sample, each: Comparison) -> float:
    estimate, (se, df) = candidate.mean - baseline.mean, welch(candidate, baseline)
    turned = (estimate > 0) != (each.difference.estimate > 0)
    return 1.0 if not se or df is None or turned else t_two_sided(estimate / se, df)
