"""One look at open attempts: the facts in their folders, and whether their processes are still the same ones."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from muster.domain.attempt import Attempt
from muster.domain.sighting import Exit, Identity, ProofReading, Sighting
from muster.observe import process
from muster.ports.clock import Clock

Key = tuple[str, int]
ReadProof = Callable[[Attempt, Exit], ProofReading]


class AttemptProbe:
    def __init__(self, folder_of: Callable[[str, int], Path], clock: Clock, read_proof: ReadProof) -> None:
        self.folder_of = folder_of
        self.clock = clock
        self.read_proof = read_proof
        self.host = (process.boot_id(), process.pid_namespace(), process.init_ticks())
        self._gone: dict[Key, int] = {}  # looks in a row that found it gone without exit.json

    def look(self, attempts: Sequence[Attempt]) -> dict[Key, Sighting]:
        seen = {attempt.key: self._look(attempt) for attempt in attempts}
        doubtful = {a.token: a.key for a in attempts if _needs_stray_scan(seen[a.key])}
        if doubtful:
            carriers = process.carriers(set(doubtful))
            for token, key in doubtful.items():
                seen[key] = _with_strays(seen[key], carriers[token])
        for attempt in attempts:
            seen[attempt.key] = self._count(attempt, seen[attempt.key])
        return seen

    def _look(self, attempt: Attempt) -> Sighting:
        seen = self._read(attempt)
        if seen.started == "yes" and seen.exit is None and not seen.shim_locked:
            # Its shim is gone, but perhaps only since we read: it may have written its last facts in between.
            # Now nobody writes any more, so what is read from here on is all there will ever be.
            return self._read(attempt)
        return seen

    def _read(self, attempt: Attempt) -> Sighting:
        folder = self.folder_of(*attempt.key)
        exit_ = _read_exit(folder / "exit.json", attempt.token)
        boot = self.clock.boot()
        if exit_ and exit_.orphans == ():  # the usual end: the tree's reaper saw that nothing is left to look for
            identity = _read_identity(folder / "identity.json")
            return Sighting(boot, "yes", True, identity, exit_, proof=self.read_proof(attempt, exit_))
        started = _read_text(folder / "started")
        if started is None:
            shim, locked = _shim(folder), _locked(folder / "shim.lock")
            host = self._host(None, attempt)
            return Sighting(boot, "no", host=host, shim=shim if locked else "gone", shim_locked=locked)
        identity = _read_identity(folder / "identity.json")
        main, letter = self._main(identity)
        return Sighting(
            boot=boot,
            started="revoked" if started.startswith("revoked") else "yes",
            execing=(folder / "execing").exists(),
            identity=identity,
            exit=exit_,
            host=self._host(identity, attempt),
            main=main,
            main_state=letter,
            shim=_shim(folder),
            shim_locked=_locked(folder / "shim.lock"),
            tree_locked=_locked(folder / "tree.lock"),
            stop_reason=(_read_json(folder / "stop") or {}).get("reason"),
            proof=self.read_proof(attempt, exit_) if exit_ else None,
        )

    def _host(self, identity: Identity | None, attempt: Attempt) -> Literal["same", "rebooted", "restarted"]:
        boot_id = identity.boot_id if identity else attempt.boot_id
        if boot_id != self.host[0]:
            return "rebooted"
        if identity and (identity.pid_namespace, identity.init_ticks) != self.host[1:]:
            return "restarted"
        return "same"

    def _main(self, identity: Identity | None) -> tuple[Literal["alive", "zombie", "gone", "unread"], str]:
        if identity is None:
            return "unread", ""
        if (identity.boot_id, identity.pid_namespace, identity.init_ticks) != self.host:
            return "gone", ""  # a pid of another life of this machine names nothing here
        try:
            found = process.process(identity.pid)
        except OSError:
            return "unread", ""
        if found is None or found.ticks != identity.ticks:
            return "gone", ""
        return ("zombie" if found.state in "ZX" else "alive"), found.state

    def _count(self, attempt: Attempt, sighting: Sighting) -> Sighting:
        key = attempt.key
        lost = sighting.started == "yes" and not sighting.exit and sighting.main in ("gone", "zombie")
        self._gone[key] = self._gone.get(key, 0) + 1 if lost else 0
        return replace(sighting, looks_without_exit=self._gone[key])

    def forget(self, key: Key) -> None:
        self._gone.pop(key, None)


def _needs_stray_scan(seen: Sighting) -> bool:
    """Only where the main process is gone: a scan of /proc costs more than everything else here."""
    if seen.started != "yes":
        return False
    if seen.exit is not None and seen.exit.orphans == ():
        return False
    return seen.main in ("gone", "zombie", "unread")


def _with_strays(seen: Sighting, pids: list[int]) -> Sighting:
    main = seen.identity.pid if seen.identity else -1
    return replace(seen, strays=tuple(pid for pid in pids if pid != main or seen.main != "alive"))


def _shim(folder: Path) -> Literal["alive", "stopped", "gone"]:
    text = _read_text(folder / "shim.lock")
    try:
        pid, ticks = (int(part) for part in (text or "").split())
    except ValueError:
        return "gone"
    try:
        found = process.process(pid)
    except OSError:
        return "gone"
    if found is None or found.ticks != ticks or found.state in "ZX":
        return "gone"
    return "stopped" if found.state in "Tt" else "alive"


def _locked(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except OSError:
        return True
    finally:
        os.close(fd)


def _read_text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _read_exit(path: Path, token: str) -> Exit | None:
    facts = _read_json(path)
    if facts is None or facts.get("token") != token:
        return None
    stops = facts.get("stops") or []
    evidence = facts.get("evidence") or {}
    return Exit(
        code=facts["code"],
        signal=facts["signal"],
        at=facts["at"],
        boot=facts["boot"],
        duration_s=facts["duration_s"],
        core=facts.get("core", False),
        exec_error=facts.get("exec_error"),
        stop_reason=stops[-1]["reason"] if stops else None,
        orphans=None if facts.get("orphans") is None else tuple(facts["orphans"]),
        log=evidence.get("log", ""),
    )


def _read_identity(path: Path) -> Identity | None:
    facts = _read_json(path)
    if facts is None:
        return None
    try:
        return Identity(**{name: facts[name] for name in Identity.__slots__})
    except KeyError:
        return None
