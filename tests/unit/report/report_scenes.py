"""Campaigns that were never run: one for each verdict, in the shape of the sprint that Muster was made for."""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from muster.app.facts.report_analysis import ReportAnalysis, analyse_facts
from muster.app.facts.report_facts import DecisionPlan, Measurement, MissingCell, ReportFacts, ResultColumn
from muster.stats.decision_procedure import DecisionProcedure
from muster.stats.red_flags import CellMaking, DeclaredMetrics
from muster.stats.seed_planning import SeedPrice

Language = Literal["en", "zh"]
Values = Mapping[str, Mapping[str, Sequence[float]]]  # column -> config -> seeds
CONFIGS = ("v2_baseline", "v2_u_only", "v2_cert_only", "v2_full")
SCORE, COST, ID, PENALTY = (
    ResultColumn("ood", "score"),
    ResultColumn("ood", "cost"),
    ResultColumn("id", "score"),
    ResultColumn("train", "risk_penalty"),
)
FACTORS = {
    "v2_baseline": {"u": 0, "cert": 0},
    "v2_u_only": {"u": 1, "cert": 0},
    "v2_cert_only": {"u": 0, "cert": 1},
    "v2_full": {"u": 1, "cert": 1},
}
PROXY = "hallu.level=2 stands for out-of-distribution; it is no formal OOD split"


def spread(mean: float, sd: float, n: int = 5, turn: int = 0) -> list[float]:
    """n values with this mean and about this sd; another turn draws others."""
    draws = random.Random(f"{turn} of {n}").choices(range(10_000), k=n)
    middle, width = statistics.fmean(draws), statistics.stdev(draws) if n > 1 else 1.0
    return [round(mean + sd * (1 + 0.06 * turn) * (draw - middle) / width, 4) for draw in draws]


def measured(values: Values) -> tuple[Measurement, ...]:
    """One cell for each config, seed and head, with all of its metrics."""
    found: dict[str, Measurement] = {}
    for name, configs in values.items():
        head, _, metric = name.rpartition("/")
        for config, numbers in configs.items():
            for seed, value in enumerate(numbers):
                job = "train" if head == "train" else "eval"
                cell = f"{job}/{config}/{seed}" + ("" if job == "train" else f"/{head}")
                known = found.get(cell, Measurement(cell, job, config, str(seed), head, {}))
                found[cell] = replace(known, results={**known.results, metric: value})
    return tuple(found.values())


def facts(values: Values, *, language: Language = "en", **changed: Any) -> ReportFacts:
    cells = measured(values)
    seeds = max((len(numbers) for configs in values.values() for numbers in configs.values()), default=0)
    made: dict[str, Any] = {
        "campaign": "paper-sprint",
        "folder": "/home/me/paper-sprint",
        "language": language,
        "at": "2026-02-26T10:30:00+08:00",
        "version": "0.1.0",
        "code": "4f2c1aa",
        "configs": tuple(dict.fromkeys(each.config for each in cells)),
        "seeds": tuple(str(seed) for seed in range(seeds)),
        "columns": tuple(ResultColumn(*name.rpartition("/")[::2]) for name in values),
        "measured": cells,
        "k": len(cells),
        "n": len(cells) + len(changed.get("missing", ())),
        "plan": plan(),
        "declared": DeclaredMetrics(primary="score", cost="cost", splits=("id", "ood"), proxies={"ood": PROXY}),
        "proxies": {"ood": PROXY},
        "price": SeedPrice(hours=1.7, money=3.37),
        "currency": "CNY",
        "budget_left": 128.8,
    }
    return ReportFacts(**{**made, **changed})


def plan(**changed: Any) -> DecisionPlan:
    """`limit`, `delta`, ... go to the procedure, all else to the plan."""
    own = {name: changed.pop(name) for name in ("primary", "checkpoint", "factors", "notes") if name in changed}
    rules = {"baseline": "v2_baseline", "limit": 25.0, "delta": 0.3, **changed}
    column = None if rules["limit"] is None else COST
    return DecisionPlan(DecisionProcedure(**rules), **{"primary": SCORE, "limit": column, "factors": FACTORS, **own})


def sprint(
    scores: Mapping[str, Sequence[float]], costs: Mapping[str, Sequence[float]], id_shift: float = 0.35
) -> dict[str, dict[str, Sequence[float]]]:
    """The columns of the reference: id/score, ood/score, ood/cost, train/risk_penalty."""
    ids = {
        c: [round(v + id_shift + 0.05 * i, 4) for i, v in enumerate(reversed(values))] for c, values in scores.items()
    }
    penalty = {
        config: spread(2.8 + 0.1 * turn if turn % 2 else 0.1 * (turn + 1), 0.05, len(values), turn + 10)
        for turn, (config, values) in enumerate(scores.items())
    }
    return {"id/score": ids, "ood/score": dict(scores), "ood/cost": dict(costs), "train/risk_penalty": penalty}


def scores(means: Sequence[float], sd: float = 0.2, n: int = 5) -> dict[str, list[float]]:
    return {config: spread(mean, sd, n, turn) for turn, (config, mean) in enumerate(zip(CONFIGS, means, strict=False))}


def costs(means: Sequence[float], n: int = 5) -> dict[str, list[float]]:
    return {c: spread(mean, 1.0, n, turn + 5) for turn, (c, mean) in enumerate(zip(CONFIGS, means, strict=False))}


SAFE = (20.0, 16.5, 19.0, 14.5)


