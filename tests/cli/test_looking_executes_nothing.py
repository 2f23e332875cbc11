"""ONE hostile repository, and every command that looks at it: no program of it is run, no module of it imported.

Each trap touches a file of its own outside. That the traps work is shown at the end, by a plain `git diff` and its like.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.camp import Camp

CAMPAIGN = """\
muster: 1
campaign: hostile
axes: {config: [base, new], seed: [0, 1]}
slots: {gpus: auto, cpus: 1}
env: {PYTHONPATH: ROOT/lib, LD_LIBRARY_PATH: ROOT/lib, GIT_EXTERNAL_DIFF: ROOT/bin/git, GIT_CONFIG_GLOBAL: ROOT/inc}
jobs:
  train:
    axes: [config, seed]
    within: ROOT/bin/uv run
    command: python train.py --config {config} --seed {seed}
    output: out/{config}_{seed}
    results: {score: {json: r.json, key: score}}
  prepare: {axes: [], command: bin/python train.py}
  inner: {axes: [seed], command: "python3 train.py {seed}", cwd: sub}
  bare: {axes: [seed], command: "python3 train.py {seed}", cwd: kit}
  more: {axes: [seed], command: "accelerate launch train.py {seed}"}
decision: {primary: {metric: score, better: higher}, baseline: base}
finish: {report: true, shutdown: ROOT/bin/git}
notify: [{run: ROOT/bin/git}]
"""
PROGRAMS = (
    "git", "git-lfs", "python", "python3", "uv", "conda", "sh", "uname", "nvidia-smi", "fc-list", "latex", "ldconfig", "gcc",
    "systemctl", "crontab", "accelerate", "less", "tput",
)  # fmt: skip
MODULES = (
    "msgspec",
    "queue",
    "types",
    "yaml",
    "sitecustomize",
    "usercustomize",
    "base64",
    "pynvml",
    "matplotlib",
    "numpy",
)
HOOKS = ("post-index-change", "fsmonitor-watchman", "pre-auto-gc", "reference-transaction", "post-checkout")
COMMANDS: dict[tuple[str, ...], str] = {  # and how each ends
    ("check",): "0", ("plan",): "0", ("status",): "3", ("why", "train/base/0"): "0", ("look", "out/base_0"): "3",
    ("metrics", "train/base/0"): "0", ("metrics", "out/base_0"): "0", ("gates", "check"): "2",
    ("gates", "replay", "out/base_0/metrics.jsonl"): "2", ("journal", "audit", "dev_v1.md"): "0", ("report", "--partial"): "3",
    ("ls",): "0", ("cost",): "0", ("verify",): "1", ("trace", "reports/tables/main.PARTIAL-1of4.csv"): "0",
    ("docs", "audit", "dev_v1.md"): "0", ("record",): "0", ("shutdown", "--dry-run"): "3",
}  # fmt: skip
DRIVER = """\
import json, sys
from muster.files.own_processes import drop_working_folder_from_path as forget_working_folder
forget_working_folder()
from muster.faces.cli.common.entrypoint import run_command_line as leave
for words in json.loads(sys.argv[1]):
    code = leave(words)
    sys.stdout.flush(); sys.stderr.flush()
    print(f"\\0{json.dumps(words)} {code}\\0", flush=True)
"""


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    (tmp_path / "marks").mkdir()
    return tmp_path / "marks"


def fired(marks: Path) -> list[str]:
    return sorted(each.name for each in marks.iterdir())


def git(folder: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder), *words],
        check=True, capture_output=True, env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"},
    )  # fmt: skip


def settings(marks: Path, where: str) -> Iterator[tuple[str, str]]:
    """Every key of git's that names a command, or a file to write."""

    def trap(name: str, then: str = "cat") -> str:
        return f": > {marks}/{where}-{name}; {then}"

    yield "core.fsmonitor", trap("fsmonitor", "false")
    yield "core.hooksPath", "hooks"
    yield "diff.external", trap("external", "true")
    yield "diff.submodule", "diff"
    for name in ("evil", "lfs"):
        yield f"diff.{name}.command", trap("command", "true")
        yield f"diff.{name}.textconv", trap("textconv")
        yield f"merge.{name}.driver", trap("merge")
    for name in ("clean", "smudge", "process"):
        yield f"filter.evil.{name}", trap(name, "false" if name == "process" else "cat")
    yield "filter.lfs.clean", "git lfs clean -- %f"
    yield "lfs.extension.evil.clean", trap("lfs-extension")
    for name in ("lfs", "diff", "status", "rev-parse"):
        yield f"alias.{name}", f"!{trap('alias', 'cat #')}"
    for name in ("core.pager", "pager.diff", "core.editor", "core.askPass", "core.sshCommand", "core.gitProxy",
                 "core.alternateRefsCommand", "gpg.program", "interactive.diffFilter", "uploadpack.packObjectsHook",
                 "sequence.editor", "diff.guitool"):  # fmt: skip
        yield name, trap(name.lower())
    yield "credential.helper", f"!{trap('credential')}"
    yield "submodule.sub.update", f"!{trap('update')}"
    yield "trace2.normalTarget", f"{marks}/{where}-trace2"
    yield "trace2.eventTarget", f"{marks}/{where}-trace2"
    yield "include.path", "../inc"


