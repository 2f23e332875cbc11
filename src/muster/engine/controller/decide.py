"""`decide(view, now)`: what the controller does next, as a list of actions with their reasons. Pure, so that the
simulator can drive it; `action_runner` carries them out.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from muster.engine.judge.attempt_verdict import LOST_KIND, make_outcome
from muster.engine.plan.cell_standing import CellNeeds, standing_of_cell
from muster.engine.plan.retry import proof_reading_hash
from muster.engine.plan.scheduling import choose_slots, find_failing_slots, slots_needed, why_everything_fails
from muster.engine.ports.executor import Slot
from muster.engine.ports.extension import StopRequest
from muster.ledger.billed_spans import held_seconds
from muster.ledger.budget_forecast import BudgetState
from muster.model.attempt import Attempt, AttemptKey, CellRecord, Outcome
from muster.model.attempt_snapshot import AttemptSnapshot
from muster.model.campaign_state import CampaignState
from muster.model.verdict import SETTLED_STATES, Verdict, VerdictState
from muster.text.phrases import join_phrases, phrase


@dataclass(frozen=True, slots=True)
class Start:
    """Lease the slots, claim the cell, have a shim started."""

    cell: str
    n: int
    slots: tuple[str, ...]
    retry_cause: str | None
    reason: str
    rests_on: Mapping[str, int] = field(default_factory=dict)  # needed cell -> its attempt that counts


@dataclass(frozen=True, slots=True)
class Settle:
    """Record how an attempt ended. `release`: a helper of it lives on and must not keep the slot."""

    attempt: Attempt
    outcome: Outcome
    freed: float  # when its slot was free again
    release: bool = False


@dataclass(frozen=True, slots=True)
class Relaunch:
    """A claimed attempt that no shim has started: start one for the same attempt, or fence it if its slot is taken."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class Fence:
    """A claimed attempt that no shim has started: none may any more. `stop`: because a person wants it stopped."""

    attempt: Attempt
    reason: str
    stop: bool = False


@dataclass(frozen=True, slots=True)
class Stop:
    attempt: Attempt
    cause: str  # user_stop | budget_stop | timeout | stalled | pruned | gate_stop
    reason: str
    shim: bool = True  # there is one to carry it out, as far as is known; else the executor does
    asked: float | None = None  # boot time at which the request was left


@dataclass(frozen=True, slots=True)
class Nudge:
    """A stopped shim must go on: it alone can write the exit down."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class HoldAll:
    """Everything fails: nothing more starts until a person has looked."""

    reason: str


@dataclass(frozen=True, slots=True)
class End:
    """Nothing is open and nothing may start: the controller's work is over."""

    complete: bool
    reason: str


@dataclass(frozen=True, slots=True)
class BudgetNotice:
    """The budget: how far it is used up. Each level is told once."""

    level: str
    budget: float
    reason: str


Action = Start | Settle | Relaunch | Fence | Stop | Nudge | HoldAll | BudgetNotice | End

RELAUNCH_AFTER_S = 10.0  # a shim that was asked for needs a moment before anyone asks again


@dataclass(frozen=True, slots=True)
class ControllerView:
    """All that a decision may rest on."""

    state: CampaignState
    needs: CellNeeds
    agenda: Sequence[CellRecord]  # cells that are not settled, in the order they should start
    slots: Sequence[Slot]
    open: Sequence[Attempt] = ()  # every open attempt, looked at or not
    verdicts: Mapping[AttemptKey, Verdict] = field(default_factory=dict)  # of the open attempts that were looked at
    sightings: Mapping[AttemptKey, AttemptSnapshot] = field(default_factory=dict)
    taken: frozenset[str] = frozenset()  # slots that somebody else holds
    launched: Mapping[AttemptKey, float] = field(default_factory=dict)  # when this controller asked for a shim
    stopping: Mapping[AttemptKey, Stop] = field(default_factory=dict)  # stop requests that are out
    recent: Sequence[Attempt] = ()  # ended ones, newest last
    purse: BudgetState | None = None  # None: no budget is declared
    stops: Mapping[AttemptKey, Sequence[StopRequest]] = field(default_factory=dict)  # of extensions, in their order
    unread: frozenset[AttemptKey] = frozenset()  # attempts of which a gate may say more
    lost_since: Mapping[AttemptKey, float] = field(
        default_factory=dict
    )  # when attempts without files were first not seen


