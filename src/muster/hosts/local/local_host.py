"""This machine behind the ports. What a question needs is loaded when it is asked: most commands ask few."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from muster.files.muster_home import slots_home
from muster.files.state_folder import attempt_folder

if TYPE_CHECKING:
    from muster.engine.ports.clock import Clock
    from muster.engine.ports.executor import LeaseHolder
    from muster.engine.ports.machine import BootEntry, BootKeeper, ClosedSlots, GpuDevice, OtherUser, PythonAnswer
    from muster.engine.ports.processes import LeftRun, LivingRemains, OutputWriter
    from muster.engine.ports.run_host import GuardReport
    from muster.engine.ports.store import Store
    from muster.hosts.local.attempt_observer import AttemptObserver, LivenessSignals
    from muster.hosts.local.executor import LocalStepExecutor
    from muster.hosts.local.run_inspector import RunInspector
    from muster.model.errors import Mistake
    from muster.model.foreign_run import RunQuery


class LocalMachine:
    def gpus(self) -> Sequence[GpuDevice]:
        from muster.hosts.local.gpus import GpuInventory, find_gpu_devices

        return GpuInventory(find_gpu_devices).gpus

    def nvidia_driver(self) -> Mapping[str, str | None]:
        from muster.hosts.local.gpus import read_nvidia_driver

        return read_nvidia_driver()

    def why_slots_are_closed(self) -> ClosedSlots | None:
        from muster.hosts.local.slot_leases import why_slots_are_closed

        return why_slots_are_closed(slots_home() / "slots")

    def slot_holders(self) -> Mapping[str, LeaseHolder]:
        from muster.hosts.local.slot_leases import SlotLeases

        return SlotLeases(slots_home() / "slots").holders()

    def other_users(self) -> Sequence[OtherUser]:
        from muster.hosts.local.other_users import find_other_users

        return find_other_users()

    def note_uncoordinated_users(self) -> Sequence[Mistake]:
        from muster.hosts.local.other_users import note_uncoordinated_users

        return note_uncoordinated_users()

    def ask_python(
        self, words: Sequence[str], cwd: str, env: Mapping[str, str], *, modules: Sequence[str] = ()
    ) -> PythonAnswer:
        from muster.hosts.local.python_probe import ask_python

        return ask_python(words, cwd, env, modules=modules)

    def boot_entry(self, root: Path) -> BootEntry:
        from muster.hosts.local.start_at_boot import build_boot_entry

        return build_boot_entry(root)

    def boot_keeper(self) -> BootKeeper:
        from muster.hosts.local.start_at_boot import find_boot_keeper

        return find_boot_keeper()

    def boot_keepers(self) -> Sequence[BootKeeper]:
        from muster.hosts.local.start_at_boot import all_boot_keepers

        return all_boot_keepers()


class LocalProcesses:
    def left_runs(self, state: Path, known: Collection[str]) -> list[LeftRun]:
        from muster.hosts.local.living_runs import find_left_runs

        return find_left_runs(state, known)

    def strange_writers(self, folders: Collection[str], state: Path, known: Collection[str]) -> Mapping[str, int]:
        from muster.hosts.local.living_runs import find_folders_in_use

        try:
            near = find_folders_in_use(folders)
        except OSError:  # no /proc
            return {}
        if not near:
            return {}
        from muster.hosts.local.process_outputs import find_strange_writers

        return find_strange_writers(near, str(state), known)

    def remains(self, name: str, folder: str) -> LivingRemains:
        from muster.hosts.local.living_runs import look_for_remains

        return look_for_remains(name, folder)

    def writers_and_strays(
        self, outputs: Collection[str], states: Collection[str]
    ) -> tuple[Sequence[OutputWriter], Sequence[int]]:
        from muster.hosts.local.output_writers import find_writers_and_strays

        return find_writers_and_strays(outputs, states)

    def writer_check(self) -> Callable[[str], str]:
        from muster.hosts.local.process_outputs import make_writer_check

        return make_writer_check()

    def may_miss_other_users(self) -> bool:
        from muster.hosts.local.process_outputs import may_miss_other_users

        return may_miss_other_users()

    def inspect(self, asked: RunQuery, clock: Clock) -> RunInspector:
        from muster.hosts.local.run_inspector import RunInspector

        return RunInspector(asked, clock)


class LocalHost:
    def observer(self, state: Path, store: Store, clock: Clock) -> AttemptObserver:
        from muster.hosts.local.attempt_observer import AttemptObserver

        return AttemptObserver.of_state(state, store, clock)

    def signals(self, state: Path, clock: Clock) -> LivenessSignals:
        from muster.hosts.local.attempt_observer import LivenessSignals
        from muster.hosts.local.vitals import VitalsReader

        return LivenessSignals(lambda cell, n: attempt_folder(state, cell, n), clock, VitalsReader())

    def steps(self, state: Path, clock: Clock) -> LocalStepExecutor:
        from muster.hosts.local.executor import LocalStepExecutor

        return LocalStepExecutor(state, clock)

    def guard_command(self, state: Path) -> tuple[str, ...]:
        from muster.hosts.local.guard_keeper import guard_command

        return guard_command(state)

    def guard_lives(self, state: Path) -> bool:
        from muster.hosts.local.guard_keeper import living_guard_pid

        return living_guard_pid(state) is not None

    def guard_trouble(self, state: Path) -> GuardReport | None:
        from muster.hosts.local.guard_keeper import living_guard_pid, read_guard_report

        report = read_guard_report(state)
        worth_telling = report is not None and report.worth_telling
        return report if worth_telling and living_guard_pid(state) is not None else None
