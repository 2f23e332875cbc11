"""Every second that is paid for is in exactly one account."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger_world import BOOT, HOUR, WALL, adopted, attempt, iso, now, put, world

from muster.ledger.billed_spans import (
    LEASE_GONE_S,
    LedgerTime,
    all_slot_spans,
    held_seconds,
    kind_of_waste,
    seconds_without_lease,
)
from muster.ledger.prices_and_accounts import (
    Ledger,
    build_ledger,
    campaign_running_stretches,
    declared_prices,
    first_claim_time,
    idle_slot_hours,
    rented_stretches,
)
from muster.ledger.running_cost import RunningCost
from muster.model.attempt import Outcome
from muster.model.attempt_snapshot import AttemptSnapshot, ExitRecord, ProcessIdentity
from muster.model.campaign import Job, Money, Slots, SlotUse
from muster.model.campaign_state import CampaignState, FinishRecord, ShutdownProgress
from muster.model.verdict import VerdictState

PER_GPU = Money(price=2.0, currency="CNY")
MACHINE = Money(price=10.0, currency="CNY", per="machine", since=iso(WALL))


def book(state: CampaignState, at: LedgerTime) -> Ledger:
    return build_ledger(
        tuple(all_slot_spans(state, at)), declared_prices(state), rented_stretches(state, at, first_claim_time(state))
    )


def test_an_hour_of_each_kind() -> None:
    state = world(PER_GPU)
    put(state, attempt("train/0", 0, ran=HOUR, lead=36, tail=72))
    put(state, attempt("train/1", 0, ["gpu1.0"], ran=2 * HOUR, cause="oom_kill"),
        attempt("train/1", 2 * HOUR, ["gpu1.0"], 2, ran=HOUR))  # fmt: skip
    put(state, attempt("train/2", 2 * HOUR, ran=HOUR, cause="user_stop"))
    put(state, attempt("train/3", 3 * HOUR, ["gpu0.0"]))
    money = book(state, now(3.5 * HOUR)).money
    assert money is not None
    assert (money.productive, money.running, money.idle) == (pytest.approx(4), pytest.approx(1), 0)
    assert money.by_cause == {"oom_kill": pytest.approx(4), "user_stop": pytest.approx(2)}
    assert money.overhead == pytest.approx(2 * 108 / HOUR)
    assert [kind_of_waste(cause) for cause in money.by_cause] == ["died", "stopped"]


def test_without_a_price_there_are_hours_only() -> None:
    state = world()
    put(state, attempt("train/0", 0, ran=HOUR))
    found = book(state, now(HOUR))
    assert found.money is None
    assert (found.hours.productive, found.gpu_hours) == (1, 1)


def test_two_runs_on_one_gpu_share_its_price() -> None:
    state = world(PER_GPU, slots=Slots(gpus=(0,), per_gpu=2))
    put(state, attempt("train/0", 0, ["gpu0.0"], ran=2 * HOUR))
    put(state, attempt("train/1", HOUR, ["gpu0.1"], ran=2 * HOUR, cause="signal"))
    found = book(state, now(4 * HOUR))
    assert found.money is not None
    assert found.gpu_hours == pytest.approx(3)
    assert found.slot_hours == pytest.approx(4)
    assert (found.money.productive, found.money.wasted) == (pytest.approx(3), pytest.approx(3))  # 1.5 h each


def test_several_gpus_of_one_run_are_all_paid() -> None:
    state = world(PER_GPU, [Job("train", ("seed",), ("true",), uses=SlotUse(gpu=2))])
    put(state, attempt("train/0", 0, ["gpu0.0", "gpu1.0"], ran=HOUR))
    found = book(state, now(HOUR))
    assert (found.money.total if found.money else 0) == pytest.approx(4)
    assert found.gpu_hours == pytest.approx(2)


def test_cpu_slots_are_billed_only_where_there_is_no_gpu() -> None:
    for slots, job, cost in (
        (Slots(gpus=(), cpus=2), Job("train", ("seed",), ("true",), uses=SlotUse(cpu=2)), 4.0),
        (Slots(gpus=None, cpus=2), Job("train", ("seed",), ("true",)), 4.0),  # auto, and no GPU was found
        (Slots(gpus=None, cpus=2), Job("train", ("seed",), ("true",), uses=SlotUse(gpu=0)), 0.0),
        (Slots(gpus=(0,), cpus=2), Job("train", ("seed",), ("true",), uses=SlotUse(gpu=0, cpu=2)), 0.0),
    ):
        state = world(PER_GPU, [job], slots=slots)
        put(state, attempt("train/0", 0, ["cpu0", "cpu1"], ran=HOUR))
        found = book(state, now(HOUR))
        assert (found.money.total if found.money else 0) == pytest.approx(cost), (slots, job.uses)
        assert found.gpu_hours == 0


def test_a_done_cell_that_is_no_longer_declared_is_superseded() -> None:
    state = world(PER_GPU)
    put(state, attempt("train/0", 0, ran=HOUR), declared=False)
    found = book(state, now(HOUR)).money
    assert found is not None
    assert found.by_cause == {"superseded": pytest.approx(2)}
    assert kind_of_waste("superseded") == "superseded"


def test_what_a_person_accepted_is_productive() -> None:
    state = world(PER_GPU)
    put(state, replace(attempt("train/0", 0, ran=HOUR, cause="exit_code"), accepted="it is fine"))
    found = book(state, now(HOUR)).money
    assert found is not None
    assert (found.productive, found.wasted) == (pytest.approx(2), 0)


def test_what_never_ran_is_overhead() -> None:
    state = world(PER_GPU)
    died = attempt("train/0", 0, ran=0.0, cause="never_started")
    assert died.outcome
    put(state, replace(died, outcome=replace(died.outcome, started=None, ended=None, duration_s=None, held_s=30.0)))
    found = book(state, now(HOUR)).money
    assert found is not None
    assert (found.overhead, found.wasted) == (pytest.approx(2 * 30 / HOUR), 0)


def test_adopted_runs_of_a_job_that_needs_no_gpu_here_held_none() -> None:
    state = world(slots=Slots())
    put(state, adopted("train/0", WALL - 1e6, HOUR))
    assert book(state, now(0)).gpu_hours == pytest.approx(1.0), "nothing tells"
    put(state, attempt("train/1", 0.0, ("cpu0",), ran=HOUR))
    assert book(state, now(2 * HOUR)).gpu_hours == 0.0


def test_adopted_runs_count_by_their_files() -> None:
    """17 runs of 1.68 h explain 28.5 h, not 200 yuan."""
    state = world(replace(PER_GPU, price=1.98, paid=200), seeds=17)
    for seed in range(17):
        put(state, adopted(f"train/{seed}", WALL - 1e6 + seed, 1.68 * HOUR))
    found = book(state, now(0))
    assert (found.adopted, found.adopted_hours) == (17, pytest.approx(28.56))
    assert (found.gpu_hours, found.adopted_money) == (pytest.approx(28.56), pytest.approx(56.5488))
    assert (found.money.total if found.money else 0) == pytest.approx(56.5488)


# -- a rented machine


def test_a_rented_machine_is_paid_whatever_runs() -> None:
    state = world(MACHINE)
    put(state, attempt("train/0", HOUR, ran=2 * HOUR))
    put(state, attempt("train/1", 2 * HOUR, ["gpu1.0"], ran=2 * HOUR, cause="signal"))
    found = book(state, now(6 * HOUR))
    money, hours = found.money, found.hours
    assert money is not None
    assert (hours.idle, hours.productive, hours.wasted) == (pytest.approx(3), pytest.approx(1.5), pytest.approx(1.5))
    assert money.total == pytest.approx(60)
    assert found.gpu_hours == pytest.approx(4)


def test_a_machine_without_since_is_paid_from_the_first_start() -> None:
    state = world(replace(MACHINE, since=None))
    assert rented_stretches(state, now(HOUR), first_claim_time(state)) == []
    put(state, attempt("train/0", HOUR, ran=HOUR))
    found = book(state, now(4 * HOUR)).money
    assert (found.total if found else 0) == pytest.approx(30)


def test_a_machine_that_was_shut_down_is_not_paid_while_it_is_off() -> None:
    stage = ShutdownProgress("began", iso(WALL + 2 * HOUR), 2 * HOUR, "me", "")
    state = world(MACHINE, finish=FinishRecord(stage=stage))
    still_on = now(2.5 * HOUR)
    assert rented_stretches(state, still_on, None) == [(WALL, still_on.wall)]
    on_again = LedgerTime(WALL + 10 * HOUR, HOUR, "boot-b")  # switched on an hour ago
    assert rented_stretches(state, on_again, None) == [
        (WALL, WALL + 2 * HOUR),
        (pytest.approx(WALL + 9 * HOUR), WALL + 10 * HOUR),
    ]


# -- prices


def test_a_changed_price_does_not_change_what_was_spent() -> None:
    dearer = replace(PER_GPU, price=4.0)
    state = world(dearer, prices=((iso(WALL - 5), PER_GPU), (iso(WALL + HOUR), dearer)))
    put(state, attempt("train/0", 0, ran=3 * HOUR))
    found = book(state, now(3 * HOUR)).money
    assert (found.productive if found else 0) == pytest.approx(2 + 8)


def test_what_ran_before_a_price_was_declared_costs_the_first_one() -> None:
    state = world(PER_GPU, prices=((iso(WALL + HOUR), PER_GPU),))
    put(state, attempt("train/0", 0, ran=HOUR))
    found = book(state, now(HOUR)).money
    assert (found.total if found else 0) == pytest.approx(2)


def test_from_gpus_to_a_machine() -> None:
    later = replace(MACHINE, since=iso(WALL))
    state = world(later, prices=((iso(WALL - 5), PER_GPU), (iso(WALL + HOUR), later)))
    put(state, attempt("train/0", 0, ran=2 * HOUR))
    found = book(state, now(3 * HOUR)).money
    assert found is not None
    assert found.productive == pytest.approx(2 + 10)
    assert found.idle == pytest.approx(10)


# -- ends that nobody saw


IDENTITY = ProcessIdentity(BOOT, 1, 2, 3, 4, 5, 6, boot=105.0, at=WALL + 105)


def test_a_span_ends_when_its_reaper_saw_that_nothing_was_left() -> None:
    run = attempt("train/0", 100)
    ended = AttemptSnapshot(900.0, "yes", True, IDENTITY, ExitRecord(0, None, WALL + 400, 400.0, 295.0, orphans=()))
    assert held_seconds(run, ended, 900.0) == 300
    lingering = replace(ended, exit=ExitRecord(0, None, WALL + 400, 400.0, 295.0, orphans=(7,)), tree_locked=True)
    assert held_seconds(run, lingering, 900.0) is None  # its tree still has the slot
    assert held_seconds(run, replace(lingering, tree_locked=False), 900.0) == 800


def test_a_span_with_orphans_ends_when_its_shim_saw_the_last_one_go() -> None:
    run = attempt("train/0", 100)
    ended = AttemptSnapshot(
        900.0, "yes", True, IDENTITY, ExitRecord(0, None, WALL + 400, 400.0, 295.0, orphans=(7,)), freed=450.0
    )
    assert held_seconds(run, ended, 900.0) == 350
    assert held_seconds(run, replace(ended, tree_locked=True), 900.0) is None  # another one got away from the shim
    assert held_seconds(run, replace(ended, tree_locked=True), 900.0, over=True) == 800  # DONE: the slot is let go now
    assert held_seconds(run, replace(ended, freed=None), 900.0) == 800


def test_a_run_whose_end_nobody_saw_held_its_slots_until_somebody_looked() -> None:
    lost = AttemptSnapshot(900.0, "yes", True, IDENTITY, main="gone")
    assert held_seconds(attempt("train/0", 100), lost, 900.0) is None
    assert held_seconds(attempt("train/0", 100), lost, 900.0, over=True) == 800
    elsewhere = replace(lost, host="restarted", tree_locked=True)
    assert held_seconds(attempt("train/0", 100), elsewhere, 900.0) is None  # it lives, in another container


def test_a_claim_that_nobody_starts_has_no_lease() -> None:
    """A controller died between the claim and the launch; another one came an hour later."""
    run = attempt("train/0", 100)
    late = replace(IDENTITY, boot=100 + HOUR, at=WALL + 100 + HOUR)
    ended = AttemptSnapshot(0.0, "yes", True, late, ExitRecord(0, None, 0.0, 200 + HOUR, 100.0, orphans=()))
    assert held_seconds(run, ended, 9e9) == pytest.approx(100 + LEASE_GONE_S)
    assert held_seconds(run, AttemptSnapshot(0.0, "revoked"), 100 + HOUR, over=True) == LEASE_GONE_S
    assert seconds_without_lease(run, AttemptSnapshot(0.0, "no"), 100 + HOUR) == HOUR - LEASE_GONE_S
    assert (
        seconds_without_lease(run, AttemptSnapshot(0.0, "unread"), 100 + HOUR) == 0
    )  # what can't be read may have started long ago


def test_after_a_reboot_a_span_ends_with_its_last_sign() -> None:
    run = attempt("train/0", 100)
    lost = AttemptSnapshot(30.0, "yes", True, IDENTITY, host="rebooted", last_sign=WALL + 500)
    assert held_seconds(run, lost, 30.0) == pytest.approx(400)
    assert held_seconds(run, replace(lost, last_sign=None), 30.0) == pytest.approx(5)  # until it started at least
    assert held_seconds(run, AttemptSnapshot(30.0, "no", host="rebooted"), 30.0) == 0


@pytest.mark.parametrize("jump", [-HOUR, HOUR])
def test_a_wall_clock_that_jumped_between_claim_and_start_is_not_billed(jump: float) -> None:
    run, jumped = attempt("train/0", 100), replace(IDENTITY, at=WALL + 105 + jump)
    lost = AttemptSnapshot(900.0, "yes", True, jumped, host="restarted", last_sign=WALL + 500 + jump)
    assert held_seconds(run, lost, 900.0) == pytest.approx(400)
    assert held_seconds(run, replace(lost, last_sign=None), 900.0) == pytest.approx(5)
    assert held_seconds(run, replace(lost, host="rebooted"), 30.0) == pytest.approx(400)


def test_in_the_same_boot_no_span_is_longer_than_since_its_claim() -> None:
    """The clock jumped while it ran: what its files say can't be."""
    lost = AttemptSnapshot(900.0, "yes", True, IDENTITY, host="restarted", last_sign=WALL + 500 + HOUR)
    assert held_seconds(attempt("train/0", 100), lost, 900.0) == pytest.approx(800)


