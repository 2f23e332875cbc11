"""Controllers that each break one rule. The simulator must catch every one of them, or it proves nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from muster.app.finish import power_off_rules
from muster.engine.controller import action_runner, budget_tracker, decide, loop, watch_book
from muster.engine.controller import decide as actions
from muster.engine.judge import attempt_verdict
from muster.engine.plan import cell_standing, scheduling
from muster.engine.ports.executor import Lease, WakeReason, slot_from_name
from muster.engine.store import sqlite_store
from muster.hosts.local import guard
from muster.ledger import running_cost
from muster.ledger.billed_spans import held_seconds
from muster.ledger.budget_forecast import BudgetState
from muster.model import calendar
from muster.model.attempt import Attempt, CellRecord
from muster.model.attempt_snapshot import AttemptSnapshot, ProofReading
from muster.model.campaign_state import CampaignState, Intent
from muster.model.verdict import Cause, Verdict, VerdictState
from simulator import campaign_brain
from simulator.campaign_folder import Folder
from simulator.executor import SimExecutor
from simulator.probe import SimProbe

Broken = Callable[[], AbstractContextManager[None]]


@contextlib.contextmanager
def _instead(owner: Any, name: str, value: Any) -> Iterator[None]:
    """The owner's function is another one for a while."""
    before = owner.__dict__[name] if isinstance(owner, type) else getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


# -- claims and starts


def claims_without_lease() -> AbstractContextManager[None]:
    """It trusts its own book-keeping about which slots are free."""

    def lease(_: action_runner.ActionRunner, slots: Sequence[str]) -> Lease:
        return Lease(tuple(slot_from_name(name) for name in slots))

    return _instead(action_runner.ActionRunner, "_lease", lease)


def starts_before_the_commit() -> AbstractContextManager[None]:
    """The shim is asked for first, and written down second."""
    real = action_runner.ActionRunner._leases

    def leases(self: action_runner.ActionRunner, starts: Sequence[actions.Start], state: CampaignState) -> Any:
        taken = real(self, starts, state)
        for (cell, n), (start, lease) in taken.items():
            made = Attempt(cell, n, "early", self.epoch, start.slots, "", "", self.clock.boot(), self.boot_id)
            self.executor.launch(self.composer.compose(made, state, lease), lease)
        return {}

    return _instead(action_runner.ActionRunner, "_leases", leases)


def ignores_hold() -> AbstractContextManager[None]:
    real = decide.decide

    def heedless(view: decide.ControllerView, now: float) -> list[actions.Action]:
        return real(replace(view, state=replace(view.state, intent=Intent())), now)

    return _instead(loop, "decide", heedless)


def retries_every_death() -> AbstractContextManager[None]:
    """Whatever it died of, and without saying so."""
    real = cell_standing.standing_of_cell

    def eager(
        record: CellRecord, state: CampaignState, needs: cell_standing.CellNeeds, purse: BudgetState | None = None
    ) -> cell_standing.CellStanding:
        where = real(record, state, needs, purse)
        return replace(where, startable=True) if where.state == VerdictState.DEAD else where

    return _instead(decide, "standing_of_cell", eager)


def starts_again_without_a_cause() -> AbstractContextManager[None]:
    """What is retried by itself is retried under a cause that nobody recorded."""
    real = action_runner.ActionRunner._started

    def started(self: action_runner.ActionRunner, start: actions.Start, state: CampaignState) -> Any:
        return real(self, replace(start, retry_cause="again" if start.n > 1 else None), state)

    return _instead(action_runner.ActionRunner, "_started", started)


def relaunches_what_has_started() -> AbstractContextManager[None]:
    real = decide._decide_open_attempt

    def twice(view: decide.ControllerView, record: CellRecord, now: float) -> Iterator[actions.Action]:
        found = list(real(view, record, now))
        if not found and record.open and view.verdicts[record.open.key].state == VerdictState.RUNNING:
            found = [actions.Relaunch(record.open)]
        yield from found

    return _instead(decide, "_decide_open_attempt", twice)