def decide(view: ControllerView, now: float) -> list[Action]:
    actions: list[Action] = []
    settled: dict[str, CellRecord] = {}
    for record in _open_cell_records(view):
        for action in _decide_open_attempt(view, record, now):
            actions.append(action)
            if isinstance(action, Settle):
                settled[record.cell.id] = _record_with_outcome(record, action)
    projected = replace(view.state, cells=ChainMap(settled, view.state.cells))
    if view.purse and settled:
        view = replace(view, purse=view.purse.without({record.attempts[-1].key for record in settled.values()}))
    if (
        settled
        and view.state.intent.kind == "running"
        and (why := why_everything_fails(_recent_attempts(view, settled)))
    ):
        return [*actions, HoldAll(why)]  # the next turn sees the hold
    actions.extend(
        _stop_over_budget(view, {action.attempt.key for action in actions if isinstance(action, Settle | Stop)})
    )
    starts = list(_decide_starts(view, projected, settled))
    actions.extend(starts)
    actions.extend(_budget_notices(view, projected))
    if view.state.intent.wants_down:
        actions.extend(_end_when_down(view, settled))
    elif not starts and not _has_open_attempts(view, settled) and not _has_unread_gates(view, settled):
        actions.extend(_decide_end(view, projected, settled))
    return actions


def _recent_attempts(view: ControllerView, settled: Mapping[str, CellRecord]) -> list[Attempt]:
    return [*view.recent, *(record.attempts[-1] for record in settled.values())]


def _open_cell_records(view: ControllerView) -> Iterator[CellRecord]:
    for cell, _ in view.sightings:
        record = view.state.cells[cell]
        if record.open:
            yield record


def _decide_open_attempt(view: ControllerView, record: CellRecord, now: float) -> Iterator[Action]:
    attempt = record.open
    if attempt is None:
        return
    seen, verdict = view.sightings[attempt.key], view.verdicts[attempt.key]
    if verdict.final:
        # the slot was held until the tree was gone: with the main process, or as long as orphans lived
        now = view.lost_since.get(attempt.key, now)
        alone = seen.exit is not None and seen.exit.orphans == ()
        freed = seen.exit.boot if seen.exit and alone else now if seen.freed is None else seen.freed
        read_as = proof_reading_hash(view.state.job(record.cell.job))
        outcome = make_outcome(verdict, seen)
        outcome = replace(
            outcome, held_s=held_seconds(attempt, seen, now, over=True), read_as=read_as, declared=record.hash
        )
        if verdict.cause and verdict.cause.kind == "pruned" and (asked := view.stopping.get(attempt.key)):
            outcome = replace(outcome, reason=phrase("controller.pruned", reason=asked.reason))
        yield Settle(attempt, outcome, freed, release=seen.tree_lives)
        return
    if seen.started == "no" and not seen.shim_locked:
        if seen.searched and now - view.launched.get(attempt.key, float("-inf")) > RELAUNCH_AFTER_S:
            yield from _decide_unstarted(view, record, attempt)
        return
    yield from _nudge_stopped_shim(attempt, seen)
    asked = view.stopping.get(attempt.key)
    if asked is None:
        yield from _decide_stop(view, record, attempt, seen, verdict, now)
    elif _request_was_deleted(asked, seen):
        if record.stop_because is not None:
            yield Stop(attempt, "user_stop", record.stop_because, seen.shim_locked)
        else:
            yield replace(asked, shim=seen.shim_locked)
    elif asked.shim and _lives_without_shim(seen):
        yield replace(
            asked,
            reason=join_phrases("; ", (asked.reason, phrase("controller.shim_died_before_all_ended"))),
            shim=False,
        )


def _decide_unstarted(view: ControllerView, record: CellRecord, attempt: Attempt) -> Iterator[Action]:
    if record.stop_because is not None:
        yield Fence(attempt, record.stop_because, stop=True)
    elif view.state.intent.kind != "running":
        yield Fence(attempt, phrase("controller.campaign_not_started_before", kind=view.state.intent.kind))
    elif view.purse and view.purse.spent_up:
        yield Fence(attempt, phrase("controller.budget_spent_not_started_before"))
    else:
        yield Relaunch(attempt)


def _nudge_stopped_shim(attempt: Attempt, seen: AttemptSnapshot) -> Iterator[Action]:
    """The shim alone can name the run and write its exit down: one that was stopped must go on."""
    lingers = seen.exit is not None  # for orphans that it has to reap
    waiting = seen.identity is None or seen.main in ("gone", "zombie") or not seen.execing
    asked = seen.stop_reason is not None  # which it must carry out
    if not (lingers or waiting or asked) or not seen.shim_locked:
        return
    if seen.shim == "stopped":
        yield Nudge(attempt)


def _request_was_deleted(asked: Stop, seen: AttemptSnapshot) -> bool:
    """With the attempt's folder, perhaps before its shim had read it."""
    looked_since = asked.asked is not None and asked.asked < seen.boot
    return looked_since and seen.started in ("yes", "lost") and seen.stop_reason is None


