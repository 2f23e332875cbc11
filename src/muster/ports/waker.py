"""The waker: sleeps until something happened to an attempt, or somebody rang."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Wake:
    attempts: frozenset[Key] = frozenset()  # something happened to these
    log: bool = False  # somebody appended a decision


class Waker(Protocol):
    def watch(self, key: Key, pids: Iterable[int]) -> None:
        """Wake when one of these processes ends. Watching a pid twice is the same as once."""

    def forget(self, key: Key) -> None: ...

    def wait(self, timeout_s: float) -> Wake: ...

    def close(self) -> None: ...
