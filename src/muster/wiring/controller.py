"""The controller's process: takes the lock and a new epoch, builds the ports, runs the loop."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from muster.acts.status import ControllerStatus, survey
from muster.controller.carry import Carrier
from muster.controller.loop import Loop, Policy, Ports
from muster.controller.watches import Watches
from muster.domain.attempt import Attempt
from muster.domain.decision import Decision
from muster.domain.gates import NO_NEWS, GateNews
from muster.domain.state import CampaignState
from muster.execute.local import LocalExecutor
from muster.execute.orders import LocalComposer, Surroundings
from muster.observe import process
from muster.observe.probes.gpu import GpuEyes
from muster.observe.probes.kernel import KernelLog
from muster.observe.vitals import VitalsReader
from muster.observe.waker import LocalWaker
from muster.ports.clock import SystemClock, iso
from muster.ports.crash import reach
from muster.store.ballast import Ballast
from muster.store.lock import ControllerLock
from muster.store.place import refuse_copy
from muster.store.sqlite import SqliteStore
from muster.store.watches import WatchFile
from muster.wiring.desk import controller_command
from muster.wiring.finishing import Finishing
from muster.wiring.looking import CodeCache, Looking
from muster.wiring.notifying import notify
from muster.wiring.pace import floors, poll_s
from muster.wiring.tsv import write_status_tsv
from muster.wiring.watching import Watching

REVIVE_S = 30.0
Hopeless = Callable[[CampaignState], Mapping[tuple[str, int], str]]


def main(argv: list[str]) -> int:
    root = Path(argv[0])
    state = root / ".muster"
    clock = SystemClock()
    refuse_copy(state)
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
    reason = "revived by a shim" if os.environ.get("MUSTER_REVIVED_BY") else "started"
    taken = Decision("epoch", who, reason, at=iso(clock.wall()), boot=clock.boot(), epoch=epoch,
                     data={"epoch": epoch, "pid": os.getpid()})  # fmt: skip
    store.commit([taken])
    store.epoch = epoch
    lock.beat(epoch)
    reach("epoch.taken")
    loaded = store.load()
    if loaded is None:
        return 0
    loop = build(root, state, store, clock, lock, loaded, who)
    try:
        loop.run()
    finally:
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
    looking = Looking(executor.folder, clock, vitals)
    watching = Watching(executor.folder, clock, vitals, poll_s())
    watches = Watches(floors(), WatchFile(state, process.boot_id()))
    for each in (looking, watching):
        each.configure(loaded)
    waker = LocalWaker(state / "bell")
    ballast = Ballast(state / "ballast")
    ballast.lay()

    def configure(fresh: CampaignState) -> None:
        executor.configure(fresh.campaign.slots)
        looking.configure(fresh)
        watching.configure(fresh)

    around = Surroundings(
        root=root,
        state=state,
        revive=controller_command(root),
        revive_s=float(os.environ.get("MUSTER_REVIVE_S", REVIVE_S)),
        code_of=CodeCache(clock),
        checkpoint_of=looking.checkpoint_of,
    )
    carrier = Carrier(
        store, executor, clock, LocalComposer(around), who=who, epoch=loaded.epoch, boot_id=process.boot_id(),
        grace_s=float(os.environ.get("MUSTER_GRACE_S", "10")), ballast=ballast,
    )  # fmt: skip
    ports = Ports(store, executor, looking.probe, waker, clock, lock, watching)
    policy = Policy(poll_s=poll_s())
    eyes = Looking(executor.folder, clock, vitals)  # of their own: the proofs of the other pair are for the judge

    def publish(state: CampaignState) -> None:
        me = ControllerStatus(True, os.getpid())
        with contextlib.suppress(OSError):  # a table that can't be written must not stop the campaign
            eyes.configure(state)
            seen = eyes.probe.look(state.open_attempts)
            found = survey(
                state, seen, me, wall=clock.wall(), boot=clock.boot(), boot_id=process.boot_id(), watch_of=watches.of
            )
            write_status_tsv(root, found)

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


def _hopeless(executor: LocalExecutor, watches: Watches, clock: SystemClock) -> Hopeless:
    """Most campaigns prune nothing, and load nothing for it."""
    pruning: list[Hopeless] = []

    def places_of(attempt: Attempt) -> list[str]:
        """Its output, and the folder with what it prints."""
        folder = executor.folder(*attempt.key)
        output = attempt.outcome.output if attempt.outcome else watches.output_of(attempt)
        return [output or str(folder / "out"), str(folder)]

    def hopeless(state: CampaignState) -> Mapping[tuple[str, int], str]:
        if not (state.campaign.loop or {}).get("prune"):
            return {}
        if not pruning:
            from muster.wiring.pruning import Pruning

            pruning.append(Pruning(places_of, clock))
        return pruning[0](state)

    return hopeless


def _gates(executor: LocalExecutor, watches: Watches, clock: SystemClock) -> Callable[[CampaignState], GateNews]:
    """Most campaigns have none, and load nothing for them."""
    gating: list[Callable[[CampaignState], GateNews]] = []

    def gates(state: CampaignState) -> GateNews:
        if not state.campaign.gates:
            return NO_NEWS
        if not gating:
            from muster.wiring.gating import Gating, resumed_by

            gating.append(Gating(executor.folder, watches.output_of, resumed_by(executor.folder), clock, poll_s()))
        return gating[0](state)

    return gates


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
