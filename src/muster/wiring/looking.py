"""Plugs the probe together with the proof readers and the orders they need. Slow reads happen apart: no loop waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from muster.domain.attempt import Attempt
from muster.domain.campaign import Job
from muster.domain.cell import Cell
from muster.domain.reading import Aftermath
from muster.domain.sighting import Exit, Identity, ProofReading
from muster.domain.state import CampaignState
from muster.domain.verdict import Evidence
from muster.execute.local import read_order, slot_of
from muster.observe.aftermath import read_aftermath
from muster.observe.attempts import AttemptProbe
from muster.observe.code import code_identity
from muster.observe.outputs import is_glob
from muster.observe.proof import UNREAD, FileProofReader
from muster.observe.resume import last_checkpoint, saved_any
from muster.observe.vitals import VitalsReader
from muster.ports.clock import Clock
from muster.ports.executor import NotYet
from muster.wiring.apart import apart

CODE_FRESH_S = 10.0
PATIENCE_S = 0.1  # most proofs are read at once; a large checkpoint, or a file system that hangs, is not waited for
Key = tuple[str, int]
K = TypeVar("K")
T = TypeVar("T")


class Looking:
    """Eyes on the attempts of one campaign."""

    def __init__(self, folder_of: Callable[[str, int], Path], clock: Clock, vitals: VitalsReader | None = None) -> None:
        self.folder_of, self.clock = folder_of, clock
        self.proofs = FileProofReader()
        self.vitals = vitals  # knows the kernel log, and who belonged to a run
        self.probe = AttemptProbe(folder_of, clock, self._proof, self._aftermath)
        self._state: CampaignState | None = None
        self._reading: dict[Key, Future[ProofReading]] = {}
        self._searching: dict[Key, Future[str | None]] = {}

    def configure(self, state: CampaignState) -> None:
        self._state = state

    def _proof(self, attempt: Attempt, exit_: Exit | None) -> ProofReading:
        assert self._state is not None
        cell = self._state.cells[attempt.cell].cell
        job = self._state.job(cell.job)
        order = read_order(self.folder_of(*attempt.key))
        if order is None:
            return ProofReading(None)
        died = exit_ is None or exit_.code != 0

        def read() -> ProofReading:
            began = self.clock.boot()
            found = self.proofs.read(job, cell, order, exit_)
            if found.holds is False and self.clock.boot() - began > PATIENCE_S:
                found = self.proofs.read(job, cell, order, exit_)  # a file that did not answer looks like a missing one
            return replace(found, saved=saved_any(job, cell, order)) if died else found

        if not job.asks_proof and not is_glob(order.output) and not (died and job.progress):
            return self.proofs.read(job, cell, order, exit_)
        return self._apart(attempt.key, read)

    def _aftermath(self, attempt: Attempt, exit_: Exit, identity: Identity | None) -> Aftermath:
        folder = self.folder_of(*attempt.key)
        if self.vitals is None:
            return read_aftermath(folder, exit_, identity, None)
        gpus = [gpu for name in attempt.slots if (gpu := slot_of(name).gpu) is not None]
        pci = [place for gpu in gpus if self.vitals.gpu and (place := self.vitals.gpu.pci(gpu))]
        return read_aftermath(folder, exit_, identity, self.vitals.kernel, self.vitals.pids_of(attempt.key), pci)

    def _apart(self, key: Key, read: Callable[[], ProofReading]) -> ProofReading:
        """In a thread of its own. A reading that takes long is there at a later look."""
        found = _answered(self._reading, key, read)
        if found is None:
            return ProofReading(None, pending=True)
        try:
            return found.result()
        except Exception as error:  # whatever is wrong with the files of one run must not end the watch over all
            trouble = Evidence("proof", "proof", f"it can't be read: {error}", UNREAD)
            return ProofReading(None, (trouble,))

    def progress(self, attempt: Attempt) -> ProofReading:
        """How far a living run is, for people who look."""
        assert self._state is not None
        cell = self._state.cells[attempt.cell].cell
        job = self._state.job(cell.job)
        order = read_order(self.folder_of(*attempt.key))
        if order is None:
            return ProofReading(None)
        return self._apart(attempt.key, lambda: self.proofs.progress(job, cell, order))

    def checkpoint_of(self, job: Job, cell: Cell, attempt: Attempt) -> str | None:
        """The newest whole one it left. Raises NotYet while its files are being looked at: ask again."""
        order = read_order(self.folder_of(*attempt.key))
        if order is None:
            return None
        found = _answered(self._searching, attempt.key, lambda: last_checkpoint(job, cell, order))
        if found is None:
            raise NotYet
        try:
            return found.result()
        except Exception as error:
            raise OSError(f"its checkpoints can't be read: {error}") from error


def _answered(asked: dict[K, Future[T]], key: K, read: Callable[[], T]) -> Future[T] | None:
    """The answer, if it is there. Who asks for the first time waits a moment; who asks again does not wait again."""
    if key in asked:
        future = asked[key]
    else:
        future = asked[key] = apart(read)
        wait([future], PATIENCE_S)
    if not future.done():
        return None
    del asked[key]
    return future


class CodeCache:
    """git is asked at most every few seconds for each working folder, and never waited for long."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._known: dict[str, tuple[float, Mapping[str, Any]]] = {}
        self._asked: dict[str, Future[Mapping[str, Any]]] = {}

    def __call__(self, cwd: str) -> Mapping[str, Any]:
        at, known = self._known.get(cwd, (float("-inf"), {}))
        if self.clock.boot() - at <= CODE_FRESH_S:
            return known
        found = _answered(self._asked, cwd, lambda: code_identity(cwd))
        if found is None:
            return known  # what was true a moment ago
        known = found.result()
        self._known[cwd] = (self.clock.boot(), known)
        return known
