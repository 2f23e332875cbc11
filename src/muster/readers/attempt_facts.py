"""Reads the facts in an attempt's folder. Absent is one thing, unreadable another: only ENOENT means that one is not
there.

Everything else that keeps us from reading raises OSError: taking it for absence would call a living run dead. A run
may write into its own folder: what no shim can have written there is damaged. Paths are texts and reads plain system
calls: this runs for every run at every look.
"""

# ruff: noqa: PTH116, PTH119

from __future__ import annotations

import glob
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from muster.files.json_codec import JSON_ERRORS
from muster.files.process_identity import is_flock_taken, read_process
from muster.files.safe_open import NotPlainFile, open_plain_file, read_plain_file
from muster.model.attempt import Order
from muster.model.attempt_snapshot import LARGEST_PID, ExitRecord, ProcessIdentity
from muster.model.campaign_location import CampaignLocation, campaign_folder_in_path
from muster.model.errors import ORDER_FORMAT, newer_order_error

LARGEST_NUMBER = 1 << 63  # what the store can hold
ABSENT = (FileNotFoundError, NotADirectoryError)


def read_fact_bytes(path: str) -> bytes | None:
    try:
        return read_plain_file(path)
    except ABSENT:
        return None
    except NotPlainFile as error:
        raise _damaged_fact(path) from error


def fact_exists(path: str) -> bool:
    try:
        os.stat(path)
    except ABSENT:
        return False
    return True


def read_fact_text(path: str) -> str | None:
    data = read_fact_bytes(path)
    return None if data is None else data.decode("utf-8", "replace")


def read_fact_object(path: str) -> dict[str, Any] | None:
    """Facts are renamed into place whole; one that does not parse is damaged, not absent."""
    data = read_fact_bytes(path)
    if data is None:
        return None
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise _damaged_fact(path)
    return value


def _damaged_fact(path: str) -> OSError:
    return OSError(f"{os.path.basename(path)} is damaged")


def read_exit_file(path: str, token: str) -> ExitRecord | None:
    facts = read_fact_object(path)
    if facts is None or facts.get("token") != token:
        return None
    stops = facts.get("stops") or []
    evidence = facts.get("evidence") or {}
    try:
        return ExitRecord(
            code=_whole_number_or_none(facts["code"]),
            signal=_whole_number_or_none(facts["signal"]),
            at=_finite_number(facts["at"]),
            boot=_finite_number(facts["boot"]),
            duration_s=_finite_number(facts["duration_s"]),
            core=bool(facts.get("core", False)),
            exec_error=None if facts.get("exec_error") is None else _encodable_text(facts["exec_error"]),
            stop_reason=_encodable_text(stops[-1]["reason"]) if stops else None,
            orphans=None if facts.get("orphans") is None else tuple(map(_process_id, facts["orphans"])),
            log=_encodable_text(evidence.get("log", "")),
            out=_encodable_text(evidence.get("out", "")),
            disk_free=_whole_number_or_none(evidence.get("disk_free")),
            oom_kills=_oom_kill_counts(*(evidence.get("oom_kills") or (None, None))),
        )
    except (AttributeError, KeyError, TypeError, IndexError, ValueError) as error:
        raise _damaged_fact(path) from error


def _whole_number(value: object) -> int:
    if type(value) is not int or abs(value) >= LARGEST_NUMBER:
        raise ValueError(value)
    return value


def _whole_number_or_none(value: object) -> int | None:
    return None if value is None else _whole_number(value)


def _oom_kill_counts(before: object, after: object) -> tuple[int | None, int | None]:
    return _whole_number_or_none(before), _whole_number_or_none(after)


def _finite_number(value: object) -> float:
    """Neither infinite nor "not a number", for which every comparison fails."""
    if type(value) not in (int, float) or not -LARGEST_NUMBER < value < LARGEST_NUMBER:  # type: ignore[operator]
        raise ValueError(value)
    return value  # type: ignore[return-value]


def _process_id(value: object) -> int:
    if not 0 < _whole_number(value) <= LARGEST_PID:
        raise ValueError(value)
    return _whole_number(value)


