"""What must hold at every step of a simulated campaign, checked against the truth of the made-up world.

The record is kept apart from the store (`campaign_book`), the facts come from the world itself: nothing here believes
what the controller says of its own work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from muster.engine.plan.scheduling import choose_slots, slots_needed
from muster.engine.ports.executor import Lease
from muster.engine.ports.store import CommitResult
from muster.model.attempt_snapshot import AttemptSnapshot
from muster.model.decision import Decision
from muster.model.verdict import Verdict, VerdictState
from simulator.campaign_book import Book, Entry, Try, loud
from simulator.campaign_folder import Folder, StopRequest
from simulator.campaign_money import Bill
from simulator.campaign_ports import Caller
from simulator.probe import proof_holds
from simulator.world import Hold, Key, Life, Violation, World

SLACK_S = 5.0
CLOCK_S = 20.0
UNSTARTED_S = 150.0  # a claimed attempt is started or fenced by then
STOP_S = 120.0  # beyond its grace, a stop that a person asked for is carried out by then
TURNS, TURNS_S = 240, 2.0  # more turns than this in so short a time: the controller spins
SHOWN_ALIVE = frozenset({VerdictState.RUNNING, VerdictState.QUIET, VerdictState.STALLED})


class Mind(Protocol):
    """A controller, as those who check it see it."""

    life: Life
    epoch: int
    disturbed: float  # until when something kept it from its work
    stale: bool  # it was stopped in the middle of a turn: what it does next rests on an old view

    @property
    def poll_s(self) -> float: ...

    def leases(self) -> list[str]:
        """Slots that it has leased and neither given back nor handed over."""

    def known_cells(self) -> tuple[int, set[str]]:
        """How many cells it knows, and those that it still means to bring to an end."""


class Checks:
    def __init__(
        self,
        world: World,
        book: Book,
        folders: dict[Key, Folder],
        slots: Callable[[], list[str]],
        bill: Bill | None = None,
    ) -> None:
        self.world, self.book, self.folders, self.slots = world, book, folders, slots
        self.bill = bill or Bill(world, book, folders, 0.0)
        self.minds: dict[Caller, Mind] = {}
        self.shown: dict[
            Key, tuple[VerdictState, bool]
        ] = {}  # and whether somebody else than its main process is meant
        self._judged: dict[Key, Verdict] = {}
        self.notes: list[str] = []  # no violation, but worth counting
        self._turns: dict[Caller, deque[float]] = {}
        self._idle_since: float | None = None
        self._clock_since: float | None = None
        self.known = 0  # so many decisions are folded once more: the database was lost
        self._stops: dict[Key, float] = {}  # since when a person wants it stopped

    def _fail(self, text: str) -> None:
        raise Violation(text)

    # -- what is decided

    def deciding(self, caller: Caller, decisions: Sequence[Decision]) -> None:
        """Before it is written: the controller itself must not ask for what the store would refuse."""
        mind = self.minds.get(caller)
        if mind is None or mind.epoch < self.book.epoch or mind.stale:
            return  # somebody else decides by now: the store must refuse it
        for decision in decisions:
            entry = self.book.cells.get(decision.cell or "")
            if decision.kind == "start" and self.book.intent != "running":
                self._fail(f"{decision.cell} is to start while the campaign is {self.book.intent}")
            if decision.kind == "start" and (decision.attempt or 0) > 1 and not decision.data.get("retry_cause"):
                self._fail(f"{decision.cell} is to be retried without a cause")
            if decision.kind == "start" and entry and entry.done:
                self._fail(f"{decision.cell} is to start although it is DONE")
            if decision.kind == "settle" and entry and entry.tries[(decision.attempt or 0) - 1].verdict:
                self._fail(f"the verdict of {decision.cell}@{decision.attempt} is to be written twice")

    def committed(self, caller: Caller | None, decisions: Sequence[Decision], committed: CommitResult) -> None:
        mind = self.minds.get(caller) if caller else None
        if mind is not None and decisions and mind.epoch < self.book.epoch:
            self._fail(f"a controller of epoch {mind.epoch} goes on in epoch {self.book.epoch}")
        known, self.known = self.known, 0
        for event in committed.seen[known:]:
            if event.void is None:
                self._took_effect(event.decision)

    def _took_effect(self, decision: Decision) -> None:
        if decision.epoch is not None and decision.kind not in ("epoch", "notice", "found"):
            about = f" {decision.cell}@{decision.attempt}" if decision.cell else ""
            self.world.say(f"{decision.who}: {decision.kind}{about}: {decision.reason}")
        self.book.apply(decision)
        self._paid(decision)
        if decision.kind == "start":
            key = (decision.cell or "", decision.attempt or 0)
            self.folders.setdefault(key, Folder(key, self.world.now))
        elif decision.kind == "settle":
            self._settled(decision)
        elif decision.kind == "stop":
            entry = self.book.cells[decision.cell or ""]
            if entry.open:
                self._stops.setdefault((entry.id, entry.open.n), self.world.now)
        elif decision.kind == "end" and bool(decision.data["complete"]) != self.book.complete:
            self._fail(f"it ends with complete={decision.data['complete']}, which is not true")

    def _paid(self, decision: Decision) -> None:
        if decision.kind == "start":
            self.bill.started(decision)
        elif decision.kind == "settle":
            self.bill.ended(decision)
        elif decision.kind == "campaign":
            self.bill.taken_in()

    def _settled(self, decision: Decision) -> None:
        key = (decision.cell or "", decision.attempt or 0)
        folder, verdict = self.folders[key], decision.data["outcome"]["verdict"]
        self.shown.pop(key, None)
        self._stops.pop(key, None)
        if verdict == "DEAD" and folder.run and folder.lives_for(self.world.life):
            self._fail(f"{key[0]}@{key[1]} is called DEAD while it lives")
        cause = decision.data["outcome"].get("cause") or {}
        if cause.get("kind") == "unknown" and folder.shim_locked:
            self._fail(f"how {key[0]}@{key[1]} ended is called lost while its shim is about to tell")
        self._compare_cause(folder, cause)
        if verdict == "DONE":
            job = self.book.jobs[self.book.cells[key[0]].job]
            if folder.main_alive or folder.how[0] != 0 or (job.proof and not proof_holds(folder)):
                self._fail(f"{key[0]}@{key[1]} is called DONE, which is not true")

    def _compare_cause(self, folder: Folder, cause: Mapping[str, str]) -> None:
        """Where a run came to its own end and its shim wrote that down, the cause should be the true one."""
        ending = folder.run.plan.truth.ending if folder.run and folder.exit and not folder.exit.stop_reason else None
        if ending is None or not cause or folder.how != (ending.code, ending.signal) or not ending.cause:
            return
        right = cause["kind"] == ending.cause
        self.notes.append("cause named rightly" if right else f"cause {ending.cause} named {cause['kind']}")
        if not right and cause.get("confidence") == "proven":
            self._fail(f"{folder.key[0]}@{folder.key[1]} died of {ending.cause}; {cause['kind']} is called proven")

    # -- what is done

    def launching(self, caller: Caller, folder: Folder, lease: Lease, hold: Hold | None) -> None:
        mind, name = self.minds.get(caller), f"{folder.key[0]}@{folder.key[1]}"
        if mind is None or mind.epoch < self.book.epoch or mind.stale:
            return
        if self._try_of(folder.key) is None:
            self._fail(f"a shim is asked for {name}, which is not claimed")
        if self.book.intent != "running":
            self._fail(f"a shim is asked for {name} while the campaign is {self.book.intent}")
        if folder.started is not None and folder.started_at < folder.looked:
            self._fail(f"a shim is asked for {name} although one has started it")
        if hold is None or {slot.name for slot in lease.slots} != set(hold.slots):
            self._fail(f"a shim is asked for {name} without a lease")

    def executed(self, folder: Folder, hold: Hold | None) -> None:
        cell, n = folder.key
        name, entry, attempt = f"{cell}@{n}", self.book.cells.get(cell), self._try_of(folder.key)
        if folder.executions != 1:
            self._fail(f"{name} is executed {folder.executions} times")
        if entry is None or attempt is None:
            self._fail(f"{name} is executed although it is not claimed")
        elif attempt.verdict or entry.done:
            self._fail(f"{name} is executed although it has ended")
        elif (
            hold is None
            or set(hold.slots) != set(attempt.slots)
            or any(self.world.slots[s] is not hold for s in hold.slots)
        ):
            self._fail(f"{name} is executed without its slots")
        mine = set(attempt.slots) if attempt else set()
        for other in self.folders.values():
            if other is folder or not other.lives_for(self.world.life):
                continue
            theirs = self._try_of(other.key)
            if other.key[0] == cell:
                self._fail(f"{name} is executed while {other.key[0]}@{other.key[1]} lives")
            if other.executing and theirs and mine & set(theirs.slots):
                self._fail(f"{name} and {other.key[0]}@{other.key[1]} run on one slot")

    def _try_of(self, key: Key) -> Try | None:
        entry = self.book.cells.get(key[0])
        return entry.tries[key[1] - 1] if entry and len(entry.tries) >= key[1] else None

    def stopping(self, caller: Caller, folder: Folder, request: StopRequest) -> None:
        mind = self.minds.get(caller)
        if mind is None or mind.epoch < self.book.epoch or mind.stale:
            return
        entry = self.book.cells[folder.key[0]]
        job, name = self.book.jobs[entry.job], f"{folder.key[0]}@{folder.key[1]}"
        if request.reason == "user_stop" and not entry.stop:
            self._fail(f"{name} is stopped although nobody asked for it")
        if request.reason == "timeout":
            ran = self.world.boot - folder.identity.boot if folder.identity else 0.0
            if job.timeout_s is None or ran < job.timeout_s:
                self._fail(f"{name} is stopped for its timeout after {ran:.0f} s of {job.timeout_s}")
        if request.reason == "budget_stop" and not self.bill.may_stop(job):
            self._fail(f"{name} is stopped for the budget, which is not spent")
        if request.reason == "stalled" and job.on_stall != "restart":
            self._fail(f"{name} is stopped as stalled, but on_stall is {job.on_stall}")
        if request.reason == "stalled" and self._works(folder, mind):
            self.notes.append("presumed stalled and stopped, though it worked")

    # -- what is said

    def judged(self, caller: Caller, sightings: Mapping[Key, AttemptSnapshot], verdicts: Mapping[Key, Verdict]) -> None:
        mind = self.minds[caller]
        for key, verdict in verdicts.items():
            self.folders[key].looked = sightings[key].boot + self.world.boot0
            self._true(key, self.folders[key], verdict, sightings[key], mind)
            if mind.epoch == self.book.epoch and not mind.stale:
                self.shown[key] = (verdict.state, _of_others(verdict, sightings[key]))
                self._judged[key] = verdict

    def _true(self, key: Key, folder: Folder, verdict: Verdict, seen: AttemptSnapshot, mind: Mind) -> None:
        name, looked = f"{key[0]}@{key[1]}", seen.boot + self.world.boot0 - 0.01  # in true time
        if verdict.state == VerdictState.DEAD and folder.run and folder.lives_for(mind.life):
            self._fail(f"{name} is shown as DEAD while it lives")
        if verdict.state in SHOWN_ALIVE:
            apart = _of_others(verdict, seen)
            over = folder.over_at if apart else folder.ended_at
            held = seen.shim_locked or (seen.slot_held and folder.shim_locked)  # by a shim that nobody knows any more
            if over is not None and over < looked and not (apart and held):
                self._fail(f"{name} is shown as {verdict.state}({verdict.kind}) although it was dead at the look")
        proven = verdict.state == VerdictState.STALLED and verdict.confidence == "proven"
        if proven and self.world.now - looked < 1.0 and self._works(folder, mind):
            self._fail(f"{name} is shown as proven STALLED({verdict.kind}) while it works")
        ran = seen.boot - folder.identity.boot if folder.run and folder.identity else 0.0
        if verdict.state == VerdictState.PENDING and ran > mind.poll_s + SLACK_S:
            self._fail(f"{name} is shown as {verdict.state} while it runs")

    def _works(self, folder: Folder, mind: Mind) -> bool:
        """And did so for longer than a poll takes."""
        run = folder.run
        if run is None or not run.process.alive or run.process.stopped:
            return False
        since = min(run.t, self.world.active - run.went_on)
        return run.plan.truth.works(run.t) and since > mind.poll_s + SLACK_S

    # -- after each turn

    def turned(self, caller: Caller, *, trouble: bool, polled: bool, woken: bool) -> None:
        mind, now = self.minds[caller], self.world.now
        if not woken:
            self._spins(caller)
        judged, self._judged = self._judged, {}
        if mind.epoch < self.book.epoch or mind.stale:
            return
        if not trouble:
            for key, verdict in judged.items():
                self._recorded(key, verdict)
        if kept := mind.leases():
            self._fail(f"the controller keeps {kept} for itself")
        self.bill.look()
        deadline = mind.disturbed + mind.poll_s + SLACK_S
        for entry, attempt in self.book.open():
            self._in_time(entry, attempt, mind, now, deadline)
        if polled and not trouble:
            self._clock_told(mind)
            self._conserved(mind)
            self._idle(mind)

    def _spins(self, caller: Caller) -> None:
        times = self._turns.setdefault(caller, deque(maxlen=TURNS))
        times.append(self.world.now)
        if len(times) == TURNS and times[-1] - times[0] < TURNS_S:
            self._fail(f"the controller spins: {TURNS} turns in {times[-1] - times[0]:.2f} s")

    def _recorded(self, key: Key, verdict: Verdict) -> None:
        attempt = self._try_of(key)
        if attempt is None or attempt.verdict or verdict.final or verdict.kind in ("ending", "claimed"):
            return
        now = loud(verdict.state, verdict.kind, verdict.confidence)
        if attempt.told != now:
            self._fail(f"{key[0]}@{key[1]} became {now} without an event; the last one says {attempt.told}")

    def _in_time(self, entry: Entry, attempt: Try, mind: Mind, now: float, deadline: float) -> None:
        key, name = (entry.id, attempt.n), f"{entry.id}@{attempt.n}"
        folder = self.folders.get(key)
        if folder is None:
            return
        state, apart = self.shown.get(key, (None, False))
        over = folder.over_at if apart else folder.ended_at
        late = over is not None and now > max(over + mind.poll_s + SLACK_S, deadline)
        if late and state in SHOWN_ALIVE and not folder.shim_locked:
            self._fail(f"{name} is still shown as {state} {now - (over or 0):.0f} s after it died")
        self._settled_in_time(key, folder, mind, now, deadline)
        since = self._wanted_stopped(key, folder)
        reached = _within_reach(folder, mind)
        if since is not None and folder.lives and reached and now > max(since, deadline, folder.unread_until) + STOP_S:
            self._fail(f"{name} lives {now - since:.0f} s after it should have been stopped")

    def _wanted_stopped(self, key: Key, folder: Folder) -> float | None:
        """Since when: a person said so, its timeout has passed, or the budget is spent."""
        limit = self.book.jobs[self.book.cells[key[0]].job].timeout_s
        if self.bill.must_stop_since is not None and folder.run is not None:
            return min(self.bill.must_stop_since, self._stops.get(key, float("inf")))
        if key in self._stops or limit is None or folder.identity is None or folder.run is None:
            return self._stops.get(key)
        over = folder.identity.boot + limit + self.world.boot0
        return over if over < self.world.now else None

    def _settled_in_time(self, key: Key, folder: Folder, mind: Mind, now: float, deadline: float) -> None:
        proof_s = folder.run.plan.proof_s if folder.run else 0.0
        if folder.gone and folder.exit is None:
            return  # a person must say that it is over
        if folder.over_at is not None and not folder.shim_locked:
            known = max(folder.over_at, folder.unread_until, self.world.disk.full_until)
            known = max(known, (folder.proof_asked or 0.0)) + proof_s + mind.poll_s + SLACK_S
            if now > max(known, deadline):
                self._fail(f"{key[0]}@{key[1]} has been over for {now - folder.over_at:.0f} s and nobody settles it")
        elif folder.started is None and not folder.shim_locked and now > max(folder.claimed, deadline) + UNSTARTED_S:
            self._fail(f"{key[0]}@{key[1]} was claimed {now - folder.claimed:.0f} s ago and nobody starts it")

    def _clock_told(self, mind: Mind) -> None:
        """Somebody set the clock in this boot, and everybody hears of it by the next poll."""
        offset = self.world.wall - self.world.boot
        boot_id, known = self.book.clock
        if not boot_id == self.world.life.boot_id == mind.life.boot_id or abs(offset - known) <= CLOCK_S:
            self._clock_since = None
            return
        if self._clock_since is None:
            self._clock_since = self.world.now
        if self.world.now > max(self._clock_since, mind.disturbed) + mind.poll_s + SLACK_S:
            self._fail(f"the clock was set by {offset - known:.0f} s, and nobody says so")

    def _conserved(self, mind: Mind) -> None:
        count, meant = mind.known_cells()
        if count != len(self.book.cells):
            self._fail(f"the controller knows {count} of {len(self.book.cells)} cells")
        wanted = {entry.id for entry in self.book.declared if not entry.settled}
        if meant != wanted:
            self._fail(f"the controller has lost sight of {sorted(wanted ^ meant)}")

    def _idle(self, mind: Mind) -> None:
        """Something may start, there are slots for it, and nothing happens."""
        if self.book.intent != "running" or self.bill.may_refuse() or not self._could_start():
            self._idle_since = None
            return
        if self._idle_since is None:
            self._idle_since = self.world.now
        if self.world.now > max(self._idle_since, mind.disturbed) + 2 * mind.poll_s + SLACK_S:
            self._fail(f"slots are idle for {self.world.now - self._idle_since:.0f} s although a cell may start")

    def _could_start(self) -> bool:
        slots = self.slots()
        if all(self.world.leased(slot) for slot in slots):
            return False
        busy = {slot for _, attempt in self.book.open() for slot in attempt.slots}
        free = [s for s in slots if s not in busy and not self.world.leased(s) and not self._suspect(s)]
        gpus, cpus = [s for s in free if s[0] == "g"], [s for s in free if s[0] == "c"]
        has_gpus = any(slot[0] == "g" for slot in slots)
        jobs = {entry.job for entry in self.book.startable()}
        return any(choose_slots(slots_needed(self.book.jobs[job], has_gpus=has_gpus), gpus, cpus) for job in jobs)

    def _suspect(self, slot: str) -> bool:
        """Whether a controller may leave it alone for what died there."""
        ended = [a for e in self.book.cells.values() for a in e.tries if a.verdict]
        gpu = slot.partition(".")[0]
        if any(a.kind == "gpu_lost" and gpu in (s.partition(".")[0] for s in a.slots) for a in ended):
            return True
        return sum(not a.done for a in ended if slot in a.slots) >= 3

    # -- the end

    def ended(self, caller: Caller) -> None:
        """By itself, not killed and not superseded."""
        mind = self.minds[caller]
        end = self.book.end
        if mind.epoch < self.book.epoch:
            return
        if end is None or end.epoch != mind.epoch:
            self._fail("the controller ended without saying so")
        elif not end.data["complete"] and not end.reason:
            self._fail("the controller ended and does not say why")
        elif (
            self.book.intent == "running"
            and not end.data["complete"]
            and not self.bill.may_refuse()
            and self._open_work()
        ):
            self._fail(f"the controller ended although {self._open_work()[0]} may start: {end.reason}")

    def _open_work(self) -> list[str]:
        slots = self.slots()
        gpus, cpus = [s for s in slots if s[0] == "g"], [s for s in slots if s[0] == "c"]
        can = {
            job: choose_slots(slots_needed(self.book.jobs[job], has_gpus=bool(gpus)), gpus, cpus)
            for job in self.book.jobs
        }
        return [entry.id for entry in self.book.startable() if can[entry.job]] + [e.id for e, _ in self.book.open()]


def _of_others(verdict: Verdict, seen: AttemptSnapshot) -> bool:
    """Whether it says that somebody of the run lives or holds its locks, not that its main process does."""
    return verdict.kind == "orphans" or seen.host != "same"


def _within_reach(folder: Folder, mind: Mind) -> bool:
    """In another container only a shim that looks round now and then can carry a stop out."""
    shim = folder.shim
    obeys = shim is not None and shim.process.alive and not shim.process.stopped
    return obeys or (folder.main is not None and folder.main.life == mind.life)
