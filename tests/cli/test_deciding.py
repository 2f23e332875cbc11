"""How commands decide: with a controller, without one, and while others decide too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.load_campaign import read_campaign_file, submit_campaign
from muster.files.muster_home import slots_home
from muster.model.errors import UsageError
from support.camp import Camp

ONE = """\
muster: 1
campaign: one
axes: {seed: [0, 1]}
slots: {gpus: 0, cpus: 1}
jobs: {train: {axes: [seed], command: /bin/true}}
"""


# -- bytes that are no UTF-8


def test_an_environment_with_any_bytes_reaches_the_run(camp: Camp) -> None:
    camp.write("""\
muster: 1
campaign: bytes
slots: {gpus: 0, cpus: 1}
jobs: {train: {command: /bin/sh -c 'cat /proc/self/environ'}}
""")
    environment = {os.fsencode(name): os.fsencode(value) for name, value in camp.environment.items()}
    environment |= {b"ODD": b"\xff\xfe \xc3\xa9", b"UMLAUT": "ä".encode()}
    command = [sys.executable, "-m", "muster", "up"]
    done = subprocess.run(command, cwd=camp.root, env=environment, capture_output=True, timeout=90)
    assert done.returncode == 0, done.stderr
    variables = (camp.folder("train") / "stdout.log").read_bytes().split(b"\0")
    assert b"ODD=\xff\xfe \xc3\xa9" in variables
    assert "UMLAUT=ä".encode() in variables


@pytest.mark.parametrize("controlled", [True, False])
def test_a_note_of_any_bytes_is_kept_and_hurts_nobody(gated: Camp, controlled: bool) -> None:
    gated("up", "--detach", code=0)
    gated.started("train/0")
    if not controlled:
        gated("down", code=0)
    pid = gated.controller()
    command = [sys.executable, "-m", "muster", "note", b"x\xff", "--cell", "train/0"]
    done = subprocess.run(command, cwd=gated.root, env=gated.environment, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert gated.controller() == pid
    assert "note, x\\udcff" in gated("why", "train/0", code=0).stdout


# -- who is a controller


@pytest.fixture
def desk(camp: Camp, monkeypatch: pytest.MonkeyPatch) -> Iterator[CampaignHandle]:
    """A campaign that was taken in, and down again: nothing starts in these tests."""
    monkeypatch.setenv("MUSTER_HOME", camp.environment["MUSTER_HOME"])
    camp.write(ONE)
    made = CampaignHandle.create(camp.root)
    submit_campaign(made, read_campaign_file(made.file), ())
    made.decide([made.person("intent", data={"intent": "down"})])
    yield made
    made.close()


def test_a_command_that_decides_is_no_controller(desk: CampaignHandle, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    commit = desk.store.commit

    def watched(decisions: Any) -> Any:
        holder = desk.lock.holder()
        seen.append((desk.controller(), holder and holder.alive and holder.epoch))
        done = commit(decisions)
        seen.append((desk.controller(), holder and holder.alive and holder.epoch))
        return done

    monkeypatch.setattr(desk.store, "commit", watched)
    assert desk.decide([desk.person("note", "seen")]) == [None]
    assert seen == [(None, 0), (None, 0)]


def test_whoever_awaits_a_controller_waits_for_a_command_to_leave(desk: CampaignHandle) -> None:
    """The controller that met it has ended: only when the lock is free is it time to start another."""
    assert desk.lock.take()
    answers: list[object] = []
    waiting = threading.Thread(target=lambda: answers.append(desk.await_controller(lambda: True)))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    desk.lock.give_back()
    waiting.join(10)
    assert answers == [None]


def test_up_is_not_fooled_by_a_command_that_was_stopped_while_it_decided(gated: Camp) -> None:
    gated("up", "--detach", code=0)
    gated.started("train/0")
    gated("down", code=0)
    gated.environment |= {"MUSTER_STALE_S": "1"}
    armed = {"MUSTER_CRASH_AT": "fold.begin:stop", "MUSTER_CRASH_ONCE": str(gated.root / "reached")}
    command = [sys.executable, "-m", "muster", "note", "never told"]
    stopped = subprocess.Popen(command, cwd=gated.root, env=gated.environment | armed, stdout=subprocess.DEVNULL)
    try:
        gated.until((gated.root / "reached").exists)
        up = gated("up", "--detach", code=0)
        pid = gated.controller()
        assert pid not in (None, stopped.pid)
        assert f"handed over to controller {pid}" in up.stdout
        assert [decision["reason"] for decision in gated.decisions("note")] == ["never told"]
    finally:
        if stopped.poll() is None:
            stopped.send_signal(signal.SIGKILL)
        stopped.wait()


# -- up while somebody holds


def test_a_hold_that_comes_between_refuses_the_whole_of_up(desk: CampaignHandle) -> None:
    desk.decide([desk.person("filter", data={"only": [{"seed": ["1"]}]})])
    before = desk.load()
    desk.file.write_text(ONE.replace("[0, 1]", "[0, 1, 2]"))
    desk.store.append(desk.person("hold", "look first"))
    with pytest.raises(UsageError) as refused:
        submit_campaign(desk, read_campaign_file(desk.file), ({"seed": ("2",)},))
    assert (refused.value.message, refused.value.exit, refused.value.code) == (
        "the campaign is held: look first", 3, "held"
    )  # fmt: skip
    after = desk.load()
    assert after.intent.kind == "held"
    assert (after.campaign_hash, after.only, len(after.declared)) == (before.campaign_hash, before.only, 2)
    with pytest.raises(UsageError, match=r"^the campaign is held: look first$"):
        submit_campaign(desk, read_campaign_file(desk.file), ())
    desk.decide([desk.person("release")])
    submit_campaign(desk, read_campaign_file(desk.file), ({"seed": ("2",)},))
    later = desk.load()
    assert (later.intent.kind, later.only, len(later.declared)) == ("running", ({"seed": ("2",)},), 3)
    desk.decide([desk.person("intent", data={"intent": "down"})])


def test_what_belongs_together_is_handed_over_together(gated: Camp, monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller that folded the text before the filter would start cells that --only leaves out."""
    gated("up", "--detach", "--only", "seed=0", code=0)
    gated.started("train/0")
    monkeypatch.setenv("MUSTER_HOME", gated.environment["MUSTER_HOME"])  # this process registers it, too
    desk = CampaignHandle.open(gated.root)
    handed: list[list[str]] = []
    append = desk.store.log.append
    monkeypatch.setattr(
        desk.store.log, "append", lambda ds: (handed.append([d.kind for d in ds]), append(ds))[1]
    )  # fmt: skip
    assert desk.controller() is not None
    submit_campaign(desk, read_campaign_file(desk.file), ({"seed": ("0",)},))
    assert handed == [["campaign", "filter", "intent"]]
    assert not gated.folder("train/1").exists()
    desk.close()


# -- the machine-wide home


def test_a_relative_home_means_the_same_to_the_controller(camp: Camp) -> None:
    camp.write(ONE)
    (camp.root / "below").mkdir()
    camp.environment["MUSTER_HOME"] = "../../home"  # as seen from where `up` is said
    command = [sys.executable, "-m", "muster", "up"]
    done = subprocess.run(command, cwd=camp.root / "below", env=camp.environment, capture_output=True, timeout=90)
    assert done.returncode == 0, done.stderr
    assert Path(camp.root.parent, "home", "slots", "cpu0").exists()
    assert not Path(camp.root.parent.parent, "home").exists()


def test_home_is_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MUSTER_HOME", "home")
    assert slots_home() == tmp_path / "home"
