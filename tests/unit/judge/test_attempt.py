"""The recovery table of the protocol, row by row, and the rules that no row may break."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.engine.judge.attempt_verdict import judge_attempt, make_outcome
from muster.model.attempt import Attempt
from muster.model.attempt_snapshot import AttemptSnapshot, ExitRecord, ProcessIdentity, ProofReading
from muster.model.campaign import Job, Proof
from muster.model.verdict import Evidence, VerdictState

ATTEMPT = Attempt("train/a/0", 1, "token", 1, ("cpu0",), "hash", "2026-01-01T00:00:00+00:00", 10.0, "boot")
IDENTITY = ProcessIdentity("boot", 1, 2, 100, 3, 99, 4, 10.0, 1000.0)
PLAIN = Job("train", (), ("true",))
PROVEN = Job("train", (), ("true",), proof=Proof(files=("x",)))
ALIVE = AttemptSnapshot(
    20.0, "yes", True, IDENTITY, main="alive", main_state="S", shim="alive", shim_locked=True, tree_locked=True
)
GONE = replace(ALIVE, main="gone", shim="gone", shim_locked=False, tree_locked=False)
HOLDS = ProofReading(True, (Evidence("files", "proof", "x: found", "holds"),))
UNREAD = ProofReading(None, (Evidence("step", "proof", "metrics.jsonl can't be read", "can't be read"),))
FAILS = ProofReading(False, (Evidence("step", "proof", "last step 40, wanted 100", "fails"),))


LOST = replace(GONE, started="lost", searched=True)


def ended(code: int | None = 0, signal: int | None = None, **more: object) -> ExitRecord:
    facts: dict[str, object] = {"orphans": ()}
    return ExitRecord(code, signal, 1010.0, 30.0, 20.0, **{**facts, **more})  # type: ignore[arg-type]


def with_exit(exit_: ExitRecord, proof: ProofReading = HOLDS) -> AttemptSnapshot:
    return replace(GONE, exit=exit_, proof=proof)


TABLE = [
    ("claimed, no shim yet", AttemptSnapshot(20.0, "no"), PLAIN, VerdictState.PENDING, None, False),
    ("fenced", AttemptSnapshot(20.0, "revoked"), PLAIN, VerdictState.DEAD, "never_started", True),
    ("fenced because a person stopped it", AttemptSnapshot(20.0, "revoked", stop_reason="user_stop"), PLAIN, VerdictState.DEAD, "user_stop", True),
    ("its shim is starting it", AttemptSnapshot(20.0, "yes", shim_locked=True), PLAIN, VerdictState.PENDING, None, False),
    ("its shim died before the gate", AttemptSnapshot(20.0, "yes"), PLAIN, VerdictState.DEAD, "never_started", True),
    ("alive", ALIVE, PLAIN, VerdictState.RUNNING, None, False),
    ("alive without its shim", replace(ALIVE, shim="gone", shim_locked=False), PLAIN, VerdictState.RUNNING, None, False),
    ("its folder can't be read", AttemptSnapshot(20.0, "unread", trouble="Permission denied"), PLAIN, VerdictState.UNKNOWN, None, False),
    ("gone, status lost, proof being read", replace(GONE, proof=ProofReading(None, pending=True)), PROVEN, VerdictState.UNKNOWN, None, False),
    ("gone, status lost, proof fails", replace(GONE, proof=FAILS), PROVEN, VerdictState.DEAD, "unknown", True),
    ("gone, status lost, proof can't be read", replace(GONE, proof=UNREAD), PROVEN, VerdictState.UNKNOWN, None, False),
    ("the same, and a person stops waiting", replace(GONE, proof=UNREAD, stop_reason="user_stop"), PROVEN, VerdictState.DEAD, "user_stop", True),
    ("hidden, its tree holds its lock", replace(ALIVE, main="hidden"), PLAIN, VerdictState.RUNNING, None, False),
    ("its shim died of a stop while starting", AttemptSnapshot(20.0, "yes", stop_reason="user_stop"), PLAIN, VerdictState.DEAD, "user_stop", True),
    ("exit 0, its proof is being read", with_exit(ended(), ProofReading(None, pending=True)), PROVEN, VerdictState.UNKNOWN, None, False),
    ("exit 0, proof can't be read, person stops waiting", replace(with_exit(ended(), UNREAD), stop_reason="user_stop"), PROVEN, VerdictState.DEAD, "early_exit", True),
    ("gone, shim still writing", replace(GONE, shim_locked=True), PLAIN, VerdictState.UNKNOWN, None, False),
    ("gone, status lost", GONE, PLAIN, VerdictState.DEAD, "unknown", True),
    ("gone, W&B recorded exit 1", replace(GONE, proof=replace(HOLDS, recorded=1)), PLAIN, VerdictState.DEAD, "exit_code(1)", True),
    ("gone, W&B recorded a clean end, no proof", replace(GONE, proof=replace(HOLDS, recorded=0)), PLAIN, VerdictState.DEAD, "unknown", True),
    ("gone after a stop, status lost", replace(GONE, stop_reason="user_stop"), PLAIN, VerdictState.DEAD, "user_stop", True),
    ("gone, never executed", replace(GONE, execing=False), PLAIN, VerdictState.DEAD, "never_started", True),
    ("gone, but the tree holds its lock", replace(GONE, tree_locked=True), PLAIN, VerdictState.RUNNING, None, False),
    ("gone, but a process carries the token", replace(GONE, strays=(7,)), PLAIN, VerdictState.RUNNING, None, False),
    ("rebooted", replace(GONE, host="rebooted"), PLAIN, VerdictState.DEAD, "host_reboot", True),
    ("rebooted before it started", AttemptSnapshot(20.0, "no", host="rebooted"), PLAIN, VerdictState.DEAD, "host_reboot", True),
    ("container restarted", replace(GONE, host="restarted"), PLAIN, VerdictState.DEAD, "container_restart", True),
    ("alive in another container", replace(GONE, host="restarted", tree_locked=True), PLAIN, VerdictState.RUNNING, None, False),
    ("without files, alive", replace(ALIVE, started="lost"), PLAIN, VerdictState.RUNNING, None, False),
    ("without files, its token is carried", replace(LOST, identity=None, main="unread", strays=(7,)), PLAIN, VerdictState.RUNNING, None, False),
    ("without files, its slot is held", replace(LOST, slot_held=True), PLAIN, VerdictState.RUNNING, None, False),
    ("without files, its shim lives", replace(LOST, shim_locked=True), PLAIN, VerdictState.UNKNOWN, None, False),
    ("without files, nothing is seen", LOST, PLAIN, VerdictState.UNKNOWN, None, False),
    ("without files, its proof would hold", replace(LOST, proof=HOLDS), PROVEN, VerdictState.UNKNOWN, None, False),
    ("without files, a person ends it", replace(LOST, stop_reason="user_stop"), PLAIN, VerdictState.DEAD, "user_stop", True),
    ("without files, its exit was written elsewhere", replace(LOST, exit=ended(1), proof=HOLDS), PLAIN, VerdictState.DEAD, "exit_code(1)", True),
    ("without files, rebooted", replace(LOST, host="rebooted"), PLAIN, VerdictState.DEAD, "host_reboot", True),
    ("started on another machine", replace(GONE, host="elsewhere"), PLAIN, VerdictState.UNKNOWN, None, False),
    ("claimed on another machine", AttemptSnapshot(20.0, "no", host="elsewhere"), PLAIN, VerdictState.UNKNOWN, None, False),
    ("on another machine, a person ends it", replace(GONE, host="elsewhere", stop_reason="user_stop"), PLAIN, VerdictState.DEAD, "user_stop", True),
    ("exit 0, no proof declared", with_exit(ended()), PLAIN, VerdictState.DONE, None, True),
    ("exit 0, proof holds", with_exit(ended()), PROVEN, VerdictState.DONE, None, True),
    ("exit 0, proof fails", with_exit(ended(), FAILS), PROVEN, VerdictState.DEAD, "early_exit", True),
    ("exit 0, proof can't be read", with_exit(ended(), ProofReading(None)), PROVEN, VerdictState.UNKNOWN, None, False),
    ("exit 1", with_exit(ended(1)), PLAIN, VerdictState.DEAD, "exit_code(1)", True),
    ("exit 137 is no signal", with_exit(ended(137)), PLAIN, VerdictState.DEAD, "exit_code(137)", True),
    ("signal 9 is no OOM", with_exit(ended(None, 9)), PLAIN, VerdictState.DEAD, "signal(9)", True),
    ("stopped, died of it", with_exit(ended(None, 15, stop_reason="user_stop")), PLAIN, VerdictState.DEAD, "user_stop", True),
    ("stopped, exit 0, no proof", with_exit(ended(stop_reason="user_stop")), PLAIN, VerdictState.DEAD, "user_stop", True),
    ("stopped, but it had finished", with_exit(ended(stop_reason="user_stop")), PROVEN, VerdictState.DONE, None, True),
    ("timeout", with_exit(ended(None, 9, stop_reason="timeout")), PLAIN, VerdictState.DEAD, "timeout", True),
    ("the command was not found", with_exit(ended(127, exec_error="No such file")), PLAIN, VerdictState.DEAD, "never_started", True),
    ("exit 0 and a helper, proof holds", replace(with_exit(ended(orphans=(7,))), strays=(7,)), PROVEN, VerdictState.DONE, None, True),
    ("exit 0 and a helper, no proof", replace(with_exit(ended(orphans=(7,))), strays=(7,)), PLAIN, VerdictState.RUNNING, None, False),
    ("exit 1 and orphans", replace(with_exit(ended(1, orphans=(7,))), strays=(7,)), PROVEN, VerdictState.RUNNING, None, False),
    ("exit 1, orphans gone", with_exit(ended(1, orphans=(7,))), PROVEN, VerdictState.DEAD, "exit_code(1)", True),
]  # fmt: skip


@pytest.mark.parametrize(
    ("seen", "job", "state", "cause", "final"), [row[1:] for row in TABLE], ids=[r[0] for r in TABLE]
)
def test_table(seen: AttemptSnapshot, job: Job, state: VerdictState, cause: str | None, final: bool) -> None:
    verdict = judge_attempt(ATTEMPT, seen, job)
    assert (verdict.state, str(verdict.cause) if verdict.cause else None, verdict.final) == (state, cause, final)
    assert verdict.reason
    assert verdict.evidence


def test_a_failed_teardown_with_complete_artifacts_says_so() -> None:
    verdict = judge_attempt(ATTEMPT, with_exit(ended(1)), PROVEN)
    assert verdict.state == VerdictState.DEAD
    assert "artifacts complete" in verdict.note


def test_a_finished_run_whose_exit_was_lost_is_not_run_again() -> None:
    verdict = judge_attempt(ATTEMPT, replace(GONE, proof=HOLDS), PROVEN)
    assert (verdict.state, str(verdict.cause)) == (VerdictState.DEAD, "unknown")
    assert "artifacts complete" in verdict.note


def test_an_exit_that_only_the_run_itself_wrote_down_is_no_more_than_probable() -> None:
    verdict = judge_attempt(ATTEMPT, replace(GONE, proof=replace(FAILS, recorded=1)), PROVEN)
    assert verdict.cause is not None
    assert verdict.cause.confidence == "probable"
    assert [each.reading for each in verdict.evidence if each.signal == "wandb"] == [
        "its W&B record ends with exit code 1"
    ]
    assert (
        "its W&B record ends with exit code 0"
        in judge_attempt(ATTEMPT, replace(GONE, proof=replace(HOLDS, recorded=0)), PLAIN).reason
    )


def test_orphans_are_named() -> None:
    seen = replace(GONE, strays=(71, 72))
    assert "71, 72" in judge_attempt(ATTEMPT, seen, PLAIN).reason


def test_the_outcome_keeps_the_true_exit() -> None:
    seen = with_exit(ended(3))
    outcome = make_outcome(judge_attempt(ATTEMPT, seen, PLAIN), seen)
    assert (outcome.exit_code, outcome.exit_signal, outcome.duration_s) == (3, None, 20.0)


sightings = st.builds(
    AttemptSnapshot,
    boot=st.floats(0, 1e6),
    started=st.sampled_from(["no", "yes", "revoked", "unread"]),
    execing=st.booleans(),
    identity=st.none() | st.just(IDENTITY),
    exit=st.none()
    | st.builds(
        ended,
        st.integers(0, 255),
        st.none(),
        orphans=st.sampled_from([(), (7,), None]),
        stop_reason=st.sampled_from([None, "user_stop"]),
    ),
    host=st.sampled_from(["same", "rebooted", "restarted"]),
    main=st.sampled_from(["alive", "zombie", "gone", "unread"]),
    shim=st.sampled_from(["alive", "stopped", "gone"]),
    shim_locked=st.booleans(),
    tree_locked=st.booleans(),
    strays=st.sampled_from([(), (7,)]),
    proof=st.sampled_from([None, HOLDS, FAILS, ProofReading(None)]),
)


@given(sightings, st.sampled_from([PLAIN, PROVEN]))
def test_no_sighting_breaks_a_promise(seen: AttemptSnapshot, job: Job) -> None:
    verdict = judge_attempt(ATTEMPT, seen, job)
    assert verdict.final == (verdict.state in (VerdictState.DONE, VerdictState.DEAD))
    if verdict.state == VerdictState.DEAD:
        assert verdict.cause is not None
        lives = seen.started == "yes" and seen.exit is None and seen.host == "same" and seen.identity is not None
        assert not (lives and seen.main == "alive"), "never DEAD while alive"
        if seen.exit is None and seen.started == "yes" and seen.identity is not None:
            assert not seen.strays or seen.host != "same", "never DEAD while something carries its token"
    if verdict.state == VerdictState.DONE:
        assert seen.exit is not None
        assert seen.exit.code == 0
        assert seen.proof is not None
        assert seen.proof.holds
    if seen.exit is not None and seen.exit.orphans == () and seen.started == "yes":
        assert verdict.state != VerdictState.RUNNING, "never RUNNING when it has ended and nothing is left"
