"""A state that this user's own `up` did not start: whoever looks at it executes nothing, whatever it says of itself."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.load_campaign import read_runnable_campaign, submit_campaign
from muster.bootstrap.controller_process import may_revive_controller
from muster.faces.cli.common.entrypoint import run_command_line
from muster.files import campaign_ownership, campaign_register
from muster.hosts.local.guard_keeper import GUARD_PROGRAM
from muster.model.errors import UsageError
from support.camp import Camp, alive, until

HOSTILE = """\
muster: 1
campaign: hostile
axes: {seed: [0]}
slots: {gpus: 0, cpus: 1}
jobs:
  train:
    axes: [seed]
    command: /bin/sh -c 'echo executed >> EXECUTED'
"""
SHIPPED = ("decisions.jsonl", "campaigns", "intent")
LOOKS = (("status",), ("status", "--json"), ("why", "train/0"), ("logs", "train/0"), ("metrics", "train/0"),
         ("wait", "--timeout", "1s"), ("record", "--out", "-"), ("cost",), ("plan",), ("ls",), ("manifest",))  # fmt: skip


@pytest.fixture
def camp(camp: Camp, monkeypatch: pytest.MonkeyPatch) -> Camp:
    """What is done in this process is done as the commands of `camp` do it; no guard but where a test says so."""
    monkeypatch.setenv("MUSTER_HOME", camp.environment["MUSTER_HOME"])
    monkeypatch.delenv("MUSTER_ATTEMPT", raising=False)
    monkeypatch.setenv("MUSTER_GUARD", "off")
    camp.environment["MUSTER_GUARD"] = "off"
    return camp


def taken_in(root: Path, text: str = HOSTILE) -> Path:
    """As `up` leaves it before it starts a controller; its state."""
    root.mkdir(exist_ok=True)
    (root / "campaign.yaml").write_text(text)
    desk = CampaignHandle.create(root)
    submit_campaign(desk, read_runnable_campaign(desk.file), ())
    desk.close()
    return root / ".muster"


def shipped(camp: Camp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> Path:
    """A repository that holds a campaign.yaml and a state which says that it is running."""
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("MUSTER_HOME", str(tmp_path / "home of another machine"))
        made = taken_in(tmp_path / "made")
    assert (made / "intent").read_text() == "running\n"
    (camp.root / ".muster").mkdir()
    camp.write(HOSTILE)
    for name in (*SHIPPED, *more):
        copy = shutil.copytree if (made / name).is_dir() else shutil.copy
        copy(made / name, camp.root / ".muster" / name)
    return made


def nothing_was_started(camp: Camp) -> None:
    assert not (camp.root / ".muster" / "controller.log").exists(), "whoever starts a controller begins with its log"
    assert camp.controller() is None
    assert not (camp.root / "EXECUTED").exists()


@pytest.mark.parametrize("original", ["there", "deleted"])
@pytest.mark.parametrize("more", [(), ("place",), ("place", "registered"), ("registered", "env")], ids=" ".join)
def test_who_looks_at_a_shipped_state_executes_nothing(
    camp: Camp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    original: str, more: tuple[str, ...],
) -> None:  # fmt: skip
    made = shipped(camp, tmp_path, monkeypatch, *more)
    if original == "deleted":
        shutil.rmtree(made.parent)
    log = (camp.root / ".muster" / "decisions.jsonl").read_bytes()
    said = ""
    for command in LOOKS:
        run_command_line(["-C", str(camp.root), *command])
        found = capsys.readouterr()
        said += found.out + found.err
        nothing_was_started(camp)
    assert (camp.root / ".muster" / "decisions.jsonl").read_bytes() == log
    assert "internal" not in said
    if not (more[:1] == ("place",) and original == "there"):  # then it is a copy, and says so
        assert "`muster up`" in said
        assert "is being revived" not in said


def test_whoever_is_started_for_it_leaves(camp: Camp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A guard as `--at-boot` starts it, and the controller of a guard or a shim."""
    shipped(camp, tmp_path, monkeypatch)
    state = camp.root / ".muster"
    guard = subprocess.run([sys.executable, "-I", "-S", GUARD_PROGRAM, str(state)], env=camp.environment, timeout=60)
    assert guard.returncode == 0
    command = [sys.executable, "-m", "muster.bootstrap.controller_process", str(camp.root)]
    for by in ("guard", "shim"):
        told = {**camp.environment, "MUSTER_REVIVED_BY": by}
        assert subprocess.run(command, env=told, timeout=60).returncode == 3
    assert not [each for each in camp.decisions("epoch") if each["who"].startswith("controller")]
    assert not (camp.root / "EXECUTED").exists()


