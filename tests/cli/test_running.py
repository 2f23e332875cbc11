"""What a run really gets: its words, its folder, its environment, its slots; and what becomes of what it leaves."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

TELL = """\
import json, os, sys
from pathlib import Path
Path(os.environ["TELL"]).mkdir(parents=True, exist_ok=True)
name = os.environ["MUSTER_CELL"].replace("/", "_") + "@" + sys.argv[1]
Path(os.environ["TELL"], name).write_text(json.dumps({"argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd()}))
"""


@pytest.fixture
def told(camp: Any) -> Any:
    """Runs a campaign whose runs write down what they got; returns it by cell and attempt."""
    (camp.root / "tell.py").write_text(TELL)
    camp.environment["TELL"] = str(camp.root / "told")
    camp.environment["ONLY_UP_HAD_THIS"] = "yes"

    def run(text: str, code: int = 0) -> dict[str, Any]:
        camp.write(text.replace("PYTHON", sys.executable))
        camp("up", code=code)
        return {path.name: json.loads(path.read_text()) for path in (camp.root / "told").iterdir()}

    return run


def test_every_placeholder(camp: Any, told: Any) -> None:
    (camp.root / "work").mkdir()
    camp.has_gpus(4)
    found = told("""\
muster: 1
campaign: words
axes:
  config:
    a b;c|d: {args: "--x 'two words' --seed {seed}", env: {FROM_AXIS: "1"}}
  seed: [7]
env: {FROM_CAMPAIGN: "2"}
slots: {gpus: [3], per_gpu: 2, cpus: 1}
jobs:
  train:
    axes: [config, seed]
    steps: 120
    cwd: work
    within: env WITHIN=3
    env: {FROM_JOB: "4"}
    command: PYTHON ../tell.py {attempt} {config} {config.args} {seed} {steps} {gpu} {device} {slot} {cell} {out} {{x}} ${HOME} {port}
  eval:
    axes: [config, seed]
    needs: [train]
    uses: {gpu: 0}
    command: PYTHON tell.py {attempt} {train.output} {slot}
""")
    train = found["train_a b;c|d_7@1"]
    out = str(camp.folder("train/a b;c|d/7") / "out")
    *words, port = train["argv"]
    assert words == ["1", "a b;c|d", "--x", "two words", "--seed", "7", "7", "120", "3", "0", "gpu3.0", "train/a b;c|d/7",
                     out, "{x}", "${HOME}"]  # fmt: skip
    assert 1024 < int(port) < 65536
    env = train["env"]
    assert [env[name] for name in ("FROM_AXIS", "FROM_CAMPAIGN", "WITHIN", "FROM_JOB")] == ["1", "2", "3", "4"]
    assert (env["CUDA_VISIBLE_DEVICES"], env["MUSTER_OUT"], env["ONLY_UP_HAD_THIS"]) == ("3", out, "yes")
    assert len(env["MUSTER_ATTEMPT"]) == 32
    assert train["cwd"] == str(camp.root / "work")
    evaluated = found["eval_a b;c|d_7@1"]
    assert evaluated["argv"] == ["1", out, "cpu0"]
    assert evaluated["env"]["CUDA_VISIBLE_DEVICES"] == ""


def test_the_recorded_environment_is_private(camp: Any, told: Any) -> None:
    told("muster: 1\ncampaign: env\nslots: {gpus: 0}\njobs: {train: {command: 'PYTHON tell.py {attempt}'}}\n")
    (recorded,) = (camp.root / ".muster" / "env").iterdir()
    assert recorded.stat().st_mode & 0o777 == 0o600
    assert recorded.parent.stat().st_mode & 0o077 == 0


def test_a_shell_only_where_it_is_asked_for(camp: Any) -> None:
    camp.write("""\
muster: 1
campaign: shell
axes: {seed: [0]}
slots: {gpus: 0, cpus: 2}
jobs:
  plain: {axes: [seed], command: echo a && echo b}
  shell: {axes: [seed], shell: true, command: echo a && echo b}
""")
    camp("up", code=0)
    assert (camp.folder("plain/0") / "stdout.log").read_text() == "a && echo b\n"
    assert (camp.folder("shell/0") / "stdout.log").read_text() == "a\nb\n"


def test_a_folder_that_the_trainer_names_itself_is_found(camp: Any) -> None:
    camp.write("""\
muster: 1
campaign: named
axes: {seed: [1, 11]}
slots: {gpus: 0, cpus: 2}
jobs:
  train:
    axes: [seed]
    output: runs/*_{seed}
    shell: true
    command: mkdir -p runs/new_{seed} && echo '{{"step":10}}' > runs/new_{seed}/metrics.jsonl
    progress: [{jsonl: metrics.jsonl}]
    proof: {step: {min: 10}}
  eval:
    axes: [seed]
    needs: [train]
    command: echo {train.output}
""")
    old = camp.root / "runs" / "old_1"
    old.mkdir(parents=True)
    (old / "metrics.jsonl").write_text('{"step": 99}\n')
    past = time.time() - 3600
    for path in (old / "metrics.jsonl", old):
        os.utime(path, (past, past))
    camp("up", code=0)
    assert (camp.folder("eval/1") / "stdout.log").read_text() == f"{camp.root}/runs/new_1\n"
    assert (camp.folder("eval/11") / "stdout.log").read_text() == f"{camp.root}/runs/new_11\n"


def test_mkdir_false_leaves_the_folder_to_the_trainer(camp: Any) -> None:
    camp.write("""\
muster: 1
campaign: mine
axes: {seed: [0, 1]}
slots: {gpus: 0, cpus: 2}
jobs:
  own: {axes: [seed], mkdir: false, command: 'mkdir {out}'}
  given: {axes: [seed], command: 'test -d {out}'}
""")
    camp("up", code=0)


def test_a_later_attempt_resumes_from_the_newest_checkpoint_that_opens(camp: Any) -> None:
    (camp.root / "train.py").write_text("""\
import sys, zipfile
from pathlib import Path
out, start = Path(sys.argv[1]), sys.argv[2]
if start == "fresh":
    with zipfile.ZipFile(out / "step-1.zip", "w") as file:
        file.writestr("weights", "1")
    (out / "step-2.zip").write_bytes(b"PK\\x03\\x04 torn")
    sys.exit(3)
print("resumed from", start)
""")
    camp.write(f"""\
muster: 1
campaign: resume
slots: {{gpus: 0}}
jobs:
  train:
    command: {sys.executable} train.py {{out}} fresh
    resume: {sys.executable} train.py {{out}} {{last.checkpoint}}
    progress: [{{checkpoint: "step-*.zip"}}]
""")
    camp("up", code=3)
    assert camp.json("why", "train")["cause"] == "exit_code(3)"
    camp("retry", "train", "--because", "goes on from its checkpoint", code=0)
    camp("wait", "--timeout", "60s", code=0)
    first = camp.folder("train") / "out" / "step-1.zip"
    assert (camp.folder("train", 2) / "stdout.log").read_text() == f"resumed from {first}\n"
    assert json.loads((camp.folder("train", 2) / "attempt.json").read_text())["retry_cause"].startswith("exit_code(3)")


def test_a_timeout_ends_the_whole_tree(camp: Any) -> None:
    camp.write("""\
muster: 1
campaign: late
slots: {gpus: 0}
jobs:
  train: {shell: true, timeout: 1s, command: 'echo started; sleep 600 & echo $! > {out}/child; wait'}
""")
    camp("up", code=3)
    assert camp.json("why", "train")["cause"] == "timeout"
    assert not camp.alive(int((camp.folder("train") / "out" / "child").read_text()))


def test_a_filter_is_written_down_and_so_is_what_it_leaves_out(camp: Any) -> None:
    camp.write("""\
muster: 1
campaign: part
axes: {config: [a, b], seed: [0, 1]}
slots: {gpus: 0, cpus: 2}
jobs: {train: {axes: [config, seed], command: "true"}}
""")
    camp("up", "--only", "seed=1", "--only", "config=a,b", code=3)
    assert camp.cells() == {"train/a/0": "PENDING", "train/a/1": "DONE", "train/b/0": "PENDING", "train/b/1": "DONE"}
    (decision,) = camp.decisions("filter")
    assert decision["data"]["left_out"] == ["train/a/0", "train/b/0"]
    assert "--only seed=1" in camp("why", "train/a/0").stdout
    camp("up", code=0)
    assert set(camp.cells().values()) == {"DONE"}


def test_ctrl_c_only_detaches(gated: Any) -> None:
    pid, screen = gated.on_a_terminal("up")
    try:
        running = gated.started("train/0")
        os.write(screen, b"\x03")
        shown = b""
        while True:
            try:
                shown += os.read(screen, 4096)
            except OSError:
                break
        _, status = os.waitpid(pid, 0)
    finally:
        os.close(screen)
    assert os.waitstatus_to_exitcode(status) == 4
    assert b"detached" in shown
    assert gated.alive(running)
    assert gated.controller()
    gated.open(0)
    gated.open(1)
    gated("wait", "--timeout", "60s", code=0)


def test_killed_run_is_dead_at_once_with_its_signal(gated: Any) -> None:
    gated("up", "--detach", code=0)
    os.kill(gated.started("train/0"), signal.SIGKILL)
    gated.ended("train/0")
    cell = gated.until(lambda: next((c for c in gated.json("status")["cells"] if c["verdict"] == "DEAD"), None))
    assert (cell["cell"], cell["cause"], cell["confidence"]) == ("train/0", "signal(9)", "proven")
    gated.open(1)


def test_status_tables_for_people_who_grep(gated: Any) -> None:
    gated("up", "--detach", code=0)
    gated.open(0)
    gated.open(1, "3")
    gated("wait", "--timeout", "60s", code=3)
    table = Path(gated.root / "reports" / "status" / "train_status_latest.tsv")
    rows = [line.split("\t") for line in table.read_text().splitlines()]
    assert [dict(zip(rows[0], row, strict=True))["verdict"] for row in rows[1:]] == ["DONE", "DEAD"]


def test_a_job_that_leaves_the_file_while_it_runs_is_seen_to_its_end(gated: Any) -> None:
    gated("up", "--detach", code=0)
    gated.started("train/0")
    gated.write("""\
muster: 1
campaign: gated
axes: {seed: [0, 1]}
slots: {gpus: 0, cpus: 3}
jobs: {other: {axes: [seed], command: "true"}}
""")
    shown = gated("up", "--detach", code=0).stdout
    assert "cells that are no longer declared (their attempts are kept): train/0, train/1" in shown
    gated.until(lambda: gated.cells() == {"other/0": "DONE", "other/1": "DONE"})
    found = gated.json("status", code=4)
    assert [(cell["cell"], cell["verdict"]) for cell in found["withdrawn"]] == [
        ("train/0", "RUNNING"),
        ("train/1", "RUNNING"),
    ]
    assert "no longer declared" in gated("status", code=4).stdout
    gated.open(0)
    gated.open(1)
    gated("wait", "--timeout", "60s", code=0)
    assert gated.json("status", code=0)["withdrawn"] == []


def test_a_cell_that_fits_no_slot_stops_short_instead_of_waiting_for_ever(camp: Any) -> None:
    camp.write("""\
muster: 1
campaign: unfit
axes: {seed: [0]}
slots: {gpus: auto, cpus: 1}
jobs: {train: {axes: [seed], uses: {gpu: 1}, command: "true"}}
""")
    if list(Path("/dev").glob("nvidia[0-9]")):
        pytest.skip("this machine has a GPU: the cell fits")
    shown = camp("up", code=1)  # before it costs anything
    assert "it would never start; nothing was started" in shown.stderr
    assert not (camp.root / ".muster").exists()
    camp.has_gpus(1, controller=0)  # it is gone when the controller looks
    camp("up", code=3)
    camp("wait", "--timeout", "20s", code=3)
    assert len(camp.decisions("epoch")) < 6, "nobody revives a controller that has nothing to do"


def test_a_copy_of_a_campaign_does_not_act_for_the_original(gated: Any, tmp_path: Path) -> None:
    gated("up", "--detach", code=0)
    gated.started("train/0")
    copy = tmp_path / "copy"
    shutil.copytree(gated.root, copy, ignore=shutil.ignore_patterns("gate-*", "bell"))
    assert f"a copy of the campaign in {gated.root}" in gated("-C", str(copy), "status", code=4).stdout
    for command in (["up", "--detach"], ["down", "--runs"], ["fsck"]):
        refused = gated("-C", str(copy), *command, code=1)
        assert f"its state belongs to the campaign in {gated.root}" in refused.stderr
    moved = tmp_path / "moved"
    gated.root.rename(moved)
    gated.root.mkdir()  # commands are run from there
    assert "2 RUNNING" in gated("-C", str(moved), "status").stdout.replace("RUNNING 2", "2 RUNNING")
    gated.root.rmdir()
    moved.rename(gated.root)


def test_a_campaign_without_its_file_can_still_be_asked_and_stopped(gated: Any) -> None:
    gated("up", "--detach", code=0)
    gated.started("train/0")
    (gated.root / "campaign.yaml").unlink()
    assert gated.cells()["train/0"] == "RUNNING"
    gated("down", "--runs", "--because", "enough", code=0)


def test_the_state_never_lands_in_a_repository(gated: Any) -> None:
    gated("up", "--detach", code=0)
    assert (gated.root / ".muster" / ".gitignore").read_text() == "*\n"


def test_a_finished_run_whose_shim_was_killed_is_accepted_not_run_again(camp: Any) -> None:
    camp.write("""\
muster: 1
campaign: lost
slots: {gpus: 0}
jobs:
  train:
    shell: true
    command: echo started; read word < gate-0; echo done > {out}/result
    proof: {files: [result]}
""")
    camp.gates(0)
    camp("up", "--detach", code=0)
    camp.started("train")
    identity = json.loads((camp.folder("train") / "identity.json").read_text())
    os.kill(identity["shim_pid"], signal.SIGKILL)
    camp.open(0)
    camp("wait", "--timeout", "60s", code=3)
    cell = camp.json("why", "train")
    assert (cell["cause"], cell["attempt_count"]) == ("unknown", 1)
    assert "artifacts complete" in cell["reason"]
    camp("accept", "train", code=0)
    assert camp.cells() == {"train": "DONE"}
