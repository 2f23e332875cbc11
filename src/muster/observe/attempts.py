"""One look at open attempts: the facts in their folders, and whether their processes are still the same ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from muster.domain.attempt import Attempt
from muster.domain.reading import Aftermath
from muster.domain.sighting import Exit, Identity, ProofReading, Sighting
from muster.observe import facts, process
from muster.observe.masked import masked_sighting
from muster.ports.clock import Clock
from muster.ports.traces import REQUEST_S, NoTraces, Traces

Key = tuple[str, int]
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
ReadProof = Callable[[Attempt, Exit | None], ProofReading]
SEARCH_S = 2.0  # after a claim: a shim that was asked for has come by then, or it is worth a pass over /proc
Host = Literal["same", "rebooted", "restarted", "elsewhere"]
ReadAftermath = Callable[[Attempt, Exit, Identity | None], Aftermath]


@dataclass(frozen=True, slots=True)
class _Begun:
    folder: str
    revoked: str | None  # why, if it was
    identity: Identity | None
    execing: bool


class AttemptProbe:
    def __init__(
        self,
        folder_of: Callable[[str, int], Path],
        clock: Clock,
        read_proof: ReadProof,
        read_aftermath: ReadAftermath | None = None,
        traces: Traces | None = None,
    ) -> None:
        self.folder_of = folder_of
        self.clock = clock
        self.read_proof = read_proof
        self.read_aftermath = read_aftermath
        self.traces = traces or NoTraces()
        self._begun: dict[str, _Begun] = {}  # by token
        self.host = (process.boot_id(), process.pid_namespace(), process.init_ticks())

    def look(self, attempts: Sequence[Attempt]) -> dict[Key, Sighting]:
        seen = {attempt.key: self._look(attempt) for attempt in attempts}
        doubtful = {a.token: a for a in attempts if self._is_doubtful(a, seen[a.key])}  # to look for them costs most
        if doubtful:
            try:
                carriers = process.carriers(set(doubtful))
            except OSError as error:
                unread = Sighting(self.clock.boot(), "unread", trouble=str(error))
                seen |= {attempt.key: unread for attempt in doubtful.values()}
                doubtful = {}
            for token, attempt in doubtful.items():
                seen[attempt.key] = self._searched(attempt, seen[attempt.key], carriers[token])
        return {key: masked_sighting(each) for key, each in seen.items()}

    def _is_doubtful(self, attempt: Attempt, seen: Sighting) -> bool:
        """It may have processes that its folder says nothing of."""
        if seen.started == "no" and seen.host == "same" and not seen.shim_locked:
            return seen.boot - attempt.claimed_boot > SEARCH_S
        return seen.may_have_strays

    def _searched(self, attempt: Attempt, seen: Sighting, pids: Sequence[int]) -> Sighting:
        """Whoever carries its token was started: then the files that would say so are gone."""
        if seen.started == "no" and pids:
            try:
                seen = self._read(attempt)  # it may have begun since we read
                if seen.started == "no" and not seen.shim_locked:
                    seen = self._lost(attempt, None)
            except OSError as error:
                return Sighting(self.clock.boot(), "unread", trouble=str(error))
        return seen.with_strays(pids)

    def _look(self, attempt: Attempt) -> Sighting:
        try:
            seen = self._read(attempt)
            if seen.started == "yes" and seen.exit is None and not seen.shim_locked:
                # Its shim is gone, but perhaps only since we read: it may have written its last facts in between.
                # Now nobody writes any more, so what is read from here on is all there will ever be.
                seen = self._read(attempt, last=True)
            return seen
        except OSError as error:
            return Sighting(self.clock.boot(), "unread", trouble=str(error))

    def _read(self, attempt: Attempt, *, last: bool = False) -> Sighting:
        """`last`: its shim is gone. What that could not write into the folder it wrote elsewhere."""
        begun = self._begun.get(attempt.token)
        folder = begun.folder if begun else str(self.folder_of(*attempt.place))
        exit_ = facts.read_exit(folder + "/exit.json", attempt.token)
        if exit_ is None and last:
            if not facts.exists(folder + "/started"):
                return self._lost(attempt, begun.identity if begun else None)
            exit_ = self._exit_elsewhere(attempt)
        if exit_ and exit_.orphans == ():
            self._begun.pop(attempt.token, None)
            return self._read_ended(attempt, exit_, facts.read_identity(folder + "/identity.json"), folder)
        boot = self.clock.boot()
        begun = begun or self._read_begun(attempt, folder)
        if begun is None:
            return self._unstarted(attempt, folder, boot)
        identity = begun.identity
        main, letter = self._main(identity)
        tree_locked = facts.locked(folder + "/tree.lock")
        if main == "hidden" and not tree_locked:
            main = "gone"  # another user's process has its pid now
        shim_locked = facts.locked(folder + "/shim.lock")
        ended = exit_ is not None or (main in ("gone", "zombie") and not shim_locked)
        host = self._elsewhere_or(self._host(identity), attempt) if identity else self._host_of(attempt)
        return Sighting(
            boot=boot,
            started="yes" if begun.revoked is None else "revoked",
            revoked_because=begun.revoked or "",
            execing=begun.execing,
            identity=identity,
            exit=exit_,
            host=host,
            main=main,
            main_state=letter,
            shim=facts.shim(folder),
            shim_locked=shim_locked,
            tree_locked=tree_locked,
            stop_reason=facts.stop_reason(folder),
            proof=self.read_proof(attempt, exit_) if ended else None,
            aftermath=self._aftermath(attempt, exit_, identity),
            last_sign=None if host == "same" else facts.last_sign(folder, self._life_began()),
            freed=facts.freed(folder) if exit_ and not (tree_locked or shim_locked) else None,
        )

    def _unstarted(self, attempt: Attempt, folder: str, boot: float) -> Sighting:
        """There is no `started`: nobody has begun it, or somebody has deleted what said so."""
        locked = facts.locked(folder + "/shim.lock")
        if not locked and self._was_begun(attempt, folder):
            begun = self._read_begun(attempt, folder)  # perhaps only since we looked for it
            if begun is None:
                return self._lost(attempt, facts.read_identity(folder + "/identity.json"))
        shim = facts.shim(folder) if locked else "gone"
        return Sighting(boot, "no", host=self._host_of(attempt), shim=shim, shim_locked=locked)

    def _was_begun(self, attempt: Attempt, folder: str) -> bool:
        """What is made after `started` is there, somebody saw who it is, or a shim has had its lease for long.

        Or what was made before the shim was asked for is not there any more. That it is there proves nothing: those
        who delete files choose freely.
        """
        if any(facts.exists(f"{folder}/{name}") for name in ("tree.lock", "identity.json", "execing")):
            return True
        if self.traces.identity(attempt.token):
            return True
        if facts.exists(folder + "/attempt.json"):
            return self.traces.holds_slot(attempt, for_s=REQUEST_S)
        return self.traces.launched(attempt.token) or self.traces.holds_slot(attempt)

    def _lost(self, attempt: Attempt, identity: Identity | None) -> Sighting:
        """Its files are gone, not the run: what is remembered elsewhere, and what the processes say."""
        self._begun.pop(attempt.token, None)
        identity = identity or self.traces.identity(attempt.token)
        exit_ = self._exit_elsewhere(attempt)
        if exit_ and exit_.orphans == ():
            return self._read_ended(attempt, exit_, identity)
        main, letter = self._main(identity)
        host = self._host(identity) if identity else self._host_of(attempt)
        shim = self._shim(identity) if identity and host == "same" else "gone"
        asked = (facts.stop_reason(place) for place in self.traces.refuges(attempt.token))
        return Sighting(
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
        )

    def _last_sign(self, attempt: Attempt) -> float | None:
        return facts.last_sign(str(self.folder_of(*attempt.place)), self._life_began())

    def _exit_elsewhere(self, attempt: Attempt) -> Exit | None:
        places = (f"{place}/exit.json" for place in self.traces.refuges(attempt.token))
        return next(filter(None, (facts.read_exit(place, attempt.token) for place in places)), None)

    def _shim(self, identity: Identity) -> Literal["alive", "stopped", "gone"]:
        return facts.state_of(identity.shim_pid, identity.shim_ticks)

    def _life_began(self) -> float:
        """Wall time at which this machine was switched on, or this container started."""
        return self.clock.wall() - self.clock.boot() + self.host[2] / TICKS_PER_S

    def _read_begun(self, attempt: Attempt, folder: str) -> _Begun | None:
        """None: there is no `started`. What the three facts say never changes, so it is read until all are there."""
        started = facts.read_text(folder + "/started")
        if started is None:
            return None
        revoked, _, because = started.partition(":")
        begun = _Begun(
            folder,
            because.strip() if revoked == "revoked" else None,
            facts.read_identity(folder + "/identity.json"),
            facts.exists(folder + "/execing"),
        )
        if begun.identity and begun.execing:
            self._begun[attempt.token] = begun
            if begun.revoked is None and self.traces.identity(attempt.token) is None:
                self.traces.saw(attempt.token, begun.identity)
        return begun

    def _aftermath(self, attempt: Attempt, exit_: Exit | None, identity: Identity | None) -> Aftermath | None:
        """Only for what did not end well."""
        if exit_ is None or exit_.code == 0 or self.read_aftermath is None:
            return None
        return self.read_aftermath(attempt, exit_, identity)

    def _read_ended(
        self, attempt: Attempt, exit_: Exit, identity: Identity | None, folder: str | None = None
    ) -> Sighting:
        """The usual end: the tree's reaper saw that nothing is left, so there is nothing else to look for."""
        proof = self.read_proof(attempt, exit_)
        asked = facts.stop_reason(folder) if folder and not proof.holds else None
        after = self._aftermath(attempt, exit_, identity)
        return Sighting(
            self.clock.boot(), "yes", True, identity, exit_, stop_reason=asked, proof=proof, aftermath=after
        )

    def _host_of(self, attempt: Attempt) -> Host:
        return "same" if attempt.boot_id == self.host[0] else self._elsewhere_or("rebooted", attempt)

    def _elsewhere_or(self, host: Host, attempt: Attempt) -> Host:
        """Another boot id proves that a machine was started anew only where it is the same machine."""
        return "elsewhere" if host == "rebooted" and self.traces.elsewhere(attempt) else host

    def _host(self, identity: Identity) -> Host:
        boot_id, namespace, ticks = self.host
        if identity.boot_id != boot_id:
            return "rebooted"
        if identity.pid_namespace != namespace:
            return "restarted"
        both_known = ticks and identity.init_ticks  # 0: process 1 was hidden from who asked
        return "restarted" if both_known and identity.init_ticks != ticks else "same"

    def _main(self, identity: Identity | None) -> tuple[Literal["alive", "hidden", "zombie", "gone", "unread"], str]:
        if identity is None:
            return "unread", ""
        if self._host(identity) != "same":
            return "gone", ""  # a pid of another life of this machine names nothing here
        found = process.process(identity.pid)
        if found is None and process.is_hidden(identity.pid):
            return "hidden", ""
        if found is None or found.ticks != identity.ticks:
            return "gone", ""
        return ("zombie" if found.state in "ZX" else "alive"), found.state
