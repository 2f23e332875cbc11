"""The budget in `decide`: what may start, what must end, what is told, and when the controller's work is over."""

from __future__ import annotations

from dataclasses import replace

from muster.engine.controller.decide import (
    Action,
    BudgetNotice,
    ControllerView,
    End,
    Fence,
    Settle,
    Start,
    Stop,
    decide,
)
from muster.engine.judge.attempt_verdict import judge_attempt
from muster.engine.plan.cell_standing import standing_of_cell
from muster.engine.plan.scheduling import CellQueue
from muster.engine.ports.executor import Slot
from muster.ledger.budget_forecast import BudgetedRun, BudgetState
from muster.model.attempt import Attempt, CellRecord, Outcome
from muster.model.attempt_snapshot import AttemptSnapshot, ExitRecord, ProcessIdentity, ProofReading
from muster.model.campaign import Axis, AxisValue, Campaign, Job, Money, Slots
from muster.model.campaign_state import CampaignState, Intent
from muster.model.cell import list_campaign_cells
from muster.model.verdict import Cause, VerdictState
from muster.text.phrases import phrase

MONEY = Money(price=3600.0, currency="CNY", budget=100.0)  # one a second
STOP = replace(MONEY, at_cap="stop")
SEEDS = Axis("seed", tuple(AxisValue(str(seed), seed) for seed in range(3)))
TRAIN, EVAL = Job("train", ("seed",), ("true",)), Job("eval", ("seed",), ("true",), needs=("train",))
CPUS = (Slot("cpu0", "cpu"), Slot("cpu1", "cpu"))
IDENTITY = ProcessIdentity("boot", 1, 2, 100, 3, 99, 4, 10.0, 1000.0)
ALIVE = AttemptSnapshot(20.0, "yes", True, IDENTITY, main="alive", shim="alive", shim_locked=True, tree_locked=True)
GONE = replace(ALIVE, main="gone", shim="gone", shim_locked=False, tree_locked=False)
DONE = replace(GONE, exit=ExitRecord(0, None, 1010.0, 30.0, 20.0, orphans=()), proof=ProofReading(True))


def world() -> CampaignState:
    campaign = Campaign("c", (SEEDS,), (TRAIN, EVAL), slots=Slots(gpus=(), cpus=2), money=MONEY)
    records = {cell.id: CellRecord(cell, at) for at, cell in enumerate(list_campaign_cells(campaign))}
    return CampaignState(campaign, "h", "", Intent(), 3, (), records)


def put(state: CampaignState, cell: str, outcome: Outcome | None = None, slot: str = "cpu0") -> None:
    run = Attempt(cell, 1, cell, 3, (slot,), "", "", 5.0, "boot", outcome=outcome)
    state.cells[cell] = replace(state.cells[cell], attempts=(run,))


def purse(spent: float, money: Money = MONEY, **more: object) -> BudgetState:
    return BudgetState(money, 1.0, spent, burning=1.0, **more)  # type: ignore[arg-type]


def see(
    state: CampaignState, budget: BudgetState | None, *, now: float = 50.0, **sightings: AttemptSnapshot
) -> list[Action]:
    agenda = CellQueue(state)
    keyed = {(f"train/{name[1:]}", 1): seen for name, seen in sightings.items()}
    verdicts = {key: judge_attempt(state.cells[key[0]].attempts[0], seen, TRAIN) for key, seen in keyed.items()}
    view = ControllerView(state, agenda.needs, agenda.cells, CPUS, agenda.open, verdicts, keyed, purse=budget)
    return decide(view, now)


def starts(actions: list[Action]) -> list[str]:
    return [action.cell for action in actions if isinstance(action, Start)]


def test_only_what_the_budget_covers_starts() -> None:
    assert starts(see(world(), purse(0, cell_s={"train": 50.0}))) == ["train/0", "train/1"]
    assert starts(see(world(), purse(0, cell_s={"train": 51.0}))) == ["train/0"]
    assert starts(see(world(), purse(60, cell_s={"train": 50.0}))) == []


def test_a_cheaper_cell_may_still_start() -> None:
    state = world()
    put(state, "train/0", Outcome(VerdictState.DONE))
    assert starts(see(state, purse(60, cell_s={"train": 50.0, "eval": 10.0}))) == ["eval/0"]


def test_a_cell_that_the_budget_keeps_is_held_and_says_why() -> None:
    state, short = world(), purse(60, cell_s={"train": 50.0})
    where = standing_of_cell(state.cells["train/0"], state, {}, short)
    assert (where.state, where.startable, where.next) == (
        VerdictState.HELD,
        False,
        phrase("plan.raise_money_budget_run_up_give_cells"),
    )
    assert where.reason == "the budget of 100 CNY does not suffice: 60.00 spent, 110.00 expected with it"
    put(state, "train/1", Outcome(VerdictState.DEAD, Cause("host_reboot"), "the machine rebooted"))
    dead = standing_of_cell(state.cells["train/1"], state, {}, short)
    assert (dead.state, dead.startable) == (VerdictState.DEAD, False)
    assert "retry by itself after host_reboot" in dead.next
    assert "the budget of 100 CNY" in dead.next


