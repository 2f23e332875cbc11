"""`muster report`, `trace` and `verify` on a small campaign of real processes: what they refuse, and what they notice."""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.camp import Camp

SEEDS = range(5)
CAMPAIGN = """\
muster: 1
campaign: small
axes: {config: [base, new], seed: [0, 1, 2, 3, 4], split: [id, ood]}
slots: {gpus: 0, cpus: 2}
jobs:
  train:
    axes: [config, seed]
    command: /bin/sh -c 'echo {cell} $RANDOM $$ > {out}/model.txt'
    progress: [{checkpoint: model.txt}]
  eval:
    axes: [config, seed, split]
    needs: [train]
    command: cp data/{config}-{seed}-{split}.json {out}/result.json
    results: {score: {json: result.json, key: score}, cost: {json: result.json, key: cost}}
decision:
  primary: {metric: score, split: ood, better: higher}
  baseline: base
  limit: {metric: cost, split: ood, max: 30}
  delta: 0.3
"""


def data(camp: Camp, change: Callable[[str, int, str], Any] | None = None) -> None:
    """A result for each cell; `change` gives another one, None keeps it."""
    rng = random.Random(7)
    folder = camp.root / "data"
    folder.mkdir(exist_ok=True)
    for config in ("base", "new"):
        for seed in SEEDS:
            for split in ("id", "ood"):
                gain = 2.0 if config == "new" else 0.0
                value = {"score": 5 + gain + rng.gauss(0, 0.3), "cost": 20 + rng.gauss(0, 2)}
                other = change(config, seed, split) if change else None
                (folder / f"{config}-{seed}-{split}.json").write_text(
                    json.dumps(value if other is None else other) if not isinstance(other, str) else other
                )


@pytest.fixture
def done(camp: Camp) -> Camp:
    data(camp)
    camp.write(CAMPAIGN)
    camp("up", code=0)
    camp("report", code=0)
    return camp


def states(camp: Camp) -> dict[str, tuple[str, str]]:
    found = camp.json("verify")
    return {file["path"]: (file["state"], file["because"]) for file in found["files"]}


def test_a_finished_matrix(done: Camp) -> None:
    made = done.json("report", code=0)
    assert (made["verdict"], made["config"], made["k"], made["n"]) == ("RECOMMEND", "new", 20, 20)
    row = next(r for r in made["table"] if (r["config"], r["split"], r["metric"]) == ("new", "ood", "score"))
    assert (row["n"], len(row["values"])) == (5, 5)
    for path in made["files"]:
        assert (done.root / path).stat().st_size > 0
    assert {Path(path).suffix for path in made["files"]} == {".csv", ".md", ".tex", ".png", ".svg", ".pdf"}
    assert set(states(done)) == set(made["files"])
    assert done("verify", code=0).returncode == 0


@pytest.mark.slow
def test_a_second_report_changes_nothing(done: Camp) -> None:
    before = {path: (done.root / path).read_bytes() for path in states(done) if not path.endswith(".md")}
    done("report", code=0)
    assert {path: (done.root / path).read_bytes() for path in before} == before


def test_the_way_from_a_sentence_to_files_and_definition(done: Camp) -> None:
    found = done.json("trace", "reports/decision.md", "--claim", "E1", code=0)
    assert found["claims"][0]["id"] == "E1"
    by_cell = {cell["cell"]: cell for cell in found["cells"]}
    ood = by_cell["eval/new/0/ood"]
    (file,) = ood["files"]
    assert json.loads(Path(file["path"]).read_text())["score"] == ood["results"]["score"]
    assert by_cell["train/new/0"]["checkpoint"]["path"].endswith("model.txt")
    assert ood["command"].startswith("cp data/new-0-ood.json")
    text = (done.root / "reports/decision.md").read_text().splitlines()
    number = next(at for at, line in enumerate(text, 1) if "[E1]" in line)
    assert done.json("trace", f"reports/decision.md:{number}", code=0)["claims"][0]["id"] == "E1"


@pytest.mark.parametrize("suffix", ["csv", *(pytest.param(each, marks=pytest.mark.slow) for each in ("md", "tex"))])
def test_the_way_from_a_row_of_a_table_to_its_result_files(done: Camp, suffix: str) -> None:
    """Whoever doubts a number points at it."""
    path = f"reports/tables/main.{suffix}"
    text = (done.root / path).read_text().splitlines()
    number = next(at for at, line in enumerate(text, 1) if line.strip(" |").startswith("new"))
    found = done.json("trace", f"{path}:{number}", code=0)
    rests = {name for claim in found["claims"] for name in claim["cells"]}
    assert rests
    assert all(name.startswith("eval/new/") for name in rests)
    first = found["cells"][0]
    assert json.loads(Path(first["files"][0]["path"]).read_text())["score"] == first["results"]["score"]
    said = done("trace", f"{path}:{number}", code=0).stdout
    assert f"[{found['claims'][0]['id']}] new" in said
    assert "has no number that rests on results" in done("trace", f"{path}:1", code=2).stderr


