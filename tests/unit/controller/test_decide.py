"""decide is pure: a view in, actions out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from muster.engine.controller.decide import (
    Action,
    ControllerView,
    End,
    Fence,
    Nudge,
    Relaunch,
    Settle,
    Start,
    Stop,
    decide,
)
from muster.engine.judge.attempt_verdict import judge_attempt
from muster.engine.plan.scheduling import CellQueue
from muster.engine.ports.executor import Slot
from muster.engine.ports.extension import StopRequest
from muster.model.attempt import Attempt, CellRecord, Outcome
from muster.model.attempt_snapshot import AttemptSnapshot, ExitRecord, ProcessIdentity, ProofReading
from muster.model.campaign import Axis, AxisValue, Campaign, Job, Slots, SlotUse
from muster.model.campaign_state import CampaignState, Intent
from muster.model.cell import list_campaign_cells
from muster.model.verdict import Cause, VerdictState

SEEDS = Axis("seed", (AxisValue("0", 0), AxisValue("1", 1), AxisValue("2", 2)))
TRAIN = Job("train", ("seed",), ("true",), timeout_s=100.0)
EVAL = Job("eval", ("seed",), ("true",), needs=("train",))
CPUS = (Slot("cpu0", "cpu"), Slot("cpu1", "cpu"))
IDENTITY = ProcessIdentity("boot", 1, 2, 100, 3, 99, 4, 10.0, 1000.0)
ALIVE = AttemptSnapshot(20.0, "yes", True, IDENTITY, main="alive", shim="alive", shim_locked=True, tree_locked=True)
DONE = replace(ALIVE, main="gone", exit=ExitRecord(0, None, 1010.0, 30.0, 20.0, orphans=()), proof=ProofReading(True))


def world(jobs: Sequence[Job] = (TRAIN, EVAL), intent: Intent | None = None) -> CampaignState:
    campaign = Campaign("c", (SEEDS,), tuple(jobs), slots=Slots(gpus=(), cpus=2))
    records = {cell.id: CellRecord(cell, at) for at, cell in enumerate(list_campaign_cells(campaign))}
    return CampaignState(campaign, "h", "", intent or Intent(), 3, (), records)


def attempt(cell: str, n: int = 1, slot: str = "cpu0", outcome: Outcome | None = None) -> Attempt:
    cause = None if n == 1 else "signal(9)"
    return Attempt(cell, n, f"{cell}{n}", 3, (slot,), "", "", 5.0, "boot", cause, outcome=outcome)


def put(state: CampaignState, *attempts: Attempt, **changes: object) -> None:
    record = state.cells[attempts[0].cell]
    state.cells[attempts[0].cell] = replace(record, attempts=attempts, **changes)  # type: ignore[arg-type]


def see(
    state: CampaignState, sightings: dict[str, AttemptSnapshot] | None = None, now: float = 50.0, **more: object
) -> list[Action]:
    agenda = CellQueue(state)
    keyed = {state.cells[cell].open.key: seen for cell, seen in (sightings or {}).items()}  # type: ignore[union-attr]
    verdicts = {
        key: judge_attempt(state.cells[key[0]].open, seen, state.campaign.job(state.cells[key[0]].cell.job))  # type: ignore[arg-type]
        for key, seen in keyed.items()
    }
    view = ControllerView(state, agenda.needs, agenda.cells, CPUS, agenda.open, verdicts, keyed)
    return decide(replace(view, **more), now)  # type: ignore[arg-type]


def dead(kind: str, note: str = "why") -> Outcome:
    return Outcome(VerdictState.DEAD, Cause(kind, note=note), note)


def test_starts_as_many_as_there_are_slots_and_only_what_needs_nothing() -> None:
    starts = see(world())
    assert [(s.cell, s.n, s.slots) for s in starts if isinstance(s, Start)] == [
        ("train/0", 1, ("cpu0",)),
        ("train/1", 1, ("cpu1",)),
    ]


def test_a_settled_need_starts_its_follower_in_the_same_turn() -> None:
    state = world()
    for cell in ("train/1", "train/2"):
        put(state, attempt(cell, outcome=Outcome(VerdictState.DONE)))
    put(state, attempt("train/0"))
    actions = see(state, {"train/0": DONE})
    assert isinstance(actions[0], Settle)
    assert {a.cell for a in actions if isinstance(a, Start)} == {"eval/0", "eval/1"}


def test_a_slot_that_others_hold_is_not_used_and_keeps_the_controller_waiting() -> None:
    actions = see(world(), taken=frozenset({"cpu0", "cpu1"}))
    assert actions == []


def test_held_starts_nothing_even_after_a_retry() -> None:
    state = world(intent=Intent("held", "look only"))
    put(state, attempt("train/0", outcome=dead("signal")), retry_because="fixed")
    actions = see(state)
    assert not [a for a in actions if isinstance(a, Start)]
    assert isinstance(actions[-1], End)


def test_a_retry_carries_its_cause() -> None:
    state = world()
    put(state, attempt("train/0", outcome=dead("signal")), retry_because="fixed")
    start = next(a for a in see(state) if isinstance(a, Start) and a.cell == "train/0")
    assert start.n == 2
    assert start.retry_cause == "signal; a person asked: fixed"


def test_what_is_retried_by_itself_and_how_often() -> None:
    for kind, times in (("never_started", 3), ("host_reboot", 3), ("container_restart", 3), ("unknown", 1), ("signal", 0),
                        ("exit_code", 0), ("early_exit", 0), ("user_stop", 0), ("timeout", 0)):  # fmt: skip
        tried = 0
        state = world(jobs=(TRAIN,))
        attempts: list[Attempt] = []
        while True:
            attempts.append(attempt("train/0", len(attempts) + 1, outcome=dead(kind)))
            put(state, *attempts)
            if not any(isinstance(a, Start) and a.cell == "train/0" for a in see(state)):
                break
            tried += 1
        assert (kind, tried) == (kind, times)


def test_a_command_that_can_not_be_executed_is_not_retried_by_itself() -> None:
    state = world(jobs=(TRAIN,))
    put(state, attempt("train/0", outcome=dead("never_started", "the command could not be executed: No such file")))
    assert not [a for a in see(state) if isinstance(a, Start) and a.cell == "train/0"]


def test_complete_artifacts_are_never_run_again_by_themselves() -> None:
    state = world(jobs=(TRAIN,))
    outcome = replace(dead("never_started"), note="artifacts complete")
    put(state, attempt("train/0", outcome=outcome))
    assert not [a for a in see(state) if isinstance(a, Start) and a.cell == "train/0"]


def test_a_changed_definition_lets_a_held_cell_start() -> None:
    state = world(jobs=(TRAIN,))
    put(state, replace(attempt("train/0", outcome=dead("exit_code")), hash="old"), hash="new")
    start = next(a for a in see(state) if isinstance(a, Start) and a.cell == "train/0")
    assert "definition changed" in (start.retry_cause or "")


def test_a_change_from_before_a_kill_is_no_answer_to_it() -> None:
    state = world(jobs=(TRAIN,))

    def starts(kind: str, declared: str) -> bool:
        outcome = replace(dead(kind), declared=declared)
        put(state, replace(attempt("train/0", outcome=outcome), hash="old"), hash="new")
        return any(isinstance(a, Start) and a.cell == "train/0" for a in see(state))

    assert not starts("signal", "new"), "the file was changed while it ran; then somebody killed it"
    assert starts("signal", "old"), "it was changed after the death"
    assert starts("signal", ""), "an older log does not tell"
    assert starts("exit_code", "new"), "what it died of may be fixed"


def test_what_was_declared_at_the_end_is_recorded() -> None:
    state = world(jobs=(TRAIN,))
    put(state, attempt("train/0"), hash="new")
    (settle,) = [a for a in see(state, {"train/0": DONE}) if isinstance(a, Settle)]
    assert settle.outcome.declared == "new"


def test_an_unstarted_claim_is_relaunched_but_not_while_its_shim_may_come() -> None:
    state = world()
    put(state, attempt("train/0"))
    unstarted = {"train/0": AttemptSnapshot(20.0, "no", searched=True)}
    assert any(isinstance(a, Relaunch) for a in see(state, unstarted))
    recent = see(state, unstarted, launched={("train/0", 1): 49.0})
    assert not any(isinstance(a, Relaunch) for a in recent)


def test_nothing_is_relaunched_or_fenced_before_its_token_was_looked_for() -> None:
    for more, intent in (({}, Intent()), ({"stop_because": "no"}, Intent()), ({}, Intent("down"))):
        state = world(intent=intent)
        put(state, attempt("train/0"), **more)
        done = see(state, {"train/0": AttemptSnapshot(20.0, "no")})
        assert not [a for a in done if isinstance(a, Relaunch | Fence)]


def test_an_attempt_without_files_is_never_launched_again_and_keeps_no_slot() -> None:
    state = world()
    put(state, attempt("train/0"))
    done = see(state, {"train/0": AttemptSnapshot(20.0, "lost", searched=True)})
    assert not [a for a in done if isinstance(a, Relaunch | Fence | Settle | Stop)]
    assert attempt("train/0").slots[0] in {slot for a in done if isinstance(a, Start) for slot in a.slots}


def test_an_unstarted_claim_that_a_person_stops_is_fenced() -> None:
    state = world()
    put(state, attempt("train/0"), stop_because="no")
    assert any(isinstance(a, Fence) for a in see(state, {"train/0": AttemptSnapshot(20.0, "no", searched=True)}))


def test_stop_and_timeout_are_asked_for_once() -> None:
    state = world()
    put(state, attempt("train/0"))
    late = see(state, {"train/0": ALIVE}, now=200.0)
    assert [a.cause for a in late if isinstance(a, Stop)] == ["timeout"]
    put(state, attempt("train/0"), stop_because="enough")
    asked = see(state, {"train/0": ALIVE})
    assert [a.cause for a in asked if isinstance(a, Stop)] == ["user_stop"]
    again = see(state, {"train/0": ALIVE}, stopping={("train/0", 1): Stop(attempt("train/0"), "user_stop", "enough")})
    assert not [a for a in again if isinstance(a, Stop)]


def test_a_run_that_has_ended_is_not_pruned() -> None:
    """Children that it left behind keep the attempt open; what it scored is there."""
    state = world()
    hopeless = {("train/0", 1): [StopRequest("pruned", "worse than the others", only_running=True)]}
    put(state, attempt("train/0"))
    asked = see(state, {"train/0": ALIVE}, stops=hopeless)
    assert [a.cause for a in asked if isinstance(a, Stop)] == ["pruned"]
    for ended in (replace(ALIVE, main="gone", strays=(101,)), replace(ALIVE, main="zombie")):
        assert not [a for a in see(state, {"train/0": ended}, stops=hopeless) if isinstance(a, Stop)]


@pytest.mark.parametrize("cause", ["user_stop", "timeout", "budget_stop", "stalled"])
@pytest.mark.parametrize(
    "left",
    [
        ALIVE,  # it ignores SIGTERM
        replace(ALIVE, main="gone", strays=(101,)),
        replace(ALIVE, main="gone", exit=ExitRecord(None, 15, 1010.0, 30.0, 20.0, orphans=(101,))),
    ],
)
def test_a_stop_whose_shim_died_before_all_had_ended_is_asked_for_once_more(left: AttemptSnapshot, cause: str) -> None:
    state = world(intent=Intent("held", "look only"))
    put(state, attempt("train/0"))
    out = {("train/0", 1): Stop(attempt("train/0"), cause, "enough")}
    orphaned = {"train/0": replace(left, shim="gone", shim_locked=False)}
    (asked,) = see(state, orphaned, stopping=out)
    assert isinstance(asked, Stop)
    assert (asked.cause, asked.shim) == (cause, False)
    assert asked.reason == "enough; its shim died before all of it had ended"
    assert not see(state, orphaned, stopping={("train/0", 1): asked}), "by then the executor carries it out"
    assert not see(state, {"train/0": left}, stopping=out), "its shim still does"


def test_a_stop_whose_request_was_deleted_is_asked_for_again() -> None:
    """With the attempt's folder: its shim may never have read it, and a person's stop must still have an effect."""
    state = world(intent=Intent("held", "look only"))
    put(state, attempt("train/0"))
    out = {("train/0", 1): Stop(attempt("train/0"), "budget_stop", "spent", asked=ALIVE.boot - 1.0)}
    deleted = replace(ALIVE, started="lost")
    (again,) = see(state, {"train/0": deleted}, stopping=out)
    assert isinstance(again, Stop)
    assert (again.cause, again.reason, again.shim) == ("budget_stop", "spent", True)
    put(state, attempt("train/0"), stop_because="enough")
    (again,) = see(state, {"train/0": AttemptSnapshot(ALIVE.boot, "lost", searched=True)}, stopping=out)
    assert isinstance(again, Stop)
    assert (again.cause, again.reason) == ("user_stop", "enough")
    assert not see(state, {"train/0": replace(deleted, stop_reason="budget_stop")}, stopping=out), "it is there again"
    early = {("train/0", 1): replace(out["train/0", 1], asked=ALIVE.boot)}
    assert not see(state, {"train/0": deleted}, stopping=early), "nobody has looked since it was asked for"


def test_a_stop_is_not_asked_for_again_where_nobody_could_carry_it_out() -> None:
    state = world(intent=Intent("held", "look only"))
    put(state, attempt("train/0"))
    out = {("train/0", 1): Stop(attempt("train/0"), "user_stop", "enough")}
    elsewhere = replace(ALIVE, main="gone", host="restarted", shim="gone", shim_locked=False)
    assert not see(state, {"train/0": elsewhere}, stopping=out)


def test_a_stop_says_whether_a_shim_has_it() -> None:
    state = world()
    put(state, attempt("train/0"), stop_because="enough")
    for locked in (True, False):
        asked = see(state, {"train/0": replace(ALIVE, shim_locked=locked)})
        assert [a.shim for a in asked if isinstance(a, Stop)] == [locked]


def test_a_stopped_shim_is_nudged_and_a_slow_one_is_waited_for() -> None:
    state = world()
    put(state, attempt("train/0"))
    stopped = replace(ALIVE, main="zombie", shim="stopped")
    assert any(isinstance(a, Nudge) for a in see(state, {"train/0": stopped}))
    slow = replace(ALIVE, main="gone")
    assert not see(state, {"train/0": slow}, taken=frozenset({"cpu1"}))


def test_down_leaves_runs_alone_but_sees_stops_to_their_end() -> None:
    state = world(intent=Intent("down"))
    put(state, attempt("train/0"))
    assert isinstance(see(state, {"train/0": ALIVE})[-1], End)
    put(state, attempt("train/0"), stop_because="enough")
    assert not any(isinstance(a, End) for a in see(state, {"train/0": ALIVE}))


def test_ends_complete_or_stuck_and_says_what_is_left() -> None:
    state = world(jobs=(TRAIN,))
    for cell in ("train/0", "train/1"):
        put(state, attempt(cell, outcome=Outcome(VerdictState.DONE)))
    put(state, attempt("train/2", outcome=dead("signal")))
    end = see(state)[-1]
    assert isinstance(end, End)
    assert not end.complete
    assert "1 DEAD" in end.reason
    state.cells["train/2"] = replace(state.cells["train/2"], given_up="enough")
    end = see(state)[-1]
    assert isinstance(end, End)
    assert end.complete


def test_a_job_that_no_slot_can_ever_hold_does_not_keep_the_controller() -> None:
    state = world(jobs=(replace(TRAIN, uses=SlotUse(gpu=1)),))
    end = see(state)[-1]
    assert isinstance(end, End)


def test_decide_changes_nothing_it_was_given() -> None:
    state = world()
    put(state, attempt("train/0"))
    before = dict(state.cells)
    see(state, {"train/0": DONE})
    assert dict(state.cells) == before


def test_a_claim_that_went_down_before_it_started_is_fenced() -> None:
    state = world(intent=Intent("down"))
    put(state, attempt("train/0"))
    fences = [a for a in see(state, {"train/0": AttemptSnapshot(20.0, "no", searched=True)}) if isinstance(a, Fence)]
    assert [fence.stop for fence in fences] == [False]


def test_down_on_a_held_campaign_ends_the_controller() -> None:
    state = world(intent=Intent("held", "look only", before="down"))
    put(state, attempt("train/0"))
    assert isinstance(see(state, {"train/0": ALIVE})[-1], End)


def test_an_ended_run_whose_proof_can_not_be_read_does_not_keep_its_slot() -> None:
    state = world(jobs=(TRAIN,))
    put(state, attempt("train/0"))
    unread = replace(DONE, proof=ProofReading(None))
    slots = [slot for a in see(state, {"train/0": unread}) if isinstance(a, Start) for slot in a.slots]
    assert slots == ["cpu0", "cpu1"]


def test_a_stop_outlives_a_reboot() -> None:
    state = world(jobs=(TRAIN,))
    put(state, attempt("train/0", outcome=dead("host_reboot")), stop_because="enough")
    assert not [a for a in see(state) if isinstance(a, Start) and a.cell == "train/0"]


def test_what_a_person_stopped_does_not_start_because_the_code_changed() -> None:
    state = world(jobs=(TRAIN,))
    put(state, replace(attempt("train/0", outcome=dead("user_stop")), hash="old"), hash="new")
    assert not [a for a in see(state) if isinstance(a, Start) and a.cell == "train/0"]