def test_a_start_in_another_boot_than_its_claim_is_told_by_the_wall_clock() -> None:
    run, other = attempt("train/0", 100), replace(IDENTITY, boot_id="later", boot=5.0)
    lost = AttemptSnapshot(900.0, "yes", True, other, host="restarted", last_sign=WALL + 500)
    assert held_seconds(run, lost, 30.0) == pytest.approx(400)
    assert held_seconds(run, replace(lost, last_sign=None), 30.0) == pytest.approx(5)


def test_an_open_attempt_of_another_boot_costs_nothing_until_somebody_has_looked() -> None:
    state = world(PER_GPU)
    put(state, attempt("train/0", 0, boot_id="long ago"))
    assert next(iter(all_slot_spans(state, now(9 * HOUR)))).held_s == 0
    assert next(iter(all_slot_spans(state, now(9 * HOUR), {("train/0", 1): HOUR}))).held_s == HOUR


def test_a_log_that_does_not_say_how_long_slots_were_held() -> None:
    state = world(PER_GPU)
    old = attempt("train/0", 0, ran=HOUR, lead=36)
    assert old.outcome
    put(state, replace(old, outcome=replace(old.outcome, held_s=None)))
    put(state, replace(attempt("train/1", 0), outcome=Outcome(VerdictState.DEAD, ended=WALL + HOUR, started=WALL)))
    found = list(all_slot_spans(state, now(HOUR)))
    assert [each.held_s for each in found] == [pytest.approx(HOUR + 36), pytest.approx(HOUR)]


