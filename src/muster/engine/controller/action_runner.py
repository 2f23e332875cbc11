"""Carries out what `decide` returned, in the order of the protocol: written down first, done second. Changes of a
verdict become events, with a notice for each that a person should hear of.
"""

from __future__ import annotations

import contextlib
import errno
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from muster.engine.controller.decide import BudgetNotice, Fence, Settle, Start, Stop
from muster.engine.ports.clock import Clock
from muster.engine.ports.executor import Executor, Lease, OrderComposer, OrderNotReady
from muster.engine.ports.store import CommitResult, DiskBallast, Store
from muster.files.crash_points import reach_crash_point
from muster.model.attempt import Attempt, AttemptKey
from muster.model.calendar import format_iso_time
from muster.model.campaign_state import CampaignState
from muster.model.decision import Decision
from muster.model.verdict import Verdict, VerdictState
from muster.text.phrases import join_phrases, phrase

LEASE_RETRY_S = 0.25  # a slot that another campaign holds is tried again
ASK_BACK_AFTER_S = 5.0
FENCE_AFTER_S = 60.0  # a claimed attempt whose slot can't be had for this long gives way to another


class ActionRunner:
    def __init__(
        self,
        store: Store,
        executor: Executor,
        clock: Clock,
        composer: OrderComposer,
        *,
        who: str,
        epoch: int,
        boot_id: str,
        grace_s: float = 10.0,
        ballast: DiskBallast,
    ) -> None:
        self.store, self.executor, self.clock, self.composer = store, executor, clock, composer
        self.who, self.epoch, self.boot_id, self.grace_s = who, epoch, boot_id, grace_s
        self.ballast = ballast
        self.launched: dict[AttemptKey, float] = {}
        self.stopping: dict[AttemptKey, Stop] = {}  # as last asked for
        self._taken: dict[str, float] = {}
        self._unleased: dict[AttemptKey, float] = {}  # since when the slots of a claimed attempt can't be had
        self._asked_back: dict[str, float] = {}
        self._kept: dict[AttemptKey, list[Lease]] = {}  # slots of runs that let go of them and live

    # -- slots that others hold

    def taken(self, now: float) -> frozenset[str]:
        self._taken = {slot: until for slot, until in self._taken.items() if until > now}
        return frozenset(self._taken)

    def try_again(self) -> None:
        """Something ended: a slot that was not quite free a moment ago may be now."""
        self._taken.clear()

    @property
    def waits_for_slots(self) -> bool:
        return bool(self._taken)

    def _lease(self, slots: Sequence[str]) -> Lease | None:
        lease = self.executor.lease(slots)
        if lease is None:
            self._taken.update(dict.fromkeys(self._not_free(slots), self.clock.boot() + LEASE_RETRY_S))
        return lease

    def _not_free(self, slots: Sequence[str]) -> list[str]:
        """Of several: those that somebody else holds. The others may serve another cell."""
        if len(slots) == 1:
            return list(slots)
        held = []
        for slot in slots:
            if alone := self.executor.lease([slot]):
                self.executor.give_back(alone)
            else:
                held.append(slot)
        return held

    def _leases(self, starts: Sequence[Start], state: CampaignState) -> dict[AttemptKey, tuple[Start, Lease]]:
        leases: dict[AttemptKey, tuple[Start, Lease]] = {}
        try:
            for start in starts:
                if lease := self._lease(start.slots):
                    leases[(start.cell, start.n)] = (start, lease)
                else:
                    self._ask_back(start.slots, state)
        except BaseException:
            self._give_back(leases)
            raise
        if leases:
            reach_crash_point("lease.taken")
        return leases

    def _give_back(self, leases: Mapping[AttemptKey, tuple[Start, Lease]]) -> None:
        for _, lease in leases.values():
            self.executor.give_back(lease)

    def _ask_back(self, slots: Sequence[str], state: CampaignState) -> None:
        """A slot of ours that is not free: the shim of its last attempt was stopped, or told by nobody to let go."""
        now = self.clock.boot()
        for slot in slots:
            if now - self._asked_back.get(slot, float("-inf")) < ASK_BACK_AFTER_S:
                continue
            self._asked_back[slot] = now
            last = self._last_on(slot, state)
            if last is not None:
                with contextlib.suppress(OSError):  # its folder may be gone: then nobody is there to ask
                    self.executor.nudge(last)
                    if last.was_done:
                        self.executor.release(last)

    def _last_on(self, slot: str, state: CampaignState) -> Attempt | None:
        """Since this boot: before it, nothing holds anything any more."""
        ended = (
            attempt
            for record in state.cells.values()
            for attempt in record.attempts
            if attempt.outcome and slot in attempt.slots and attempt.boot_id == self.boot_id
        )
        return max(ended, key=lambda attempt: attempt.claimed_boot, default=None)

    def ask_all_back(self, state: CampaignState) -> None:
        """Before the controller ends: no slot may be lost by a shim that nobody looks at any more."""
        with contextlib.suppress(OSError):  # who can't take a lease can still end
            for slot in self.executor.slots():
                if lease := self.executor.lease([slot.name]):
                    self.executor.give_back(lease)
                else:
                    self._asked_back.pop(slot.name, None)
                    self._ask_back([slot.name], state)

    def keep_slots(self, attempt: Attempt, *, lives: bool) -> None:
        """A run that lives has its slots, even if it closed what it inherited, or the lease's file was deleted."""
        if not lives:
            self._let_go(attempt.key)
            return
        lease = None
        with contextlib.suppress(OSError):  # who can't take a lease can still look, stop and end
            lease = self.executor.keep(attempt)
        if lease:
            self._kept.setdefault(attempt.key, []).append(lease)
            self.note(
                attempt, phrase("controller.nobody_held_lease_kept", slots=", ".join(slot.name for slot in lease.slots))
            )

    def drop_request(self, attempt: Attempt) -> None:
        """Its files are gone, and its lease may hang with a request for a shim that nobody answered: once is enough."""
        if self.launched.pop(attempt.key, None) is not None:
            self.executor.restart()

    def _let_go(self, key: AttemptKey) -> None:
        for lease in self._kept.pop(key, ()):
            self.executor.give_back(lease)

    # -- claims: lease, then one durable decision for all that ended and all that starts, then the shims

    def claim(
        self, settles: Sequence[Settle], starts: Sequence[Start], state: CampaignState
    ) -> tuple[CommitResult, list[tuple[AttemptKey, Lease]]]:
        if settles:
            reach_crash_point("exit.seen")
        for settle in settles:
            self._let_go(settle.attempt.key)
        leases = self._leases(starts, state)
        decisions = [self._settled(settle) for settle in settles]
        decisions += [self._started(start, state) for start, _ in leases.values()]
        try:
            committed = self.store.commit(decisions)
        except BaseException:
            self._give_back(leases)
            raise
        if settles:
            reach_crash_point("settle.committed")
        for refusal in committed.refused:
            key = (refusal.decision.cell or "", refusal.decision.attempt or 0)
            if refusal.decision.kind == "start" and key in leases:
                self.executor.give_back(leases.pop(key)[1])
        try:
            self._after_settle(settles)
        except OSError:  # claimed and not launched: the next turn sees that
            self._give_back(leases)
            raise
        if leases:
            reach_crash_point("claim.committed")
        return committed, [(key, lease) for key, (_, lease) in leases.items()]

    def _after_settle(self, settles: Sequence[Settle]) -> None:
        for settle in settles:
            self.launched.pop(settle.attempt.key, None)
            self.stopping.pop(settle.attempt.key, None)
            if settle.release:
                self.executor.release(settle.attempt)
            if settle.outcome.exit_code is None and settle.outcome.exit_signal is None:
                self.executor.tidy(settle.attempt)

    def launch(self, launches: Sequence[tuple[AttemptKey, Lease]], state: CampaignState) -> None:
        trouble: OSError | None = None
        for (cell, n), lease in launches:
            try:
                self._launch(state.cells[cell].attempts[n - 1], lease, state)
            except OSError as error:  # its lease is given back; the others must not lose theirs
                trouble = trouble or error
        if trouble:
            raise trouble

    def _launch(self, attempt: Attempt, lease: Lease, state: CampaignState) -> None:
        self.launched[attempt.key] = self.clock.boot()
        try:
            order = self.executor.order(attempt) or self.composer.compose(attempt, state, lease)
            self.executor.launch(order, lease)
            reach_crash_point("spawn.sent")
        except OrderNotReady:  # claimed, and asked for again at the next look
            self.executor.give_back(lease)
            self.launched.pop(attempt.key, None)
        except (OSError, KeyError, ValueError) as error:
            self.executor.give_back(lease)
            self.launched.pop(attempt.key, None)
            self.executor.revoke(attempt, phrase("controller.could_not_launched", error=error))

    def relaunch(self, attempt: Attempt, state: CampaignState) -> None:
        """Same attempt, same order. O_EXCL on `started` makes a second shim harmless."""
        if lacking := self.composer.lacks(state):
            raise OSError(lacking)
        now = self.clock.boot()
        if attempt.key in self.launched:  # we asked, and nobody came: request and lease may hang with whom we asked
            self.executor.restart()
        self.launched[attempt.key] = now
        lease = self._lease(attempt.slots)
        if lease is not None:
            self._unleased.pop(attempt.key, None)
            self._launch(attempt, lease, state)
        elif now - self._unleased.setdefault(attempt.key, now) > FENCE_AFTER_S:
            held = self.executor.holder(attempt.slots) or phrase("controller.cant", slots=", ".join(attempt.slots))
            self.executor.revoke(attempt, phrase("controller.slot_went_somebody_else_before_started", held=held))

    def stop(self, action: Stop, epoch: int) -> None:
        attempt = action.attempt
        self.note(attempt, phrase("controller.stop_requested", cause=action.cause, reason=action.reason))
        self.executor.stop(attempt, epoch=epoch, reason=action.cause, grace_s=self.grace_s)
        self.stopping[attempt.key] = replace(action, asked=self.clock.boot())

    def fence(self, action: Fence) -> None:
        attempt = action.attempt
        self.note(attempt, phrase("controller.fenced", reason=action.reason))
        if action.stop:  # the request first: it says why the attempt was revoked
            self.executor.stop(attempt, epoch=self.epoch, reason="user_stop", grace_s=self.grace_s)
        self.executor.revoke(attempt, action.reason)

    # -- decisions

    def decision(
        self, kind: str, reason: str, *, attempt: Attempt | None = None, data: Mapping[str, Any] | None = None
    ) -> Decision:
        cell, n = attempt.key if attempt else (None, None)
        now, boot = format_iso_time(self.clock.wall()), self.clock.boot()
        return Decision(kind, self.who, reason, cell, n, self.epoch, now, boot, data or {})

    def note(self, attempt: Attempt, reason: str) -> None:
        self.store.append(self.decision("found", reason, attempt=attempt))

    def _settled(self, settle: Settle) -> Decision:
        from muster.files.json_codec import outcome_as_data

        outcome = settle.outcome
        ended_at = format_iso_time(outcome.ended) if outcome.ended else None
        data = {
            "outcome": outcome_as_data(outcome),
            "ended_boot": settle.freed,
            "ended_at": ended_at,
            "boot_id": self.boot_id,
        }
        return self.decision("settle", outcome.reason, attempt=settle.attempt, data=data)

    def _started(self, start: Start, state: CampaignState) -> Decision:
        data = {
            "token": secrets.token_hex(16),
            "slots": start.slots,
            "hash": state.cells[start.cell].hash,
            "boot_id": self.boot_id,
            "retry_cause": start.retry_cause,
            "rests_on": dict(start.rests_on),
        }
        now, boot = format_iso_time(self.clock.wall()), self.clock.boot()
        return Decision("start", self.who, start.reason, start.cell, start.n, self.epoch, now, boot, data)

    # -- a full disk

    def make_room(self, error: OSError) -> None:
        """The ballast goes, so that how runs ended can still be written."""
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            self.ballast.free()

    def restore_ballast(self) -> None:
        self.ballast.lay()


