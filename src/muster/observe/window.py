"""When, in the course of a run, a file was saved. File times are wall times, and the wall clock may jump."""

# Paths are texts here: globs are no paths, and this runs after every exit.
# ruff: noqa: PTH116, PTH118, PTH120

from __future__ import annotations

import os
from dataclasses import dataclass

from muster.domain.attempt import Exit, Order

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
        length = max(self.duration_s, 1e-3)
        if saved > self.ended + _SLACK_S:
            after = f"{saved - self.ended:.0f} s after the run's end by the clock"
            return Share(None, None, f"was saved {after}: can't be compared")
        by_start = min(1.0, (saved - self.started) / length) if not self._jumped else (saved - self.started) / length
        if not self._jumped:
            if by_start < -_SLACK_S / length:
                return Share(None, False, f"was saved {self.started - saved:.0f} s before the run started")
            return _share(max(0.0, by_start), wanted)
        # saved before the jump, or after it: each reading is right in one of the two cases
        by_end = 1 - (self.ended - saved) / length
        possible = [each for each in (by_start, by_end) if -_SLACK_S / length <= each <= 1 + _SLACK_S / length]
        shares = [_share(min(1.0, max(0.0, each)), wanted) for each in possible]
        if shares and len({each.late for each in shares}) == 1:
            return shares[-1]
        return Share(None, None, "can't be compared with the run: the clock jumped while it ran")

    @property
    def _jumped(self) -> bool:
        return abs((self.ended - self.started) - self.duration_s) > max(_SLACK_S, _DRIFT * self.duration_s)


def _share(value: float, wanted: float) -> Share:
    return Share(value, value >= wanted)


def window_of(order: Order, exit_: Exit | None) -> Window | None:
    """From the attempt's own files where they exist: the clock that stamped them stamped the checkpoint too."""
    if exit_ is None:
        return None
    folder = os.path.dirname(order.out)
    if _text(os.path.join(folder, "started")) == order.token:
        started, ended = (_time(os.path.join(folder, name)) for name in ("started", "exit.json"))
        if started is not None and ended is not None:
            return Window(started, ended, exit_.duration_s)
    return Window(exit_.at - exit_.duration_s, exit_.at, exit_.duration_s)


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(4096).strip()
    except OSError:
        return None


def _time(path: str) -> float | None:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return None
