"""The probe: one look at an attempt, everything it shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from muster.domain.attempt import Attempt
from muster.domain.sighting import Sighting


class Probe(Protocol):
    def look(self, attempts: Sequence[Attempt]) -> dict[tuple[str, int], Sighting]:
        """A sighting for each; one pass over /proc serves them all."""
