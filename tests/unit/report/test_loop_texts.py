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
from loop_scenes import KEEP, LARGE, LITTLE, ROOT, SETTINGS, facts, large, run, seeds, small, summary, tried
from markdown_it import MarkdownIt

from muster.app.loop.lineage_pictures import (
    BOX,
    HIGH,
    escape_mermaid_text,
    lineage_as_mermaid,
    lineage_as_svg,
    place_variants,
)
from muster.app.loop.loop_facts import LoopFacts
from muster.app.loop.loop_report import format_logged_number, loop_report_markdown
from muster.app.loop.loop_wording import RECORDED_FORMS, LoopWords
from muster.app.loop.publish_loop_report import (
    draw_best_so_far_curve,
    draw_lineage_picture,
    loop_summary_as_json,
    names_missing_in_curve,
)
from muster.model.campaign import Better
from muster.rules.rank_variants import VariantRun
from muster.text.phrases import english_text, phrase, speaking

GOLDEN = Path(__file__).parent / "golden_loop"
SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "schemas" / "loop_summary.schema.json").read_text("utf-8"))
LITTLE_MADE = {"parent": "a", "edits": LITTLE.edit, "reason": LITTLE.reason, "by": "little_mass"}


def text(of: LoopFacts) -> str:
    return loop_report_markdown(of, ["lineage.svg", "best_so_far.png"])


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
    told = loop_summary_as_json(made, ["reports/loop/summary.md"])
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


def test_before_anything_was_proposed_no_variant_is_spoken_of() -> None:
    bases = [tried(name, 1, [run(f"train/{name}", value)], by="base") for name, value in (("a", 0.5), ("b", 0.6))]
    assert "One seed: a difference can't be told from noise" in bottom(facts(bases))
    assert "no variant" not in bottom(facts(bases))
    assert "| little_mass | OT mass too small | 0 | 0 | 0 | — |" in text(facts(bases))
    assert "noise" not in bottom(facts(bases[:1]))


def test_a_better_mean_within_the_noise_takes_no_place() -> None:
    made = facts([
        tried("a", 1, seeds("a", 0.50, 0.40, 0.45), by="base"), tried("b", 2, seeds("b", 0.49, 0.39, 0.44), **LITTLE_MADE),
    ])  # fmt: skip
    assert made.best
    assert made.best.name == "a"
    assert made.against is None
    assert "no variant is better beyond the noise" in bottom(made)
    assert "`b` has the better mean (0.440 ± 0.050, n = 3), but not beyond the noise" in bottom(made)
    assert "two seeds" not in bottom(made)


def test_two_seeds_are_too_few_and_that_is_told() -> None:
    made = facts(
        [tried("a", 1, seeds("a", 0.50, 0.51), by="base"), tried("b", 2, seeds("b", 0.46, 0.48), **LITTLE_MADE)]
    )
    assert made.best
    assert made.best.name == "a"
    assert "`b` has the better mean (0.470 ± 0.014, n = 2), but not beyond the noise of the seeds." in bottom(made)
    assert "rests on two seeds" in bottom(made)


def test_what_two_seeds_show_is_doubted_once_for_all_of_it() -> None:
    """A gain beyond the noise beside one that is not: both were judged by two seeds."""
    made = facts([
        tried("a", 1, seeds("a", 0.512, 0.538), by="base"),
        tried("b", 2, seeds("b", 0.316, 0.336), **LITTLE_MADE),
        tried("c", 3, seeds("c", 0.195, 0.249), **LITTLE_MADE),
    ])  # fmt: skip
    assert made.best
    assert made.best.name == "b"
    lines = bottom(made).splitlines()
    at = next(at for at, line in enumerate(lines) if "beyond the noise of the seeds." in line)
    assert "it is better by 0.199" in lines[at]
    assert "`c` has the better mean" in lines[at + 1]
    assert lines[at + 2].startswith("  - All of this rests on two seeds, which show the noise only roughly")
    assert "hardly ever" not in bottom(made)