# -- idle slots


def test_idle_slots_are_counted_while_the_campaign_runs() -> None:
    state = world(PER_GPU)
    put(state, attempt("train/0", 0, ran=HOUR))
    put(state, attempt("train/1", 2 * HOUR, ran=2 * HOUR))
    turns = [
        (WALL - 10, "running"),
        (WALL + 2.5 * HOUR, "hold"),
        (WALL + 3 * HOUR, "release"),
        (WALL + 4 * HOUR, "end"),
    ]
    stretches = campaign_running_stretches(turns, now(9 * HOUR))
    assert len(stretches) == 2
    # gpu0 is free from 1 h to 2 h, gpu1 all the time but for the half hour of the hold
    assert idle_slot_hours(tuple(all_slot_spans(state, now(9 * HOUR))), state.campaign, stretches) == pytest.approx(
        1 + 3.5
    )
    assert idle_slot_hours((), state.campaign, stretches) == 0


# -- what must hold for every campaign


PIECES = st.lists(
    st.tuples(
        st.integers(0, 3),  # slot
        st.floats(0, 200), st.floats(0, 5), st.floats(0, 100), st.floats(0, 5),  # pause before, lead, ran, tail
        st.sampled_from([None, "signal", "user_stop", "exit_code", "never_started"]),
        st.booleans(),  # on the machine's second boot
    ),
    min_size=1, max_size=12,
)  # fmt: skip


