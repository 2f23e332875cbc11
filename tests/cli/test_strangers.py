"""Campaigns of another user: nobody falls into one, and who names one reads it and changes nothing.

Another user is another uid, whose files these are; it needs no name. Only root may give files away.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muster.faces.cli.common.command_line import COMMANDS
from muster.faces.cli.common.entrypoint import run_command_line
from muster.files.campaign_ownership import find_campaign_root, find_foreign_owner, find_readable_root
from support.camp import Camp, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of a second user")
MALLORY = 64321
CAMPAIGN = """\
muster: 1
campaign: mallorys
axes: {seed: [0, 1]}
slots: {gpus: 0, cpus: 1}
jobs:
  train:
    axes: [seed]
    command: sh job.sh {seed} {out}
    results: {loss: {json: r.json, key: loss}}
"""
JOB = """\
echo "seed $1"
echo '{"loss": 1.5}' > "$2/r.json"
echo '{"step": 1, "loss": 1.5}' > "$2/train.jsonl"
exit $1
"""
READS = {
    ("status",): 3, ("status", "--json"): 3, ("why", "train/1"): 0, ("logs", "train/0"): 0, ("metrics", "train/0"): 0,
    ("wait",): 3, ("plan",): 0, ("cost",): 0, ("record", "--out", "-"): 0, ("manifest",): 0, ("verify",): 0,
    ("ls",): 0, ("clean",): 0, ("check",): 0, ("journal", "audit"): 2, ("look", "."): None, ("flag", "list"): 0,
    ("gates", "check"): None, ("docs", "audit", "campaign.yaml"): None, ("trace", "campaign.yaml"): None,
}  # fmt: skip
ACTS = (
    ("up",), ("up", "--detach"), ("up", "--at-boot", "--yes"), ("stop", "train/0"), ("down",), ("down", "--runs"),
    ("hold", "--because", "x"), ("release",), ("retry", "train/1", "--because", "x"),
    ("redo", "train/0", "--because", "x"), ("giveup", "train/1", "--because", "x"),
    ("accept", "train/1", "--because", "x"), ("note", "x"), ("rename", "seed", "1=2"), ("adopt", "out/*"),
    ("report", "--partial"), ("record",), ("cost", "--report"), ("pack", "x.tar.gz"), ("shutdown",),
    ("shutdown", "--when-done"), ("clean", "--yes"), ("fsck",), ("docs", "update"), ("loop", "run"),
    ("loop", "propose"), ("gates", "draw", "train/0"), ("flag", "accept", "X", "--because", "x"),
)  # fmt: skip
ELSEWHERE = {"demo", "init", "schema", "unpack", "trace", "edit", "journal", "gates", "flag", "look", "docs"}


@pytest.fixture
def top() -> Iterator[Path]:
    """Where another user gets to; pytest's own folders are closed to others."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def camp(top: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Camp]:
    """Of the test's own user, with a home; nothing lies in it."""
    (top / "victim").mkdir(mode=0o700)
    camp = Camp(top / "victim", top / "home")
    (top / "home").mkdir(mode=0o700)
    for name, value in (("MUSTER_HOME", str(top / "home")), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("MUSTER_ATTEMPT", raising=False)
    yield camp
    camp.clean_up()


def give(root: Path, uid: int = MALLORY) -> None:
    os.chown(root, uid, uid)
    for path in root.rglob("*"):
        os.chown(path, uid, uid, follow_symlinks=False)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Camp:
    """One cell is done, one has failed; it was run by whoever owns it."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "home").mkdir()
    (folder / "campaign").mkdir()
    camp = Camp(folder / "campaign", folder / "home")
    camp.write(CAMPAIGN)
    (camp.root / "job.sh").write_text(JOB)
    camp("up", code=3)
    until(lambda: camp.controller() is None, "its controller has ended")
    return camp


@pytest.fixture
def mallorys(finished: Camp, top: Path) -> Path:
    """Readable for all, as states were before they were private."""
    root = top / "mallorys"
    subprocess.run(["cp", "-a", str(finished.root), str(root)], check=True)
    (root / ".muster" / "bell").unlink(missing_ok=True)
    (root / ".muster" / "place").unlink()
    give(root)
    subprocess.run(["chmod", "-R", "a+rX", str(root)], check=True)
    return root


def tree(root: Path) -> dict[str, Any]:
    """All that a write would change."""
    return {
        str(path.relative_to(root)): (facts.st_mode, facts.st_uid, facts.st_ino, facts.st_size, facts.st_mtime_ns,
                                      facts.st_ctime_ns, path.read_bytes() if path.is_file() else b"")
        for path in (root, *sorted(root.rglob("*")))
        for facts in (path.lstat(),)
    }  # fmt: skip


# -- falling into one


@pytest.mark.parametrize("has", ["all", "no file", "no state", "an empty state", "a closed state"])
def test_who_works_below_somebody_elses_campaign_is_told_and_starts_nothing(
    camp: Camp, top: Path, finished: Camp, has: str
) -> None:
    """mallory lays a campaign at the top of a disk for all; alice asks in her own folder below."""
    scratch = top / "scratch"
    subprocess.run(["cp", "-a", str(finished.root), str(scratch)], check=True)
    state = scratch / ".muster"
    (state / "place").unlink()
    (state / "bell").unlink(missing_ok=True)
    (state / "intent").write_text("running\n")
    if has == "no file":
        (scratch / "campaign.yaml").unlink()
    elif has == "no state":
        shutil.rmtree(state)
    elif has == "an empty state":
        (scratch / "campaign.yaml").unlink()
        shutil.rmtree(state)
        state.mkdir(mode=0o777)
    give(scratch)
    os.chown(scratch, 0, 0)
    scratch.chmod(0o1777)
    if has == "a closed state":
        state.chmod(0o700)
    mine = scratch / "alice" / "project"
    mine.mkdir(parents=True)
    before = tree(scratch)
    for command in (("status",), ("up",), ("down", "--runs"), ("check",), ("plan",), ("why", "train/0")):
        done = subprocess.run(
            [sys.executable, "-m", "muster", *command], cwd=mine, env=camp.environment, capture_output=True, text=True
        )
        assert done.returncode == 2, (command, done.stdout, done.stderr)
        assert f"the campaign in {scratch} belongs to uid {MALLORY} and not to you (root)" in done.stderr
        assert f"{mine} lies in it" in done.stderr
        assert f"`muster -C {scratch} status` reads it" in done.stderr
        assert done.stdout == ""
    assert tree(scratch) == before


def test_folders_of_others_without_a_campaign_are_walked_through(camp: Camp, top: Path) -> None:
    home = top / "alice"
    inner = home / "theirs" / "deep"
    inner.mkdir(parents=True)
    (home / "campaign.yaml").write_text(CAMPAIGN)
    os.chown(home / "theirs", MALLORY, MALLORY)
    os.chown(inner, MALLORY, MALLORY)
    assert find_campaign_root(inner) == home


@pytest.mark.parametrize("what", [".", "campaign.yaml", ".muster", ".muster/decisions.jsonl", ".muster/campaign.db"])
def test_each_part_must_be_the_callers(camp: Camp, finished: Camp, top: Path, what: str) -> None:
    root = top / "mine"
    subprocess.run(["cp", "-a", str(finished.root), str(root)], check=True)
    assert find_foreign_owner(root) is None
    os.chown(root / what, MALLORY, MALLORY)
    found = find_foreign_owner(root)
    assert found is not None
    assert (found.path, found.owner) == (root / what, MALLORY)
    for command in (("up",), ("note", "x")):
        assert f"where: {root / what}\n" in camp("-C", str(root), *command, code=2).stderr


def test_a_linked_file_is_whose_it_leads_to(camp: Camp, top: Path) -> None:
    root = top / "mine"
    root.mkdir()
    (top / "theirs.yaml").write_text(CAMPAIGN)
    (root / "campaign.yaml").symlink_to("../theirs.yaml")
    assert find_foreign_owner(root) is None
    os.chown(top / "theirs.yaml", MALLORY, MALLORY)
    found = find_foreign_owner(root)
    assert found is not None
    assert found.owner == MALLORY


@pytest.mark.parametrize("what", ["campaign.yaml", ".muster", ".muster/decisions.jsonl"])
def test_what_everybody_may_write_is_nobodys(camp: Camp, finished: Camp, top: Path, what: str) -> None:
    root = top / "mine"
    subprocess.run(["cp", "-a", str(finished.root), str(root)], check=True)
    (root / what).chmod(0o775 if what == ".muster" else 0o664)  # a group is chosen by who gives to it
    assert find_foreign_owner(root) is None
    (root / what).chmod(0o777)
    done = camp("-C", str(root), "up", code=2)
    assert f"may have been written by anybody, as {Path(what).name} is open to everybody" in done.stderr
    assert f"`chmod o-w {root / what}`" in done.stderr
    assert (
        f"it is only read here; see what stands there, then `chmod o-w {root / what}`"
        in camp("-C", str(root), "status").stdout
    )
    (root / what).chmod(0o755)
    assert find_foreign_owner(root) is None


# -- reading one


@pytest.mark.parametrize("command", READS, ids=" ".join)
def test_reading_changes_nothing(
    camp: Camp, mallorys: Path, command: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    before = tree(mallorys)
    code = run_command_line(["-C", str(mallorys), *command])
    said = capfd.readouterr()
    assert tree(mallorys) == before
    assert "something unexpected" not in said.err
    assert READS[command] in (code, None), said
    if command == ("status",):
        assert f"it belongs to uid {MALLORY} and not to you (root): it is only read here" in said.out
        assert "1 of 2 cells done" in said.out
    if command == ("logs", "train/0"):
        assert said.out == "seed 0\n"


@pytest.mark.parametrize("command", ACTS, ids=" ".join)
def test_acting_is_refused(
    camp: Camp, mallorys: Path, command: tuple[str, ...], capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(camp.root)
    before = tree(mallorys)
    code = run_command_line(["-C", str(mallorys), *command])
    said = capfd.readouterr()
    assert tree(mallorys) == before
    assert code == 2, said
    assert f"belongs to uid {MALLORY} and not to you (root)" in said.err
    assert not list(camp.root.iterdir())


def test_no_command_is_forgotten() -> None:
    tried = {words[0] for words in (*READS, *ACTS)}
    assert tried | ELSEWHERE == set(COMMANDS), "a new command: what does it do in somebody else's campaign?"


def test_one_that_runs_is_told_by_who_is_written_down(camp: Camp, top: Path) -> None:
    """Whether its controller lives is seen without its lock."""
    root = top / "running"
    root.mkdir()
    theirs = Camp(root, top / "their home")
    theirs.write(CAMPAIGN)
    (root / "job.sh").write_text(f"{JOB.rpartition('exit')[0]}read word < gate-$1\n")
    theirs.gates(0, 1)
    try:
        theirs("up", "--detach", code=0)
        until((theirs.folder("train/0") / "execing").exists, "it runs")
        give(root)
        found = camp.json("-C", str(root), "status")
        assert found["controller"]["alive"]
        assert found["controller"]["pid"] == theirs.controller()
        assert "it is only read here" in camp("-C", str(root), "status").stdout
        assert "belongs to" in camp("-C", str(root), "down", "--runs", code=2).stderr
        give(root, 0)
        for seed in (0, 1):
            theirs.open(seed)
        theirs("wait", "--timeout", "60s")
    finally:
        give(root, 0)
        theirs.clean_up()


def as_mallory(*arguments: str) -> tuple[int, str]:
    """A command of the second user, in a process that has everything loaded that it may not find on its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.dup2(writer, 1)
            os.dup2(writer, 2)
            sys.stdout = os.fdopen(1, "w", closefd=False)
            sys.stderr = os.fdopen(2, "w", closefd=False)
            os.setgroups([])
            os.setresgid(MALLORY, MALLORY, MALLORY)
            os.setresuid(MALLORY, MALLORY, MALLORY)
            os.chdir("/")
            code = run_command_line(list(arguments))
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)
    os.close(writer)
    with open(reader, "rb") as said:
        text = said.read().decode()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text


