"""What lives of an execution, by the facts in its folder: the locks of its shim and its tree, orphans that it named."""

from __future__ import annotations

import os

from muster.observe import facts, process

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_NO_ORPHANS = b'"orphans": []'
SLACK_S = 0.05  # start times are kept in hundredths of a second


def tree_held(folder: str) -> bool:
    """The kernel holds it while a process of the run lives, also one that /proc hides. Raises OSError."""
    return facts.locked(folder + "/tree.lock")


def shim_held(folder: str) -> bool:
    """A shim lives as long as anything that its run left behind, with or without its token. Raises OSError."""
    return facts.locked(folder + "/shim.lock")


def living_orphans(folder: str) -> tuple[int, ...]:
    """Of the processes that exit.json names, who lives: where their shim was killed, nobody else knows of them.

    A pid that was given to another process since began after that exit. Raises OSError.
    """
    data = facts.read_bytes(folder + "/exit.json")
    if data is None or _NO_ORPHANS in data:
        return ()
    told = facts.read_json(folder + "/exit.json") or {}
    identity = facts.read_json(folder + "/identity.json") or {}
    pids, ended = told.get("orphans"), told.get("boot")
    if identity.get("boot_id") != process.boot_id() or not isinstance(pids, list) or not isinstance(ended, int | float):
        return ()
    return tuple(pid for pid in pids if isinstance(pid, int) and _lives_since(pid, ended))


def _lives_since(pid: int, boot: float) -> bool:
    found = process.process(pid)
    return found is not None and found.state not in "ZX" and found.ticks / TICKS_PER_S <= boot + SLACK_S