def made(pieces: list[tuple[int, float, float, float, float, str | None, bool]], money: Money) -> CampaignState:
    """Attempts one after the other on each slot; two slots share a GPU."""
    state = world(money, seeds=len(pieces), slots=Slots(gpus=(0, 1), per_gpu=2))
    at: dict[tuple[int, bool], float] = {}
    for seed, (slot, pause, lead, ran, tail, cause, second) in enumerate(pieces):
        start = at.get((slot, second), 10.0) + pause
        at[slot, second] = start + lead + ran + tail
        run = attempt(f"train/{seed}", start, [f"gpu{slot % 2}.{slot // 2}"], lead=lead, ran=ran, tail=tail, cause=cause,
                      boot_id="boot-b" if second else BOOT)  # fmt: skip
        put(state, run)
    return state


def union(stretches: list[tuple[float, float]]) -> float:
    """Independent of the code under test: points are sorted, and each gap is asked whether somebody covers it."""
    points = sorted({point for stretch in stretches for point in stretch})
    return sum(b - a for a, b in itertools.pairwise(points) if any(start <= a and b <= end for start, end in stretches))


@given(PIECES)
def test_the_accounts_add_up_to_what_the_gpus_were_held(
    pieces: list[tuple[int, float, float, float, float, str | None, bool]],
) -> None:
    state = made(pieces, PER_GPU)
    at = now(1e6)
    found = book(state, at)
    places: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for each in all_slot_spans(state, at):
        places.setdefault((each.boot_id, each.units[0]), []).append((each.boot, each.boot + each.held_s))
    seconds = sum(map(union, places.values()))
    assert found.money is not None
    assert found.money.total == pytest.approx(seconds / HOUR * 2.0, rel=1e-9, abs=1e-9)
    assert found.hours.total == pytest.approx(seconds / HOUR, rel=1e-9, abs=1e-9)
    assert sum(found.money.by_cause.values()) == pytest.approx(found.money.wasted, rel=1e-9, abs=1e-9)
    declared = declared_prices(state)
    assert declared
    assert RunningCost(state, declared, all_slot_spans(state, at)).purse(at).spent == pytest.approx(
        found.money.total, rel=1e-9, abs=1e-9
    )