def test_seeds_without_a_spread_are_doubted() -> None:
    made = facts([tried("a", 1, seeds("a", 0.5, 0.5), by="base"), tried("b", 2, seeds("b", 0.4, 0.4), **LITTLE_MADE)])
    assert "the seeds show no spread at all" in bottom(made)


def test_higher_may_be_better() -> None:
    made = facts(
        [tried("a", 1, seeds("a", 0.1, 0.2), by="base"), tried("b", 2, seeds("b", 0.8, 0.9), **LITTLE_MADE)],
        replace(SETTINGS, keep=replace(KEEP, better="higher")),
    )
    assert made.best
    assert made.best.name == "b"
    assert made.against
    assert made.against.difference == pytest.approx(0.7)
    assert made.against.interval
    assert made.against.interval[0] < 0.7 < made.against.interval[1]
    assert made.variant("b").gain == pytest.approx(0.7)


@pytest.mark.parametrize(("better", "said"), [("lower", "better"), ("higher", "worse")])
def test_a_gain_is_told_in_words_whichever_direction_is_better(better: Better, said: str) -> None:
    made = facts(
        [tried("a", 1, [run("train/a", 0.5)], by="base"), tried("b", 2, [run("train/b", 0.3)], **LITTLE_MADE)],
        replace(SETTINGS, keep=replace(KEEP, better=better)),
    )
    assert f"| 0.3000; {said} than its parent by 0.2000 |" in text(made)
    assert f"({better} is better); below zero it is worse" in text(made)
    alike = facts(
        [tried("a", 1, [run("train/a", 0.5)], by="base"), tried("b", 2, [run("train/b", 0.5)], **LITTLE_MADE)]
    )
    assert "| 0.5000; as good as its parent |" in text(alike)


def test_without_an_expression_to_rank_by_nothing_is_called_the_best() -> None:
    made = facts([tried("a", 1, [run("train/a", 0.5)], by="base")], replace(SETTINGS, keep=None))
    assert made.best is None
    assert "**No best variant can be named**" in bottom(made)
    assert "no gain can be told" in text(made)
    assert "stroke-dasharray" not in "\n".join(lineage_as_mermaid(made, LoopWords(made)))
    assert draw_best_so_far_curve(made) == {}
    assert loop_summary_as_json(made)["best"] is None


def test_runs_of_the_best_one_that_died_are_told() -> None:
    died = replace(run("train/a/2", 0.3), verdict="DEAD", why="exit code 1")
    runs = [*seeds("a", 0.3, 0.31), died]
    made = facts([tried("a", 1, runs, by="base"), tried("b", 1, seeds("b", 0.5, 0.51), by="base")])
    assert "1 of its 3 runs did not end well and does not count." in bottom(made)
    assert made.variants[0].n == 2


def test_the_one_seed_that_is_left_of_several_is_told_as_one() -> None:
    dead = [VariantRun(f"train/b/{at}", "DEAD", "exit code 1") for at in (1, 2)]
    made = facts([
        tried("a", 1, seeds("a", 0.5, 0.51, 0.52), by="base"), tried("b", 2, [*seeds("b", 0.1), *dead], **LITTLE_MADE),
    ])  # fmt: skip
    assert made.best
    assert made.best.name == "a"
    assert "`b` has the better score (0.100), but of one seed: that can't be told from noise." in bottom(made)


# -- what comes next


def waiting(*verdicts: str) -> LoopFacts:
    runs = [VariantRun(f"train/b/{at}", verdict) for at, verdict in enumerate(verdicts)]
    return facts([tried("a", 1, [run("train/a", 0.5)], by="base"), tried("b", 2, runs, **LITTLE_MADE)], busy=False)


def test_what_comes_next_is_told() -> None:
    assert "**Round 2 of 3 comes next**: 1 variant; `muster loop run` goes on" in bottom(waiting("PENDING"))
    assert "**Round 2 of 3 is under way**: 1 of 2 runs are over" in bottom(waiting("DONE", "RUNNING"))
    assert "**Round 2 of 3 is over**" in bottom(waiting("DEAD"))
    assert "nobody has to do anything" in bottom(replace(waiting("PENDING"), busy=True))
    assert "`muster release`" in bottom(replace(waiting("PENDING"), intent="held"))


