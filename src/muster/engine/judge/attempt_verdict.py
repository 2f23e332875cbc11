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
            VerdictState.UNKNOWN, f"it can't be read: {seen.trouble}", confidence="unknown", evidence=evidence
        )
    if seen.started == "revoked" and seen.stop_reason:
        return _make_dead_verdict(Cause(seen.stop_reason, note="stopped on request before it was started"), evidence)
    if seen.started == "revoked":
        note = seen.revoked_because or "fenced before any shim could start it"
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
        return _make_dead_verdict(
            Cause("host_reboot", note="the machine rebooted; no trace shows that it had started"), evidence
        )
    return Verdict(
        VerdictState.PENDING, f"claimed on {', '.join(attempt.slots)}, not started yet", "claimed", evidence=evidence
    )


def _judge_ended(
    seen: AttemptSnapshot, exit_: ExitRecord, proof: ProofReading, declared: bool, evidence: tuple[Evidence, ...]
) -> Verdict:
    if declared or exit_.code == 0:  # "no proof is declared" says nothing about a death
        evidence += proof.evidence
    complete = exit_.code == 0 and bool(proof.holds)
    stopped = exit_.stop_reason is not None
    if complete and declared:
        helpers = f"; left behind: {_describe_leftover_pids(seen)}" if seen.tree_lives else ""
        return Verdict(VerdictState.DONE, f"exit 0 and its proof holds{helpers}", evidence=evidence, final=True)
    if seen.tree_lives:
        reason = (
            f"its main process ended ({_describe_exit(exit_)}), but processes of it live on: "
            f"{_describe_leftover_pids(seen)}"
        )
        return Verdict(VerdictState.RUNNING, reason, "orphans", evidence=evidence)
    if complete and not stopped:
        return Verdict(VerdictState.DONE, "exit 0; no proof is declared", evidence=evidence, final=True)
    patient = (
        exit_.code == 0 or seen.boot - exit_.boot < PROOF_PATIENCE_S
    )  # a death is told although its files do not answer
    if declared and not stopped and proof.pending and patient:
        reason = f"it ended with {_describe_exit(exit_)}; its proof is being read"
        return Verdict(VerdictState.UNKNOWN, reason, "ending", "unknown", evidence=evidence)
    if exit_.code == 0 and not stopped and proof.holds is None and not seen.stop_reason:
        return Verdict(
            VerdictState.UNKNOWN, "exit 0, but its proof can't be read", confidence="unknown", evidence=evidence
        )
    note = "artifacts complete: its proof holds although it did not exit with 0" if declared and proof.holds else ""
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
        reason = "its locks are held: it lives in another container on this machine"
        return Verdict(VerdictState.RUNNING, reason, confidence="presumed", evidence=evidence)
    if seen.host == "elsewhere":
        where = "it was started on another machine, from where this folder was brought"
        return _unknowable_verdict(seen, f"{where}: whether it still runs there can't be told from here", evidence)
    if seen.host == "rebooted":
        return _make_dead_verdict(Cause("host_reboot", note="the machine has rebooted since it was started"), evidence)
    return _make_dead_verdict(
        Cause("container_restart", note="the container has been restarted since it was started"), evidence
    )


def _judge_without_files(seen: AttemptSnapshot, evidence: tuple[Evidence, ...]) -> Verdict:
    """It was launched or seen once, and its folder was deleted since. That says nothing about the run."""
    if seen.strays or seen.slot_held:
        who = _describe_leftover_pids(seen) if seen.strays else "processes that hold its slot"
        reason = f"its files were deleted, but processes of it live: {who}"
        return Verdict(VerdictState.RUNNING, reason, "orphans", evidence=evidence)
    if seen.shim_locked:
        reason = "its files were deleted; its process has ended, and its shim is about to write down how"
        return Verdict(VerdictState.UNKNOWN, reason, "ending", confidence="unknown", evidence=evidence)
    return _unknowable_verdict(
        seen, "its files were deleted and nothing of it is seen any more: how it ended can't be told", evidence
    )


