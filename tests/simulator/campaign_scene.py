"""One campaign in the made-up world: its store, its attempts, its controllers, and what faults have prepared."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from muster.engine.ports.executor import Lease, slot_from_name
from muster.files import campaign_snapshots
from muster.files.json_codec import encode_json_bytes
from muster.hosts.local.guard import TAIL_BYTES, ends_with_end_decision
from muster.hosts.local.slot_leases import slots_of_campaign
from muster.model.calendar import format_iso_time
from muster.model.campaign import Campaign, Job
from muster.model.campaign_state import CampaignState
from muster.model.decision import Decision
from simulator.campaign_book import Book, Taken
from simulator.campaign_brain import Arm, Brain, floors
from simulator.campaign_folder import Folder, StopRequest
from simulator.campaign_guard import NUDGE_S, Attendance, SimGuard
from simulator.campaign_make import Made, hashes
from simulator.campaign_money import Bill
from simulator.campaign_ports import Caller
from simulator.campaign_power import Register
from simulator.campaign_runs import MadePlan, make_plan
from simulator.campaign_store import Shelf
from simulator.executor import Request
from simulator.invariants import Checks
from simulator.world import Hold, Key, Life, World


class Scene:
    def __init__(self, world: World, made: Made, folder: Path) -> None:
        self.world, self.made = world, made
        self.campaign: Campaign = made.campaign  # as the file has it now
        self.versions: dict[str, int] = {}
        self.shelf = Shelf(world, folder)
        self.memory: list[bytes] = []
        self.floors = floors(made.poll_s)
        self.taken: dict[str, Taken] = {}
        self.book = Book(self.taken)
        self.folders: dict[Key, Folder] = {}
        longest = max(habit.mean_s for habit in made.habits.values())
        self.bill = Bill(world, self.book, self.folders, longest)
        self.checks = Checks(world, self.book, self.folders, self.slot_names, self.bill)
        self.register = Register.drawn(world, repr(made.campaign), made.lasts_s)
        self.requests: list[Request] = []
        self.brains: list[Brain] = []
        self.born = 0
        self.coming = 0  # controllers that somebody has started and that are not there yet
        self.counts: Counter[str] = Counter()
        self.over = False
        # what faults have prepared
        self.stillborn: list[Arm] = []  # what befalls the next controllers while they begin
        self.fates: list[str] = []  # of the next shims: before which step each is killed
        self.lost_requests = 0
        self.slow_requests = 0
        self.failing_launches = 0
        self.deaf_until = 0.0
        self.bell_dead_until = 0.0
        self.unable_until = 0.0  # until then no controller can begin
        # who starts controllers again
        self.guard: SimGuard | None = None
        self.dice = random.Random(f"guard {made.lasts_s}")  # of its own: without it all is as it was
        self.guard_starts: list[float] = []
        self.attendance = Attendance(self)

    def count(self, what: str) -> None:
        self.counts[what] += 1

    # -- time

    def drive(self, until: float) -> None:
        """Lets everything happen up to a time."""
        world = self.world
        while world.now < until and not self.over:
            brain = min(self.brains, key=lambda brain: brain.wake_at, default=None)
            wake_at = brain.wake_at if brain else float("inf")
            if min(wake_at, world.next_at) > until:
                world.now = until
            elif brain is None or world.next_at <= wake_at:
                world.fire()
            else:
                world.now = max(world.now, wake_at)
                brain.turn()

    # -- controllers

    def start_controller(self, delay: float, life: Life | None = None) -> None:
        self.coming += 1
        host = life or self.world.life

        def come() -> None:
            self.coming -= 1
            self.bear(host)

        self.world.after(delay, come)

    def bear(self, life: Life, *, beside: bool = False) -> None:
        """A controller begins, unless there is one. `beside`: the lock did not keep it from beginning."""
        if (self.brains and not beside) or not self._lives_now(life):
            return
        if self.world.now < self.unable_until and not beside:
            self.world.say("a controller could not begin")
            if self.guard:
                self.guard.controller_gone(1)
            return
        self.born += 1
        brain = Brain(self, self.born, life)
        if self.stillborn:
            brain.arms.append(self.stillborn.pop())
        self.brains.append(brain)
        if self.guard:
            self.guard.controller_came()
        self.world.say(f"controller {self.born} begins")

    def _lives_now(self, life: Life) -> bool:
        return life.boot_id == self.world.life.boot_id

    def brain_gone(self, brain: Brain) -> None:
        if brain in self.brains:
            self.brains.remove(brain)
            if self.guard:
                self.guard.controller_gone(1 if brain.failed else None)

    @property
    def attended(self) -> bool:
        return bool(self.brains or self.coming)

    @property
    def at_rest(self) -> bool:
        return ends_with_end_decision(bytes(self.shelf.log.data[-TAIL_BYTES:]))

    @property
    def wants_controller(self) -> bool:
        return self.book.intent == "running" and not self.at_rest

    def revive(self, life: Life) -> None:
        """A live shim looks whether there is a controller: if not, it wants a guard."""
        if self.book.intent == "running" and not self.attended:
            self.count("revived")
            self.want_guard(life)

    def want_guard(self, life: Life) -> None:
        """Whoever asks: there is one at most, and one that is stopped goes on."""
        if not self._lives_now(life):
            return
        if self.guard is None:
            self.guard = SimGuard(self, life)
        elif self.guard.process.stopped:
            self.world.after(NUDGE_S, self.guard.steps.go_on)

    def ring(self, message: str) -> None:
        """Whoever reads the bell first hears it."""
        listening = [brain for brain in self.brains if brain.kept and not brain.stopped]
        if listening and self.world.now >= self.bell_dead_until:
            kept = self.world.random.choice(listening).kept
            assert kept is not None
            kept.waker.ring(message)

    # -- attempts

    def folder(self, key: Key) -> Folder:
        if key not in self.folders:
            self.folders[key] = Folder(key, self.world.now)
        return self.folders[key]

    def job_of(self, cell: str) -> Job:
        return self.book.jobs[self.book.cells[cell].job]

    def plan_of(self, folder: Folder) -> MadePlan:
        cell, n = folder.key
        job, slots = self.job_of(cell), folder.order.slots if folder.order else ()
        gpus = tuple(gpu for name in slots if (gpu := slot_from_name(name).gpu) is not None)
        plan = make_plan(self.world.random, job, self.made.habits[job.name], n, gpus)
        self.world.say(f"{cell}@{n} is executed on {','.join(slots)}: {told(plan)}")
        return plan

    def executed(self, folder: Folder, hold: Hold | None) -> None:
        self.count("executions")
        self.checks.executed(folder, hold)

    def run_ended(self, folder: Folder) -> None:
        folder.ended_at = self.world.now

    def launching(self, caller: Caller, folder: Folder, lease: Lease, hold: Hold | None) -> None:
        self.count("launches")
        self.checks.launching(caller, folder, lease, hold)

    def stopping(self, caller: Caller, folder: Folder, request: StopRequest) -> None:
        self.count(f"stop for {request.reason}")
        self.world.say(f"a stop is sent to {folder.key[0]}@{folder.key[1]}: {request.reason}")
        self.checks.stopping(caller, folder, request)

    def slot_names(self) -> list[str]:
        """Of the newest controller, which may not have heard of a change yet."""
        brain = max((brain for brain in self.brains if brain.kept), key=lambda brain: brain.epoch, default=None)
        wanted = brain.kept.executor.wanted if brain and brain.kept else self.campaign.slots
        return [slot.name for slot in slots_of_campaign(wanted, ())]

    # -- what faults have prepared

    def launch_fails(self) -> bool:
        self.failing_launches -= 1
        return self.failing_launches >= 0

    def spawn_delay(self) -> float | None:
        rng = self.world.random
        if self.lost_requests > 0:
            self.lost_requests -= 1
            self.count("fault: lost request")
            return None if rng.random() < 0.5 else rng.uniform(15.0, 200.0)
        if self.slow_requests > 0:
            self.slow_requests -= 1
            return rng.uniform(1.0, 30.0)
        return rng.uniform(0.002, 0.03)

    def shim_dies_at(self) -> str:
        return self.fates.pop() if self.fates else ""

    def deaf(self) -> bool:
        return self.world.now < self.deaf_until

    # -- people

    def person(
        self, kind: str, reason: str = "", cell: str | None = None, attempt: int | None = None, **data: object
    ) -> Decision:
        ref = f"{self.world.random.getrandbits(64):x}"
        return Decision(
            kind, "me", reason, cell, attempt, None, format_iso_time(self.world.wall), self.world.boot, data, ref
        )

    def decide(self, decisions: Sequence[Decision]) -> None:
        """Handed over to the controller, or folded where there is none."""
        for decision in decisions:
            what = decision.data.get("intent", "") if decision.kind == "intent" else decision.cell or ""
            self.world.say(f"a person decides: {decision.kind} {what}")
            self.count(f"person: {decision.kind}")
        try:
            if self.brains:
                self.shelf.person.append(decisions)
                if self.world.random.random() < 0.9:
                    self.ring("log")
            else:
                self._settle(decisions)
        except OSError:
            self.count("person: no room")

    def _settle(self, decisions: Sequence[Decision]) -> None:
        """In a controller's place for a moment."""
        store = self.shelf.main
        if store.behind():
            self.checks.committed(None, [], store.commit([]))
        epoch = store.epoch_now() + 1
        turn = Decision(
            "epoch",
            "me",
            "a command decides",
            at=format_iso_time(self.world.wall),
            boot=self.world.boot,
            epoch=epoch,
            data={"epoch": epoch, "pid": 0, "boot_id": self.world.life.boot_id},
        )
        made = [turn, *decisions]
        self.checks.committed(None, made, store.commit(made))

    def take_in(self, *, only: Sequence[dict[str, list[str]]] = ()) -> None:
        """`muster up`: the campaign as it is written now, under the intent `running`."""
        hashed = hashes(self.campaign, self.versions)
        name = f"taken{len(self.taken)}"
        path = self.shelf.folder / "campaigns" / f"{name}.json"
        path.write_bytes(encode_json_bytes(campaign_snapshots.StoredSnapshot("", self.campaign, hashed)))
        self.taken[name] = (self.campaign, hashed)
        money = asdict(self.campaign.money) if self.campaign.money else None
        made = [self.person("campaign", "taken in", hash=name, env_file="/env", with_up=True, money=money)]
        if only:
            made.append(self.person("filter", "left out", only=list(only), with_up=True))
        made.append(self.person("intent", "muster up", intent="running"))
        self.decide(made)

    def state(self) -> CampaignState | None:
        """As everybody may read it; whoever comes where there is no controller folds what a crash left unfolded."""
        if not self.brains and self.shelf.main.behind():
            self.checks.committed(None, [], self.shelf.main.commit([]))
        return self.shelf.main.load()

    # -- the machine

    def reboot(self) -> None:
        self._power_off()
        self.bill.booted_again()
        self.world.reboot()
        for folder in self.folders.values():
            folder.forget_unsynced()
        if self.world.random.random() < 0.5:
            self.memory.clear()

    def restart_container(self) -> None:
        self._power_off()
        self.world.restart_container()

    def _power_off(self) -> None:
        for brain in list(self.brains):
            brain.gone("ends with its machine")
        for request in self.requests:
            request.drop()
        self.requests.clear()
        for folder in self.folders.values():
            if folder.lives:
                folder.over_at = self.world.now
                folder.ended_at = folder.ended_at or self.world.now
        self.world.end_all()
        self.guard = None


def told(plan: MadePlan) -> str:
    truth = plan.truth
    ending, hangs = truth.ending, getattr(truth, "hangs_at", None)
    if plan.exec_error:
        return "it can't be executed"
    end = f"it hangs after {hangs:.0f} s" if ending is None else f"{ending.cause or 'done'} after {ending.at:.0f} s"
    return end + (f", leaves {len(plan.orphans)} behind" if plan.orphans else "")