def test_what_is_not_over_says_partial_in_every_title() -> None:
    assert text(waiting("PENDING")).splitlines()[0].endswith("(PARTIAL 1/2: 1 of 2 runs are over)")
    assert "(PARTIAL 1/2: " in lineage_as_svg(waiting("PENDING")).decode()
    assert b"PARTIAL 1/2" in draw_best_so_far_curve(waiting("PENDING"))["best_so_far.svg"]
    over = waiting("DEAD")
    assert (
        "PARTIAL"
        not in text(over) + lineage_as_svg(over).decode() + draw_best_so_far_curve(over)["best_so_far.svg"].decode()
    )


@pytest.mark.parametrize(
    ("recorded", "said"),
    [
        ("the one round is done", "唯一的一轮已完成"),
        ('the target is reached: last("l1") < 0.1 holds for a_1', '`a_1` 满足 `last("l1") < 0.1`'),
        ('no gain in 2 rounds: last("l1") is still best with a (0.51)', '连续 2 轮没有提升：按 `last("l1")` 最好的仍是 `a`（0.51）'),
        ("no proposals because 1 of 1 run left no history", "没有新的提案，原因：「1 of 1 run left no history」。"),
        ('no proposals because small: last("l1") = 0.5 > 1: false; and so on',
         '原因：规则「small」没有触发：`last("l1") = 0.5 > 1` 不成立；「and so on」。'),
        ("something new", "「something new」"),
    ],
)  # fmt: skip
def test_every_stop_is_told_in_the_campaigns_language(recorded: str, said: str) -> None:
    assert said in bottom(facts([tried("a", 1, [run("train/a", 0.5)], by="base")], language="zh", stopped=recorded))
    english = bottom(facts([tried("a", 1, [run("train/a", 0.5)], by="base")], stopped=recorded))
    assert f"has stopped**: {recorded}." in english.replace("`", "")


def test_runs_without_a_history_are_named_once() -> None:
    """Those in trouble are named below, each with its cause."""
    silent = [VariantRun(f"train/a/{at}", "DONE", unread="nothing") for at in range(2)]
    recorded = (
        "no proposals because 2 of 2 runs left no readable history: train/a/0: x; train/a/1 is DEAD: y; and 3 more; z"
    )
    made = [tried("a", 1, silent, by="base")]
    assert "no proposals because 2 of 2 runs left no readable history; z." in bottom(facts(made, stopped=recorded))
    told = bottom(facts(made, stopped=recorded, language="zh"))
    assert "没有新的提案，原因：2 个运行中有 2 个没有留下可读的历史；「z」。" in told


@pytest.mark.parametrize(
    ("recorded", "said"),
    [
        ("it ended with exit code 3", "命令以退出码 3 结束"),
        ("the command exited with 137; 128+9: a shell reports a killed child this way", "命令以退出码 137 结束"),
        ("the command exited with 2, as its launcher reports; last line: a.py: error: b", "命令以退出码 2 结束"),
        ("it ended with RuntimeError: no luck", "以 RuntimeError 结束：「no luck」"),
        ("killed by signal 9 (SIGKILL); who sent it is not known", "被信号 9（SIGKILL）终止"),
        ("the GPU's memory did not suffice", "显存不足"),
        ("train/b is DEAD: the command exited with 3", "`train/b` 为 DEAD：命令以退出码 3 结束"),
        ("a cause that nobody knows", "「a cause that nobody knows」"),
    ],
)
def test_why_a_run_died_is_told_in_the_campaigns_language(recorded: str, said: str) -> None:
    dead = [tried("a", 1, [VariantRun("train/a", "DEAD", recorded)], by="base")]
    assert f"DEAD：{said}" in bottom(facts(dead, language="zh"))
    assert f"| DEAD：{said}" in text(facts(dead, language="zh"))
    assert f"`train/a`: DEAD: {recorded}" in bottom(facts(dead))