def test_when_nothing_more_may_start_the_work_is_over_short() -> None:
    actions = see(world(), purse(60, cell_s={"train": 50.0}))
    end = actions[-1]
    assert isinstance(end, End)
    assert (end.complete, end.reason) == (False, "nothing runs and nothing may start: 3 BLOCKED, 3 HELD")


def test_what_ended_in_this_turn_takes_no_more_of_the_budget() -> None:
    """Its status was lost: until it is settled the till counts it as running for long."""
    state = world()
    put(state, "train/0")
    budget = purse(10, cell_s={"train": 50.0}, runs={("train/0", 1): BudgetedRun(1.0, rest_s=80.0)})
    assert starts(see(state, budget, s0=ALIVE)) == []
    actions = see(state, budget, s0=GONE)
    assert isinstance(actions[0], Settle)
    assert starts(actions) == ["train/0"]  # retried, and with it the budget is all but used up
    assert not any(isinstance(action, End) for action in actions)


def test_at_the_cap_runs_go_on_or_are_stopped_as_declared() -> None:
    state = world()
    put(state, "train/0")
    runs = {("train/0", 1): BudgetedRun(1.0)}
    assert not [a for a in see(state, purse(100, runs=runs), s0=ALIVE) if isinstance(a, Stop)]
    stops = [a for a in see(state, purse(100, STOP, runs=runs), s0=ALIVE) if isinstance(a, Stop)]
    assert [(stop.attempt.cell, stop.cause) for stop in stops] == [("train/0", "budget_stop")]
    unseen = [a for a in see(state, purse(100, STOP, runs=runs)) if isinstance(a, Stop)]
    assert len(unseen) == 1  # nobody waits for the next look at it
    alone = see(state, purse(100, STOP, runs=runs), s0=replace(ALIVE, shim="gone", shim_locked=False))
    assert [stop.shim for stop in (*stops, *unseen, *alone) if isinstance(stop, Stop)] == [True, True, False]
    ended = see(state, purse(100, STOP, runs=runs), s0=DONE)
    assert not [a for a in ended if isinstance(a, Stop)]


def test_a_stop_that_a_person_wants_is_not_called_the_budgets() -> None:
    state = world()
    put(state, "train/0")
    state.cells["train/0"] = replace(state.cells["train/0"], stop_because="enough")
    stops = [
        a
        for a in see(state, purse(100, STOP, runs={("train/0", 1): BudgetedRun(1.0)}), s0=ALIVE)
        if isinstance(a, Stop)
    ]
    assert [stop.cause for stop in stops] == ["user_stop"]


def test_a_claim_that_was_not_started_before_the_budget_was_spent_is_fenced() -> None:
    state = world()
    put(state, "train/0")
    fences = [a for a in see(state, purse(100), s0=AttemptSnapshot(20.0, "no", searched=True)) if isinstance(a, Fence)]
    assert [fence.stop for fence in fences] == [False]


def test_a_budget_stop_is_not_retried_by_itself() -> None:
    state = world()
    put(state, "train/0", Outcome(VerdictState.DEAD, Cause("budget_stop"), "stopped"))
    where = standing_of_cell(state.cells["train/0"], state, {}, purse(0))
    assert (where.state, where.startable) == (VerdictState.DEAD, False)
    assert where.next.startswith("held: it was stopped at the budget; raise money.budget, then `muster retry train/0")


def test_each_level_is_told_once_for_each_budget() -> None:
    state, short = world(), purse(85, cell_s={"train": 50.0})
    told = [action for action in see(state, short) if isinstance(action, BudgetNotice)]
    assert [(tell.level, tell.budget) for tell in told] == [("warn", 100.0), ("no_new_start", 100.0)]
    state.told = frozenset({(100.0, "warn"), (50.0, "no_new_start")})
    assert [tell.level for tell in see(state, short) if isinstance(tell, BudgetNotice)] == ["no_new_start"]
    state.told = frozenset({(100.0, "warn"), (100.0, "no_new_start")})
    assert not [tell for tell in see(state, short) if isinstance(tell, BudgetNotice)]


def test_that_nothing_starts_is_told_only_if_something_could() -> None:
    state = world()
    for seed in range(3):
        put(state, f"train/{seed}", Outcome(VerdictState.DONE))
        put(state, f"eval/{seed}", Outcome(VerdictState.DONE))
    assert [tell.level for tell in see(state, purse(85, cell_s={"train": 50.0})) if isinstance(tell, BudgetNotice)] == [
        "warn"
    ]


def test_how_long_slots_were_held_is_recorded() -> None:
    state = world()
    put(state, "train/0")
    settle = see(state, None, s0=DONE, now=500.0)[0]
    assert isinstance(settle, Settle)
    assert settle.outcome.held_s == 25.0  # claimed at 5, its exit at 30: not until somebody looked
    lost = see(state, None, s0=GONE, now=500.0)[0]
    assert isinstance(lost, Settle)
    assert lost.outcome.held_s == 495.0