def test_trace_of_what_is_not_there(done: Camp) -> None:
    (done.root / "mine.md").write_text("x")
    assert "carries no stamp" in done("trace", "mine.md", code=2).stderr
    assert "does not exist" in done("trace", "nothing.md", code=2).stderr
    assert "its claims: E1" in done("trace", "reports/decision.md", "--claim", "E999", code=2).stderr
    assert "lines" in done("trace", "reports/decision.md:99999", code=2).stderr


# -- verify catches each of these


def result_of(camp: Camp, cell: str) -> Path:
    return camp.folder(cell) / "out" / "result.json"


def edited_result(camp: Camp) -> None:
    path = result_of(camp, "eval/new/3/ood")
    path.write_text(json.dumps({"score": 99.0, "cost": 1.0}))


def replaced_checkpoint(camp: Camp) -> None:
    (camp.folder("train/new/3") / "out" / "model.txt").write_text("another one")


def run_again(camp: Camp) -> None:
    """All is forgotten and done anew: the tables on the shelf are those of other attempts."""
    shutil.rmtree(camp.root / ".muster")
    camp("up", code=0)


def edited_table(camp: Camp) -> None:
    path = camp.root / "reports/tables/main.csv"
    path.write_text(path.read_text().replace("new", "newer"))


def changed_campaign(camp: Camp) -> None:
    camp.write(CAMPAIGN.replace("delta: 0.3", "delta: 0.1"))


def deleted_seed(camp: Camp) -> None:
    camp.write(CAMPAIGN.replace("seed: [0, 1, 2, 3, 4]", "seed: [0, 1, 2, 3]"))


def deleted_folder(camp: Camp) -> None:
    shutil.rmtree(camp.folder("eval/base/1/id") / "out")


@pytest.mark.parametrize(
    ("damage", "path", "state", "because"),
    [
        (edited_result, "reports/decision.md", "stale", "result.json was changed"),
        (replaced_checkpoint, "reports/decision.md", "stale", "model.txt was replaced"),
        (run_again, "reports/tables/main.csv", "stale", "was run again"),
        (edited_table, "reports/tables/main.csv", "broken", "changed after Muster had made it"),
        (changed_campaign, "reports/tables/main.tex", "stale", "campaign.yaml changed: decision"),
        (deleted_seed, "reports/decision.md", "broken", "no longer declared"),
        (deleted_folder, "reports/decision.md", "broken", "is gone"),
    ],
)
def test_verify_catches(done: Camp, damage: Callable[[Camp], None], path: str, state: str, because: str) -> None:
    assert {found for found, _ in states(done).values()} == {"fresh"}
    damage(done)
    found = states(done)[path]
    assert found[0] == state
    assert because in found[1]
    assert done("verify", code=1).returncode == 1


@pytest.mark.slow
def test_a_comment_in_the_campaign_file_makes_nothing_stale(done: Camp) -> None:
    done.write(CAMPAIGN + "# a remark\n")
    assert {found for found, _ in states(done).values()} == {"fresh"}


@pytest.mark.slow
def test_an_edited_result_is_told_by_the_next_report_too(done: Camp) -> None:
    edited_result(done)
    made = done.json("report", code=3)
    assert made["verdict"] == "INVALID"
    assert [flag["code"] for flag in made["flags"] if flag["level"] == "ERROR"] == ["changed_result"]


@pytest.mark.slow  # its siblings here and the pure tests of tests/unit/report are in CI
def test_a_decision_that_is_changed_after_the_results_were_seen_says_so(done: Camp) -> None:
    changed_campaign(done)
    codes = [flag["code"] for flag in done.json("report", code=0)["flags"]]
    assert "decision_changed" in codes


# -- what is not there, or is no number


def test_an_incomplete_matrix_is_refused_and_nothing_is_written(camp: Camp) -> None:
    data(camp)
    camp.write(CAMPAIGN)
    camp("up", "--only", "seed=0,1", code=3)
    made = camp.json("report", code=3)
    assert (made["verdict"], made["k"], made["n"], made["files"]) == ("INCOMPLETE", 8, 20, [])
    assert "eval/new/4/ood" in made["missing"]
    assert "train/new/4" in made["missing"]
    assert "left out by --only seed=0,1" in camp("report", code=3).stdout
    assert not (camp.root / "reports" / "tables").exists()