@pytest.mark.parametrize("language", ["en", "pseudo"])
def test_why_a_run_died_is_told_by_its_code(language: str) -> None:
    """A process of any language writes a report in the campaign's."""
    with speaking(language):
        reasons = (
            (phrase("judge.command_exited", code=137), "命令以退出码 137 结束"),
            (phrase("judge.ended_with_exception_said", type="E", said="no luck"), "以 E 结束：「no luck」"),
            (phrase("judge.number_computes_became_nan_infinite"), "计算中出现 NaN 或无穷"),
        )
    for recorded, said in reasons:
        dead = [tried("a", 1, [VariantRun("train/a", "DEAD", recorded)], by="base")]
        assert f"DEAD：{said}" in bottom(facts(dead, language="zh"))
        assert f"`train/a`: DEAD: {english_text(recorded)}" in bottom(facts(dead))


def test_every_form_of_a_recorded_reason_has_chinese_words() -> None:
    say = LoopWords(small("zh"))
    for name, form in RECORDED_FORMS:
        assert "{" not in say(f"recorded.{name}", **dict.fromkeys(form.groupindex, "1"))


@pytest.mark.parametrize("stopped", ["", 'no proposals because x: last("a") = 1 > 2: false; odd', "odd"])
def test_chinese_sentences_have_their_own_punctuation(stopped: str) -> None:
    little = LITTLE_MADE | {"by": "search:tpe", "reason": "tpe of 9 scores, the best 0.2 of a"}
    made = facts(
        [
            tried("a", 1, seeds("a", 0.5, 0.52), by="base"),
            tried("b", 2, [*seeds("b", 0.4), VariantRun("train/b/1", "PENDING")], **little),
            tried("c", 2, [VariantRun("train/c/0", "DEAD", "odd"), VariantRun("train/c/1", "DONE", unread="it never ran")], **little),
        ],
        language="zh", stopped=stopped,
    )  # fmt: skip
    words = re.sub(r"`[^`]*`|「[^」]*」|\(n = \d\)|\[[^]]*\]\([^)]*\)", "", text(made) + text(small("zh")))
    assert not re.findall(r".*[\u4e00-\u9fff] ?[(),;:].*|.*[(),;:] ?[\u4e00-\u9fff].*", words)
    assert "第 1 轮：1 个变体" in lineage_as_svg(made).decode()
    assert "tpe 依据 9 个分数抽取，其中最好的是 a 的 0.2" in "".join(lineage_as_mermaid(made, LoopWords(made))).replace(
        "…", ""
    )


def test_runs_in_trouble_are_named_with_their_cause() -> None:
    silent = VariantRun("train/b", "DONE", unread="nothing that it logged is in out")
    lost = VariantRun("train/c", "UNKNOWN", "the host does not answer")
    made = facts(
        [tried(name, 1, [one], by="base") for name, one in (("a", run("train/a", 0.5)), ("b", silent), ("c", lost))]
    )
    assert "**2 of 3 runs failed or left no history**" in bottom(made)
    assert "went on" not in bottom(made)
    assert "`train/b`: DONE: no readable history: nothing that it logged is in out" in bottom(made)
    assert "`train/c`: UNKNOWN: the host does not answer" in bottom(made)
    dead = replace(run("train/a", 0.5), verdict="DEAD")
    assert "| DEAD: no cause is recorded |" in text(facts([tried("a", 1, [dead], by="base")]))
    nothing = facts([tried("b", 1, [silent], by="base")])
    assert "**The only run failed or left no history**" in bottom(nothing)
    assert "**No variant has a score**" in bottom(nothing)
    assert "Nothing was logged." in text(nothing)