VerdictSort = tuple[str, str | None, str]
NOTIFIED_STATES = frozenset({VerdictState.STALLED, VerdictState.UNKNOWN})


class EventQueue:
    def __init__(self, carrier: ActionRunner) -> None:
        self.carrier = carrier
        self._waiting: list[Decision] = []

    def take(self) -> list[Decision]:
        taken, self._waiting = self._waiting, []
        return taken

    def put_back(self, decisions: Sequence[Decision]) -> None:
        """They could not be written: they wait, in front of what came since."""
        self._waiting = [*decisions, *self._waiting]

    def changed(self, attempt: Attempt, before: VerdictSort, verdict: Verdict) -> None:
        was, now = format_verdict_kind(*before[:2]), format_verdict_kind(verdict.state, verdict.kind)
        data = {"from": was, "to": now, "confidence": verdict.confidence}
        self._add("verdict", join_phrases(": ", (f"{was} -> {now}", verdict.reason)), attempt, data)
        if verdict.state in NOTIFIED_STATES or before[0] in NOTIFIED_STATES:
            self._notice(
                phrase(
                    "controller.cell_is_now",
                    cell=attempt.cell,
                    state=now,
                    confidence=verdict.confidence,
                    reason=verdict.reason,
                ),
                now,
                attempt,
            )

    def ended(self, settle: Settle, following: str) -> None:
        outcome = settle.outcome
        if outcome.verdict == VerdictState.DEAD:
            told = {"cell": settle.attempt.cell, "reason": outcome.reason, "following": following}
            text = (
                phrase("controller.dead_of", cause=str(outcome.cause), **told)
                if outcome.cause
                else phrase("controller.dead_next", **told)
            )
            self._notice(text, "DEAD", settle.attempt)

    def held(self, reason: str) -> list[Decision]:
        self._notice(phrase("controller.campaign_held", reason=reason), "HELD", None)
        return [self.carrier.decision("hold", reason)]

    def budget(self, tell: BudgetNotice) -> list[Decision]:
        self._notice(tell.reason, "BUDGET", None)
        return [self.carrier.decision("budget", tell.reason, data={"level": tell.level, "budget": tell.budget})]

    def lost(self, words: str) -> None:
        """Controllers before this one ended without a word."""
        self._notice(words, "CONTROLLER", None)

    def clock(self, step_s: float) -> list[Decision]:
        """Somebody set the machine's clock; both words together, or neither."""
        step = format_clock_step(abs(step_s))
        forward = step_s > 0
        text = phrase("controller.clock_set_forward" if forward else "controller.clock_set_back", clock_step=step)
        more = phrase("controller.money_timeouts_stalls_go_time_since")
        data = {"step_s": step_s, "boot_id": self.carrier.boot_id}
        return [
            self.carrier.decision("clock", text, data=data),
            self.carrier.decision("notice", join_phrases(": ", (text, more)), data={"what": "CLOCK"}),
        ]

    def _notice(self, text: str, what: str, attempt: Attempt | None) -> None:
        self._add("notice", text, attempt, {"what": what})

    def _add(self, kind: str, reason: str, attempt: Attempt | None, data: dict[str, str]) -> None:
        self._waiting.append(self.carrier.decision(kind, reason, attempt=attempt, data=data))


def format_clock_step(seconds: float) -> str:
    for size, code in ((86400.0, "span.days"), (3600.0, "span.hours"), (60.0, "span.minutes")):
        if seconds >= 2 * size:
            return phrase(code, n=f"{seconds / size:.0f}")
    return phrase("span.seconds", n=f"{seconds:.0f}")


def format_verdict_kind(state: str, kind: str | None) -> str:
    return f"{state}({kind})" if kind else str(state)