def test_a_partial_report_is_marked_in_names_titles_and_captions(camp: Camp) -> None:
    data(camp)
    camp.write(CAMPAIGN)
    camp("up", "--only", "seed=0,1", code=3)
    made = camp.json("report", "--partial", code=3)
    assert made["verdict"] == "INCOMPLETE"
    assert all("PARTIAL-8of20" in path for path in made["files"])
    for path in made["files"]:
        if path.endswith((".md", ".tex", ".csv", ".svg")):
            assert "PARTIAL 8/20" in (camp.root / path).read_text(), path
    camp("up", code=0)
    assert {state for state, _ in states(camp).values()} == {"stale"}
    whole = camp.json("report", code=0)
    assert not list(camp.root.glob("reports/**/*PARTIAL*"))
    assert whole["verdict"] == "RECOMMEND"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ('{"score": NaN, "cost": 1}', "nan"),
        ({"score": "7.5", "cost": 1}, "no number but a text"),
        ({"score": {"mean": 7.5}, "cost": 1}, "no number but an object"),
        ({"cost": 1}, "has no 'score'"),
        ("half a fi", "no JSON"),
    ],
)
def test_a_result_that_is_none_is_an_error_of_its_cell(camp: Camp, value: Any, told: str) -> None:
    data(camp, lambda config, seed, split: value if (config, seed, split) == ("new", 2, "ood") else None)
    camp.write(CAMPAIGN)
    camp("up", code=3)
    cell = camp.json("why", "eval/new/2/ood")
    assert (cell["verdict"], cell["cause"]) == ("DEAD", "early_exit")
    assert told in json.dumps(cell)
    made = camp.json("report", code=3)
    assert made["missing"] == ["eval/new/2/ood"]


def test_one_seed_only(camp: Camp) -> None:
    data(camp)
    camp.write(CAMPAIGN.replace("seed: [0, 1, 2, 3, 4]", "seed: [0]"))
    camp("up", code=0)
    made = camp.json("report", code=0)
    assert made["verdict"] == "NOT_ENOUGH_EVIDENCE"
    assert all(row["sd"] is None for row in made["table"])


def test_all_seeds_identical(camp: Camp) -> None:
    data(camp, lambda config, *_: {"score": 5.25 if config == "new" else 4.125, "cost": 20.5})
    camp.write(CAMPAIGN)
    camp("up", code=0)
    made = camp.json("report", code=3)
    assert made["verdict"] == "INVALID"
    assert {flag["code"] for flag in made["flags"] if flag["level"] == "ERROR"} >= {"same_seeds", "same_row"}


@pytest.mark.slow  # its siblings here and the pure tests of tests/unit/report are in CI
def test_zero_variance_of_counted_costs_is_no_error(camp: Camp) -> None:
    rng = random.Random(3)
    data(camp, lambda config, *_: {"score": 5 + 2 * (config == "new") + rng.gauss(0, 0.3), "cost": 20})
    camp.write(CAMPAIGN.replace("max: 30}", "max: 30, cap: 35}"))
    camp("up", code=0)
    made = camp.json("report", code=0)
    assert not [flag for flag in made["flags"] if flag["level"] == "ERROR"]
    assert (made["verdict"], made["config"]) == ("RECOMMEND", "new")
    camp.write(CAMPAIGN)  # without a cap, seeds that are all alike say nothing about rare costly ones
    assert "undetermined" in camp.json("report", code=0)["reason"]


def test_a_baseline_or_a_limit_that_is_not_declared(camp: Camp) -> None:
    data(camp)
    camp.write(CAMPAIGN.replace("baseline: base", "baseline: bas").replace("metric: cost", "metric: costs"))
    told = camp("check", code=2).stderr + camp("check", code=2).stdout
    assert "axis 'config' has no value 'bas'" in told
    assert "no job has a result 'costs'" in told


def test_no_results_and_no_campaign(camp: Camp) -> None:
    camp.write("muster: 1\ncampaign: c\naxes: {seed: [0]}\njobs: {train: {axes: [seed], command: 'true'}}\n")
    assert "has not been started" in camp("report", code=2).stderr
    camp("up", code=0)
    told = camp("report", code=2).stderr
    assert "no job has results" in told
    assert "Traceback" not in told
    assert "nothing was derived yet" in camp("verify", code=0).stdout