def _unknowable_verdict(seen: AttemptSnapshot, why: str, evidence: tuple[Evidence, ...]) -> Verdict:
    """Until a person says by `muster stop` that nothing of it runs any more."""
    if seen.stop_reason:
        return _make_dead_verdict(
            Cause(seen.stop_reason, confidence="probable", note=f"stopped on request; {why}"), evidence
        )
    return Verdict(VerdictState.UNKNOWN, why, LOST_KIND, confidence="unknown", evidence=evidence)


def _judge_unidentified(seen: AttemptSnapshot, evidence: tuple[Evidence, ...]) -> Verdict:
    if seen.shim_locked:
        return Verdict(VerdictState.PENDING, "its shim is starting it", "claimed", evidence=evidence)
    if seen.stop_reason:
        return _make_dead_verdict(
            Cause(seen.stop_reason, note="stopped on request while it was being started"), evidence
        )
    return _make_dead_verdict(Cause("never_started", note="its shim died before it opened the gate"), evidence)


def _judge_alive(
    seen: AttemptSnapshot, job: Job, watch: RunWatch | None, evidence: tuple[Evidence, ...], *, explain: bool
) -> Verdict:
    if not seen.execing and not seen.shim_locked:
        return Verdict(
            VerdictState.PENDING, "its shim died; the child behind the gate is ending", "claimed", evidence=evidence
        )
    life = _describe_life(seen)
    if seen.started == "lost":
        life += "; its files were deleted"
    if seen.shim == "gone":
        life += "; its shim is gone, so its exit code will be lost"
    if watch is None:
        return Verdict(VerdictState.RUNNING, life, confidence="presumed", evidence=evidence)
    found = judge_liveness(watch, job, seen.boot)
    if explain:
        evidence += living_run_evidence(watch, seen.boot)
    first = found.state == VerdictState.RUNNING and found.kind in (None, "starting") and watch.history.first is None
    hurt = seen.shim == "gone" or seen.started == "lost" or seen.main == "hidden"
    reason = f"{life}; {found.reason}" if first or hurt else found.reason
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
        return f"pid {pid} is hidden from us, but its tree.lock is held"
    return f"pid {pid} is alive and the same process that was started"


def _judge_gone(seen: AttemptSnapshot, declared: bool, evidence: tuple[Evidence, ...]) -> Verdict:
    if seen.strays or (seen.tree_locked and not seen.shim_locked):
        reason = f"its main process is gone, but processes of it live on: {_describe_leftover_pids(seen)}"
        return Verdict(VerdictState.RUNNING, reason, "orphans", evidence=evidence)
    if seen.shim_locked:
        reason = "its process has ended; how is not written down yet"
        return Verdict(VerdictState.UNKNOWN, reason, "ending", confidence="unknown", evidence=evidence)
    if not seen.execing:
        return _make_dead_verdict(
            Cause("never_started", note="its shim died before the command was executed"), evidence
        )
    return _judge_unobserved_end(seen, declared, evidence)


