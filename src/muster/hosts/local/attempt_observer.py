"""Observes attempts on this machine for the engine: probe, proof, the post-mortem of a dead run, and the signals of
living ones. Slow reads happen in other threads, so that no loop waits.

Logs that grow beyond `logs: {max: ...}` are cut here. A hole is punched into the file: the blocks are given back, the
length and every offset stay. The run, which appends, notices nothing; nothing it writes meanwhile can be lost, as it
could while a file is copied and truncated; and whoever reads the log goes on where it was. Nothing is put between the
run and its log, as a pipe would be: that would have to live as long as the run does.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from muster.engine.ports.clock import Clock
from muster.engine.ports.executor import OrderNotReady, slot_from_name
from muster.engine.ports.probe import AttemptTraces, NoAttemptTraces
from muster.engine.ports.store import Store
from muster.engine.store.controller_files import ClaimMachines
from muster.files.safe_open import open_regular_file
from muster.files.state_folder import attempt_folder
from muster.hosts.local.attempt_probe import AttemptProbe
from muster.hosts.local.kernel import KernelLog
from muster.hosts.local.launch_orders import LocalTraces
from muster.hosts.local.vitals import VitalsReader, VitalsRequest
from muster.model.attempt import Attempt, AttemptKey, Order
from muster.model.attempt_snapshot import (
    AttemptSnapshot,
    ExitRecord,
    PostMortem,
    ProcessIdentity,
    ProofReading,
    RunReadings,
)
from muster.model.campaign import Job
from muster.model.campaign_state import CampaignState
from muster.model.cell import Cell
from muster.model.verdict import Evidence
from muster.readers.attempt_facts import read_order
from muster.readers.background_reader import BackgroundReader, run_in_daemon_thread
from muster.readers.discovery.run_arguments import declared_periods
from muster.readers.output_files import is_glob_pattern, match_output_pattern
from muster.readers.progress import ProgressReader
from muster.readers.proof import UNREAD, FileProofReader
from muster.readers.resume import newest_whole_checkpoint, orders_before, saved_own_checkpoint
from muster.text.phrases import phrase

KEEP_SIZE, PUNCH_HOLE = 0x01, 0x02
BLOCK = 1 << 16
ATTEMPT_LOGS = ("stdout.log", "stderr.log")

_libc = ctypes.CDLL(None, use_errno=True)


def cut_attempt_logs(folder: str, most: int) -> int:
    """Of an attempt's folder; returns the bytes that were freed. A log that can't be cut stays as it is."""
    return sum(_cut_log_file(f"{folder}/{name}", most) for name in ATTEMPT_LOGS)


def _cut_log_file(path: str, most: int) -> int:
    """A quarter of `most` stays of its beginning, and half of it of its end: there is room until the next cut."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return 0
    try:
        before = os.fstat(fd)
        if not stat.S_ISREG(before.st_mode) or before.st_blocks * 512 <= most:
            return 0
        begin = -(-(most // 4) // BLOCK) * BLOCK
        end = (before.st_size - most // 2) // BLOCK * BLOCK
        if end <= begin or not _punch_hole(fd, begin, end - begin):
            return 0
        return max(0, (before.st_blocks - os.fstat(fd).st_blocks) * 512)
    except OSError:
        return 0
    finally:
        os.close(fd)


def _punch_hole(fd: int, begin: int, length: int) -> bool:
    """False: this file system has no holes."""
    return bool(_libc.fallocate(fd, KEEP_SIZE | PUNCH_HOLE, ctypes.c_longlong(begin), ctypes.c_longlong(length)) == 0)


TAIL_BYTES = 64 << 10  # a jax traceback has tens of kilobytes


def read_post_mortem(
    folder: Path,
    exit_: ExitRecord,
    identity: ProcessIdentity | None,
    kernel: KernelLog | None,
    pids: Collection[int] = (),
    pci: Collection[str] = (),
) -> PostMortem:
    """`pids`: who belonged to it when it was seen last; `pci`: where its GPUs are."""
    before, after = exit_.oom_kills
    return PostMortem(
        err=_log_tail(folder / "stderr.log") or exit_.log,
        out=_log_tail(folder / "stdout.log") or exit_.out,
        disk_free=exit_.disk_free,
        oom_before=before,
        oom_after=after,
        kernel=_kernel_lines_about(kernel, identity, pids, pci),
        kernel_pid=identity.pid if identity and kernel and not (kernel.trouble or kernel.host_pids) else None,
    )


def _kernel_lines_about(
    kernel: KernelLog | None, identity: ProcessIdentity | None, pids: Collection[int], pci: Collection[str]
) -> tuple[str, ...]:
    if kernel is None or identity is None:
        return ()
    kernel.look()
    return kernel.lines_about({identity.pid, *pids}, pci, since=identity.boot)


def _log_tail(path: Path) -> str:
    try:
        with open_regular_file(path) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


PROOF_PATIENCE_S = (
    0.1  # most proofs are read at once; a large checkpoint, or a file system that hangs, is not waited for
)
AskedKey = TypeVar("AskedKey")
AnswerValue = TypeVar("AnswerValue")


class AttemptObserver:
    """Eyes on the attempts of one campaign."""

    def __init__(
        self,
        folder_of: Callable[[str, int], Path],
        clock: Clock,
        vitals: VitalsReader | None = None,
        traces: AttemptTraces | None = None,
    ) -> None:
        self.folder_of, self.clock = folder_of, clock
        self.traces = traces or NoAttemptTraces()
        self.proofs = FileProofReader(orders_before)
        self.vitals = vitals  # knows the kernel log, and who belonged to a run
        self.probe = AttemptProbe(folder_of, clock, self._proof, self._aftermath, self.traces)
        self._state: CampaignState | None = None
        self._reading: dict[AttemptKey, Future[ProofReading]] = {}
        self._searching: dict[AttemptKey, Future[str | None]] = {}

    @classmethod
    def of_state(cls, state: Path, store: Store, clock: Clock) -> AttemptObserver:
        """For a command, which looks and remembers nothing for others."""
        traces = LocalTraces(state)
        traces.claimed_elsewhere = ClaimMachines(store, state)
        return cls(lambda cell, n: attempt_folder(state, cell, n), clock, traces=traces)

    def configure(self, state: CampaignState) -> None:
        self._state = state

    def order_of(self, attempt: Attempt) -> Order | None:
        """From its folder, or from where its shim kept it when that was deleted."""
        places = (self.folder_of(*attempt.place), *map(Path, self.traces.refuges(attempt.token)))
        return next(filter(None, map(read_order, places)), None)

    def _proof(self, attempt: Attempt, exit_: ExitRecord | None) -> ProofReading:
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
            if found.holds is not None and not found.holds and self.clock.boot() - began > PROOF_PATIENCE_S:
                found = self.proofs.read(job, cell, order, exit_)  # a file that did not answer looks like a missing one
            return replace(found, saved=saved_own_checkpoint(job, cell, order)) if died else found

        if not job.asks_proof and not is_glob_pattern(order.output) and not (died and job.progress):
            return self.proofs.read(job, cell, order, exit_)
        return self._apart(attempt.key, read)

    def _aftermath(self, attempt: Attempt, exit_: ExitRecord, identity: ProcessIdentity | None) -> PostMortem:
        folder = self.folder_of(*attempt.place)
        if self.vitals is None:
            return read_post_mortem(folder, exit_, identity, None)
        gpus = [gpu for name in attempt.slots if (gpu := slot_from_name(name).gpu) is not None]
        pci = [place for gpu in gpus if self.vitals.gpu and (place := self.vitals.gpu.pci(gpu))]
        return read_post_mortem(folder, exit_, identity, self.vitals.kernel, self.vitals.pids_of(attempt.key), pci)

    def _apart(self, key: AttemptKey, read: Callable[[], ProofReading]) -> ProofReading:
        """In a thread of its own. A reading that takes long is there at a later look."""
        found = _answer_if_ready(self._reading, key, read)
        if found is None:
            return ProofReading(None, pending=True)
        try:
            return found.result()
        except Exception as error:  # whatever is wrong with the files of one run must not end the watch over all
            trouble = Evidence("proof", "proof", phrase("hosts.unreadable_because", reason=error), UNREAD)
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
        """The newest whole one it left. Raises OrderNotReady while its files are being looked at: ask again."""
        order = self.order_of(attempt)
        if order is None:
            return None
        found = _answer_if_ready(self._searching, attempt.key, lambda: newest_whole_checkpoint(job, cell, order))
        if found is None:
            raise OrderNotReady
        try:
            return found.result()
        except Exception as error:
            raise OSError(phrase("hosts.checkpoints_unreadable", reason=error)) from error


def match_output_pattern_in_time(pattern: str, folder: str) -> Mapping[str, float]:
    """What fits an output at a launch. Nothing, where its folder does not answer: a launch does not wait for that."""
    asked = run_in_daemon_thread(lambda: match_output_pattern(pattern, folder))
    wait([asked], PROOF_PATIENCE_S)
    return asked.result() if asked.done() and asked.exception() is None else {}


def _answer_if_ready(
    asked: dict[AskedKey, Future[AnswerValue]], key: AskedKey, read: Callable[[], AnswerValue]
) -> Future[AnswerValue] | None:
    """The answer, if it is there. Who asks for the first time waits a moment; who asks again does not wait again."""
    if key in asked:
        future = asked[key]
    else:
        future = asked[key] = run_in_daemon_thread(read)
        wait([future], PROOF_PATIENCE_S)
    if not future.done():
        return None
    del asked[key]
    return future


OLD_SIGNAL_ANSWER_S = 3.0  # an answer about files that is older than this, and than two looks, abstains


class RunFileSignals:
    """What the files of one run say. Used by one thread at a time."""

    def __init__(self, job: Job, cell: Cell, order: Order) -> None:
        self._reader = ProgressReader(job, cell, order)
        self._argv = order.argv
        self._clocks: tuple[tuple[str, float], ...] | None = None
        self.output: str | None = None

    def look(self) -> RunReadings:
        marks = self._reader.look()
        self.output = self._reader.output
        if self._clocks is None and self.output and any(mark.count is not None for mark in marks):
            self._clocks = declared_periods(self.output, self._argv)
        return RunReadings(0.0, marks, clocks=self._clocks or (), output=self.output)


class LivenessSignals:
    """The signals of the runs of one campaign."""

    def __init__(
        self,
        folder_of: Callable[[str, int], Path],
        clock: Clock,
        vitals: VitalsReader,
        poll_s: float = 0.0,
        *,
        cuts: bool = False,
    ) -> None:
        """`cuts`: logs are cut where the campaign says so. That is the controller's to do, and nobody else's."""
        self._cuts = cuts
        self.folder_of, self.clock, self.vitals = folder_of, clock, vitals
        self._old_s = max(OLD_SIGNAL_ANSWER_S, 2 * poll_s)
        self._state: CampaignState | None = None
        self._files: dict[AttemptKey, RunFileSignals] = {}
        self._shift: BackgroundReader[AttemptKey, RunReadings] = BackgroundReader(clock)

    def configure(self, state: CampaignState) -> None:
        self._state = state

    def read(self, living: Sequence[tuple[Attempt, AttemptSnapshot]]) -> Mapping[AttemptKey, RunReadings]:
        boot = self.clock.boot()
        files = {attempt.key: found for attempt, _ in living if (found := self._files_of(attempt))}
        self._shift.read({key: found.look for key, found in files.items()})
        vitals = self.vitals.look_all([self._ask(attempt, seen) for attempt, seen in living])
        if self._cuts and self._state and (most := self._state.campaign.log_max):
            for attempt, _ in living:  # after they were read
                cut_attempt_logs(str(self.folder_of(*attempt.place)), most)
        return {
            attempt.key: replace(self._answer(attempt.key, boot), boot=boot, vitals=vitals[attempt.key])
            for attempt, _ in living
        }

    def forget(self, key: AttemptKey) -> None:
        self._files.pop(key, None)
        self._shift.forget(key)

    def _files_of(self, attempt: Attempt) -> RunFileSignals | None:
        assert self._state is not None
        if attempt.key not in self._files:
            order = read_order(self.folder_of(*attempt.place))
            if order is None:
                return None
            cell = self._state.cells[attempt.cell].cell
            self._files[attempt.key] = RunFileSignals(self._state.job(cell.job), cell, order)
        return self._files[attempt.key]

    def _answer(self, key: AttemptKey, boot: float) -> RunReadings:
        """The newest answer about its files; an old one abstains, and what it said stands."""
        newest = self._shift.newest.get(key)
        if newest is None:
            return RunReadings(boot)
        if newest.boot >= boot - self._old_s:
            return newest.value
        why = phrase("hosts.files_silent", silent_s=boot - newest.boot)
        return replace(newest.value, marks=tuple(replace(mark, trouble=why) for mark in newest.value.marks))

    def _ask(self, attempt: Attempt, seen: AttemptSnapshot) -> VitalsRequest:
        assert self._state is not None
        assert seen.identity is not None
        gpus = tuple(gpu for name in attempt.slots if (gpu := slot_from_name(name).gpu) is not None)
        files = self._files.get(attempt.key)
        return VitalsRequest(
            attempt.key,
            seen.identity.pid,
            seen.identity.ticks,
            seen.identity.shim_pid,
            str(self.folder_of(*attempt.place)),
            files.output if files else None,
            gpus,
            self._state.campaign.slots.per_gpu > 1,
        )