def _lives_without_shim(seen: AttemptSnapshot) -> bool:
    """It lives, and the shim that would have killed it after its grace is gone."""
    return seen.host == "same" and not seen.shim_locked and (seen.lives or seen.tree_lives)


def _decide_stop(
    view: ControllerView, record: CellRecord, attempt: Attempt, seen: AttemptSnapshot, verdict: Verdict, now: float
) -> Iterator[Action]:
    shim = seen.shim_locked
    if record.stop_because is not None:
        yield Stop(attempt, "user_stop", record.stop_because, shim)
        return
    job = view.state.job(record.cell.job)
    limit = job.timeout_s
    if request := _choose_stop_request(view.stops.get(attempt.key, ()), seen):
        yield Stop(attempt, request.cause, request.why, shim)
    elif limit is not None and seen.identity is not None and now - seen.identity.boot > limit:
        yield Stop(attempt, "timeout", phrase("controller.run_longer_than_timeout_s", limit=limit), shim)
    elif verdict.state == VerdictState.STALLED and job.on_stall == "restart" and verdict.kind != "stopped":
        # whoever stopped a run (state T) means to let it go on
        yield Stop(attempt, "stalled", phrase("controller.stall_restart", reason=verdict.reason), shim)


def _choose_stop_request(requests: Sequence[StopRequest], seen: AttemptSnapshot) -> StopRequest | None:
    """The first one that still holds.

    Once the main process has ended, a result is there, whatever lives on: pruning would save nothing and lose a score.
    """
    ended = seen.exit is not None or seen.main in ("gone", "zombie")
    return next((each for each in requests if not (each.only_running and ended)), None)


def _stop_over_budget(view: ControllerView, ending: Collection[AttemptKey]) -> Iterator[Stop]:
    """`at_cap: stop`: what must end so that no more is spent than was declared."""
    if view.purse is None:
        return
    keys, reason = view.purse.to_stop(view.stopping.keys() | set(ending))
    for attempt in view.open:
        seen = view.sightings.get(attempt.key)
        runs = seen is None or (seen.started in ("yes", "lost") and seen.exit is None)
        if attempt.key in keys and runs:
            yield Stop(attempt, "budget_stop", reason, seen is None or seen.shim_locked)


def _budget_notices(view: ControllerView, state: CampaignState) -> Iterator[BudgetNotice]:
    purse = view.purse
    if purse is None or state.intent.kind != "running":
        return
    heard = (purse.budget, "no_new_start") in state.told
    refused = set() if heard else {job.name for job in state.campaign.jobs if purse.refuses(job.name)}
    waiting = bool(refused) and any(
        planned.cell.job in refused and _could_start_cell(state.cells[planned.cell.id], state, view.needs)
        for planned in view.agenda
    )
    for level, reason in purse.findings(refused=waiting):
        if (purse.budget, level) not in state.told:
            yield BudgetNotice(level, purse.budget, reason)


def _could_start_cell(record: CellRecord, state: CampaignState, needs: CellNeeds) -> bool:
    return not record.open and standing_of_cell(record, state, needs).startable


def _decide_starts(view: ControllerView, state: CampaignState, settled: Mapping[str, CellRecord]) -> Iterator[Start]:
    if state.intent.kind != "running":
        return
    purse = view.purse
    failing = find_failing_slots(_recent_attempts(view, settled))
    free = [slot for slot in _find_free_slots(view, settled) if slot.name not in failing]
    has_gpus = any(slot.kind == "gpu" for slot in view.slots)
    let = {job for gate in (state.campaign.gates or {}).values() for job in gate.lets}
    for planned in view.agenda:
        if not free:
            return
        record = state.cells[planned.cell.id]
        if record.open:
            continue
        where = standing_of_cell(record, state, view.needs, purse)
        if not where.startable or (record.cell.job in let and _needs_unread_gate(view, record, state)):
            continue
        wanted = slots_needed(state.job(record.cell.job), has_gpus=has_gpus)
        chosen = choose_slots(wanted, _slot_names(free, "gpu"), _slot_names(free, "cpu"))
        if chosen is None:
            continue
        free = [slot for slot in free if slot.name not in chosen]
        purse = purse.started(record.cell.job) if purse else None
        reason = where.next if where.retry_cause else phrase("controller.first_those_may_start")
        yield Start(
            record.cell.id,
            len(record.attempts) + 1,
            chosen,
            where.retry_cause,
            reason,
            _needed_attempts(view, record, state),
        )


