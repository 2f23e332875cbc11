"""The facts in an attempt's folder. Absent is one thing, unreadable another: only ENOENT means that one is not there.

Everything else that keeps us from reading raises OSError: taking it for absence would call a living run dead.
A run may write into its own folder: what no shim can have written there is damaged.
Paths are texts and reads plain system calls: this runs for every run at every look.
"""

# ruff: noqa: PTH116, PTH119

from __future__ import annotations

import fcntl
import json
import os
from typing import Any, Literal

from muster.domain.sighting import LARGEST_PID, Exit, Identity
from muster.observe import process
from muster.ports.plain_files import NotPlain, open_plain, read_plain

LARGEST_NUMBER = 1 << 63  # what the store can hold
ABSENT = (FileNotFoundError, NotADirectoryError)


def read_bytes(path: str) -> bytes | None:
    try:
        return read_plain(path)
    except ABSENT:
        return None
    except NotPlain as error:
        raise _damaged(path) from error


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
    except (ValueError, RecursionError):
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
            code=_whole_or_none(facts["code"]),
            signal=_whole_or_none(facts["signal"]),
            at=_number(facts["at"]),
            boot=_number(facts["boot"]),
            duration_s=_number(facts["duration_s"]),
            core=bool(facts.get("core", False)),
            exec_error=None if facts.get("exec_error") is None else _plain_text(facts["exec_error"]),
            stop_reason=_plain_text(stops[-1]["reason"]) if stops else None,
            orphans=None if facts.get("orphans") is None else tuple(map(_pid, facts["orphans"])),
            log=_plain_text(evidence.get("log", "")),
            out=_plain_text(evidence.get("out", "")),
            disk_free=_whole_or_none(evidence.get("disk_free")),
            oom_kills=_oom_kills(*(evidence.get("oom_kills") or (None, None))),
        )
    except (AttributeError, KeyError, TypeError, IndexError, ValueError) as error:
        raise _damaged(path) from error


def _whole(value: object) -> int:
    if type(value) is not int or abs(value) >= LARGEST_NUMBER:
        raise ValueError(value)
    return value


def _whole_or_none(value: object) -> int | None:
    return None if value is None else _whole(value)


def _oom_kills(before: object, after: object) -> tuple[int | None, int | None]:
    return _whole_or_none(before), _whole_or_none(after)


def _number(value: object) -> float:
    """Neither infinite nor "not a number", for which every comparison fails."""
    if type(value) not in (int, float) or not -LARGEST_NUMBER < value < LARGEST_NUMBER:  # type: ignore[operator]
        raise ValueError(value)
    return value  # type: ignore[return-value]


def _pid(value: object) -> int:
    if not 0 < _whole(value) <= LARGEST_PID:
        raise ValueError(value)
    return _whole(value)


def _plain_text(value: object) -> str:
    """What can be written down again: half a surrogate pair can't."""
    if not isinstance(value, str):
        raise TypeError(value)
    value.encode()
    return value


def read_identity(path: str) -> Identity | None:
    facts = read_json(path)
    if facts is None:
        return None
    try:
        return Identity(
            boot_id=_plain_text(facts["boot_id"]),
            pid_namespace=_whole(facts["pid_namespace"]),
            init_ticks=_whole(facts["init_ticks"]),
            pid=_pid(facts["pid"]),
            ticks=_whole(facts["ticks"]),
            shim_pid=_pid(facts["shim_pid"]),
            shim_ticks=_whole(facts["shim_ticks"]),
            boot=_number(facts["boot"]),
            at=_number(facts["at"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path) from error


def stop_reason(folder: str) -> str | None:
    request = read_json(folder + "/stop")
    try:
        return _plain_text(str(request.get("reason", "user_stop"))) if request else None
    except ValueError as error:
        raise _damaged(folder + "/stop") from error


def freed(folder: str) -> float | None:
    """Boot time at which a shim saw the last orphan end; None: it did not say."""
    try:
        return _number(float(read_bytes(folder + "/freed") or b""))
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
        fd = open_plain(path)
    except ABSENT:
        return False
    except NotPlain as error:
        raise _damaged(path) from error
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
    return state_of(pid, ticks)


def state_of(pid: int, ticks: int) -> Literal["alive", "stopped", "gone"]:
    found = process.process(pid)
    if found is None or found.ticks != ticks or found.state in "ZX":
        return "gone"
    return "stopped" if found.state in "Tt" else "alive"