@pytest.fixture
def hostile(camp: Camp, marks: Path) -> Camp:
    root = camp.root
    for name in ("bin", "lib", "hooks", "sub", "out/base_0", "reports"):
        (root / name).mkdir(parents=True)
    for folder, prefix in ((root / "bin", "bin"), (root, "root")):
        for name in PROGRAMS:
            (folder / name).write_text(f"#!/bin/sh\n: > {marks}/{prefix}-{name}\n")
            (folder / name).chmod(0o755)
    for folder, prefix in ((root, "root"), (root / "lib", "lib")):
        for name in MODULES:
            (folder / f"{name}.py").write_text(f"open('{marks}/{prefix}-{name}.py', 'w')\n")
    for name in HOOKS:
        (root / "hooks" / name).write_text(f"#!/bin/sh\n: > {marks}/hook-{name}\n")
        (root / "hooks" / name).chmod(0o755)
    (root / "inc").write_text(f'[filter "included"]\n\tclean = : > {marks}/include-clean; cat\n')
    (root / "matplotlibrc").write_text("backend: module://numpy\ntext.usetex: True\n")
    (root / "train.py").write_text(f"open('{marks}/train.py', 'w')\n")
    camp.write(CAMPAIGN.replace("ROOT", str(root)))
    (root / "out" / "base_0" / "metrics.jsonl").write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.0}\n')
    (root / "out" / "base_0" / "r.json").write_text('{"score": 1.0}')
    (root / "dev_v1.md").write_text("# 1\n\n## Observations\n\nThe loss is 1.0.\n")
    (root / "reports" / "decision.md").write_text("1.0\n")
    make_repository(root, marks)
    camp.environment["PATH"] = f":.:bin:{root}/bin:{camp.environment['PATH']}"
    return camp


def make_repository(root: Path, marks: Path) -> None:
    """With a submodule and a bare repository among its files; all changed since, and of the size they had."""
    attributes = "*.txt diff=evil filter=evil\n*.bin diff=lfs filter=lfs\n*.inc filter=included\n"
    for folder in (root / "sub", root):
        git(folder, "init", "-q")
        (folder / ".gitattributes").write_text(attributes)
        for name in ("a.txt", "b.bin", "c.inc"):
            (folder / name).write_text("1")
        (folder / "train.py").write_text(f"open('{marks}/train.py', 'w')\n")
        if folder == root:
            git(root, "init", "-q", "--bare", "kit")
            (root / "kit" / "train.py").touch()
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", "first")
    (root / "sub" / "d.txt").write_text("1")
    git(root / "sub", "add", "-A")
    git(root / "sub", "commit", "-q", "-m", "second")
    for name, folder in {"sub": root / "sub", "own": root, "kit": root / "kit"}.items():
        if name == "kit":
            git(folder, "config", "core.bare", "false")
            git(folder, "config", "core.worktree", str(root))
        else:
            for changed in ("a.txt", "b.bin", "c.inc"):
                (folder / changed).write_text("2")
                os.utime(folder / changed, (1, 1))
        for key, value in settings(marks, name):
            git(folder, "-c", "core.fsmonitor=false", "config", key, value)


def test_every_command_that_looks(hostile: Camp, marks: Path) -> None:
    make_state(hostile)
    done = subprocess.run(
        [sys.executable, "-P", "-c", DRIVER, json.dumps(list(COMMANDS))], cwd=hostile.root, env=hostile.environment,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    told = dict(line.rsplit(" ", 1) for line in done.stdout.split("\0") if line.startswith("["))
    assert len(told) == len(COMMANDS), done.stderr[-3000:]
    assert "something unexpected" not in done.stderr
    assert {words: told[json.dumps(words)] for words in COMMANDS} == COMMANDS, done.stderr[-3000:]
    assert "git lies" not in done.stdout  # the user's own was found
    assert fired(marks) == []


def make_state(camp: Camp) -> None:
    """It came with the repository: somebody else has adopted a run, and says that all of it should go on."""
    theirs = camp.environment | {"MUSTER_HOME": str(camp.root.parent / "theirs"), "PATH": os.environ["PATH"]}
    words = [sys.executable, "-P", "-m", "muster", "adopt", "out/*"]
    subprocess.run(words, cwd=camp.root, env=theirs, capture_output=True, check=True)
    (camp.root / ".muster" / "intent").write_text("running\n")


def test_the_traps_work(hostile: Camp, marks: Path) -> None:
    """A plain git, a plain `python -m` and a plain question for a program, in the same repository."""
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}

    def call(*words: str, **more: str) -> None:
        subprocess.run(words, cwd=hostile.root, env=environment | more, capture_output=True, check=False, timeout=60)

    real = shutil.which("git") or ""
    git(hostile.root / "sub", "config", "--unset", "filter.evil.process")
    for gone in ("filter.evil.process", "diff.external", "diff.evil.command", ""):
        call(real, "diff", "HEAD")
        if gone:
            git(hostile.root, "config", "--unset", gone)
    call(sys.executable, "-m", "json.tool", "--help", PYTHONPATH=":")
    call("/bin/sh", "-c", "git; uname; python3 train.py", PATH=f":{hostile.root}/bin")
    wanted = {"own-fsmonitor", "own-external", "own-textconv", "own-clean", "own-process", "include-clean", "sub-external",
              "root-sitecustomize.py", "root-git", "root-uname"}  # fmt: skip
    assert wanted - set(fired(marks)) == set()
