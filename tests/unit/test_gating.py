"""A gate over one run: what is taken in, told, and taken back when the run goes back."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from muster.app.gates.gate_watcher import GateProgress, WatchedGate, unrecorded_gate_events
from muster.engine.controller.loop import ControllerLoop
from muster.engine.ports.extension import Observation, ScriptedExtension
from muster.model.campaign import GateSource
from muster.model.campaign_state import GateRecord
from muster.model.decision import Decision
from muster.readers.gate_stream import open_gate_stream
from muster.stages.gate_settings import GateSettings
from muster.stages.traces import EvaluationRow

SETTINGS = GateSettings.of(
    {"success": [{"key": "x", "min": 1}], "failure": [{"key": "x", "below": 0.5}], "required": 2, "tolerance": 1}
)
READ = GateSource(jsonl="evals.jsonl", step="iter")


def watch(folder: Path, earlier: Callable[[], list[EvaluationRow]] = list) -> WatchedGate:
    stream = open_gate_stream(READ, None, str(folder))
    return WatchedGate("rise", SETTINGS, None, stream, folder / "gates" / "rise.jsonl", str(folder), earlier)


def put(folder: Path, *rows: tuple[int, float], **more: object) -> None:
    with (folder / "evals.jsonl").open("a") as file:
        file.writelines(json.dumps({"iter": at, "x": value, **more}) + "\n" for at, value in rows)


def told(found: GateProgress) -> list[tuple[int, str, int]]:
    return [(each.iteration, each.state, each.phase) for each in found.events]


def known(found: GateProgress, attempt: int = 1) -> GateRecord:
    last = found.events[-1]
    return GateRecord(attempt, last.iteration, last.state, last.phase, last.why)


def test_what_was_told_and_counts_no_more_is_taken_back(tmp_path: Path) -> None:
    put(tmp_path, (1, 1), (2, 1), (3, 0.7))
    watched = watch(tmp_path)
    before = watched.look(False)
    assert told(before) == [(2, "advance", 1)]
    put(tmp_path, (1, 0.7))
    assert unrecorded_gate_events("rise", 1, watched.look(False), known(before)) == ()  # it may still come to it
    put(tmp_path, (2, 0.7), (3, 0.7))
    found = watched.look(False)
    (event,) = unrecorded_gate_events("rise", 1, found, known(before))
    assert (event.iteration, event.state, event.phase) == (3, "hold", 0)
    assert "advance at iteration 2 counts no more" in event.why
    recorded = GateRecord(1, event.iteration, event.state, event.phase)
    assert unrecorded_gate_events("rise", 1, found, recorded) == ()
    put(tmp_path, (4, 1), (5, 1))
    assert [each.iteration for each in unrecorded_gate_events("rise", 1, watched.look(True), recorded)] == [5]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_run_that_went_back_and_opens_elsewhere_stands_there(tmp_path: Path, restarted: bool) -> None:
    put(tmp_path, (1, 0.7), (2, 1), (3, 1))
    watched = watch(tmp_path)
    before = watched.look(False)
    put(tmp_path, (1, 1), (2, 1), (3, 0.7), (4, 0.7))
    found = (watch(tmp_path) if restarted else watched).look(True)
    (event,) = unrecorded_gate_events("rise", 1, found, known(before))
    assert (event.iteration, event.phase) == (2, 1)


def test_files_that_are_gone_take_nothing_back(tmp_path: Path) -> None:
    put(tmp_path, (1, 1), (2, 1))
    recorded = known(watch(tmp_path).look(True))
    (tmp_path / "evals.jsonl").unlink()
    found = watch(tmp_path).look(True)
    assert found.over
    assert unrecorded_gate_events("rise", 1, found, recorded) == ()


def test_each_event_is_told_once_and_none_of_an_older_attempt(tmp_path: Path) -> None:
    put(tmp_path, (1, 1), (2, 1), (3, 0.1), (4, 0.1))
    found = watch(tmp_path).look(True)
    assert told(found) == [(2, "advance", 1), (4, "fall_back", 0)]
    assert unrecorded_gate_events("rise", 1, found, None) == found.events
    assert unrecorded_gate_events("rise", 1, found, GateRecord(1, 2, "advance", 1)) == found.events[1:]
    assert unrecorded_gate_events("rise", 1, found, known(found)) == ()
    assert unrecorded_gate_events("rise", 1, found, GateRecord(2, 1, "advance", 1)) == ()
    assert unrecorded_gate_events("rise", 2, found, known(found)) == found.events


def earlier(*rows: tuple[int, float]) -> Callable[[], list[EvaluationRow]]:
    return lambda: [EvaluationRow(at, {"x": value}) for at, value in rows]


def test_a_run_that_was_resumed_at_its_very_end_stands_where_it_was_left(tmp_path: Path) -> None:
    watched = watch(tmp_path, earlier((1, 1), (2, 1), (3, 0.7)))
    assert told(watched.look(False)) == []
    found = watched.look(True)
    assert (told(found), found.over) == ([(2, "advance", 1)], True)


def test_what_an_earlier_attempt_failed_in_stops_no_later_one(tmp_path: Path) -> None:
    watched = watch(tmp_path, earlier((1, 0.1), (2, 0.1)))
    put(tmp_path, (3, 0.7))
    found = watched.look(False)
    assert (told(found), found.failed) == ([(2, "failure_hold", 0)], None)
    put(tmp_path, (4, 0.1), (5, 0.1))
    failed = watched.look(False).failed
    assert failed is not None
    assert failed.iteration == 5


def test_a_run_that_goes_on_failing_is_stopped_again(tmp_path: Path) -> None:
    watched = watch(tmp_path, earlier((1, 0.1), (2, 0.1)))
    put(tmp_path, (3, 0.1))
    failed = watched.look(False).failed
    assert failed is not None
    assert failed.iteration == 3


def test_rows_of_earlier_attempts_are_read_apart_from_the_loop(tmp_path: Path) -> None:
    def unreadable() -> list[EvaluationRow]:
        raise RuntimeError("whatever an earlier attempt left")

    put(tmp_path, (1, 1), (2, 1))
    watched = watch(tmp_path, unreadable)
    assert watched.look(False) == GateProgress()
    assert watched.look(True).over
    watched.earlier = list
    assert told(watched.look(True)) == [(2, "advance", 1)]  # nothing of the run itself was lost


def test_a_text_that_is_no_unicode_does_not_cost_the_trace(tmp_path: Path) -> None:
    put(tmp_path, (1, 1), (2, 1), note="\ud800")
    watched = watch(tmp_path)
    assert told(watched.look(True)) == [(2, "advance", 1)]
    rows = [json.loads(line) for line in watched.trace.read_text().splitlines()]
    assert [row.get("iteration") for row in rows] == [None, 1, 2]
    assert rows[1]["values"]["note"] == "\ud800"


def test_nothing_is_kept_of_a_run_that_was_read_to_its_end(tmp_path: Path) -> None:
    put(tmp_path, (1, 1), (2, 1))
    watched = watch(tmp_path, earlier((0, 1)))
    watched.look(True)
    assert (watched.rows, watched._before) == ([], None)


class Disk:
    def __init__(self) -> None:
        self.full = True
        self.log: list[Any] = []

    def commit(self, decisions: Sequence[Any]) -> list[Any]:
        if self.full:
            raise OSError(28, "No space left on device")
        self.log += decisions
        return list(decisions)


def test_on_a_full_disk_an_event_is_told_once_all_the_same() -> None:
    disk = Disk()
    heard: list[Any] = []
    gates = ScriptedExtension(Observation([Decision("gate", "controller"), Decision("notice", "controller")]))
    loop: Any = SimpleNamespace(
        extensions=[gates],
        state=None,
        ports=SimpleNamespace(store=disk),
        _absorb=lambda _: None,
        _notify=lambda decisions: heard.extend(each for each in decisions if each.kind == "notice"),
    )
    for _ in range(3):
        with pytest.raises(OSError, match="No space"):
            ControllerLoop._observe(loop, polling=False)
    disk.full = False
    ControllerLoop._observe(loop, polling=False)
    gates.observed = Observation()  # it is recorded
    ControllerLoop._observe(loop, polling=False)
    assert [each.kind for each in disk.log] == ["gate", "notice"]
    assert len(heard) == 1
