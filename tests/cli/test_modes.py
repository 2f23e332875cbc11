"""Every file and folder that a campaign creates, with its mode, against the table in docs/modes.md; under four umasks."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from support.camp import Camp

TABLE = Path(__file__).parents[2] / "docs" / "modes.md"
ROW = re.compile(r"\| `([^`]+)` \| ([^|]+?) \|")
TRAIN = """\
import json, os, sys
config, out = json.load(open(sys.argv[1])), sys.argv[2]
mask = os.umask(0)
os.umask(mask)
assert "MUSTER_UMASK" not in os.environ
with open(f"{out}/metrics.jsonl", "w") as log:
    for step in range(6):
        row = {"iter": step + 1, "stage": "main", "step": step, "ot": {"pi_sum": config["reg"] / 10}, "score": config["reg"]}
        log.write(json.dumps(row) + "\\n")
json.dump({"score": config["reg"], "umask": mask}, open(f"{out}/result.json", "w"))
"""
WHOLE = """\
muster: 1
campaign: modes
slots: {gpus: 0, cpus: 2}
jobs:
  train:
    axes: []
    command: "python3 train.py {config_file} {out}"
    progress: [{jsonl: metrics.jsonl, step: step}]
    results: {score: {json: result.json, key: score}}
    retry: {max: 0}
loop:
  job: train
  base: ["configs/*.json"]
  rounds: 2
  keep: {top: 1, by: last("score"), better: higher}
  rules: [{when: last("ot.pi_sum") < 0.05, edit: ["reg@mul=1.5"], reason: mass too small, name: little}]
  default: {edit: ["lam@mul=0.9"], reason: mild}
gates:
  rise: {job: train, read: {jsonl: metrics.jsonl, step: iter}, success: [{key: score, min: 0.1}], act: notify}
notify: [{run: "touch told", on: [complete]}]
finish: {report: true, run: ["touch finished"]}
"""
SMALL = """\
muster: 1
campaign: modes
axes: {config: [a, b]}
slots: {gpus: 0, cpus: 2}
jobs:
  train: {axes: [config], command: "python3 train.py configs/{config}.json {out}", results: {score: {json: result.json, key: score}}}
