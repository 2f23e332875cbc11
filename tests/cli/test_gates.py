"""`muster gates check` and `gates replay`: the reference's contradictions with their numbers; bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from support.camp import Camp

ROOT = Path(__file__).parents[2]
TEXTS = ROOT / "tests" / "unit" / "stages" / "texts"
FLAGS, TABLE = TEXTS / "dev_v40_flags.txt", TEXTS / "dev_v40_evals.md"
SCHEMA = json.loads((ROOT / "docs" / "schemas" / "gates.schema.json").read_text())


def fits(found: Any, name: str) -> Any:
    Draft202012Validator({**SCHEMA, "anyOf": [{"$ref": f"#/$defs/{name}"}]}).validate(found)
    return found


def test_the_references_contradictions_are_told_with_their_numbers(camp: Camp) -> None:
    told = camp("gates", "check", "--flags", str(FLAGS), "--evals", str(TABLE), code=1).stdout
    for each in (
        "the curriculum adds up: 60 iterations, as many as the run",
        "the schedule has 120 iterations, the run 60: stages 7 (main 76-100), 8 (main 101-120) never run",
        "from 70 to 95 it is both, and failure wins",
        "the row of iteration 16 is labelled ne; by the schedule it is main (15-29)",
        "the row of iteration 32 is labelled main; by the schedule it is ne (30-35)",
        "the row of iteration 48 is labelled ne; by the schedule it is main (36-59)",
        "ne is exhausted at iteration 35 of 60",
        "step_one: no evaluation has it",
    ):
        assert each in told
    (found,) = fits(camp.json("gates", "check", "--flags", str(FLAGS), "--evals", str(TABLE), code=1), "check")["gates"]
    assert sum(each["iterations"] for each in found["curriculum"]) == 60
    assert sum(each["iterations"] for each in found["schedule"]) == 120


def test_the_references_table_through_its_gate(camp: Camp) -> None:
    asked = ("gates", "replay", str(TABLE), "--flags", str(FLAGS), "--windows-of-1")
    found = fits(camp.json(*asked, code=0), "replay")
    verdicts = {each["iteration"]: each["verdict"] for each in found["decisions"]}
    assert verdicts == {
        8: "failure", 16: "both", 24: "success", 32: "failure", 40: "failure", 48: "neither", 56: "success",
    }  # fmt: skip
    assert found["opens"] is None
    assert {"what": "if success won where both hold", "opens": 24} in found["otherwise"]
    assert camp.json(*asked, "--wins", "success", code=0)["opens"] == 24
    told = camp(*asked, code=0).stdout
    assert "failure although every success criterion holds, because failure wins: min_final 0.417 is below 0.5" in told
    assert "first_death_p10 83 is below 95; no success either: step_one_ratio 0.0208 is above 0.02" in told
    assert "the gate stays shut: 2 successes in a row are required and the most were 1" in told
    assert "if success won where both hold, it would open at 24" in told


def test_the_last_three_above_100_would_have_burned_another_version(camp: Camp) -> None:
    setting = camp.root / "proposal.yaml"
    setting.write_text("success: [{key: first_death_p10, above: 100, window: all 3}]\n")
    found = camp.json("gates", "replay", str(TABLE), "--with", str(setting), code=0)
    assert found["opens"] is None
    assert "no evaluation of 7 counts as a success" in found["conclusion"]


def test_files_are_looked_for_where_c_says_as_in_git(camp: Camp) -> None:
    (camp.root / "v2").mkdir()
    (camp.root / "v2" / "evals.csv").write_text("iter,p10\n8,83\n")
    (camp.root / "v2" / "gate.yaml").write_text("success: [{key: p10, min: 70}]\n")
    (camp.root / "v2" / "flags.txt").write_text("--penalty_gate_success_p10 70")
    assert camp.json("-C", "v2", "gates", "replay", "evals.csv", "--with", "gate.yaml", code=0)["opens"] == 8
    camp("-C", "v2", "gates", "check", "--flags", "flags.txt", "--evals", "evals.csv", code=0)


@pytest.mark.parametrize("sign", [",", ";", "\t"])
def test_tables_of_spreadsheets_are_read_whatever_parts_their_columns(camp: Camp, sign: str) -> None:
    (camp.root / "evals.csv").write_text("iter,stage,p10\n8,ne,83\n16,main,101\n".replace(",", sign))
    (camp.root / "gate.yaml").write_text("success: [{key: p10, min: 95}]\n")
    assert camp.json("gates", "replay", "evals.csv", "--with", "gate.yaml", code=0)["opens"] == 16


def test_a_setting_for_a_stage_that_no_row_is_of_is_told(camp: Camp) -> None:
    setting = camp.root / "typo.yaml"
    setting.write_text("success: [{key: first_death_p10, min: 95, by_stage: {mian: {min: 100}}}]\n")
    told = camp("gates", "replay", str(TABLE), "--with", str(setting), code=0).stdout
    assert "it has settings for mian, and no row is of such a stage" in told


CAMPAIGN = """\
muster: 1
campaign: staged
axes: {seed: [0]}
slots: {gpus: 0, cpus: 1}
jobs: {train: {axes: [seed], steps: 60, command: "true"}}
gates:
  penalty:
    job: train
    read: {jsonl: evals.jsonl, step: iter}
    schedule: "8:a.json|type=ne;60:b.json|type=main"
    success: [{key: p10, min: 70}]
    failure: [{key: p10, below: 95}]
