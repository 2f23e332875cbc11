"""init, schema, check, plan and adopt: what a person does before the first run."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from muster.spec.campaign_templates import template_names
from support.camp import Camp, until

SPRINT = """\
muster: 1
campaign: paper
axes:
  config: [v2_baseline, v2_u_only, v2_cert_only, v2_full]
  seed: [0, 1, 2, 3, 4]
slots: {gpus: 0, cpus: 2}
money: {price: 2.0, currency: CNY, per: gpu}
jobs:
  train:
    axes: [config, seed]
    steps: 1000
    output: runs/*_{config}_*_{seed}
    command: >-
      /bin/sh -c 'd=runs/new_{config}_x_{seed}; mkdir -p $d; echo "{{\\"step\\": {steps}}}" > $d/metrics.jsonl; echo {cell} >> ran'
    progress: [{jsonl: metrics.jsonl, step: step}]
    proof: {step: {min: "{steps}", within: 2%}}
"""
MISSING = ["train/v2_u_only/2", "train/v2_cert_only/2", "train/v2_full/2"]
CHAIN = """\
muster: 1
campaign: chain
axes: {seed: [0, 1, 2]}
slots: {gpus: 0, cpus: 2}
jobs:
  train: {axes: [seed], command: "/bin/sh -c 'test {seed} != 1'"}
  eval: {axes: [seed], needs: [train], command: "true {seed}"}
"""


def no_traceback(done: subprocess.CompletedProcess[str]) -> None:
    assert "Traceback" not in done.stdout + done.stderr


# -- init


@pytest.mark.parametrize("template", [None, *template_names()])
def test_init_writes_a_campaign_that_is_right(camp: Camp, template: str | None) -> None:
    told = camp("init", *([template] if template else []), code=0).stdout
    assert f"wrote campaign.yaml (template {template or 'sprint'}) and AGENTS.md in {camp.root}" in told
    assert "muster check" in told
    agents = (camp.root / "AGENTS.md").read_text()
    assert "muster status --json" in agents
    assert "`counts.GIVEN_UP`" in agents
    assert "For 1 and 2" in agents
    found = camp.json("check")
    absent = ("was not found", "does not exist", "there is no file")  # of this empty folder
    assert [item for item in found["mistakes"] if not any(words in item["message"] for words in absent)] == []
    assert template not in (None, "sprint") or "there is no file eval.py" in str(found["mistakes"])


def test_init_does_not_overwrite(camp: Camp) -> None:
    (camp.root / "AGENTS.md").write_text("mine")
    told = camp("init", code=2)
    assert "AGENTS.md exists already; nothing was changed" in told.stderr
    assert (camp.root / "AGENTS.md").read_text() == "mine"
    assert not (camp.root / "campaign.yaml").exists()
    camp("init", "--force", code=0)
    assert (camp.root / "AGENTS.md.before-init").read_text() == "mine"
    assert "never" in (camp.root / "AGENTS.md").read_text().lower()
    told = camp("init", code=2)
    assert "campaign.yaml and AGENTS.md exist already" in told.stderr


def test_init_with_a_template_that_does_not_exist(camp: Camp) -> None:
    told = camp("init", "safedremer", code=2)
    assert "there is no template 'safedremer'" in told.stderr
    assert "did you mean safedreamer? templates are sprint, loop, staged, safedreamer, lerobot, omnisafe" in told.stderr
    told = camp("init", "xyz", code=2)
    assert "templates are sprint" in told.stderr
    assert list(camp.root.iterdir()) == []


def test_init_elsewhere(camp: Camp) -> None:
    (camp.root / "sub").mkdir()
    camp("-C", "sub", "init", code=0)
    assert (camp.root / "sub" / "campaign.yaml").exists()
    told = camp("-C", "nowhere", "init", code=2)
    assert "there is no folder" in told.stderr
    assert not (camp.root / "nowhere").exists()


# -- schema


def test_schema_fits_what_init_writes(camp: Camp) -> None:
    schema = json.loads(camp("schema", code=0).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    for name in template_names():
        camp("init", name, "--force", code=0)
        campaign = YAML(typ="safe").load((camp.root / "campaign.yaml").read_text())
        jsonschema.validate(json.loads(json.dumps(campaign, default=str)), schema)


# -- check


def test_check_saves_what_it_found(camp: Camp) -> None:
    camp.write(CHAIN)
    told = camp("check", code=0).stdout
    assert "campaign.yaml is valid" in told
    assert "GiB free" in told
    record = json.loads((camp.root / ".muster" / "preflight.json").read_text())
    assert {"gpus", "disk", "python", "platform", "code", "cpus", "at", "muster"} <= set(record)
    found = camp.json("check", code=0)
    assert (found["valid"], found["mistakes"], found["warnings"]) == (True, [], [])
    assert found["preflight"]["disk"]["free_bytes"] > 0
    told = camp("status", code=2)  # a check alone starts nothing
    assert "has not been started" in told.stderr


def test_check_records_the_code(camp: Camp) -> None:
    git = ["git", "-c", "user.name=me", "-c", "user.email=me@example.org", "-C", str(camp.root)]
    camp.write(CHAIN)
    (camp.root / "code.py").write_text("1")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)
    (code,) = camp.json("check", code=0)["preflight"]["code"].values()
    assert len(code["commit"]) == 40
    assert code["dirty"] is None
    (camp.root / "code.py").write_text("2")
    (code,) = camp.json("check", code=0)["preflight"]["code"].values()
    assert code["dirty"]
    assert "changes that are not committed" in camp("check", code=0).stdout


def test_check_shows_every_mistake_and_changes_nothing(camp: Camp) -> None:
    camp.write(CHAIN.replace("seed: [0, 1, 2]", "seed: [0, 1, 1]").replace("needs", "need").replace("cpus", "cpu"))
    told = camp("check", code=2)
    file = camp.root / "campaign.yaml"
    assert f"{file}:3:21: error: axis value '1' is written twice" in told.stderr
    assert f"{file}:4:18: error: unknown key 'cpu'" in told.stderr
    assert f"{file}:7:24: error: unknown key 'need'" in told.stderr
    assert "3 mistakes; nothing was changed" in told.stderr
    found = camp.json("check", code=2)
    assert [(item["line"], item["column"]) for item in found["mistakes"]] == [(3, 21), (4, 18), (7, 24)]
    assert found["valid"] is False
    assert not (camp.root / ".muster").exists()


def test_check_names_the_line_of_a_command_that_is_not_there(camp: Camp) -> None:
    camp.write(CHAIN.replace("true {seed}", "no-such-command {seed}"))
    (mistake,) = camp.json("check", code=2)["mistakes"]
    assert mistake["message"].startswith("job eval: the command 'no-such-command' was not found")
    assert (mistake["line"], mistake["path"]) == (7, "jobs.eval.command")
    assert not (camp.root / ".muster").exists()


def test_check_fails_for_gpus_that_are_not_there(camp: Camp) -> None:
    camp.write(CHAIN.replace("gpus: 0", "gpus: [63]").replace("needs: [train]", "needs: [train], uses: {gpu: 1}"))
    found = camp.json("check", code=1)
    (failure,) = found["failures"]
    assert failure["message"].startswith("this machine has no GPU 63")
    assert (failure["line"], failure["column"]) == (4, 15)
    assert (found["valid"], found["warnings"]) == (True, [])
    told = camp("check", code=1)
    assert "failure: this machine has no GPU 63" in told.stderr
    assert "the preflight failed" in told.stdout


# -- plan


def test_plan_before_anything_was_started(camp: Camp) -> None:
    camp.write(CHAIN)
    found = camp.json("plan", code=0)
    assert [item["cell"] for item in found["would_run"]] == ["train/0", "train/1", "train/2"]
    assert [item["position"] for item in found["would_run"]] == [1, 2, 3]
    assert [(item["cell"], item["verdict"], item["later"]) for item in found["not"]] == [
        (f"eval/{seed}", "BLOCKED", True) for seed in range(3)
    ]
    assert found["estimate"]["slot_hours"] is None
    assert found["declared"] == 6
    told = camp("plan", code=0).stdout
    assert "6 cells declared, 0 done" in told
    assert "would run now: 3 of 6 cells; 3 more follow" in told
    assert "expected: unknown: no cell of eval, train has finished yet" in told
    assert not (camp.root / ".muster").exists()


def test_plan_afterwards_and_after_an_edit(camp: Camp) -> None:
    camp.write(CHAIN)
    camp("up", code=3)
    found = camp.json("plan", code=0)
    assert found["would_run"] == []
    others = {item["cell"]: item for item in found["not"]}
    assert others["train/0"]["verdict"] == "DONE"
    assert others["train/1"]["verdict"] == "DEAD"
    assert "muster retry" in others["train/1"]["next"]
    assert (others["eval/1"]["verdict"], others["eval/1"]["later"]) == ("BLOCKED", False)
    assert found["changes"]["new"] == []
    camp.write(CHAIN.replace("[0, 1, 2]", "[1, 2, 3]").replace("test {seed} != 1", "test -n {seed}"))
    found = camp.json("plan", code=0)
    assert found["changes"]["new"] == ["train/3", "eval/3"]
    assert found["changes"]["gone"] == ["train/0", "eval/0"]
    assert found["changes"]["changed"] == ["train/1"]
    assert found["changes"]["changed_done"] == ["train/2"]
    assert [item["cell"] for item in found["would_run"]] == ["train/1", "train/3"]
    assert "changed since" in found["would_run"][0]["why"]
    assert {item["cell"]: item["later"] for item in found["not"]} == {
        "train/2": False, "eval/1": True, "eval/2": False, "eval/3": True,
    }  # fmt: skip
    told = camp("plan", code=0).stdout
    assert "2 new cells: train/3, eval/3" in told
    assert "1 DONE cell whose definition changed (kept, with its old hash): train/2" in told
    assert set(camp.cells()) == {
        f"{job}/{seed}" for job in ("train", "eval") for seed in range(3)
    }  # nothing was taken in


def test_plan_while_runs_run_and_with_a_filter(gated: Camp) -> None:
    gated("up", "--detach", "--only", "seed=0", code=0)
    gated.started("train/0")
    found = gated.json("plan", code=0)
    others = {item["cell"]: item for item in found["not"]}
    assert others["train/0"]["verdict"] == "RUNNING"
    assert others["eval/0"]["later"] is True
    assert "left out by --only seed=0" in others["train/1"]["reason"]
    assert found["would_run"] == []
    gated.open(0)
    gated("wait")
    assert gated.json("plan")["estimate"]["cells"] == 2


# -- adopt: the reference story


def story(camp: Camp, last: int = 1000) -> None:
    """17 of 20 runs exist; seed 2 of three configs was filtered away and nobody wrote it down."""
    camp.write(SPRINT)
    for config in ("v2_baseline", "v2_u_only", "v2_cert_only", "v2_full"):
        for seed in range(5):
            if f"train/{config}/{seed}" not in MISSING:
                run(camp.root / "runs" / f"20260221-0{seed}0000_{config}_x_{seed}", last)


def run(folder: Path, last: int) -> None:
    folder.mkdir(parents=True)
    (folder / "metrics.jsonl").write_text(
        "".join(json.dumps({"step": step}) + "\n" for step in range(0, last + 1, 100))
    )
    for path in (folder / "metrics.jsonl", folder):
        os.utime(path, (1771600000, 1771600000))


def test_the_reference_story(camp: Camp) -> None:
    story(camp)
    found = camp.json("adopt", "--dry-run", code=0)
    assert (len(found["adopted"]), found["refused"], found["dry_run"]) == (17, [], True)
    assert not (camp.root / ".muster").exists()
    told = camp("adopt", code=0).stdout
    assert "adopted 17, refused 0; 17 of 20 cells are done" in told
    status = camp.json("status", code=3)
    assert (status["intent"], status["counts"]["DONE"], status["counts"]["PENDING"]) == ("down", 17, 3)
    assert camp.controller() is None
    found = camp.json("plan", code=0)
    assert [item["cell"] for item in found["would_run"]] == MISSING
    assert len([item for item in found["not"] if item["verdict"] == "DONE"]) == 17
    told = camp("plan", code=0).stdout
    assert "would run now: 3 of 20 cells" in told
    for cell in MISSING:
        assert f"{cell}: it has not run yet" in told
    camp("up", code=0)
    assert sorted((camp.root / "ran").read_text().split()) == sorted(MISSING)
    assert camp.json("status", code=0)["counts"]["DONE"] == 20


def test_adopting_again_finds_nothing_new(camp: Camp) -> None:
    story(camp)
    camp("adopt", code=0)
    found = camp.json("adopt", code=0)
    assert (found["adopted"], found["refused"], len(found["already"])) == ([], [], 17)
    told = camp("adopt", code=0).stdout
    assert "✔ train/v2_full/4: already adopted:" in told
    assert "✘" not in told
    assert "adopted 0, 17 already adopted, refused 0; 17 of 20 cells are done; nothing was changed" in told
    assert len(camp.decisions("adopt")) == 17
    run(camp.root / "runs" / "20260221-090000_v2_full_x_4", 1000)  # another run of a cell that is in
    found = camp.json("adopt", code=0)
    assert len(found["already"]) == 17
    assert "train/v2_full/4 is DONE already" in found["refused"][0]["reason"]


def test_jobs_that_share_their_axes_are_told_apart_by_a_word(camp: Camp) -> None:
    story(camp)
    evaluate = """\
  eval:
    axes: [config, seed]
    needs: [train]
    command: "true"
"""
    camp.write(SPRINT.replace("    output: runs/*_{config}_*_{seed}\n", "") + evaluate)
    pattern = "runs/*_{config}_*_{seed}"
    told = camp("adopt", pattern, code=1).stdout
    assert "it fits 2 cells: train/v2_full/4, eval/v2_full/4; name the job with --job train" in told
    assert "adopted 0, refused 17; 0 of 40 cells are done; nothing was changed" in told
    assert not (camp.root / ".muster").exists()
    assert "jobs are train, eval" in camp("adopt", pattern, "--job", "trian", code=2).stderr
    found = camp.json("adopt", pattern, "--job", "train", code=0)
    assert {item["cell"].partition("/")[0] for item in found["adopted"]} == {"train"}
    assert (len(found["adopted"]), found["taken_in"]) == (17, True)
    rows = [f"{config}\t2\tsuccess\truns/gone" for config in ("v2_full", "v9")]
    (camp.root / "table.tsv").write_text("\n".join(["config\tseed\tstatus\trun_dir", *rows]) + "\n")
    told = camp("adopt", "--status-tsv", "table.tsv", "--job", "train", code=1).stdout
    assert "row 2: run folder runs/gone does not exist" in told
    assert "row 3: config 'v9' is not declared" in told
    assert "row 2: row 2" not in told


def test_adopt_refuses_what_is_not_proved(camp: Camp) -> None:
    story(camp)
    run(camp.root / "runs" / "20260221-090000_v2_full_x_2", 400)  # 40 % of its steps
    found = camp.json("adopt", code=3)
    assert len(found["adopted"]) == 17
    (refused,) = found["refused"]
    assert refused["what"].endswith("_v2_full_x_2")
    assert "proof fails" in refused["reason"]
    assert camp.cells()["train/v2_full/2"] == "PENDING"


def test_adopt_when_nothing_fits(camp: Camp) -> None:
    camp.write(SPRINT)
    told = camp("adopt", "nowhere/*", code=1)
    assert "nowhere/*: it fits no folder" in told.stdout
    assert "adopted 0, refused 1" in told.stdout
    story(camp, last=100)
    told = camp("adopt", code=1)
    assert "adopted 0, refused 17; 0 of 20 cells are done; nothing was changed" in told.stdout
    assert not (camp.root / ".muster").exists()


def test_adopt_takes_a_mended_file_in(camp: Camp) -> None:
    """The proof was wrong, the person fixes it and adopts again: the new text counts, and still nothing starts."""
    story(camp, last=900)
    assert len(camp.json("adopt", code=1)["refused"]) == 17
    camp.write(SPRINT.replace("within: 2%", "within: 10%"))
    found = camp.json("adopt", code=0)
    assert (len(found["adopted"]), found["taken_in"]) == (17, True)
    assert camp.json("status")["intent"] == "down"


def test_adopt_by_a_status_table_and_while_it_runs(camp: Camp) -> None:
    """A campaign is running; its controller takes the adopted run over and does not start it."""
    camp.write(SPRINT.replace("/bin/sh -c 'd=", "/bin/sh -c 'test {config} != v2_baseline || read x < gate-{seed}; d="))
    camp.gates(*range(5))
    camp("up", "--detach", "--only", "config=v2_baseline", code=0)
    run(camp.root / "old" / "elsewhere", 1000)
    (camp.root / "table.tsv").write_text("config\tseed\tstatus\trun_dir\nv2_full\t3\tsuccess\told/elsewhere\n")
    found = camp.json("adopt", "--status-tsv", "table.tsv", code=0)
    assert [(item["cell"], item["path"]) for item in found["adopted"]] == [
        ("train/v2_full/3", str(camp.root / "old" / "elsewhere"))
    ]
    for seed in range(5):
        camp.open(seed)
    camp("wait", code=3)
    until(lambda: camp.controller() is None)
    cells = camp.cells()
    assert [cell for cell, verdict in cells.items() if verdict == "DONE"] == [
        *(f"train/v2_baseline/{seed}" for seed in range(5)), "train/v2_full/3",
    ]  # fmt: skip
    no_traceback(camp("adopt", "--status-tsv", "no.tsv", code=2))


def test_a_filter_outlives_an_adoption(camp: Camp) -> None:
    camp.write(CHAIN)
    camp("up", "--only", "seed=0", code=3)
    until(lambda: camp.controller() is None)
    camp("down", code=0)
    camp.write(CHAIN + "    # a remark\n")
    camp("adopt", code=1)
    others: dict[str, Any] = {item["cell"]: item for item in camp.json("plan")["not"]}
    assert "left out by --only seed=0" in others["train/1"]["reason"]


# -- the status table


def test_the_status_table_of_a_job(camp: Camp) -> None:
    from muster.app.campaign.campaign_handle import CampaignHandle
    from muster.app.campaign.observe_campaign import observe_campaign
    from muster.app.overview.status_tsv import format_status_tsv, write_status_tsv

    values = json.dumps(["a\\b", "c d"])
    camp.write(
        CHAIN.replace("{seed: [0, 1, 2]}", f"{{seed: [0, 1], name: {values}}}").replace("[seed]", "[seed, name]")
    )
    camp("up", code=3)
    until(lambda: camp.controller() is None)
    desk = CampaignHandle.open(camp.root)
    status = observe_campaign(desk)
    written = write_status_tsv(camp.root, status)
    desk.close()
    assert [path.name for path in written] == ["train_status_latest.tsv", "eval_status_latest.tsv"]
    header, *rows = [line.split("\t") for line in written[0].read_text().splitlines()]
    assert header == [
        "cell", "seed", "name", "verdict", "cause", "attempt", "attempts", "started", "ended", "duration_s", "exit_code",
        "signal", "output", "reason",
    ]  # fmt: skip
    table = [dict(zip(header, row, strict=True)) for row in rows]
    assert [(row["seed"], row["name"], row["verdict"]) for row in table] == [
        ("0", "a\\\\b", "DONE"), ("0", "c d", "DONE"), ("1", "a\\\\b", "DEAD"), ("1", "c d", "DEAD"),
    ]  # fmt: skip
    assert (table[0]["exit_code"], table[2]["exit_code"], table[2]["cause"]) == ("0", "1", "exit_code(1)")
    assert float(table[0]["duration_s"]) >= 0
    assert [row["verdict"] for row in _rows(format_status_tsv(status, "eval"))] == [
        "DONE",
        "DONE",
        "BLOCKED",
        "BLOCKED",
    ]


def test_values_that_would_break_the_table() -> None:
    from muster.app.overview.status_tsv import escape_tsv_value

    assert escape_tsv_value("a\tb\nc\r\\d") == "a\\tb\\nc\\r\\\\d"
    assert escape_tsv_value(None) == ""


def _rows(text: str) -> list[dict[str, str]]:
    header, *rows = [line.split("\t") for line in text.splitlines()]
    return [dict(zip(header, row, strict=True)) for row in rows]
