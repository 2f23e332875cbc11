"""Looks at the campaigns of this user's register, and keeps it: who is entered, who is dropped."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from pathlib import Path

from muster.acts.register import Listed
from muster.domain.errors import MusterError, UsageError
from muster.execute.slots import make_home, own_home
from muster.ports.clock import Clock, SystemClock, iso
from muster.store import register
from muster.store.lock import ControllerLock
from muster.store.register import Entry, Unread
from muster.store.seen_lock import SeenLock
from muster.store.sqlite import SqliteStore
from muster.wiring.desk import Desk, not_started, open_store
from muster.wiring.owner import stranger
from muster.wiring.started_here import started_here
from muster.wiring.survey import look


def enter(state: Path, name: str, wall: float, *, moving: bool = False) -> None:
    """At `up`, which is `moving`, and whenever a controller starts.

    Where the home can't be written no slot can be leased either.
    """
    with contextlib.suppress(OSError):
        make_home()
        register.register(own_home(), state, name, iso(wall), proven=started_here(state), moving=moving)


class Entered:
    """Keeps a living controller's campaign in the register: where that is deleted, `muster ls` would show nothing."""

    def __init__(self, state: Path, clock: Clock, every_s: float) -> None:
        self.state, self.clock, self.every_s = state, clock, every_s
        self._next = clock.boot() + every_s

    def tend(self, name: str) -> None:
        """In every turn: one look at the entry when it is due."""
        if self.clock.boot() < self._next:
            return
        self._next = self.clock.boot() + self.every_s
        with contextlib.suppress(OSError, UsageError):  # UsageError: there is no home
            if not register.has_entry(own_home(), self.state):
                enter(self.state, name, self.clock.wall())


@contextlib.contextmanager
def visited(root: Path) -> Iterator[Desk]:
    """A campaign as it is, for a look from elsewhere: nothing of it is mended, marked or folded."""
    state = root / ".muster"
    clock = SystemClock()
    whose = stranger(root)
    lock = SeenLock(state, clock) if whose else ControllerLock(state, clock)
    store = SqliteStore.of_log(state) if whose else open_store(state, lock)
    try:
        if store.behind():  # a crash left something unfolded, or its controller is about to fold it
            store.close()
            store = SqliteStore.of_log(state)
        if store.load() is None:
            raise not_started(root)
        yield Desk(root, store, lock, clock, whose)
    finally:
        store.close()


def listed() -> list[Listed]:
    """Every campaign of the register, by path. Raises OSError where the register itself can't be read."""
    return [_listed(entry) for entry in register.entries(own_home())]


def _listed(entry: Entry | Unread) -> Listed:
    if isinstance(entry, Unread):
        return Listed(entry.id, "", entry.path, "unread", why=entry.why)
    place = register.place(entry)
    if place.root is None:
        return Listed(entry.id, entry.name, entry.path, place.standing, why=place.why)
    before = entry.path if place.standing == "moved" else ""
    try:
        with visited(place.root) as desk:
            status = look(desk)
    except (OSError, MusterError, ValueError) as error:
        return Listed(entry.id, entry.name, str(place.root), "unread", why=str(error), before=before)
    return Listed(entry.id, status.state.campaign.name, str(place.root), place.standing, status, before=before)


def forget(what: str) -> Entry | Unread:
    """Drops a campaign by its path or its id; one that a controller works on stays."""
    known = register.entries(own_home())
    path = str(Path(what).resolve())
    found = [each for each in known if each.id == what or each.path in (what, path)]
    if not found:
        raise _nothing_like(what, known)
    for entry in found:
        _refuse_if_at_work(entry)
        register.forget(own_home(), entry)
    return found[0]


def _nothing_like(what: str, known: list[Entry | Unread]) -> UsageError:
    import difflib

    names = [name for each in known for name in (each.id, each.path)]
    near = difflib.get_close_matches(what, names, 1)
    hint = f"did you mean {near[0]}?" if near else "`muster ls` shows paths, `muster ls --json` ids too"
    return UsageError(f"the register has no campaign {what!r}", where=str(own_home() / register.FOLDER), hint=hint)


def _refuse_if_at_work(entry: Entry | Unread) -> None:
    place = register.place(entry) if isinstance(entry, Entry) else None
    if place and place.root and ControllerLock(place.root / ".muster", SystemClock()).held():
        raise UsageError(
            "a controller works on it: it would be entered again",
            where=str(place.root),
            hint=f"`muster -C {shlex.quote(str(place.root))} down` first",
        )
