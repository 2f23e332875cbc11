"""What ran is known: source that git does not know, a git that is slow, a repository without a commit, an edit on the way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from support.camp import Camp

CAMPAIGN = f"""\
muster: 1
campaign: code
axes: {{config: [a, b], seed: [0, 1]}}
slots: {{gpus: 0, cpus: 1}}
jobs:
  train:
    axes: [config, seed]
    output: outputs/{{config}}_{{seed}}
    mkdir: true
    command: {sys.executable} t.py {{config}} {{seed}}
    results: {{score: {{json: r.json, key: score}}}}
decision:
  primary: {{metric: score, better: higher}}
  baseline: a
"""
TRAIN = """\
import json, os, sys
name, seed = sys.argv[1:]
if os.path.exists(gate := f"gate-{name}-{seed}"):
    open(gate).read()
os.makedirs(f"outputs/{name}_{seed}", exist_ok=True)
json.dump({"score": int(seed) + len(name) + ord(name) / 7}, open(f"outputs/{name}_{seed}/r.json", "w"))
"""


def git(root: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=me", "-c", "user.email=me@example.org", "-C", str(root), *words],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout.strip()


@pytest.fixture
def sources(camp: Camp) -> Camp:
    """Only a README is committed; the campaign and its script are not."""
    camp.write(CAMPAIGN)
    (camp.root / "README.md").write_text("hello\n")
    git(camp.root, "init", "-q")
    git(camp.root, "add", "README.md")
    git(camp.root, "commit", "-qm", "first")
    (camp.root / "t.py").write_text(TRAIN)
    return camp


def codes(camp: Camp) -> dict[str, Any]:
    orders = (camp.root / ".muster" / "attempts").rglob("attempt.json")
    return {order["cell"]: order["code"] for order in (json.loads(path.read_text()) for path in orders)}


def test_a_script_that_was_never_committed_is_named_everywhere(sources: Camp) -> None:
    commit = git(sources.root, "rev-parse", "HEAD")
    checked = sources("check", code=0).stdout
    assert f"commit {commit[:12]}, with changes that are not committed in 1 file: t.py untracked" in checked
    sources("up", code=0)
    found = codes(sources)
    assert len(found) == 4
    (name,) = {code["dirty"] for code in found.values()}
    code = found["train/a/0"]
    assert (code["state"], code["commit"], code["untracked"]) == ("known", commit, ["t.py"])
    kept = sources.root / ".muster" / "diffs" / "files" / code["files"]["t.py"]
    assert kept.read_text() == TRAIN
    sources("report")
    said = f"commit {commit[:7]} plus uncommitted changes in 1 file (t.py untracked)"
    for report in ("decision", "defence"):
        assert said in (sources.root / "reports" / f"{report}.md").read_text()
    assert f"{said} (diff {name})" in sources("trace", "reports/decision.md", "--all", code=0).stdout
    record = sources("record").stdout or ""
    record += "".join(path.read_text() for path in sources.root.glob("reports/record*.md"))
    assert "`t.py`" in record


def test_outputs_in_the_repository_are_no_code(sources: Camp) -> None:
    old = sources.root / "outputs" / "a_0"
    old.mkdir(parents=True)
    for at in range(300):
        (old / f"metrics{at}.json").write_text("{}")
    sources("up", code=0)
    assert {tuple(code["files"]) for code in codes(sources).values()} == {("t.py",)}
    sources("up", code=0)
    assert "the code changed" not in sources("plan").stdout


def test_a_slow_git_is_waited_for_before_the_first_start(sources: Camp) -> None:
    real, folder = shutil.which("git"), sources.root.parent / "bin"
    folder.mkdir()
    (folder / "git").write_text(f'#!/bin/sh\nsleep 3\nexec {real} "$@"\n')
    (folder / "git").chmod(0o755)
    sources.environment["PATH"] = f"{folder}:{os.environ['PATH']}"
    told = sources("up", code=0)
    assert f"git is slow: waiting for it to say which code is in {sources.root}" in told.stderr
    assert {(code["state"], *code["untracked"]) for code in codes(sources).values()} == {("known", "t.py")}


def test_a_git_that_never_answers_is_told_and_is_not_no_repository(sources: Camp) -> None:
    folder = sources.root.parent / "bin"
    folder.mkdir()
    (folder / "git").write_text("#!/bin/sh\nexec sleep 100\n")
    (folder / "git").chmod(0o755)
    sources.environment |= {"PATH": f"{folder}:{os.environ['PATH']}", "MUSTER_GIT_S": "0.5"}
    assert "not known: git did not answer in 0.5 s" in sources("check", code=0).stdout
    sources("up", code=0)
    assert {code["state"] for code in codes(sources).values()} == {"unknown"}
    sources("report")
    for report in ("decision", "defence"):
        assert "not known: git did not answer in 0.5 s" in (sources.root / "reports" / f"{report}.md").read_text()


def test_no_commit_yet_and_no_repository(camp: Camp) -> None:
    camp.write(CAMPAIGN)
    (camp.root / "t.py").write_text(TRAIN)
    assert "not a git repository: 1 file of source known by its hash" in camp("check", code=0).stdout
    git(camp.root, "init", "-q")
    assert "a repository without a commit yet; 1 file of source known by its hash" in camp("check", code=0).stdout
    camp("up", code=0)
    assert {(code["state"], *code["files"]) for code in codes(camp).values()} == {("no_commit", "t.py")}
    camp("report")
    assert (
        "in a repository without a commit yet; 1 file of source known by hash"
        in (camp.root / "reports" / "decision.md").read_text()
    )


def test_an_edit_between_two_starts_makes_another_identity(sources: Camp) -> None:
    gate = sources.root / "gate-a-0"
    os.mkfifo(gate)
    sources("up", "--detach", code=0)
    sources.until((sources.folder("train/a/0") / "execing").exists, "the first start")
    (sources.root / "t.py").write_text(TRAIN + "# edited\n")
    (sources.root / "late.py").write_text("# this one was not there when `up` was called\n")
    began = time.monotonic()
    git(sources.root, "status", "--porcelain")
    looks_again = began + 150 * (time.monotonic() - began)  # after 20 times what its last look took: some calls of git
    sources.until(lambda: time.monotonic() > looks_again, "the controller looks at the code again")
    gate.write_text("go")
    sources("wait", code=0)
    found = codes(sources)
    first, second = found["train/a/0"], found["train/a/1"]
    assert first["dirty"] != second["dirty"]
    assert first["files"]["t.py"] != second["files"]["t.py"]
    assert list(second["files"]) == ["t.py"]
    kept = sources.root / ".muster" / "diffs" / "files" / second["files"]["t.py"]
    assert kept.read_text().endswith("# edited\n")