"""
ORIGINALS = 0o644  # of campaign.yaml and configs here
RUNS = re.compile(r"\.muster/attempts/train/[^/]+/1/out/.+")  # what lies in {out}
ASKED = ("told", "finished")  # what commands of the campaign file made


def lay_out(camp: Camp, text: str) -> set[Path]:
    """What is there before Muster comes; none of it may be written to by everybody."""
    (camp.root / "configs").mkdir()
    for name, reg in (("a", 0.2), ("b", 0.9)):
        (camp.root / "configs" / f"{name}.json").write_text(json.dumps({"reg": reg, "lam": 1.0}))
    (camp.root / "train.py").write_text(TRAIN)
    camp.write(text)
    for path in camp.root.rglob("*"):
        path.chmod(0o755 if path.is_dir() else ORIGINALS)
    camp.environment |= {"MUSTER_PACE": "0.02", "MUSTER_POLL_S": "0.2"}
    return set(camp.root.rglob("*"))


def table() -> list[tuple[str, re.Pattern[str], str]]:
    rows = [(path, mode) for path, mode in ROW.findall(TABLE.read_text()) if path != "path"]
    parts = {path: re.escape(path).replace("/<value>", "(?:/[^/]+)?") for path, _ in rows}
    return [(path, re.compile(re.sub(r"<\w+>", "[^/]+", parts[path])), mode) for path, mode in rows]


def wanted(mode: str, umask: int, folder: bool, given: bool) -> int:
    usual, _, shared = mode.partition(", given: ")
    told = shared if given and shared else usual
    if told.startswith("umask"):
        return (0o777 if folder else 0o666) & ~umask & (ORIGINALS if "original" in told else 0o777)
    if told.endswith("less the umask"):
        return int(told.split()[0], 8) & ~umask
    return int(told, 8)


def wrong_modes(found: dict[str, os.stat_result], umask: int, *, given: bool) -> list[str]:
    rows, wrong = table(), []
    for name, facts in sorted(found.items()):
        folder, mode = stat.S_ISDIR(facts.st_mode), stat.S_IMODE(facts.st_mode)
        told = next((row for row in rows if row[1].fullmatch(f"{name}/" if folder else name)), None)
        if told is None:
            wrong.append(f"{name} {mode:04o} is not in docs/modes.md")
        elif mode != (right := wanted(told[2], umask, folder, given)):
            wrong.append(f"{name} is {mode:04o} and not {right:04o}")
    return wrong


def made(camp: Camp, home: Path, before: set[Path]) -> dict[str, os.stat_result]:
    found = {str(path.relative_to(camp.root)): path.lstat() for path in camp.root.rglob("*") if path not in before}
    found |= {"$MUSTER_HOME" if path == home else f"$MUSTER_HOME/{path.relative_to(home)}": path.lstat()
              for path in (home, *home.rglob("*"))}  # fmt: skip
    return {name: facts for name, facts in found.items() if not RUNS.fullmatch(name) and name not in ASKED}


def muster(camp: Camp, umask: int, *args: str) -> subprocess.CompletedProcess[str]:
    """As `camp(...)`, under that umask."""
    command = [sys.executable, "-m", "muster", *args]
    done = subprocess.run(
        command, cwd=camp.root, env=camp.environment, capture_output=True, text=True, timeout=120, umask=umask
    )
    assert done.returncode == 0, (args, done.returncode, done.stdout, done.stderr)
    return done


def test_a_whole_campaign_makes_what_the_table_says(camp: Camp) -> None:
    home = Path(camp.environment["MUSTER_HOME"])
    before = lay_out(camp, WHOLE)
    for words in (["check"], ["up"], ["pack", "all.tar.gz"]):
        muster(camp, 0o000, *words)
    assert wrong_modes(made(camp, home, before), 0o000, given=True) == []
    for path in (*camp.root.glob(".muster/attempts/train/*/1/out/*"), *(camp.root / name for name in ASKED)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o666, path


def test_the_table_knows_what_is_new_and_what_is_too_open(tmp_path: Path) -> None:
    (tmp_path / "new").touch(0o600)
    facts = (tmp_path / "new").lstat()
    assert wrong_modes({".muster/new": facts}, 0o022, given=True) == [".muster/new 0600 is not in docs/modes.md"]
    (tmp_path / "new").chmod(0o644)
    facts = (tmp_path / "new").lstat()
    assert wrong_modes({".muster/place": facts}, 0o022, given=True) == [".muster/place is 0644 and not 0600"]


@pytest.mark.parametrize("umask", [0o002, 0o022, 0o077], ids="{:03o}".format)
def test_a_small_one_under_other_umasks(camp: Camp, tmp_path: Path, umask: int) -> None:
    del camp.environment["MUSTER_HOME"]
    camp.environment["HOME"] = str(tmp_path / "user")
    (tmp_path / "user").mkdir()
    before = lay_out(camp, SMALL)
    muster(camp, umask, "up")
    muster(camp, umask, "report")
    home = tmp_path / "user" / ".local" / "state" / "muster"
    assert wrong_modes(made(camp, home, before), umask, given=False) == []
    results = list(camp.root.glob(".muster/attempts/train/*/1/out/result.json"))
    assert [json.loads(path.read_text())["umask"] for path in results] == [umask, umask]
    assert {stat.S_IMODE(path.stat().st_mode) for path in results} == {0o666 & ~umask}


def test_who_revives_changes_no_umask(camp: Camp) -> None:
    """`up` under 002, the controller started again by a command under 077: run and table are as `up` would have them."""
    camp.gates("x")
    camp.write(
        "muster: 1\ncampaign: revived\naxes: {seed: [0]}\nslots: {gpus: 0, cpus: 1}\njobs:\n"
        "  train: {axes: [seed], command: \"sh -c 'read word < gate-x'\"}\n"
        "  eval: {axes: [seed], needs: [train], command: \"sh -c 'umask > {out}/umask'\"}\n"
    )
    camp.environment["MUSTER_GUARD"] = "off"
    muster(camp, 0o002, "up", "--detach")
    camp.until((camp.folder("train/0") / "execing").exists, "the run")
    pid = camp.json("status")["controller"]["pid"]
    os.kill(pid, 9)
    camp.until(lambda: not camp.alive(pid), "the end of the controller")
    table = camp.root / "reports" / "status" / "eval_status_latest.tsv"
    camp.until(table.exists, "the first table")
    table.unlink()
    subprocess.run([sys.executable, "-m", "muster", "status"], cwd=camp.root, env=camp.environment, umask=0o077,
                   stdout=subprocess.DEVNULL, check=False)  # fmt: skip
    camp.open("x")
    muster(camp, 0o077, "wait")
    written = camp.folder("eval/0") / "out" / "umask"
    assert written.read_text().strip() == "0002"
    assert stat.S_IMODE(written.stat().st_mode) == 0o664
    assert stat.S_IMODE(written.parent.stat().st_mode) == 0o775
    assert stat.S_IMODE(table.stat().st_mode) == 0o664


def test_one_that_an_older_version_made_is_closed_when_it_is_opened(camp: Camp) -> None:
    camp.write(SMALL.replace("python3 train.py configs/{config}.json {out}", "true").replace(
        ", results: {score: {json: result.json, key: score}}", ""))  # fmt: skip
    camp("up", code=0)
    state = camp.root / ".muster"
    state.chmod(0o775)
    camp("status", code=0)
    assert stat.S_IMODE(state.stat().st_mode) == 0o700


def test_a_copy_is_no_more_open_than_its_original(camp: Camp) -> None:
    (camp.root / "configs").mkdir()
    for name, reg, mode in (("a", 0.2, 0o600), ("b", 0.9, 0o640)):
        path = camp.root / "configs" / f"{name}.json"
        path.write_text(json.dumps({"reg": reg, "lam": 1.0}))
        path.chmod(mode)
    (camp.root / "train.py").write_text(TRAIN)
    camp.write(WHOLE.replace("rounds: 2", "rounds: 1").partition("gates:")[0])
    muster(camp, 0o022, "up")
    copies = sorted((camp.root / "loop" / "round-1").iterdir())
    assert [stat.S_IMODE(path.stat().st_mode) for path in copies] == [0o600, 0o640]
    (camp.root / "campaign.yaml").chmod(0o600)
    muster(camp, 0o022, "pack", "it.tar.gz")
    assert stat.S_IMODE((camp.root / "it.tar.gz").stat().st_mode) == 0o600
    muster(camp, 0o022, "edit", "configs/a.json", "--change", "reg@mul=2", "--reason", "more")
    assert {stat.S_IMODE(path.stat().st_mode) for path in (camp.root / "configs").glob("a*")} == {0o600}
    assert stat.S_IMODE((camp.root / "configs" / "variants.jsonl").stat().st_mode) == 0o600
