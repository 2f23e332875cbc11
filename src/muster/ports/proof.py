"""The proof reader: what a run left behind, held against what its job asks for."""

from __future__ import annotations

from typing import Protocol

from muster.domain.campaign import Job
from muster.domain.cell import Cell
from muster.domain.order import Order
from muster.domain.sighting import Exit, ProofReading


class ProofReader(Protocol):
    def read(self, job: Job, cell: Cell, order: Order, exit: Exit | None) -> ProofReading:  # noqa: A002
        """Evaluates `job.proof` on files only; never raises for what a run may leave behind.

        `exit` gives the run's wall window (`at - duration_s` to `at`); None: the window is not known.
        """
