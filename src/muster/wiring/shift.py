"""Reads the files of many runs apart from the loop: in one thread while all answer, past one that hangs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from muster.ports.clock import Clock

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Read(Generic[T]):
    boot: float  # when it was asked for
    value: T


class Shift(Generic[K, T]):
    def __init__(self, clock: Clock, patience_s: float = 0.25, stuck_s: float = 2.0) -> None:
        self.clock, self.patience_s, self.stuck_s = clock, patience_s, stuck_s
        self.newest: dict[K, Read[T]] = {}
        self._at: dict[threading.Thread, tuple[K, float]] = {}  # what each thread is reading, and since when

    def read(self, asks: Mapping[K, Callable[[], T]]) -> None:
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

    def _work(self, todo: list[tuple[K, Callable[[], T]]], done: threading.Event) -> None:
        me = threading.current_thread()
        try:
            for key, ask in todo:
                began = self.clock.boot()
                self._at[me] = (key, began)
                self.newest[key] = Read(began, ask())
                if self.clock.boot() - began > self.stuck_s:
                    return  # it hung: the others have been left to another thread meanwhile
        finally:
            self._at.pop(me, None)
            done.set()

    def forget(self, key: K) -> None:
        self.newest.pop(key, None)
