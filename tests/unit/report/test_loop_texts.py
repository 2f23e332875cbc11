"""The report of a loop. After a change of words that is meant:
MUSTER_GOLDEN=1 python -m pytest tests/unit/report/test_loop_texts.py, then read the difference as its reader would."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from jsonschema import Draft202012Validator
from loop_scenes import LARGE, LITTLE, SETTINGS, facts, large, run, seeds, small, summary, tried
from markdown_it import MarkdownIt

from muster.acts.loop_report_json import summary_json
from muster.acts.tried import Run
from muster.report.figures.lineage import BOX, HIGH, lineage_svg, placed
from muster.report.loop_facts import LoopFacts
from muster.report.loop_mermaid import mermaid, safe
from muster.report.loop_pictures import curve, tree
from muster.report.loop_report import loop_markdown, number
from muster.report.loop_say import Say

GOLDEN = Path(__file__).parent / "golden_loop"
SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "schemas" / "loop_summary.schema.json").read_text("utf-8"))
LITTLE_MADE = {"parent": "a", "edits": LITTLE.edit, "reason": LITTLE.reason, "by": "little_mass"}


def text(of: LoopFacts) -> str:
    return loop_markdown(of, ["lineage.svg", "best_so_far.png"])


def bottom(of: LoopFacts) -> str:
    return text(of).partition("\n## ")[0]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_small_loop_as_it_was_read(language: str) -> None:
    path = GOLDEN / f"small.{language}.md"
    if os.environ.get("MUSTER_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text(small(language)), "utf-8")
    assert text(small(language)) == path.read_text("utf-8")


@pytest.mark.parametrize("made", [small(), large(4, 3, 1, 3), large(6, 4, 2, 1, keep=4)], ids=["small", "seeds", "one"])
def test_the_json_follows_its_schema(made: LoopFacts) -> None:
    told = summary_json(made, ["reports/loop/summary.md"])
    Draft202012Validator(SCHEMA).validate(json.loads(json.dumps(told, allow_nan=False)))
    assert [each["name"] for each in told["variants"]] == [each.name for each in made.variants]


def test_every_table_has_as_many_cells_in_each_row() -> None:
    """Names and reasons of people have pipes in them."""
    made = (
        tried("a", 1, [run("train/a", 0.5)], by="base"),
        tried("b|c", 2, [run("train/b|c", 0.4)], **LITTLE_MADE | {"reason": "a | b"}),
    )
    html = MarkdownIt().enable("table").render(text(facts(made)))
    for table in re.findall(r"<table>.*?</table>", html, re.DOTALL):
        rows = re.findall(r"<tr>.*?</tr>", table, re.DOTALL)
        assert len({len(re.findall(r"<t[hd]", row)) for row in rows}) == 1
    assert "b|c" in html


# -- how sure


def test_one_seed_is_told_as_such() -> None:
    made = facts([tried("a", 1, [run("train/a", 0.5)], by="base"), tried("b", 2, [run("train/b", 0.4)], **LITTLE_MADE)])
    assert made.best
    assert made.best.name == "b"
    assert "One seed: a gain can't be told from noise" in bottom(made)
    assert "beyond the noise" not in bottom(made)
    assert made.noise is None
    assert "One seed each" in text(made).partition("## Which rules pay")[2]


def test_a_better_mean_within_the_noise_takes_no_place() -> None:
    made = facts([
        tried("a", 1, seeds("a", 0.50, 0.40, 0.45), by="base"), tried("b", 2, seeds("b", 0.49, 0.39, 0.44), **LITTLE_MADE),
    ])  # fmt: skip
    assert made.best
    assert made.best.name == "a"
    assert made.against is None
    assert "no variant is better beyond the noise" in bottom(made)
    assert "`b` has the better mean (0.440 ± 0.050 (n = 3)), but not beyond the noise" in bottom(made)


def test_two_seeds_are_too_few_and_that_is_told() -> None:
    made = facts(
        [tried("a", 1, seeds("a", 0.50, 0.51), by="base"), tried("b", 2, seeds("b", 0.46, 0.48), **LITTLE_MADE)]
    )
    assert made.best
    assert made.best.name == "a"
    assert "`b` has the better mean (0.470 ± 0.014 (n = 2)), but two seeds hardly ever tell" in bottom(made)


def test_seeds_without_a_spread_are_doubted() -> None:
    made = facts([tried("a", 1, seeds("a", 0.5, 0.5), by="base"), tried("b", 2, seeds("b", 0.4, 0.4), **LITTLE_MADE)])
    assert "the seeds show no spread at all" in bottom(made)


def test_higher_may_be_better() -> None:
    made = facts(
        [tried("a", 1, seeds("a", 0.1, 0.2), by="base"), tried("b", 2, seeds("b", 0.8, 0.9), **LITTLE_MADE)],
        replace(SETTINGS, better="higher"),
    )
    assert made.best
    assert made.best.name == "b"
    assert made.against
    assert made.against.difference == pytest.approx(0.7)
    assert made.against.interval
    assert made.against.interval[0] < 0.7 < made.against.interval[1]
    assert made.variant("b").gain == pytest.approx(0.7)


def test_without_an_expression_to_rank_by_nothing_is_called_the_best() -> None:
    made = facts([tried("a", 1, [run("train/a", 0.5)], by="base")], replace(SETTINGS, by=""))
    assert made.best is None
    assert "**No best variant can be named**" in bottom(made)
    assert "no gain can be told" in text(made)
    assert "stroke-dasharray" not in "\n".join(mermaid(made, Say(made)))
    assert curve(made) == {}
    assert summary_json(made)["best"] is None


def test_a_best_one_that_died_is_told() -> None:
    died = replace(run("train/a", 0.3), verdict="DEAD", why="exit code 1")
    made = facts([tried("a", 1, [died], by="base"), tried("b", 1, [run("train/b", 0.5)], by="base")])
    assert "did not end well" in bottom(made)


# -- what comes next


def waiting(*verdicts: str) -> LoopFacts:
    runs = [Run(f"train/b/{at}", verdict) for at, verdict in enumerate(verdicts)]
    return facts([tried("a", 1, [run("train/a", 0.5)], by="base"), tried("b", 2, runs, **LITTLE_MADE)], busy=False)


def test_what_comes_next_is_told() -> None:
    assert "**Round 2 of 3 comes next**: 1 variant; `muster loop run` goes on" in bottom(waiting("PENDING"))
    assert "**Round 2 of 3 is under way**: 1 of 2 runs are over" in bottom(waiting("DONE", "RUNNING"))
    assert "**Round 2 of 3 is over**" in bottom(waiting("DEAD"))
    assert "nobody has to do anything" in bottom(replace(waiting("PENDING"), busy=True))
    assert "`muster release`" in bottom(replace(waiting("PENDING"), intent="held"))
    assert "(not finished: 1 of 2 runs are over)" in text(waiting("PENDING")).splitlines()[0]
    assert "not finished" not in text(waiting("DEAD")).splitlines()[0]


@pytest.mark.parametrize(
    ("recorded", "said"),
    [
        ("the one round is done", "唯一的一轮已完成"),
        ('the target is reached: last("l1") < 0.1 holds for a_1', '`a_1` 满足 `last("l1") < 0.1`'),
        ('no gain in 2 rounds: last("l1") is still best with a (0.51)', '连续 2 轮没有提升：按 `last("l1")` 最好的仍是 `a`（0.51）'),
        ("no proposals because 1 of 1 run left no history", "没有新的提案，原因：1 of 1 run left no history"),
        ("something new", "something new"),
    ],
)  # fmt: skip
def test_every_stop_is_told_in_the_campaigns_language(recorded: str, said: str) -> None:
    assert said in bottom(facts([tried("a", 1, [run("train/a", 0.5)], by="base")], language="zh", stopped=recorded))
    english = bottom(facts([tried("a", 1, [run("train/a", 0.5)], by="base")], stopped=recorded))
    assert f"has stopped**: {recorded}." in english.replace("`", "")


def test_runs_in_trouble_are_named_with_their_cause() -> None:
    silent = Run("train/b", "DONE", unread="nothing that it logged is in out")
    lost = Run("train/c", "UNKNOWN", "the host does not answer")
    made = facts(
        [tried(name, 1, [one], by="base") for name, one in (("a", run("train/a", 0.5)), ("b", silent), ("c", lost))]
    )
    assert "**2 of 3 runs failed or left no history**" in bottom(made)
    assert "`train/b`: DONE: no readable history: nothing that it logged is in out" in bottom(made)
    assert "`train/c`: UNKNOWN: the host does not answer" in bottom(made)
    nothing = facts([tried("b", 1, [silent], by="base")])
    assert "**The only run failed or left no history**" in bottom(nothing)
    assert "**No variant has a score**" in bottom(nothing)
    assert "Nothing was logged." in text(nothing)


# -- rules


def test_which_rules_pay() -> None:
    large = {"edits": LARGE.edit, "reason": LARGE.reason, "by": "large_gradient"}
    made = facts([
        tried("a", 1, [run("train/a", 0.5)], by="base"),
        *(tried(f"b{at}", 2, [run(f"train/b{at}", value)], **LITTLE_MADE) for at, value in enumerate((0.4, 0.45, 0.52))),
        tried("c", 3, [Run("train/c", "DEAD", "exit code 1")], parent="b0", **large),
        tried("d", 3, [run("train/d", 0.6)], parent="b0", by="a person", reason="to see"),
    ])  # fmt: skip
    found = {each.rule: each for each in made.rules}
    assert list(found) == ["little_mass", "large_gradient", 'missing("ot.pi_sum") -> lr@mul=1.1', "default", "a person"]
    little = found["little_mass"]
    assert (little.made, len(little.gains), little.better) == (3, 3, 2)
    assert little.mean == pytest.approx((0.1 + 0.05 - 0.02) / 3)
    assert little.interval
    assert (found["large_gradient"].made, found["large_gradient"].gains) == (1, ())
    assert found["default"].made == 0
    assert found["a person"].gains == pytest.approx([-0.2])
    assert "| default | mild OT | never fired |" in text(made)


# -- numbers


def test_what_is_no_number_is_told_as_what_it_is() -> None:
    assert [number(value) for value in (None, float("nan"), float("-inf"), 3.0, 0.123456, 1e9)] == [
        "—", "NaN", "-inf", "3", "0.1235", "1e+09",
    ]  # fmt: skip
    kept = {"train.l1": summary("train.l1", 0.5, float("nan")), "eval/x": summary("eval/x", 1.0)}
    made = facts([tried("a", 1, [Run("train/a", "DONE", summaries=kept)], by="base")])
    assert "| train/a (1 of 2 not finite) | 0.5 | NaN | 0.5 | — | — |" in text(made)
    assert summary_json(made)["variants"][0]["runs"][0]["metrics"]["train.l1"]["last"] is None
    assert made.variants[0].values == ()


def test_the_keys_that_rank_and_rule_come_first_and_eight_are_shown() -> None:
    logged = {key: summary(key, 1.0, 2.0) for key in (*(f"z{at}" for at in range(9)), "grad_norm", "train/l1", "_step")}
    made = facts([tried("a", 1, [Run("train/a", "DONE", summaries=logged)], by="base")])
    assert made.keys == ("train/l1", "grad_norm", *(f"z{at}" for at in range(6)))
    assert made.more_keys == 4
    assert "4 more keys are in summary.json" in text(made)
    assert set(summary_json(made)["variants"][0]["runs"][0]["metrics"]) == set(logged)


# -- pictures


def test_what_people_write_does_no_harm_in_mermaid() -> None:
    assert safe('a "b" <c> #d `e` |f| [g]') == ("a #34;b#34; #60;c#62; #35;d #96;e#96; #124;f#124; #91;g#93;")
    many = large(6, 13, 2, 1, keep=9)
    assert len(many.variants) > 200
    assert "".join(mermaid(many, Say(many))).startswith(f"{len(many.variants)} variants are too many")


@pytest.mark.parametrize("made", [small(), small("zh"), large(4, 3, 1, 3), large(8, 5, 2, 3, keep=6)])
def test_the_lineage_is_drawn_without_overlaps(made: LoopFacts) -> None:
    root = ElementTree.fromstring(lineage_svg(made))
    assert root.tag.endswith("svg")
    spots = list(placed(made).values())
    assert {spot.of.name for spot in spots} == {each.name for each in made.variants}
    assert len({(spot.column, spot.row) for spot in spots}) == len(spots)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    assert all(spot.x + BOX <= width and spot.y + HIGH <= height for spot in spots)
    by_name = placed(made)
    for spot in spots:  # a line runs along the child's row: no box between
        parent = by_name.get(spot.of.variant.parent or "")
        between = [one for one in spots if parent and one.row == spot.row and parent.column < one.column < spot.column]
        assert not between


def test_strange_names_and_reasons_stay_well_formed() -> None:
    made = facts([
        tried("a<b>&\x01", 1, [run("train/a", 0.5)], by="base"),
        tried("名字很长" * 20, 2, [run("train/b", 0.4)], parent="a<b>&\x01", reason="“引号” & <tag> " * 9, by="x"),
    ])  # fmt: skip
    words = "".join(ElementTree.fromstring(tree(made)["lineage.svg"]).itertext())
    assert "a<b>&" in words
    assert set(curve(made)) == {"best_so_far.png", "best_so_far.svg", "best_so_far.pdf"}


def test_the_curve_is_the_same_bytes_for_the_same_facts() -> None:
    assert curve(small()) == curve(small())


def test_one_run_that_went_wrong_does_not_flatten_the_others() -> None:
    from muster.report.figures.best_so_far import _ground

    values = (0.5, 0.48, 0.45, 1e6)
    made = facts([tried(f"a{at}", 1, [run(f"train/a{at}", value)], by="base") for at, value in enumerate(values)])
    ground = _ground(made)
    assert ground.high < 1
    assert all(ground.inside(value) for value in values[:3])
    assert set(curve(made)) == {"best_so_far.png", "best_so_far.svg", "best_so_far.pdf"}
