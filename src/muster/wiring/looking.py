"""Plugs the probe together with the proof readers and the orders they need. Slow reads happen apart: no loop waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from muster.domain.attempt import Attempt
from muster.domain.campaign import Job
from muster.domain.cell import Cell
from muster.domain.order import Order
from muster.domain.reading import Aftermath
from muster.domain.sighting import Exit, Identity, ProofReading
from muster.domain.state import CampaignState
from muster.domain.verdict import Evidence
from muster.execute.launches import LocalTraces
from muster.execute.local import read_order, slot_of
from muster.execute.paths import attempt_folder
from muster.execute.resumed import orders_before
from muster.observe import outputs
from muster.observe.aftermath import read_aftermath
from muster.observe.attempts import AttemptProbe
from muster.observe.outputs import is_glob
from muster.observe.proof import UNREAD, FileProofReader
from muster.observe.resume import last_checkpoint, saved_any
from muster.observe.vitals import VitalsReader
from muster.ports.clock import Clock
from muster.ports.executor import NotYet
from muster.ports.traces import NoTraces, Traces
from muster.store.machines import Machines
from muster.wiring.apart import apart
from muster.wiring.desk import Desk

PATIENCE_S = 0.1  # most proofs are read at once; a large checkpoint, or a file system that hangs, is not waited for
Key = tuple[str, int]
K = TypeVar("K")
T = TypeVar("T")


class Looking:
    """Eyes on the attempts of one campaign."""

    def __init__(
        self,
        folder_of: Callable[[str, int], Path],
        clock: Clock,
        vitals: VitalsReader | None = None,
        traces: Traces | None = None,
    ) -> None:
        self.folder_of, self.clock = folder_of, clock
        self.traces = traces or NoTraces()
        self.proofs = FileProofReader(orders_before)
        self.vitals = vitals  # knows the kernel log, and who belonged to a run
        self.probe = AttemptProbe(folder_of, clock, self._proof, self._aftermath, self.traces)
        self._state: CampaignState | None = None
        self._reading: dict[Key, Future[ProofReading]] = {}
        self._searching: dict[Key, Future[str | None]] = {}

    @classmethod
    def of_desk(cls, desk: Desk) -> Looking:
        """For a command, which looks and remembers nothing for others."""
        traces = LocalTraces(desk.state)
        traces.claimed_elsewhere = Machines(desk.store, desk.state)
        return cls(lambda cell, n: attempt_folder(desk.state, cell, n), desk.clock, traces=traces)

    def configure(self, state: CampaignState) -> None:
        self._state = state

    def order_of(self, attempt: Attempt) -> Order | None:
        """From its folder, or from where its shim kept it when that was deleted."""
        places = (self.folder_of(*attempt.place), *map(Path, self.traces.refuges(attempt.token)))
        return next(filter(None, map(read_order, places)), None)

    def _proof(self, attempt: Attempt, exit_: Exit | None) -> ProofReading:
        assert self._state is not None
        cell = self._state.cells[attempt.cell].cell
        job = self._state.job(cell.job)
        order = self.order_of(attempt)
        if order is None:
            return ProofReading(None)
        died = exit_ is None or exit_.code != 0

        def read() -> ProofReading:
            began = self.clock.boot()
            found = self.proofs.read(job, cell, order, exit_)
            if found.holds is not None and not found.holds and self.clock.boot() - began > PATIENCE_S:
                found = self.proofs.read(job, cell, order, exit_)  # a file that did not answer looks like a missing one
            return replace(found, saved=saved_any(job, cell, order)) if died else found

        if not job.asks_proof and not is_glob(order.output) and not (died and job.progress):
            return self.proofs.read(job, cell, order, exit_)
        return self._apart(attempt.key, read)

    def _aftermath(self, attempt: Attempt, exit_: Exit, identity: Identity | None) -> Aftermath:
        folder = self.folder_of(*attempt.place)
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
        order = self.order_of(attempt)
        if order is None:
            return ProofReading(None)
        return self._apart(attempt.key, lambda: self.proofs.progress(job, cell, order))

    def checkpoint_of(self, job: Job, cell: Cell, attempt: Attempt) -> str | None:
        """The newest whole one it left. Raises NotYet while its files are being looked at: ask again."""
        order = self.order_of(attempt)
        if order is None:
            return None
        found = _answered(self._searching, attempt.key, lambda: last_checkpoint(job, cell, order))
        if found is None:
            raise NotYet
        try:
            return found.result()
        except Exception as error:
            raise OSError(f"its checkpoints can't be read: {error}") from error


def fitting(pattern: str, folder: str) -> Mapping[str, float]:
    """What fits an output at a launch. Nothing, where its folder does not answer: a launch does not wait for that."""
    asked = apart(lambda: outputs.fitting(pattern, folder))
    wait([asked], PATIENCE_S)
    return asked.result() if asked.done() and asked.exception() is None else {}


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
