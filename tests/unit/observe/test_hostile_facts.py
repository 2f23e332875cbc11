"""What a run may write into its own folder: it spoils what is known of this run, and never ends or hangs who looks."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muster.engine.ports.clock import SystemClock
from muster.files import process_identity
from muster.files.safe_open import LARGEST_OWN_FILE
from muster.hosts.local.attempt_probe import AttemptProbe
from muster.hosts.local.executor import LocalExecutor
from muster.model.attempt import Attempt
from muster.model.attempt_snapshot import AttemptSnapshot, ProofReading
from muster.model.campaign import Slots
from muster.readers import attempt_facts
from muster.readers.attempt_facts import read_order

RUN = Attempt("train/0", 1, "token", 1, ("cpu0",), "", "", 0.0, process_identity.read_boot_id())
WHO = {
    "boot_id": process_identity.read_boot_id(), "pid_namespace": process_identity.read_pid_namespace(), "init_ticks": process_identity.read_init_ticks(),
    "pid": 100, "ticks": 3, "shim_pid": 99, "shim_ticks": 4, "boot": 10.0, "at": 1000.0,
}  # fmt: skip
END = {"token": "token", "code": 0, "signal": None, "at": 1.0, "boot": 1.0, "duration_s": 1.0, "orphans": []}


def look(folder: Path) -> AttemptSnapshot:
    (folder / "started").write_text("token")
    probe = AttemptProbe(lambda *_: folder, SystemClock(), lambda *_: ProofReading(True))
    return probe.look([RUN])[RUN.key]


@pytest.mark.parametrize("name", ["exit.json", "identity.json", "stop"])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_text("[" * 200_000),
        lambda path: path.write_text('{"a":' * 200_000),
        lambda path: path.write_bytes(b" " * (LARGEST_OWN_FILE + 1)),
        os.mkfifo,
        lambda path: path.mkdir(),
        lambda path: path.symlink_to("/dev/zero"),
    ],
    ids=["nested list", "nested object", "large", "fifo", "folder", "link"],
)
def test_a_fact_that_is_no_fact_is_damaged(tmp_path: Path, name: str, spoil: Callable[[Path], Any]) -> None:
    spoil(tmp_path / name)
    seen = look(tmp_path)
    assert (seen.started, seen.trouble) == ("unread", f"{name} is damaged")


@pytest.mark.parametrize("value", [10**26, -1, 0, "1", None, True, 1.5])
@pytest.mark.parametrize("name", ["pid", "shim_pid"])
def test_an_identity_that_no_process_can_have_is_damaged(tmp_path: Path, name: str, value: object) -> None:
    (tmp_path / "identity.json").write_text(json.dumps({**WHO, name: value}))
    assert look(tmp_path).trouble == "identity.json is damaged"


@pytest.mark.parametrize("more", [{"boot": float("nan")}, {"at": 10**400}, {"boot_id": 5}, {"ticks": 10**30}])
def test_an_identity_of_impossible_numbers_is_damaged(tmp_path: Path, more: dict[str, object]) -> None:
    (tmp_path / "identity.json").write_text(json.dumps({**WHO, **more}))
    assert look(tmp_path).trouble == "identity.json is damaged"


@pytest.mark.parametrize(
    "more",
    [
        {"code": 10**30}, {"code": "0"}, {"signal": []}, {"at": 10**400}, {"boot": float("inf")}, {"orphans": [10**26]},
        {"orphans": 7}, {"evidence": {"log": 5}}, {"evidence": {"log": "\ud800"}}, {"exec_error": {}},
        {"stops": [{"reason": []}]}, {"evidence": {"oom_kills": [1]}}, {"evidence": {"disk_free": "much"}},
    ],
    ids=str,
)  # fmt: skip
def test_an_exit_that_no_shim_writes_is_damaged(tmp_path: Path, more: dict[str, object]) -> None:
    (tmp_path / "exit.json").write_text(json.dumps({**END, **more}))
    assert look(tmp_path).trouble == "exit.json is damaged"


def test_what_a_shim_writes_is_read(tmp_path: Path) -> None:
    evidence = {"log": "é", "out": "", "disk_free": 1 << 45, "oom_kills": [None, 3]}
    more = {"orphans": [12], "evidence": evidence, "stops": [{"reason": "timeout"}]}
    (tmp_path / "exit.json").write_text(json.dumps({**END, **more}))
    (tmp_path / "identity.json").write_text(json.dumps(WHO))
    found = attempt_facts.read_exit_file(str(tmp_path / "exit.json"), "token")
    assert found
    assert (found.orphans, found.oom_kills, found.stop_reason, found.log) == ((12,), (None, 3), "timeout", "é")
    assert attempt_facts.read_identity_file(str(tmp_path / "identity.json"))


def test_no_pid_is_too_large_to_ask_for() -> None:
    assert process_identity.read_process(10**5000) is None
    assert not process_identity.is_hidden_process(10**26)
    assert not process_identity.is_hidden_process(-1)


@pytest.mark.parametrize("name", ["tree.lock", "shim.lock"])
def test_a_lock_that_is_a_fifo_is_damaged(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    assert look(tmp_path).trouble == f"{name} is damaged"


def test_freed_at_an_impossible_time_says_nothing(tmp_path: Path) -> None:
    for text in ("nan", "inf", "9" * 100):
        (tmp_path / "freed").write_text(text)
        assert attempt_facts.read_freed_time(str(tmp_path)) is None


@pytest.mark.parametrize("text", [f"{10**26} 5", f"{1 << 40} 5", "-1 5", "9" * 5000 + " 1", "fifo"])
def test_a_stop_survives_what_stands_in_shim_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "home"))
    executor = LocalExecutor(tmp_path, Slots(gpus=(), cpus=1))
    folder = executor.folder(*RUN.place)
    folder.mkdir(parents=True)
    os.mkfifo(folder / "shim.lock") if text == "fifo" else (folder / "shim.lock").write_text(text)
    executor.stop(RUN, epoch=1, reason="user_stop", grace_s=1.0)
    assert json.loads((folder / "stop").read_text())["reason"] == "user_stop"


def test_an_order_that_is_no_order_is_none(tmp_path: Path) -> None:
    (tmp_path / "attempt.json").write_text('{"argv":' + "[" * 200_000)
    assert read_order(tmp_path) is None
    (tmp_path / "attempt.json").unlink()
    os.mkfifo(tmp_path / "attempt.json")
    assert read_order(tmp_path) is None
