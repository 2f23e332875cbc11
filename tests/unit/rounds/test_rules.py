"""Which rules fire, what they propose, and what is said of the others."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metric_world import logged

import muster.rules
from muster.model.campaign import LoopDefault, LoopRule
from muster.rules.config_paths import UnreadableConfig
from muster.rules.evaluate_expressions import MetricSummaries
from muster.rules.loop_settings import read_ready_rules
from muster.rules.proposal_rules import (
    Proposal,
    RulesRefused,
    Ruling,
    evaluate_rules,
    explain_rulings,
    find_rule_mistakes,
)

CONFIG = json.dumps({"lr": 0.1, "window": 8, "reg": 0.01})
SMALL = LoopRule('last("pi") < 0.05', ("reg@mul=1.5", "window@mul=1.5@max=10"), "mass too small")
STEEP = LoopRule('max("grad") > 10', ("lr@mul=0.5",), "gradients too large", priority=5)
MILD = LoopDefault(("lr@mul=0.9",), "mild")


def outcomes(
    rules: list[LoopRule], metrics: MetricSummaries, default: LoopDefault | None = MILD, **more: Any
) -> dict[str, str]:
    return {found.reason: found.outcome for found in evaluate_rules(rules, default, metrics, CONFIG, "json", **more)}


def propose(*asked: Any) -> list[Proposal]:
    return [ruling.proposal for ruling in evaluate_rules(*asked) if ruling.proposal]


def test_priority_then_order() -> None:
    late = LoopRule('last("pi") < 1', ("reg@mul=2",), "first of its kind")
    found = propose([SMALL, late, STEEP], MILD, logged(pi=[0.01], grad=[50.0]), CONFIG, "json")
    assert [each.reason for each in found] == ["gradients too large", "mass too small", "first of its kind"]
    assert found[0].edits == ("lr@mul=0.5",)
    assert json.loads(found[0].edited.text) == {"lr": 0.05, "window": 8, "reg": 0.01}
    assert json.loads(found[1].edited.text) == {"lr": 0.1, "window": 10, "reg": 0.015}
    assert len({each.digest for each in found}) == 3


def test_default_only_when_nothing_else_is_proposed() -> None:
    assert outcomes([SMALL, STEEP], logged(pi=[0.01], grad=[1.0])) == {
        "gradients too large": "false", "mass too small": "proposed", "mild": "unneeded",
    }  # fmt: skip
    quiet = logged(pi=[0.5], grad=[1.0])
    found = propose([SMALL, STEEP], MILD, quiet, CONFIG, "json")
    assert [(each.rule, each.reason) for each in found] == [("default", "mild")]
    assert propose([SMALL, STEEP], None, quiet, CONFIG, "json") == []


def test_unknown_does_not_fire_and_says_why() -> None:
    found = evaluate_rules([SMALL, STEEP], None, logged(["pi"], grad=[1.0, math.nan]), CONFIG, "json")
    small = next(each for each in found if each.reason == "mass too small")
    assert (small.outcome, small.fired) == ("unknown", False)
    assert small.because == 'last("pi") = unknown < 0.05: unknown (this run logged no "pi"; others did)'


def test_a_limit_along_one_lineage() -> None:
    rule = LoopRule('last("pi") < 0.05', ("reg@mul=1.5",), "mass too small", limit=2)
    metrics = logged(pi=[0.01])
    for before, outcome in ((0, "proposed"), (1, "proposed"), (2, "spent"), (7, "spent")):
        assert outcomes([rule], metrics, fired_before={rule.id: before})["mass too small"] == outcome
    spent = evaluate_rules([rule], MILD, metrics, CONFIG, "json", {rule.id: 2})
    assert spent[0].because == ('last("pi") = 0.01 < 0.05: true, but it has fired 2 of 2 times along this lineage')
    assert spent[1].because == "no rule that fired has anything to propose"
    assert spent[1].outcome == "proposed"


def test_edits_that_change_nothing_are_no_proposal_and_are_said() -> None:
    held = LoopRule('last("pi") < 0.05', ("window@mul=1.5@max=8", "reg@mul=1"), "held")
    found = evaluate_rules([held], None, logged(pi=[0.01]), CONFIG, "json")[0]
    assert (found.outcome, found.proposal, found.fired) == ("idle", None, True)
    assert found.because == (
        'last("pi") = 0.01 < 0.05: true, but its edits change nothing: window stays 8 (held at 8), reg stays 0.01'
    )


def test_edits_that_do_not_fit_the_config_are_said_with_the_nearest_path() -> None:
    lost = LoopRule('last("pi") < 0.05', ("windw@mul=2", "lr@set=fast"), "lost")
    found = evaluate_rules([lost], MILD, logged(pi=[0.01]), CONFIG, "json")
    assert found[0].outcome == "refused"
    assert "windw matches nothing in the config; the nearest: window" in found[0].because
    assert "lr@set=fast: lr is a number (0.1), and 'fast' is none" in found[0].because
    assert found[1].outcome == "proposed"


def test_two_rules_to_the_same_config_make_one_proposal() -> None:
    twin = LoopRule('last("pi") < 1', ("reg@mul=1.5", "window@set=10"), "twin")
    found = evaluate_rules([SMALL, twin], None, logged(pi=[0.01]), CONFIG, "json")
    assert [each.outcome for each in found] == ["proposed", "same"]
    assert found[1].because.endswith("its edits give the same config as another rule's (mass too small)")


def test_explain_has_the_numbers_of_every_rule() -> None:
    found = evaluate_rules([SMALL, STEEP], MILD, logged(pi=[0.031], grad=[3.5]), CONFIG, "json")
    assert list(explain_rulings(found)) == [
        'gradients too large: did not fire: max("grad") = 3.5 > 10: false',
        'mass too small: fired: last("pi") = 0.031 < 0.05: true',
        "  reg: 0.01 -> 0.015",
        "  window: 8 -> 10 (held at 10)",
        "mild: not needed: a rule has fired",
    ]


def test_every_outcome_can_be_explained() -> None:
    for outcome in ("proposed", "false", "unknown", "spent", "idle", "same", "refused", "unneeded"):
        assert next(explain_rulings([Ruling("id", "reason", outcome, "because")])).startswith("reason: ")


def test_nothing_is_decided_by_rules_that_are_wrong() -> None:
    with pytest.raises(RulesRefused) as told:
        evaluate_rules(
            [LoopRule("last(pi) < 1", ("x",), "")], LoopDefault((), "mild"), logged(pi=[1.0]), CONFIG, "json"
        )
    assert [(each.at, each.field, each.item) for each in told.value.mistakes] == [
        (0, "when", None), (0, "edit", 0), (0, "reason", None), (None, "edit", None),
    ]  # fmt: skip


def test_a_config_that_can_not_be_read() -> None:
    with pytest.raises(UnreadableConfig):
        evaluate_rules([SMALL], None, logged(pi=[0.01]), "{", "json")


def test_the_same_input_gives_the_same_proposals() -> None:
    metrics = logged(pi=[0.01], grad=[50.0])
    assert propose([SMALL, STEEP], MILD, metrics, CONFIG, "json") == propose(
        [SMALL, STEEP], MILD, metrics, CONFIG, "json"
    )


@given(st.lists(st.integers(-3, 3), max_size=6))
def test_the_order_is_by_priority_and_stable(priorities: list[int]) -> None:
    rules = [LoopRule(f"{at} < 9", (f"lr@add={at + 1}",), str(at), priority) for at, priority in enumerate(priorities)]
    found = [int(each.reason) for each in propose(rules, None, MetricSummaries({}), CONFIG, "json")]
    assert found == sorted(range(len(rules)), key=lambda at: (-priorities[at], at))


# -- the rule set that comes with Muster

ACT_OT = """{
  "batch_size": 8,
  "optimizer": {"type": "adamw", "lr": 1e-4, "weight_decay": 1e-3},
  "ot": {"lambda_ot": 0.1, "window": 8, "loss_config": {"reg": 0.01, "tau_src": 1.0, "tau_tgt": 1.0,
    "features": [{"key": "action", "weight_label": 0.01}, {"key": "image", "weight_label": 0.02}]}}
}"""
HEALTHY: dict[str, list[float]] = {
    "ot__pi_sum": [0.2, 0.3], "ot__pi_diag": [0.1, 0.2], "ot__cost": [1.0, 0.5], "train__l1": [1.0, 0.4], "grad_norm": [1.0, 1.0],
}  # fmt: skip


def act(**other: list[float]) -> Any:
    """The first proposal of the ready rules for a run with these metrics, and its config."""
    columns = {key: values for key, values in (HEALTHY | other).items() if values}
    ready = read_ready_rules("act_ot")
    found = propose(ready.rules, ready.default, logged(**columns), ACT_OT, "json")[0]
    return found.rule, json.loads(found.edited.text)


def test_the_ready_rules_are_right() -> None:
    for file in (Path(muster.rules.__file__).parent / "ready").glob("*.toml"):
        ready = read_ready_rules(file.stem)
        assert find_rule_mistakes(ready.rules, ready.default) == []
        assert len({rule.name for rule in ready.rules}) == len(ready.rules)


def test_small_mass_gives_larger_reg_and_tau_and_a_wider_window_up_to_a_cap() -> None:
    rule, config = act(ot__pi_sum=[0.01, 0.02])
    assert rule == "act_ot.little_mass"
    plan = config["ot"]["loss_config"]
    assert (plan["reg"], plan["tau_src"], plan["tau_tgt"], config["ot"]["window"]) == (0.015, 2.0, 2.0, 10)


@pytest.mark.parametrize("mass", [{"ot__pi_sum": [0.9, 0.8]}, {"ot__pi_diag": [0.9, 0.8]}])
def test_high_mass_and_flat_cost_give_a_lower_label_weight_and_lambda(mass: dict[str, list[float]]) -> None:
    rule, config = act(**mass, ot__cost=[1.0, 0.99])
    assert rule == "act_ot.flat_cost"
    assert [each["weight_label"] for each in config["ot"]["loss_config"]["features"]] == [0.005, 0.01]
    assert config["ot"]["lambda_ot"] == 0.09


@pytest.mark.parametrize("flat", [{"train__l1": [1.0, 0.995]}, {"train__l1": [], "loss": [1.0, 1.2]}])
def test_a_flat_l1_gives_a_slightly_larger_learning_rate_and_batch(flat: dict[str, list[float]]) -> None:
    rule, config = act(**flat)
    assert rule == "act_ot.flat_l1"
    assert (config["optimizer"]["lr"], config["batch_size"]) == (0.00012, 10)


@pytest.mark.parametrize("steep", [[5.0] * 50 + [40.0] * 50, [1.0, math.nan]])
def test_large_gradients_come_before_a_larger_learning_rate(steep: list[float]) -> None:
    rule, config = act(grad_norm=steep, train__l1=[1.0, 1.1])
    assert rule == "act_ot.large_gradient"
    assert (config["optimizer"]["lr"], config["optimizer"]["weight_decay"]) == (0.00005, 0.002)


def test_else_a_mild_variant() -> None:
    rule, config = act()
    assert (rule, config["ot"]["lambda_ot"]) == ("default", 0.09)
    assert read_ready_rules("act_ot").default == LoopDefault(
        ("ot.lambda_ot@mul=0.9@min=0.01", "ot.loss_config.reg@mul=1.1@max=1"), "mild OT"
    )


def test_a_run_without_metrics_gets_the_mild_variant_and_every_reason() -> None:
    ready = read_ready_rules("act_ot")
    found = evaluate_rules(ready.rules, ready.default, MetricSummaries({}), ACT_OT, "json")
    assert [each.outcome for each in found] == ["unknown"] * 4 + ["proposed"]
    assert all("it logged nothing at all" in each.because for each in found[:4])
