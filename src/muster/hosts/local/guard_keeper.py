"""The controller's side of the guard: finds it, starts it, and knows when it ends."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from muster.engine.ports.clock import Clock
from muster.engine.ports.extension import ControllerExtension
from muster.engine.ports.run_host import TOLD_FROM, GuardReport
from muster.files.atomic_write import umask_of_caller
from muster.files.safe_open import read_plain_file
from muster.hosts.local.guard import is_lock_held, process_state_letter, read_small_text, start_ticks_or_none
from muster.model.campaign_state import CampaignState
from muster.text.phrases import phrase

GUARD_PROGRAM = str(Path(__file__).with_name("guard.py"))
GUARD_REPORT_FILE = "guard.json"
LONG_S = 60.0  # a guard that lived this long did not die of how it began
LONGEST_PAUSE_S = 30.0
NUDGE_S = 1.0


def guard_command(state: Path) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", GUARD_PROGRAM, str(state))


def living_guard_pid(state: Path) -> int | None:
    """Of the guard that lives; None: there is none, or it has only just begun."""
    path = str(state / "guard.lock")
    with contextlib.suppress(OSError, ValueError):
        if is_lock_held(path):
            pid, ticks = map(int, read_small_text(path).split())
            return pid if start_ticks_or_none(pid) == ticks else None
    return None


def read_guard_report(state: Path) -> GuardReport | None:
    try:
        told = json.loads(read_plain_file(str(state / GUARD_REPORT_FILE)))
        code = told["code"] if told["code"] is None else int(told["code"])
        return GuardReport(int(told["times"]), int(told["failed"]), code, str(told["said"]), float(told["next"]))
    except (OSError, ValueError, OverflowError, KeyError, TypeError, RecursionError):
        return None


def pop_guard_notice(state: Path) -> str:
    """For a controller that has begun: what a person should hear of those before it, once; "": nothing."""
    words = read_guard_report(state)
    with contextlib.suppress(OSError):
        (state / GUARD_REPORT_FILE).unlink()
    if words is None or not (words.failed >= TOLD_FROM or _is_worth_telling(words.times)):
        return ""
    return phrase("hosts.guard_started_controller_again", how=words.how)


def _is_worth_telling(times: int) -> bool:
    """At 3, 6, 12, 24, ...: of one that is killed again and again people do not hear each time."""
    doubled, rest = divmod(times, TOLD_FROM)
    return rest == 0 and doubled > 0 and doubled & (doubled - 1) == 0


class GuardKeeper(ControllerExtension):
    """Keeps one guard alive. `attend` wakes us when the process of a pidfd ends, `ignore` takes that back."""

    def __init__(
        self, folder: Path, clock: Clock, attend: Callable[[int], None], ignore: Callable[[int], None]
    ) -> None:
        self.folder, self.clock, self.attend, self.ignore = folder, clock, attend, ignore
        self._pid, self._fd = 0, -1
        self._process: subprocess.Popen[bytes] | None = None  # if it is our child
        self._since = self._start_at = self._nudge_at = 0.0
        self._short = 0

    def end_turn(self, state: CampaignState) -> None:
        """What the system refuses us now is tried again later."""
        if state.intent.kind != "running":
            return
        with contextlib.suppress(OSError):
            if self._fd >= 0 and not self._has_ended():
                self._nudge()
                return
            self._drop()
            if pid := living_guard_pid(self.folder):
                self._watch(pid)
            elif self.clock.boot() >= self._start_at and self.folder.is_dir():  # else it was moved or deleted
                self._start()

    def _start(self) -> None:
        now = self.clock.boot()
        self._start_at = now + min(0.25 * 2 ** min(self._short, 10), LONGEST_PAUSE_S)  # if this one does not last
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MUSTER_ATTEMPT")}
        self._process = subprocess.Popen(
            guard_command(self.folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
            env=environment,
            umask=umask_of_caller(),
        )
        self._watch(self._process.pid)

    def _watch(self, pid: int) -> None:
        self._fd = os.pidfd_open(pid)
        self._pid, self._since = pid, self.clock.boot()
        self.attend(self._fd)

    def _has_ended(self) -> bool:
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return bool(poll.poll(0))

    def _nudge(self) -> None:
        """A stopped one keeps its lock and guards nothing."""
        if self.clock.boot() < self._nudge_at:
            return
        self._nudge_at = self.clock.boot() + NUDGE_S
        if process_state_letter(self._pid) == "T":
            signal.pidfd_send_signal(self._fd, signal.SIGCONT)

    def _drop(self) -> None:
        if self._fd < 0:
            return
        self._short = self._short + 1 if self.clock.boot() - self._since < LONG_S else 0
        if self._short == 0:
            self._start_at = 0.0
        self._close()

    def _close(self) -> None:
        if self._fd >= 0:
            self.ignore(self._fd)
            os.close(self._fd)
            self._fd = -1
        if self._process:
            self._process.poll()
            self._process = None

    def close(self) -> None:
        """It lives on, until it sees that nothing is left to do."""
        self._close()
