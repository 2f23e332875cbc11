"""The controller's process: takes the lock and a new epoch, builds the ports, runs the loop."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from muster.acts.status import ControllerStatus, survey
from muster.controller.carry import Carrier
from muster.controller.loop import Loop, Policy, Ports
from muster.controller.watches import Watches
from muster.domain.attempt import Attempt, CellRecord
from muster.domain.decision import Decision
from muster.domain.formats import STATE_FORMAT, NewerState
from muster.domain.gates import NO_NEWS, GateNews
from muster.domain.state import CampaignState
from muster.execute.guard import NOT_HERE, lower_oom_score
from muster.execute.guards import GuardKeeper, take_words
from muster.execute.local import LocalExecutor
from muster.execute.orders import LocalComposer, Surroundings, lacks_environment
from muster.observe import process
from muster.observe.probes.gpu import GpuEyes
from muster.observe.probes.kernel import KernelLog
from muster.observe.vitals import VitalsReader
from muster.observe.waker import LocalWaker
from muster.ports.clock import SystemClock, iso
from muster.ports.crash import reach
from muster.ports.write_files import recorded_umask, work_privately
from muster.store.ballast import Ballast
from muster.store.lock import ControllerLock
from muster.store.machines import Machines, epoch_place
from muster.store.newer import refuse_newer_folded
from muster.store.place import refuse_copy, standing
from muster.store.private_state import mend_modes, refuse_links
from muster.store.sqlite import SqliteStore
from muster.store.watches import WatchFile
from muster.wiring.codes import CodeWatch
from muster.wiring.desk import guards_wanted, revive_command
from muster.wiring.finishing import Finishing, open_step_tokens
from muster.wiring.looking import Looking, fitting
from muster.wiring.notifying import notify
from muster.wiring.old_environments import forget_environments
from muster.wiring.owner import refuse_stranger, stranger
from muster.wiring.pace import floors, poll_s
from muster.wiring.registering import Entered, enter
from muster.wiring.shutting import environment_of
from muster.wiring.started_here import hand_on, started_here
from muster.wiring.tsv import write_status_tsv
from muster.wiring.watching import Watching

if TYPE_CHECKING:
    from muster.wiring.histories import Trace

REVIVE_S = 30.0
ENTRY_POLLS = 12  # after so many the register is looked at: once a minute
REVIVED = {"shim": "revived by a shim", "guard": "revived by the guard"}
Hopeless = Callable[[CampaignState], Mapping[tuple[str, int], str]]


def main(argv: list[str]) -> int:
    root = Path(argv[0])
    state = root / ".muster"
    clock = SystemClock()
    if os.environ.get("MUSTER_REVIVED_BY") and not may_be_revived(root, state):
        return NOT_HERE  # whoever brought the folder here did not ask for anything to go on by itself
    refuse_stranger(root)
    refuse_copy(state)
    refuse_links(state)
    lower_oom_score()
    work_privately(None)
    mend_modes(state)
    try:
        refuse_newer_folded(state)  # before the lock: whoever may decide here must find it free
        return take_turn(root, state, clock)
    except NewerState as error:  # an older Muster's shim or guard has called us: nothing here is ours to decide
        print(f"{error.message} ({error.where}); {error.hint}", file=sys.stderr)
        return NOT_HERE


def may_be_revived(root: Path, state: Path) -> bool:
    return stranger(root) is None and standing(state) == "home" and started_here(state, or_earlier=True)


def take_turn(root: Path, state: Path, clock: SystemClock) -> int:
    lock = ControllerLock(state, clock)
    if not lock.take_over():
        return 0  # there is a controller
    reach("lock.taken")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        return run(root, state, clock, lock)
    finally:
        lock.give_back()


def run(root: Path, state: Path, clock: SystemClock, lock: ControllerLock) -> int:
    store = SqliteStore(state)
    store.commit([])  # what a crash left unfolded, a whole log if the database is gone: the epoch is in it
    epoch = store.epoch_now() + 1
    who = f"controller {os.getpid()}"
    reason = REVIVED.get(os.environ.get("MUSTER_REVIVED_BY", ""), "started")
    about = {"epoch": epoch, "pid": os.getpid(), "format": STATE_FORMAT, "boot_id": process.boot_id()}
    about |= epoch_place(state)
    taken = Decision("epoch", who, reason, at=iso(clock.wall()), boot=clock.boot(), epoch=epoch, data=about)
    store.commit([taken])
    store.epoch = epoch
    lock.beat(epoch)
    reach("epoch.taken")
    loaded = store.load()
    if loaded is None:
        return 0
    enter(state, loaded.campaign.name, clock.wall())
    os.environ.update(hand_on(state))
    loop = build(root, state, store, clock, lock, loaded, who)
    keeper = keep_guard(loop, state, clock)
    stay_entered(loop, state, clock)
    try:
        loop.run()
        forget_environments(store, state)
    finally:
        if keeper:
            keeper.close()
        loop.ports.executor.close()
        loop.ports.waker.close()
        store.close()
    return 0


def build(
    root: Path,
    state: Path,
    store: SqliteStore,
    clock: SystemClock,
    lock: ControllerLock,
    loaded: CampaignState,
    who: str,
) -> Loop:
    executor = LocalExecutor(state, loaded.campaign.slots)
    vitals = VitalsReader(GpuEyes(), KernelLog())
    executor.launches.keep_only({attempt.token for attempt in loaded.open_attempts} | open_step_tokens(loaded))
    executor.traces.claimed_elsewhere = Machines(store, state)
    looking = Looking(executor.folder, clock, vitals, executor.traces)
    watching = Watching(executor.folder, clock, vitals, poll_s(), cuts=True)
    memory = WatchFile(state, process.boot_id())
    memory.tidy()
    watches = Watches(floors(), memory)
    for each in (looking, watching):
        each.configure(loaded)
    waker = LocalWaker(state / "bell")
    ballast = Ballast(state / "ballast")
    ballast.lay()

    code = CodeWatch(loaded.campaign, root, clock)
    take_umask(loaded)

    def configure(fresh: CampaignState) -> None:
        take_umask(fresh)
        code.configure(fresh.campaign)
        executor.configure(fresh.campaign.slots)
        looking.configure(fresh)
        watching.configure(fresh)

    around = Surroundings(
        root=root,
        state=state,
        revive=revive_command(root),
        revive_s=float(os.environ.get("MUSTER_REVIVE_S", REVIVE_S)),
        code_of=code,
        checkpoint_of=looking.checkpoint_of,
        lacks=lacks_environment,
        fitting=fitting,
    )
    carrier = Carrier(
        store, executor, clock, LocalComposer(around), who=who, epoch=loaded.epoch, boot_id=process.boot_id(),
        grace_s=float(os.environ.get("MUSTER_GRACE_S", "10")), ballast=ballast,
    )  # fmt: skip
    ports = Ports(store, executor, looking.probe, waker, clock, lock, watching)
    policy = Policy(poll_s=poll_s())
    # of their own: the proofs of the other pair are for the judge
    eyes = Looking(executor.folder, clock, vitals, executor.traces)

    folder = state

    def publish(state: CampaignState) -> None:
        me = ControllerStatus(True, os.getpid())
        with contextlib.suppress(OSError):  # a table that can't be written must not stop the campaign
            eyes.configure(state)
            seen = eyes.probe.look(state.open_attempts)
            found = survey(
                state, seen, me, wall=clock.wall(), boot=clock.boot(), boot_id=process.boot_id(), watch_of=watches.of
            )
            write_status_tsv(root, found)
            forget_environments(store, folder)

    loop = Loop(ports, carrier, loaded, watches, policy, configure, publish)

    def tell(decision: Decision) -> None:
        notify(loop.state, str(root), decision)

    loop.notify = tell
    finishing = Finishing(
        root, clock, carrier.decision, epoch=loaded.epoch, revive_s=around.revive_s, warm=executor.warm
    )
    loop.rounds, loop.finish = finishing.rounds, finishing
    loop.hopeless = _hopeless(executor, watches, clock)
    loop.gates = _gates(executor, watches, clock)
    return loop


def take_umask(state: CampaignState) -> None:
    """Of whoever called `up`: what is for people is written with it, whoever revived us."""
    work_privately(recorded_umask(environment_of(state) or {}))


def stay_entered(loop: Loop, state: Path, clock: SystemClock) -> None:
    entered, guard = Entered(state, clock, ENTRY_POLLS * poll_s()), loop.guard

    def tend(now: CampaignState) -> None:
        guard(now)
        entered.tend(now.campaign.name)

    loop.guard = tend


def keep_guard(loop: Loop, state: Path, clock: SystemClock) -> GuardKeeper | None:
    """From the first turn on somebody starts us again if we end without a word."""
    if not guards_wanted() or not isinstance(loop.ports.waker, LocalWaker):
        return None
    keeper = GuardKeeper(state, clock, loop.ports.waker.attend, loop.ports.waker.ignore)

    def guard(now: CampaignState) -> None:
        if now.intent.kind == "running":
            keeper.tend()

    loop.guard = guard
    if words := take_words(state):
        loop.news.lost(words)
    return keeper


def _hopeless(executor: LocalExecutor, watches: Watches, clock: SystemClock) -> Hopeless:
    """Most campaigns prune nothing, and load nothing for it."""
    pruning: list[Hopeless] = []

    def chain(record: CellRecord, attempt: Attempt) -> Sequence[Trace]:
        from muster.wiring.histories import chain_of

        output = attempt.outcome.output if attempt.outcome else watches.output_of(attempt)
        place = output or str(executor.folder(*attempt.place) / "out")
        return chain_of(executor.state, record, attempt, place)

    def hopeless(state: CampaignState) -> Mapping[tuple[str, int], str]:
        if not (state.campaign.loop or {}).get("prune"):
            return {}
        if not pruning:
            from muster.wiring.pruning import Pruning

            pruning.append(Pruning(chain, clock))
        return pruning[0](state)

    return hopeless


def _gates(executor: LocalExecutor, watches: Watches, clock: SystemClock) -> Callable[[CampaignState], GateNews]:
    """Most campaigns have none, and load nothing for them."""
    gating: list[Callable[[CampaignState], GateNews]] = []

    def gates(state: CampaignState) -> GateNews:
        if not state.campaign.gates:
            return NO_NEWS
        if not gating:
            from muster.execute.resumed import attempts_before
            from muster.wiring.gating import Gating

            before = partial(attempts_before, executor.state)
            gating.append(Gating(executor.folder, watches.output_of, before, clock, poll_s()))
        return gating[0](state)

    return gates


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