@pytest.mark.slow  # its siblings here and the pure tests of tests/unit/report are in CI
def test_a_report_where_nothing_can_be_written(done: Camp) -> None:
    shutil.rmtree(done.root / "reports")
    (done.root / "reports").write_text("in the way")
    told = done("report", code=1).stderr
    assert "could not be written" in told
    assert "Traceback" not in told


@pytest.mark.slow  # its siblings here and the pure tests of tests/unit/report are in CI
def test_two_splits_and_no_decision(camp: Camp) -> None:
    data(camp)
    camp.write(CAMPAIGN.partition("decision:")[0])
    camp("up", code=0)
    made = camp.json("report", code=0)
    assert made["verdict"] == "NOT_ENOUGH_EVIDENCE"
    assert "declared" in made["reason"]


@pytest.mark.slow  # its siblings here and the pure tests of tests/unit/report are in CI
def test_files_of_a_persons_own_job_are_stamped_too(camp: Camp) -> None:
    data(camp)
    once = """\
  plots:
    axes: []
    needs: [eval]
    command: /bin/sh -c 'ls data > {out}/list.txt'
    proof: {files: [list.txt]}
decision:"""
    camp.write(CAMPAIGN.replace("decision:", once))
    camp("up", code=0)
    assert camp.json("report", code=0)["n"] == 20  # what only uses results is no part of the matrix
    found = states(camp)
    mine = [path for path in found if path.endswith("list.txt")]
    assert len(mine) == 1
    assert found[mine[0]] == ("fresh", "")
    edited_result(camp)
    assert states(camp)[mine[0]][0] == "stale"
    (camp.root / mine[0]).write_text("mine")
    assert states(camp)[mine[0]][0] == "broken"


def test_bound_texts_carry_a_stamp_and_may_be_edited_but_for_their_numbers(done: Camp) -> None:
    row = next(
        r
        for r in done.json("report", code=0)["table"]
        if (r["config"], r["split"], r["metric"]) == ("new", "ood", "score")
    )
    text = done.root / "talk.md"
    text.write_text(f"| config | OOD score |\n| --- | --- |\n| new | {row['mean']:.3f} |\n\nWords.\n")
    done("docs", "bind", "talk.md", "--yes", "--place", code=0)
    done("docs", "update", "talk.md", code=0)
    assert states(done)["talk.md"] == ("fresh", "")
    text.write_text(text.read_text() + "More words.\n")
    assert states(done)["talk.md"] == ("fresh", "")
    found = done.json("trace", "talk.md", code=0)
    assert found["claims"][0]["cells"] == [f"eval/new/{seed}/ood" for seed in SEEDS]
    edited_result(done)
    assert states(done)["talk.md"][0] == "stale"
    text.write_text(text.read_text().replace(f"{row['mean']:.3f}", "9.999"))
    assert states(done)["talk.md"][0] == "broken"
    assert "changed by hand" in states(done)["talk.md"][1]


@pytest.mark.slow  # its siblings here and the pure tests of tests/unit/report are in CI
def test_a_replaced_checkpoint_makes_everything_stale_that_rests_on_it(done: Camp) -> None:
    replaced_checkpoint(done)
    assert states(done)["reports/tables/main.csv"][0] == "stale"
    assert "model.txt was replaced" in states(done)["reports/tables/main.csv"][1]


@pytest.mark.slow
def test_a_report_of_nothing_does_not_stay_fresh(camp: Camp) -> None:
    data(camp)
    camp.write(CAMPAIGN)
    camp("up", "--only", "job=train", code=3)
    camp("report", "--partial", code=3)
    camp("up", code=0)
    assert {state for state, _ in states(camp).values()} == {"stale"}


@pytest.mark.slow
def test_a_damaged_stamp_is_mended_by_its_own_command(done: Camp) -> None:
    (done.root / "reports/stamps/report.json").write_text("{")
    assert "make it anew: `muster report`" in done("verify", code=1).stderr
    done("report", code=0)
    done("verify", code=0)


@pytest.mark.slow
def test_files_whose_stamp_was_deleted_are_told(done: Camp) -> None:
    (done.root / "reports/stamps/report.json").unlink()
    assert states(done)["reports/decision.md"] == ("broken", "it carries no stamp")


@pytest.mark.slow
def test_a_partial_report_leaves_the_whole_one_alone(done: Camp) -> None:
    done.write(CAMPAIGN.replace("seed: [0, 1, 2, 3, 4]", "seed: [0, 1, 2, 3, 4, 5]"))
    done("report", "--partial", code=3)
    found = states(done)
    assert found["reports/decision.md"][0] == "stale"
    assert found["reports/decision.PARTIAL-20of24.md"][0] == "fresh"


