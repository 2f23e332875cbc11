"""A question that may never be answered (a driver, a network file system), asked in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


def boottime() -> float:
    """Goes on while the machine sleeps: an answer from before a suspend is old."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    value: T | None
    asked: float
    trouble: str = ""


class Apart(Generic[T]):
    """The newest answer. At most one thread asks; if it hangs, nobody is held up and no second one is started."""

    def __init__(self, ask: Callable[[], T], period_s: float, now: Callable[[], float] = boottime) -> None:
        self._ask = ask
        self._period_s = period_s
        self._now = now
        self._asker: threading.Thread | None = None
        self._asked = float("-inf")
        self.newest: Answer[T] | None = None

    def refresh(self) -> None:
        """Asks again when it is time to, and returns at once."""
        now = self._now()
        if now - self._asked < 0.9 * self._period_s or (self._asker and self._asker.is_alive()):
            return
        self._asked = now
        asker = threading.Thread(target=self._run, args=(now,), daemon=True, name="apart")
        try:
            asker.start()
        except RuntimeError:
            return  # the system has no thread left for us: later
        self._asker = asker

    def _run(self, asked: float) -> None:
        try:
            self.newest = Answer(self._ask(), asked)
        except Exception as error:  # a probe abstains, whatever is wrong with its source
            self.newest = Answer(None, asked, str(error) or type(error).__name__)

    def settle(self, patience_s: float) -> bool:
        """Waits for the answer that is under way; False: there is none yet."""
        if self._asker:
            self._asker.join(patience_s)
        return not (self._asker and self._asker.is_alive())

    @property
    def age_s(self) -> float:
        """Of the newest answer, from when it was asked for."""
        return self._now() - self.newest.asked if self.newest else float("inf")

    @property
    def waiting_s(self) -> float:
        """How long the question that is under way has been without an answer."""
        return self._now() - self._asked if self._asker and self._asker.is_alive() else 0.0
