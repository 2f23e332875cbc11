"""git that hangs does not outlive the command that asked it, however that one ends."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.camp import Camp

CAMPAIGN = """\
muster: 1
campaign: hangs
axes: {seed: [0]}
slots: {gpus: 0, cpus: 1}
jobs:
  train: {axes: [seed], command: /bin/sh train.sh}
"""


@pytest.fixture
def hanging(camp: Camp, request: pytest.FixtureRequest) -> Camp:
    """git waits for ever: itself for its index, or for a filter of its user's."""
    camp.write(CAMPAIGN)
    (camp.root / "train.sh").write_text("true\n")
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "1"]):
        subprocess.run(["git", *words], cwd=camp.root, check=True)
    if request.param == "git":
        (camp.root / ".git" / "index").unlink()
        os.mkfifo(camp.root / ".git" / "index")
        return camp
    own = camp.root.parent / "gitconfig"
    own.write_text('[filter "slow"]\n\tclean = sleep 1000\n')
    camp.environment["GIT_CONFIG_GLOBAL"] = str(own)
    (camp.root / ".gitattributes").write_text("train.sh filter=slow\n")
    os.utime(camp.root / "train.sh", (1, 1))
    return camp


def below(pid: int) -> list[int]:
    """All that descends from it, and from any thread of it."""
    try:
        texts = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return []
    return [each for text in texts for child in map(int, text.split()) for each in (child, *below(child))]


def hangs(pid: int, name: str) -> list[int]:
    """Its family, once it has stayed the same for a while: a git that answers is gone by then."""
    family = below(pid)
    time.sleep(0.3)
    return family if family == below(pid) and any(command(each) == name for each in family) else []


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


@pytest.mark.parametrize(("hanging", "name"), [("git", "git"), ("filter", "sleep")], indirect=["hanging"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT], ids=lambda each: each.name)
def test_git_ends_with_the_command_that_asked(hanging: Camp, name: str, number: signal.Signals) -> None:
    check = hanging.background("check")
    family = hanging.until(lambda: hangs(check.pid, name), "git hangs")
    try:
        check.send_signal(number)
        check.communicate(timeout=30)
        hanging.until(lambda: not any(map(hanging.alive, family)), "all of it has ended")
    finally:
        for pid in filter(hanging.alive, family):
            os.kill(pid, signal.SIGKILL)
