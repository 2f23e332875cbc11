"""The finish: which step is due, what is never done twice, and what stands before a power-off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.app.campaign.campaign_status import ControllerStatus, build_status
from muster.app.campaign.finish_steps import (
    MOST_LOST,
    POWER_OFF,
    BeginStep,
    NothingDue,
    PowerOff,
    TendStep,
    build_finish_view,
    describe_finish,
    finish_report_verdict,
    finish_view_as_json,
    list_finish_steps,
    matrix_state_key,
    next_finish_action,
)
from muster.app.finish.power_off_rules import ShutdownCountdown
from muster.app.finish.run_finish import SIDECAR_ENDING, command_of_step, has_bound_documents, judge_step_end
from muster.engine.store.decision_log import InMemoryDecisionLog
from muster.engine.store.sqlite_store import SqliteStore
from muster.files import campaign_snapshots
from muster.model.attempt import Attempt, CellRecord, Outcome
from muster.model.attempt_snapshot import AttemptSnapshot, ExitRecord
from muster.model.campaign import Campaign, DeclaredFinish, DeclaredReport, Job
from muster.model.campaign_state import (
    CampaignState,
    FinishRecord,
    FinishStepRecord,
    Intent,
    ShutdownProgress,
    ShutdownRequest,
)
from muster.model.cell import list_campaign_cells
from muster.model.decision import Decision
from muster.model.verdict import Cause, Verdict, VerdictState

ALL = {"report": True, "docs": True, "run": ["copy a", "copy b"], "notify": True, "shutdown": True, "countdown": 60.0}
NAMES = ["report", "docs", "cost", "record", "run-1", "run-2", "notify", "shutdown"]
DONE = Outcome(VerdictState.DONE)


def world(wanted: Mapping[str, Any] | None = ALL, **more: Any) -> CampaignState:
    """Two cells, done unless somebody says otherwise."""
    campaign = Campaign(
        "c",
        (),
        (Job("train", (), ("true",)), Job("plots", (), ("true",), needs=("train",))),
        finish=wanted and DeclaredFinish(**wanted),
    )
    cells = {
        cell.id: CellRecord(cell, at, attempts=(attempt(cell.id),))
        for at, cell in enumerate(list_campaign_cells(campaign))
    }
    return CampaignState(campaign, "h", "", Intent(), 1, (), cells, **more)


def attempt(cell: str, outcome: Outcome | None = DONE) -> Attempt:
    return Attempt(cell, 1, f"token of {cell}", 1, (), "h", "", 0.0, "b", outcome=outcome)


def record(
    state: CampaignState, step: str, *, ok: bool | None = True, ended: bool = True, **more: Any
) -> FinishStepRecord:
    """One execution of a step for the state of the matrix as it is."""
    known = {"key": matrix_state_key(state), "n": 1, **more}
    end = {"ended": "2026-01-01T00:00:01+00:00", "ok": ok} if ended else {}
    return FinishStepRecord(
        step, known["key"], known["n"], "token", "2026-01-01T00:00:00+00:00", 0.0, "b", known.get("lost", 0), **end
    )


def after(state: CampaignState, *records: FinishStepRecord, **more: Any) -> CampaignState:
    state.finish = replace(state.finish, steps={each.step: each for each in records}, **more)
    return state


def well(state: CampaignState, *names: str) -> CampaignState:
    return after(state, *(record(state, name) for name in names))


# -- which step is due


def test_the_steps_in_their_order() -> None:
    assert [step.name for step in list_finish_steps(world())] == NAMES
    assert list_finish_steps(world(None)) == []
    assert [step.name for step in list_finish_steps(world({"shutdown": False, "run": ["a"]}))] == ["run-1"]
    for done in range(len(NAMES) - 1):
        found = next_finish_action(well(world(), *NAMES[:done]))
        assert isinstance(found, BeginStep)
        assert (found.step.name, found.n, found.lost) == (NAMES[done], 1, 0)
    last = next_finish_action(well(world(), *NAMES[:-1]))
    assert isinstance(last, PowerOff)
    assert last.step.what == POWER_OFF


def test_nothing_is_due_before_every_cell_is_settled_or_while_the_campaign_is_not_running() -> None:
    state = world()
    state.cells["plots"] = CellRecord(state.cells["plots"].cell, 1)
    assert next_finish_action(state) == NothingDue(over=False)
    state.cells["plots"] = replace(state.cells["plots"], attempts=(attempt("plots", None),))
    assert next_finish_action(state) == NothingDue(over=False)
    state.cells["plots"] = replace(state.cells["plots"], attempts=(), given_up="no money")
    assert isinstance(next_finish_action(state), BeginStep)
    state.at_rest = True  # a version that knew no finish ended it: nothing begins by itself
    assert next_finish_action(state) == NothingDue(over=True)
    state.finish = FinishRecord(wish=ShutdownRequest("me", "now"))
    assert isinstance(next_finish_action(state), BeginStep)
    for kind in ("down", "held"):
        state.intent = Intent(kind)  # type: ignore[arg-type]
        assert next_finish_action(state) == NothingDue(over=True)


def test_what_is_under_way_is_seen_to_its_end_first_whatever_it_is_for() -> None:
    state = world()
    old = record(state, "run-2", ended=False, key="another state", n=4)
    assert next_finish_action(after(state, old)) == TendStep(old)
    state.campaign = replace(state.campaign, finish=DeclaredFinish(run=("copy a",)))
    assert next_finish_action(state) == TendStep(old)


def test_a_failure_stops_all_that_comes_after_it() -> None:
    state = world()
    after(
        state,
        record(state, "report"),
        record(state, "docs"),
        record(state, "cost"),
        record(state, "record"),
        record(state, "run-1", ok=False),
    )
    assert next_finish_action(state) == NothingDue(over=True)
    found = build_finish_view(state, 0.0)
    assert found is not None
    assert found.failed is not None
    assert [each.standing for each in found.steps] == ["done"] * 4 + ["failed"] + ["waiting"] * 3
    assert [each.step.name for each in found.undone] == ["run-1", "run-2", "notify"]


def test_another_state_of_the_matrix_begins_anew_with_the_next_number() -> None:
    state = well(world(), *NAMES[:-1])
    before = matrix_state_key(state)
    state.cells["plots"] = replace(state.cells["plots"], attempts=(replace(attempt("plots"), token="another"),))
    assert matrix_state_key(state) != before
    found = next_finish_action(state)
    assert isinstance(found, BeginStep)
    assert (found.step.name, found.n) == ("report", 2)
    state = well(world(), *NAMES[:-1])
    state.campaign_hash = "edited"
    assert isinstance(next_finish_action(state), BeginStep)


def test_giving_up_differs_from_doing() -> None:
    state, other = world(), world()
    other.cells["plots"] = replace(other.cells["plots"], attempts=(), given_up="no money")
    assert matrix_state_key(state) != matrix_state_key(other)
    assert list_finish_steps(other)[0].what == "muster report --partial --exit-zero"
    assert command_of_step(list_finish_steps(other)[0], Path("/c"))[-3:] == ("report", "--partial", "--exit-zero")
    assert command_of_step(list_finish_steps(state)[0], Path("/c"))[-2:] == ("report", "--exit-zero")
    assert command_of_step(list_finish_steps(state)[1], Path("/c"))[-2:] == ("docs", "update")
    assert command_of_step(list_finish_steps(state)[2], Path("/c"))[-2:] == ("cost", "--report")
    assert command_of_step(list_finish_steps(state)[3], Path("/c"))[-1] == "record"
    assert command_of_step(list_finish_steps(state)[4], Path("/c")) == ("copy", "a")


def test_what_was_lost_is_tried_again_under_the_next_number() -> None:
    state = world()
    after(state, record(state, "report", ok=None, n=3, lost=2))
    found = next_finish_action(state)
    assert isinstance(found, BeginStep)
    assert (found.n, found.lost) == (4, 2)


# -- powering off


def stage(what: Any, state: CampaignState, **more: Any) -> ShutdownProgress:
    return ShutdownProgress(
        what, "2026-01-01T00:00:00+00:00", 100.0, "me", matrix_state_key(state), command="off", **more
    )


def test_a_command_that_was_recorded_is_handed_to_who_recorded_it_and_never_begins_again() -> None:
    state = well(world(), *NAMES[:-1])
    began = stage("began", state, mark="m")
    after(state, *state.finish.steps.values(), stage=began, begun=matrix_state_key(state))
    found = next_finish_action(state)
    assert isinstance(found, PowerOff)
    assert found.stage is began
    state.at_rest = True  # it was a wish on a campaign at rest, and is granted now
    assert isinstance(next_finish_action(state), PowerOff)
    state.at_rest = False
    for what in ("ended", "failed", "unclear", "dropped", "clear", "counting"):
        state.finish = replace(state.finish, stage=stage(what, state))
        assert next_finish_action(state) == NothingDue(over=True), what
    state.finish = replace(state.finish, stage=None)
    assert next_finish_action(state) == NothingDue(over=True)


def test_a_wish_is_granted_without_a_finish_and_cancelling_holds() -> None:
    state = world(None)
    assert next_finish_action(state) == NothingDue(over=True)
    state.finish = FinishRecord(wish=ShutdownRequest("me", "now", "echo off", 5.0))
    found = next_finish_action(state)
    assert isinstance(found, PowerOff)
    # an older version took a command from an option: campaign.yaml and the usual one are all that is run
    assert (found.step.what, found.step.countdown_s) == (POWER_OFF, 5.0)
    state.finish = FinishRecord(cancelled="me at noon", cancels=1)
    assert next_finish_action(state) == NothingDue(over=True)
    declared = world({"shutdown": "poweroff --now"}, finish=FinishRecord(cancelled="me at noon", cancels=1))
    assert next_finish_action(declared) == NothingDue(over=True)
    declared.finish = FinishRecord()
    again = next_finish_action(declared)
    assert isinstance(again, PowerOff)
    assert again.step.what == "poweroff --now"


@given(
    st.lists(st.tuples(st.floats(0.0, 40.0), st.booleans()), max_size=30), st.floats(1.0, 100.0), st.floats(0.0, 100.0)
)
def test_a_vigil_needs_two_clear_looks_the_pause_and_the_countdown(
    turns: list[tuple[float, bool]], pause_s: float, countdown_s: float
) -> None:
    vigil, now = ShutdownCountdown(pause_s, countdown_s), 0.0
    clear: list[float] = []  # looks since the last doubt
    for passed, doubt in turns:
        now += passed
        move = vigil.move(now)
        if move == "look":
            clear = [] if doubt else [*clear, now]
            vigil = vigil.saw(["something"] if doubt else [], now)
        elif move == "go":
            break
    if vigil.move(now) == "go":
        assert len(clear) == 3
        assert clear[1] - clear[0] >= pause_s * (1 - 1e-9)
        assert clear[2] - clear[1] >= countdown_s * (1 - 1e-9) - 1e-9  # 1.0 + 1e-120 is 1.0


def test_the_way_of_a_vigil() -> None:
    vigil = ShutdownCountdown(60.0, 30.0)
    assert vigil.move(0.0) == "look"
    vigil = vigil.saw([], 5.0)
    assert (vigil.move(64.9), vigil.move(65.0), vigil.counting) == ("wait", "look", False)
    vigil = vigil.saw([], 66.0)
    assert (vigil.move(95.9), vigil.move(96.0), vigil.counting) == ("wait", "look", True)
    assert vigil.saw([], 97.0).move(97.0) == "go"
    doubted = vigil.saw(["GPU 0 is in use"], 97.0)
    assert (doubted.move(156.9), doubted.move(157.0), doubted.first) == ("wait", "look", None)


# -- how an execution counts

NOT_SEEN = AttemptSnapshot(0.0, "yes")


def dead(kind: str) -> Verdict:
    return Verdict(VerdictState.DEAD, "because", cause=Cause(kind), final=True)


@pytest.mark.parametrize(
    ("verdict", "code", "step", "partial", "ok"),
    [
        (Verdict(VerdictState.DONE, "exit 0", final=True), 0, "run-1", False, True),
        (dead("exit_code"), 3, "run-1", True, False),
        (dead("exit_code"), 3, "report", False, False),
        (dead("exit_code"), 3, "report", True, True),
        (dead("exit_code"), 1, "report", True, False),
        (dead("signal"), None, "run-1", False, False),
        (dead("user_stop"), None, "run-1", False, None),
        (dead("host_reboot"), None, "run-1", False, None),
        (dead("unknown"), None, "run-1", False, None),
    ],
)
def test_how_an_end_counts(verdict: Verdict, code: int | None, step: str, partial: bool, ok: bool | None) -> None:
    seen = replace(NOT_SEEN, exit=ExitRecord(code, None, 0.0, 0.0, 0.0)) if code is not None else NOT_SEEN
    found = judge_step_end(record(world(), step, ended=False), verdict, seen, partial=partial)
    assert found.ok is ok


def test_a_step_that_is_lost_again_and_again_has_failed_and_so_has_one_that_can_not_be_executed() -> None:
    lost = record(world(), "run-1", ended=False, lost=MOST_LOST - 1)
    assert judge_step_end(lost, dead("unknown"), NOT_SEEN, partial=False).ok is False
    unexecuted = replace(NOT_SEEN, exit=ExitRecord(127, None, 0.0, 0.0, 0.0, exec_error="No such file"))
    assert (
        judge_step_end(record(world(), "run-1", ended=False), dead("never_started"), unexecuted, partial=False).ok
        is False
    )


def test_what_is_bound(tmp_path: Path) -> None:
    from muster.files.state_folder import SIDECAR_SUFFIX

    assert SIDECAR_SUFFIX == SIDECAR_ENDING
    state = world()
    assert not has_bound_documents(tmp_path, state)
    (tmp_path / "ppt.md.muster.json").touch()
    assert has_bound_documents(tmp_path, state)
    folder = tmp_path / "other"
    (folder / "texts").mkdir(parents=True)
    (folder / "texts" / "ppt.md.muster.json").touch()
    assert not has_bound_documents(folder, state)
    state.campaign = replace(state.campaign, report=DeclaredReport(documents=("texts/ppt.md",)))
    assert has_bound_documents(folder, state)


# -- telling


def test_what_people_and_programs_are_told() -> None:
    state = world()
    after(state, record(state, "report"), record(state, "docs", ok=False))
    found = build_status(state, {}, ControllerStatus(False), wall=0.0, boot=0.0, boot_id="b")
    assert found.finish is not None
    assert (found.complete, found.going_on, found.exit) == (True, False, 3)
    assert describe_finish(found.finish)[0] == "finish: report done"
    assert "docs (`muster docs update`) failed" in describe_finish(found.finish)[1]
    assert ".muster/finish/docs/1" in describe_finish(found.finish)[1]
    assert finish_view_as_json(found.finish)["failed"] == "docs"
    going = build_status(well(world(), "report"), {}, ControllerStatus(False), wall=0.0, boot=0.0, boot_id="b")
    assert (going.going_on, going.exit) == (True, 4)
    plain = build_status(world(None), {}, ControllerStatus(False), wall=0.0, boot=0.0, boot_id="b")
    assert (plain.finish, plain.exit) == (None, 0)


def test_a_countdown_that_nobody_counts_any_more_is_not_shown() -> None:
    state = well(world(), *NAMES[:-1])
    state.finish = replace(state.finish, stage=stage("counting", state, countdown_s=60.0))

    def shown(boot: float) -> str:
        found = build_finish_view(state, boot)
        assert found is not None
        return found.steps[-1].standing

    state.finish = replace(state.finish, stage=stage("began", state), begun=matrix_state_key(state))
    assert [shown(100.0), shown(99.0), shown(1000.0)] == ["under way", "unclear", "unclear"]
    state.finish = replace(state.finish, stage=stage("counting", state, countdown_s=60.0), begun="")
    assert [shown(100.0), shown(150.0), shown(99.0), shown(1000.0)] == [
        "counting down",
        "counting down",
        "waiting",
        "waiting",
    ]


def test_reasons_and_what_to_do_are_told_for_each_stage() -> None:
    state = well(world(), *NAMES[:-1])
    expected = {"refused": "shutdown waits: GPU 0 is in use", "clear": "a second look follows", "counting": "SHUTDOWN in",
                "unclear": "not repeated by itself", "failed": "failed: GPU 0"}  # fmt: skip
    for what, text in expected.items():
        state.finish = replace(state.finish, stage=stage(what, state, reasons=("GPU 0 is in use",), countdown_s=60.0))
        found = build_finish_view(state, 100.0)
        assert found is not None
        assert any(text in line for line in describe_finish(found)), (what, describe_finish(found))
    state.finish = replace(state.finish, stage=None, cancelled="me at noon")
    found = build_finish_view(state, 100.0)
    assert found is not None
    assert describe_finish(found)[-1].startswith("finish: shutdown was cancelled by me at noon")
    state.finish = replace(state.finish, cancelled="")
    state.intent = Intent("down")
    found = build_finish_view(state, 100.0)
    assert found is not None
    assert not found.due
    assert "powered off when all is done" in describe_finish(found)[-1]


def test_a_finish_that_waits_for_a_person_says_so() -> None:
    state = well(world({"run": ["a", "b"]}), "run-1")
    state.intent = Intent("down")
    found = build_finish_view(state, 0.0)
    assert found is not None
    assert describe_finish(found) == ["finish: run-1 done", "finish: run-2 not done yet; `muster up` goes on with it"]


# -- what the log makes of it


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    campaign = world().campaign
    name = campaign_snapshots.save_snapshot(
        tmp_path, "text", campaign, {cell.id: "h" for cell in list_campaign_cells(campaign)}
    )
    found = SqliteStore(tmp_path, log=InMemoryDecisionLog(), database=":memory:")
    found.commit([Decision("campaign", "me", data={"hash": name, "env_file": ""})])
    up(found)
    yield found
    found.close()


def up(store: SqliteStore) -> None:
    store.commit([Decision("intent", "me", data={"intent": "running"})])


def say(store: SqliteStore, kind: str, **data: Any) -> str | None:
    refused = store.commit([Decision(kind, "me", "why", at="2026-01-01T00:00:00+00:00", data=data)]).refused
    return refused[0].because if refused else None


def began(store: SqliteStore, step: str = "run-1", n: int = 1) -> str | None:
    return say(store, "finish", what="began", step=step, n=n, key="k", token="t", boot_id="b")


def found(store: SqliteStore) -> FinishRecord:
    state = store.load()
    assert state is not None
    return state.finish


def test_a_step_has_one_beginning_and_one_end(store: SqliteStore) -> None:
    assert found(store) == FinishRecord()
    assert say(store, "finish", what="ended", step="run-1", n=1, ok=True) is not None
    assert began(store) is None
    assert began(store) is not None
    assert found(store).steps["run-1"].ended is None
    assert say(store, "finish", what="ended", step="run-1", n=2, ok=True) is not None
    assert say(store, "finish", what="ended", step="run-1", n=1, ok=True) is None
    assert say(store, "finish", what="ended", step="run-1", n=1, ok=False) is not None
    assert found(store).steps["run-1"].ok is True


def test_up_tries_again_what_failed_and_nothing_else(store: SqliteStore) -> None:
    began(store, "report")
    say(store, "finish", what="ended", step="report", n=1, ok=True)
    began(store, "run-1")
    say(store, "finish", what="ended", step="run-1", n=1, ok=False, lost=3)
    say(store, "shutdown", what="began", key="k", mark="m", cancels=0)
    up(store)
    now = found(store)
    assert (now.steps["report"].ok, now.steps["run-1"].ok, now.steps["run-1"].lost) == (True, None, 0)
    assert now.begun == "k"  # it may have been carried out
    say(store, "shutdown", what="failed", key="k")
    up(store)
    assert (found(store).begun, found(store).stage) == ("", None)


def test_a_cancel_is_stronger_than_what_began_before_it(store: SqliteStore) -> None:
    assert say(store, "shutdown", what="wish", command="off", countdown_s=5) is None
    assert found(store).wish == ShutdownRequest("me", "2026-01-01T00:00:00+00:00", "off", 5.0)
    assert say(store, "shutdown", what="cancel") is None
    assert (found(store).wish, found(store).cancels) == (None, 1)
    assert "cancelled by me" in (say(store, "shutdown", what="began", key="k", cancels=0) or "")
    assert found(store).begun == ""
    assert say(store, "shutdown", what="wish") is None
    assert found(store).cancelled == ""
    assert say(store, "shutdown", what="began", key="k", cancels=1) is None
    assert (found(store).wish, found(store).begun) == (None, "k")  # granted: never twice


def test_what_a_later_version_says_is_kept_and_has_no_effect(store: SqliteStore) -> None:
    assert say(store, "shutdown", what="hibernated") is not None
    assert say(store, "finish", what="began") is not None
    assert found(store) == FinishRecord()


def test_the_log_folds_to_the_same_again(store: SqliteStore, tmp_path: Path) -> None:
    began(store)
    say(store, "finish", what="ended", step="run-1", n=1, ok=False)
    up(store)
    say(store, "shutdown", what="wish", command="off")
    say(store, "shutdown", what="refused", key="k", reasons=["GPU 0 is in use"])
    fresh = SqliteStore(tmp_path, log=store.log, database=":memory:")
    fresh.commit([])
    assert found(fresh) == found(store) != FinishRecord()
    fresh.close()


def test_the_verdict_of_a_report_is_kept_with_its_step_and_told(store: SqliteStore) -> None:
    began(store, step="report")
    assert (
        say(store, "finish", what="ended", step="report", n=1, ok=True, verdict="INVALID", flag="equal seeds") is None
    )
    kept = found(store).steps["report"]
    assert (kept.verdict, kept.flag) == ("INVALID", "equal seeds")
    state = world()
    state = after(state, replace(record(state, "report"), verdict="INVALID", flag="equal seeds"), record(state, "cost"))
    seen = build_finish_view(state, 0.0)
    assert seen is not None
    assert describe_finish(seen)[0] == "finish: report (INVALID), cost done"
    assert [(step["verdict"], step["flag"]) for step in finish_view_as_json(seen)["steps"][:2]] == [
        ("INVALID", "equal seeds"),
        (None, None),
    ]
    assert finish_report_verdict(state) == ("INVALID", "equal seeds")
    state.campaign_hash = "another"  # another state of the matrix: nobody has reported on it
    assert finish_report_verdict(state) == ("", "")


def test_a_finish_starts_nothing(store: SqliteStore) -> None:
    store.commit([Decision("end", "controller", data={"complete": True})])
    began(store)
    say(store, "shutdown", what="wish")
    state = store.load()
    assert state is not None
    assert state.at_rest
