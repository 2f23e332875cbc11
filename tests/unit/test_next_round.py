"""The next round of a loop: parents, proposals, stop conditions in words."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from muster.app.loop.next_round import beats_beyond_noise, best_after_each_round, plan_next_round
from muster.app.loop.proposers import RuleProposer
from muster.model.campaign import DeclaredLoop, LoopDefault, LoopKeep, LoopRule, LoopStop
from muster.model.variant import LoopRecord, Variant
from muster.rules.edit_config import digest_config
from muster.rules.loop_settings import add_ready_rules
from muster.rules.metric_summary import Summarizer, Summary
from muster.rules.rank_variants import TriedVariant, VariantRun, VariantScore, average_summaries, score_variant

LITTLE = LoopRule('last("ot.pi_sum") < 0.05', ("reg@mul=1.5",), "mass too small", name="little")
LARGE = LoopRule('max("grad_norm") > 10', ("lr@mul=0.5",), "gradients too large", name="large")
KEEP = LoopKeep(by='last("eval.success")')
SETTINGS = DeclaredLoop("train", (), 3, rules=(LITTLE, LARGE), default=LoopDefault(("lam@mul=0.9",), "mild"), keep=KEEP)
CONFIG = {"reg": 0.1, "lr": 0.01, "lam": 1.0}


def summary(key: str, *values: float) -> Summary:
    found = Summarizer(key)
    for step, value in enumerate(values):
        found.add(step, value)
    return found.summary()


def run(cell: str, mass: float = 0.5, norm: float = 1.0, success: float = 0.5) -> VariantRun:
    made = {"ot.pi_sum": (0.1, mass), "grad_norm": (0.5, norm), "eval.success": (0.0, success)}
    return VariantRun(cell, "DONE", summaries={key: summary(key, *values) for key, values in made.items()})


def variant(name: str, number: int = 1, config: dict[str, Any] | None = None, **more: Any) -> Variant:
    return Variant(name, f"/{name}.json", number, digest_config(config or {**CONFIG, "name": name}), **more)


def tried(
    name: str, *runs: VariantRun, number: int = 1, config: dict[str, Any] | None = None, **more: Any
) -> TriedVariant:
    made = config or {**CONFIG, "name": name}
    return TriedVariant(variant(name, number, made, **more), runs, json.dumps(made))


def record(*all_tried: TriedVariant, stopped: str = "") -> LoopRecord:
    return LoopRecord(tuple(each.variant for each in all_tried), max(each.variant.round for each in all_tried), stopped)


def step(*all_tried: TriedVariant, settings: DeclaredLoop = SETTINGS, most: int = 3) -> Any:
    return plan_next_round(
        record(*all_tried), all_tried, settings, most, RuleProposer(settings.rules, settings.default)
    )


def test_each_run_gets_a_variant_by_the_rule_that_fires() -> None:
    found = step(tried("a", run("train/a", mass=0.01)), tried("b", run("train/b", norm=99)), tried("c", run("train/c")))
    assert [(each.variant.parent, each.variant.by, each.variant.reason) for each in found.proposed] == [
        ("a", "little", "mass too small"), ("b", "large", "gradients too large"), ("c", "default", "mild"),
    ]  # fmt: skip
    first = found.proposed[0]
    assert json.loads(first.text)["reg"] == 0.15
    assert first.variant.name == f"a_{first.variant.digest[:6]}"
    assert (first.variant.round, found.round, found.stopped) == (2, 2, "")


def test_names_come_from_the_base_and_do_not_chain() -> None:
    base = tried("a", run("train/a"))
    child = tried("a_0123ab", run("train/a_0123ab", mass=0.01), number=2, parent="a")
    (made,) = step(base, child).proposed
    assert made.variant.name == f"a_{made.variant.digest[:6]}"
    assert made.variant.parent == "a_0123ab"


def test_a_run_without_a_history_stops_nobody_else() -> None:
    found = step(
        tried("a", VariantRun("train/a", "DEAD", "exit_code(1)", unread="no metrics in it")), tried("b", run("train/b"))
    )
    assert [each.variant.parent for each in found.proposed] == ["b"]


def test_no_proposals_are_explained() -> None:
    silent = [tried(name, VariantRun(f"train/{name}", "DONE", unread="no .wandb file")) for name in "abc"]
    found = step(*silent, tried("d", run("train/d")), settings=replace(SETTINGS, default=None))
    assert found.proposed == ()
    assert found.stopped.startswith(
        "no proposals because 3 of 4 runs left no readable history: train/a: no .wandb file; train/b: no .wandb file"
    )
    assert 'mass too small: last("ot.pi_sum") = 0.5' in found.stopped


def test_what_was_tried_is_not_tried_again() -> None:
    base = tried("a", run("train/a", mass=0.01), config=CONFIG)
    same = tried("x", run("train/x"), config={**CONFIG, "reg": 0.15})
    found = step(base, same)
    assert [(each.variant.parent, each.variant.by) for each in found.proposed] == [("a", "default"), ("x", "default")]
    only = step(
        base, replace(same, runs=(VariantRun("train/x", "DEAD", "oom_kill"),)), settings=replace(SETTINGS, default=None)
    )
    assert "the config that its edits give was tried before, as x" in only.stopped


def test_where_the_best_have_nothing_new_the_next_ones_get_their_turn() -> None:
    settings = replace(
        SETTINGS, keep=replace(KEEP, top=1), rules=(), default=LoopDefault(("reg@set=0.15",), "one value")
    )
    best = tried("a", run("train/a", success=0.9), config={**CONFIG, "reg": 0.15})
    other = tried("b", run("train/b", success=0.1), config={**CONFIG, "lam": 7})
    assert [each.variant.parent for each in step(best, other, settings=settings).proposed] == ["b"]


def test_a_loop_without_rules_says_that_nothing_proposes() -> None:
    found = step(tried("a", run("train/a")), settings=replace(SETTINGS, rules=(), default=None))
    assert found.stopped == "no proposals because the campaign has neither rules nor a default to propose anything by"


def test_what_a_run_had_reached_when_it_died_is_no_score() -> None:
    died = replace(run("train/a", success=0.99), verdict="DEAD", why="exit_code(3)")
    assert score_variant(tried("a", died), SETTINGS.by) == VariantScore((), "train/a is DEAD: exit_code(3)")
    assert score_variant(tried("a", died, run("train/a/1", success=0.5)), SETTINGS.by).values == (0.5,)
    assert [each.variant.parent for each in step(tried("a", died)).proposed] == ["a"], "rules may still answer to it"


def test_seeds_that_diverge_in_both_directions_have_no_mean() -> None:
    up, down = summary("x", 1.0, math.inf), summary("x", 1.0, -math.inf)
    assert math.isnan(average_summaries([up, down]).tail[-1])
    huge = [summary("x", 1.7e308) for _ in range(3)]
    assert average_summaries(huge).last == pytest.approx(1.7e308)
    assert math.isnan(VariantScore((math.inf, -math.inf)).mean)


def test_figures_over_seeds_are_means() -> None:
    fast, slow = Summarizer("x"), Summarizer("x")
    for at in range(1, 11):
        fast.add(at, float(at))
        slow.add(10 * at, float(10 * at))
    found = average_summaries([fast.summary(), slow.summary()])
    assert (found.count, found.nan, found.slope) == (10, 0, 1.0)
    rise = (found.tail[-1] - found.tail[0]) / (found.tail_steps[-1] - found.tail_steps[0])
    assert rise == 1.0, "a window has the slope that each of them has"


def test_two_parents_do_not_propose_the_same_config() -> None:
    a = tried("a", run("train/a", mass=0.01), config=CONFIG)
    b = tried("b", run("train/b", mass=0.01), config={**CONFIG, "lr": 0.02})
    settings = replace(SETTINGS, rules=(LoopRule(LITTLE.when, ("lr@set=0.5",), "same"),))
    assert len(step(a, b, settings=settings).proposed) == 1


def test_the_best_of_all_rounds_are_built_on() -> None:
    first = [tried(name, run(f"train/{name}", success=value)) for name, value in (("a", 0.9), ("b", 0.2))]
    second = tried("c", run("train/c", success=0.5), number=2, parent="b")
    found = step(*first, second, settings=replace(SETTINGS, keep=replace(KEEP, top=2)))
    assert found.parents == ("a", "c")


def test_several_variants_of_one_run() -> None:
    found = step(tried("a", run("train/a", mass=0.01, norm=99)), settings=replace(SETTINGS, variants_per_run=2))
    assert [each.variant.by for each in found.proposed] == ["little", "large"]


def test_a_rule_fires_along_a_lineage_as_often_as_it_may() -> None:
    limited = replace(SETTINGS, rules=(replace(LITTLE, limit=1),), default=None)
    base = tried("a", run("train/a", mass=0.01))
    child = tried("b", run("train/b", mass=0.01), number=2, parent="a", by="little")
    assert "1 of 1 times along this lineage" in step(base, child, settings=limited).stopped


# -- stop conditions


def test_all_rounds_are_done() -> None:
    assert step(tried("a", run("train/a")), most=1).stopped == "the one round is done"
    assert step(tried("a", run("x")), tried("b", run("y"), number=2), most=2).stopped == "all 2 rounds are done"


def test_the_target_is_reached() -> None:
    settings = replace(SETTINGS, stop=LoopStop(target='last("eval.success") >= 0.9'))
    found = step(tried("a", run("train/a", success=0.95)), settings=settings)
    assert found.stopped == 'the target is reached: last("eval.success") >= 0.9 holds for a'


def test_no_gain_in_k_rounds() -> None:
    settings = replace(SETTINGS, stop=LoopStop(no_gain=2))
    course = [tried(f"v{at}", run(f"train/{at}", success=0.5), number=at) for at in (1, 2, 3)]
    assert step(*course[:2], settings=settings, most=9).stopped == ""
    assert step(*course, settings=settings, most=9).stopped.startswith("no gain in 2 rounds")


def test_a_gain_must_be_beyond_the_noise_of_the_seeds() -> None:
    def seeds(name: str, number: int, *values: float) -> TriedVariant:
        runs = [run(f"train/{name}/{at}", success=value) for at, value in enumerate(values)]
        return tried(name, *runs, number=number)

    first = seeds("a", 1, 0.50, 0.55, 0.45)
    lucky, real = seeds("b", 2, 0.70, 0.40, 0.52), seeds("c", 2, 0.80, 0.82, 0.78)
    settings = replace(SETTINGS, repeats=3)
    assert [gain.gained for gain in best_after_each_round(record(first, lucky), [first, lucky], settings)] == [
        True,
        False,
    ]
    best = best_after_each_round(record(first, real), [first, real], settings)[-1]
    assert (best.best, best.gained) == ("c", True)


@pytest.mark.parametrize(
    ("one", "other", "better", "expected"),
    [
        ((0.6,), (0.5,), "higher", True), ((0.6,), (0.5,), "lower", False), ((), (0.5,), "higher", False),
        ((0.5, 0.5), (0.4, 0.4), "higher", True), ((0.5,), (), "higher", True), ((0.9,), (0.5, 0.6), "higher", False), ((0.7, 0.8), (0.5,), "higher", True), ((0.5, 0.5), (0.5, 0.5), "higher", False),
    ],
)  # fmt: skip
def test_what_beats_what(one: tuple[float, ...], other: tuple[float, ...], better: str, expected: bool) -> None:
    assert beats_beyond_noise(VariantScore(one), VariantScore(other), better) is expected


def test_a_score_that_is_none_says_why() -> None:
    assert (
        score_variant(tried("a", VariantRun("train/a", "DEAD", unread="no history")), 'last("x")').why == "no history"
    )
    assert 'nothing logged "x"' in score_variant(tried("a", run("train/a")), 'last("x")').why
    assert score_variant(tried("a", run("train/a")), "").why == "nothing is declared to rank by"


def test_settings_of_a_campaign() -> None:
    found = add_ready_rules(DeclaredLoop(
        "train", ("a.json",), 3, use="act_ot", keep=LoopKeep(top=4, by='last("x")', better="lower"),
        rules=(LoopRule('last("x") > 1', ("a@mul=2",), "r", priority=2, limit=1),),
        stop=LoopStop(no_gain=2, target='last("x") < 1'),
    ))  # fmt: skip
    assert (found.top, found.better, found.stop.no_gain, found.stop.target) == (4, "lower", 2, 'last("x") < 1')
    assert (found.rules[0].priority, found.rules[0].limit, len(found.rules) > 3) == (2, 1, True)
    assert found.default is not None
