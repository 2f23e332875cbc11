"""decide(view, now) -> actions: pure, so that the simulator can drive it. The loop obeys."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from muster.controller.actions import Action, End, Fence, HoldAll, Nudge, Relaunch, Settle, Start, Stop, Tell
from muster.domain.attempt import Attempt, CellRecord
from muster.domain.gates import NO_NEWS, GateNews
from muster.domain.sighting import Sighting
from muster.domain.state import CampaignState
from muster.domain.verdict import SETTLED, State, Verdict
from muster.judge.attempt import LOST, outcome_of
from muster.ledger.budget import Purse
from muster.ledger.spans import held
from muster.plan.proof_reading import reading_hash
from muster.plan.slots import choose, need
from muster.plan.standing import Needs, standing
from muster.plan.trust import everything_fails, failing_slots
from muster.ports.executor import Slot

Key = tuple[str, int]
COMPLETE = "every declared cell is done or given up"
RELAUNCH_S = 10.0  # a shim that was asked for needs a moment before anyone asks again


@dataclass(frozen=True, slots=True)
class View:
    """All that a decision may rest on."""

    state: CampaignState
    needs: Needs
    agenda: Sequence[CellRecord]  # cells that are not settled, in the order they should start
    slots: Sequence[Slot]
    open: Sequence[Attempt] = ()  # every open attempt, looked at or not
    verdicts: Mapping[Key, Verdict] = field(default_factory=dict)  # of the open attempts that were looked at
    sightings: Mapping[Key, Sighting] = field(default_factory=dict)
    taken: frozenset[str] = frozenset()  # slots that somebody else holds
    launched: Mapping[Key, float] = field(default_factory=dict)  # when this controller asked for a shim
    stopping: Mapping[Key, Stop] = field(default_factory=dict)  # stop requests that are out
    recent: Sequence[Attempt] = ()  # ended ones, newest last
    purse: Purse | None = None  # None: no budget is declared
    hopeless: Mapping[Key, str] = field(default_factory=dict)  # to be stopped before their end, and why
    gates: GateNews = NO_NEWS
    lost_since: Mapping[Key, float] = field(default_factory=dict)  # when attempts without files were first not seen


def decide(view: View, now: float) -> list[Action]:
    actions: list[Action] = []
    settled: dict[str, CellRecord] = {}
    for record in _open_records(view):
        for action in _for_open(view, record, now):
            actions.append(action)
            if isinstance(action, Settle):
                settled[record.cell.id] = _with_outcome(record, action)
    projected = replace(view.state, cells=ChainMap(settled, view.state.cells))
    if view.purse and settled:
        view = replace(view, purse=view.purse.without({record.attempts[-1].key for record in settled.values()}))
    if settled and view.state.intent.kind == "running" and (why := everything_fails(_recent(view, settled))):
        return [*actions, HoldAll(why)]  # the next turn sees the hold
    actions.extend(_over_budget(view, {action.attempt.key for action in actions if isinstance(action, Settle | Stop)}))
    starts = list(_starts(view, projected, settled))
    actions.extend(starts)
    actions.extend(_money_news(view, projected))
    if view.state.intent.wants_down:
        actions.extend(_leave(view, settled))
    elif not starts and not _still_open(view, settled) and not _unread(view, settled):
        actions.extend(_end(view, projected, settled))
    return actions


def _recent(view: View, settled: Mapping[str, CellRecord]) -> list[Attempt]:
    return [*view.recent, *(record.attempts[-1] for record in settled.values())]


def _open_records(view: View) -> Iterator[CellRecord]:
    for cell, _ in view.sightings:
        record = view.state.cells[cell]
        if record.open:
            yield record


def _for_open(view: View, record: CellRecord, now: float) -> Iterator[Action]:
    attempt = record.open
    if attempt is None:
        return
    seen, verdict = view.sightings[attempt.key], view.verdicts[attempt.key]
    if verdict.final:
        # the slot was held until the tree was gone: with the main process, or as long as orphans lived
        now = view.lost_since.get(attempt.key, now)
        alone = seen.exit is not None and seen.exit.orphans == ()
        freed = seen.exit.boot if seen.exit and alone else now if seen.freed is None else seen.freed
        read_as = reading_hash(view.state.job(record.cell.job))
        outcome = outcome_of(verdict, seen)
        outcome = replace(outcome, held_s=held(attempt, seen, now, over=True), read_as=read_as, declared=record.hash)
        if verdict.cause and verdict.cause.kind == "pruned" and (asked := view.stopping.get(attempt.key)):
            outcome = replace(outcome, reason=f"pruned: {asked.reason}")
        yield Settle(attempt, outcome, freed, release=seen.tree_lives)
        return
    if seen.started == "no" and not seen.shim_locked:
        if seen.searched and now - view.launched.get(attempt.key, float("-inf")) > RELAUNCH_S:
            yield from _unstarted(view, record, attempt)
        return
    yield from _for_shim(attempt, seen)
    asked = view.stopping.get(attempt.key)
    if asked is None:
        yield from _stop(view, record, attempt, seen, verdict, now)
    elif asked.shim and _left_to_itself(seen):
        yield replace(asked, reason=f"{asked.reason}; its shim died before all of it had ended", shim=False)


def _unstarted(view: View, record: CellRecord, attempt: Attempt) -> Iterator[Action]:
    if record.stop_because is not None:
        yield Fence(attempt, record.stop_because, stop=True)
    elif view.state.intent.kind != "running":
        yield Fence(attempt, f"the campaign is {view.state.intent.kind}, and it was not started before")
    elif view.purse and view.purse.spent_up:
        yield Fence(attempt, "the budget is spent, and it was not started before")
    else:
        yield Relaunch(attempt)


def _for_shim(attempt: Attempt, seen: Sighting) -> Iterator[Action]:
    """The shim alone can name the run and write its exit down: one that was stopped must go on."""
    lingers = seen.exit is not None  # for orphans that it has to reap
    waiting = seen.identity is None or seen.main in ("gone", "zombie") or not seen.execing
    asked = seen.stop_reason is not None  # which it must carry out
    if not (lingers or waiting or asked) or not seen.shim_locked:
        return
    if seen.shim == "stopped":
        yield Nudge(attempt)


def _left_to_itself(seen: Sighting) -> bool:
    """It lives, and the shim that would have killed it after its grace is gone."""
    return seen.host == "same" and not seen.shim_locked and (seen.lives or seen.tree_lives)


def _stop(
    view: View, record: CellRecord, attempt: Attempt, seen: Sighting, verdict: Verdict, now: float
) -> Iterator[Action]:
    shim = seen.shim_locked
    if record.stop_because is not None:
        yield Stop(attempt, "user_stop", record.stop_because, shim)
        return
    job = view.state.job(record.cell.job)
    limit = job.timeout_s
    if attempt.key in view.hopeless and not _main_ended(seen):
        yield Stop(attempt, "pruned", view.hopeless[attempt.key], shim)
    elif attempt.key in view.gates.stops:
        yield Stop(attempt, *view.gates.stops[attempt.key], shim)
    elif limit is not None and seen.identity is not None and now - seen.identity.boot > limit:
        yield Stop(attempt, "timeout", f"it has run longer than its timeout of {limit:.0f} s", shim)
    elif verdict.state == State.STALLED and job.on_stall == "restart" and verdict.kind != "stopped":
        # whoever stopped a run (state T) means to let it go on
        yield Stop(attempt, "stalled", f"on_stall: restart; {verdict.reason}", shim)


def _main_ended(seen: Sighting) -> bool:
    """Its result is there, whatever lives on: nothing is saved any more by a stop, and a score would be lost."""
    return seen.exit is not None or seen.main in ("gone", "zombie")


def _over_budget(view: View, ending: Collection[Key]) -> Iterator[Stop]:
    """`at_cap: stop`: what must end so that no more is spent than was declared."""
    if view.purse is None:
        return
    keys, reason = view.purse.to_stop(view.stopping.keys() | set(ending))
    for attempt in view.open:
        seen = view.sightings.get(attempt.key)
        runs = seen is None or (seen.started in ("yes", "lost") and seen.exit is None)
        if attempt.key in keys and runs:
            yield Stop(attempt, "budget_stop", reason, seen is None or seen.shim_locked)


def _money_news(view: View, state: CampaignState) -> Iterator[Tell]:
    purse = view.purse
    if purse is None or state.intent.kind != "running":
        return
    heard = (purse.budget, "no_new_start") in state.told
    refused = set() if heard else {job.name for job in state.campaign.jobs if purse.refuses(job.name)}
    waiting = bool(refused) and any(
        planned.cell.job in refused and _could_start(state.cells[planned.cell.id], state, view.needs)
        for planned in view.agenda
    )
    for level, reason in purse.findings(refused=waiting):
        if (purse.budget, level) not in state.told:
            yield Tell(level, purse.budget, reason)


def _could_start(record: CellRecord, state: CampaignState, needs: Needs) -> bool:
    return not record.open and standing(record, state, needs).startable


def _starts(view: View, state: CampaignState, settled: Mapping[str, CellRecord]) -> Iterator[Start]:
    if state.intent.kind != "running":
        return
    purse = view.purse
    failing = failing_slots(_recent(view, settled))
    free = [slot for slot in _free_slots(view, settled) if slot.name not in failing]
    has_gpus = any(slot.kind == "gpu" for slot in view.slots)
    let = {job for gate in (state.campaign.gates or {}).values() for job in gate.get("lets", ())}
    for planned in view.agenda:
        if not free:
            return
        record = state.cells[planned.cell.id]
        if record.open:
            continue
        where = standing(record, state, view.needs, purse)
        if not where.startable or (record.cell.job in let and _half_read(view, record, state)):
            continue
        wanted = need(state.job(record.cell.job), has_gpus=has_gpus)
        chosen = choose(wanted, _names(free, "gpu"), _names(free, "cpu"))
        if chosen is None:
            continue
        free = [slot for slot in free if slot.name not in chosen]
        purse = purse.started(record.cell.job) if purse else None
        reason = where.next if where.retry_cause else "first of those that may start"
        yield Start(
            record.cell.id, len(record.attempts) + 1, chosen, where.retry_cause, reason, _rests_on(view, record, state)
        )


def _rests_on(view: View, record: CellRecord, state: CampaignState) -> dict[str, int]:
    needed = ((name, state.cells[name].completed) for name in view.needs.get(record.cell.id, ()))
    return {name: attempt.n for name, attempt in needed if attempt is not None}


def _free_slots(view: View, settled: Mapping[str, CellRecord]) -> list[Slot]:
    busy = set(view.taken)
    for attempt in view.open:
        seen = view.sightings.get(attempt.key)
        over = seen is not None and seen.exit is not None and not seen.tree_lives  # though not proven yet
        over = over or (attempt.key in view.verdicts and view.verdicts[attempt.key].kind == LOST)  # its lease tells
        if attempt.cell not in settled and not over:
            busy.update(attempt.slots)
    return [slot for slot in view.slots if slot.name not in busy]


def _names(slots: Sequence[Slot], kind: str) -> list[str]:
    return [slot.name for slot in slots if slot.kind == kind]


def _still_open(view: View, settled: Mapping[str, CellRecord]) -> bool:
    return any(attempt.cell not in settled for attempt in view.open)


def _unread(view: View, settled: Mapping[str, CellRecord]) -> bool:
    """A run has ended, and what a gate says of it is not known yet: something may start after all."""
    still = {attempt.key for attempt in view.open if attempt.cell not in settled}
    return bool(view.gates.left - still)


def _half_read(view: View, record: CellRecord, state: CampaignState) -> bool:
    """What a run that it needs wrote last was not read yet: a gate that stands open may have fallen back by it."""
    needed = (state.cells[name].completed for name in view.needs.get(record.cell.id, ()))
    return any(attempt is not None and attempt.key in view.gates.left for attempt in needed)


def _leave(view: View, settled: Mapping[str, CellRecord]) -> Iterator[End]:
    """A campaign that is down: its runs are left alone, but those that a person wants stopped are seen to their end."""
    waiting = [a for a in view.open if a.cell not in settled and view.state.cells[a.cell].stop_because is not None]
    if (
        not waiting
        and not _still_open(view, settled)
        and all(_is_settled(settled.get(r.cell.id, r)) for r in view.agenda)
    ):
        yield End(True, COMPLETE)
    elif not waiting:
        yield End(False, "the campaign is down")


def _is_settled(record: CellRecord) -> bool:
    return record.done or record.given_up is not None


def _end(view: View, state: CampaignState, settled: Mapping[str, CellRecord]) -> Iterator[End | HoldAll]:
    """Ends only if no start can come of waiting: a slot that somebody else holds comes back, a failing one does not."""
    failing = failing_slots(_recent(view, settled))
    has_gpus = any(slot.kind == "gpu" for slot in view.slots)
    every = (_names(view.slots, "gpu"), _names(view.slots, "cpu"))
    trusted = [slot for slot in view.slots if slot.name not in failing]
    sound = (_names(trusted, "gpu"), _names(trusted, "cpu"))
    left: list[tuple[CellRecord, State]] = []
    distrusted = False
    for planned in view.agenda:
        record = state.cells[planned.cell.id]
        where = standing(record, state, view.needs, view.purse)
        wanted = need(state.job(record.cell.job), has_gpus=has_gpus)
        if where.startable and state.intent.kind == "running" and choose(wanted, *every):
            if choose(wanted, *sound):
                return
            distrusted = True
        if where.state not in SETTLED:
            left.append((record, where.state))
    if distrusted:
        yield HoldAll("no slot is left to use: " + "; ".join(f"{slot}: {why}" for slot, why in failing.items()))
        return
    if not left:
        yield End(True, COMPLETE)
        return
    counts: dict[str, int] = {}
    for _, kind in left:
        counts[kind] = counts.get(kind, 0) + 1
    said = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    yield End(False, f"nothing runs and nothing may start: {said}")


def _with_outcome(record: CellRecord, settle: Settle) -> CellRecord:
    ended = replace(settle.attempt, outcome=settle.outcome)
    cause = settle.outcome.cause
    obeyed = cause is None or cause.kind == "user_stop"
    stop = None if obeyed else record.stop_because
    given_up = settle.outcome.reason if cause and cause.kind == "pruned" else record.given_up
    return replace(record, attempts=(*record.attempts[:-1], ended), stop_because=stop, given_up=given_up)
