"""The verdict of one open attempt from one look at it.

In this order: what the attempt's own folder says, then the host's identity, then the processes. Silence is never
evidence of death, and a process id alone never evidence of life.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from muster.engine.judge.liveness import RunWatch, judge_liveness
from muster.engine.judge.run_evidence import list_rhythms, living_run_evidence
from muster.model.attempt import Attempt, Outcome
from muster.model.attempt_snapshot import AttemptSnapshot, ExitRecord, PostMortem, ProofReading
from muster.model.campaign import Job
from muster.model.verdict import Cause, Evidence, Verdict, VerdictState
from muster.text.phrases import join_phrases, phrase

if TYPE_CHECKING:
    from muster.engine.judge.cause_rules import CauseReport

PROOF_PATIENCE_S = 10.0
LOST_KIND = "lost"  # the kind of an UNKNOWN that no later look will end


def judge_attempt(
    attempt: Attempt, seen: AttemptSnapshot, job: Job, watch: RunWatch | None = None, *, explain: bool = True
) -> Verdict:
    """`watch` holds what earlier looks add up to; without it only life, exit and proof are judged.

    `explain=False` leaves out evidence that nobody asked for: a controller judges thousands of times, and tells rarely.
    """
    evidence = _snapshot_evidence(attempt, seen) if explain or seen.exit else ()
    if seen.started == "unread":
        return Verdict(
            VerdictState.UNKNOWN,
            phrase("judge.cant_read", trouble=seen.trouble),
            confidence="unknown",
            evidence=evidence,
        )
    if seen.started == "revoked" and seen.stop_reason:
        return _make_dead_verdict(
            Cause(seen.stop_reason, note=phrase("judge.stopped_request_before_started")), evidence
        )
    if seen.started == "revoked":
        note = seen.revoked_because or phrase("judge.fenced_before_any_shim_could_start")
        return _make_dead_verdict(Cause("never_started", note=note), evidence)
    if seen.started == "no":
        return _judge_claimed(attempt, seen, evidence)
    if seen.exit is not None:
        return _judge_ended(seen, seen.exit, seen.proof or ProofReading(None), job.asks_proof, evidence)
    if seen.host != "same":
        return _judge_other_host(seen, evidence)
    if seen.started == "lost" and not seen.lives:
        return _judge_without_files(seen, evidence)
    if seen.identity is None:
        return _judge_unidentified(seen, evidence)
    if seen.lives:
        return _judge_alive(seen, job, watch, evidence, explain=explain)
    return _judge_gone(seen, job.asks_proof, evidence)


def make_outcome(verdict: Verdict, seen: AttemptSnapshot) -> Outcome:
    """A final verdict as it is recorded."""
    exit_, identity = seen.exit, seen.identity
    began = identity.at if identity else None
    return Outcome(
        verdict=verdict.state,
        cause=verdict.cause,
        reason=verdict.reason,
        note=verdict.note,
        exit_code=exit_.code if exit_ else None,
        exit_signal=exit_.signal if exit_ else None,
        started=began,
        ended=exit_.at if exit_ else None,
        duration_s=exit_.duration_s if exit_ else None,
        output=seen.proof.output if seen.proof else None,
        evidence=verdict.evidence,
        contributing=verdict.contributing,
        lines=verdict.lines,
        advice=verdict.advice,
        saved=seen.proof.saved if seen.proof else None,
        results=seen.proof.results if seen.proof else {},
    )


def _judge_claimed(attempt: Attempt, seen: AttemptSnapshot, evidence: tuple[Evidence, ...]) -> Verdict:
    if seen.host == "elsewhere":
        return _judge_other_host(seen, evidence)
    if seen.host == "rebooted" and not seen.shim_locked:
        return _make_dead_verdict(Cause("host_reboot", note=phrase("judge.machine_rebooted_no_trace_shows")), evidence)
    return Verdict(
        VerdictState.PENDING,
        phrase("judge.claimed_not_started_yet", slots=", ".join(attempt.slots)),
        "claimed",
        evidence=evidence,
    )


def _judge_ended(
    seen: AttemptSnapshot, exit_: ExitRecord, proof: ProofReading, declared: bool, evidence: tuple[Evidence, ...]
) -> Verdict:
    if declared or exit_.code == 0:  # "no proof is declared" says nothing about a death
        evidence += proof.evidence
    complete = exit_.code == 0 and bool(proof.holds)
    stopped = exit_.stop_reason is not None
    if complete and declared:
        helpers = phrase("judge.left_behind", leftover_pids=_describe_leftover_pids(seen)) if seen.tree_lives else ""
        return Verdict(
            VerdictState.DONE, phrase("judge.exit_0_proof_holds", helpers=helpers), evidence=evidence, final=True
        )
    if seen.tree_lives:
        reason = phrase(
            "judge.main_process_ended_but_processes_live",
            exit=_describe_exit(exit_),
            leftover_pids=_describe_leftover_pids(seen),
        )
        return Verdict(VerdictState.RUNNING, reason, "orphans", evidence=evidence)
    if complete and not stopped:
        return Verdict(VerdictState.DONE, phrase("judge.exit_0_no_proof_declared"), evidence=evidence, final=True)
    patient = (
        exit_.code == 0 or seen.boot - exit_.boot < PROOF_PATIENCE_S
    )  # a death is told although its files do not answer
    if declared and not stopped and proof.pending and patient:
        reason = phrase("judge.ended_proof_being_read", exit=_describe_exit(exit_))
        return Verdict(VerdictState.UNKNOWN, reason, "ending", "unknown", evidence=evidence)
    if exit_.code == 0 and not stopped and proof.holds is None and not seen.stop_reason:
        return Verdict(
            VerdictState.UNKNOWN, phrase("judge.exit_0_but_proof_cant_read"), confidence="unknown", evidence=evidence
        )
    note = phrase("judge.artifacts_complete_exit_not_0") if declared and proof.holds else ""
    found = _find_death_cause(seen, exit_, evidence)
    shown = [Evidence("log", "exit", line.strip()[:160], str(found.cause), exit_.boot) for line in found.lines[-1:]]
    return replace(
        _make_dead_verdict(found.cause, (*evidence, *shown), note),
        contributing=found.contributing,
        lines=found.lines,
        advice=found.try_,
    )


def _find_death_cause(seen: AttemptSnapshot, exit_: ExitRecord, evidence: tuple[Evidence, ...]) -> CauseReport:
    from muster.engine.judge.cause_rules import (
        find_cause,
    )  # its patterns take long to compile, and most looks see no death

    failed = [e.reading for e in evidence if e.kind == "proof" and e.says == "fails"]
    unread = [e.reading for e in evidence if e.kind == "proof" and e.says == "can't be read"]
    before, after = exit_.oom_kills
    known = seen.aftermath or PostMortem(exit_.log, exit_.out, exit_.disk_free, before, None, after)
    return find_cause(exit_, known, failed, unread, pid=known.kernel_pid)


def _judge_other_host(seen: AttemptSnapshot, evidence: tuple[Evidence, ...]) -> Verdict:
    # the kernel holds locks for living processes only, in any container
    if seen.tree_locked or seen.shim_locked or seen.slot_held:
        reason = phrase("judge.locks_held_lives_another_container")
        return Verdict(VerdictState.RUNNING, reason, confidence="presumed", evidence=evidence)
    if seen.host == "elsewhere":
        where = phrase("judge.started_another_machine_from_where")
        return _unknowable_verdict(seen, phrase("judge.whether_still_runs_there_cant_told", where=where), evidence)
    if seen.host == "rebooted":
        return _make_dead_verdict(Cause("host_reboot", note=phrase("judge.machine_rebooted_since_started")), evidence)
    return _make_dead_verdict(
        Cause("container_restart", note=phrase("judge.container_restarted_since_started")), evidence
    )


def _judge_without_files(seen: AttemptSnapshot, evidence: tuple[Evidence, ...]) -> Verdict:
    """It was launched or seen once, and its folder was deleted since. That says nothing about the run."""
    if seen.strays or seen.slot_held:
        who = _describe_leftover_pids(seen) if seen.strays else phrase("judge.processes_hold_slot")
        reason = phrase("judge.files_were_deleted_but_processes_live", who=who)
        return Verdict(VerdictState.RUNNING, reason, "orphans", evidence=evidence)
    if seen.shim_locked:
        reason = phrase("judge.files_were_deleted_process_ended_shim")
        return Verdict(VerdictState.UNKNOWN, reason, "ending", confidence="unknown", evidence=evidence)
    return _unknowable_verdict(seen, phrase("judge.files_were_deleted_nothing_seen_any"), evidence)


def _unknowable_verdict(seen: AttemptSnapshot, why: str, evidence: tuple[Evidence, ...]) -> Verdict:
    """Until a person says by `muster stop` that nothing of it runs any more."""
    if seen.stop_reason:
        return _make_dead_verdict(
            Cause(seen.stop_reason, confidence="probable", note=phrase("judge.stopped_request", why=why)), evidence
        )
    return Verdict(VerdictState.UNKNOWN, why, LOST_KIND, confidence="unknown", evidence=evidence)


def _judge_unidentified(seen: AttemptSnapshot, evidence: tuple[Evidence, ...]) -> Verdict:
    if seen.shim_locked:
        return Verdict(VerdictState.PENDING, phrase("judge.shim_starting"), "claimed", evidence=evidence)
    if seen.stop_reason:
        return _make_dead_verdict(
            Cause(seen.stop_reason, note=phrase("judge.stopped_request_while_being_started")), evidence
        )
    return _make_dead_verdict(Cause("never_started", note=phrase("judge.shim_died_before_opened_gate")), evidence)


def _judge_alive(
    seen: AttemptSnapshot, job: Job, watch: RunWatch | None, evidence: tuple[Evidence, ...], *, explain: bool
) -> Verdict:
    if not seen.execing and not seen.shim_locked:
        return Verdict(
            VerdictState.PENDING, phrase("judge.shim_died_child_behind_gate_ending"), "claimed", evidence=evidence
        )
    life = _describe_life(seen)
    if seen.started == "lost":
        life = join_phrases("; ", (life, phrase("judge.files_were_deleted")))
    if seen.shim == "gone":
        life = join_phrases("; ", (life, phrase("judge.shim_gone_so_exit_code_will_lost")))
    if watch is None:
        return Verdict(VerdictState.RUNNING, life, confidence="presumed", evidence=evidence)
    found = judge_liveness(watch, job, seen.boot)
    if explain:
        evidence += living_run_evidence(watch, seen.boot)
    first = found.state == VerdictState.RUNNING and found.kind in (None, "starting") and watch.history.first is None
    hurt = seen.shim == "gone" or seen.started == "lost" or seen.main == "hidden"
    reason = join_phrases("; ", (life, found.reason)) if first or hurt else found.reason
    rhythms = list_rhythms(watch, seen.boot) if explain else ()
    return Verdict(
        found.state,
        reason,
        found.kind,
        "presumed" if seen.main == "hidden" and found.confidence == "proven" else found.confidence,
        None,
        evidence,
        rhythms=rhythms,
        turns=found.turns,
        into=found.into,
    )


def _describe_life(seen: AttemptSnapshot) -> str:
    pid = seen.identity.pid if seen.identity else 0
    if seen.main == "hidden":
        return phrase("judge.pid_hidden_from_us_but_tree_lock_held", pid=pid)
    return phrase("judge.pid_alive_same_process_started", pid=pid)


def _judge_gone(seen: AttemptSnapshot, declared: bool, evidence: tuple[Evidence, ...]) -> Verdict:
    if seen.strays or (seen.tree_locked and not seen.shim_locked):
        reason = phrase("judge.main_process_gone_but_processes_live", leftover_pids=_describe_leftover_pids(seen))
        return Verdict(VerdictState.RUNNING, reason, "orphans", evidence=evidence)
    if seen.shim_locked:
        reason = phrase("judge.process_ended_how_not_written_down_yet")
        return Verdict(VerdictState.UNKNOWN, reason, "ending", confidence="unknown", evidence=evidence)
    if not seen.execing:
        return _make_dead_verdict(
            Cause("never_started", note=phrase("judge.shim_died_before_command_executed")), evidence
        )
    return _judge_unobserved_end(seen, declared, evidence)


def _judge_unobserved_end(seen: AttemptSnapshot, declared: bool, evidence: tuple[Evidence, ...]) -> Verdict:
    """Nobody saw how it ended. What it left behind may still prove that it finished: then it is not run again."""
    proof = seen.proof or ProofReading(None, pending=True)
    if declared and proof.pending:
        reason = phrase("judge.process_ended_proof_being_read")
        return Verdict(VerdictState.UNKNOWN, reason, "ending", confidence="unknown", evidence=evidence)
    if declared:
        evidence += proof.evidence
    if declared and proof.holds is None and not seen.stop_reason:
        reason = phrase("judge.process_gone_proof_cant_read_whether")
        return Verdict(VerdictState.UNKNOWN, reason, confidence="unknown", evidence=evidence)
    note = phrase("judge.artifacts_complete_exit_lost") if declared and proof.holds else ""
    if seen.stop_reason:
        told = phrase("judge.stopped_request_shim_gone_so_exit")
        return _make_dead_verdict(Cause(seen.stop_reason, confidence="probable", note=told), evidence, note)
    told = phrase("judge.process_gone_shim_died_before_exit")
    if proof.recorded is None:
        return _make_dead_verdict(Cause("unknown", confidence="unknown", note=told), evidence, note)
    said = phrase("judge.w_b_record_ends_exit_code", recorded=proof.recorded)
    evidence += (Evidence("wandb", "exit", said, "ended", seen.boot),)
    if proof.recorded == 0:
        return _make_dead_verdict(
            Cause("unknown", confidence="unknown", note=phrase("judge.exit_lost_but_record", told=told, said=said)),
            evidence,
            note,
        )
    return _make_dead_verdict(
        Cause("exit_code", str(proof.recorded), "probable", phrase("judge.shim_died_before", said=said)), evidence, note
    )


def _make_dead_verdict(cause: Cause, evidence: tuple[Evidence, ...], note: str = "") -> Verdict:
    return Verdict(VerdictState.DEAD, cause.note, cause=cause, evidence=evidence, note=note, final=True)


def _describe_exit(exit_: ExitRecord) -> str:
    if exit_.signal is not None:
        return phrase("judge.signal_status", number=exit_.signal)
    return phrase("judge.exit_status", code=exit_.code)


def _describe_leftover_pids(seen: AttemptSnapshot) -> str:
    pids = seen.strays or (seen.exit.orphans if seen.exit else None) or ()
    return "pid " + ", ".join(map(str, pids)) if pids else phrase("judge.processes_hold_tree_lock")


def _snapshot_evidence(attempt: Attempt, seen: AttemptSnapshot) -> tuple[Evidence, ...]:
    found = []

    def add(signal: str, kind: str, reading: str, says: str) -> None:
        found.append(Evidence(signal, kind, reading, says, seen.boot))

    if seen.trouble:
        add("folder", "life", seen.trouble, "abstains")
    if seen.exit:
        add(
            "exit",
            "life",
            phrase("judge.exit_json_after_s", exit=_describe_exit(seen.exit), duration_s=seen.exit.duration_s),
            "ended",
        )
    if seen.started == "revoked":
        add("started", "life", phrase("judge.started_won_controller_revoked"), phrase("judge.never_started"))
    elif seen.started == "no":
        add("started", "life", phrase("judge.there_no_started_file"), phrase("judge.not_started"))
    elif seen.started == "lost":
        add("folder", "life", phrase("judge.launched_files_not_there_any_more"), "abstains")
    if seen.slot_held:
        add("slot", "life", phrase("judge.lease_slot_names_held"), "alive")
    if seen.started == "lost" and seen.searched and not seen.strays:
        add("token", "life", phrase("judge.no_process_carries_token"), "gone")
    if seen.host != "same":
        what = phrase("judge.machine") if seen.host == "elsewhere" else phrase("judge.boot_id_container")
        add("host", "life", phrase("judge.differs_from_attempt_s", what=what, n=attempt.n), seen.host)
    if seen.identity and not seen.exit:
        match = {
            "alive": phrase("judge.alive_start_ticks_match"),
            "zombie": phrase("judge.zombie_not_reaped_yet"),
            "gone": phrase("judge.process_gone"),
            "hidden": phrase("judge.hidden_from_us_proc"),
        }
        read = match.get(seen.main) or phrase("judge.process_cant_read")
        add("process", "life", _describe_main_process(seen, seen.identity.pid, read), seen.main)
    if seen.started == "yes" and not seen.exit:
        add(
            "tree",
            "life",
            phrase("judge.tree_lock", how=phrase("judge.lock_held") if seen.tree_locked else phrase("judge.lock_free")),
            _life_word(seen.tree_locked),
        )
        add("shim", "life", phrase("judge.shim_state", shim=seen.shim), _life_word(seen.shim != "gone"))
        if not seen.execing:
            add("execing", "life", phrase("judge.there_no_execing_file_command_not"), phrase("judge.not_started"))
    if seen.strays:
        add("token", "life", phrase("judge.token_carried_pid", strays=", ".join(map(str, seen.strays))), "alive")
    return tuple(found)


def _life_word(alive: bool) -> str:
    return "alive" if alive else "gone"


def _describe_main_process(seen: AttemptSnapshot, pid: int, read: str) -> str:
    if seen.main_state:
        return phrase("judge.pid_read_as_in_state", pid=pid, read=read, state=seen.main_state)
    return phrase("judge.pid_read_as", pid=pid, read=read)
