"""What a guard does next, and how long it waits before it starts a controller again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from muster.engine.store.decision_log import FileDecisionLog
from muster.hosts.local.guard import (
    AT_ONCE_S,
    LONG_S,
    LONGEST_FAILED_S,
    LONGEST_KILLED_S,
    ControllerLosses,
    Guard,
    next_guard_step,
)
from muster.hosts.local.guard_keeper import GuardReport, pop_guard_notice, read_guard_report
from muster.model.decision import Decision


@pytest.mark.parametrize(
    ("seen", "step"),
    [
        ({}, "start"),
        ({"pause_s": 0.1}, "wait"),
        ({"attended": True}, "wait"),
        ({"attended": True, "at_rest": True}, "wait"),  # it has said its last word and has not ended yet
        ({"at_rest": True}, "leave"),
        ({"intent": "down"}, "leave"),
        ({"intent": "held", "attended": True}, "leave"),
        ({"intent": ""}, "start"),  # somebody deleted the file: a controller writes it anew
        ({"here": False, "attended": True}, "leave"),
    ],
)
def test_next_step(seen: dict[str, object], step: str) -> None:
    usual = {"here": True, "intent": "running", "attended": False, "at_rest": False, "pause_s": 0.0}
    assert next_guard_step(**{**usual, **seen}) == step  # type: ignore[arg-type]


def test_killed_controllers_come_back_soon_and_failing_ones_late() -> None:
    killed, failing = ControllerLosses(), ControllerLosses()
    pauses = []
    for _ in range(40):
        killed.add(1.0, None)
        failing.add(1.0, 1)
        pauses.append((killed.pause_s, failing.pause_s))
    assert pauses[0] == (AT_ONCE_S, 2.0)
    assert pauses == sorted(pauses)
    assert pauses[-1] == (LONGEST_KILLED_S, LONGEST_FAILED_S)
    killed.add(LONG_S, None)
    assert killed.pause_s == AT_ONCE_S
    failing.add(1.0, None)
    assert failing.pause_s < LONGEST_FAILED_S, "killed is not failed"


def decision(kind: str) -> Decision:
    return Decision(kind, "controller 7", "because", epoch=1, at="2026-01-01T00:00:00.000+00:00", boot=1.0)


def test_at_rest_is_what_the_log_says_last(tmp_path: Path) -> None:
    guard, log = Guard(str(tmp_path), []), FileDecisionLog(tmp_path / "decisions.jsonl")
    assert guard._at_rest(), "there is nothing to be done"
    for kind, rests in (("start", False), ("end", True), ("notice", False), ("end", True)):
        log.append([decision(kind)])
        assert guard._at_rest() is rests
    with open(tmp_path / "decisions.jsonl", "ab") as torn:
        torn.write(b'{"kind":"end",')
    assert not guard._at_rest()


def words(times: int, failed: int, code: int | None = None) -> GuardReport:
    return GuardReport(times, failed, code, "no room" if code else "", 0.0)


@pytest.mark.parametrize(
    ("told", "heard"),
    [
        (words(2, 0), ""),
        (words(3, 0), "it ended 3 times in a row, soon after its start and without a word"),
        (words(4, 0), ""),
        (words(6, 0), "it ended 6 times in a row, soon after its start and without a word"),
        (words(9, 0), ""),
        (words(2, 2, 1), ""),
        (words(4, 4, 1), "it failed 4 times in a row, with exit code 1: no room"),
    ],
)
def test_words_for_the_next_controller_are_told_once(tmp_path: Path, told: GuardReport, heard: str) -> None:
    text = {"times": told.times, "failed": told.failed, "code": told.code, "said": told.said, "next": told.next}
    (tmp_path / "guard.json").write_text(json.dumps(text))
    assert read_guard_report(tmp_path) == told
    assert pop_guard_notice(tmp_path) == (f"the guard started the controller again; {heard}" if heard else "")
    assert read_guard_report(tmp_path) is None


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"times": "many"}'])
def test_damaged_words_say_nothing(tmp_path: Path, damage: str) -> None:
    (tmp_path / "guard.json").write_text(damage)
    assert read_guard_report(tmp_path) is None
    assert pop_guard_notice(tmp_path) == ""


def test_a_guard_that_is_refused_looks_less_often_and_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "controller.log").touch()
    (tmp_path / "intent").write_text("running\n")
    pauses: list[float] = []

    def refuse(_: str) -> bool:
        raise PermissionError(13, "Permission denied", "controller.lock")

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        assert len(pauses) <= 12, "it never leaves"
        if len(pauses) == 12:
            (tmp_path / "intent").write_text("down\n")

    monkeypatch.setattr("muster.hosts.local.guard.is_lock_held", refuse)
    monkeypatch.setattr("muster.hosts.local.guard.time.sleep", sleep)
    assert Guard(str(tmp_path), []).run() == 0, "it leaves when it is not wanted any more"
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.5, 60.0)
    assert (tmp_path / "controller.log").read_text().count("Permission denied") == 1