def _needed_attempts(view: ControllerView, record: CellRecord, state: CampaignState) -> dict[str, int]:
    needed = ((name, state.cells[name].completed) for name in view.needs.get(record.cell.id, ()))
    return {name: attempt.n for name, attempt in needed if attempt is not None}


def _find_free_slots(view: ControllerView, settled: Mapping[str, CellRecord]) -> list[Slot]:
    busy = set(view.taken)
    for attempt in view.open:
        seen = view.sightings.get(attempt.key)
        over = seen is not None and seen.exit is not None and not seen.tree_lives  # though not proven yet
        over = over or (
            attempt.key in view.verdicts and view.verdicts[attempt.key].kind == LOST_KIND
        )  # its lease tells
        if attempt.cell not in settled and not over:
            busy.update(attempt.slots)
    return [slot for slot in view.slots if slot.name not in busy]


def _slot_names(slots: Sequence[Slot], kind: str) -> list[str]:
    return [slot.name for slot in slots if slot.kind == kind]


def _has_open_attempts(view: ControllerView, settled: Mapping[str, CellRecord]) -> bool:
    return any(attempt.cell not in settled for attempt in view.open)


def _has_unread_gates(view: ControllerView, settled: Mapping[str, CellRecord]) -> bool:
    """A run has ended, and what a gate says of it is not known yet: something may start after all."""
    still = {attempt.key for attempt in view.open if attempt.cell not in settled}
    return bool(view.unread - still)


def _needs_unread_gate(view: ControllerView, record: CellRecord, state: CampaignState) -> bool:
    """What a run that it needs wrote last was not read yet: a gate that stands open may have fallen back by it."""
    needed = (state.cells[name].completed for name in view.needs.get(record.cell.id, ()))
    return any(attempt is not None and attempt.key in view.unread for attempt in needed)


def _end_when_down(view: ControllerView, settled: Mapping[str, CellRecord]) -> Iterator[End]:
    """A campaign that is down: its runs are left alone, but those that a person wants stopped are seen to their end."""
    waiting = [a for a in view.open if a.cell not in settled and view.state.cells[a.cell].stop_because is not None]
    if (
        not waiting
        and not _has_open_attempts(view, settled)
        and all(_is_settled_record(settled.get(r.cell.id, r)) for r in view.agenda)
    ):
        yield End(True, phrase("controller.every_declared_cell_done_given_up"))
    elif not waiting:
        yield End(False, phrase("controller.campaign_down"))


def _is_settled_record(record: CellRecord) -> bool:
    return record.done or record.given_up is not None


def _decide_end(
    view: ControllerView, state: CampaignState, settled: Mapping[str, CellRecord]
) -> Iterator[End | HoldAll]:
    """Ends only if no start can come of waiting: a slot that somebody else holds comes back, a failing one does not."""
    failing = find_failing_slots(_recent_attempts(view, settled))
    has_gpus = any(slot.kind == "gpu" for slot in view.slots)
    every = (_slot_names(view.slots, "gpu"), _slot_names(view.slots, "cpu"))
    trusted = [slot for slot in view.slots if slot.name not in failing]
    sound = (_slot_names(trusted, "gpu"), _slot_names(trusted, "cpu"))
    left: list[tuple[CellRecord, VerdictState]] = []
    distrusted = False
    for planned in view.agenda:
        record = state.cells[planned.cell.id]
        where = standing_of_cell(record, state, view.needs, view.purse)
        wanted = slots_needed(state.job(record.cell.job), has_gpus=has_gpus)
        if where.startable and state.intent.kind == "running" and choose_slots(wanted, *every):
            if choose_slots(wanted, *sound):
                return
            distrusted = True
        if where.state not in SETTLED_STATES:
            left.append((record, where.state))
    if distrusted:
        yield HoldAll(
            phrase(
                "controller.no_slot_left_use",
                slots=join_phrases("; ", [join_phrases(": ", each) for each in failing.items()]),
            )
        )
        return
    if not left:
        yield End(True, phrase("controller.every_declared_cell_done_given_up"))
        return
    counts: dict[str, int] = {}
    for _, kind in left:
        counts[kind] = counts.get(kind, 0) + 1
    said = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    yield End(False, phrase("controller.nothing_runs_nothing_may_start", said=said))


def _record_with_outcome(record: CellRecord, settle: Settle) -> CellRecord:
    ended = replace(settle.attempt, outcome=settle.outcome)
    cause = settle.outcome.cause
    obeyed = cause is None or cause.kind == "user_stop"
    stop = None if obeyed else record.stop_because
    given_up = settle.outcome.reason if cause and cause.kind == "pruned" else record.given_up
    return replace(record, attempts=(*record.attempts[:-1], ended), stop_because=stop, given_up=given_up)
