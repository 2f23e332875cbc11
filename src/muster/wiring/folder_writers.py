"""Who writes in a folder that is to be adopted: `adopt` looks as `muster look` does."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable

from muster.domain.look_facts import Who
from muster.observe.find_process import Writers, writers_in
from muster.observe.find_walk import walk
from muster.observe.find_writer import is_another_run, may_write_there, writes_there
from muster.observe.other_users import other_users
from muster.observe.probes.tree import Snapshot
from muster.ports.clock import SystemClock

JUST_NOW_S = 60.0


class FolderWriters:
    """Processes are listed once."""

    def __init__(self) -> None:
        self.snapshot, self.clock = Snapshot.take(), SystemClock()

    def began(self, who: Who) -> float:
        return self.clock.wall() - (self.clock.boot() - who.began)

    def find(self, folder: str) -> Writers:
        """`folder` without links in it."""
        return writers_in(folder, self.snapshot, lambda who: writes_there(who, folder, self.snapshot, self.began(who)))

    def doubtful(self, folder: str, found: Writers) -> Who | None:
        """One that may write there, by what came since it began; or where something was written a moment ago."""
        for who in found.doubtful:
            if self.may_write(who, folder):
                return who
        if not found.doubtful or _changed_ago(folder) >= JUST_NOW_S:
            return None
        near = (who for who in found.doubtful if not is_another_run(who, folder, self.snapshot, self.began(who)))
        return next(near, None)

    def may_write(self, who: Who, folder: str) -> bool:
        return may_write_there(who, folder, self.snapshot, self.began(who))


def writer_of() -> Callable[[str], str]:
    """Asks why the run of a folder is not over, in words; empty: nobody writes there."""
    writers = FolderWriters()

    def lives(path: str) -> str:
        folder = os.path.realpath(path)
        found = writers.find(folder)
        if found.main is not None:
            return f"it is still running: {'; '.join(found.main.because)}; adopt it when it has ended"
        if near := writers.doubtful(folder, found):
            because = "; ".join(near.because)
            when = "a moment ago" if _changed_ago(folder) < JUST_NOW_S else "since that process began"
            look = f"`muster look {shlex.quote(path)}`"
            return f"it may still be running: its files changed {when}, and {because}; see {look}"
        return ""

    return lives


def is_blind() -> bool:
    """Whether another person's processes are there, or may be, into which we may not look."""
    try:
        return os.geteuid() != 0 and bool(other_users())
    except OSError:
        return True


def _changed_ago(folder: str) -> float:
    newest = max((each.time for each in walk(folder).entries if each.is_plain), default=0.0)
    return time.time() - newest
