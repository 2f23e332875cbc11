"""Looks at trainings that Muster did not start: finds their process and their files, and looks at them for a while."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from dataclasses import replace
from typing import TypeVar

from muster.engine.judge.unwatched_run import UnwatchedRunWatch
from muster.engine.ports.clock import Clock, thresholds_from_env
from muster.engine.ports.processes import INSPECTION_PERIOD_S, ProcessFate, RunSnapshot
from muster.files.process_identity import read_process
from muster.hosts.local.find_process import (
    FolderWriterProcesses,
    OpenedFiles,
    commands_of_processes,
    exit_status_of_zombie,
    files_opened_by,
    find_writers_in_folder,
    is_init_process,
    is_kernel_thread,
    leader_of_thread,
    read_comm,
    read_run_process,
    training_process_of_worker,
)
from muster.hosts.local.gpus import GpuProbe, gpus_of_processes
from muster.hosts.local.process_outputs import (
    OUTPUT_SLACK_S,
    ProcessOutput,
    find_process_output,
    find_run_folder_below,
    find_supervising_campaign,
    process_of_attempt_folder,
    writes_into_folder,
)
from muster.hosts.local.process_tree import ProcessSnapshot
from muster.hosts.local.vitals import VitalsReader, VitalsRequest
from muster.model.attempt_snapshot import ExitRecord, ProgressMark, RunReadings, TreeVitals
from muster.model.campaign import Job
from muster.model.errors import UsageError
from muster.model.foreign_run import ProgressDates, RunFolderFacts, RunProcess, RunQuery, TargetStep
from muster.readers.background_reader import BackgroundReader, run_in_daemon_thread
from muster.readers.discovery.progress_files import (
    PROGRESS_LOOKED_FOR,
    find_progress_files,
    find_run_folder,
    progress_source_of_trace,
)
from muster.readers.discovery.run_arguments import declared_periods, target_of_run
from muster.text.phrases import phrase

ReadValue = TypeVar("ReadValue")
LATE_ANSWER_S = 4.0
OLD_FILES_ANSWER_S = 3.0  # an answer about files that is older than this abstains
FOLDER_PATIENCE_S = 8.0  # with a folder that does not answer


class RunInspector:
    """One run that somebody asks about."""

    def __init__(self, asked: RunQuery, clock: Clock) -> None:
        self.asked, self.clock = asked, clock
        self.notes: list[str] = []
        self.fate: ProcessFate = "nobody"
        self.who: RunProcess | None = None
        self.exit: ExitRecord | None = None
        self.writers = FolderWriterProcesses()
        self.state = ""
        self.hung = ""  # what has not answered
        snapshot = ProcessSnapshot.take()
        self.folder, self.runs = self._run_folder()
        self._find_process(snapshot)
        self.found = self._find_files(snapshot)
        self.rival = self._rival(snapshot)
        self._prepare(snapshot)

    # -- who and where

    def _run_folder(self) -> tuple[str, list[str]]:
        if self.asked.folder is None:
            return "", []
        folder = os.path.realpath(self.asked.folder)
        otherwise: tuple[str, list[str]] = (folder, [])
        return self._patiently(lambda: find_run_folder(folder), folder, otherwise)

    def _patiently(self, read: Callable[[], ReadValue], folder: str, otherwise: ReadValue) -> ReadValue:
        if self.hung:
            return otherwise
        asked = run_in_daemon_thread(read)
        wait([asked], FOLDER_PATIENCE_S)
        if not asked.done():
            self.hung = phrase("hosts.folder_silent", folder=folder, silent_s=FOLDER_PATIENCE_S)
            return otherwise
        return asked.result()

    def _find_process(self, snapshot: ProcessSnapshot) -> None:
        if self.asked.pid is not None:
            self._named(self.asked.pid, snapshot)
        if self.folder and self.fate != "alive":
            self._search(self.folder, snapshot)

    def _named(self, pid: int, snapshot: ProcessSnapshot) -> None:
        leader = leader_of_thread(pid)
        if leader != pid:
            self.notes.append(phrase("hosts.thread_of_process", thread=pid, process=leader))
        proc = snapshot.procs.get(leader)
        if proc is None:
            self.fate = "hidden" if _pid_exists(pid) else "never"
            return
        _refuse_system_process(leader)
        if not _is_process_alive(leader):
            self.fate, self.exit = "zombie", _exit_of_process(leader, self.clock)
            self.who = read_run_process(proc)
            return
        head = training_process_of_worker(proc, snapshot)
        if head.pid != leader:
            self.notes.append(phrase("hosts.part_of_process", pid=leader, head=head.pid))
        self.who, self.fate = read_run_process(head), "alive"

    def _rival(self, snapshot: ProcessSnapshot) -> int | None:
        """Another process that writes where the given one was said to; and whether that one is seen there at all."""
        if self.asked.pid is None or self.asked.folder is None or self.who is None or self.fate != "alive":
            return None
        if self.who.sure != "was given" or self.who.foreign:
            return None
        writers = self._writers(self.found.folder, snapshot)
        near = (each for each in writers.doubtful if each.sure != "names the folder above")
        known = [each for each in (writers.main, *writers.others, *near) if each is not None]
        if any(self._same_tree(each, snapshot) for each in known):
            return None
        self.who = replace(self.who, sure="not seen there")
        main = writers.main
        return main.pid if main is not None and main.sure in ("has it open", "names it") else None

    def _same_tree(self, other: RunProcess, snapshot: ProcessSnapshot) -> bool:
        theirs = {proc.pid for proc in snapshot.tree(other.pid, other.ticks, -1)}
        return other.pid in self._tree(snapshot) or (self.who is not None and self.who.pid in theirs)

    def _writers(self, folder: str, snapshot: ProcessSnapshot) -> FolderWriterProcesses:
        def writes(who: RunProcess) -> bool:
            began = self._wall_of(who)
            return self._patiently(lambda: writes_into_folder(who, folder, snapshot, began), folder, False)

        return find_writers_in_folder(folder, snapshot, writes)

    def _search(self, folder: str, snapshot: ProcessSnapshot) -> None:
        """Who writes there. An attempt of a campaign has that written down."""
        own = self._patiently(lambda: process_of_attempt_folder(folder), folder, None)
        if own and (proc := snapshot.procs.get(own[0])) and proc.ticks == own[1] and proc.state not in "ZX":
            because = (phrase("hosts.identity_recorded"),)
            self.who, self.fate = replace(read_run_process(proc), because=because), "alive"
            return
        self.writers = self._writers(folder, snapshot)
        main = self.writers.main
        if main is None:
            return
        told = {
            "never": phrase("hosts.gone_other_writes", pid=self.asked.pid, writer=main.pid),
            "zombie": phrase("hosts.ended_other_writes", pid=self.asked.pid, writer=main.pid),
            "hidden": phrase("hosts.hidden_other_writes", pid=self.asked.pid, writer=main.pid),
        }
        self.notes += [told[self.fate]] if self.fate in told else []
        self.who, self.fate, self.exit = main, "alive", None

    def _find_files(self, snapshot: ProcessSnapshot) -> RunFolderFacts:
        began = self._began_wall()
        tree = self._tree(snapshot)
        self.commands = commands_of_processes(tree)
        opened = files_opened_by(tree) if tree else OpenedFiles()
        if self.asked.folder is not None:
            output = self._given_output(opened, began)
        elif self.who is not None and began is not None:
            who, commands = self.who, self.commands
            output = self._patiently(
                lambda: find_process_output(who, commands, opened, began), who.cwd or "", ProcessOutput()
            )
        else:
            return RunFolderFacts()
        if output.how:
            self.notes.append(phrase("hosts.output_found_by_looking", how=output.how))
        self.notes += output.notes
        since = None if began is None else began - OUTPUT_SLACK_S
        if self.hung:
            return RunFolderFacts(output.folder, troubles=(self.hung,))

        def read() -> RunFolderFacts:
            return find_progress_files(
                output.folder, self.clock.wall(), since, only_since=output.only_since, also=opened.outputs
            )

        found = self._patiently(read, output.folder, RunFolderFacts(output.folder))
        return replace(found, troubles=(*found.troubles, self.hung)) if self.hung else found

    def _given_output(self, opened: OpenedFiles, began: float | None) -> ProcessOutput:
        """In a folder of many runs that of the process that was given; else the one that was written to last."""
        if self.runs and self.asked.pid is not None and began is not None:
            own = find_run_folder_below(os.path.realpath(self.asked.folder or ""), opened, began)
            return replace(own, how=phrase("hosts.output_own_of_runs"))
        self.notes += self.runs
        return ProcessOutput(self.folder)

    def _tree(self, snapshot: ProcessSnapshot) -> list[int]:
        if self.who is None or self.fate != "alive":
            return []
        return [proc.pid for proc in snapshot.tree(self.who.pid, self.who.ticks, -1)]

    def _began_wall(self) -> float | None:
        if self.who is None or self.fate != "alive":
            return None
        return self._wall_of(self.who)

    def _wall_of(self, who: RunProcess) -> float:
        """When it began."""
        return self.clock.wall() - (self.clock.boot() - who.began)

    # -- what is looked at

    def _prepare(self, snapshot: ProcessSnapshot) -> None:
        now = self.clock.boot()
        alive = self.fate == "alive"
        self.dated: dict[str, ProgressDates] = {
            trace.progress.path: trace.dated if alive else replace(trace.dated, why="") for trace in self.found.traces
        }  # only of a living run it matters that a step can't be dated
        self.sources = [progress_source_of_trace(trace) for trace in self.found.traces]
        argv = tuple(word for words, _ in self.commands for word in words)
        self.target = self._target(argv)
        job = Job("look", (), argv, progress=tuple(trace.progress for trace in self.found.traces))
        patient = replace(thresholds_from_env(), poll_s=INSPECTION_PERIOD_S, late_s=LATE_ANSWER_S)
        began = self.who.began if self.who and self.fate == "alive" else now
        self.watch = UnwatchedRunWatch(job, self.dated, began, now, patient)
        where = self.found.folder or None
        no_clocks: tuple[tuple[str, float], ...] = ()
        self.clocks = self._patiently(lambda: declared_periods(where, argv), where or "", no_clocks)
        self.shift: BackgroundReader[int, tuple[ProgressMark, ...]] = BackgroundReader(self.clock, patience_s=0.5)
        self.gpus, self.shared = gpus_of_processes(self._tree(snapshot))
        self.vitals = VitalsReader(GpuProbe(period_s=INSPECTION_PERIOD_S) if self.gpus else None)

    def _target(self, argv: Sequence[str]) -> TargetStep | None:
        counting = (trace.progress for trace in self.found.traces if trace.progress.kind in ("jsonl", "csv", "stdout"))
        first = next(counting, None)
        if first is None:
            return None
        counts = ("epoch" if "epoch" in (first.step or "") else "step") if first.kind == "stdout" else first.step
        return target_of_run(argv, self.found.folder, counts or "step")

    # -- looking

    @property
    def watchable(self) -> bool:
        return self.fate == "alive" or bool(self.sources)

    def look(self) -> None:
        boot, wall = self.clock.boot(), self.clock.wall()
        if self.fate == "alive" and self.who is not None:
            self.state = _state_of_run_process(self.who, self.state)
            if not self.state:
                self.fate = "ended"
        self.shift.read({0: lambda: tuple(source.look() for source in self.sources)})
        seen = RunReadings(boot, self._marks(boot), self._vitals(), self.clocks)
        self.watch.look(seen, self.state, wall, slept=max(0.0, boot - time.monotonic()))

    def settle(self) -> None:
        """Waits a little for files that have not answered at all yet, then looks once more."""
        deadline = time.monotonic() + FOLDER_PATIENCE_S
        if not self.sources or self.shift.newest:
            return
        while not self.shift.newest and time.monotonic() < deadline:
            time.sleep(0.05)
        self.look()

    def _marks(self, boot: float) -> tuple[ProgressMark, ...]:
        if not self.sources:
            none = phrase("hosts.no_progress_files")
            return (ProgressMark("progress files", "files", None, none, trouble=none),)
        newest = self.shift.newest.get(0)
        if newest is None:
            return ()
        if boot - newest.boot <= OLD_FILES_ANSWER_S:
            return newest.value
        why = phrase("hosts.files_silent", silent_s=boot - newest.boot)
        return tuple(replace(mark, trouble=why) for mark in newest.value)

    def _vitals(self) -> TreeVitals:
        if self.fate != "alive" or self.who is None:
            return TreeVitals()
        where = self.found.folder or self.who.cwd or "/"
        key = ("look", self.who.pid)
        ask = VitalsRequest(key, self.who.pid, self.who.ticks, -1, where, where, self.gpus, self.shared)
        return self.vitals.look_all([ask])[key]

    def sight(self) -> RunSnapshot:
        found = self.found
        if found.traces and self.shift.newest.get(0) is None:
            found = replace(found, troubles=(*found.troubles, phrase("hosts.files_did_not_answer")))
        return RunSnapshot(
            self.asked,
            self.clock.boot(),
            self.clock.wall(),
            self.watch,
            self.fate,
            found,
            self.dated,
            self.who,
            state=self.state,
            exit=self.exit,
            others=self.writers.others,
            doubtful=self.writers.doubtful,
            hidden=self.writers.hidden if self.who is None else 0,
            orphans=self._orphans(),
            target=self.target,
            supervised=self._patiently(lambda: find_supervising_campaign(self.folder), self.folder, None)
            if self.folder
            else None,
            notes=tuple(self.notes),
            sought=PROGRESS_LOOKED_FOR,
            rival=self.rival,
        )

    def _orphans(self) -> tuple[int, ...]:
        """Who of its tree lives on, and still writes there."""
        if self.fate != "ended" or self.who is None or not self.found.folder:
            return ()
        known = self.vitals.pids_of(("look", self.who.pid))
        left = [pid for pid in known if pid != self.who.pid and _is_process_alive(pid)]
        return tuple(pid for pid in left if self._writes_there(pid))

    def _writes_there(self, pid: int) -> bool:
        opened = files_opened_by([pid])
        return any(path.startswith(self.found.folder + "/") for path in (*opened.files, *opened.outputs))


def _refuse_system_process(pid: int) -> None:
    if is_kernel_thread(pid):
        name = read_comm(pid)
        raise UsageError(
            phrase("hosts.kernel_thread_is_no_training", pid=pid, name=name), hint=phrase("hosts.ps_lists_others")
        )
    if is_init_process(pid):
        name = read_comm(pid)
        hint = phrase("hosts.give_training_process")
        raise UsageError(phrase("hosts.first_process_is_no_training", name=name), hint=hint)


def _pid_exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)  # no signal: only whether there is such a process
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def _state_of_run_process(who: RunProcess, before: str) -> str:
    """The letter of its state; empty: it has ended. One that can't be read now is as it was before."""
    try:
        found = read_process(who.pid)
    except OSError:
        return before or "S"
    return found.state if found and found.ticks == who.ticks and found.state not in "ZX" else ""


def _is_process_alive(pid: int) -> bool:
    try:
        found = read_process(pid)
    except OSError:
        return False
    return found is not None and found.state not in "ZX"


def _exit_of_process(pid: int, clock: Clock) -> ExitRecord | None:
    status = exit_status_of_zombie(pid)
    if status is None:
        return None
    signal, code = status & 0x7F, status >> 8
    return ExitRecord(None if signal else code, signal or None, clock.wall(), clock.boot(), 0.0)
