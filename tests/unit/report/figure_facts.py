"""Made-up facts of a finished or half-finished matrix, for the tests of figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from muster.app.facts.report_analysis import ReportAnalysis, analyse_facts
from muster.app.facts.report_facts import (
    DecisionPlan,
    LearningCurve,
    Measurement,
    MissingCell,
    ReportFacts,
    ResultColumn,
)
from muster.stats.decision_procedure import DecisionProcedure

CONFIGS = ("baseline", "u_only", "cert_only", "v2_full")
SEEDS = ("0", "1", "2", "3", "4")
SPLITS = ("id", "ood")
LIMIT = 25.0


def wobble(*numbers: int) -> float:
    """Something irregular in -1..1, always the same."""
    return math.sin(sum((place + 2.3) * (number + 1.7) ** 1.7 for place, number in enumerate(numbers)) * 12.9898)


def score(config: int, seed: int, split: int) -> float:
    return 12 + 3 * config - 4 * split + 1.6 * wobble(config, seed, split)


def cost(config: int, seed: int, split: int) -> float:
    return 34 - 6 * config + 5 * split + 4 * wobble(config, seed, split, 3)


def curve(config: int, seed: int, kind: int, points: int = 120) -> tuple[tuple[float, ...], tuple[float, ...]]:
    steps = tuple(5000.0 * (point + 1) + 37 * seed for point in range(points))
    end = score(config, seed, 0) if kind == 0 else cost(config, seed, 0)
    start = 0.0 if kind == 0 else 60.0
    values = tuple(
        end + (start - end) * math.exp(-step / 1.2e5) + 1.5 * wobble(config, seed, kind, int(step // 5000))
        for step in steps
    )
    return steps, values


def everything(config: int, seed: int, split: int) -> bool:
    return True


def facts(
    configs: Sequence[str] = CONFIGS,
    seeds: Sequence[str] = SEEDS,
    *,
    done: Callable[[int, int, int], bool] = everything,
    language: str = "en",
    scores: Callable[[int, int, int], float] = score,
    costs: Callable[[int, int, int], float] = cost,
) -> ReportFacts:
    places = [(c, s, x) for c in range(len(configs)) for s in range(len(seeds)) for x in range(len(SPLITS))]
    measured = tuple(
        Measurement(
            f"eval/{configs[c]}/{seeds[s]}/{SPLITS[x]}",
            "eval",
            configs[c],
            seeds[s],
            SPLITS[x],
            {"score": scores(c, s, x), "cost": costs(c, s, x)},
        )
        for c, s, x in places
        if done(c, s, x)
    )
    states = ("PENDING", "DEAD", "GIVEN_UP", "RUNNING")
    missing = tuple(
        MissingCell(
            f"eval/{configs[c]}/{seeds[s]}/{SPLITS[x]}",
            states[(c + 2 * s) % 4 if s % 2 else 0],
            "its needs are not done",
        )
        for c, s, x in places
        if not done(c, s, x)
    )
    curves = tuple(
        LearningCurve(f"train/{name}/{seed}", name, seed, metric, f"episode/{metric}", *curve(c, s, kind))
        for kind, metric in enumerate(("score", "cost"))
        for c, name in enumerate(configs)
        for s, seed in enumerate(seeds)
        if done(c, s, 0)
    )
    return ReportFacts(
        campaign="safe-nav",
        folder="/home/me/safe-nav",
        language=language,  # type: ignore[arg-type]
        at="2026-01-05T10:00:00+00:00",
        version="0.3.0",
        code="1a2b3c4",
        configs=tuple(configs),
        seeds=tuple(seeds),
        columns=tuple(ResultColumn(split, metric) for metric in ("score", "cost") for split in SPLITS),
        measured=measured,
        k=len(measured),
        n=len(places),
        missing=missing,
        plan=DecisionPlan(
            DecisionProcedure(configs[0], limit=LIMIT, delta=1.0),
            ResultColumn("ood", "score"),
            ResultColumn("ood", "cost"),
        ),
        proxies={"ood": "shift.level=2 stands for out-of-distribution conditions"},
        curves=curves,
    )


def analysis(**how: object) -> ReportAnalysis:
    return analyse_facts(facts(**how))  # type: ignore[arg-type]


def changed(found: ReportFacts, **more: object) -> ReportAnalysis:
    return analyse_facts(replace(found, **more))  # type: ignore[arg-type]