def _encodable_text(value: object) -> str:
    """What can be written down again: half a surrogate pair can't."""
    if not isinstance(value, str):
        raise TypeError(value)
    value.encode()
    return value


def read_identity_file(path: str) -> ProcessIdentity | None:
    facts = read_fact_object(path)
    if facts is None:
        return None
    try:
        return ProcessIdentity(
            boot_id=_encodable_text(facts["boot_id"]),
            pid_namespace=_whole_number(facts["pid_namespace"]),
            init_ticks=_whole_number(facts["init_ticks"]),
            pid=_process_id(facts["pid"]),
            ticks=_whole_number(facts["ticks"]),
            shim_pid=_process_id(facts["shim_pid"]),
            shim_ticks=_whole_number(facts["shim_ticks"]),
            boot=_finite_number(facts["boot"]),
            at=_finite_number(facts["at"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged_fact(path) from error


def read_stop_reason(folder: str) -> str | None:
    request = read_fact_object(folder + "/stop")
    try:
        return _encodable_text(str(request.get("reason", "user_stop"))) if request else None
    except ValueError as error:
        raise _damaged_fact(folder + "/stop") from error


def read_freed_time(folder: str) -> float | None:
    """Boot time at which a shim saw the last orphan end; None: it did not say."""
    try:
        return _finite_number(float(read_fact_bytes(folder + "/freed") or b""))
    except (OSError, ValueError):  # absent, or cut off by a crash
        return None


def last_sign_of_attempt(folder: str, before: float) -> float | None:
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


def is_lock_file_held(path: str) -> bool:
    try:
        fd = open_plain_file(path)
    except ABSENT:
        return False
    except NotPlainFile as error:
        raise _damaged_fact(path) from error
    return is_flock_taken(fd)


def shim_state(folder: str) -> Literal["alive", "stopped", "gone"]:
    """By the pid and start time that the shim wrote into its lock."""
    text = read_fact_text(folder + "/shim.lock")
    try:
        pid, ticks = (int(part) for part in (text or "").split())
    except ValueError:
        return "gone"
    return state_of_process(pid, ticks)


def state_of_process(pid: int, ticks: int) -> Literal["alive", "stopped", "gone"]:
    found = read_process(pid)
    if found is None or found.ticks != ticks or found.state in "ZX":
        return "gone"
    return "stopped" if found.state in "Tt" else "alive"


def _read_stored_order(folder: Path) -> Order:
    return msgspec.json.decode(read_plain_file(str(folder / "attempt.json")), type=Order)


def read_order(folder: Path) -> Order | None:
    """With the paths that it has where its campaign lies now. A shim obeys the file itself, as it was written."""
    try:
        order = _read_stored_order(folder)
    except (OSError, *JSON_ERRORS):
        return None
    if order.muster > ORDER_FORMAT:
        raise newer_order_error(order.muster, str(folder / "attempt.json"))
    state = str(folder).removesuffix(f"/attempts/{order.cell}/{order.n}")
    former, now = campaign_folder_in_path(order.state), campaign_folder_in_path(state)
    if former is None or now is None or former == now:
        return order
    return _order_with_current_paths(order, CampaignLocation(now, (former,)))


def _order_with_current_paths(order: Order, where: CampaignLocation) -> Order:
    escaped = CampaignLocation(glob.escape(where.now), tuple(map(glob.escape, where.former)))
    plain = order.output == order.out  # else it may be a pattern
    return replace(
        order,
        argv=tuple(map(where.text, order.argv)),
        cwd=where.here(order.cwd),
        env_file=where.here(order.env_file),
        out=where.here(order.out),
        output=where.here(order.output) if plain else escaped.here(order.output),
        resumed_from=where.here(order.resumed_from) if order.resumed_from else order.resumed_from,
        state=where.here(order.state),
        bell=where.here(order.bell),
        ballast=where.here(order.ballast),
        refuges=tuple(map(where.here, order.refuges)),
        revive=tuple(map(where.text, order.revive)),
    )
