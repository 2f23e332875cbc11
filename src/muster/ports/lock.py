"""The one lock that makes a process the campaign's controller."""

from __future__ import annotations

from typing import Protocol


class Lock(Protocol):
    def beat(self, epoch: int, trouble: str = "") -> None:
        """A sign of life, and what keeps the controller from its work, where nothing else can be written."""
