"""Controllers that each break one rule. The simulator must catch every one of them, or it proves nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from muster.acts import shutdown
from muster.controller import actions, agenda, carry, decide, loop, money, news, watches
from muster.domain import calendar
from muster.domain.attempt import Attempt, CellRecord
from muster.domain.sighting import ProofReading, Sighting
from muster.domain.state import CampaignState, Intent
from muster.domain.verdict import Cause, State, Verdict
from muster.execute import guard
from muster.execute.local import slot_of
from muster.judge import attempt as judging
from muster.ledger import till
from muster.ledger.budget import Purse
from muster.ledger.spans import held
from muster.plan import standing
from muster.ports.executor import Lease
from muster.ports.waker import Wake
from muster.sim.campaign_folder import Folder
from muster.sim.executor import SimExecutor
from muster.sim.probe import SimProbe
from muster.store import sqlite

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

    def lease(_: carry.Carrier, slots: Sequence[str]) -> Lease:
        return Lease(tuple(slot_of(name) for name in slots))

    return _instead(carry.Carrier, "_lease", lease)


def starts_before_the_commit() -> AbstractContextManager[None]:
    """The shim is asked for first, and written down second."""
    real = carry.Carrier._leases

    def leases(self: carry.Carrier, starts: Sequence[actions.Start], state: CampaignState) -> Any:
        taken = real(self, starts, state)
        for (cell, n), (start, lease) in taken.items():
            made = Attempt(cell, n, "early", self.epoch, start.slots, "", "", self.clock.boot(), self.boot_id)
            self.executor.launch(self.composer.compose(made, state, lease), lease)
        return {}

    return _instead(carry.Carrier, "_leases", leases)


def ignores_hold() -> AbstractContextManager[None]:
    real = decide.decide

    def heedless(view: decide.View, now: float) -> list[actions.Action]:
        return real(replace(view, state=replace(view.state, intent=Intent())), now)

    return _instead(loop, "decide", heedless)


def retries_every_death() -> AbstractContextManager[None]:
    """Whatever it died of, and without saying so."""
    real = standing.standing

    def eager(
        record: CellRecord, state: CampaignState, needs: standing.Needs, purse: Purse | None = None
    ) -> standing.Standing:
        where = real(record, state, needs, purse)
        return replace(where, startable=True) if where.state == State.DEAD else where

    return _instead(decide, "standing", eager)


def starts_again_without_a_cause() -> AbstractContextManager[None]:
    """What is retried by itself is retried under a cause that nobody recorded."""
    real = carry.Carrier._started

    def started(self: carry.Carrier, start: actions.Start, state: CampaignState) -> Any:
        return real(self, replace(start, retry_cause="again" if start.n > 1 else None), state)

    return _instead(carry.Carrier, "_started", started)


def relaunches_what_has_started() -> AbstractContextManager[None]:
    real = decide._for_open

    def twice(view: decide.View, record: CellRecord, now: float) -> Iterator[actions.Action]:
        found = list(real(view, record, now))
        if not found and record.open and view.verdicts[record.open.key].state == State.RUNNING:
            found = [actions.Relaunch(record.open)]
        yield from found

    return _instead(decide, "_for_open", twice)


def starts_what_needs_others() -> AbstractContextManager[None]:
    return _instead(standing, "unmet", lambda *_: [])


def forgets_new_cells() -> AbstractContextManager[None]:
    """After the campaign has changed it goes on with the cells it knew."""
    real = agenda.Agenda._order
    known: dict[int, set[str]] = {}

    def order(self: agenda.Agenda) -> None:
        real(self)
        first = known.setdefault(self.state.epoch, set(self._cells))
        for cell in set(self._cells) - first:
            del self._cells[cell]

    return _instead(agenda.Agenda, "_order", order)


# -- ends


def counts_orphans_as_gone() -> AbstractContextManager[None]:
    return _instead(Sighting, "tree_lives", property(lambda _: False))


def takes_unreadable_for_dead() -> AbstractContextManager[None]:
    real = judging.judge_attempt

    def hasty(attempt: Attempt, seen: Sighting, *rest: Any, **more: Any) -> Verdict:
        if seen.started == "unread":
            return judging._dead(Cause("unknown", confidence="unknown", note="it can't be read"), ())
        return real(attempt, seen, *rest, **more)

    return _instead(loop, "judge_attempt", hasty)


def never_settles_a_lost_exit() -> AbstractContextManager[None]:
    def lost(_: Sighting, __: bool, evidence: Any) -> Verdict:
        return Verdict(State.UNKNOWN, "how it ended is not known", confidence="unknown", evidence=evidence)

    return _instead(judging, "_lost", lost)


def does_not_wait_for_the_shim() -> AbstractContextManager[None]:
    """Its main process is gone and nothing is written down yet: the exit is called lost."""
    real = judging._gone

    def hasty(seen: Sighting, declared: bool, evidence: Any) -> Verdict:
        patient = replace(seen, shim_locked=False, proof=seen.proof or ProofReading(None))
        return real(patient, declared, evidence)

    return _instead(judging, "_gone", hasty)


def takes_every_exit_for_success() -> AbstractContextManager[None]:
    real = judging.judge_attempt

    def trusting(attempt: Attempt, seen: Sighting, *rest: Any, **more: Any) -> Verdict:
        if seen.exit is not None and not seen.tree_lives:
            return Verdict(State.DONE, "it has ended", final=True)
        return real(attempt, seen, *rest, **more)

    return _instead(loop, "judge_attempt", trusting)


def leaves_too_early() -> AbstractContextManager[None]:
    """It ends as soon as nothing runs, although something may start."""
    real = decide._end

    def end(*view: Any) -> Iterator[actions.Action]:
        yield from list(real(*view)) or [actions.End(False, "nothing runs")]

    return _instead(decide, "_end", end)


def shows_the_gone_as_running() -> AbstractContextManager[None]:
    """Without an exit.json it believes that the run goes on."""
    real = judging.judge_attempt

    def faithful(attempt: Attempt, seen: Sighting, *rest: Any, **more: Any) -> Verdict:
        if seen.started == "yes" and seen.exit is None and seen.main in ("gone", "zombie"):
            return Verdict(State.RUNNING, "nothing says that it has ended")
        return real(attempt, seen, *rest, **more)

    return _instead(loop, "judge_attempt", faithful)


# -- stops, words, company


def kills_what_it_should_report() -> AbstractContextManager[None]:
    """A stalled run is stopped although the campaign says `notify`."""
    real = decide._stop

    def strict(view: decide.View, record: CellRecord, attempt: Attempt, *rest: Any) -> Iterator[actions.Action]:
        found = list(real(view, record, attempt, *rest))
        if not found and view.verdicts[attempt.key].state == State.STALLED:
            found = [actions.Stop(attempt, "stalled", "it stalls")]
        yield from found

    return _instead(decide, "_stop", strict)


def ignores_a_persons_stop() -> AbstractContextManager[None]:
    real = decide._stop

    def deaf(view: decide.View, record: CellRecord, *rest: Any) -> Iterator[actions.Action]:
        yield from real(view, replace(record, stop_because=None), *rest)

    return _instead(decide, "_stop", deaf)


def leaves_a_stop_to_a_dead_shim() -> AbstractContextManager[None]:
    """A stop is asked for once, whatever becomes of the shim that had it."""
    return _instead(decide, "_left_to_itself", lambda _: False)


def says_nothing() -> AbstractContextManager[None]:
    """Verdicts change without an event."""
    return _instead(news.News, "changed", lambda *_: None)


def looks_only_when_woken() -> AbstractContextManager[None]:
    """No poll: what rings nobody's bell is never seen."""
    real = loop.Loop._to_look_at

    def due(self: loop.Loop, wake: Wake) -> list[Attempt]:
        self._next_poll = self.ports.clock.boot() + self.policy.poll_s
        return real(self, wake)

    return _instead(loop.Loop, "_to_look_at", due)


