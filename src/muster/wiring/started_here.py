"""Whether this user's own `up` has started a campaign here. In any other nothing goes on by itself, whatever it says.

What proves it: the register, by the folder and a key that both have. Or, where the register was deleted under a living
campaign, the key as a controller handed it on to guard and shims; or a controller or guard that lives and holds a lock.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from muster.domain.errors import UsageError
from muster.store import register
from muster.store.lock import has_open

HANDED_ON = "MUSTER_STARTED_HERE"  # in the environment of controller, guard and shims: "<key>:<inode>"
LOCKS = {"controller.lock": b"muster.wiring.controller", "guard.lock": b"guard.py"}  # and who holds them
_LONGEST_LOCK = 4096


def started_here(state: Path, *, or_earlier: bool = False) -> bool:
    """`or_earlier`: or by that of an earlier version, which knew no keys. Enough for its guard and shims, and for a
    person who ends something; not for who only looks.
    """
    try:
        return _was_handed_on(state) or _lives(state) or _is_entered(state, or_earlier)
    except (OSError, UsageError):  # UsageError: there is no home
        return False


def moved_since(state: Path) -> bool:
    """Started here by this user's `up`, and moved since: nothing goes on by itself before the next one."""
    return not started_here(state, or_earlier=True) and _is_ours_elsewhere(state)


def begun_by_us(state: Path) -> bool:
    """Wherever it lies now, and by whatever version: what is in it is our own word, and a person may end it."""
    return started_here(state, or_earlier=True) or _is_ours_elsewhere(state)


def _is_ours_elsewhere(state: Path) -> bool:
    from muster.execute.slots import usual_home

    try:
        entries = (register.entry_of(home, state) for home in (_folder().parent, usual_home()))
        return any(entry is not None and register.is_same(entry, state) for entry in entries)
    except (OSError, UsageError):
        return False


def hand_on(state: Path) -> dict[str, str]:
    """For the environment of whoever may have to start a controller again."""
    key = register.read_key(state)
    return {HANDED_ON: f"{key}:{state.stat().st_ino}"} if key else {}


def refuse_to_end(state: Path, what: str) -> None:
    """Who is named in a state that came from elsewhere may be any process of this user."""
    if not begun_by_us(state):
        raise UsageError(f"{not_started_here()}; nothing was {what}", where=str(state), hint=HINT, code="not_started")


def refuse_to_revive(state: Path, what: str) -> None:
    """Where there is no controller, and the one that would carry this out would go on with everything else, too."""
    if moved_since(state):
        hint = "`muster up` goes on here; `muster down --runs --because '...'` ends all runs and starts nothing"
        raise UsageError(f"{MOVED}; nothing was {what}", where=str(state), hint=hint, code="not_started")


MOVED = "this campaign was moved here since your last `muster up`, and it has no controller"
HINT = (
    "if it was started with another MUSTER_HOME, set that one. "
    "Else `muster up` takes it over, if you know what is in it; then it can be acted in"
)


def not_started_here() -> str:
    return f"no `muster up` of yours has started this campaign here ({_folder()} does not have it)"


def _folder() -> Path:
    from muster.execute.slots import own_home

    return own_home() / register.FOLDER


def _was_handed_on(state: Path) -> bool:
    told = os.environ.get(HANDED_ON)
    return bool(told) and hand_on(state).get(HANDED_ON) == told


def _is_entered(state: Path, or_earlier: bool) -> bool:
    from muster.execute.slots import usual_home

    entry = register.entry_of(_folder().parent, state)
    if entry and (register.fits(entry, state) or (or_earlier and register.is_of_earlier_version(entry, state))):
        return True
    # begun before MUSTER_HOME was set: good enough to end something, but what is started would take slots elsewhere
    entry = register.entry_of(usual_home(), state) if or_earlier else None
    return entry is not None and register.fits(entry, state)


def _lives(state: Path) -> bool:
    return any(_is_held(state / name, program) for name, program in LOCKS.items())


def _is_held(lock: Path, program: bytes) -> bool:
    """By a process of this user that is such a program and has this very file open."""
    try:
        facts = lock.lstat()
        if not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1:
            return False
        pid = _pid_in(lock)
        if pid == os.getppid() and lock.name == "guard.lock":
            return False  # who was started by a guard can't be its proof: anybody may have started that one
        folder = Path("/proc", str(pid))
        if folder.stat().st_uid != os.geteuid() or program not in (folder / "cmdline").read_bytes():
            return False
    except OSError:
        return False
    return has_open(pid, lock)


def _pid_in(lock: Path) -> int:
    """A controller writes JSON, a guard two numbers; 0: nothing is told."""
    text = lock.read_bytes()[:_LONGEST_LOCK].decode("ascii", "replace")
    told = text.partition('"pid": ')[2].partition(",")[0] or text.partition(" ")[0]
    return int(told) if told.isascii() and told.isdigit() else 0
