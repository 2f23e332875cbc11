"""Slow or hanging reads (a driver, a network file system) in daemon threads: nobody waits for them. One thread reads
for all runs while all answer, and is left behind where one hangs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, TypeVar

from muster.engine.ports.clock import Clock, monotonic_boottime

AnswerType = TypeVar("AnswerType")


@dataclass(frozen=True, slots=True)
class PolledAnswer(Generic[AnswerType]):
    value: AnswerType | None
    asked: float
    trouble: str = ""


class PolledProbe(Generic[AnswerType]):
    """The newest answer. At most one thread asks; if it hangs, nobody is held up and no second one is started."""

    def __init__(
        self, ask: Callable[[], AnswerType], period_s: float, now: Callable[[], float] = monotonic_boottime
    ) -> None:
        self._ask = ask
        self._period_s = period_s
        self._now = now
        self._asker: threading.Thread | None = None
        self._asked = float("-inf")
        self.newest: PolledAnswer[AnswerType] | None = None

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
            self.newest = PolledAnswer(self._ask(), asked)
        except Exception as error:  # a probe abstains, whatever is wrong with its source
            self.newest = PolledAnswer(None, asked, str(error) or type(error).__name__)

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


WorkResult = TypeVar("WorkResult")


def run_in_daemon_thread(work: Callable[[], WorkResult]) -> Future[WorkResult]:
    future: Future[WorkResult] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    try:
        threading.Thread(target=run, daemon=True).start()
    except RuntimeError as error:  # the system has no thread left for us
        future.set_exception(OSError(str(error)))
    return future


BackgroundKey = TypeVar("BackgroundKey", bound=Hashable)
BackgroundValue = TypeVar("BackgroundValue")


@dataclass(frozen=True, slots=True)
class TimedReading(Generic[BackgroundValue]):
    boot: float  # when it was asked for
    value: BackgroundValue


class BackgroundReader(Generic[BackgroundKey, BackgroundValue]):
    def __init__(self, clock: Clock, patience_s: float = 0.25, stuck_s: float = 2.0) -> None:
        self.clock, self.patience_s, self.stuck_s = clock, patience_s, stuck_s
        self.newest: dict[BackgroundKey, TimedReading[BackgroundValue]] = {}
        self._at: dict[
            threading.Thread, tuple[BackgroundKey, float]
        ] = {}  # what each thread is reading, and since when

    def read(self, asks: Mapping[BackgroundKey, Callable[[], BackgroundValue]]) -> None:
        """Brings `newest` up to date, as far as that can be done at once."""
        now = self.clock.boot()
        at_work = list(self._at.values())
        if any(now - since < self.stuck_s for _, since in at_work):
            return  # the shift before is still at work, and not for long
        stuck = {key for key, _ in at_work}
        todo = [(key, ask) for key, ask in asks.items() if key not in stuck]
        todo.sort(key=lambda item: self.newest[item[0]].boot if item[0] in self.newest else 0.0)  # oldest answer first
        done = threading.Event()
        thread = threading.Thread(target=self._work, args=(todo, done), daemon=True, name="files")
        try:
            thread.start()
        except RuntimeError:
            return  # the system has no thread left for us: later
        done.wait(self.patience_s)

    def _work(self, todo: list[tuple[BackgroundKey, Callable[[], BackgroundValue]]], done: threading.Event) -> None:
        me = threading.current_thread()
        try:
            for key, ask in todo:
                began = self.clock.boot()
                self._at[me] = (key, began)
                self.newest[key] = TimedReading(began, ask())
                if self.clock.boot() - began > self.stuck_s:
                    return  # it hung: the others have been left to another thread meanwhile
        finally:
            self._at.pop(me, None)
            done.set()

    def forget(self, key: BackgroundKey) -> None:
        self.newest.pop(key, None)