def ignores_a_newer_epoch() -> AbstractContextManager[None]:
    return _instead(sqlite.SqliteStore, "_guard", lambda _: None)


def keeps_what_it_leased() -> AbstractContextManager[None]:
    """A lease that served nothing is not given back."""
    return _instead(carry.Carrier, "_give_back", lambda *_: None)


def spins() -> AbstractContextManager[None]:
    return _instead(loop.Loop, "_patience", lambda _: 0.0)


def convicts_at_once() -> AbstractContextManager[None]:
    """A run that is silent for one poll is called stalled, and proven so."""
    real = watches.Watches.of

    def of(self: watches.Watches, *rest: Any) -> Any:
        watch = real(self, *rest)
        if watch is not None and watch.history.pulses and watch.history.profile:
            watch.history.stopped_polls = 9
        return watch

    return _instead(watches.Watches, "of", of)


# -- the guard


def forgets_its_guard() -> AbstractContextManager[None]:
    real = loop.Loop._turn

    def alone(self: loop.Loop, wake: Wake) -> None:
        self.guard = lambda _: None
        real(self, wake)

    return _instead(loop.Loop, "_turn", alone)


def guard_leaves_with_its_controller() -> AbstractContextManager[None]:
    real = guard.next_step
    return _instead(guard, "next_step", lambda **seen: "leave" if real(**seen) == "start" else real(**seen))


