"""Plugs the probe together with the proof readers and the orders they need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from muster.domain.attempt import Attempt
from muster.domain.campaign import Job
from muster.domain.cell import Cell
from muster.domain.sighting import Exit, ProofReading
from muster.domain.state import CampaignState
from muster.execute.local import read_order
from muster.observe.attempts import AttemptProbe
from muster.observe.code import code_identity
from muster.observe.proof import FileProofReader
from muster.observe.resume import last_checkpoint
from muster.ports.clock import Clock

CODE_FRESH_S = 10.0


class Looking:
    """Eyes on the attempts of one campaign."""

    def __init__(self, folder_of: Callable[[str, int], Path], clock: Clock) -> None:
        self.folder_of = folder_of
        self.proofs = FileProofReader()
        self.probe = AttemptProbe(folder_of, clock, self._proof)
        self._state: CampaignState | None = None

    def configure(self, state: CampaignState) -> None:
        self._state = state

    def _proof(self, attempt: Attempt, exit_: Exit) -> ProofReading:
        assert self._state is not None
        cell = self._state.cells[attempt.cell].cell
        order = read_order(self.folder_of(*attempt.key))
        if order is None:
            return ProofReading(None)
        return self.proofs.read(self._state.job(cell.job), cell, order, exit_)

    def checkpoint_of(self, job: Job, cell: Cell, attempt: Attempt) -> str | None:
        order = read_order(self.folder_of(*attempt.key))
        return last_checkpoint(job, cell, order) if order else None


class CodeCache:
    """git is asked at most every few seconds for each working folder."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._known: dict[str, tuple[float, Mapping[str, Any]]] = {}

    def __call__(self, cwd: str) -> Mapping[str, Any]:
        at, known = self._known.get(cwd, (float("-inf"), {}))
        if self.clock.boot() - at > CODE_FRESH_S:
            known = code_identity(cwd)
            self._known[cwd] = (self.clock.boot(), known)
        return known
