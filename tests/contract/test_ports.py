"""What the controller relies on in its ports: the real ones and those of the made-up world keep the same promises."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest

from muster.engine.judge.signal_history import begin_history
from muster.engine.ports.clock import Clock, SystemClock
from muster.engine.ports.executor import Executor, Waker
from muster.engine.ports.probe import GroupCadence, RunSignals, WatchBookState, WatchBookStorage
from muster.engine.ports.store import CampaignLock
from muster.engine.store.controller_files import ControllerLock, WatchBookFile
from muster.files import process_identity
from muster.files.state_folder import ring_bell
from muster.hosts.local.attempt_observer import LivenessSignals
from muster.hosts.local.executor import LocalExecutor
from muster.hosts.local.vitals import VitalsReader
from muster.hosts.local.waker import LocalWaker
from muster.model.attempt import Attempt, CellRecord, Order
from muster.model.attempt_snapshot import AttemptSnapshot, ProcessIdentity
from muster.model.campaign import Axis, AxisValue, Campaign, Job, Slots
from muster.model.campaign_state import CampaignState, Intent
from muster.model.cell import list_campaign_cells
from simulator.campaign_make import make_campaign
from simulator.campaign_ports import Caller, SimClock, SimLock, SimMemory, SimWaker
from simulator.campaign_scene import Scene
from simulator.executor import SimExecutor
from simulator.probe import SimSignals
from simulator.world import Process, World

CAMPAIGN = Campaign(
    "c",
    (Axis("seed", (AxisValue("0", 0),)),),
    (Job("train", ("seed",), ("true",)),),
    slots=Slots(gpus=(), cpus=2),
)
CELL = "train/0"
KEY = (CELL, 1)
MADE_UP = ("real", "made up")


def attempt(boot_id: str = "boot") -> Attempt:
    return Attempt(CELL, 1, "token", 1, ("cpu0",), "h", "", 1.0, boot_id)


class MadeUp(Scene):
    """A made-up world in which nobody checks who claimed what: these tests launch by hand."""

    def __init__(self, folder: Path) -> None:
        world = World(7)
        made = replace(make_campaign(world.random), campaign=CAMPAIGN)
        (folder / "campaigns").mkdir(parents=True)
        super().__init__(world, replace(made, habits={"train": made.habits["train"]}), folder)
        self.take_in()

    def executed(self, *_: object) -> None:
        self.count("executions")


# -- executors


class Bench(Protocol):
    """Two executors of one machine, as two campaigns have them, and what can be seen of their shims."""

    one: Executor
    two: Executor

    def order(self, note: str) -> Order: ...

    def settle(self, slots: Iterable[str]) -> None:
        """Waits until nobody holds these slots."""

    def executions(self) -> int: ...

    def close(self) -> None: ...


class RealBench:
    def __init__(self, folder: Path) -> None:
        self.folder = folder / ".muster"
        self.folder.mkdir()
        self.one, self.two = (LocalExecutor(self.folder, CAMPAIGN.slots) for _ in range(2))
        self.ran = folder / "ran"

    def order(self, note: str) -> Order:
        folder = self.one.folder(*KEY)
        words = ("/bin/sh", "-c", f"echo ran >> '{self.ran}'")
        return Order(
            cell=CELL, n=1, token="token", epoch=1, argv=words, cwd=str(self.ran.parent), env={"NOTE": note},
            env_file="", slots=("cpu0",), out=str(folder / "out"), output="", hash="", claimed_at="", claimed_boot=0.0,
            boot_id="", retry_cause=None, resumed_from=None, state=str(self.folder), bell=str(self.folder / "bell"),
            ballast=str(self.folder / "ballast"), revive=(), revive_s=60.0, axes={}, code={},
        )  # fmt: skip

    def settle(self, slots: Iterable[str]) -> None:
        deadline = time.monotonic() + 30
        while (lease := self.two.lease(tuple(slots))) is None:
            assert time.monotonic() < deadline, "a slot does not come back"
            time.sleep(0.01)
        self.two.give_back(lease)

    def executions(self) -> int:
        return self.ran.read_text().count("ran") if self.ran.exists() else 0

    def close(self) -> None:
        self.one.close()
        self.two.close()


class SimBench:
    def __init__(self, folder: Path) -> None:
        self.scene = MadeUp(folder)
        life = self.scene.world.life
        self.one, self.two = (SimExecutor(self.scene, Caller(life), CAMPAIGN.slots) for _ in range(2))
        self._real = RealBench(folder)

    def order(self, note: str) -> Order:
        return self._real.order(note)

    def settle(self, slots: Iterable[str]) -> None:
        self.scene.world.spend(1e6)
        assert not any(self.scene.world.leased(name) for name in slots)

    def executions(self) -> int:
        return self.scene.counts["executions"]

    def close(self) -> None:
        self._real.close()


@pytest.fixture(params=MADE_UP)
def bench(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "home"))
    made: Bench = RealBench(tmp_path) if request.param == "real" else SimBench(tmp_path)
    yield made
    made.close()


def test_a_slot_is_leased_to_one_at_a_time_and_several_come_together_or_not_at_all(bench: Bench) -> None:
    assert [slot.name for slot in bench.one.slots()] == ["cpu0", "cpu1"]
    mine = bench.one.lease(["cpu0"])
    assert mine
    assert bench.two.lease(["cpu0"]) is None
    assert bench.two.lease(["cpu1", "cpu0"]) is None
    half = bench.one.lease(["cpu1"])
    assert half, "what could be had of the two was not kept"
    bench.one.give_back(mine)
    bench.one.give_back(half)
    both = bench.two.lease(["cpu0", "cpu1"])
    assert both
    bench.two.give_back(both)


def test_a_campaign_that_was_moved_away_is_not_made_anew_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "home"))
    campaign = tmp_path / "campaign"
    campaign.mkdir()
    bench = RealBench(campaign)
    lease = bench.one.lease(["cpu0"])
    assert lease
    order = bench.order("moved")
    campaign.rename(tmp_path / "moved")
    for act in (
        lambda: bench.one.launch(order, lease),
        lambda: bench.one.revoke(attempt(), "it was moved"),
        lambda: bench.one.stop(attempt(), epoch=1, reason="user_stop", grace_s=1),
        lambda: bench.one.release(attempt()),
    ):
        with pytest.raises(FileNotFoundError):
            act()
    assert not campaign.exists()
    bench.close()


def test_whoever_revokes_first_wins_and_nobody_ever_executes_it(bench: Bench) -> None:
    assert bench.one.revoke(attempt(), "its slot is gone")
    assert not bench.two.revoke(attempt(), "mine")
    lease = bench.one.lease(["cpu0"])
    assert lease
    bench.one.launch(bench.order("late"), lease)
    bench.settle(["cpu0"])
    assert bench.executions() == 0


def test_an_attempt_is_executed_once_however_often_it_is_launched_and_by_its_first_order(bench: Bench) -> None:
    assert bench.one.order(attempt()) is None
    for executor, slot, note in ((bench.one, "cpu0", "first"), (bench.two, "cpu1", "second")):
        lease = executor.lease([slot])
        assert lease
        executor.launch(bench.order(note), lease)
        kept = executor.order(attempt())
        assert kept
        assert kept.env["NOTE"] == "first"
    bench.settle(["cpu0", "cpu1"])
    assert bench.executions() == 1
    assert not bench.one.revoke(attempt(), "too late")


def test_requests_to_a_shim_that_is_not_there_are_harmless(bench: Bench) -> None:
    bench.one.nudge(attempt())
    bench.one.stop(attempt(), epoch=1, reason="user_stop", grace_s=0.1)
    bench.one.release(attempt())
    bench.one.restart()
    assert bench.one.revoke(attempt(), "stopped before it was started")


# -- wakers


class Alarm(Protocol):
    waker: Waker

    def ring(self, message: str) -> None: ...

    def start(self) -> tuple[int, Callable[[], None]]:
        """A process: its pid, and how to end it."""


class RealAlarm:
    def __init__(self, folder: Path) -> None:
        self.bell = folder / "bell"
        self.waker: Waker = LocalWaker(self.bell)

    def ring(self, message: str) -> None:
        assert ring_bell(self.bell, message)

    def start(self) -> tuple[int, Callable[[], None]]:
        made = subprocess.Popen(["sleep", "60"])

        def end() -> None:
            made.kill()
            made.wait()

        return made.pid, end


class SimAlarm:
    def __init__(self) -> None:
        self.world = World(1)
        self.sim = SimWaker(self.world, Caller(self.world.life))
        self.waker: Waker = self.sim

    def ring(self, message: str) -> None:
        self.sim.ring(message)

    def start(self) -> tuple[int, Callable[[], None]]:
        made: Process = self.world.spawn("run")
        return made.pid, made.end


@pytest.fixture(params=MADE_UP)
def alarm(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Alarm]:
    made: Alarm = RealAlarm(tmp_path) if request.param == "real" else SimAlarm()
    yield made
    made.waker.close()


def test_a_ring_carries_attempts_or_the_log(alarm: Alarm) -> None:
    alarm.ring(f"{CELL}\t1")
    assert alarm.waker.wait(5).attempts == {KEY}
    alarm.ring("log")
    wake = alarm.waker.wait(5)
    assert (wake.attempts, wake.log) == (frozenset(), True)
    quiet = alarm.waker.wait(0)
    assert (quiet.attempts, quiet.log) == (frozenset(), False)


def test_watched_twice_wakes_once(alarm: Alarm) -> None:
    pid, end = alarm.start()
    alarm.waker.watch(KEY, [pid])
    alarm.waker.watch(KEY, [pid])
    assert not alarm.waker.wait(0).attempts
    end()
    assert alarm.waker.wait(5).attempts == {KEY}
    alarm.waker.watch(KEY, [pid])
    assert not alarm.waker.wait(0).attempts, "nobody wakes again for what has ended: no busy loop"


def test_who_ended_before_it_was_watched_wakes_at_once_and_who_is_forgotten_never(alarm: Alarm) -> None:
    gone, end = alarm.start()
    end()
    alarm.waker.watch(KEY, [gone])
    assert alarm.waker.wait(5).attempts == {KEY}
    pid, end = alarm.start()
    other = (CELL, 2)
    alarm.waker.watch(other, [pid])
    alarm.waker.forget(other)
    alarm.waker.forget(("never", 9))
    end()
    assert not alarm.waker.wait(0.01).attempts


# -- clocks, locks, memories, signals


@pytest.fixture(params=MADE_UP)
def clock(request: pytest.FixtureRequest) -> Clock:
    return SystemClock() if request.param == "real" else SimClock(World(1))


def test_boot_time_never_goes_back(clock: Clock) -> None:
    seen = []
    for _ in range(100):
        seen.append(clock.boot())
        if isinstance(clock, SimClock):
            clock.world.spend(0.001)
            clock.world.jump(-3600)
            clock.world.suspend(0.5)
    assert seen == sorted(seen)
    assert clock.wall() > 1e9


class Beaten(Protocol):
    lock: CampaignLock

    def last(self) -> tuple[int, str]:
        """Epoch and trouble of the last sign of life."""


class RealBeaten:
    def __init__(self, folder: Path) -> None:
        self.held = ControllerLock(folder, SystemClock())
        assert self.held.take()
        self.lock: CampaignLock = self.held

    def last(self) -> tuple[int, str]:
        holder = self.held.holder()
        assert holder
        return holder.epoch, holder.trouble


class SimBeaten:
    def __init__(self) -> None:
        world = World(1)
        self.held = SimLock(world, Caller(world.life))
        self.lock: CampaignLock = self.held

    def last(self) -> tuple[int, str]:
        return self.held.beats[-1][1:]


@pytest.mark.parametrize("kind", MADE_UP)
def test_the_last_beat_is_what_others_see(kind: str, tmp_path: Path) -> None:
    made: Beaten = RealBeaten(tmp_path) if kind == "real" else SimBeaten()
    for epoch, trouble in ((3, "the disk is full"), (3, ""), (4, "")):
        made.lock.beat(epoch, trouble)
        assert made.last() == (epoch, trouble)


def memories(kind: str, folder: Path) -> Callable[[str], WatchBookStorage]:
    """The memory of one campaign, as controllers of different boots open it."""
    file: list[bytes] = []
    world = World(1)

    def opened(boot_id: str) -> WatchBookStorage:
        if kind == "real":
            return WatchBookFile(folder, boot_id)
        return SimMemory(file, Caller(replace(world.life, boot_id=boot_id)))

    return opened


@pytest.mark.parametrize("kind", MADE_UP)
def test_a_memory_loads_what_was_saved_and_nothing_dated_by_another_boot(kind: str, tmp_path: Path) -> None:
    opened = memories(kind, tmp_path)
    assert opened("a").load() == WatchBookState("a")
    told = {f"{CELL}@1": ("STALLED", "waiting", "proven")}
    saved = WatchBookState(
        "a", {f"{CELL}@1": begin_history(5.0, 6.0)}, {"train@x": GroupCadence({"metrics.jsonl": 9.0}, 30.0)}, told
    )
    opened("a").save(saved)
    assert opened("a").load() == saved
    other = opened("b").load()
    assert (other.boot_id, other.histories, other.siblings) == ("b", {}, saved.siblings)


def watched(kind: str, folder: Path) -> tuple[RunSignals, Clock, AttemptSnapshot]:
    """Signals, and a sighting of a process that lives: this one, or a made-up one."""
    if kind == "real":
        clock = SystemClock()
        watching = LivenessSignals(lambda cell, n: folder / cell / str(n), clock, VitalsReader())
        cells = {cell.id: cell for cell in list_campaign_cells(CAMPAIGN)}
        records = {name: CellRecord(cell, 0) for name, cell in cells.items()}
        watching.configure(CampaignState(CAMPAIGN, "h", "", Intent(), 1, (), records))
        me = process_identity.read_process(os.getpid())
        assert me
        identity = ProcessIdentity("boot", 1, 2, me.pid, me.ticks, me.pid, me.ticks, clock.boot(), clock.wall())
        return watching, clock, AttemptSnapshot(clock.boot(), "yes", True, identity, main="alive")
    scene = MadeUp(folder)
    life = scene.world.life
    identity = ProcessIdentity("boot", 1, 2, 10, 3, 9, 3, scene.world.boot, scene.world.wall)
    sighting = AttemptSnapshot(scene.world.boot, "yes", True, identity, main="alive")
    return SimSignals(scene, Caller(life)), SimClock(scene.world), sighting


@pytest.mark.parametrize("kind", MADE_UP)
def test_signals_answer_for_every_living_run_and_never_from_the_future(kind: str, tmp_path: Path) -> None:
    signals, clock, seen = watched(kind, tmp_path)
    assert signals.read([]) == {}
    found = signals.read([(attempt(), seen)])
    assert set(found) == {KEY}
    assert found[KEY].boot <= clock.boot()
    signals.forget(KEY)
    signals.forget(("never", 9))
    again = signals.read([(attempt(), seen)])
    assert again[KEY].boot >= found[KEY].boot