def guard_starts_nobody() -> AbstractContextManager[None]:
    real = guard.next_step
    return _instead(guard, "next_step", lambda **seen: "wait" if real(**seen) == "start" else real(**seen))


def guard_does_not_know_when_all_is_over() -> AbstractContextManager[None]:
    real = guard.next_step
    return _instead(guard, "next_step", lambda **seen: real(**{**seen, "at_rest": False}))


def guard_knows_no_pause() -> AbstractContextManager[None]:
    return _instead(guard.Losses, "pause_s", property(lambda _: 0.0))


# -- money


def ignores_the_budget() -> AbstractContextManager[None]:
    """It starts whatever has a slot, and stops nothing."""
    return _instead(money.Purser, "purse", lambda *_: None)


def lets_runs_go_on_at_the_cap() -> AbstractContextManager[None]:
    return _instead(Purse, "to_stop", lambda *_: ([], ""))


def stops_long_before_the_cap() -> AbstractContextManager[None]:
    def eager(self: Purse, ending: Collection[tuple[str, int]]) -> tuple[list[tuple[str, int]], str]:
        going = [key for key in self.runs if key not in ending]
        return (going, "why not") if self.money.at_cap == "stop" and self.spent > 0.2 * self.budget else ([], "")

    return _instead(Purse, "to_stop", eager)


def forgets_what_has_ended() -> AbstractContextManager[None]:
    """It counts what runs, and no more."""
    return _instead(till.Till, "_cost_of", lambda *_: 0.0)


def bills_the_main_process_only() -> AbstractContextManager[None]:
    """The slots that orphans hold are paid by nobody."""

    def short(attempt: Attempt, seen: Sighting, *rest: Any, **more: Any) -> float | None:
        seconds = held(attempt, seen, *rest, **more)
        if seconds is None or seen.exit is None:
            return seconds
        return min(seconds, seen.exit.boot - attempt.claimed_boot)

    return _instead(decide, "held", short)


def bills_by_the_wall_clock() -> AbstractContextManager[None]:
    """Whoever sets the clock makes the bill of a rented machine."""
    return _instead(calendar.ClockRecord, "place", lambda _, __, ___, wall: wall)


# -- the power-off


def powers_off_beside_what_runs_left_behind() -> AbstractContextManager[None]:
    return _instead(shutdown, "remains_reasons", lambda _: [])


def powers_off_beside_other_campaigns() -> AbstractContextManager[None]:
    return _instead(shutdown, "neighbour_reasons", lambda _: [])


def keeps_a_step_of_the_clock_to_itself() -> AbstractContextManager[None]:
    return _instead(calendar.ClockRecord, "step", lambda *_: 0.0)


@contextlib.contextmanager
def takes_deleted_files_for_a_claim() -> Iterator[None]:
    """No `started`, so nobody has started it: the folder is made again, and the attempt launched or fenced."""

    def unstarted(self: SimProbe, attempt: Attempt, _: Folder) -> Sighting:
        return Sighting(self.world.boot, "no", host=self._host(None, attempt), searched=True)

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
        claims_without_lease, starts_before_the_commit, ignores_hold, retries_every_death, starts_again_without_a_cause,
        relaunches_what_has_started, starts_what_needs_others, forgets_new_cells, keeps_what_it_leased,
        counts_orphans_as_gone, takes_unreadable_for_dead, never_settles_a_lost_exit, does_not_wait_for_the_shim,
        takes_every_exit_for_success, leaves_too_early, kills_what_it_should_report, ignores_a_persons_stop,
        leaves_a_stop_to_a_dead_shim, says_nothing, looks_only_when_woken, ignores_a_newer_epoch,
        shows_the_gone_as_running, spins, convicts_at_once, ignores_the_budget, lets_runs_go_on_at_the_cap,
        stops_long_before_the_cap, forgets_what_has_ended, bills_the_main_process_only, bills_by_the_wall_clock,
        powers_off_beside_what_runs_left_behind, powers_off_beside_other_campaigns, keeps_a_step_of_the_clock_to_itself,
        takes_deleted_files_for_a_claim,
        forgets_its_guard, guard_leaves_with_its_controller, guard_starts_nobody, guard_does_not_know_when_all_is_over,
        guard_knows_no_pause,
    )
}  # fmt: skip


def caught_at(name: str, seeds: Sequence[int], simulate: Callable[[int], Any]) -> tuple[int, str] | None:
    """The first seed that catches it, and what was seen; None: none of them does."""
    with BROKEN[name]():
        for seed in seeds:
            found = simulate(seed)
            if not found.ok:
                return seed, found.violation
    return None
