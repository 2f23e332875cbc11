"""What the journal says of a run, in both languages."""

from __future__ import annotations

import math
import re
import string
from dataclasses import replace

import pytest
from journal_world import ROWS, check, evaluations, gate, gate_row, run, schedule

from muster.app.journal.block_bodies import artifacts_body, blocks_of_run, command_body, figures_body
from muster.app.journal.journal_tables import MOST_ROWS, evaluation_body, training_body
from muster.app.journal.recorded_run import (
    ArtifactFile,
    Evaluation,
    EvaluationRows,
    FileProblem,
    RecordedGateTrace,
    RunCommand,
    RunPicture,
    RunScript,
    TrainingSeries,
    lay_out_command,
    parse_command_flags,
    split_command_text,
)
from muster.app.journal.stage_blocks import gate_body, stages_body, warnings_body
from muster.locales import LANGUAGES, load_texts
from muster.text.catalogue import load_catalogue
from muster.text.escape_markup import contains_chinese

JOURNAL_TEXTS = {language: load_texts("journal", language) for language in LANGUAGES}
EN, ZH = load_catalogue("journal", "en"), load_catalogue("journal", "zh")


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_both_languages_say_the_same_things() -> None:
    assert set(JOURNAL_TEXTS["en"]) == set(JOURNAL_TEXTS["zh"])
    for key, text in JOURNAL_TEXTS["en"].items():
        assert fields(text) == fields(JOURNAL_TEXTS["zh"][key]), key


def test_every_word_that_is_used_exists() -> None:
    from pathlib import Path

    from muster.app import journal

    used = set()
    for path in Path(journal.__file__).parent.glob("*.py"):
        used |= set(re.findall(r"\bw\(\"([a-z_.]+)\"", path.read_text()))
    assert used
    assert used <= set(JOURNAL_TEXTS["en"])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_nothing_is_said_in_the_other_language(language: str) -> None:
    told = blocks_of_run(
        run(troubles=[FileProblem("trouble.torn", {"file": "a.jsonl"})]),
        run(),
        "dev_v39",
        load_catalogue("journal", language),
    )
    for kind, body in told.bodies.items():
        prose = "\n".join(line for line in body.splitlines() if not line.startswith(("|", "![", "```", "python")))
        if language == "en":
            assert not contains_chinese(prose), kind
        elif prose.strip():
            assert contains_chinese(prose), kind


# -- the gate


def test_the_gate_of_the_reference_in_words() -> None:
    text = gate_body(gate(), EN)
    assert text.startswith(
        "Gate `penalty`: 7 evaluations (hold 3, failure_hold 4). It never opened: at the end it is in phase 0."
    )
    assert "A streak was broken 1 time, at iter 32." in text
    assert (
        "In the way, of 7 decisions: `step_one_ratio` (4 times), `first_death_p10` (3 times), `early_death_100` (2 times)."
        in text
    )
    assert "To open after the last evaluation it lacks: 1 more success." in text
    lines = [line for line in text.splitlines() if line.startswith("- ")]
    assert lines == [
        "- iter 8 (ne): failure, failure_hold: `first_death_p10` 83 is below 95; no success either: `step_one_ratio` 0.0208 "
        "is above 0.02",
        "- iter 16 (ne): success and failure at once, failure_hold: `min_final` 0.417 is below 0.5; every success "
        "criterion holds, but failure wins",
        "- iter 24 (main): success, hold: 1 of 2 in a row",
        "- iter 32 (main): failure, failure_hold: `first_death_p10` 87 is below 95; no success either: `early_death_100` "
        "0.107 is above 0.1, `step_one_ratio` 0.024 is above 0.02; this broke the streak",
        "- iter 40 (main): failure, failure_hold: `first_death_p10` 89 is below 95; no success either: `early_death_100` "
        "0.11 is above 0.1, `step_one_ratio` 0.026 is above 0.02",
        "- iter 48 (ne): neither success nor failure, hold: `step_one_ratio` 0.0219 is above 0.02",
        "- iter 56 (main): success, hold: 1 of 2 in a row",
    ]