def test_numbers_that_are_no_result_are_not_written_into_texts(done: Camp) -> None:
    text = done.root / "talk.md"
    text.write_text("| config | OOD score |\n| --- | --- |\n| new | 7.123 |\n")
    done.write(CAMPAIGN + "report: {documents: [talk.md]}\n")
    done("docs", "bind", "talk.md", "--yes", "--place", code=0)
    edited_result(done)
    made = done.json("report", code=3)
    assert made["verdict"] == "INVALID"
    assert "INVALID" in made["documents"]["refused"][0]["because"]
    assert "7.123" in text.read_text()
    assert "INVALID" in done("docs", "update", "talk.md", code=1).stderr
    for name in ("main.csv", "main.md", "main.tex"):
        assert "INVALID" in (done.root / "reports/tables" / name).read_text()


@pytest.mark.slow
def test_a_job_that_ran_before_more_seeds_came_is_stale(camp: Camp) -> None:
    data(camp)
    once = '  plots: {axes: [], needs: [eval], command: "touch {out}/plot.txt"}\ndecision:'
    text = CAMPAIGN.replace("decision:", once)
    camp.write(text.replace("seed: [0, 1, 2, 3, 4]", "seed: [0, 1]"))
    camp("up", code=0)
    camp.write(text)
    camp("up", code=0)
    camp("report", code=0)
    found = {path: each for path, each in states(camp).items() if path.endswith("plot.txt")}
    assert [(state, "plots ran before eval/" in because) for state, because in found.values()] == [("stale", True)]


@pytest.mark.slow
def test_the_file_that_an_evaluation_names_is_what_was_evaluated(camp: Camp) -> None:
    """The declared checkpoint is the last one; the evaluation reads another, which was saved at the start."""
    data(camp)
    text = CAMPAIGN.replace(
        "'echo {cell} $RANDOM $$ > {out}/model.txt'",
        "'echo start {cell} > {out}/init.txt; read word < gate-{config}-{seed}; echo {cell} > {out}/model.txt'",
    )
    text = text.replace("cp data/", "/bin/sh -c 'test -f $0; cp data/").replace(
        "{out}/result.json", "{out}/result.json' {train.output}/init.txt", 1
    )
    text = text.replace("seed: [0, 1, 2, 3, 4]", "seed: [0]")
    camp.write(text)
    camp.gates("base-0", "new-0")
    camp("up", "--detach", code=0)
    for name in ("base", "new"):
        init = camp.folder(f"train/{name}/0") / "out" / "init.txt"
        camp.until(init.exists, f"the start of {name}")
        began = time.time()
    camp.until(lambda: time.time() > began + 2.5)  # file times are coarse: what is saved 2 s before the end is the end
    for name in ("base", "new"):
        camp.open(f"{name}-0")
    camp("wait", "--timeout", "60s", code=0)
    made = camp.json("report", code=3)
    early = [flag for flag in made["flags"] if flag["code"] == "early_checkpoint"]
    assert [flag["cells"] for flag in early] == [["train/base/0"], ["train/new/0"]]
    trace = camp.json("trace", "reports/tables/main.csv", "--all", code=0)
    saved = {cell["cell"]: cell["checkpoint"] for cell in trace["cells"]}
    assert saved["train/new/0"]["path"].endswith("init.txt")


@pytest.mark.slow
def test_a_checkpoint_from_a_backup_is_the_one_that_was_evaluated(done: Camp) -> None:
    """Its time is new, its bytes are those that the last report saw."""
    path = done.folder("train/new/3") / "out" / "model.txt"
    later = time.time() + 60
    os.utime(path, (later, later))
    assert "checkpoint_changed" not in {flag["code"] for flag in done.json("report", code=0)["flags"]}
    path.write_text("another one")
    os.utime(path, (later, later))
    assert "checkpoint_changed" in {flag["code"] for flag in done.json("report", code=3)["flags"]}


@pytest.mark.slow
def test_what_is_bound_beside_the_campaign_is_kept_right_too(done: Camp) -> None:
    (done.root / "talk.md").write_text("| config | OOD score |\n| --- | --- |\n| new | 7.123 |\n")
    done("docs", "bind", "talk.md", "--yes", "--place", code=0)
    assert done.json("report", code=0)["documents"]["updated"] == ["talk.md"]
    assert "7.123" not in (done.root / "talk.md").read_text()