def test_a_second_user_without_privileges(camp: Camp, mallorys: Path, top: Path, monkeypatch: Any) -> None:
    """Reads what may be read, and is told of what may not."""
    give(mallorys, 0)
    (top / "hers").mkdir()
    os.chown(top / "hers", MALLORY, MALLORY)
    monkeypatch.setenv("MUSTER_HOME", str(top / "hers" / "home"))
    before = tree(mallorys)
    code, said = as_mallory("-C", str(mallorys), "status")
    assert (code, "it belongs to root and not to you" in said) == (3, True), said
    code, said = as_mallory("-C", str(mallorys), "down")
    assert (code, "belongs to root and not to you" in said) == (2, True), said
    assert tree(mallorys) == before
    (mallorys / ".muster").chmod(0o700)
    before = tree(mallorys)
    for command in ("status", "plan", "down", "up", "ls"):
        code, said = as_mallory("-C", str(mallorys), command)
        assert (code, "belongs to root and not to you" in said) == ((0, False) if command == "ls" else (2, True)), said
        assert "unexpected" not in said
    assert tree(mallorys) == before


# -- exceptions


def test_the_command_of_the_hint_makes_the_exception(camp: Camp, mallorys: Path, top: Path) -> None:
    told = camp("-C", str(mallorys), "note", "x", code=2).stderr
    command = told.rpartition("work in it: `")[2].rpartition("`")[0]
    subprocess.run(["sh", "-c", f"umask 000; {command}"], check=True)
    assert find_foreign_owner(mallorys) is None
    camp("-C", str(mallorys), "note", "x", code=0)
    found = camp("-C", str(mallorys), "status", code=3).stdout
    assert "only read" not in found


