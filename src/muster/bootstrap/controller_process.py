"""The controller's process: takes the lock and a new epoch, builds the ports, runs the loop. It also drops recorded
environments that no attempt needs any more.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from muster.app.campaign.campaign_code import CodeWatch
from muster.app.campaign.campaign_handle import are_guards_wanted, revive_command
from muster.app.campaign.campaign_status import ControllerStatus, Status, build_status
from muster.app.campaign.registered_campaigns import RegisterKeeper
from muster.app.finish.power_off import read_recorded_environment
from muster.app.finish.run_finish import (
    CampaignFinish,
    FinishRunner,
    LoopRounds,
    PeopleNotifier,
    attempt_of_step,
    tokens_of_open_steps,
)
from muster.app.overview.status_tsv import StatusTables
from muster.bootstrap import install_local_services
from muster.engine.controller.action_runner import ActionRunner
from muster.engine.controller.loop import ControllerLoop, ControllerPorts, LoopTimings
from muster.engine.controller.watch_book import WatchBook
from muster.engine.ports.clock import SystemClock, poll_seconds, thresholds_from_env
from muster.engine.ports.extension import ControllerExtension, LazyObserver
from muster.engine.store.controller_files import (
    ClaimMachines,
    ControllerLock,
    FileBallast,
    WatchBookFile,
    machine_of_epoch,
)
from muster.engine.store.database_checks import refuse_newer_folded_state
from muster.engine.store.sqlite_store import SqliteStore
from muster.files.atomic_write import recorded_umask, use_private_umask
from muster.files.campaign_ownership import (
    enter_register,
    find_foreign_owner,
    key_for_children,
    refuse_foreign_campaign,
    was_started_here,
)
from muster.files.campaign_snapshots import delete_old_environments, has_old_environments, why_environment_is_missing
from muster.files.crash_points import reach_crash_point
from muster.files.process_identity import read_boot_id
from muster.files.state_folder import (
    attempt_folder,
    close_state_permissions,
    refuse_copied_state,
    refuse_links_in_state,
    state_folder_standing,
)
from muster.hosts.local.attempt_observer import AttemptObserver, LivenessSignals, match_output_pattern_in_time
from muster.hosts.local.executor import LocalExecutor, LocalStepExecutor
from muster.hosts.local.gpus import GpuProbe
from muster.hosts.local.guard import NOT_HERE, lower_oom_score
from muster.hosts.local.guard_keeper import GuardKeeper, pop_guard_notice
from muster.hosts.local.kernel import KernelLog
from muster.hosts.local.launch_orders import LocalOrderComposer, OrderDefaults
from muster.hosts.local.vitals import VitalsReader
from muster.hosts.local.waker import LocalWaker
from muster.model.attempt import Attempt, CellRecord
from muster.model.calendar import format_iso_time
from muster.model.campaign_state import CampaignState
from muster.model.decision import Decision
from muster.model.errors import STATE_FORMAT, NewerStateError
from muster.readers.attempt_facts import read_order

if TYPE_CHECKING:
    from muster.app.gates.gate_watcher import GateWatcher
    from muster.app.loop.run_pruning import RunPruner
    from muster.app.metrics.cell_history import AttemptTrace


def drop_unneeded_environments(store: SqliteStore, state_folder: Path) -> list[str]:
    """By the controller alone. A key that was rotated must not live on with the campaign."""
    if not has_old_environments(state_folder):
        return []

    def needed() -> Collection[str] | None:
        if store.behind():
            return None  # a decision may name one, and is not folded yet
        state = store.load()
        return None if state is None else _needed_environment_files(state_folder, state)

    return delete_old_environments(state_folder, needed)


def _needed_environment_files(state_folder: Path, state: CampaignState) -> set[str] | None:
    if not state.env_file:
        return None
    needed = {Path(state.env_file).name}
    for folder in _open_execution_folders(state_folder, state):
        order = read_order(folder)
        if order is not None and order.env_file:
            needed.add(Path(order.env_file).name)
        elif (folder / "attempt.json").exists():
            return None  # it can't be read just now
    return needed


def _open_execution_folders(state_folder: Path, state: CampaignState) -> Iterator[Path]:
    for attempt in state.open_attempts:
        yield attempt_folder(state_folder, *attempt.place)
    for record in state.finish.steps.values():
        if record.ended is None:
            cell, n = attempt_of_step(record).key
            yield state_folder / cell / str(n)


REVIVE_S = 30.0
ENTRY_POLLS = 12  # after so many the register is looked at: once a minute
REVIVED_BY_REASONS = {"shim": "revived by a shim", "guard": "revived by the guard"}


def main(argv: list[str]) -> int:
    install_local_services()
    root = Path(argv[0])
    state = root / ".muster"
    clock = SystemClock()
    if os.environ.get("MUSTER_REVIVED_BY") and not may_revive_controller(root, state):
        return NOT_HERE  # whoever brought the folder here did not ask for anything to go on by itself
    refuse_foreign_campaign(root)
    refuse_copied_state(state)
    refuse_links_in_state(state)
    lower_oom_score()
    use_private_umask(None)
    close_state_permissions(state)
    try:
        refuse_newer_folded_state(state)  # before the lock: whoever may decide here must find it free
        return run_as_controller(root, state, clock)
    except NewerStateError as error:  # an older Muster's shim or guard has called us: nothing here is ours to decide
        print(f"{error.message} ({error.where}); {error.hint}", file=sys.stderr)
        return NOT_HERE


def may_revive_controller(root: Path, state: Path) -> bool:
    return (
        find_foreign_owner(root) is None
        and state_folder_standing(state) == "home"
        and was_started_here(state, or_earlier=True)
    )


def run_as_controller(root: Path, state: Path, clock: SystemClock) -> int:
    lock = ControllerLock(state, clock)
    if not lock.take_over():
        return 0  # there is a controller
    reach_crash_point("lock.taken")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        return run_controller(root, state, clock, lock)
    finally:
        lock.give_back()


def run_controller(root: Path, state: Path, clock: SystemClock, lock: ControllerLock) -> int:
    store = SqliteStore(state)
    store.commit([])  # what a crash left unfolded, a whole log if the database is gone: the epoch is in it
    epoch = store.epoch_now() + 1
    who = f"controller {os.getpid()}"
    reason = REVIVED_BY_REASONS.get(os.environ.get("MUSTER_REVIVED_BY", ""), "started")
    about = {"epoch": epoch, "pid": os.getpid(), "format": STATE_FORMAT, "boot_id": read_boot_id()}
    about |= machine_of_epoch(state)
    taken = Decision("epoch", who, reason, at=format_iso_time(clock.wall()), boot=clock.boot(), epoch=epoch, data=about)
    store.commit([taken])
    store.epoch = epoch
    lock.beat(epoch)
    reach_crash_point("epoch.taken")
    loaded = store.load()
    if loaded is None:
        return 0
    enter_register(state, loaded.campaign.name, clock.wall())
    os.environ.update(key_for_children(state))
    loop = build_controller_loop(root, state, store, clock, lock, loaded, who)
    if are_guards_wanted() and (words := pop_guard_notice(state)):
        loop.news.lost(words)
    try:
        loop.run()
        drop_unneeded_environments(store, state)
    finally:
        for extension in loop.extensions:
            extension.close()
        loop.ports.executor.close()
        loop.ports.waker.close()
        store.close()
    return 0


def build_controller_loop(
    root: Path,
    state: Path,
    store: SqliteStore,
    clock: SystemClock,
    lock: ControllerLock,
    loaded: CampaignState,
    who: str,
) -> ControllerLoop:
    executor = LocalExecutor(state, loaded.campaign.slots)
    vitals = VitalsReader(GpuProbe(), KernelLog())
    executor.launches.keep_only({attempt.token for attempt in loaded.open_attempts} | tokens_of_open_steps(loaded))
    executor.traces.claimed_elsewhere = ClaimMachines(store, state)
    looking = AttemptObserver(executor.folder, clock, vitals, executor.traces)
    watching = LivenessSignals(executor.folder, clock, vitals, poll_seconds(), cuts=True)
    memory = WatchBookFile(state, read_boot_id())
    memory.tidy()
    watches = WatchBook(thresholds_from_env(), memory)
    for each in (looking, watching):
        each.configure(loaded)
    waker = LocalWaker(state / "bell")
    ballast = FileBallast(state / "ballast")
    ballast.lay()

    code = CodeWatch(loaded.campaign, root, clock)
    apply_recorded_umask(loaded)

    settings = CampaignSettings(code, executor, looking, watching)
    around = OrderDefaults(
        root=root,
        state=state,
        revive=revive_command(root),
        revive_s=float(os.environ.get("MUSTER_REVIVE_S", REVIVE_S)),
        code_of=code,
        checkpoint_of=looking.checkpoint_of,
        lacks=why_environment_is_missing,
        fitting=match_output_pattern_in_time,
    )
    carrier = ActionRunner(
        store,
        executor,
        clock,
        LocalOrderComposer(around),
        who=who,
        epoch=loaded.epoch,
        boot_id=read_boot_id(),
        grace_s=float(os.environ.get("MUSTER_GRACE_S", "10")),
        ballast=ballast,
    )
    ports = ControllerPorts(store, executor, looking.probe, waker, clock, lock, watching)
    policy = LoopTimings(poll_s=poll_seconds())
    # of their own: the proofs of the other pair are for the judge
    eyes = AttemptObserver(executor.folder, clock, vitals, executor.traces)

    def look_at_campaign(fresh: CampaignState) -> Status:
        me = ControllerStatus(True, os.getpid())
        eyes.configure(fresh)
        seen = eyes.probe.look(fresh.open_attempts)
        return build_status(
            fresh, seen, me, wall=clock.wall(), boot=clock.boot(), boot_id=read_boot_id(), watch_of=watches.of
        )

    finishing = FinishRunner(
        root,
        clock,
        carrier.decision,
        LocalStepExecutor(state, clock, executor.warm),
        epoch=loaded.epoch,
        revive_s=around.revive_s,
    )
    extensions: list[ControllerExtension] = [
        settings,
        LazyObserver(  # most campaigns prune nothing and have no gates: they load nothing for it
            lambda campaign: campaign.loop is not None and campaign.loop.prune is not None,
            lambda: load_run_pruner(executor, watches, clock),
        ),
        LazyObserver(lambda campaign: bool(campaign.gates), lambda: load_gate_watcher(executor, watches, carrier)),
        LoopRounds(finishing),
        CampaignFinish(finishing),
        PeopleNotifier(str(root)),
        StatusTables(root, look_at_campaign),
        EnvironmentKeeper(store, state),
        *([GuardKeeper(state, clock, waker.attend, waker.ignore)] if are_guards_wanted() else []),
        RegisterKeeper(state, clock, ENTRY_POLLS * poll_seconds()),
    ]
    return ControllerLoop(ports, carrier, loaded, watches, policy, extensions)


@dataclass(frozen=True, slots=True)
class CampaignSettings(ControllerExtension):
    """What the machine's side of the controller takes from a campaign."""

    code: CodeWatch
    executor: LocalExecutor
    looking: AttemptObserver
    watching: LivenessSignals

    def configure(self, state: CampaignState) -> None:
        apply_recorded_umask(state)
        self.code.configure(state.campaign)
        self.executor.configure(state.campaign.slots)
        self.looking.configure(state)
        self.watching.configure(state)