def test_the_same_in_chinese() -> None:
    text = gate_body(gate(), ZH)
    assert text.startswith(
        "gate `penalty`：共 7 次评估（hold 3、failure_hold 4）。始终没有打开：结束时处于 phase 0。连续成功中断 1 次，在 iter 32。"
    )
    assert (
        "- iter 32（main）：失败，failure_hold：`first_death_p10` 87 低于 95；成功条件也未满足：`early_death_100` 0.107 高于 0.1、"
        in text
    )
    assert "最后一次评估之后，要打开还缺：再连续成功 1 次。" in text


def test_what_a_gate_lacks_after_a_failure() -> None:
    rows = gate().rows[:6]
    text = gate_body(replace(gate(), rows=rows), EN)
    assert "it lacks: `step_one_ratio` at most 0.02 (it was 0.0219), 2 more successes in a row." in text
    text = gate_body(replace(gate(), rows=rows[:4]), EN)
    assert "it lacks: `first_death_p10` at least 95 (it was 87), `early_death_100` at most 0.1 (it was 0.107), " in text


def test_a_gate_that_opened_and_froze() -> None:
    opened = gate_row(ROWS[2], 0, "success", "advance") | {"phase": 1}
    frozen = gate_row(ROWS[3], 0, "unknown", "frozen") | {"phase": 1, "frozen_until": 34, "criteria": []}
    text = gate_body(replace(gate(), rows=[opened, frozen]), EN)
    assert "It opened 1 time, at iter 24; at the end it is in phase 1." in text
    assert "- iter 32 (main): not judged, frozen: nothing is decided before iter 35" in text


def test_rows_of_a_gate_may_be_odd() -> None:
    odd = [
        {"state": "hold", "verdict": "made up", "why": "a *reason*"},
        {"state": "hold", "criteria": [check("success", "a", "min", 1, None, None), "x", {}], "iteration": "x"},
        {"state": "fall_back", "phase": 0, "criteria": None, "iteration": 3, "stage": ""},
    ]
    for w in (EN, ZH):
        text = gate_body(RecordedGateTrace("a.jsonl", "g", {}, odd), w)
        assert "iter ?" in text
        assert gate_body(RecordedGateTrace("a.jsonl", "g", {}, []), w)


# -- warnings and stages


def test_what_the_schedule_of_the_reference_contradicts() -> None:
    lines = warnings_body(run(), EN).splitlines()
    assert "- Stage ne is used up at iter 35 of 60: none comes after it." in lines
    assert "- The schedule has 120 iterations and the run 60: 2 stages never run (main 76–100, main 101–120)." in lines
    labelled = [line for line in lines if "is labelled" in line]
    assert [line.split()[2] for line in labelled] == ["16", "32", "48"]
    assert (
        labelled[0] == "- iter 16 is labelled `ne` in `runs/v40/eval_history.jsonl`, but the schedule has `main` there."
    )
    assert warnings_body(run(evaluations=None, schedule=None), EN) == "No warnings."


def test_values_that_are_no_numbers_are_told() -> None:
    rows = [(8, "ne", math.nan, 0.6, 0.1, math.inf, 0.02)]
    text = warnings_body(run(evaluations=evaluations(rows), schedule=None), EN)
    assert "`avg_final` is no finite number in 1 evaluation (iter 8)." in text
    table = evaluation_body(evaluations(rows), EN)
    assert "| 8 | ne | NaN | 0.6 | 0.1 | inf | 0.02 |" in table


def test_events_by_stage() -> None:
    text = stages_body(run(), EN)
    assert "- First-step deaths, by stage: main 163 (57.6 %), ne 120 (42.4 %); 283 in all." in text
    assert "- Iterations by stage: ne 20, main 40." in text
    assert "- Stages that began again: ne 2." in text
    assert stages_body(run(summary={"events": {"a": math.nan, "b": True}}, schedule={"stages": [{}, 3]}), EN) == ""
    assert schedule()["iterations"] == 60


# -- tables