def made_of(cells: Sequence[Measurement]) -> tuple[CellMaking, ...]:
    """Every training with hashes of its own, saved at its end."""
    trained = dict.fromkeys((each.config, each.seed) for each in cells)
    return tuple(
        CellMaking(f"train/{c}/{s}", c, s, checkpoint=f"{c}{s}", saved_share=0.99, curve=f"curve {c}{s}", settings=f"set {c}", steps=120000.0,
             used_by=(f"eval/{c}/{s}/id", f"eval/{c}/{s}/ood"))
        for c, s in trained
    )  # fmt: skip


def recommend(language: Language = "en", **changed: Any) -> ReportFacts:
    values = sprint(scores((2.2, 2.3, 2.1, 3.1)), costs((24.0, 16.5, 19.0, 9.5)))
    return facts(values, language=language, **{"made": made_of(measured(values)), **changed})


def unsafe_baseline(language: Language = "en", **changed: Any) -> ReportFacts:
    values = sprint(scores((2.2, 2.25, 2.1, 2.18), sd=0.09), costs((83.0, 16.5, 59.0, 14.5)))
    return facts(values, language=language, **changed)


def equivalent(language: Language = "en", **changed: Any) -> ReportFacts:
    values = sprint(scores((2.2, 2.23, 2.19, 2.22), sd=0.09), costs(SAFE))
    return facts(values, language=language, **changed)


def not_enough(language: Language = "en", **changed: Any) -> ReportFacts:
    values = sprint(scores((2.2, 2.43, 1.67, 2.5), sd=0.5), costs((20.0, 16.5, 24.0, 14.5)))
    return facts(values, language=language, **changed)


def keep_baseline(language: Language = "en", **changed: Any) -> ReportFacts:
    values = sprint(scores((2.2, 1.2, 1.1, 2.9), sd=0.12), costs((20.0, 16.5, 19.0, 44.5)))
    return facts(values, language=language, **changed)


def incomplete(language: Language = "en", **changed: Any) -> ReportFacts:
    """The reference: seed 2 of three configs was never run, because of a filter that nobody wrote down."""
    values = sprint(scores((2.2, 2.43, 1.67, 3.0)), costs(SAFE))
    whole = measured(values)
    gone = [each for each in whole if each.seed == "2" and each.config != "v2_baseline"]
    missing = tuple(
        MissingCell(f"train/{c}/2", "PENDING", "left out by --only seed=3,4") if each.job == "train" else MissingCell(each.cell, "BLOCKED", f"needs train/{c}/2")
        for each in gone
        for c in [each.config]
    )  # fmt: skip
    kept = tuple(each for each in whole if each not in gone)
    return facts(
        values, language=language, **{"measured": kept, "k": len(kept), "n": len(whole), "missing": missing, **changed}
    )


def invalid(language: Language = "en", **changed: Any) -> ReportFacts:
    """The reference's table: 1.684±0.741 three times, from two seeds; most likely untrained weights."""
    values = {
        "id/score": {c: [1.16, 2.208] for c in CONFIGS[:3]} | {"v2_full": [1.628, 2.208]},
        "ood/score": {"v2_baseline": [2.096, 2.31], "v2_u_only": [1.702, 3.152], "v2_cert_only": [1.007, 2.341], "v2_full": [0.841, 1.157]},
        "ood/cost": {"v2_baseline": [80.5, 85.5], "v2_u_only": [12.5, 20.5], "v2_cert_only": [51.0, 67.5], "v2_full": [10.2, 18.8]},
        "train/risk_penalty": {"v2_baseline": [0.0, 0.0], "v2_u_only": [2.713, 2.885], "v2_cert_only": [0.021, 0.031], "v2_full": [2.801, 2.973]},
    }  # fmt: skip
    made = tuple(
        CellMaking(
            f"train/{c}/{s}",
            c,
            str(s),
            checkpoint=f"{c}{s}",
            saved_share=0.01,
            saved_early=True,
            used_by=(f"eval/{c}/{s}/id", f"eval/{c}/{s}/ood"),
        )
        for c in CONFIGS[:3]
        for s in range(2)
    )
    return facts(values, language=language, **{"made": made, **changed})


def no_plan(language: Language = "en", **changed: Any) -> ReportFacts:
    return recommend(language, **{"plan": None, "declared": DeclaredMetrics(), **changed})


SCENES = {
    "recommend": recommend,
    "unsafe_baseline": unsafe_baseline,
    "equivalent": equivalent,
    "keep_baseline": keep_baseline,
    "not_enough": not_enough,
    "incomplete": incomplete,
    "invalid": invalid,
    "no_plan": no_plan,
}


def analysed(scene: str, language: Language = "en", **changed: Any) -> ReportAnalysis:
    return analyse_facts(SCENES[scene](language, **changed))


NEAR = [1.01, 1.22, 0.93, 1.11, 1.05]


def pair(
    a: Sequence[float],
    b: Sequence[float],
    costs: tuple[Sequence[float], Sequence[float]] | None = None,
    rules: Mapping[str, Any] | None = None,
    **changed: Any,
) -> ReportAnalysis:
    """A baseline and one candidate. `rules` go to the plan; without costs there is no limit."""
    values: dict[str, dict[str, Sequence[float]]] = {"ood/score": {"v2_baseline": a, "v2_full": b}}
    own: dict[str, Any] = {"factors": {}, "limit": None, **(rules or {})}
    if costs is not None:
        values["ood/cost"] = {"v2_baseline": costs[0], "v2_full": costs[1]}
        own = {"limit": 25.0, **{name: rule for name, rule in own.items() if name != "limit" or rule is not None}}
    return analyse_facts(facts(values, **{"plan": plan(**own), **changed}))