@dataclass(frozen=True, slots=True)
class EnvironmentKeeper(ControllerExtension):
    store: SqliteStore
    state_folder: Path

    def publish(self, state: CampaignState) -> None:  # noqa: ARG002
        with contextlib.suppress(OSError):
            drop_unneeded_environments(self.store, self.state_folder)


def apply_recorded_umask(state: CampaignState) -> None:
    """Of whoever called `up`: what is for people is written with it, whoever revived us."""
    use_private_umask(recorded_umask(read_recorded_environment(state) or {}))


def load_run_pruner(executor: LocalExecutor, watches: WatchBook, clock: SystemClock) -> RunPruner:
    from muster.app.loop.run_pruning import RunPruner
    from muster.app.metrics.cell_history import trace_attempt_chain

    def chain(record: CellRecord, attempt: Attempt) -> Sequence[AttemptTrace]:
        output = attempt.outcome.output if attempt.outcome else watches.output_of(attempt)
        place = output or str(executor.folder(*attempt.place) / "out")
        return trace_attempt_chain(executor.state, record, attempt, place)

    return RunPruner(chain, clock)


def load_gate_watcher(executor: LocalExecutor, watches: WatchBook, carrier: ActionRunner) -> GateWatcher:
    from muster.app.gates.gate_watcher import GateWatcher
    from muster.readers.resume import numbers_of_attempts_before

    before = partial(numbers_of_attempts_before, executor.state)
    return GateWatcher(
        executor.folder, watches.output_of, before, carrier.clock, carrier.decision, every_s=poll_seconds()
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
