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
from muster.ports.clock import Clock

Key = tuple[str, int]
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
ReadProof = Callable[[Attempt, Exit | None], ProofReading]
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
    ) -> None:
        self.folder_of = folder_of
        self.clock = clock
        self.read_proof = read_proof
        self.read_aftermath = read_aftermath
        self._begun: dict[str, _Begun] = {}  # by token
        self.host = (process.boot_id(), process.pid_namespace(), process.init_ticks())

    def look(self, attempts: Sequence[Attempt]) -> dict[Key, Sighting]:
        seen = {attempt.key: self._look(attempt) for attempt in attempts}
        doubtful = {a.token: a.key for a in attempts if seen[a.key].may_have_strays}  # to look for them costs most
        if doubtful:
            carriers = process.carriers(set(doubtful))
            for token, key in doubtful.items():
                seen[key] = seen[key].with_strays(carriers[token])
        return seen

    def _look(self, attempt: Attempt) -> Sighting:
        try:
            seen = self._read(attempt)
            if seen.started == "yes" and seen.exit is None and not seen.shim_locked:
                # Its shim is gone, but perhaps only since we read: it may have written its last facts in between.
                # Now nobody writes any more, so what is read from here on is all there will ever be.
                seen = self._read(attempt)
            return seen
        except OSError as error:
            return Sighting(self.clock.boot(), "unread", trouble=str(error))

    def _read(self, attempt: Attempt) -> Sighting:
        begun = self._begun.get(attempt.token)
        folder = begun.folder if begun else str(self.folder_of(*attempt.key))
        exit_ = facts.read_exit(folder + "/exit.json", attempt.token)
        if exit_ and exit_.orphans == ():
            self._begun.pop(attempt.token, None)
            return self._read_ended(attempt, folder, exit_)
        boot = self.clock.boot()
        begun = begun or self._read_begun(attempt, folder)
        if begun is None:
            locked = facts.locked(folder + "/shim.lock")
            shim = facts.shim(folder) if locked else "gone"
            return Sighting(boot, "no", host=self._host_of(attempt), shim=shim, shim_locked=locked)
        identity = begun.identity
        main, letter = self._main(identity)
        tree_locked = facts.locked(folder + "/tree.lock")
        if main == "hidden" and not tree_locked:
            main = "gone"  # another user's process has its pid now
        shim_locked = facts.locked(folder + "/shim.lock")
        ended = exit_ is not None or (main in ("gone", "zombie") and not shim_locked)
        host = self._host(identity) if identity else self._host_of(attempt)
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
        return begun

    def _aftermath(self, attempt: Attempt, exit_: Exit | None, identity: Identity | None) -> Aftermath | None:
        """Only for what did not end well."""
        if exit_ is None or exit_.code == 0 or self.read_aftermath is None:
            return None
        return self.read_aftermath(attempt, exit_, identity)

    def _read_ended(self, attempt: Attempt, folder: str, exit_: Exit) -> Sighting:
        """The usual end: the tree's reaper saw that nothing is left, so there is nothing else to look for."""
        proof = self.read_proof(attempt, exit_)
        identity = facts.read_identity(folder + "/identity.json")
        asked = None if proof.holds else facts.stop_reason(folder)
        after = self._aftermath(attempt, exit_, identity)
        return Sighting(
            self.clock.boot(), "yes", True, identity, exit_, stop_reason=asked, proof=proof, aftermath=after
        )

    def _host_of(self, attempt: Attempt) -> Literal["same", "rebooted"]:
        return "same" if attempt.boot_id == self.host[0] else "rebooted"

    def _host(self, identity: Identity) -> Literal["same", "rebooted", "restarted"]:
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
