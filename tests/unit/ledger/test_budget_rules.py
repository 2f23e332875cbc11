"""What may start, what must end, what is to come."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger_world import HOUR, attempt, now, put, world

from muster.app.campaign.spending import completed_run_lengths
from muster.engine.judge.run_evidence import progress_rate, seconds_to_checkpoint
from muster.engine.judge.signal_history import SignalHistory, SignalPulse
from muster.ledger.billed_spans import all_slot_spans
from muster.ledger.budget_forecast import (
    BudgetedRun,
    BudgetState,
    ForecastInterval,
    ProgressRate,
    forecast_cells,
    forecast_remaining_work,
    full_run_lengths,
    remaining_seconds,
)
from muster.ledger.prices_and_accounts import declared_prices
from muster.ledger.running_cost import CoveredTime, RunningCost
from muster.model.campaign import Job, Money, Slots, SlotUse

MONEY = Money(price=3600.0, currency="CNY", budget=100.0)  # one a second
ONE, TWO = ("train/0", 1), ("train/1", 1)


def purse(spent: float, *, money: Money = MONEY, **more: object) -> BudgetState:
    return BudgetState(money, 1.0, spent, burning=1.0, **more)  # type: ignore[arg-type]


# -- starting


def test_a_cell_starts_while_what_runs_and_it_together_stay_within_the_budget() -> None:
    runs = {ONE: BudgetedRun(1.0, rest_s=30.0)}
    assert purse(40, runs=runs, cell_s={"train": 30.0}).refuses("train") is None
    refused = purse(40.1, runs=runs, cell_s={"train": 30.0}).refuses("train")
    assert refused == "the budget of 100 CNY does not suffice: 40.10 spent, 100.10 expected with it"


def test_of_a_job_nobody_knows_the_first_cells_start_while_there_is_money() -> None:
    assert purse(99.0).refuses("train") is None
    assert purse(40, runs={ONE: BudgetedRun(1.0, 60.0)}).refuses("train") is not None  # what runs takes all of it
    assert purse(100.0).refuses("train") == "the budget of 100 CNY is spent: 100.00"


def test_several_starts_in_one_turn_are_all_counted() -> None:
    at = purse(0, cell_s={"train": 40.0})
    assert at.started("train").refuses("train") is None
    assert at.started("train").started("train").refuses("train") is not None


def test_a_rented_machine_pays_for_the_longest_of_what_runs() -> None:
    rent = replace(MONEY, per="machine")
    at = purse(0, money=rent, runs={ONE: BudgetedRun(1.0, 80.0), TWO: BudgetedRun(1.0, 90.0)}, cell_s={"train": 95.0})
    assert at.expected() == 90
    assert at.started("train").expected("train") == 95
    assert at.refuses("train") is None


def test_no_budget_refuses_nothing() -> None:
    assert purse(1e9, money=replace(MONEY, budget=None), cell_s={"train": 1e9}).refuses("train") is None


# -- telling


def test_levels_are_told_in_their_order() -> None:
    assert purse(79.9).findings(refused=False) == []
    assert [level for level, _ in purse(80).findings(refused=False)] == ["warn"]
    assert purse(80).findings(refused=False)[0][1] == "80 % of the budget: 80.00 of 100 CNY spent"
    assert [level for level, _ in purse(101).findings(refused=True)] == ["warn", "no_new_start", "at_cap"]
    assert (purse(10).level(refused=True), purse(10).level(refused=False)) == ("no_new_start", "fine")


# -- ending


STOP = replace(MONEY, at_cap="stop")


def test_at_the_cap_everything_ends_or_nothing_does() -> None:
    runs = {ONE: BudgetedRun(1.0), TWO: BudgetedRun(1.0)}
    assert purse(100, money=STOP, runs=runs).to_stop(()) == ([ONE, TWO], "the budget of 100 CNY is spent: 100.00")
    assert purse(100, money=STOP, runs=runs).to_stop({ONE})[0] == [TWO]
    assert purse(100, runs=runs).to_stop(())[0] == []  # at_cap: hold
    assert purse(100, money=STOP, runs=runs, outdated=True).to_stop(())[0] == []  # some of them may have ended
    assert purse(99.9, money=STOP, runs=runs).to_stop(())[0] == []


def test_a_run_that_can_not_save_again_is_stopped_after_the_checkpoint_it_has() -> None:
    soon, late = BudgetedRun(1.0, rest_s=500.0, checkpoint_s=9.0), BudgetedRun(1.0, rest_s=500.0, checkpoint_s=11.0)
    assert purse(90, money=STOP, runs={ONE: soon}).to_stop(())[0] == []
    assert purse(90, money=STOP, runs={ONE: late}).to_stop(())[0] == [ONE]
    ends_before = replace(late, rest_s=9.0)
    unknown = replace(late, rest_s=None)
    assert purse(90, money=STOP, runs={ONE: ends_before, TWO: unknown}).to_stop(())[0] == []


def test_one_at_a_time_so_that_the_rest_may_come_to_a_checkpoint() -> None:
    runs = {ONE: BudgetedRun(1.0, 500.0, 15.0), TWO: BudgetedRun(1.0, 500.0, 12.0)}
    at = replace(purse(80, money=STOP, runs=runs), burning=2.0)
    assert at.left_s() == 10
    assert at.to_stop(())[0] == [ONE]
    assert at.left_s({ONE}) == 20
    assert at.to_stop({ONE})[0] == []  # what it leaves carries the other one on


def test_a_budget_lasts_for_ever_while_nothing_runs() -> None:
    assert math.isinf(replace(purse(1), burning=0.0).left_s())


# -- the till of a campaign


def test_the_till_knows_what_runs_and_what_one_more_costs() -> None:
    jobs = [Job("train", ("seed",), ("true",), steps=100), Job("eval", ("seed",), ("true",), uses=SlotUse(gpu=0))]
    state = world(replace(MONEY, price=2.0), jobs)
    put(state, attempt("train/0", 0, ran=100.0))
    put(state, attempt("train/1", 0, ["gpu1.0"], ran=300.0))
    put(state, attempt("train/2", 100))
    put(state, attempt("train/3", 300, ["gpu1.0"]))
    declared = declared_prices(state)
    assert declared
    till = RunningCost(state, declared, all_slot_spans(state, now(400)))
    found = till.purse(now(400))
    assert found.spent == pytest.approx(2 * (100 + 300 + 300 + 100) / HOUR)
    assert found.cell_s == {"train": 200.0}
    assert (found.runs["train/2", 1].rest_s, found.runs["train/3", 1].rest_s) == (None, 100)  # one is older than all
    till.foresee({("train/2", 1): (ProgressRate(300.0, 75, 100, 0.25), 20.0)}, now(400))
    found = till.purse(now(410))
    assert (found.runs["train/2", 1].rest_s, found.runs["train/2", 1].checkpoint_s) == (90, 10)
    till.ended({("train/2", 1): 310.0})
    later = till.purse(now(2410))
    assert list(later.runs) == [("train/3", 1)]
    assert later.spent == pytest.approx(2 * (100 + 300 + 310 + 2110) / HOUR)  # the ended one pays no more


def test_where_none_has_finished_running_siblings_tell_how_long_one_takes() -> None:
    state = world(MONEY)
    put(state, attempt("train/0", 0))
    declared = declared_prices(state)
    assert declared
    till = RunningCost(state, declared, all_slot_spans(state, now(50)))
    assert till.purse(now(50)).cell_s == {}
    till.foresee({("train/0", 1): (ProgressRate(50.0, 25, 100, 0.5), None)}, now(50))
    assert till.purse(now(50)).cell_s == {"train": 200.0}


def test_what_ended_on_a_shared_gpu_is_not_paid_twice_before_it_is_recorded() -> None:
    state = world(MONEY, slots=Slots(gpus=(0,), per_gpu=2))
    put(state, attempt("train/0", 0, ["gpu0.0"]))
    put(state, attempt("train/1", 0, ["gpu0.1"]))
    declared = declared_prices(state)
    assert declared
    till = RunningCost(state, declared, all_slot_spans(state, now(100)))
    till.ended({("train/0", 1): 90.0})
    assert till.purse(now(100)).spent == pytest.approx(100)
    till.ended({("train/1", 1): 95.0})
    assert till.purse(now(100)).spent == pytest.approx(95)


def test_a_claim_without_a_lease_is_not_paid() -> None:
    state = world(MONEY)
    put(state, attempt("train/0", 0))
    declared = declared_prices(state)
    assert declared
    till = RunningCost(state, declared, all_slot_spans(state, now(500)))
    till.begun({("train/0", 1): 300.0})
    assert till.purse(now(500)).spent == pytest.approx(200)
    till.begun({("train/0", 1): 0.0})
    assert till.purse(now(500)).spent == pytest.approx(500)


def test_what_a_person_accepts_tells_how_long_a_cell_takes() -> None:
    state = world(MONEY)
    put(state, attempt("train/0", 0, ran=100.0, cause="exit_code"))
    declared = declared_prices(state)
    assert declared
    till = RunningCost(state, declared, all_slot_spans(state, now(500)))
    assert till.purse(now(500)).cell_s == {}
    put(state, replace(state.cells["train/0"].attempts[0], accepted="fine"))
    till.add([state.cells["train/0"]], now(500))
    found = till.purse(now(500))
    assert (found.cell_s, found.spent) == ({"train": 100.0}, pytest.approx(100))


def test_a_completed_cell_that_is_no_longer_declared_still_tells_how_long_one_takes() -> None:
    state = world(MONEY)
    put(state, attempt("train/0", 0, ran=100.0), declared=False)
    declared = declared_prices(state)
    assert declared
    till = RunningCost(state, declared, all_slot_spans(state, now(100)))
    assert till.purse(now(100)).cell_s == {"train": 100.0}
    assert completed_run_lengths(tuple(all_slot_spans(state, now(100)))) == {
        "train": [100.0]
    }  # the forecast rests on the same
    till.add([state.cells["train/0"]], now(100))
    found = till.purse(now(100))
    assert (found.cell_s, found.spent) == ({"train": 100.0}, pytest.approx(100))  # once, however often it is told
    tight = replace(found, money=replace(found.money, budget=150.0))
    assert tight.refuses("train") == "the budget of 150 CNY does not suffice: 100.00 spent, 200.00 expected with it"


def test_a_share_of_a_gpu_costs_its_part() -> None:
    state = world(MONEY, slots=Slots(gpus=(0,), per_gpu=2))
    put(state, attempt("train/0", 0, ran=100.0))
    put(state, attempt("train/1", 100, ["gpu0.0"]))
    put(state, attempt("train/2", 100, ["gpu0.1"]))
    declared = declared_prices(state)
    assert declared
    found = RunningCost(state, declared, all_slot_spans(state, now(150))).purse(now(150))
    assert found.spent == pytest.approx(150)  # one GPU, all the time
    assert (found.burning, found.cell_s["train"]) == (1.0, 50.0)
    assert found.expected() == pytest.approx(150 + 2 * 25)


# -- what is to come


def test_the_rest_of_a_run_by_its_own_pace_then_by_its_siblings() -> None:
    assert remaining_seconds(ProgressRate(10.0, 20, 100, 4.0), 1000.0, 2000.0) == 20
    assert remaining_seconds(ProgressRate(10.0), 30.0, 90.0) == 20
    assert remaining_seconds(ProgressRate(40.0), 30.0, 90.0) == 50  # later than usual: then as the longest
    assert remaining_seconds(ProgressRate(91.0), 30.0, 90.0) is None
    assert remaining_seconds(ProgressRate(91.0)) is None
    assert full_run_lengths([ProgressRate(10.0, 20, 100, 4.0), ProgressRate(1.0)]) == [30.0]


def test_one_sibling_says_little_and_many_say_more() -> None:
    assert forecast_cells([], 3) is None
    assert forecast_cells([100.0], 2) == ForecastInterval(100, 200, 400)
    few, many = forecast_cells([90.0, 110.0], 4), forecast_cells([90.0, 110.0] * 10, 4)
    assert few
    assert many
    assert few.mid == many.mid == 400
    assert few.high - few.low > many.high - many.low
    assert few.low >= 360  # no sibling was ever shorter


@given(st.lists(st.floats(1, 1000), min_size=2, max_size=30), st.integers(1, 50))
def test_an_interval_holds_its_middle(durations: list[float], count: int) -> None:
    found = forecast_cells(durations, count)
    assert found
    assert found.low <= found.mid <= found.high
    assert found.mid == pytest.approx(statistics.median(durations) * count)


def test_unknown_jobs_are_named() -> None:
    found = forecast_remaining_work(
        {"train": 2, "eval": 4}, {"train": [10.0, 10.0]}, [("train", 5.0), ("eval", None)], {"train": 2.0, "eval": 0}
    )
    assert (found.billed.mid, found.unknown, found.cells, found.longest_s) == (50, ("eval",), 8, 5)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=20))
def test_what_is_covered_twice_is_new_once(stretches: list[tuple[int, int]]) -> None:
    cover, seen = CoveredTime(), set[int]()
    for start, end in stretches:
        new = {second for a, b in cover.add(start, end) for second in range(int(a), int(b))}
        asked = set(range(start, end))
        assert new == asked - seen
        seen |= asked
        assert {second for a, b in cover.gaps(0, 60) for second in range(int(a), int(b))} == set(range(60)) - seen


# -- the pace of a living run


def history(**pulses: SignalPulse) -> SignalHistory:
    return SignalHistory(0.0, 100.0, 0.0, 0.0, pulses=pulses)


def test_the_pace_is_measured_from_the_first_advance_so_that_a_resumed_run_is_not_fast() -> None:
    resumed = SignalPulse("m", "jsonl", True, 90.0, count=900.0, advanced=90.0, origin=(800.0, 40.0))
    assert progress_rate(history(m=resumed), 100.0, 1000) == ProgressRate(100.0, 900.0, 1000, 2.0)
    once = SignalPulse("m", "jsonl", True, 90.0, count=900.0, advanced=90.0, origin=(900.0, 90.0))
    assert progress_rate(history(m=once), 100.0, 1000).speed is None
    assert progress_rate(None, 100.0, 1000, step=7.0) == ProgressRate(100.0, 7.0, 1000)


def test_the_next_checkpoint_comes_after_its_usual_gap() -> None:
    saves = SignalPulse("c", "checkpoint", False, 90.0, count=3.0, advanced=90.0)
    assert seconds_to_checkpoint(history(c=saves), 100.0) is None  # no rhythm is known
    for gap in (50.0, 60.0, 60.0):
        saves.cadence.learn(gap)
    assert seconds_to_checkpoint(history(c=saves), 100.0) == 50
    assert seconds_to_checkpoint(history(c=saves), 500.0) == 0
    assert (
        seconds_to_checkpoint(history(c=SignalPulse("c", "checkpoint", False, 0.0, every_s=30.0)), 100.0) is None
    )  # none saved