"""


def test_check_warns_of_what_contradicts_itself_and_the_campaign_stays_valid(camp: Camp) -> None:
    camp.write(CAMPAIGN)
    found = camp.json("check", code=0)
    told = {(each["line"], each["message"].partition(":")[0]) for each in found["warnings"]}
    assert {
        (10, "the schedule has 68 iterations, the run 60"),
        (8, "p10"),
        (10, "tail seeds that are not there"),
    } <= told
    assert camp("gates", "check", code=1).stdout.startswith("penalty\n")
    assert "penalty" in camp("gates", "check", "--gate", "penalty", code=1).stdout


@pytest.mark.parametrize(
    ("args", "text", "told"),
    [
        (("check",), None, "there is no campaign.yaml here"),
        (("check", "--flags", "x"), "python a.py --lr 3", "no flag in it is about gates"),
        (("check", "--flags", "x"), "--curriculum 15:9,20:x", "'x' is no whole number of iterations"),
        (("check", "--flags", "x"), "--curriculum '15:9", "this quote is not closed"),
        (("check", "--flags", "nowhere"), "", "there is no file nowhere"),
        (("check", "--flags", "."), "", "is a folder"),
        (("replay", "x"), "a,b\n1,2\n", "no row has the iteration"),
        (("replay", "x"), "", "there is no row in it"),
        (("replay", "x"), "{not json\n", "there is no row in it"),
        (("replay", "nowhere"), "", "neither a file, nor a folder, nor a cell"),
        (("replay", "."), "", "there is no trace in"),
        (("replay", "x", "--wins", "both"), "iter,p\n1,2\n", "--wins is failure or success"),
        (("replay", "x", "--with", "y"), "iter,p\n1,2\n", "there is no file y"),
        (("replay", "x"), "iter,p\n1,2\n", "it holds no settings of a gate, and there is no campaign.yaml here"),
        (("replay", "x"), '{"gate": "g"}{"iter": 1}\n{"iter": 2, "p": 2}\n', "gate; 1 of its lines can't be read, and"),
        (("chek",), None, "did you mean `muster gates check`?"),
        ((), None, "say what to do"),
    ],
)
def test_bad_input_is_told_and_changes_nothing(camp: Camp, args: tuple[str, ...], text: str | None, told: str) -> None:
    if text is not None:
        (camp.root / "x").write_text(text)
    before = sorted(camp.root.iterdir())
    done = camp("gates", *args, code=2)
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(camp.root.iterdir()) == before


def test_every_mistake_of_a_setting_is_told_with_its_line(camp: Camp) -> None:
    (camp.root / "x.csv").write_text("iter,p10\n1,2\n")
    (camp.root / "bad.yaml").write_text("success: [{key: p10, mn: 3, window: medan 4}]\nrequired: 0\nfoo: 1\n")
    told = camp("gates", "replay", "x.csv", "--with", "bad.yaml", code=2).stderr
    for each in ("1:22: error: unknown key 'mn'", "did you mean 'min'?", "1:37: error", "2:11: error", "3:1: error"):
        assert each in told


def test_rows_out_of_order_are_not_left_out_in_silence(camp: Camp) -> None:
    (camp.root / "x.csv").write_text("iter,p10\n16,101\n8,83\n8,99\n24,90\n")
    (camp.root / "gate.yaml").write_text("success: [{key: p10, min: 3}]\n")
    told = camp("gates", "replay", "x.csv", "--with", "gate.yaml", code=0).stdout
    assert "a later one goes back to their iteration or before it, as after a resume: 2\n" in told


def test_a_key_that_no_row_has_is_told_with_those_that_they_have(camp: Camp) -> None:
    (camp.root / "x.csv").write_text("iter,first_death_p10\n1,2\n")
    (camp.root / "gate.yaml").write_text("success: [{key: p10, min: 3}]\n")
    told = camp("gates", "replay", "x.csv", "--with", "gate.yaml", code=0).stdout
    assert "left out, because no row has it: p10; the rows have first_death_p10\n" in told
    assert "there is nothing to decide on: no row has a key of its criteria\n" in told


def test_a_trace_that_the_run_decided_otherwise_is_told(camp: Camp) -> None:
    from muster.stages import GateSettings
    from muster.stages.replay import replay_gate
    from muster.stages.traces import EvaluationRow, lines

    settings = GateSettings.of({"success": [{"key": "a", "min": 1}], "required": 2})
    rows = [EvaluationRow(at, {"a": float(at % 3)}, "main") for at in range(1, 8)]
    text = lines(settings, replay_gate(settings, rows))
    (camp.root / "gate_trace.jsonl").write_text(text + '{"torn')
    assert camp.json("gates", "replay", ".", code=0)["differs"] == []
    (camp.root / "gate_trace.jsonl").write_text(text.replace('"state": "advance"', '"state": "hold"'))
    assert camp.json("gates", "replay", ".", code=0)["differs"] == [2, 5]
