"""Controller, guard, finish steps and the look before a power-off import nothing that lies beside campaign.yaml."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from muster.files.own_processes import OWN_SOURCE_FOLDER, drop_working_folder_from_path, safe_python_path
from muster.hosts.local.guard import CONTROLLER
from support.camp import Camp

TEXT = """\
muster: 1
campaign: beside
axes: {seed: [0, 1]}
slots: {gpus: 0, cpus: 2}
env: {PYTHONPATH: ROOT/lib}
jobs:
  eval:
    axes: [seed]
    command: sh eval.sh {seed} {out}
    results: {score: {json: result.json, key: score}}
finish: {report: true, shutdown: "echo off >> off", countdown: 0s, others: ignore}
"""
EVAL = """\
[ "$1" != 1 ] || { echo started; read word < gate-0; }
echo "{\\"score\\": 1.$1}" > $2/result.json
echo "$PYTHONPATH" > $2/path
"""
NO_GPU = """
class NVMLError(Exception): pass
def nvmlInit(): pass
def nvmlShutdown(): pass
def nvmlDeviceGetCount(): return 0
"""
MODULES = ("msgspec", "queue", "types", "yaml", "sitecustomize", "usercustomize", "typing", "socket", "ruamel", "typer",
           "numpy", "matplotlib", "pynvml", "muster")  # fmt: skip


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    (tmp_path / "marks").mkdir()
    return tmp_path / "marks"


@pytest.fixture
def beside(camp: Camp, tmp_path: Path, marks: Path) -> Camp:
    """A folder full of modules that say when they are imported, and then fail."""
    (camp.root / "lib").mkdir()
    for folder in (camp.root, camp.root / "lib"):
        for name in MODULES:
            trap = f"open({str(marks)!r} + '/{folder.name}-{name}', 'w')\nraise ImportError('trapped')\n"
            (folder / f"{name}.py").write_text(trap)
    camp.write(TEXT.replace("ROOT", str(camp.root)))
    (camp.root / "eval.sh").write_text(EVAL)
    camp.gates(0)
    fake = tmp_path / "fake"
    fake.mkdir()
    (fake / "pynvml.py").write_text(NO_GPU)
    camp.environment |= {"PYTHONPATH": f":.:{fake}", "MUSTER_PACE": "0.005"}
    return camp


def told(camp: Camp, *words: str) -> subprocess.CompletedProcess[str]:
    """By somebody in a folder above: what Python itself loads for an empty entry before it is us is up to them."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "muster", "-C", str(camp.root), *words], cwd=camp.root.parent,
        env=camp.environment, capture_output=True, text=True, timeout=400,
    )  # fmt: skip


def fired(marks: Path) -> list[str]:
    return sorted(each.name for each in marks.iterdir())


def test_a_campaign_among_modules_of_its_own_completes(beside: Camp, marks: Path) -> None:
    assert told(beside, "up", "--detach").returncode == 0
    beside.until((beside.folder("eval/1") / "stdout.log").exists, "the start of the last cell")
    first = beside.until(beside.controller)
    os.kill(first, signal.SIGKILL)
    beside.until(lambda: beside.controller() not in (None, first), "the guard's controller")
    beside.open(0)
    done = told(beside, "wait", "--timeout", "5m")
    assert (done.returncode, fired(marks)) == (0, []), done.stderr
    steps = beside.decisions("finish")
    assert {each["data"]["step"] for each in steps if each["data"].get("ok")} == {"report", "cost", "record"}
    assert (beside.root / "off").read_text() == "off\n"
    assert told(beside, "shutdown", "--dry-run").returncode == 0
    assert fired(marks) == []
    as_given = (beside.folder("eval/1") / "out" / "path").read_text().strip()
    assert as_given == f"{beside.root}/lib"  # a run has what the campaign says


def test_the_traps_work(beside: Camp, marks: Path) -> None:
    words = [
        sys.executable,
        "-m",
        "muster.bootstrap.begin_process",
        "muster.bootstrap.controller_process",
        str(beside.root),
    ]
    subprocess.run(words, cwd=beside.root, env=beside.environment, capture_output=True, check=False)
    assert {"campaign-sitecustomize", "campaign-types"} & set(fired(marks))


def test_python_path_of_our_own_processes(tmp_path: Path) -> None:
    """What a user names by an absolute path stays: a loop's packages may be found only there."""
    (tmp_path / "link").symlink_to(tmp_path)
    given = f":.:lib:{tmp_path}:{tmp_path}/link:{tmp_path}/lib:/opt/mine::"
    assert safe_python_path(given, tmp_path) == f"{tmp_path}/lib:/opt/mine"
    assert (
        safe_python_path(OWN_SOURCE_FOLDER, OWN_SOURCE_FOLDER) == OWN_SOURCE_FOLDER
    )  # Muster itself lies in the campaign's folder
    assert CONTROLLER[0] == "-P"


def test_we_forget_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", ":lib:/opt/mine")
    before = ["", str(tmp_path), f"{tmp_path}/lib", "/opt/mine", OWN_SOURCE_FOLDER]
    monkeypatch.setattr(sys, "path", [*before])
    drop_working_folder_from_path()
    assert sys.path == ["/opt/mine", OWN_SOURCE_FOLDER]
    monkeypatch.chdir(OWN_SOURCE_FOLDER)
    monkeypatch.setattr(sys, "path", [OWN_SOURCE_FOLDER])
    drop_working_folder_from_path()
    assert sys.path == [OWN_SOURCE_FOLDER]


@pytest.mark.parametrize("words", [["metrics", "."], ["metrics", "out.xyz"], ["look", ".", "--for", "1s"]], ids=str)
def test_a_package_beside_a_run_registers_no_reader(tmp_path: Path, marks: Path, words: list[str]) -> None:
    """Readers come from installed packages only: who looks at a folder executes nothing of it."""
    run = tmp_path / "run"
    about = run / "evil-0.1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 0.1\n")
    (about / "entry_points.txt").write_text("[muster.readers]\nmine = evil:KIND\n")
    (run / "evil.py").write_text(f"open({str(marks)!r} + '/evil', 'w')\n")
    (run / "out.xyz").write_text("nothing that any reader knows\n")
    environment = {**os.environ, "MUSTER_HOME": str(tmp_path / "home")}
    done = subprocess.run([sys.executable, "-m", "muster", *words], cwd=run, env=environment, capture_output=True)
    assert b"Traceback" not in done.stderr
    assert not list(marks.iterdir())
