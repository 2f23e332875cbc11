"""The facts in an attempt's folder. Absent is one thing, unreadable another: only ENOENT means that one is not there.

Everything else that keeps us from reading raises OSError: taking it for absence would call a living run dead.
Paths are texts and reads plain system calls: this runs for every run at every look.
"""

# ruff: noqa: PTH116, PTH119

from __future__ import annotations

import fcntl
import json
import os
from typing import Any, Literal

from muster.domain.sighting import Exit, Identity
from muster.observe import process

ABSENT = (FileNotFoundError, NotADirectoryError)


def read_bytes(path: str) -> bytes | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except ABSENT:
        return None
    try:
        data = more = os.read(fd, 65536)
        while len(more) == 65536:
            more = os.read(fd, 65536)
            data += more
        return data
    finally:
        os.close(fd)


def exists(path: str) -> bool:
    try:
        os.stat(path)
    except ABSENT:
        return False
    return True


def read_text(path: str) -> str | None:
    data = read_bytes(path)
    return None if data is None else data.decode("utf-8", "replace")


def read_json(path: str) -> dict[str, Any] | None:
    """Facts are renamed into place whole; one that does not parse is damaged, not absent."""
    data = read_bytes(path)
    if data is None:
        return None
    try:
        value = json.loads(data)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise _damaged(path)
    return value


def _damaged(path: str) -> OSError:
    return OSError(f"{os.path.basename(path)} is damaged")


def read_exit(path: str, token: str) -> Exit | None:
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
        raise _damaged(path) from error


def read_identity(path: str) -> Identity | None:
    facts = read_json(path)
    if facts is None:
        return None
    try:
        return Identity(**{name: facts[name] for name in Identity.__slots__})
    except KeyError as error:
        raise _damaged(path) from error


def stop_reason(folder: str) -> str | None:
    request = read_json(folder + "/stop")
    return str(request.get("reason", "user_stop")) if request else None


def freed(folder: str) -> float | None:
    """Boot time at which a shim saw the last orphan end; None: it did not say."""
    try:
        return float(read_bytes(folder + "/freed") or b"")
    except (OSError, ValueError):  # absent, or cut off by a crash
        return None


def last_sign(folder: str, before: float) -> float | None:
    """The newest file of an attempt whose machine or container has ended since, or the last look at its campaign.

    `before`: what was written after that is not its work.
    """
    state = folder.partition("/attempts/")[0]
    files = [f"{folder}/{name}" for name in ("stdout.log", "stderr.log", "identity.json", "execing", "attempt.json")]
    times = []
    for path in (*files, f"{folder}/out", f"{state}/watch.json"):
        try:
            times.append(os.stat(path).st_mtime)
        except OSError:  # a sign less; what must be read is read elsewhere
            continue
    return max((at for at in times if at <= before), default=None)


def locked(path: str) -> bool:
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


def shim(folder: str) -> Literal["alive", "stopped", "gone"]:
    """By the pid and start time that the shim wrote into its lock."""
    text = read_text(folder + "/shim.lock")
    try:
        pid, ticks = (int(part) for part in (text or "").split())
    except ValueError:
        return "gone"
    found = process.process(pid)
    if found is None or found.ticks != ticks or found.state in "ZX":
        return "gone"
    return "stopped" if found.state in "Tt" else "alive"
