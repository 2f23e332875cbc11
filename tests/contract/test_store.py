"""What every store promises: decisions in, the state out, and no rule broken whoever asks."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from store_world import CELLS, World, about, epoch, intent, settle

from muster.engine.ports.store import ControllerSuperseded
from muster.engine.store.decision_log import FileDecisionLog
from muster.engine.store.sqlite_store import SqliteStore
from muster.files import campaign_snapshots
from muster.files.json_codec import encode_json_bytes
from muster.model.campaign import Axis, AxisValue, Campaign, Job
from muster.model.decision import Decision
from muster.model.errors import MusterError


@pytest.fixture(params=["disk", "memory"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "state", request.param)
    yield made
    made.store.close()


@pytest.fixture
def running(world: World) -> World:
    world.begin()
    return world


# -- reading what was written


def test_before_anything_there_is_nothing(world: World) -> None:
    assert world.store.load() is None
    assert world.store.events() == []
    assert world.store.epoch_now() == 0
    assert not world.store.behind()


def test_all_cells_are_rows_from_the_first_moment(running: World) -> None:
    state = running.store.load()
    assert state is not None
    assert [record.cell.id for record in state.declared] == list(CELLS)
    assert [record.position for record in state.declared] == [0, 1, 2]
    assert [record.hash for record in state.declared] == [f"h1-{cell}" for cell in CELLS]
    assert state.intent.kind == "running"
    assert state.env_file == "/env"


def test_a_campaign_alone_starts_nothing(world: World) -> None:
    assert world.one(world.campaign()) is None
    state = world.store.load()
    assert state is not None
    assert state.intent.kind == "down"
    assert "down" in (world.one(world.start()) or "")


def test_an_attempt_from_claim_to_verdict(running: World) -> None:
    assert running.one(running.start()) is None
    (record,) = running.store.records(["train/a"])
    assert record.open is not None
    assert (record.open.n, record.open.slots, record.open.boot_id) == (1, ("cpu0",), "b")
    assert running.one(settle("DONE", reason="exit 0")) is None
    (record,) = running.store.records(["train/a"])
    assert record.open is None
    assert record.completed is not None
    assert record.completed.outcome is not None
    assert record.completed.outcome.reason == "exit 0"


def test_events_tell_who_decided_what_and_what_became_of_it(running: World) -> None:
    running.one(Decision("note", "me", "seen", "train/a", ref="r1"))
    running.one(Decision("retry", "me", "again", "train/a", ref="r2"))
    kinds = [(event.decision.kind, bool(event.void)) for event in running.store.events("train/a")]
    assert kinds == [("note", False), ("retry", True)]
    assert [event.decision.kind for event in running.store.events()] == ["campaign", "intent", "note", "retry"]
    kept, refused = running.store.became_of("r1"), running.store.became_of("r2")
    assert kept is not None
    assert kept.void is None
    assert refused is not None
    assert "not run yet" in (refused.void or "")
    assert running.store.became_of("r3") is None


# -- the rules of attempts


def test_one_open_attempt_per_cell(running: World) -> None:
    running.one(running.start())
    assert running.one(running.start(n=2, cause="impatience"))
    assert running.one(running.start())
    (record,) = running.store.records(["train/a"])
    assert len(record.attempts) == 1


def test_two_starts_in_one_commit_give_one_attempt(running: World) -> None:
    first, second = running.decide(running.start(), running.start())
    assert first is None
    assert second is not None


def test_no_retry_without_a_cause(running: World) -> None:
    running.decide(running.start(), settle("DEAD"))
    assert "retry_cause" in (running.one(running.start(n=2)) or "")
    assert running.one(running.start(n=2, cause="exit_code(1)")) is None


def test_attempts_are_numbered_without_a_gap(running: World) -> None:
    assert "does not follow" in (running.one(running.start(n=2, cause="x")) or "")
    running.decide(running.start(), settle("DEAD"))
    assert "does not follow" in (running.one(running.start(n=3, cause="x")) or "")


@pytest.mark.parametrize("second", ["DONE", "DEAD"])
@pytest.mark.parametrize("first", ["DONE", "DEAD"])
def test_a_verdict_is_written_once(running: World, first: str, second: str) -> None:
    running.decide(running.start(), settle(first, reason="the first"))
    assert "once" in (running.one(settle(second, reason="the second")) or "")
    (record,) = running.store.records(["train/a"])
    outcome = record.attempts[0].outcome
    assert outcome is not None
    assert (outcome.verdict, outcome.reason) == (first, "the first")


def test_no_verdict_without_an_attempt(running: World) -> None:
    assert "no such attempt" in (running.one(settle("DONE")) or "")


def test_done_is_never_started_again(running: World) -> None:
    running.decide(running.start(), settle("DONE"))
    assert "DONE" in (running.one(running.start(n=2, cause="again")) or "")
    assert "DONE" in (running.one(running.adopt(n=2, cause="again")) or "")


def test_a_cell_that_is_not_declared_is_not_started(running: World) -> None:
    assert "no such cell" in (running.one(running.start("train/z")) or "")


def test_a_token_is_used_once(running: World) -> None:
    start = running.start()
    twin = Decision("start", "x", "", "train/b", 1, None, "at", 1.0, start.data)
    assert running.decide(start, twin)[1]


# -- intents


def test_held_refuses_starts_whoever_asks(running: World) -> None:
    assert running.one(about("hold", None, "look, do not touch")) is None
    assert "look, do not touch" in (running.one(running.start()) or "")
    assert "held" in (running.one(intent("running")) or "")
    assert running.one(about("release", None)) is None
    assert running.one(running.start()) is None


def test_release_returns_to_what_was_before(running: World) -> None:
    running.decide(about("hold", None), intent("down"), about("release", None))
    state = running.store.load()
    assert state is not None
    assert state.intent.kind == "down"


def test_a_second_hold_does_not_forget_what_was_before(running: World) -> None:
    running.decide(about("hold", None, "one"), about("hold", None, "two"), about("release", None))
    state = running.store.load()
    assert state is not None
    assert state.intent.kind == "running"


def test_only_what_is_held_can_be_released(running: World) -> None:
    assert "not held" in (running.one(about("release", None)) or "")


def test_down_refuses_starts_and_keeps_what_is_open(running: World) -> None:
    running.decide(running.start("train/a"), intent("down"))
    assert "down" in (running.one(running.start("train/b")) or "")
    assert running.one(settle("DONE")) is None


# -- epochs


def test_what_an_old_epoch_decided_is_refused(running: World) -> None:
    running.decide(epoch(1), epoch(2))
    assert "epoch 1" in (running.one(running.start(epoch=1)) or "")
    assert running.one(running.start(epoch=2)) is None
    assert "epoch 1" in (running.one(settle("DEAD", epoch=1)) or "")


def test_an_epoch_is_taken_once(running: World) -> None:
    assert running.one(epoch(3)) is None
    assert running.one(epoch(3)) is not None
    assert running.one(epoch(2)) is not None
    assert running.store.epoch_now() == 3


def test_a_controller_that_was_superseded_ends(tmp_path: Path) -> None:
    world = World(tmp_path / "state", "disk")
    world.begin()
    world.one(epoch(1))
    world.store.epoch = 1
    newer = world.open()
    newer.commit([epoch(2)])
    with pytest.raises(ControllerSuperseded):
        world.store.commit([world.start(epoch=1)])
    # what it had written down comes to nothing, whoever folds it
    committed = newer.commit([])
    assert [event.void for event in committed.seen] == ["decided in epoch 1, the campaign is in epoch 2"]
    newer.close()
    world.store.close()


def test_a_person_needs_no_epoch(running: World) -> None:
    running.one(epoch(7))
    assert running.one(about("note")) is None


# -- a person's decisions


def test_retry(running: World) -> None:
    assert "not run yet" in (running.one(about("retry")) or "")
    running.one(running.start())
    assert "running" in (running.one(about("retry")) or "")
    running.one(settle("DEAD"))
    assert running.one(about("retry", reason="fixed")) is None
    (record,) = running.store.records(["train/a"])
    assert record.retry_because == "fixed"
    running.one(running.start(n=2, cause="exit_code(1); fixed"))
    (record,) = running.store.records(["train/a"])
    assert record.retry_because is None
    running.one(settle("DONE", n=2))
    assert "DONE" in (running.one(about("retry")) or "")


def test_giveup_and_taking_up_again(running: World) -> None:
    assert running.one(about("giveup", reason="not worth it")) is None
    assert "given up" in (running.one(running.start()) or "")
    assert running.one(about("retry")) is None
    assert running.one(running.start()) is None
    assert "running" in (running.one(about("giveup")) or "")
    running.one(settle("DONE"))
    assert "DONE" in (running.one(about("giveup")) or "")


def test_accept(running: World) -> None:
    assert "no attempt" in (running.one(about("accept", attempt=1)) or "")
    running.one(running.start())
    assert "running" in (running.one(about("accept", attempt=1)) or "")
    running.one(settle("DEAD"))
    assert "no attempt 2" in (running.one(about("accept", attempt=2)) or "")
    assert running.one(about("accept", reason="proof holds", attempt=1)) is None
    (record,) = running.store.records(["train/a"])
    assert record.done
    assert record.completed is not None
    assert record.completed.accepted == "proof holds"
    assert "DONE" in (running.one(about("accept", attempt=1)) or "")
    assert running.one(running.start(n=2, cause="x"))


def test_stop(running: World) -> None:
    assert "not running" in (running.one(about("stop")) or "")
    running.one(running.start())
    assert running.one(about("stop", reason="enough")) is None
    assert running.store.records(["train/a"])[0].stop_because == "enough"
    running.one(settle("DEAD", kind="user_stop"))
    assert running.store.records(["train/a"])[0].stop_because is None
    assert "not running" in (running.one(about("stop")) or "")


def test_a_stop_is_not_forgotten_when_the_attempt_dies_of_something_else(running: World) -> None:
    running.decide(running.start(), about("stop", reason="enough"), settle("DEAD", kind="host_reboot"))
    assert running.store.records(["train/a"])[0].stop_because == "enough"
    refusal = running.one(running.start(n=2, cause="host_reboot"))
    assert refusal == "a stop was asked for: enough; `muster retry` lets it start again"
    assert running.one(about("retry", reason="after all")) is None
    assert running.store.records(["train/a"])[0].stop_because is None
    assert running.one(running.start(n=2, cause="host_reboot; after all")) is None
    assert running.store.records(["train/a"])[0].stop_because is None  # and the new attempt is not stopped


@pytest.mark.parametrize("last", [settle("DONE"), settle("DEAD", kind="user_stop")])
def test_a_stop_is_over_when_it_was_obeyed_or_came_too_late(running: World, last: Decision) -> None:
    running.decide(running.start(), about("stop"), last)
    assert running.store.records(["train/a"])[0].stop_because is None


@pytest.mark.parametrize("kind", ["giveup", "accept"])
def test_giving_up_and_accepting_end_a_stop(running: World, kind: str) -> None:
    running.decide(running.start(), about("stop"), settle("DEAD"), about(kind, attempt=1))
    assert running.store.records(["train/a"])[0].stop_because is None


@pytest.mark.parametrize("kind", ["retry", "giveup", "accept", "stop"])
def test_nothing_is_decided_about_a_cell_that_does_not_exist(running: World, kind: str) -> None:
    assert "no such cell" in (running.one(about(kind, "train/z", attempt=1)) or "")


def test_an_adopted_run_is_done(world: World) -> None:
    world.one(world.campaign())
    assert world.one(world.adopt()) is None  # whatever the intent: nothing starts by it
    (record,) = world.store.records(["train/a"])
    assert record.done
    assert record.attempts[0].adopted
    assert "not declared" in (world.one(world.campaign("bc")) or world.one(world.adopt("train/a", 2, "x")) or "")


def test_a_refused_run_is_known_until_it_is_taken_in_after_all(world: World) -> None:
    world.one(world.campaign())
    run = {"path": "/runs/old", "started": 10.0, "ended": 70.0}
    refuse = Decision("refuse", "me", "no proof", "train/a", None, None, "at", 1.0, run)
    assert world.one(refuse) is None
    assert "cell" in (world.one(replace(refuse, cell="train/none")) or "")
    state = world.store.load()
    assert state is not None
    assert [(each.path, each.duration_s, each.reason) for each in state.refused] == [("/runs/old", 60.0, "no proof")]
    taken = world.adopt()
    assert world.one(replace(taken, data={**taken.data, "path": "/runs/old"})) is None
    after = world.store.load()
    assert after is not None
    assert after.refused == ()


# -- spans


def spans(world: World) -> list[tuple[str, str | None, float | None]]:
    rows = sorted(world.dump()["span"].values(), key=lambda row: (row["cell"], row["attempt"]))
    return [(row["cell"], row["ended_at"], row["ended_boot"]) for row in rows]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"ended_boot": 5.0, "ended_at": "then"}, ("train/a", "then", 5.0)),
        ({"ended_boot": 5.0}, ("train/a", "recorded", 5.0)),
        ({"ended_boot": None}, ("train/a", "recorded", None)),
        ({}, ("train/a", "recorded", None)),
        ({"ended_boot": 0.5, "ended_at": "then"}, ("train/a", "then", None)),  # before it began: of another boot
        ({"ended_boot": 5.0, "boot_id": "b"}, ("train/a", "recorded", 5.0)),
        ({"ended_boot": 5.0, "boot_id": "another"}, ("train/a", "recorded", None)),
        ({"ended_boot": 5.0, "held_until_boot": 7.0, "ended_at": "then"}, ("train/a", "then", 7.0)),  # by orphans
    ],
)
def test_a_span_ends_when_its_slot_was_let_go(
    running: World, said: dict[str, object], expected: tuple[str, str, float | None]
) -> None:
    running.one(running.start())
    data = {"outcome": {"verdict": "DEAD", "cause": {"kind": "unknown"}}, **said}
    assert running.one(Decision("settle", "controller", "", "train/a", 1, None, "recorded", 9.0, data)) is None
    assert spans(running) == [expected]


def test_a_start_closes_what_is_still_open_on_its_slot(running: World) -> None:
    running.one(running.start("train/a"))
    assert spans(running) == [("train/a", None, None)]
    later = replace(running.start("train/b"), at="later", boot=3.0)
    assert running.one(later) is None  # never refused for a span that nobody closed
    assert spans(running) == [("train/a", "later", None), ("train/b", None, None)]
    running.one(settle("DEAD", "train/a"))  # closed once
    assert spans(running) == [("train/a", "later", None), ("train/b", None, None)]
    recovered = running.start("train/c")
    assert running.one(replace(recovered, data={**recovered.data, "recovered": True})) is None
    assert spans(running)[1:] == [("train/b", None, None), ("train/c", None, None)]  # it may be the older one
    assert running.dump() == running.refolded()


# -- another text


def test_a_withdrawn_cell_stays_and_does_not_start(running: World) -> None:
    running.decide(running.start("train/a"), settle("DONE"))
    assert running.one(running.campaign("bcd")) is None
    state = running.store.load()
    assert state is not None
    assert [record.cell.id for record in state.declared] == ["train/b", "train/c", "train/d"]
    assert state.cells["train/a"].done
    assert not state.cells["train/a"].declared
    assert "no longer declared" in (running.one(running.campaign("cd")) or running.one(running.start("train/b")) or "")


def test_a_new_text_ends_the_filter_and_keeps_verdicts(running: World) -> None:
    running.decide(running.start(), settle("DONE"))
    running.one(Decision("filter", "me", data={"only": [{"config": ["a"]}]}))
    state = running.store.load()
    assert state is not None
    assert state.only == ({"config": ("a",)},)
    running.one(running.campaign("abc", version=2))
    state = running.store.load()
    assert state is not None
    assert state.only == ()
    assert state.cells["train/a"].hash == "h2-train/a"
    assert state.cells["train/a"].completed is not None
    assert state.cells["train/a"].completed.hash == "h"


@pytest.mark.parametrize("held", [True, False])
def test_what_comes_with_up_is_refused_as_a_whole_while_held(running: World, held: bool) -> None:
    running.one(Decision("filter", "me", data={"only": [{"config": ["a"]}]}))
    before = running.store.load()
    text = running.campaign("bcd")
    batch = [
        replace(text, data={**text.data, "with_up": True}),
        Decision("filter", "me", data={"only": [{"config": ["b"]}], "with_up": True}),
        intent("running"),
    ]
    if held:
        running.store.append(about("hold", None, "look"))  # between our look and our decision
    assert running.decide(*batch) == ["the campaign is held: look" if held else None] * 3
    after = running.store.load()
    assert before is not None
    assert after is not None
    assert ((after.campaign_hash, after.only) == (before.campaign_hash, before.only)) is held


# -- the log


@pytest.mark.parametrize("text", ["x\udcff", "\ud800", "no \udcff\udcfe bytes \udc80"])
def test_text_that_is_no_unicode_is_spelled_out_and_never_raises(running: World, text: str) -> None:
    spelled = text.encode("utf-8", "backslashreplace").decode()
    running.store.append(Decision("note", text, text, "train/a", data={text: [text, {"k": (text, 1, None)}]}, ref="r1"))
    running.one(running.start())
    assert running.one(settle("DONE", reason=text)) is None
    note = running.store.events("train/a")[0].decision
    assert (note.who, note.reason, note.data) == (spelled, spelled, {spelled: [spelled, {"k": [spelled, 1, None]}]})
    (record,) = running.store.records(["train/a"])
    assert record.completed is not None
    assert record.completed.outcome is not None
    assert record.completed.outcome.reason == spelled
    assert running.dump() == running.refolded()


def test_a_campaign_with_text_that_is_no_unicode_can_be_taken_in(world: World) -> None:
    axis = Axis("config", (AxisValue("a", "\udcff"),))
    made = Campaign("c\udcff", (axis,), (Job("train", ("config",), ("true", "{config}")),))
    name = campaign_snapshots.save_snapshot(world.folder, "text \udcff", made, {"train/a": "h"})
    assert world.one(Decision("campaign", "me", data={"hash": name, "env_file": ""})) is None
    state = world.store.load()
    assert state is not None
    assert state.campaign.axes[0].values[0].value == "\\udcff"


def test_the_same_decision_twice_counts_once(running: World) -> None:
    running.decide(running.start(), settle("DEAD"))
    asked = Decision("retry", "me", "again", "train/a", ref="r1")
    assert running.decide(asked, running.start(n=2, cause="again"), settle("DEAD", n=2), asked, asked) == [
        None, None, None, "the same decision twice", "the same decision twice"
    ]  # fmt: skip
    became = running.store.became_of("r1")
    assert became is not None
    assert became.void is None
    assert running.store.records(["train/a"])[0].retry_because is None
    assert running.dump() == running.refolded()


@pytest.mark.parametrize("outcome", [3, "DEAD", {"verdict": "DEAD", "cause": "text"}, {}])
def test_a_settlement_that_makes_no_sense_is_refused_and_not_raised(running: World, outcome: object) -> None:
    running.one(running.start())
    assert running.one(Decision("settle", "x", "", "train/a", 1, data={"outcome": outcome}))
    assert running.store.records(["train/a"])[0].open


def test_an_append_takes_effect_when_somebody_folds(running: World) -> None:
    running.store.append(running.start())
    assert running.store.behind()
    assert running.store.records(["train/a"])[0].attempts == ()
    committed = running.store.commit([])
    assert [event.decision.kind for event in committed.seen] == ["start"]
    assert not running.store.behind()
    assert running.store.records(["train/a"])[0].open


def test_the_order_of_the_log_decides(running: World) -> None:
    """What somebody appended earlier is folded earlier, and refusals are told only to their author."""
    running.store.append(about("hold", None, "first"))
    committed = running.store.commit([running.start()])
    assert [event.decision.kind for event in committed.seen] == ["hold", "start"]
    assert [refusal.decision.kind for refusal in committed.refused] == ["start"]
    running.store.append(running.start())
    committed = running.store.commit([about("release", None)])
    assert committed.refused == ()
    assert [bool(event.void) for event in committed.seen] == [True, False]


def test_a_crash_between_log_and_database_loses_nothing(running: World) -> None:
    running.store.append(running.start())
    running.store.append(settle("DONE"))
    fresh = running.reopen()
    fresh.commit([])
    (record,) = fresh.records(["train/a"])
    assert record.done
    assert running.dump() == running.refolded()


def test_another_process_sees_the_same(running: World) -> None:
    running.decide(running.start(), settle("DEAD"), about("giveup", "train/b"))
    before = running.dump()
    fresh = running.reopen()
    fresh.commit([])
    assert running.dump() == before


# -- only on disk: what a crash can leave in the file


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "state", "disk")
    made.begin()
    yield made
    made.store.close()


@pytest.mark.parametrize("torn", [b'{"kind":"hold","who":"x"', b"\x00\x00\x00", b"{", b'{"kind":"hold","who":"x"}'])
def test_a_torn_last_line_never_took_effect(disk: World, torn: bytes) -> None:
    log = disk.folder / "decisions.jsonl"
    whole = log.read_bytes()
    log.write_bytes(whole + torn)
    fresh = disk.reopen()
    assert not fresh.behind()
    assert disk.one(disk.start()) is None  # the next append cuts it off
    assert log.read_bytes().startswith(whole + b'{"kind":"start"')
    assert torn in (disk.folder / "decisions.torn").read_bytes()
    assert disk.dump() == disk.refolded()


def test_a_broken_line_in_the_middle_is_named_and_not_skipped(disk: World) -> None:
    with open(disk.folder / "decisions.jsonl", "ab") as log:
        log.write(b"\rgarbage\r\n")
    with pytest.raises(MusterError, match="muster fsck"):
        disk.store.commit([])
    with pytest.raises(MusterError, match="muster fsck"):
        disk.store.behind()


def test_a_log_that_lost_its_end_is_noticed(disk: World) -> None:
    log = disk.folder / "decisions.jsonl"
    log.write_bytes(log.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(MusterError, match=r"shorter.*muster fsck"):
        disk.open()


@pytest.mark.parametrize("bytes_", [b"garbage" * 100, b"SQLite format 3\x00" + b"\xff" * 4096])
def test_a_damaged_database_is_named(disk: World, bytes_: bytes) -> None:
    disk.store.close()
    (disk.folder / "campaign.db").write_bytes(bytes_)
    for suffix in ("-wal", "-shm"):
        (disk.folder / f"campaign.db{suffix}").unlink(missing_ok=True)
    with pytest.raises(MusterError, match=r"campaign\.db is damaged: run `muster fsck`"):
        disk.open()


@pytest.mark.parametrize("left", [(), ("-wal",), ("-wal", "-shm")])
def test_a_deleted_database_is_folded_again(disk: World, left: tuple[str, ...]) -> None:
    disk.decide(disk.start(), settle("DEAD"), disk.start("train/b"))
    before = disk.dump()
    kept = {suffix: (disk.folder / f"campaign.db{suffix}").read_bytes() for suffix in left}
    disk.store.close()
    (disk.folder / "campaign.db").unlink()
    for suffix, data in kept.items():
        (disk.folder / f"campaign.db{suffix}").write_bytes(data)
    disk.store = disk.open()
    assert disk.store.behind()
    disk.store.commit([])
    assert disk.dump() == before


@pytest.mark.parametrize("deleted", [("",), ("", "-wal", "-shm")])
def test_a_database_that_is_deleted_under_its_controller_is_made_anew_by_whoever_comes(
    disk: World, deleted: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.decide(disk.start(), settle("DEAD"), disk.start("train/b"))
    before = disk.dump()
    controller = disk.store
    controller.epoch = controller.epoch_now()
    for suffix in deleted:
        (disk.folder / f"campaign.db{suffix}").unlink()
    disk.store = disk.open()
    disk.store.commit([])
    assert disk.dump() == before
    for seconds in (60, 0):
        monkeypatch.setattr("muster.engine.store.sqlite_store.DELETING_S", seconds)
        with pytest.raises(OSError, match="deleted or replaced"):
            controller.commit([epoch(7)])
    disk.store.close()
    disk.store = controller
    assert disk.dump() == before
    assert not controller.behind()
    assert not controller.commit([]).seen


@pytest.mark.parametrize("left", [b"", b'{"kind":"epoch"'])
def test_a_controller_whose_log_is_deleted_begins_no_new_one(disk: World, left: bytes) -> None:
    disk.decide(disk.start())
    disk.store.epoch = disk.store.epoch_now()
    log = disk.folder / "decisions.jsonl"
    log.unlink()
    if left:
        log.write_bytes(left)
    with pytest.raises(ControllerSuperseded, match=r"decisions\.jsonl was deleted or cut"):
        disk.store.commit([settle("DEAD")])
    assert (log.read_bytes() if log.exists() else b"") == left


# -- only on disk: the log is durable before the database


class Disk:
    """What of the log a power cut would leave: counted at each fsync of it."""

    def __init__(self, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log, self.synced, self.count = log, 0, 0
        real = os.fsync

        def fsync(fd: int) -> None:
            real(fd)
            if os.path.samestat(os.fstat(fd), log.stat()):
                self.synced, self.count = log.stat().st_size, self.count + 1

        monkeypatch.setattr(os, "fsync", fsync)

    def write(self, decision: Decision) -> None:
        """As another process that has written its line and not synced it."""
        with open(self.log, "ab") as file:
            file.write(encode_json_bytes(decision) + b"\n")


@pytest.fixture
def unsynced(disk: World, monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(disk.folder / "decisions.jsonl", monkeypatch)


def applied(world: World) -> int:
    return int(world.store.db.execute("SELECT value FROM meta WHERE key = 'applied'").fetchone()[0])


def test_a_commit_syncs_the_log_once(disk: World, unsynced: Disk) -> None:
    disk.store.commit([disk.start(), settle("DEAD")])
    assert unsynced.count == 1
    disk.store.commit([])
    assert unsynced.count == 1  # nothing new: nothing to sync
    unsynced.write(about("note"))
    disk.store.commit([])
    assert unsynced.count == 2
    assert applied(disk) == unsynced.synced


def test_only_what_is_durable_is_folded(disk: World, unsynced: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody writes a line right after our append, and right after our sync: it waits for the next commit."""
    append, sync = FileDecisionLog.append, FileDecisionLog.sync

    def late(method: Callable[..., Any]) -> Callable[..., Any]:
        def then(*args: Any) -> Any:
            found = method(*args)
            unsynced.write(about("note", reason="late"))
            return found

        return then

    monkeypatch.setattr(FileDecisionLog, "append", late(append))
    seen = disk.store.commit([disk.start()]).seen
    assert [event.decision.kind for event in seen] == ["start"]
    assert applied(disk) == unsynced.synced
    monkeypatch.setattr(FileDecisionLog, "append", append)
    monkeypatch.setattr(FileDecisionLog, "sync", late(sync))
    assert [event.decision.kind for event in disk.store.commit([]).seen] == ["note"]
    assert applied(disk) == unsynced.synced
    monkeypatch.setattr(FileDecisionLog, "sync", sync)
    assert [event.decision.kind for event in disk.store.commit([]).seen] == ["note"]
    assert not disk.store.behind()
    assert disk.dump() == disk.refolded()


