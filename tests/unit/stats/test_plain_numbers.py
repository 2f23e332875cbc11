"""What leaves `muster.stats` is plain: numpy's bool is no bool, and `is False` would never be true of it."""

import ast
import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import muster
from muster.stats import coincidences, decision_procedure, quantiles, samples, seed_planning

SOURCES = Path(muster.__file__).parent
RATES = {"base": [0.8, 0.9, 0.8, 0.9, 0.8], "new": [0.9, 1.0, 0.9, 1.0, 0.9], "third": [0.1, 0.4, 0.2, 0.3, 0.5]}


def drawn(config: str) -> samples.Sample:
    values = np.asarray(RATES[config])
    return samples.Sample(config, "ood", "score", {str(seed): value for seed, value in enumerate(values)})


def parts(value: Any, where: str) -> Iterator[tuple[str, Any]]:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from parts(getattr(value, field.name), f"{where}.{field.name}")
    elif isinstance(value, Mapping):
        for name, one in value.items():
            yield from parts(one, f"{where}[{name}]")
    elif isinstance(value, tuple | list):
        for index, one in enumerate(value):
            yield from parts(one, f"{where}[{index}]")
    else:
        yield where, value


def test_only_plain_numbers_leave() -> None:
    base, new, third = map(drawn, RATES)
    rules = decision_procedure.DecisionProcedure("base", limit=0.95, at_most=True, delta=0.5)
    found = decision_procedure.decide_by_procedure(rules, [base, new, third], [base, new, third])
    capped = decision_procedure.judge_feasibility(drawn("new"), 0.95, cap=2.0)
    values: dict[str, Any] = {
        "decide": found,
        "keeps": [(each.vetoed, each.no_loss, each.equal_enough, each.config) for each in found.comparisons],
        "next": seed_planning.cheapest_next_step(rules, found, [base, new, third], seed_planning.SeedPrice(1.0, 2.0), 1.0),
        "difference": samples.difference_of_means(new, base),
        "interval": samples.difference_of_means(new, base).interval(),
        "welch": samples.welch_error_and_df(new, base),
        "permutation": samples.exact_permutation_p(tuple(np.asarray(RATES["new"])), tuple(np.asarray(RATES["base"]))),
        "least": samples.least_permutation_p(5, 5),
        "g": samples.hedges_effect_size(new, base),
        "improvement": samples.probability_of_improvement(RATES["new"], RATES["base"]),
        "holm": samples.holm_thresholds({"a": 0.01, "b": None}, 0.05),
        "feasibility": capped,
        "fails": capped.fail_at_most,
        "bounds": decision_procedure.bounds_of_mean(drawn("third"), 0.05),
        "share": decision_procedure.least_proven_share(5, 5),
        "veto": decision_procedure.exact_test_can_veto(rules, 5, 1),
        "sd": (seed_planning.pooled_sd_of_samples([base, new]), seed_planning.cautious_pooled_sd([base, new])),
        "power": (seed_planning.power_of_two_groups(5, 1.0, 1.0, 0.05), seed_planning.seeds_for_difference(1.0, 1.0, 0.05, 0.8)),
        "detectable": seed_planning.detectable_difference(5, 1.0, 0.05, 0.8),
        "t": (quantiles.student_t_quantile(0.9, 4), quantiles.student_t_p_value(2.0, 4), quantiles.student_t_power(1.0, 8, 0.05)),
        "quantiles": (quantiles.beta_quantile(0.1, 2, 3), quantiles.chi2_quantile(0.1, 4), quantiles.log_gamma_function(3.0)),
        "pivot": quantiles.lognormal_shift(0.95, 5, 0.3),
        "sample": (new.values, new.mean, new.sd, new.se, new.bound(0.9), new.interval),
        "grain": coincidences.grain_of_values(np.asarray(RATES["new"])),
        "ties": [(each.whole, each.bound, each.chance) for each in coincidences.find_seed_ties(coincidences.build_tie_columns([base, new, third], {}))],
        "iqm": samples.interquartile_mean(tuple(np.asarray(RATES["new"]))),
    }  # fmt: skip
    inputs = ("difference.candidate", "difference.baseline")
    kinds = {where: type(one) for where, one in parts(values, "") if not where.endswith(inputs)}
    assert {where: kind for where, kind in kinds.items() if kind not in (int, float, bool, str, type(None))} == {}


def test_nothing_is_compared_with_true_or_false_by_identity() -> None:
    found = []
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Compare):
                sides = zip(node.ops, node.comparators, strict=True)
                if any(isinstance(op, ast.Is | ast.IsNot) and _is_bool(side) for op, side in sides):
                    found.append(f"{path.relative_to(SOURCES)}:{node.lineno}: {ast.unparse(node)}")
    assert found == []


def _is_bool(side: ast.expr) -> bool:
    return isinstance(side, ast.Constant) and isinstance(side.value, bool)
