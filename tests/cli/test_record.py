"""`muster record` on a campaign that really happened: a filter, a death, a dead controller, notes, a hold."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from support.camp import Camp

SCHEMA = Path(__file__).parents[2] / "docs" / "schemas" / "record.schema.json"
STORY = """\
muster: 1
campaign: story
axes: {config: [a, b], seed: [0, 1]}
env: {MUJOCO_GL: egl, WANDB_API_KEY: s3cret}
slots: {gpus: 0, cpus: 2}
money: {price: 2.0, currency: CNY, per: machine}
jobs:
  train:
    axes: [config, seed]
    command: /bin/sh -c 'echo started {cell}; echo trouble of {cell} >&2; read word < gate-{config}-{seed}; exit $word'
  eval:
    axes: [config, seed]
    needs: [train]
    command: /bin/sh -c 'echo evaluated'
"""


@pytest.fixture
def story(camp: Camp) -> Camp:
    """seed 0 only: train/a/0 is DONE, train/b/0 died with 3; the controller was killed on the way."""
    camp.environment |= {"ONLY_UP_KNOWS": "t0psecret", "MUSTER_GUARD": "off"}
    camp.write(STORY)
    camp.gates("a-0", "a-1", "b-0", "b-1")
    camp("up", "--detach", "--only", "seed=0", code=0)
    camp.started("train/a/0")
    camp.started("train/b/0")
    os.kill(camp.controller(), signal.SIGKILL)
    camp.until(lambda: camp.controller() is None)
    camp("up", "--detach", "--only", "seed=0", code=0)
    camp.open("a-0")
    camp.open("b-0", "3")
    camp("wait", "--timeout", "60s", code=3)
    camp.until(lambda: camp.controller() is None)
    return camp


def section(text: str, head: str) -> list[str]:
    found = re.search(rf"^## {re.escape(head)}\n\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, head
    return found[1].strip().splitlines()


def test_the_record_of_what_happened(story: Camp) -> None:
    story("note", "the word at the gate was 3", "--cell", "train/b/0", "--evidence", "campaign.yaml:10", code=0)
    story("hold", "--because", "you may look, you may not rerun", code=0)
    before = (story.root / ".muster" / "decisions.jsonl").read_bytes()
    told = story("record", code=0).stdout
    file = story.root / "reports" / "record.md"
    assert told == f"wrote {file}: 2 of 8 cells DONE; 6 cells not done, each with its reason\n"
    assert (story.root / ".muster" / "decisions.jsonl").read_bytes() == before, "writing it decides nothing"
    text = file.read_text()

    scope = "\n".join(section(text, "Scope and constraints"))
    assert f"- Campaign `story` in `{story.root}`" in scope
    assert "`MUJOCO_GL=egl`, `WANDB_API_KEY` (value not shown)" in scope
    assert "you may look, you may not rerun" in scope
    assert "s3cret" not in text
    assert "t0psecret" not in text

    changes = "\n".join(section(text, "Changes"))
    assert "`--only seed=0` left out 4 cells: `train/{a,b}/1`, `eval/{a,b}/1`" in changes
    assert "Decisions of people: 1 hold, 1 note." in changes

    seen = section(text, "Observations in order")
    stamps = [line[2:21] for line in seen if re.match(r"- \d{4}", line)]
    assert stamps == sorted(stamps), "in order"
    joined = "\n".join(seen)
    assert "started a part of it: `muster up --only seed=0`, which left out 4 cells" in joined
    assert re.search(r"controller \d+ took over: controller \d+ had ended without a word", joined)
    death = next(line for line in seen if "DEAD" in line and "train/b/0" in line)
    assert "exit_code(3) (proven)" in death
    log = story.folder("train/b/0") / "stderr.log"
    assert f"  - log: `{log}`" in seen
    assert "noted about `train/b/0`: “the word at the gate was 3”" in joined
    assert f"  - evidence: `{story.root}/campaign.yaml:10: command: /bin/sh" in joined
    assert "held the campaign: “you may look, you may not rerun”" in joined

    status = "\n".join(section(text, "Current status"))
    assert "2 DONE, 1 DEAD, 5 HELD" in status
    assert "- a: seed 0 (1 of 2)" in status
    assert "- b: none (0 of 2)" in status

    missing = section(text, "Missing cells, and why each is missing")
    assert missing[0].startswith("- `train/{a,b}/1`: never started. `--only seed=0` (")
    assert any(line.startswith("- `train/b/0`: DEAD, exit_code(3) (proven), attempt 1") for line in missing)
    assert any(line.startswith("- `eval/a/1`, `eval/b/{0,1}`: never started: waits for cells") for line in missing)
    assert f"  - log: `{log}`" in missing

    fix = section(text, "Proposed fix (not executed)")
    assert [line for line in fix if line.startswith("- `muster")] == [
        "- `muster release`",
        "- `muster retry train/b/0 --because 'WHAT WAS FIXED'`",
        "- `muster up`",
    ]
    assert any("CNY" in line for line in fix)
    evidence = "\n".join(section(text, "Where the evidence lies"))
    for path in re.findall(r"`(/[^`]+)`", evidence):
        assert Path(path.partition("campaign.yaml:")[0]).exists(), path


@pytest.mark.slow  # the first test here is its sibling in CI
def test_the_proposed_commands_work(story: Camp) -> None:
    """Word for word, but for what only a person knows."""
    fix = story.json("record", code=0)["fix"]
    retry, up = (each["command"].split() for each in fix)
    assert (retry[:3], up) == (["muster", "retry", "train/b/0"], ["muster", "up"])
    assert fix[1]["cells"] == ["train/a/1", "train/b/1", "eval/a/1", "eval/b/0", "eval/b/1"]
    story("retry", "train/b/0", "--because", "the gate is open now", code=0)
    story("up", "--detach", code=0)
    for gate in ("b-0", "a-1", "b-1"):
        story.open(gate)
    story("wait", "--timeout", "60s", code=0)
    text = story.json("record", code=0)["text"]
    assert "All 8 declared cells are DONE" in text
    assert "asked for another attempt of `train/b/0`: “the gate is open now”" in text
    assert "the recorded cause: exit_code(3); a person asked: the gate is open now" in text


def test_json_and_where_it_goes(story: Camp) -> None:
    found = story.json("record", "--out", "Record.md", code=0)
    Draft202012Validator(json.loads(SCHEMA.read_text()), format_checker=Draft202012Validator.FORMAT_CHECKER).validate(
        found
    )
    assert found["file"] == str(story.root / "Record.md")
    assert found["text"] == (story.root / "Record.md").read_text()
    assert sum(len(each["cells"]) for each in found["missing"]) == found["declared"] - found["counts"]["DONE"] == 6
    assert not (story.root / "reports" / "record.md").exists()
    assert story("record", "--out", "-", code=0).stdout.startswith("# Record: story\n")
    assert not list(story.root.glob(".*Record*")), "nothing half-written is left"
    assert "this is a folder" in story("record", "--out", ".", code=2).stderr
    assert "there is no folder" in story("record", "--out", "nowhere/Record.md", code=2).stderr


@pytest.mark.slow  # the first test here is its sibling in CI
def test_one_record_does_not_replace_another(story: Camp) -> None:
    mine = ("Record.md", "Second.md", "reports/a_b.md", "reports/a/b.md", "../Outside.md")
    (story.root / "reports" / "a").mkdir(parents=True)
    for name in mine:
        story("record", "--out", name, code=0)
    story("record", code=0)
    assert all((story.root / name).exists() for name in mine)
    stamped = {file["path"]: file["state"] for file in story.json("verify", code=0)["files"]}
    assert stamped == dict.fromkeys([*mine[:-1], "reports/record.md"], "fresh"), "a copy elsewhere carries no stamp"


def test_what_was_overtaken_is_named_with_the_command_that_makes_it_anew(story: Camp) -> None:
    story("record", code=0)
    story("cost", "--report", code=0)
    story("record", "--out", "My Record.md", code=0)
    story.write(STORY.replace("campaign: story", "campaign: story\nlanguage: zh"))
    story("up", "--detach", code=0)
    told = story("verify", code=1).stdout.splitlines()[-1]
    assert told.startswith("3 files, 0 fresh, 3 not; made anew by ")
    commands = "`muster cost --report`, `muster record --out 'My Record.md'`, `muster record`"
    assert set(told.partition("made anew by ")[2].split(", ")) == set(commands.split(", "))


def test_in_chinese(story: Camp) -> None:
    story.write(STORY.replace("campaign: story", "campaign: story\nlanguage: zh"))
    story("up", "--detach", code=0)
    text = story.json("record", code=0)["text"]
    assert text.startswith("# 记录：story\n")
    assert "## 缺失的单元及各自的原因" in text
    assert "+language: zh" in text, "what was changed is in the record"
    assert (story.root / "reports" / "record.md").read_text(encoding="utf-8") == text


def test_while_it_runs(story: Camp) -> None:
    story("up", "--detach", code=0)
    story.started("train/a/1")
    text = story.json("record", code=0)["text"]
    assert "not missing, but not done: RUNNING" in text
    assert "nothing has to be restarted" in text


def test_before_the_start_and_help(camp: Camp) -> None:
    camp.write(STORY)
    assert "has not been started" in camp("record", code=2).stderr
    assert not (camp.root / "reports").exists()
    done = subprocess.run([sys.executable, "-m", "muster", "record", "--help"], capture_output=True, text=True)
    assert "muster record" in done.stdout.partition("Example:")[2]