def test_runs_with_the_same_cause_are_told_together_and_no_name_is_cut() -> None:
    folder = "outputs/train/silent_and_with_a_name_that_is_long_enough_to_be_cut_somewhere_in_its_middle"
    looked = "*.jsonl, progress.csv, metrics.csv, and whatever else there is in the world of training runs"
    silent = [
        VariantRun(f"{folder[8:]}/{at}", "DONE", unread=f"nothing that it logged is in {ROOT}/{folder}/{at}: {looked}")
        for at in range(3)
    ]
    dead = VariantRun(
        "train/b", "DEAD", f"it ended with OSError: no such file: /data/{'very_' * 20}long/name.bin of the set"
    )
    made = facts([tried("a", 1, silent, by="base"), tried("b", 1, [dead], by="base")])
    told = bottom(made)
    assert f"`{folder[8:]}/{{0,1,2}}`: DONE: no readable history: nothing that it logged is in its output" in told
    assert f"looked for: `{looked}`" in told
    printed = replace(silent[0], unread=f"{silent[0].unread}; what it printed holds no number")
    told = bottom(facts([tried("a", 1, [printed], by="base")]))
    assert f"in its output, and what it printed holds no number; looked for: `{looked}`" in told
    rows = text(made).partition("## Runs")[2].partition("## Lineage")[0]
    assert rows.count("DONE: it left no readable history |") == 3
    assert f"/data/{'very_' * 20}long/name.bin … |" in rows


def test_what_the_same_as_above_means_is_told_where_it_is_used() -> None:
    one = facts([tried("a", 1, [run("train/a", 0.5)], by="base")])
    assert "″" not in text(one)
    assert text(small()).count("″: as in the row above.") == 1


# -- rules


