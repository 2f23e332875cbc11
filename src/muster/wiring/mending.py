"""`muster fsck`: rebuilds the state of a campaign while nobody else decides about it."""

from __future__ import annotations

import contextlib
import getpass
import os
from pathlib import Path

from muster.acts.take_in import hashes
from muster.domain.errors import MusterError, UsageError
from muster.ports.clock import SystemClock, iso
from muster.store import fsck
from muster.store.campaigns import Taken
from muster.store.lock import ControllerLock
from muster.store.newer import refuse_newer_state
from muster.store.place import refuse_bad_place, refuse_copy
from muster.wiring.codes import CodeReader
from muster.wiring.desk import FILE
from muster.wiring.taking import read


def mend(root: Path) -> fsck.Findings:
    state = root / ".muster"
    if not (state / "campaigns").is_dir() and not fsck.knows_decisions(state):
        if (state / "attempts").is_dir():
            raise MusterError(
                "only attempt folders are left of this campaign: what was decided, and for which matrix, is gone",
                where=str(state / "attempts"),
                hint="move that folder away, `muster up` anew, and let `muster adopt` take in what had finished",
            )
        raise UsageError("this campaign has not been started", where=str(root), hint="start it with `muster up`")
    refuse_bad_place(root)
    refuse_copy(state)
    clock = SystemClock()
    lock = ControllerLock(state, clock)
    if not lock.take():
        holder = lock.holder()
        pid = f" (pid {holder.pid})" if holder else ""
        raise MusterError(
            f"a controller{pid} is at work; nothing was changed",
            where=str(root),
            hint="`muster down` first: it ends the controller and leaves the runs alone. Then `muster fsck`",
            code="controller_lives",
        )
    try:
        refuse_newer_state(state)
        for name in fsck.missing_snapshots(state):
            _restore(root, state, name)
        asked = fsck.Asked(f"fsck by {_user()}", iso(clock.wall()), clock.boot(), lambda: lock.beat(0))
        return fsck.rebuild(state, asked)
    finally:
        lock.give_back()


def _restore(root: Path, state: Path, name: str) -> bool:
    """A snapshot that is missing, if campaign.yaml is still the text it was made from."""
    with contextlib.suppress(MusterError, OSError):
        found = read(root / FILE)
        for known in (fsck.old_hashes(state), hashes(found.campaign, str(root), CodeReader(found.campaign, root))):
            if fsck.restore_snapshot(state, name, Taken(found.text, found.campaign, dict(known))):
                return True
    return False


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