def starts_what_needs_others() -> AbstractContextManager[None]:
    return _instead(cell_standing, "unmet_needs", lambda *_: [])


def forgets_new_cells() -> AbstractContextManager[None]:
    """After the campaign has changed it goes on with the cells it knew."""
    real = scheduling.CellQueue._order
    known: dict[int, set[str]] = {}

    def order(self: scheduling.CellQueue) -> None:
        real(self)
        first = known.setdefault(self.state.epoch, set(self._cells))
        for cell in set(self._cells) - first:
            del self._cells[cell]

    return _instead(scheduling.CellQueue, "_order", order)


# -- ends


def counts_orphans_as_gone() -> AbstractContextManager[None]:
    return _instead(AttemptSnapshot, "tree_lives", property(lambda _: False))


def takes_unreadable_for_dead() -> AbstractContextManager[None]:
    real = attempt_verdict.judge_attempt

    def hasty(attempt: Attempt, seen: AttemptSnapshot, *rest: Any, **more: Any) -> Verdict:
        if seen.started == "unread":
            return attempt_verdict._make_dead_verdict(
                Cause("unknown", confidence="unknown", note="it can't be read"), ()
            )
        return real(attempt, seen, *rest, **more)

    return _instead(loop, "judge_attempt", hasty)


def never_settles_a_lost_exit() -> AbstractContextManager[None]:
    def lost(_: AttemptSnapshot, __: bool, evidence: Any) -> Verdict:
        return Verdict(VerdictState.UNKNOWN, "how it ended is not known", confidence="unknown", evidence=evidence)

    return _instead(attempt_verdict, "_judge_unobserved_end", lost)


def does_not_wait_for_the_shim() -> AbstractContextManager[None]:
    """Its main process is gone and nothing is written down yet: the exit is called lost."""
    real = attempt_verdict._judge_gone

    def hasty(seen: AttemptSnapshot, declared: bool, evidence: Any) -> Verdict:
        patient = replace(seen, shim_locked=False, proof=seen.proof or ProofReading(None))
        return real(patient, declared, evidence)

    return _instead(attempt_verdict, "_judge_gone", hasty)


def takes_every_exit_for_success() -> AbstractContextManager[None]:
    real = attempt_verdict.judge_attempt

    def trusting(attempt: Attempt, seen: AttemptSnapshot, *rest: Any, **more: Any) -> Verdict:
        if seen.exit is not None and not seen.tree_lives:
            return Verdict(VerdictState.DONE, "it has ended", final=True)
        return real(attempt, seen, *rest, **more)

    return _instead(loop, "judge_attempt", trusting)


def leaves_too_early() -> AbstractContextManager[None]:
    """It ends as soon as nothing runs, although something may start."""
    real = decide._decide_end

    def end(*view: Any) -> Iterator[actions.Action]:
        yield from list(real(*view)) or [actions.End(False, "nothing runs")]

    return _instead(decide, "_decide_end", end)


def shows_the_gone_as_running() -> AbstractContextManager[None]:
    """Without an exit.json it believes that the run goes on."""
    real = attempt_verdict.judge_attempt

    def faithful(attempt: Attempt, seen: AttemptSnapshot, *rest: Any, **more: Any) -> Verdict:
        if seen.started == "yes" and seen.exit is None and seen.main in ("gone", "zombie"):
            return Verdict(VerdictState.RUNNING, "nothing says that it has ended")
        return real(attempt, seen, *rest, **more)

    return _instead(loop, "judge_attempt", faithful)


# -- stops, words, company


def kills_what_it_should_report() -> AbstractContextManager[None]:
    """A stalled run is stopped although the campaign says `notify`."""
    real = decide._decide_stop

    def strict(
        view: decide.ControllerView, record: CellRecord, attempt: Attempt, *rest: Any
    ) -> Iterator[actions.Action]:
        found = list(real(view, record, attempt, *rest))
        if not found and view.verdicts[attempt.key].state == VerdictState.STALLED:
            found = [actions.Stop(attempt, "stalled", "it stalls")]
        yield from found

    return _instead(decide, "_decide_stop", strict)


