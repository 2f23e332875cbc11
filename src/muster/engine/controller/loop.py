"""The thin loop: wait for something to happen, look, judge, decide, carry out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from muster.engine.controller.action_runner import LEASE_RETRY_S, ActionRunner, EventQueue
from muster.engine.controller.budget_tracker import BudgetTracker
from muster.engine.controller.decide import (
    Action,
    BudgetNotice,
    ControllerView,
    End,
    Fence,
    HoldAll,
    Nudge,
    Relaunch,
    Settle,
    Start,
    Stop,
    decide,
)
from muster.engine.controller.watch_book import WatchBook
from muster.engine.judge.attempt_verdict import LOST_KIND, judge_attempt
from muster.engine.plan.cell_standing import standing_of_cell
from muster.engine.plan.scheduling import CellQueue
from muster.engine.ports.clock import Clock
from muster.engine.ports.executor import Executor, Waker, WakeReason
from muster.engine.ports.extension import ControllerExtension, Observation, StopRequest
from muster.engine.ports.probe import Probe, RunSignals
from muster.engine.ports.store import CampaignLock, CommitResult, ControllerSuperseded, Store
from muster.model.attempt import Attempt, AttemptKey
from muster.model.attempt_snapshot import AttemptSnapshot
from muster.model.campaign_state import CampaignState, GateRecord
from muster.model.decision import Decision
from muster.model.verdict import Verdict

MOST_STEPS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class LoopTimings:
    """Every floor and period, so that tests can shrink them."""

    poll_s: float = 5.0  # all open attempts are looked at this often, whatever rings
    beat_s: float = 1.0
    confirm_s: float = 0.2  # an attempt that is ending is looked at again
    trouble_s: float = 2.0  # after a write failed


@dataclass(slots=True)
class ControllerPorts:
    store: Store
    executor: Executor
    probe: Probe
    waker: Waker
    clock: Clock
    lock: CampaignLock
    signals: RunSignals


@dataclass(slots=True)
class ControllerLoop:
    ports: ControllerPorts
    carrier: ActionRunner
    state: CampaignState
    watches: WatchBook
    policy: LoopTimings = LoopTimings()
    extensions: Sequence[ControllerExtension] = ()  # asked in this order: rounds before the finish
    agenda: CellQueue = field(init=False)
    news: EventQueue = field(init=False)
    purser: BudgetTracker = field(init=False)
    trouble: str = ""
    _due: dict[AttemptKey, float] = field(default_factory=dict)  # when an attempt must be looked at again
    _next_poll: float = 0.0
    _lost: dict[AttemptKey, float] = field(
        default_factory=dict
    )  # since when nothing is seen of an attempt without files
    _unpublished: bool = True
    _next_publish: float = 0.0
    _ended: bool = False
    _heard: bool = False  # a person decided something while this turn was carried out
    _stale: bool = False  # a turn failed: what it committed may not have been taken over

    def __post_init__(self) -> None:
        self.agenda = CellQueue(self.state)
        self.news = EventQueue(self.carrier)
        self.purser = BudgetTracker(self.ports.clock, self.carrier.boot_id, self.state)
        for attempt in self.agenda.open:
            self.watches.recall(attempt, self.ports.store.events(attempt.cell))

    def run(self) -> None:
        self._turn(WakeReason(log=True))
        while not self._ended:
            self._turn(self.ports.waker.wait(self._patience()))
        self._publish(at_once=True)

    def _publish(self, *, at_once: bool = False) -> None:
        began = self.ports.clock.boot()
        if self._unpublished and (at_once or began >= self._next_publish):
            self._unpublished = False
            for extension in self.extensions:
                extension.publish(self.state)
            cost = self.ports.clock.boot() - began  # a large matrix is told less often: a hundredth of our time at most
            self._next_publish = began + max(self.policy.poll_s, 100 * cost)

    def _turn(self, wake: WakeReason) -> None:
        try:
            self._step(wake)
            self.trouble = ""
        except ControllerSuperseded:
            self._ended = True  # a newer controller decides now
            return
        except OSError as error:
            # nothing was half done: whatever was claimed is in the log, and the next turn reads it from there
            self.trouble = str(error)
            self._stale = True
            self.carrier.make_room(error)
            self._next_poll = self.ports.clock.boot() + self.policy.trouble_s
            self._due.clear()  # that poll looks at all of them; what is due now would make us spin
        self._publish()
        for extension in self.extensions:
            extension.end_turn(self.state)
        self._beat()

    def _beat(self) -> None:
        try:
            self.ports.lock.beat(self.state.epoch, self.trouble)
        except ControllerSuperseded:
            self._ended = True  # there is no campaign any more
        except OSError as error:
            self.trouble = str(error)

    def _step(self, wake: WakeReason) -> None:
        if self._stale:
            self._reload()
            self._stale = False
        # a ring may be lost: its ringer died, or the controller did
        if wake.log or (self.ports.clock.boot() >= self._next_poll and self.ports.store.behind()):
            self._absorb(self.ports.store.commit([]))
            if self._ended:
                return
        if wake.attempts:
            self.carrier.try_again()
        polling = self.ports.clock.boot() >= self._next_poll
        looked = self.ports.clock.boot()
        sightings = self.ports.probe.look(self._to_look_at(wake))
        if polling:
            self._hear_clock()
            self.watches.poll(self.state, sightings, self.ports.signals)
            self.purser.look_ahead(self.watches.remembered.histories)
        verdicts = self._judge(sightings)
        observations = self._observe(polling=polling)
        self._record(self.news.take())
        now = self.ports.clock.boot()
        view = ControllerView(
            state=self.state,
            needs=self.agenda.needs,
            agenda=self.agenda.cells,
            slots=self.ports.executor.slots(),
            open=self.agenda.open,
            verdicts=verdicts,
            sightings=sightings,
            taken=self.carrier.taken(now),
            launched=self.carrier.launched,
            stopping=self.carrier.stopping,
            recent=self.agenda.recent,
            purse=self.purser.purse(sightings, looked),
            stops=_stops_by_attempt(observations),
            unread=frozenset().union(*(each.unread for each in observations)),
            lost_since=self._lost,
        )
        if self.purser.outdated:
            self._next_poll = 0.0  # look at all of them
        actions = decide(view, now)
        self._keep_slots(sightings, verdicts)
        self._carry_out(actions)
        self._remember(sightings, verdicts, now)

    # -- looking

    def _to_look_at(self, wake: WakeReason) -> list[Attempt]:
        now = self.ports.clock.boot()
        if now >= self._next_poll:
            self._next_poll = now + self.policy.poll_s
            self.carrier.restore_ballast()
            return list(self.agenda.open)
        due = {key for key, at in self._due.items() if at <= now}
        for key in due:
            del self._due[key]  # who is still open is looked at now, and may ask for another look then
        return [attempt for attempt in self.agenda.open if attempt.key in wake.attempts or attempt.key in due]

    def _judge(self, sightings: dict[AttemptKey, AttemptSnapshot]) -> dict[AttemptKey, Verdict]:
        verdicts = {}
        for key, seen in sightings.items():
            record = self.state.cells[key[0]]
            attempt, job = record.attempts[key[1] - 1], self.state.job(record.cell.job)
            watch = self.watches.of(attempt, seen, job)
            known = self.watches.with_memory(attempt, seen)
            verdict = judge_attempt(attempt, known, job, watch, explain=False)
            before = None if verdict.final else self.watches.changed(attempt, verdict)
            if verdict.final or before:
                verdict = judge_attempt(attempt, known, job, watch)
            if before:
                self.news.changed(attempt, before, verdict)
            if verdict.kind == LOST_KIND:
                self._lost.setdefault(key, seen.boot)
            elif not verdict.final:
                self._lost.pop(key, None)
            verdicts[key] = verdict
        return verdicts

    def _hear_clock(self) -> None:
        clock = self.ports.clock
        if step := self.state.clock.step(self.carrier.boot_id, clock.boot(), clock.wall()):
            told = self.news.clock(step)
            self._absorb(self.ports.store.commit(told))  # never put back: on a full disk the next poll finds it again
            self._notify(told)

    def _observe(self, *, polling: bool) -> list[Observation]:
        found = [extension.observe(self.state, polling=polling) for extension in self.extensions]
        if told := [decision for each in found for decision in each.decisions]:
            self._absorb(self.ports.store.commit(told))  # never put back: on a full disk the next turn finds them again
            self._notify(told)
        return found

    def _record(self, decisions: Sequence[Decision]) -> None:
        """A verdict never changes without an event that says which reading changed it."""
        if not decisions:
            return
        try:
            committed = self.ports.store.commit(decisions)
        except OSError:
            self.news.put_back(decisions)  # a full disk: it is told when there is room again
            raise
        self._absorb(committed)
        self._notify(decisions)

    def _notify(self, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            if decision.kind == "notice":
                for extension in self.extensions:
                    extension.notify(self.state, decision)

    def _remember(
        self, sightings: dict[AttemptKey, AttemptSnapshot], verdicts: dict[AttemptKey, Verdict], now: float
    ) -> None:
        """Whom to watch, and who must be looked at again before the next poll."""
        for key, seen in sightings.items():
            self._due.pop(key, None)
            if verdicts[key].final:
                self.ports.waker.forget(key)
                self.ports.signals.forget(key)
                continue
            if seen.identity and seen.host == "same":
                self.ports.waker.watch(key, (seen.identity.shim_pid, seen.identity.pid))
            if verdicts[key].kind in ("ending", "claimed"):
                self._due[key] = now + self.policy.confirm_s
            limit = self.state.job(self.state.cells[key[0]].cell.job).timeout_s
            if limit is not None and seen.identity and key not in self.carrier.stopping:
                self._due[key] = min(self._due.get(key, float("inf")), seen.identity.boot + limit + 0.01)

    def _patience(self) -> float:
        now = self.ports.clock.boot()
        times = [self.policy.beat_s, self._next_poll - now]
        times += [at - now for at in self._due.values()]
        if self.carrier.waits_for_slots:
            times.append(LEASE_RETRY_S)
        if self.purser.due is not None:
            times.append(self.purser.due - now)
        return max(0.0, min(times))

    # -- doing

    def _keep_slots(
        self, sightings: Mapping[AttemptKey, AttemptSnapshot], verdicts: Mapping[AttemptKey, Verdict]
    ) -> None:
        for key, seen in sightings.items():
            lives = not verdicts[key].final and seen.host == "same" and (seen.lives or seen.tree_lives)
            attempt = self.state.cells[key[0]].attempts[key[1] - 1]
            self.carrier.keep_slots(attempt, lives=lives)
            if seen.started == "lost" and seen.slot_held and not (lives or seen.shim_locked):
                self.carrier.drop_request(attempt)

    def _carry_out(self, actions: Sequence[Action]) -> None:
        self._heard = False
        settles = [action for action in actions if isinstance(action, Settle)]
        starts = [action for action in actions if isinstance(action, Start)]
        lacking = self.carrier.composer.lacks(self.state) if starts else ""
        if lacking:
            starts = []
        if settles or starts:
            committed, launches = self.carrier.claim(settles, starts, self.state)
            self._absorb(committed)
            self._settled(settles)
            soon = self.ports.clock.boot() + self.policy.confirm_s
            self._due.update({key: soon for key, _ in launches})  # to watch their pids
            self.carrier.launch(launches, self.state)
        trouble = OSError(lacking) if lacking else None
        for action in actions:
            try:
                self._do(action)
            except OSError as error:  # what can't be done must not keep the rest from being done
                trouble = trouble or error
        if trouble:
            raise trouble

    def _settled(self, settles: Sequence[Settle]) -> None:
        for settle in settles:
            record = self.state.cells[settle.attempt.cell]
            self.watches.learn(settle.attempt, self.state.job(record.cell.job))
            self.news.ended(settle, standing_of_cell(record, self.state, self.agenda.needs, self.purser.last).next)

    def _do(self, action: Action) -> None:
        match action:
            case Relaunch(attempt):
                self.carrier.relaunch(attempt, self.state)
                self._due[attempt.key] = self.ports.clock.boot() + self.policy.confirm_s
            case Fence():
                self.carrier.fence(action)
                self._due[action.attempt.key] = 0.0
            case Stop():
                self.carrier.stop(action, self.state.epoch)
            case Nudge(attempt):
                self.ports.executor.nudge(attempt)
            case BudgetNotice():
                self._record([*self.news.budget(action), *self.news.take()])
            case HoldAll(reason):
                self._record([*self.news.held(reason), *self.news.take()])
            case End(complete, reason):
                self.carrier.ask_all_back(self.state)
                if all(self._carry_on(extension, complete=complete) for extension in self.extensions):
                    self._end(complete, reason)
            case _:
                pass

    def _carry_on(self, extension: ControllerExtension, *, complete: bool) -> bool:
        """As far as it goes now; whether nothing is left. Its decisions are never put back: each was right then."""
        for _ in range(MOST_STEPS_AT_ONCE):
            decisions, over = extension.at_rest(self.state, complete=complete)
            if not decisions:
                return over
            self._absorb(self.ports.store.commit(decisions))
            self._notify(decisions)
        return False

    def _end(self, complete: bool, reason: str) -> None:
        if self._heard:
            return  # somebody decided something since this was decided: it may not be over
        decision = self.carrier.decision("end", reason, data={"complete": complete})
        waiting = self.news.take()
        try:
            committed = self.ports.store.commit([*waiting, decision])
        except OSError:
            self.news.put_back(waiting)
            raise
        self._notify(waiting)
        # somebody may have decided something in the same moment: then the work is not over
        self._absorb(committed)
        self._ended = self._ended or not self._heard

    def _absorb(self, committed: CommitResult) -> None:
        """Takes over what the store now says, other people's decisions included."""
        touched: set[str] = set()
        everything = False
        self._unpublished = self._unpublished or bool(committed.seen)
        self._heard = self._heard or any(event.decision.epoch is None and not event.void for event in committed.seen)
        for event in committed.seen:
            decision = event.decision
            if decision.kind in (
                "campaign",
                "round",
                "rename",
                "filter",
                "intent",
                "hold",
                "release",
                "finish",
                "shutdown",
                "clock",
            ):
                everything = True
            if decision.cell:
                touched.add(decision.cell)
            if decision.kind == "stop" and decision.cell:
                self._look_soon(decision)
            if decision.kind == "budget" and not event.void:
                self.state.told |= {(float(decision.data["budget"]), str(decision.data["level"]))}
            if decision.kind == "gate" and decision.cell and not event.void:
                self._take_gate(decision)
        if everything:
            self._reload()
        elif touched:
            records = self.ports.store.records(touched)
            self.agenda.update(records)
            self.purser.add(records)

    def _take_gate(self, d: Decision) -> None:
        record = GateRecord(d.attempt or 0, d.data["iteration"], d.data["state"], d.data["phase"], d.reason)
        self.state.gates.setdefault(str(d.cell), {})[d.data["gate"]] = record

    def _look_soon(self, decision: Decision) -> None:
        record = self.state.cells.get(decision.cell or "")
        if record and record.open:
            self._due[record.open.key] = 0.0

    def _reload(self) -> None:
        loaded = self.ports.store.load()
        if loaded is not None:
            self.state = loaded
            self.agenda = CellQueue(loaded)
            self.purser.take_over(loaded)
            for extension in self.extensions:
                extension.configure(loaded)
            self._next_poll = 0.0


def _stops_by_attempt(observations: Sequence[Observation]) -> dict[AttemptKey, list[StopRequest]]:
    """Of several for one attempt the extension that comes first comes first."""
    stops: dict[AttemptKey, list[StopRequest]] = {}
    for each in observations:
        for key, request in each.stops.items():
            stops.setdefault(key, []).append(request)
    return stops
