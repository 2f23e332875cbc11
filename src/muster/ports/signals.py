"""The signals of living runs, and the memory of what earlier looks at them added up to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from muster.domain.attempt import Attempt
from muster.domain.reading import Readings
from muster.domain.sighting import Sighting
from muster.judge.history import History

Key = tuple[str, int]


class Signals(Protocol):
    def read(self, living: Sequence[tuple[Attempt, Sighting]]) -> Mapping[Key, Readings]:
        """The newest readings of each run. Never waits for a probe that hangs: what it did not bring is missing."""

    def forget(self, key: Key) -> None: ...


@dataclass(slots=True)
class Sibling:
    """What ended or living attempts of a job with the same code have shown."""

    longest: dict[str, float] = field(default_factory=dict)
    first_s: float | None = None


@dataclass(slots=True)
class Remembered:
    """Histories are dated by boot time: those of another boot mean nothing."""

    boot_id: str = ""
    histories: dict[str, History] = field(default_factory=dict)  # "cell@n"
    siblings: dict[str, Sibling] = field(default_factory=dict)  # "job@code"
    told: dict[str, tuple[str, str | None, str]] = field(default_factory=dict)  # the last verdict that was recorded
    disk: list[tuple[float, int]] = field(default_factory=list)  # when, and how much was free where least was


class Memory(Protocol):
    def load(self) -> Remembered:
        """Empty where there is none: cadences are then learned again."""

    def save(self, remembered: Remembered) -> None: ...
