"""A person started a cell by hand: it lives and writes into the cell's output folder. Muster must not run it too."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.camp import Camp, until

CAMPAIGN = """\
muster: 1
campaign: hand
axes: {seed: [1, 2]}
slots: {gpus: 0, cpus: 2}
jobs:
  train:
    axes: [seed]
    command: python3 train.py {seed}
    output: runs/m_{seed}
    proof: {files: [model.pt]}
"""
TRAIN = """\
import os, sys
folder = f"runs/m_{sys.argv[1]}"
os.makedirs(folder, exist_ok=True)
open("started-by", "a").write(f"{sys.argv[1]} {os.environ.get('MUSTER_CELL', 'hand')}\\n")
log = open(f"{folder}/train.log", "a", buffering=1)
log.write("begun\\n")
if not os.environ.get("MUSTER_CELL"):
    open("gate").read()
open(f"{folder}/model.pt", "w").write("weights")
"""


@pytest.fixture
def by_hand(camp: Camp) -> Iterator[subprocess.Popen[bytes]]:
    """Seed 2, which lives until it is let go."""
    camp.write(CAMPAIGN)
    (camp.root / "train.py").write_text(TRAIN)
    camp.gates("x")
    (camp.root / "gate-x").rename(camp.root / "gate")
    run = subprocess.Popen([sys.executable, "train.py", "2"], cwd=camp.root, env=camp.environment)
    until((camp.root / "runs/m_2/train.log").exists, "the run by hand has begun")
    yield run
    run.kill()
    run.wait()


def let_go(camp: Camp, run: subprocess.Popen[bytes]) -> None:
    (camp.root / "gate").write_text("go")
    assert run.wait(30) == 0


def starts(root: Path) -> list[str]:
    return sorted((root / "started-by").read_text().splitlines())


def test_up_starts_no_cell_whose_folder_is_written_by_hand(camp: Camp, by_hand: subprocess.Popen[bytes]) -> None:
    refused = camp("up", "--detach", code=3)
    assert f"train/2 (pid {by_hand.pid} writes in {camp.root}/runs/m_2)" in refused.stderr
    assert "`muster adopt`" in refused.stderr
    assert not (camp.root / ".muster").exists()
    planned = camp("plan", code=0).stdout
    assert f"pid {by_hand.pid} writes in" in planned
    assert "would run now: 1 of 2 cells" in planned
    assert "`muster up` starts nothing while such a run lives" in planned
    foreseen = camp.json("plan")
    assert [item["cell"] for item in foreseen["would_run"]] == ["train/1"]
    assert [(item["cell"], item["verdict"]) for item in foreseen["not"]] == [("train/2", "PENDING")]

    camp("up", "--only", "seed=1", code=3)
    status = {cell["cell"]: cell for cell in camp.json("status")["cells"]}
    assert status["train/1"]["verdict"] == "DONE"
    left = status["train/2"]
    assert (left["pid"], left["confidence"]) == (by_hand.pid, "presumed")
    assert f"pid {by_hand.pid} writes in" in left["reason"]
    assert f"pid {by_hand.pid}" in camp("why", "train/2", code=0).stdout
    assert f"kill {by_hand.pid}" in camp("stop", "train/2", code=1).stdout

    let_go(camp, by_hand)
    camp("adopt", code=0)
    camp("up", code=0)
    assert starts(camp.root) == ["1 train/1", "2 hand"]


NAMES_ITS_OWN = """\
import os, sys, time
folder = sys.argv[2] + "/m_1-" + time.strftime("%H%M%S")
os.makedirs(folder)
for row in range(100):
    with open(folder + "/metrics.jsonl", "a") as file:
        file.write('{"step": 1}\\n')
open(folder + "/up", "w").close()
sys.stdin.read()
"""


@pytest.mark.parametrize("viewer", [False, True])
def test_up_sees_a_run_that_was_given_the_folder_above(camp: Camp, viewer: bool) -> None:
    """It names its own folder, and opens its files only while it writes. A viewer of the folder above is no run."""
    camp.write(CAMPAIGN.replace("runs/m_{seed}", "'runs/m_{seed}-*'").replace("train.py {seed}", "done.py {seed}"))
    done = "import os, sys\nos.makedirs(f'runs/m_{sys.argv[1]}-x')\nopen(f'runs/m_{sys.argv[1]}-x/model.pt', 'w').write('x')"
    (camp.root / "done.py").write_text(done)
    (camp.root / "train.py").write_text(NAMES_ITS_OWN)
    (camp.root / "show.py").write_text("import sys; print('up', flush=True); sys.stdin.read()")
    (camp.root / "runs").mkdir()
    shows = subprocess.Popen([sys.executable, "show.py", "--logdir", "runs"], cwd=camp.root, stdin=-1, stdout=-1)
    assert shows.stdout
    shows.stdout.readline()
    run = subprocess.Popen([sys.executable, "train.py", "--logdir", "runs"], cwd=camp.root, stdin=subprocess.PIPE)
    until(lambda: list((camp.root / "runs").glob("m_1-*/up")), "the run by hand has begun")
    try:
        if viewer:
            run.kill()
            run.wait()
            camp("up", code=0)
            return
        refused = camp("up", "--detach", code=3)
        assert f"train/1 (pid {run.pid} writes in {camp.root}/runs/m_1-" in refused.stderr
        assert not (camp.root / ".muster").exists()
    finally:
        for each in (run, shows):
            each.communicate(timeout=30)


def test_own_runs_do_not_count_even_in_the_folder_of_another_cell(camp: Camp) -> None:
    camp.write("""\
muster: 1
campaign: shared
axes: {seed: [1, 2]}
slots: {gpus: 0, cpus: 1}
jobs:
  train:
    axes: [seed]
    command: /usr/bin/env -i /bin/sh -c 'exec 5>>runs/2/all.log; echo started; read word < gate-{seed}'
    output: runs/{seed}
""")
    (camp.root / "runs/2").mkdir(parents=True)
    camp.gates(1, 2)
    camp("up", "--detach", code=0)
    camp.started("train/1")
    camp("up", "--detach", code=0)
    camp.open(1)
    camp.open(2)
    camp("wait", code=0)


def test_what_reads_our_own_output_does_not_count(camp: Camp) -> None:
    """`muster up | tee runs/up.log`"""
    camp.write("""\
muster: 1
campaign: piped
axes: {seed: [1]}
slots: {gpus: 0, cpus: 1}
jobs: {train: {axes: [seed], command: "/bin/echo {seed}", output: runs}}
""")
    (camp.root / "runs").mkdir()
    command = f"set -o pipefail; {sys.executable} -m muster up 2>&1 | tee runs/up.log"
    done = subprocess.run(["bash", "-c", command], cwd=camp.root, env=camp.environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
