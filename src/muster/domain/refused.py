"""A run that something else made and that was not taken in: what it took is known all the same."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RefusedRun:
    """Times by its files: wall seconds."""

    cell: str  # that it would have belonged to
    path: str
    started: float
    ended: float
    reason: str

    @property
    def duration_s(self) -> float:
        return max(0.0, self.ended - self.started)
