"""Published scores of others are valid: their ties are those of counts, lattices and saturated tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from muster.app.facts.report_analysis import analyse_facts
from muster.app.facts.report_facts import DecisionPlan, Measurement, ReportFacts, ResultColumn
from muster.stats.decision_procedure import DecisionProcedure
from muster.stats.red_flags import DeclaredMetrics

FOLDER = Path(__file__).parents[2] / "fixtures/published"


def published(name: str) -> dict[str, dict[str, list[float]]]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    assert "github.com/" in found["source"]
    return found["scores"]  # type: ignore[no-any-return]


def campaign(scores: dict[str, dict[str, list[float]]], primary: str) -> ReportFacts:
    measured = tuple(
        Measurement(f"eval/{method}/{seed}/{task}", "eval", method, str(seed), task, {"score": float(value)})
        for task, methods in scores.items()
        for method, values in methods.items()
        for seed, value in enumerate(values)
    )
    methods = tuple(dict.fromkeys(each.config for each in measured))
    return ReportFacts(
        campaign="published", folder="", language="en", at="", version="", code="", configs=methods,
        seeds=tuple(map(str, range(10))), columns=tuple(ResultColumn(task, "score") for task in scores), measured=measured,
        k=len(measured), n=len(measured), plan=DecisionPlan(DecisionProcedure("ppo"), ResultColumn(primary, "score")),
        declared=DeclaredMetrics(primary="score"),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["atari100k", "dmc_proprio"])
def test_published_scores_are_valid_whichever_task_decides(name: str) -> None:
    scores = published(name)
    assert len(scores) == {"atari100k": 26, "dmc_proprio": 18}[name]
    flags = analyse_facts(campaign(scores, next(iter(scores)))).flags
    told = [flag.message for flag in flags if flag.level == "ERROR" or flag.aside]
    assert told == []
    for task in scores if name == "atari100k" else ("dmc_cartpole_balance_sparse", "dmc_ball_in_cup_catch"):
        found = analyse_facts(campaign(scores, task))
        assert found.decision.verdict not in ("INVALID", "INCOMPLETE"), task


def test_the_ties_in_question_are_there() -> None:
    atari, dmc = published("atari100k"), published("dmc_proprio")
    assert atari["atari_pong"]["ppo"].count(-20.0) == 2
    assert atari["atari_freeway"]["ppo"].count(0.0) == 4
    assert dmc["dmc_cartpole_balance_sparse"]["dreamerv3"] == [1000.0] * 5
    assert dmc["dmc_ball_in_cup_catch"]["d4pg"].count(964.0) == 2