def test_a_log_that_is_being_written_is_not_folded(disk: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its writer may yet take the line back: the database would have seen more than there is."""
    monkeypatch.setattr("muster.engine.store.decision_log.LOCK_PATIENCE_S", 0.01)
    fd = disk.log.open_locked()  # type: ignore[attr-defined]
    os.write(fd, encode_json_bytes(about("note")) + b"\n")
    with pytest.raises(BlockingIOError):
        disk.store.commit([])
    os.close(fd)
    assert len(disk.store.commit([]).seen) == 1


def test_where_nothing_can_be_written_the_log_is_read(disk: World, monkeypatch: pytest.MonkeyPatch) -> None:
    disk.store.append(disk.start())

    def refuse(_: FileDecisionLog) -> int:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(FileDecisionLog, "open_locked", refuse)
    found = SqliteStore.of_log(disk.folder)
    assert found.records(["train/a"])[0].open
    found.close()


# -- only on disk: trouble has one form


class Broken:
    """A connection whose disk fails."""

    in_transaction = False

    def execute(self, *_: object) -> Any:
        raise sqlite3.OperationalError("disk I/O error")


@pytest.mark.parametrize(
    "ask",
    [
        lambda store: store.records(["train/a"]),
        lambda store: store.load(),
        lambda store: store.became_of("r"),
        lambda store: store.events(),
        lambda store: store.epoch_now(),
        lambda store: store.behind(),
        lambda store: store.commit([]),
        lambda store: store.commit([about("note")]),
    ],
)
def test_trouble_with_the_disk_is_an_os_error(disk: World, ask: Callable[[SqliteStore], object]) -> None:
    whole, disk.store.db = disk.store.db, Broken()  # type: ignore[assignment]
    with pytest.raises(OSError, match=r"campaign\.db: disk I/O error"):
        ask(disk.store)
    disk.store.db = whole


def test_a_database_that_can_not_be_opened_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"campaign\.db"):
        SqliteStore(tmp_path, database=str(tmp_path / "nowhere" / "campaign.db"))
