"""Probes open attempts: the facts in their folders, and whether their processes are still the same ones. Texts of a
run are masked before anything is concluded from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from muster.engine.ports.clock import Clock
from muster.engine.ports.probe import REQUEST_TIMEOUT_S, AttemptTraces, NoAttemptTraces
from muster.files.known_secrets import mask_secrets, mask_secrets_in_tail
from muster.files.process_identity import (
    carriers_of_tokens,
    is_hidden_process,
    read_boot_id,
    read_init_ticks,
    read_pid_namespace,
    read_process,
)
from muster.hosts.local.process_tree import TICKS_PER_S
from muster.model.attempt import Attempt, AttemptKey
from muster.model.attempt_snapshot import AttemptSnapshot, ExitRecord, PostMortem, ProcessIdentity, ProofReading
from muster.model.verdict import Evidence
from muster.readers.attempt_facts import (
    fact_exists,
    is_lock_file_held,
    last_sign_of_attempt,
    read_exit_file,
    read_fact_text,
    read_freed_time,
    read_identity_file,
    read_stop_reason,
    shim_state,
    state_of_process,
)


def mask_snapshot(seen: AttemptSnapshot) -> AttemptSnapshot:
    """Only how it ended has texts from the run; what is seen of a living one is numbers and names of files."""
    if not (seen.exit or seen.aftermath or (seen.proof and seen.proof.evidence)):
        return seen
    return replace(
        seen,
        exit=seen.exit and _masked_exit(seen.exit),
        aftermath=seen.aftermath and _masked_post_mortem(seen.aftermath),
        proof=seen.proof and mask_proof(seen.proof),
    )


def mask_proof(proof: ProofReading) -> ProofReading:
    return replace(proof, evidence=tuple(map(_masked_evidence, proof.evidence))) if proof.evidence else proof


def _masked_evidence(each: Evidence) -> Evidence:
    told = mask_secrets(each.reading)
    return each if told == each.reading else replace(each, reading=told)


def _masked_exit(found: ExitRecord) -> ExitRecord:
    """`log` and `out` are the ends of longer texts."""
    error = found.exec_error and mask_secrets(found.exec_error)
    return replace(found, log=mask_secrets_in_tail(found.log), out=mask_secrets_in_tail(found.out), exec_error=error)


def _masked_post_mortem(found: PostMortem) -> PostMortem:
    return replace(found, err=mask_secrets_in_tail(found.err), out=mask_secrets_in_tail(found.out))


ReadProof = Callable[[Attempt, ExitRecord | None], ProofReading]
SEARCH_S = 2.0  # after a claim: a shim that was asked for has come by then, or it is worth a pass over /proc
HostRelation = Literal["same", "rebooted", "restarted", "elsewhere"]
ReadPostMortem = Callable[[Attempt, ExitRecord, ProcessIdentity | None], PostMortem]


@dataclass(frozen=True, slots=True)
class _StartFacts:
    folder: str
    revoked: str | None  # why, if it was
    identity: ProcessIdentity | None
    execing: bool


class AttemptProbe:
    def __init__(
        self,
        folder_of: Callable[[str, int], Path],
        clock: Clock,
        read_proof: ReadProof,
        read_aftermath: ReadPostMortem | None = None,
        traces: AttemptTraces | None = None,
    ) -> None:
        self.folder_of = folder_of
        self.clock = clock
        self.read_proof = read_proof
        self.read_aftermath = read_aftermath
        self.traces = traces or NoAttemptTraces()
        self._begun: dict[str, _StartFacts] = {}  # by token
        self.host = (read_boot_id(), read_pid_namespace(), read_init_ticks())

    def look(self, attempts: Sequence[Attempt]) -> dict[AttemptKey, AttemptSnapshot]:
        seen = {attempt.key: self._look(attempt) for attempt in attempts}
        doubtful = {a.token: a for a in attempts if self._is_doubtful(a, seen[a.key])}  # to look for them costs most
        if doubtful:
            try:
                carriers = carriers_of_tokens(set(doubtful))
            except OSError as error:
                unread = AttemptSnapshot(self.clock.boot(), "unread", trouble=str(error))
                seen |= {attempt.key: unread for attempt in doubtful.values()}
                doubtful = {}
            for token, attempt in doubtful.items():
                seen[attempt.key] = self._searched(attempt, seen[attempt.key], carriers[token])
        return {key: mask_snapshot(each) for key, each in seen.items()}

    def _is_doubtful(self, attempt: Attempt, seen: AttemptSnapshot) -> bool:
        """It may have processes that its folder says nothing of."""
        if seen.started == "no" and seen.host == "same" and not seen.shim_locked:
            return seen.boot - attempt.claimed_boot > SEARCH_S
        return seen.may_have_strays

    def _searched(self, attempt: Attempt, seen: AttemptSnapshot, pids: Sequence[int]) -> AttemptSnapshot:
        """Whoever carries its token was started: then the files that would say so are gone."""
        if seen.started == "no" and pids:
            try:
                seen = self._read(attempt)  # it may have begun since we read
                if seen.started == "no" and not seen.shim_locked:
                    seen = self._lost(attempt, None)
            except OSError as error:
                return AttemptSnapshot(self.clock.boot(), "unread", trouble=str(error))
        return seen.with_strays(pids)

    def _look(self, attempt: Attempt) -> AttemptSnapshot:
        try:
            seen = self._read(attempt)
            if seen.started == "yes" and seen.exit is None and not seen.shim_locked:
                # Its shim is gone, but perhaps only since we read: it may have written its last facts in between.
                # Now nobody writes any more, so what is read from here on is all there will ever be.
                seen = self._read(attempt, last=True)
            return seen
        except OSError as error:
            return AttemptSnapshot(self.clock.boot(), "unread", trouble=str(error))

    def _read(self, attempt: Attempt, *, last: bool = False) -> AttemptSnapshot:
        """`last`: its shim is gone. What that could not write into the folder it wrote elsewhere."""
        begun = self._begun.get(attempt.token)
        folder = begun.folder if begun else str(self.folder_of(*attempt.place))
        exit_ = read_exit_file(folder + "/exit.json", attempt.token)
        if exit_ is None and last:
            if not fact_exists(folder + "/started"):
                return self._lost(attempt, begun.identity if begun else None)
            exit_ = self._exit_elsewhere(attempt)
        if exit_ and exit_.orphans == ():
            self._begun.pop(attempt.token, None)
            return self._read_ended(attempt, exit_, read_identity_file(folder + "/identity.json"), folder)
        boot = self.clock.boot()
        begun = begun or self._read_begun(attempt, folder)
        if begun is None:
            return self._unstarted(attempt, folder, boot)
        identity = begun.identity
        main, letter = self._main(identity)
        tree_locked = is_lock_file_held(folder + "/tree.lock")
        if main == "hidden" and not tree_locked:
            main = "gone"  # another user's process has its pid now
        shim_locked = is_lock_file_held(folder + "/shim.lock")
        ended = exit_ is not None or (main in ("gone", "zombie") and not shim_locked)
        host = self._elsewhere_or(self._host(identity), attempt) if identity else self._host_of(attempt)
        return AttemptSnapshot(
            boot=boot,
            started="yes" if begun.revoked is None else "revoked",
            revoked_because=begun.revoked or "",
            execing=begun.execing,
            identity=identity,
            exit=exit_,
            host=host,
            main=main,
            main_state=letter,
            shim=shim_state(folder),
            shim_locked=shim_locked,
            tree_locked=tree_locked,
            stop_reason=read_stop_reason(folder),
            proof=self.read_proof(attempt, exit_) if ended else None,
            aftermath=self._aftermath(attempt, exit_, identity),
            last_sign=None if host == "same" else last_sign_of_attempt(folder, self._life_began()),
            freed=read_freed_time(folder) if exit_ and not (tree_locked or shim_locked) else None,
        )

    def _unstarted(self, attempt: Attempt, folder: str, boot: float) -> AttemptSnapshot:
        """There is no `started`: nobody has begun it, or somebody has deleted what said so."""
        locked = is_lock_file_held(folder + "/shim.lock")
        if not locked and self._was_begun(attempt, folder):
            begun = self._read_begun(attempt, folder)  # perhaps only since we looked for it
            if begun is None:
                return self._lost(attempt, read_identity_file(folder + "/identity.json"))
        shim = shim_state(folder) if locked else "gone"
        return AttemptSnapshot(boot, "no", host=self._host_of(attempt), shim=shim, shim_locked=locked)

    def _was_begun(self, attempt: Attempt, folder: str) -> bool:
        """What is made after `started` is there, somebody saw who it is, or a shim has had its lease for long.

        Or what was made before the shim was asked for is not there any more. That it is there proves nothing: those
        who delete files choose freely.
        """
        if any(fact_exists(f"{folder}/{name}") for name in ("tree.lock", "identity.json", "execing")):
            return True
        if self.traces.identity(attempt.token):
            return True
        if fact_exists(folder + "/attempt.json"):
            return self.traces.holds_slot(attempt, for_s=REQUEST_TIMEOUT_S)
        return self.traces.launched(attempt.token) or self.traces.holds_slot(attempt)

    def _lost(self, attempt: Attempt, identity: ProcessIdentity | None) -> AttemptSnapshot:
        """Its files are gone, not the run: what is remembered elsewhere, and what the processes say."""
        self._begun.pop(attempt.token, None)
        identity = identity or self.traces.identity(attempt.token)
        exit_ = self._exit_elsewhere(attempt)
        if exit_ and exit_.orphans == ():
            return self._read_ended(attempt, exit_, identity)
        main, letter = self._main(identity)
        host = self._host(identity) if identity else self._host_of(attempt)
        shim = self._shim(identity) if identity and host == "same" else "gone"
        asked = (read_stop_reason(place) for place in self.traces.refuges(attempt.token))
        return AttemptSnapshot(
            boot=self.clock.boot(),
            started="lost",
            execing=True,
            identity=identity,
            exit=exit_,
            host=self._elsewhere_or(host, attempt),
            main="gone" if main == "hidden" else main,  # without a lock to tell, it may be anybody's
            main_state=letter,
            shim=shim,
            shim_locked=shim != "gone",
            stop_reason=next(filter(None, asked), None),
            slot_held=self.traces.holds_slot(attempt),
            proof=self.read_proof(attempt, exit_) if exit_ else None,
            aftermath=self._aftermath(attempt, exit_, identity),
            last_sign=None if host == "same" else self._last_sign(attempt),
            freed=self._freed_elsewhere(attempt) if exit_ and shim == "gone" else None,
        )

    def _last_sign(self, attempt: Attempt) -> float | None:
        return last_sign_of_attempt(str(self.folder_of(*attempt.place)), self._life_began())

    def _exit_elsewhere(self, attempt: Attempt) -> ExitRecord | None:
        places = (f"{place}/exit.json" for place in self.traces.refuges(attempt.token))
        return next(filter(None, (read_exit_file(place, attempt.token) for place in places)), None)

    def _freed_elsewhere(self, attempt: Attempt) -> float | None:
        told = (read_freed_time(place) for place in self.traces.refuges(attempt.token))
        return next((at for at in told if at is not None), None)

    def _shim(self, identity: ProcessIdentity) -> Literal["alive", "stopped", "gone"]:
        return state_of_process(identity.shim_pid, identity.shim_ticks)

    def _life_began(self) -> float:
        """Wall time at which this machine was switched on, or this container started."""
        return self.clock.wall() - self.clock.boot() + self.host[2] / TICKS_PER_S

    def _read_begun(self, attempt: Attempt, folder: str) -> _StartFacts | None:
        """None: there is no `started`. What the three facts say never changes, so it is read until all are there."""
        started = read_fact_text(folder + "/started")
        if started is None:
            return None
        revoked, _, because = started.partition(":")
        begun = _StartFacts(
            folder,
            because.strip() if revoked == "revoked" else None,
            read_identity_file(folder + "/identity.json"),
            fact_exists(folder + "/execing"),
        )
        if begun.identity and begun.execing:
            self._begun[attempt.token] = begun
            if begun.revoked is None and self.traces.identity(attempt.token) is None:
                self.traces.saw(attempt.token, begun.identity)
        return begun

    def _aftermath(
        self, attempt: Attempt, exit_: ExitRecord | None, identity: ProcessIdentity | None
    ) -> PostMortem | None:
        """Only for what did not end well."""
        if exit_ is None or exit_.code == 0 or self.read_aftermath is None:
            return None
        return self.read_aftermath(attempt, exit_, identity)

    def _read_ended(
        self, attempt: Attempt, exit_: ExitRecord, identity: ProcessIdentity | None, folder: str | None = None
    ) -> AttemptSnapshot:
        """The usual end: the tree's reaper saw that nothing is left, so there is nothing else to look for."""
        proof = self.read_proof(attempt, exit_)
        asked = read_stop_reason(folder) if folder and not proof.holds else None
        after = self._aftermath(attempt, exit_, identity)
        return AttemptSnapshot(
            self.clock.boot(), "yes", True, identity, exit_, stop_reason=asked, proof=proof, aftermath=after
        )

    def _host_of(self, attempt: Attempt) -> HostRelation:
        return "same" if attempt.boot_id == self.host[0] else self._elsewhere_or("rebooted", attempt)

    def _elsewhere_or(self, host: HostRelation, attempt: Attempt) -> HostRelation:
        """Another boot id proves that a machine was started anew only where it is the same machine."""
        return "elsewhere" if host == "rebooted" and self.traces.elsewhere(attempt) else host

    def _host(self, identity: ProcessIdentity) -> HostRelation:
        boot_id, namespace, ticks = self.host
        if identity.boot_id != boot_id:
            return "rebooted"
        if identity.pid_namespace != namespace:
            return "restarted"
        both_known = ticks and identity.init_ticks  # 0: process 1 was hidden from who asked
        return "restarted" if both_known and identity.init_ticks != ticks else "same"

    def _main(
        self, identity: ProcessIdentity | None
    ) -> tuple[Literal["alive", "hidden", "zombie", "gone", "unread"], str]:
        if identity is None:
            return "unread", ""
        if self._host(identity) != "same":
            return "gone", ""  # a pid of another life of this machine names nothing here
        found = read_process(identity.pid)
        if found is None and is_hidden_process(identity.pid):
            return "hidden", ""
        if found is None or found.ticks != identity.ticks:
            return "gone", ""
        return ("zombie" if found.state in "ZX" else "alive"), found.state