def test_what_it_names_is_not_ended(camp: Camp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped(camp, tmp_path, monkeypatch)
    for command in (("stop", "train/0"), ("shutdown", "--when-done")):
        done = camp(*command, code=2)
        assert "has started this campaign here" in done.stderr
        assert "`muster up` takes it over" in done.stderr
    nothing_was_started(camp)
    camp("retry", "train/0", "--because", "x")
    camp("release")
    nothing_was_started(camp)


def test_up_takes_it_over_and_from_then_on_it_is_revived(
    camp: Camp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped(camp, tmp_path, monkeypatch)
    text = HOSTILE.replace("echo executed >> EXECUTED", "echo started; read word < gate-0")
    camp.write(text)
    camp.gates(0)
    assert camp.json("status", code=4)["controller"] == {
        "alive": False, "pid": None, "since": None, "trouble": None, "revived": False, "started_here": False,
    }  # fmt: skip
    camp("up", "--detach", code=0)
    camp.started("train/0")
    killed(camp)
    assert "its controller was gone: another one was started" in camp("status", code=4).stdout
    until(camp.controller, "another controller")
    led(camp)
    killed(camp)
    assert camp.json("status", code=4)["controller"]["revived"] is True
    led(camp)
    killed(camp)
    assert "another one was started" in camp("why", "train/0").stderr
    led(camp)
    camp.open(0)
    camp("wait", code=0)


def test_who_looks_at_a_moved_campaign_revives_nothing(camp: Camp, tmp_path: Path) -> None:
    """Its controller is dead: `up` goes on where it lies now, and enters it there; nobody else does."""
    camp.write(HOSTILE.replace("echo executed >> EXECUTED", "echo started; read word < gate-0"))
    camp.gates(0)
    camp("up", "--detach", code=0)
    camp.started("train/0")
    killed(camp)
    old = camp.root
    camp.root = old.rename(tmp_path / "elsewhere")
    state = camp.root / ".muster"
    assert not campaign_ownership.was_started_here(state)
    assert not may_revive_controller(camp.root, state)
    for command in LOOKS:
        camp(*command)
        assert camp.controller() is None, command
    status = camp("status", code=4).stdout
    assert "this campaign was moved here since your last `muster up`, and it has no controller" in status
    assert "`muster up` goes on here" in status
    assert camp.json("status")["controller"]["started_here"] is False
    refused = camp("stop", "train/0", "--because", "x", code=2).stderr
    assert "nothing was stopped" in refused
    assert "`muster down --runs --because '...'` ends all runs" in refused
    camp("note", "seen", code=0)
    assert camp.controller() is None
    (entry,) = (Path(camp.environment["MUSTER_HOME"]) / "campaigns").iterdir()
    assert json.loads(entry.read_text())["path"] == str(old)
    key = campaign_register.read_register_key(state)
    camp("up", "--detach", code=0)
    told = json.loads(entry.read_text())
    assert (told["path"], told["key"]) == (str(camp.root), key)
    led(camp)
    killed(camp)
    assert "another one was started" in camp("status", code=4).stdout
    led(camp)
    camp.open(0)
    camp("wait", code=0)


def test_a_moved_campaign_without_controller_can_be_ended(camp: Camp, tmp_path: Path) -> None:
    camp.write(HOSTILE.replace("echo executed >> EXECUTED", "echo started; read word < gate-0"))
    camp.gates(0)
    camp("up", "--detach", code=0)
    run = camp.started("train/0")
    killed(camp)
    old = camp.root
    camp.root = old.rename(tmp_path / "elsewhere")
    camp("down", "--runs", "--because", "enough", code=0)
    assert not alive(run)
    (entry,) = (Path(camp.environment["MUSTER_HOME"]) / "campaigns").iterdir()
    assert json.loads(entry.read_text())["path"] == str(old), "it was ended, and not taken along"


def killed(camp: Camp) -> None:
    pid = camp.controller()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until(lambda: not alive(pid), "it is dead")


def led(camp: Camp) -> None:
    lock = camp.root / ".muster" / "controller.lock"

    def epoch() -> bool:
        try:
            return bool(camp.controller()) and json.loads(lock.read_text())["epoch"] > 0
        except (OSError, ValueError, KeyError):
            return False

    until(epoch, "a controller that leads")


# -- the register


def test_key_lies_in_both_places_and_in_no_other(camp: Camp) -> None:
    state = taken_in(camp.root)
    (entry,) = (Path(camp.environment["MUSTER_HOME"]) / "campaigns").iterdir()
    key = (state / "registered").read_text().strip()
    assert json.loads(entry.read_text())["key"] == key
    assert len(key) == 32
    assert (state / "registered").stat().st_mode & 0o777 == 0o600
    again = taken_in(camp.root)
    assert (again / "registered").read_text().strip() == key, "one `up` more changes nothing"
    assert not any(key in path.read_text(errors="replace") for path in (state / "env").iterdir())


def unsaid(_: Path) -> None: ...


def no_key(state: Path) -> None:
    (state / "registered").unlink()


def another_key(state: Path) -> None:
    (state / "registered").write_text("0" * 32)


def linked_key(state: Path) -> None:
    (state / "registered").rename(state / "key")
    (state / "registered").symlink_to("key")


def moved(state: Path) -> None:
    there = state.parent.with_name("there")
    state.parent.rename(there)
    there.rename(state.parent)


def copied(state: Path) -> None:
    """With all that is in it, and the original is gone."""
    beside = state.with_name("beside")
    shutil.copytree(state, beside)
    shutil.rmtree(state)
    beside.rename(state)


@pytest.mark.parametrize(
    ("happens", "started"),
    [(unsaid, True), (moved, True), (no_key, False), (another_key, False), (linked_key, False), (copied, False)],
)
def test_started_here(camp: Camp, happens: Callable[[Path], None], started: bool) -> None:
    state = taken_in(camp.root)
    inode = state.stat().st_ino
    happens(state)
    if happens is copied and state.stat().st_ino == inode:
        pytest.skip("this file system gives the number of a deleted folder to the next one at once")
    assert campaign_ownership.was_started_here(state) is started
    assert may_revive_controller(camp.root, state) is started
    if happens is linked_key:
        return  # `up` refuses links in a state
    taken_in(camp.root)
    assert campaign_ownership.was_started_here(state), "`up` enters it"


def test_entry_that_others_may_write_proves_nothing(camp: Camp) -> None:
    state = taken_in(camp.root)
    (entry,) = (Path(camp.environment["MUSTER_HOME"]) / "campaigns").iterdir()
    entry.chmod(0o666)
    assert not campaign_ownership.was_started_here(state)


def test_another_home_does_not_know_it(camp: Camp, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    state = taken_in(camp.root)
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "other"))
    assert not campaign_ownership.was_started_here(state)
    told = campaign_ownership.key_for_children(state)
    monkeypatch.setenv(campaign_ownership.HANDED_ON_VARIABLE, told[campaign_ownership.HANDED_ON_VARIABLE])
    assert campaign_ownership.was_started_here(state), "whom its controller started knows it"


def of_earlier_version(camp: Camp, *, registered: bool = True) -> Path:
    """As a version before this left it: no key in either place."""
    state = taken_in(camp.root)
    no_key(state)
    (entry,) = (Path(camp.environment["MUSTER_HOME"]) / "campaigns").iterdir()
    told = json.loads(entry.read_text())
    del told["key"]
    entry.write_text(json.dumps(told))
    if not registered:
        entry.unlink()
    return state


@pytest.mark.parametrize("registered", [True, False])
def test_campaign_of_an_earlier_version(camp: Camp, registered: bool) -> None:
    """Its own guard and shims may start its controller again; who only looks does not; `up` goes on with it."""
    state = of_earlier_version(camp, registered=registered)
    assert may_revive_controller(camp.root, state) is registered
    found = camp("status", code=4)
    nothing_was_started(camp)
    assert "nothing goes on by itself; `muster up` takes it over" in found.stdout
    assert "revived" not in found.stdout
    camp("up", code=0)
    assert (camp.root / "EXECUTED").read_text() == "executed\n"
    assert campaign_ownership.was_started_here(state)


def test_an_earlier_entry_of_another_place_proves_nothing(camp: Camp) -> None:
    state = of_earlier_version(camp)
    there = camp.root.with_name("there")
    camp.root.rename(there)
    assert not may_revive_controller(there, there / ".muster")
    there.rename(camp.root)
    assert may_revive_controller(camp.root, state)


# -- the home is deleted under a campaign that lives


@pytest.mark.parametrize("home", ["deleted", "in the way"])
def test_guard_revives_although_the_home_is_gone(camp: Camp, home: str) -> None:
    camp.environment["MUSTER_GUARD"] = "on"
    camp.write(HOSTILE.replace("echo executed >> EXECUTED", "echo started; read word < gate-0"))
    camp.gates(0)
    camp("up", "--detach", code=0)
    camp.started("train/0")
    state, folder = camp.root / ".muster", Path(camp.environment["MUSTER_HOME"])
    guard = until(lambda: guard_of(state), "a guard")
    shutil.rmtree(folder)
    if home == "in the way":
        folder.write_text("no folder can be made here")
    first = camp.controller()
    killed(camp)
    until(lambda: camp.controller() not in (None, first), "another controller")
    led(camp)
    assert camp.decisions("epoch")[-1]["reason"] == "revived by the guard"
    assert guard_of(state) == guard
    if home == "in the way":
        folder.unlink()
    else:
        until(lambda: list(folder.glob("campaigns/*.json")), "it is entered again")
        assert campaign_register.read_register_key(state) in next(folder.glob("campaigns/*.json")).read_text()
    camp.open(0)
    camp("wait", code=0)


def guard_of(state: Path) -> Any:
    from muster.hosts.local.guard_keeper import living_guard_pid

    return living_guard_pid(state)


def test_begun_before_the_home_was_given_it_can_be_ended(
    camp: Camp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`MUSTER_HOME` in a profile, as for sharing: what was begun without it is this user's all the same."""
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    monkeypatch.delenv("MUSTER_HOME")
    state = taken_in(camp.root)
    monkeypatch.setenv("MUSTER_HOME", camp.environment["MUSTER_HOME"])
    campaign_ownership.refuse_unless_started_here(state, "stopped")
    assert not campaign_ownership.was_started_here(state), "a controller would take slots elsewhere"
    taken_in(camp.root)  # from now on it is entered there
    campaign_ownership.refuse_unless_started_here(state, "stopped")
    monkeypatch.delenv("MUSTER_HOME")
    with pytest.raises(UsageError) as refused:
        campaign_ownership.refuse_unless_started_here(state, "stopped")
    assert "if it was started with another MUSTER_HOME, set that one" in refused.value.hint
