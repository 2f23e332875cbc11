"""A clock that somebody sets makes no bill longer or shorter: within a boot only boot time tells how long it was."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ledger_world import BOOT, HOUR, WALL, attempt, iso, put, world

from muster.app.campaign.campaign_cost import running_turns
from muster.engine.ports.store import LoggedDecision
from muster.engine.store.decision_log import InMemoryDecisionLog
from muster.engine.store.fold_campaign_records import CLOCK_META, parse_clock_record
from muster.engine.store.sql_files import read_json_meta
from muster.engine.store.sqlite_store import SqliteStore
from muster.ledger.billed_spans import all_slot_spans, ledger_time_of
from muster.ledger.prices_and_accounts import declared_prices, first_claim_time, rented_stretches
from muster.ledger.running_cost import RunningCost
from muster.model.calendar import ClockRecord
from muster.model.campaign import Money
from muster.model.campaign_state import CampaignState, FinishRecord, ShutdownProgress
from muster.model.decision import Decision

YEAR = 365 * 86400.0
MACHINE = Money(price=10.0, currency="CNY", per="machine", budget=50.0)
SEEN = ClockRecord({BOOT: WALL}, (BOOT, WALL), BOOT)


def spent(state: CampaignState, wall: float, boot: float, boot_id: str = BOOT) -> float:
    at, declared = ledger_time_of(state, wall, boot, boot_id), declared_prices(state)
    assert declared is not None
    told = RunningCost(state, declared, all_slot_spans(state, at)).purse(at).spent
    on = rented_stretches(state, at, first_claim_time(state))
    assert told == pytest.approx(sum(declared.cost("machine", start, end - start) for start, end in on))
    return told


@pytest.mark.parametrize("since", [None, iso(WALL + HOUR)])
@pytest.mark.parametrize("step", [0.0, YEAR, -YEAR, 3600.0, -3600.0])
def test_a_step_changes_no_bill_of_a_rented_machine(step: float, since: str | None) -> None:
    state = world(replace(MACHINE, since=since))
    state.clock = SEEN
    put(state, attempt("train/0", HOUR))
    assert spent(state, WALL + 3 * HOUR, 3 * HOUR) == pytest.approx(20)
    assert spent(state, WALL + 3 * HOUR + step, 3 * HOUR) == pytest.approx(20)
    later = replace(attempt("train/1", 2 * HOUR), claimed_at=iso(WALL + 2 * HOUR + step))  # claimed by the new clock
    put(state, later)
    assert spent(state, WALL + 3 * HOUR + step, 3 * HOUR) == pytest.approx(20)


@pytest.mark.parametrize("step", [YEAR, -YEAR])
def test_a_step_does_not_look_like_a_machine_that_was_off(step: float) -> None:
    stage = ShutdownProgress("began", iso(WALL + 2 * HOUR), 2 * HOUR, "me", "", boot_id=BOOT)
    state = world(replace(MACHINE, since=iso(WALL)), finish=FinishRecord(stage=stage))
    state.clock = SEEN
    assert spent(state, WALL + 3 * HOUR + step, 3 * HOUR) == pytest.approx(30)
    assert spent(state, WALL + 10 * HOUR, HOUR, "boot-b") == pytest.approx(30)  # off for 7 hours, then on for one


def test_idle_slots_are_counted_by_the_same_calendar() -> None:
    def event(kind: str, boot: float, wall: float, **data: Any) -> LoggedDecision:
        return LoggedDecision(Decision(kind, "me", at=iso(wall), boot=boot, data=data))

    events = [
        event("epoch", 0.0, WALL, boot_id=BOOT),
        event("intent", 10.0, WALL + 10, intent="running"),
        event("hold", 20.0, WALL + 20 + YEAR),
    ]
    assert running_turns(events, SEEN) == [(WALL + 10, "running"), (WALL + 20, "hold")]


# -- what the log says of clocks


def folded(*decisions: Decision) -> ClockRecord:
    store = SqliteStore(Path("/nowhere"), log=InMemoryDecisionLog(), database=":memory:")
    store.commit(list(decisions))
    row = store.db.execute("SELECT value FROM meta WHERE key = ?", (CLOCK_META,)).fetchone()
    store.close()
    return parse_clock_record(row[0] if row else "{}")


def epoch(n: int, boot: float, wall: float, boot_id: str | None = BOOT) -> Decision:
    data = {"epoch": n, "pid": 1} | ({"boot_id": boot_id} if boot_id else {})
    return Decision("epoch", "controller", at=iso(wall), boot=boot, epoch=n, data=data)


def clock(n: int, boot: float, wall: float, boot_id: str = BOOT) -> Decision:
    return Decision("clock", "controller", at=iso(wall), boot=boot, epoch=n, data={"step_s": 1.0, "boot_id": boot_id})


def test_the_first_sight_of_a_boot_makes_its_calendar() -> None:
    found = folded(epoch(1, 5.0, WALL + 5), epoch(2, 9.0, WALL + YEAR + 9))
    assert found.offsets == {BOOT: pytest.approx(WALL)}
    assert found.step(BOOT, 9.0, WALL + 9) == 0.0
    assert found.step(BOOT, 9.0, WALL + YEAR + 9) == pytest.approx(YEAR)  # between two controllers: still to be told
    told = folded(epoch(1, 5.0, WALL + 5), clock(1, 9.0, WALL + YEAR + 9))
    assert told.offsets == {BOOT: pytest.approx(WALL)}
    assert told.step(BOOT, 10.0, WALL + YEAR + 10) == 0.0
    assert told.step(BOOT, 10.0, WALL + 10) == pytest.approx(-YEAR)
    assert told.step("boot-b", 10.0, WALL + 10) == 0.0


def test_a_boot_that_begins_in_the_past_waits_for_its_clock_to_be_set() -> None:
    """A machine whose clock has no battery begins in 1970."""
    begun = (epoch(1, 0.0, WALL), epoch(2, 1.0, 1.0, "boot-b"))
    assert folded(*begun).offsets == {BOOT: pytest.approx(WALL)}
    found = folded(*begun, clock(2, 11.0, WALL + HOUR + 11, "boot-b"))
    assert found.place("boot-b", 20.0, math.nan) == pytest.approx(WALL + HOUR + 20)


def test_a_log_of_an_older_version_says_nothing_of_clocks() -> None:
    found = folded(epoch(1, 0.0, WALL, None))
    assert found == ClockRecord()
    assert found.place(BOOT, 7.0, 99.0) == 99.0


def test_a_price_that_is_declared_by_a_wrong_clock_holds_from_then_on(tmp_path: Path) -> None:
    from muster.engine.store import fold_campaign_records

    store = SqliteStore(tmp_path, log=InMemoryDecisionLog(), database=":memory:")
    store.commit([epoch(1, 0.0, WALL)])
    money = {"price": 2.0, "currency": "CNY"}
    fold_campaign_records.record_prices(
        store.db, Decision("campaign", "me", at=iso(WALL + 60), boot=60.0, data={"money": money})
    )
    dear = {"price": 4.0, "currency": "CNY"}
    late = iso(WALL + YEAR + HOUR)
    fold_campaign_records.record_prices(store.db, Decision("campaign", "me", at=late, boot=HOUR, data={"money": dear}))
    kept = read_json_meta(store.db, fold_campaign_records.PRICES_META)
    store.close()
    assert kept[0]["at"] == iso(WALL + 60)  # as it was written: logs of before fold to the same
    assert kept[1]["at"].startswith(iso(WALL + HOUR)[:19])


@pytest.mark.parametrize("step", [YEAR, -YEAR])
@pytest.mark.parametrize("set_right", [True, False])
def test_a_wrong_clock_that_outlives_a_reboot_bills_no_gap(step: float, set_right: bool) -> None:
    wrong = 0.0 if set_right else step
    found = folded(
        epoch(1, 0.0, WALL), clock(1, 60.0, WALL + 60 + step), epoch(2, 5.0, WALL + HOUR + 5 + wrong, "boot-b")
    )
    assert found.place("boot-b", 5.0, math.nan) == pytest.approx(WALL + HOUR + 5)