def ignores_a_persons_stop() -> AbstractContextManager[None]:
    real = decide._decide_stop

    def deaf(view: decide.ControllerView, record: CellRecord, *rest: Any) -> Iterator[actions.Action]:
        yield from real(view, replace(record, stop_because=None), *rest)

    return _instead(decide, "_decide_stop", deaf)


def leaves_a_stop_to_a_dead_shim() -> AbstractContextManager[None]:
    """A stop is asked for once, whatever becomes of the shim that had it."""
    return _instead(decide, "_lives_without_shim", lambda _: False)


def says_nothing() -> AbstractContextManager[None]:
    """Verdicts change without an event."""
    return _instead(action_runner.EventQueue, "changed", lambda *_: None)


def looks_only_when_woken() -> AbstractContextManager[None]:
    """No poll: what rings nobody's bell is never seen."""
    real = loop.ControllerLoop._to_look_at

    def due(self: loop.ControllerLoop, wake: WakeReason) -> list[Attempt]:
        self._next_poll = self.ports.clock.boot() + self.policy.poll_s
        return real(self, wake)

    return _instead(loop.ControllerLoop, "_to_look_at", due)


def ignores_a_newer_epoch() -> AbstractContextManager[None]:
    return _instead(sqlite_store.SqliteStore, "_guard", lambda _: None)


def keeps_what_it_leased() -> AbstractContextManager[None]:
    """A lease that served nothing is not given back."""
    return _instead(action_runner.ActionRunner, "_give_back", lambda *_: None)


def spins() -> AbstractContextManager[None]:
    return _instead(loop.ControllerLoop, "_patience", lambda _: 0.0)


def convicts_at_once() -> AbstractContextManager[None]:
    """A run that is silent for one poll is called stalled, and proven so."""
    real = watch_book.WatchBook.of

    def of(self: watch_book.WatchBook, *rest: Any) -> Any:
        watch = real(self, *rest)
        if watch is not None and watch.history.pulses and watch.history.profile:
            watch.history.stopped_polls = 9
        return watch

    return _instead(watch_book.WatchBook, "of", of)


# -- the guard


def forgets_its_guard() -> AbstractContextManager[None]:
    return _instead(campaign_brain.BrainExtension, "end_turn", lambda *_: None)


def guard_leaves_with_its_controller() -> AbstractContextManager[None]:
    real = guard.next_guard_step
    return _instead(guard, "next_guard_step", lambda **seen: "leave" if real(**seen) == "start" else real(**seen))


def guard_starts_nobody() -> AbstractContextManager[None]:
    real = guard.next_guard_step
    return _instead(guard, "next_guard_step", lambda **seen: "wait" if real(**seen) == "start" else real(**seen))


def guard_does_not_know_when_all_is_over() -> AbstractContextManager[None]:
    real = guard.next_guard_step
    return _instead(guard, "next_guard_step", lambda **seen: real(**{**seen, "at_rest": False}))


def guard_knows_no_pause() -> AbstractContextManager[None]:
    return _instead(guard.ControllerLosses, "pause_s", property(lambda _: 0.0))


# -- money


def ignores_the_budget() -> AbstractContextManager[None]:
    """It starts whatever has a slot, and stops nothing."""
    return _instead(budget_tracker.BudgetTracker, "purse", lambda *_: None)


def lets_runs_go_on_at_the_cap() -> AbstractContextManager[None]:
    return _instead(BudgetState, "to_stop", lambda *_: ([], ""))


def stops_long_before_the_cap() -> AbstractContextManager[None]:
    def eager(self: BudgetState, ending: Collection[tuple[str, int]]) -> tuple[list[tuple[str, int]], str]:
        going = [key for key in self.runs if key not in ending]
        return (going, "why not") if self.money.at_cap == "stop" and self.spent > 0.2 * self.budget else ([], "")

    return _instead(BudgetState, "to_stop", eager)


