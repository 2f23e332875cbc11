"""The facts in an attempt's folder. Absent is one thing, unreadable another: only ENOENT means that one is not there.

Everything else that keeps us from reading raises OSError: taking it for absence would call a living run dead.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any, Literal

from muster.domain.sighting import Exit, Identity
from muster.observe import process

ABSENT = (FileNotFoundError, NotADirectoryError)


def read_text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except ABSENT:
        return None


def read_json(path: Path) -> dict[str, Any] | None:
    """Facts are renamed into place whole; one that does not parse is damaged, not absent."""
    try:
        data = path.read_bytes()
    except ABSENT:
        return None
    try:
        value = json.loads(data)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise OSError(f"{path.name} is damaged")
    return value


def read_exit(path: Path, token: str) -> Exit | None:
    facts = read_json(path)
    if facts is None or facts.get("token") != token:
        return None
    stops = facts.get("stops") or []
    evidence = facts.get("evidence") or {}
    try:
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
            out=evidence.get("out", ""),
            disk_free=evidence.get("disk_free"),
            oom_kills=tuple(evidence.get("oom_kills") or (None, None)),
        )
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        raise OSError(f"{path.name} is damaged") from error


def read_identity(path: Path) -> Identity | None:
    facts = read_json(path)
    if facts is None:
        return None
    try:
        return Identity(**{name: facts[name] for name in Identity.__slots__})
    except KeyError as error:
        raise OSError(f"{path.name} is damaged") from error


def stop_reason(folder: Path) -> str | None:
    request = read_json(folder / "stop")
    return str(request.get("reason", "user_stop")) if request else None


def locked(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except ABSENT:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(fd)


def shim(folder: Path) -> Literal["alive", "stopped", "gone"]:
    """By the pid and start time that the shim wrote into its lock."""
    text = read_text(folder / "shim.lock")
    try:
        pid, ticks = (int(part) for part in (text or "").split())
    except ValueError:
        return "gone"
    found = process.process(pid)
    if found is None or found.ticks != ticks or found.state in "ZX":
        return "gone"
    return "stopped" if found.state in "Tt" else "alive"