def test_which_rules_pay() -> None:
    large = {"edits": LARGE.edit, "reason": LARGE.reason, "by": "large_gradient"}
    made = facts([
        tried("a", 1, [run("train/a", 0.5)], by="base"),
        *(tried(f"b{at}", 2, [run(f"train/b{at}", value)], **LITTLE_MADE) for at, value in enumerate((0.4, 0.45, 0.52))),
        tried("c", 3, [VariantRun("train/c", "DEAD", "exit code 1")], parent="b0", **large),
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
    assert "| default | mild OT | 0 |" in text(made)


def test_what_a_search_made_is_told_in_general() -> None:
    """Each round of it has another reason."""
    base = tried("a", 1, [run("train/a", 0.5)], by="base")
    reasons = ["drawn at random, tpe begins with 5 scores", "tpe of 9 scores, the best 0.2222 of b"]
    drawn = [
        tried(f"b{at}", 2 + at, [run(f"train/b{at}", 0.4)], parent="a", by="search:tpe", reason=reason)
        for at, reason in enumerate(reasons)
    ]
    asked = [tried(f"c{at}", 2, [run(f"train/c{at}", 0.4)], parent="a", by="f.py:f", reason=f"{at}") for at in range(2)]
    made = facts([base, *drawn, *asked], replace(SETTINGS, rules=(), default=None))
    assert "| search:tpe | points of the space, drawn by tpe | 2 |" in text(made)
    assert "| f.py:f | each for a reason of its own | 2 |" in text(made)
    chinese = text(facts([base, *drawn], replace(SETTINGS, rules=(), default=None), language="zh"))
    assert "| search:tpe | 搜索空间中的点，由 tpe 抽取 | 2 |" in chinese
    assert "随机抽取，有 5 个分数后 tpe 才开始" in chinese


# -- numbers


def test_what_is_no_number_is_told_as_what_it_is() -> None:
    assert [format_logged_number(value) for value in (None, float("nan"), float("-inf"), 3.0, 0.123456, 1e9)] == [
        "—", "NaN", "-inf", "3", "0.1235", "1e+09",
    ]  # fmt: skip
    kept = {"train.l1": summary("train.l1", 0.5, float("nan")), "eval/x": summary("eval/x", 1.0)}
    made = facts([tried("a", 1, [VariantRun("train/a", "DONE", summaries=kept)], by="base")])
    assert "| train/a (1 of 2 not finite) | 0.5 | NaN | 0.5 | — | — |" in text(made)
    assert loop_summary_as_json(made)["variants"][0]["runs"][0]["metrics"]["train.l1"]["last"] is None
    assert made.variants[0].values == ()


def test_the_keys_that_rank_and_rule_come_first_and_eight_are_shown() -> None:
    logged = {key: summary(key, 1.0, 2.0) for key in (*(f"z{at}" for at in range(9)), "grad_norm", "train/l1", "_step")}
    made = facts([tried("a", 1, [VariantRun("train/a", "DONE", summaries=logged)], by="base")])
    assert made.keys == ("train/l1", "grad_norm", *(f"z{at}" for at in range(6)))
    assert made.more_keys == 4
    assert "4 more keys are in summary.json" in text(made)
    assert set(loop_summary_as_json(made)["variants"][0]["runs"][0]["metrics"]) == set(logged)


def test_the_column_that_counts_steps_has_no_table() -> None:
    logged = {key: summary(key, 0.0, 1.0, 2.0) for key in ("step", "trainer/global_step", "_step", "ticks")}
    logged["loss"] = summary("loss", 3.0, 2.0, 1.0)
    logged["global_step"] = summary("global_step", 10.0, 20.0, 30.0)
    one = tried("a", 1, [VariantRun("train/a", "DONE", summaries=logged)], by="base")
    made = facts([one])
    assert made.keys == ("loss",)
    assert made.more_keys == 5
    asked = replace(SETTINGS, rules=(replace(LITTLE, when='last("step") < 9'),))
    assert facts([one], asked).keys == ("step", "loss")


def test_percentages_have_one_form() -> None:
    pairs = {"a": (0.02734, 0.2617), "b": (0.02734, 0.4414), "c": (1.0, 0.99999), "d": (1e-9, 5.0), "e": (1e-9, -5.0)}
    logged = {key: summary(key, *values) for key, values in pairs.items()}
    made = facts([tried("a", 1, [VariantRun("train/a", "DONE", summaries=logged)], by="base")])
    shown = re.findall(r"\| train/a \|.*\| (.+) \|\n", text(made).partition("## What the runs logged")[2])
    assert shown == ["+857.2", "+1,514.5", "+0.0", "> +1,000,000", "< -1,000,000"]


# -- pictures


def test_what_people_write_does_no_harm_in_mermaid() -> None:
    assert escape_mermaid_text('a "b" <c> #d `e` |f| [g]') == (
        "a #34;b#34; #60;c#62; #35;d #96;e#96; #124;f#124; #91;g#93;"
    )
    many = large(6, 13, 2, 1, keep=9)
    assert len(many.variants) > 200
    assert "".join(lineage_as_mermaid(many, LoopWords(many))).startswith(f"{len(many.variants)} variants are too many")


@pytest.mark.parametrize("made", [small(), small("zh"), large(4, 3, 1, 3), large(8, 5, 2, 3, keep=6)])
def test_the_lineage_is_drawn_without_overlaps(made: LoopFacts) -> None:
    root = ElementTree.fromstring(lineage_as_svg(made))
    assert root.tag.endswith("svg")
    spots = list(place_variants(made).values())
    assert {spot.of.name for spot in spots} == {each.name for each in made.variants}
    assert len({(spot.column, spot.row) for spot in spots}) == len(spots)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    assert all(spot.x + spot.wide <= width and spot.y + HIGH <= height for spot in spots)
    by_name = place_variants(made)
    for spot in spots:  # a line runs along the child's row: no box between
        parent = by_name.get(spot.of.variant.parent or "")
        between = [one for one in spots if parent and one.row == spot.row and parent.column < one.column < spot.column]
        assert not between


def test_no_word_of_the_lineage_leaves_its_box() -> None:
    """By the widest of the fonts that are usual."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    name = "WWWMMM_act_fr3_ot_BASELINE_WITH_A_LONG_NAME"
    reason = f"{'W' * 18} the OT mass is far too small and the gradient norm is far too large"
    dead = VariantRun("train/d", "DEAD", "exit code 1")
    made = facts([
        tried(name, 1, seeds("a", 0.5, 0.51), by="base"),
        tried(f"{name}_1c9f3a", 2, seeds("b", 0.4, 0.41), parent=name, reason=reason, by="x"),
        tried("mmmmmmmmmmmmmmmmmmmmmmmm", 2, [dead], parent=name, reason=reason.lower(), by="x"),
    ])  # fmt: skip
    spots = place_variants(made)
    places = {(spot.x + 10, spot.y): spot.x + spot.wide for spot in spots.values()}
    root = ElementTree.fromstring(lineage_as_svg(made))
    seen = 0
    for words in (each for each in root.iter() if each.tag.endswith("text") and each.text):
        x, y, size = (float(words.attrib[key]) for key in ("x", "y", "font-size"))
        font = FontProperties(family="DejaVu Sans", weight="bold" if "font-weight" in words.attrib else "normal")
        end = x + TextPath((0, 0), words.text, size=size, prop=font).get_extents().x1
        right = next((edge for (left, top), edge in places.items() if left == x and top < y < top + HIGH), None)
        assert end < (right or float(root.attrib["width"])), words.text
        seen += right is not None
    assert seen == 9
    assert all(spot.wide > BOX for spot in spots.values())


def test_what_the_curve_can_not_spell_is_told() -> None:
    assert names_missing_in_curve(small()) == []
    chinese = replace(small("zh"), campaign="中文循环")
    assert names_missing_in_curve(chinese) == ["中文循环"]
    told = loop_report_markdown(chinese, ["best_so_far.png"], unnamed=names_missing_in_curve(chinese))
    assert "没有写出 `中文循环`：图的字体缺少这些字。" in told
    assert "字体" not in text(small("zh"))


def test_strange_names_and_reasons_stay_well_formed() -> None:
    made = facts([
        tried("a<b>&\x01", 1, [run("train/a", 0.5)], by="base"),
        tried("名字很长" * 20, 2, [run("train/b", 0.4)], parent="a<b>&\x01", reason="“引号” & <tag> " * 9, by="x"),
    ])  # fmt: skip
    words = "".join(ElementTree.fromstring(draw_lineage_picture(made)["lineage.svg"]).itertext())
    assert "a<b>&" in words
    assert set(draw_best_so_far_curve(made)) == {"best_so_far.png", "best_so_far.svg", "best_so_far.pdf"}


def test_the_curve_is_the_same_bytes_for_the_same_facts() -> None:
    assert draw_best_so_far_curve(small()) == draw_best_so_far_curve(small())


def test_one_run_that_went_wrong_does_not_flatten_the_others() -> None:
    from muster.app.loop.best_so_far_picture import _lay_out_variants

    values = (0.5, 0.48, 0.45, 1e6)
    made = facts([tried(f"a{at}", 1, [run(f"train/a{at}", value)], by="base") for at, value in enumerate(values)])
    ground = _lay_out_variants(made)
    assert ground.high < 1
    assert all(ground.inside(value) for value in values[:3])
    assert set(draw_best_so_far_curve(made)) == {"best_so_far.png", "best_so_far.svg", "best_so_far.pdf"}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_scores_that_are_all_the_same_make_no_best(language: str) -> None:
    made = [tried(f"a{at}", 1, [run(f"train/a{at}", 0.5)], by="base") for at in range(3)]
    found = facts(made, language=language)
    told = text(found)
    assert found.identical
    assert "{config_file}" in told
    assert "loop began with" not in told
    assert not facts(made[:2]).identical, "two may be chance"
    other = tried("b", 2, [run("train/b", 0.4)], parent="a0", by="x")
    assert not facts([*made, other]).identical


def test_keys_that_tell_how_good_a_run_is_are_shown_before_the_others() -> None:
    keys = ["epochs", "lr", "update_s", "data_s", "samples", "episodes", "gpu", "smpl", "train/l1_loss", "eval/success"]
    logged = VariantRun("train/a", "DONE", summaries={key: summary(key, 2.0, 1.0) for key in keys})
    shown = facts([tried("a", 1, [logged], by="base")]).keys
    assert shown[:2] == ("train/l1_loss", "eval/success")