def test_the_table_of_the_reference() -> None:
    text = evaluation_body(evaluations(), EN)
    assert "| 8 | ne | 0.716 | 0.615 | 0.117 | 83.0 | 0.0208 |" in text
    assert "| 56 | main | 0.768 | 0.615 | 0.094 | 108.9 | 0.0198 |" in text
    assert "| ne | 3 | 0.6633 |" in text
    many = EvaluationRows("a.jsonl", [Evaluation(at, "", {"x": at / 7}) for at in range(100)])
    assert evaluation_body(many, EN).count("\n| ") == MOST_ROWS + 1
    assert "The table shows the last 60 of 100." in evaluation_body(many, EN)


def test_series_by_their_last_iterations() -> None:
    text = training_body(
        TrainingSeries("s.pkl", {"survival": [0.1] * 50 + [0.837] + [0.85] * 9, "odd": [math.nan] * 60}), EN
    )
    assert "| survival | 60 | 0.1 | 0.85 | 0.8487 | 0.8370 | 0.8500 |" in text
    assert "iterations 51 to 60" in text


def test_artifacts_and_figures() -> None:
    files = [
        ArtifactFile("runs/a|b.jsonl", 1500, "ab" * 32),
        ArtifactFile("ck/", 10, "cd" * 32, 15),
        ArtifactFile("gone", 0, ""),
    ]
    text = artifacts_body(files, "runs", EN)
    assert "| runs/a\\|b.jsonl | 1.5 KB | abababababababab |" in text
    assert "| ck/ (15 files) | 10 B | cdcdcdcdcdcdcdcd |" in text
    assert "| gone | 0 B | (can't be read) |" in text
    assert figures_body([RunPicture("a b/(1).png", "x *y*"), RunPicture("p/z.svg")]) == (
        "![(1)](a%20b/%281%29.png)\n\n*x \\*y\\**\n\n![z](p/z.svg)"
    )


# -- commands


def test_a_command_is_laid_out_and_means_the_same() -> None:
    argv = (
        "python",
        "train.py",
        "--spec",
        "8:a.json|type=ne;6:b",
        "--flag",
        "--text",
        'it\'s "two" words',
        *["--n", "1"] * 40,
    )
    text = lay_out_command(argv)
    assert max(map(len, text.splitlines())) <= 110
    assert split_command_text(text) == argv
    body = command_body(
        run(command=RunCommand(argv, "command.txt", ".", RunScript("train.py", "ab" * 32, "x", newer=True), "c" * 40)),
        EN,
    )
    assert body.startswith("```sh\npython train.py --spec '8:a.json|type=ne;6:b' --flag")
    assert "Script `train.py`, sha256 abababababababab. It was changed after the run had begun" in body
    assert "Commit cccccccccccc." in body
    assert "not known" in command_body(run(command=None), EN)


def test_a_command_may_hold_anything() -> None:
    argv = ("python", "a.py", "```", "<!-- muster:end -->", "a\nb", "", "文")
    body = command_body(run(command=RunCommand(argv, "x")), EN)
    assert body.startswith("````sh\n")
    told = blocks_of_run(run(command=RunCommand(argv, "x")), None, "", EN)
    from muster.app.journal.generated_blocks import fill_run_blocks

    text = fill_run_blocks("# a\n", [told], EN).text
    assert fill_run_blocks(text, [told], EN).text == text


@pytest.mark.parametrize(
    ("argv", "flags"),
    [
        (
            ("python", "a.py", "--a", "1", "--b=2", "-c", "--d-e", "-3", "x"),
            {"a": "1", "b": "2", "c": "", "d_e": "-3 x"},
        ),
        (("python", "-u", "-m", "pkg.train", "--a", "1"), {"a": "1", "u": "", "m": "pkg.train"}),
        (("a.sh", "--x", "1", "--x", "2"), {"x": "2"}),
        (("python",), {}),
        (("conda", "run", "-n", "env", "python", "x/a.py", "--a", "1"), {"a": "1"}),
        (("accelerate", "launch", "--num_processes", "1", "a.py", "--a=1"), {"a": "1"}),
    ],
)
def test_flags(argv: tuple[str, ...], flags: dict[str, str]) -> None:
    assert parse_command_flags(argv) == flags