@pytest.mark.parametrize("named", ["*", "PARENT", "PARENT/*", "ROOT/.muster", "mallorys", "# ROOT", ""])
def test_only_the_folder_itself_is_an_exception(camp: Camp, mallorys: Path, named: str) -> None:
    trusted = Path(camp.environment["MUSTER_HOME"]) / "trusted"
    trusted.write_text(named.replace("PARENT", str(mallorys.parent)).replace("ROOT", str(mallorys)) + "\n")
    trusted.chmod(0o600)
    assert find_foreign_owner(mallorys) is not None
    trusted.write_text(f"/elsewhere\n{mallorys}/\n")
    assert find_foreign_owner(mallorys) is None


@pytest.mark.parametrize("how", ["another's", "group", "others", "linked"])
def test_a_list_that_others_may_write_excepts_nothing(camp: Camp, mallorys: Path, how: str) -> None:
    trusted = Path(camp.environment["MUSTER_HOME"]) / "trusted"
    trusted.write_text(f"{mallorys}\n")
    trusted.chmod(0o600)
    assert find_foreign_owner(mallorys) is None
    if how == "another's":
        os.chown(trusted, MALLORY, MALLORY)
    elif how == "linked":
        trusted.rename(trusted.with_name("list"))
        trusted.symlink_to("list")
    else:
        trusted.chmod(0o620 if how == "group" else 0o602)
    found = find_foreign_owner(mallorys)
    assert found is not None
    if how in ("group", "others"):
        assert f"chmod go-w {trusted}" in camp("-C", str(mallorys), "up", code=2).stderr
    assert find_readable_root(mallorys) == mallorys
