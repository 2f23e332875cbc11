"""Named crash points: every write, fsync, rename and commit that the protocol rests on has one.

`MUSTER_CRASH_AT=name` kills the process there, `name:stop` stops it; with `MUSTER_CRASH_ONCE=path` only the first
process to get there. Tests enumerate POINTS. The shim imports nothing of muster and keeps a list of its own.
"""

from __future__ import annotations

import os
import signal

CRASH_POINTS = (
    "log.append",  # the lines are written, not yet synced
    "log.fsync",
    "fold.begin",
    "fold.commit",  # the database has them
    "fold.intent",
    "lock.taken",
    "epoch.taken",
    "campaign.write",
    "env.write",
    "lease.taken",  # a slot is leased, nothing claimed
    "claim.committed",
    "order.write",
    "order.rename",
    "spawn.sent",  # a shim has been asked for
    "exit.seen",  # exit.json was read, nothing recorded
    "settle.committed",
    "stop.write",
    "stop.rename",
    "stop.poke",
    "revoke.create",
)
ROUND_POINTS = (  # of the process that proposes a loop's next round
    "round.config",  # a config is written, not yet in its place
    "round.written",
    "round.saved",  # the campaign with the new variants
    "round.taken",
)
CLEAN_POINTS = ("clean.decided", "clean.deleted")  # of `muster clean`: written down; after each file or folder

_WANTED = os.environ.get("MUSTER_CRASH_AT", "")


def reach_crash_point(point: str) -> None:
    if not _WANTED or _WANTED.partition(":")[0] != point:
        return
    once = os.environ.get("MUSTER_CRASH_ONCE")
    if once:
        try:
            os.close(os.open(once, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return
    stop = _WANTED.endswith(":stop")
    os.kill(os.getpid(), signal.SIGSTOP if stop else signal.SIGKILL)
