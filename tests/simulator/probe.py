"""Looks at attempts in the made-up world: what a probe would find in their folders and in /proc, in the same order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, Protocol

from muster.hosts.local.attempt_probe import SEARCH_S
from muster.ledger.billed_spans import claim_wall_time
from muster.model.attempt import Attempt
from muster.model.attempt_snapshot import (
    AttemptSnapshot,
    ExitRecord,
    PostMortem,
    ProcessIdentity,
    ProofReading,
    RunReadings,
)
from muster.model.campaign import Job
from muster.model.verdict import Evidence
from simulator.campaign_folder import Folder
from simulator.campaign_ports import Caller
from simulator.world import Key, Life, World

Main = tuple[Literal["alive", "zombie", "gone", "unread"], str]


class Eyes(Protocol):
    """What a probe looks at."""

    world: World

    def folder(self, key: Key) -> Folder: ...

    def job_of(self, cell: str) -> Job: ...

    def deaf(self) -> bool:
        """The progress files do not answer at the moment."""


class SimProbe:
    def __init__(self, eyes: Eyes, caller: Caller) -> None:
        self.eyes, self.world, self.caller = eyes, eyes.world, caller

    def look(self, attempts: Sequence[Attempt]) -> dict[Key, AttemptSnapshot]:
        if not attempts:
            return {}
        self.caller.at("probe.look")
        seen = {attempt.key: self._look(attempt) for attempt in attempts}
        for attempt in attempts:
            if self._is_doubtful(attempt, seen[attempt.key]):
                pids = self.world.carriers(attempt.token, self.caller.life)
                seen[attempt.key] = seen[attempt.key].with_strays(pids)
        self.caller.at("probe.looked")
        return seen

    def _is_doubtful(self, attempt: Attempt, seen: AttemptSnapshot) -> bool:
        if seen.started == "no" and seen.host == "same" and not seen.shim_locked:
            return seen.boot - attempt.claimed_boot > SEARCH_S
        return seen.may_have_strays

    def _look(self, attempt: Attempt) -> AttemptSnapshot:
        folder = self.eyes.folder(attempt.key)
        if folder.unread_until > self.world.now:
            return AttemptSnapshot(self.world.boot, "unread", trouble="Stale file handle")
        if folder.gone:
            return self._lost(attempt, folder)
        seen = self._read(attempt, folder)
        if seen.started == "yes" and seen.exit is None and not seen.shim_locked:
            seen = self._read(attempt, folder)  # its shim is gone, perhaps only since we read
        return seen

    def _blink(self) -> None:
        """Between two reads the world may go on."""
        if self.world.random.random() < 0.1:
            self.world.spend(self.world.random.uniform(0.0, 0.003))

    def _read(self, attempt: Attempt, folder: Folder) -> AttemptSnapshot:
        exit_ = folder.exit
        if exit_ and exit_.orphans == ():
            return self._read_ended(attempt, folder, exit_)
        self._blink()
        boot = self.world.boot
        started = folder.started
        self._blink()
        if started is None:
            locked = folder.shim_locked
            shim = self._shim(folder) if locked else "gone"
            return AttemptSnapshot(boot, "no", host=self._host(None, attempt), shim=shim, shim_locked=locked)
        identity = folder.identity
        folder.seen = folder.seen or identity is not None
        self._blink()
        main, letter = self._main(identity, folder)
        self._blink()
        shim_locked = folder.shim_locked
        ended = exit_ is not None or (main in ("gone", "zombie") and not shim_locked)
        revoked, _, because = started.partition(":")
        return AttemptSnapshot(
            boot=boot,
            started="revoked" if revoked == "revoked" else "yes",
            revoked_because=because.strip() if revoked == "revoked" else "",
            execing=folder.execing,
            identity=identity,
            exit=exit_,
            host=self._host(identity, attempt),
            main=main,
            main_state=letter,
            shim=self._shim(folder),
            shim_locked=shim_locked,
            tree_locked=folder.tree_locked,
            stop_reason=folder.stop.reason if folder.stop else None,
            proof=self._proof(attempt, folder, exit_) if ended else None,
            aftermath=_aftermath(folder, exit_),
            last_sign=_last_sign(attempt, folder, self.world),
            freed=folder.freed,
        )

    def _lost(self, attempt: Attempt, folder: Folder) -> AttemptSnapshot:
        """Its files were deleted: who it was is remembered, and what its shim wrote elsewhere can be read."""
        exit_ = folder.exit
        if exit_ and exit_.orphans == ():
            return self._read_ended(attempt, folder, exit_)
        identity = folder.identity if folder.seen else None
        host = self._host(identity, attempt)
        main, letter = self._main(identity, folder)
        shim = self._shim(folder) if identity and host == "same" else "gone"
        return AttemptSnapshot(
            boot=self.world.boot,
            started="lost",
            execing=True,
            identity=identity,
            exit=exit_,
            host=host,
            main=main,
            main_state=letter,
            shim=shim,
            shim_locked=shim != "gone",
            stop_reason=folder.stop.reason if folder.stop else None,
            slot_held=folder.hold is not None and bool(folder.hold.by),
            proof=self._proof(attempt, folder, exit_) if exit_ else None,
            aftermath=_aftermath(folder, exit_),
            last_sign=_last_sign(attempt, folder, self.world),
            freed=folder.freed,
        )

    def _read_ended(self, attempt: Attempt, folder: Folder, exit_: ExitRecord) -> AttemptSnapshot:
        proof = self._proof(attempt, folder, exit_)
        asked = None if proof.holds else folder.stop.reason if folder.stop else None
        after = _aftermath(folder, exit_)
        return AttemptSnapshot(
            self.world.boot, "yes", True, folder.identity, exit_, stop_reason=asked, proof=proof, aftermath=after
        )

    def _host(self, identity: ProcessIdentity | None, attempt: Attempt) -> Literal["same", "rebooted", "restarted"]:
        mine = self.caller.life
        if (identity.boot_id if identity else attempt.boot_id) != mine.boot_id:
            return "rebooted"
        if identity and (identity.pid_namespace, identity.init_ticks) != (mine.pid_namespace, mine.init_ticks):
            return "restarted"
        return "same"

    def _main(self, identity: ProcessIdentity | None, folder: Folder) -> Main:
        if identity is None:
            return "unread", ""
        if Life(identity.boot_id, identity.pid_namespace, identity.init_ticks) != self.caller.life:
            return "gone", ""  # a pid of another life of this machine names nothing here
        found = self.world.process(identity.pid, self.caller.life)
        if found is None or found.ticks != identity.ticks:
            return "gone", ""
        if found.zombie:
            return "zombie", "Z"
        return "alive", _letter(folder)

    def _shim(self, folder: Folder) -> Literal["alive", "stopped", "gone"]:
        if folder.named is None:
            return "gone"
        found = self.world.process(folder.named[0], self.caller.life)
        if found is None or found.ticks != folder.named[1] or found.zombie:
            return "gone"
        return "stopped" if found.stopped else "alive"

    def _proof(self, attempt: Attempt, folder: Folder, exit_: ExitRecord | None) -> ProofReading:
        """A large checkpoint takes long to read; meanwhile the reading is pending."""
        job, plan = self.eyes.job_of(attempt.cell), folder.run.plan if folder.run else None
        died = exit_ is None or exit_.code != 0
        saved = plan.saved if plan and died else None
        if not job.proof:
            return ProofReading(True, saved=saved)
        if folder.proof_asked is None:
            folder.proof_asked = self.world.now
        if plan and self.world.now - folder.proof_asked < plan.proof_s:
            return ProofReading(None, pending=True)
        holds = proof_holds(folder)
        says = Evidence(
            "step", "proof", "step 100 of 100" if holds else "step 40 of 100", "holds" if holds else "fails"
        )
        return ProofReading(holds, (says,), output="out", saved=saved)


def proof_holds(folder: Folder) -> bool:
    """What a run left behind is complete only if it came to its own end, and that one was good."""
    ending = folder.run.plan.truth.ending if folder.run else None
    if folder.run is None or ending is None or folder.run.plan.exec_error is not None:
        return False
    return folder.how == (ending.code, ending.signal) and ending.proof_holds and folder.run.t >= ending.at - 1e-3


def _aftermath(folder: Folder, exit_: ExitRecord | None) -> PostMortem | None:
    if exit_ is None or exit_.code == 0:
        return None
    ending = folder.run.plan.truth.ending if folder.run else None
    natural = ending is not None and folder.how == (ending.code, ending.signal) and exit_.stop_reason is None
    return replace(ending.aftermath) if ending is not None and natural else PostMortem()


def _last_sign(attempt: Attempt, folder: Folder, world: World) -> float | None:
    """What its files tell when its machine has ended under it. Their times jump as little as that of its start."""
    ended, identity = folder.over_at if folder.over_at is not None else folder.ended_at, folder.identity
    if ended is None:
        return None
    if identity is None:
        return claim_wall_time(attempt) + ended - folder.claimed
    return identity.at + ended - world.true_time(identity.boot, identity.boot_id)


def _letter(folder: Folder) -> str:
    if folder.main is not None and folder.main.stopped:
        return "T"
    return folder.run.plan.truth.look(folder.run.t).main_state if folder.run else "S"


class SimSignals:
    """Progress and activity of living runs, from their truth."""

    def __init__(self, eyes: Eyes, caller: Caller) -> None:
        self.eyes, self.world, self.caller = eyes, eyes.world, caller
        self._old: dict[Key, RunReadings] = {}

    def read(self, living: Sequence[tuple[Attempt, AttemptSnapshot]]) -> Mapping[Key, RunReadings]:
        if not living:
            return {}
        self.caller.at("signals.read")
        return {attempt.key: self._of(attempt.key) for attempt, _ in living}

    def _of(self, key: Key) -> RunReadings:
        run = self.eyes.folder(key).run
        if run is None:
            return RunReadings(self.world.boot)
        moment = run.plan.truth.look(run.t)
        vitals = moment.vitals
        if run.process.stopped:
            vitals = replace(vitals, states="T" * len(vitals.states))
        fresh = RunReadings(self.world.boot, moment.marks, vitals)
        if self.eyes.deaf():
            return self._abstaining(key, fresh)
        self._old[key] = fresh
        return fresh

    def _abstaining(self, key: Key, fresh: RunReadings) -> RunReadings:
        """Files that do not answer: what they said last, with the trouble beside it."""
        old = self._old.get(key)
        marks = old.marks if old else ()
        return replace(fresh, marks=tuple(replace(mark, trouble="its files have not answered") for mark in marks))

    def forget(self, key: Key) -> None:
        self._old.pop(key, None)
