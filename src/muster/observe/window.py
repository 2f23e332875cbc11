"""When, in the course of a run, a file was saved. File times are wall times, and the wall clock may jump."""

# Paths are texts here: globs are no paths, and this runs after every exit.
# ruff: noqa: PTH116, PTH118, PTH120

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime

from muster.domain.order import Order
from muster.domain.sighting import Exit
from muster.ports.regular_files import read_start

_SLACK_S = 2.0  # coarse file times
_DRIFT = 0.01  # wall and boot clock may differ by that share of a run before it counts as a jump


@dataclass(frozen=True, slots=True)
class Share:
    """Where in the run: 0 its start, 1 its end; None where the clock does not say, `why` in words."""

    value: float | None
    late: bool | None  # late enough; None: can't be told
    why: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """The run's wall times, and its true length by a clock that does not jump."""

    started: float
    ended: float
    duration_s: float

    def share(self, saved: float, wanted: float) -> Share:
        slack = _SLACK_S / max(self.duration_s, 1e-3)
        by_start, by_end = self._by_start(saved), self._by_end(saved)
        if not self._jumped and saved > self.ended + _SLACK_S:
            return Share(
                None, None, f"was saved {saved - self.ended:.0f} s after the run's end by the clock: can't be compared"
            )
        if not self._jumped and by_start < -slack:
            return Share(None, False, f"was saved {self.started - saved:.0f} s before the run started")
        if not self._jumped:
            return _share(by_start, wanted)
        # saved before the jump, or after it: each reading is right in one of the two cases
        shares = [_share(each, wanted) for each in (by_start, by_end) if -slack <= each <= 1 + slack]
        if len({each.late for each in shares}) == 1:
            return shares[-1]
        return Share(None, None, "can't be compared with the run: the clock jumped while it ran")

    def _by_start(self, saved: float) -> float:
        return (saved - self.started) / max(self.duration_s, 1e-3)

    def _by_end(self, saved: float) -> float:
        return 1 - (self.ended - saved) / max(self.duration_s, 1e-3)

    @property
    def _jumped(self) -> bool:
        return abs((self.ended - self.started) - self.duration_s) > max(_SLACK_S, _DRIFT * self.duration_s)


def _share(value: float, wanted: float) -> Share:
    value = min(1.0, max(0.0, value))
    return Share(value, value >= wanted)


def window_of(order: Order, exit_: Exit | None) -> Window | None:
    """From the attempt's own files where they exist: the clock that stamped them stamped the checkpoint too."""
    if exit_ is None:
        return None
    started, ended = started_at(order), _time(os.path.join(os.path.dirname(order.out), "exit.json"))
    if started is not None and ended is not None:
        return Window(started, ended, exit_.duration_s)
    return Window(exit_.at - exit_.duration_s, exit_.at, exit_.duration_s)


def started_at(order: Order) -> float | None:
    """When its shim took the attempt, by the clock that stamps files; None: it never did."""
    path = os.path.join(os.path.dirname(order.out), "started")
    return _time(path) if _text(path) == order.token else None


def began_at(order: Order) -> float | None:
    """When it began at the earliest: as its shim wrote it down, or its claim where that file is gone."""
    started = started_at(order)
    if started is not None or not order.claimed_at:
        return started
    try:
        return datetime.fromisoformat(order.claimed_at).timestamp()
    except (ValueError, OverflowError):
        return None


def _text(path: str) -> str | None:
    try:
        return read_start(path, 4096).decode("utf-8", "replace").strip()
    except OSError:
        return None


def _time(path: str) -> float | None:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return None
