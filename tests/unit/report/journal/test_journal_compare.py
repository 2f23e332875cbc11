"""One version against the last: better, worse, within noise; and what was changed between them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from journal_world import KEYS, REFERENCE, ROWS, evaluations, gate, run

from muster.app.journal.block_bodies import (
    compare_evaluations,
    comparison_body,
    differences_body,
    directions_from_gates,
)
from muster.app.journal.journal_text import metric_key_of, run_from_journal_text, scan_journal_lines
from muster.app.journal.recorded_run import Evaluation, EvaluationRows, RunCommand, RunScript, flatten_settings
from muster.text.catalogue import load_catalogue

EN, ZH = load_catalogue("journal", "en"), load_catalogue("journal", "zh")


def made(key: str, values: list[float]) -> EvaluationRows:
    return EvaluationRows("a.jsonl", [Evaluation(at, "", {key: value}) for at, value in enumerate(values)])


@pytest.mark.parametrize(
    ("key", "before", "now", "reading"),
    [
        ("score", [1.0, 1.1, 0.9, 1.0], [5.0, 5.1, 4.9, 5.0], "better"),
        ("score", [5.0, 5.1, 4.9, 5.0], [1.0, 1.1, 0.9, 1.0], "worse"),
        ("loss", [5.0, 5.1, 4.9, 5.0], [1.0, 1.1, 0.9, 1.0], "better"),
        ("odd", [5.0, 5.1, 4.9, 5.0], [1.0, 1.1, 0.9, 1.0], "lower"),
        ("odd", [1.0, 1.1, 0.9, 1.0], [5.0, 5.1, 4.9, 5.0], "higher"),
        ("score", [1.0, 3.0, 2.0, 4.0], [2.0, 4.0, 3.0, 3.0], "noise"),
        ("score", [1.0, 1.0], [5.0, 5.0, 5.0, 5.0], "few"),
        ("score", [1.0] * 4, [1.0] * 4, "same"),
        ("score", [1.0] * 4, [2.0] * 4, "better"),
        ("score", [9.0, 9.0, 1.0, 1.1, 0.9, 1.0], [1.0, 1.1, 0.9, 1.0], "noise"),  # only the last four count
    ],
)
def test_readings(key: str, before: list[float], now: list[float], reading: str) -> None:
    (found,) = compare_evaluations(made(key, now), made(key, before), {})
    assert found.reading == reading


def test_the_criteria_of_a_gate_tell_what_is_better() -> None:
    assert directions_from_gates([gate()]) == {
        "first_death_p10": "higher", "early_death_100": "lower", "step_one_ratio": "lower", "min_final": "higher",
    }  # fmt: skip
    up = [(at, stage, *(value * 3 for value in rest)) for at, stage, *rest in ROWS]
    found = {
        each.key: each.reading
        for each in compare_evaluations(evaluations(up), evaluations(), directions_from_gates([gate()]))
    }
    assert found == {
        "avg_final": "higher", "min_final": "better", "early_death_100": "worse", "first_death_p10": "better",
        "step_one_ratio": "worse",
    }  # fmt: skip


def test_values_that_are_no_numbers_do_not_count() -> None:
    (found,) = compare_evaluations(
        made("score", [math.nan, 1.0, 1.1, math.inf, 0.9]), made("score", [5.0, 5.1, 4.9]), {}
    )
    assert (found.now.n, found.reading) == (3, "worse")


def test_how_noise_is_judged_is_said() -> None:
    text = comparison_body(run("runs/v41"), run(), "dev_v40", EN)
    assert "the spread (sd) of the last 4 evaluations of each run" in text
    assert "Welch's test rejects at 5 %, Holm over 5 metrics" in text
    assert "this says nothing about other seeds" in text
    assert text.startswith("Exactly the same") or "Within noise" in text
    assert "两边各只有一次运行" in comparison_body(run("runs/v41"), run(), "dev_v40", ZH)
    assert "nothing to compare" in comparison_body(run(evaluations=None), run(), "dev_v40", EN)
    assert "no key is common" in comparison_body(run(evaluations=made("x", [1.0])), run(), "dev_v40", EN)


# -- what the text of an older version tells


def test_the_reference_tells_its_own_run() -> None:
    found = run_from_journal_text(scan_journal_lines(REFERENCE), "dev_v40")
    assert found is not None
    assert found.title == "dev_v40_main_rebalance_v1（128 env × 60 iter）"
    assert found.evaluations is not None
    assert [row.at for row in found.evaluations.rows] == [8, 16, 24, 32, 40, 48, 56]
    assert found.evaluations.keys == list(KEYS)
    assert found.evaluations.rows == evaluations().rows
    assert found.command is not None
    assert found.command.argv[:2] == ("python", "experiments/v40/train.py")
    assert found.command.argv[-2:] == ("--seed", "411232")


def test_a_journal_without_a_run_tells_none() -> None:
    assert run_from_journal_text(scan_journal_lines("# a\n\n## Record\n\n```\nprint(1)\n```\n"), "dev_v1") is None


def test_names_as_people_write_them() -> None:
    assert [metric_key_of(each) for each in ("early_death₁₀₀", "`a_b`", "**x**", " y ")] == [
        "early_death_100",
        "a_b",
        "x",
        "y",
    ]


# -- what was changed


def command(*more: str, script: RunScript | None = None) -> RunCommand:
    return RunCommand(("python", "train.py", "--a", "1", *more), "command.txt", script=script)


def test_flags_that_differ() -> None:
    now, before = run(command=command("--b", "2", "--same", "x")), run(command=command("--c", "--same", "x"))
    text = differences_body(now, before, "dev_v40", EN)
    assert "Flags, 2 differences:" in text
    assert "| b | (not given) | 2 |" in text
    assert "| c | (given, without a value) | (not given) |" in text
    assert "| same |" not in text
    assert "- Flags: the same." in differences_body(now, now, "dev_v40", EN)
    assert "can't be compared" in differences_body(run(command=None), before, "dev_v40", EN)


def test_settings_of_a_gate_that_differ() -> None:
    old = {"required": 2, "success": [{"key": "p10", "min": 70, "by_stage": {"main": {"min": 100}}}]}
    new = {"required": 1, "success": [{"key": "p10", "min": 95.0}]}
    text = differences_body(run(gates=[gate(new)]), run(gates=[gate(old)]), "dev_v40", EN)
    assert "| required | 2 | 1 |" in text
    assert "| success[p10].min | 70 | 95 |" in text
    assert "| success[p10].by_stage.main.min | 100 | (not given) |" in text
    assert "Settings of gate `penalty`: the same." in differences_body(run(), run(), "dev_v40", EN)


def test_settings_are_flat_and_none_is_lost() -> None:
    told = {"a": [{"key": "x", "min": 1}, {"key": "x", "max": 2}], "b": [1, 2], "c": None}
    assert flatten_settings(told) == {"a[x].min": "1", "a[x]'.max": "2", "b[0]": "1", "b[1]": "2"}
    assert len(flatten_settings({"a": [{"key": "x", "min": 1}, {"key": "x", "min": 2}]})) == 2


def test_scripts_that_differ() -> None:
    old = "import a\n\ndef train():\n    x = 1\n    return x\n\ndef other():\n    pass\n"
    new = old.replace("x = 1", "x = 2\n    y = 3").replace("def other", "def another")
    scripts = [RunScript("v40/train.py", "a" * 64, old), RunScript("v41/train.py", "b" * 64, new)]
    before, now = (run(command=command(script=each)) for each in scripts)
    text = differences_body(now, before, "dev_v40", EN)
    assert "Script: `v41/train.py` (sha256 bbbbbbbbbbbb) after `v40/train.py` (sha256 aaaaaaaaaaaa)." in text
    assert "3 lines added, 2 removed. In: `train`, `another`." in text
    same = run(command=command(script=replace(scripts[1], sha256="a" * 64)))
    assert "is the same text as" in differences_body(same, before, "dev_v40", EN)
    gone = run(command=command(script=RunScript("v40/train.py")))
    assert "one of them is not there" in differences_body(now, gone, "dev_v40", EN)