@given(PIECES, st.floats(0, 500), st.floats(0, 2000))
def test_a_machine_is_paid_by_the_hour_and_every_second_is_somewhere(
    pieces: list[tuple[int, float, float, float, float, str | None, bool]], since: float, until: float
) -> None:
    state = made(pieces, replace(MACHINE, since=iso(WALL + since)))
    found = book(state, now(until)).money
    billed = max(0.0, until - round(since, 3))
    assert found is not None
    assert found.total == pytest.approx(billed / HOUR * 10, abs=1e-4)  # `since` is told to the millisecond


@given(PIECES, st.data())
def test_a_till_that_is_asked_on_the_way_comes_to_the_same(
    pieces: list[tuple[int, float, float, float, float, str | None, bool]], data: st.DataObject
) -> None:
    """Attempts are started and settled one by one, in any order that can happen; what it says never falls."""
    whole = made(pieces, PER_GPU)
    declared = declared_prices(whole)
    assert declared
    state = world(PER_GPU, seeds=len(pieces), slots=Slots(gpus=(0, 1), per_gpu=2))
    till = RunningCost(state, declared, [])
    for cell, record in whole.cells.items():
        last = record.last
        assert last
        if data.draw(st.booleans()):
            state.cells[cell] = replace(record, attempts=(replace(last, outcome=None),))
            till.add([state.cells[cell]], now(last.claimed_boot))
        state.cells[cell] = record
        till.add([record], now(1e6))
    at = now(1e6)
    total = book(whole, at).money
    assert total is not None
    assert till.purse(at).spent == pytest.approx(total.total, rel=1e-9, abs=1e-9)
    assert till.purse(at).runs == {}