def forgets_what_has_ended() -> AbstractContextManager[None]:
    """It counts what runs, and no more."""
    return _instead(running_cost.RunningCost, "_cost_of", lambda *_: 0.0)


def bills_the_main_process_only() -> AbstractContextManager[None]:
    """The slots that orphans hold are paid by nobody."""

    def short(attempt: Attempt, seen: AttemptSnapshot, *rest: Any, **more: Any) -> float | None:
        seconds = held_seconds(attempt, seen, *rest, **more)
        if seconds is None or seen.exit is None:
            return seconds
        return min(seconds, seen.exit.boot - attempt.claimed_boot)

    return _instead(decide, "held_seconds", short)


def bills_by_the_wall_clock() -> AbstractContextManager[None]:
    """Whoever sets the clock makes the bill of a rented machine."""
    return _instead(calendar.ClockRecord, "place", lambda _, __, ___, wall: wall)


# -- the power-off


def powers_off_beside_what_runs_left_behind() -> AbstractContextManager[None]:
    return _instead(power_off_rules, "describe_remains", lambda _: [])


def powers_off_beside_other_campaigns() -> AbstractContextManager[None]:
    return _instead(power_off_rules, "describe_neighbours", lambda _: [])


def keeps_a_step_of_the_clock_to_itself() -> AbstractContextManager[None]:
    return _instead(calendar.ClockRecord, "step", lambda *_: 0.0)


@contextlib.contextmanager
def takes_deleted_files_for_a_claim() -> Iterator[None]:
    """No `started`, so nobody has started it: the folder is made again, and the attempt launched or fenced."""

    def unstarted(self: SimProbe, attempt: Attempt, _: Folder) -> AttemptSnapshot:
        return AttemptSnapshot(self.world.boot, "no", host=self._host(None, attempt), searched=True)

    def made_again(_: SimExecutor, folder: Folder) -> bool:
        if folder.gone:
            folder.gone, folder.execing, folder.started = False, False, None
            folder.identity = folder.shim = folder.named = None
        return False

    with _instead(SimProbe, "_lost", unstarted), _instead(SimExecutor, "_is_lost", made_again):
        yield


BROKEN: Mapping[str, Broken] = {
    made.__name__: made
    for made in (
        claims_without_lease,
        starts_before_the_commit,
        ignores_hold,
        retries_every_death,
        starts_again_without_a_cause,
        relaunches_what_has_started,
        starts_what_needs_others,
        forgets_new_cells,
        keeps_what_it_leased,
        counts_orphans_as_gone,
        takes_unreadable_for_dead,
        never_settles_a_lost_exit,
        does_not_wait_for_the_shim,
        takes_every_exit_for_success,
        leaves_too_early,
        kills_what_it_should_report,
        ignores_a_persons_stop,
        leaves_a_stop_to_a_dead_shim,
        says_nothing,
        looks_only_when_woken,
        ignores_a_newer_epoch,
        shows_the_gone_as_running,
        spins,
        convicts_at_once,
        ignores_the_budget,
        lets_runs_go_on_at_the_cap,
        stops_long_before_the_cap,
        forgets_what_has_ended,
        bills_the_main_process_only,
        bills_by_the_wall_clock,
        powers_off_beside_what_runs_left_behind,
        powers_off_beside_other_campaigns,
        keeps_a_step_of_the_clock_to_itself,
        takes_deleted_files_for_a_claim,
        forgets_its_guard,
        guard_leaves_with_its_controller,
        guard_starts_nobody,
        guard_does_not_know_when_all_is_over,
        guard_knows_no_pause,
    )
}


def caught_at(name: str, seeds: Sequence[int], simulate: Callable[[int], Any]) -> tuple[int, str] | None:
    """The first seed that catches it, and what was seen; None: none of them does."""
    with BROKEN[name]():
        for seed in seeds:
            found = simulate(seed)
            if not found.ok:
                return seed, found.violation
    return None