def _judge_unobserved_end(seen: AttemptSnapshot, declared: bool, evidence: tuple[Evidence, ...]) -> Verdict:
    """Nobody saw how it ended. What it left behind may still prove that it finished: then it is not run again."""
    proof = seen.proof or ProofReading(None, pending=True)
    if declared and proof.pending:
        reason = "its process has ended; its proof is being read"
        return Verdict(VerdictState.UNKNOWN, reason, "ending", confidence="unknown", evidence=evidence)
    if declared:
        evidence += proof.evidence
    if declared and proof.holds is None and not seen.stop_reason:
        reason = "its process is gone, and its proof can't be read: whether it finished can't be told"
        return Verdict(VerdictState.UNKNOWN, reason, confidence="unknown", evidence=evidence)
    note = "artifacts complete: its proof holds although its exit status is lost" if declared and proof.holds else ""
    if seen.stop_reason:
        told = "stopped on request; its shim was gone, so the exit status is lost"
        return _make_dead_verdict(Cause(seen.stop_reason, confidence="probable", note=told), evidence, note)
    told = "its process is gone and its shim died before it; the exit status is lost"
    if proof.recorded is None:
        return _make_dead_verdict(Cause("unknown", confidence="unknown", note=told), evidence, note)
    said = f"its W&B record ends with exit code {proof.recorded}"
    evidence += (Evidence("wandb", "exit", said, "ended", seen.boot),)
    if proof.recorded == 0:
        return _make_dead_verdict(Cause("unknown", confidence="unknown", note=f"{told}, but {said}"), evidence, note)
    return _make_dead_verdict(
        Cause("exit_code", str(proof.recorded), "probable", f"{said}; its shim died before it"), evidence, note
    )


def _make_dead_verdict(cause: Cause, evidence: tuple[Evidence, ...], note: str = "") -> Verdict:
    return Verdict(VerdictState.DEAD, cause.note, cause=cause, evidence=evidence, note=note, final=True)


def _describe_exit(exit_: ExitRecord) -> str:
    return f"signal {exit_.signal}" if exit_.signal is not None else f"exit {exit_.code}"


def _describe_leftover_pids(seen: AttemptSnapshot) -> str:
    pids = seen.strays or (seen.exit.orphans if seen.exit else None) or ()
    return "pid " + ", ".join(map(str, pids)) if pids else "processes that hold its tree.lock"


def _snapshot_evidence(attempt: Attempt, seen: AttemptSnapshot) -> tuple[Evidence, ...]:
    found = []

    def add(signal: str, kind: str, reading: str, says: str) -> None:
        found.append(Evidence(signal, kind, reading, says, seen.boot))

    if seen.trouble:
        add("folder", "life", seen.trouble, "abstains")
    if seen.exit:
        add("exit", "life", f"exit.json: {_describe_exit(seen.exit)} after {seen.exit.duration_s:.1f} s", "ended")
    if seen.started == "revoked":
        add("started", "life", "`started` was won by the controller: revoked", "never started")
    elif seen.started == "no":
        add("started", "life", "there is no `started` file", "not started")
    elif seen.started == "lost":
        add("folder", "life", "it was launched, and its files are not there any more", "abstains")
    if seen.slot_held:
        add("slot", "life", "a lease of its slot names it and is held", "alive")
    if seen.started == "lost" and seen.searched and not seen.strays:
        add("token", "life", "no process carries its token", "gone")
    if seen.host != "same":
        what = "machine" if seen.host == "elsewhere" else "boot id or container"
        add("host", "life", f"{what} differs from attempt {attempt.n}'s", seen.host)
    if seen.identity and not seen.exit:
        match = {
            "alive": "alive, start ticks match",
            "zombie": "a zombie, not reaped yet",
            "gone": "gone",
            "hidden": "is hidden from us by /proc",
        }
        reading = f"pid {seen.identity.pid} {match.get(seen.main, 'can not be read')}"
        add("process", "life", reading + (f", state {seen.main_state}" if seen.main_state else ""), seen.main)
    if seen.started == "yes" and not seen.exit:
        add("tree", "life", f"tree.lock is {'held' if seen.tree_locked else 'free'}", _life_word(seen.tree_locked))
        add("shim", "life", f"the shim is {seen.shim}", _life_word(seen.shim != "gone"))
        if not seen.execing:
            add("execing", "life", "there is no `execing` file: the command was not executed yet", "not started")
    if seen.strays:
        add("token", "life", f"its token is carried by pid {', '.join(map(str, seen.strays))}", "alive")
    return tuple(found)


def _life_word(alive: bool) -> str:
    return "alive" if alive else "gone"
