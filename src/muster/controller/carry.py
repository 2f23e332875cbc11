"""Carries decisions out, in the order of the protocol: written down first, done second."""

from __future__ import annotations

import errno
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from muster.controller.actions import Settle, Start, Stop
from muster.domain.attempt import Attempt
from muster.domain.decision import Decision
from muster.domain.order import Order
from muster.domain.state import CampaignState
from muster.ports.clock import Clock, iso
from muster.ports.crash import reach
from muster.ports.executor import Executor, Lease
from muster.ports.store import Committed, Store
from muster.ports.waker import Waker

Key = tuple[str, int]
LEASE_RETRY_S = 0.25


class Composer(Protocol):
    """Builds attempt.json."""

    def compose(self, attempt: Attempt, state: CampaignState, lease: Lease) -> Order: ...

    def reconfigure(self, state: CampaignState) -> None: ...


class Carrier:
    def __init__(
        self,
        store: Store,
        executor: Executor,
        waker: Waker,
        clock: Clock,
        composer: Composer,
        *,
        who: str,
        epoch: int,
        boot_id: str,
        grace_s: float = 10.0,
        free_ballast: Callable[[], None] = lambda: None,
    ) -> None:
        self.store, self.executor, self.waker, self.clock, self.composer = store, executor, waker, clock, composer
        self.who, self.epoch, self.boot_id, self.grace_s = who, epoch, boot_id, grace_s
        self.free_ballast = free_ballast
        self.launched: dict[Key, float] = {}
        self.stopping: set[Key] = set()
        self._taken: dict[str, float] = {}

    # -- slots that others hold

    def taken(self, now: float) -> frozenset[str]:
        self._taken = {slot: until for slot, until in self._taken.items() if until > now}
        return frozenset(self._taken)

    @property
    def waits_for_slots(self) -> bool:
        return bool(self._taken)

    def _lease(self, slots: Sequence[str]) -> Lease | None:
        lease = self.executor.lease(slots)
        if lease is None:
            self._taken.update(dict.fromkeys(slots, self.clock.boot() + LEASE_RETRY_S))
        return lease

    def _leases(self, starts: Sequence[Start], state: CampaignState) -> dict[Key, tuple[Start, Lease]]:
        leases: dict[Key, tuple[Start, Lease]] = {}
        for start in starts:
            if lease := self._lease(start.slots):
                leases[(start.cell, start.n)] = (start, lease)
            else:
                self._ask_back(start.slots, state)
        if leases:
            reach("lease.taken")
        return leases

    def _ask_back(self, slots: Sequence[str], state: CampaignState) -> None:
        """A slot of ours that is not free: the shim of its last attempt was stopped, or told by nobody to let go."""
        for slot in slots:
            ended = [a for record in state.cells.values() for a in record.attempts if a.outcome and slot in a.slots]
            last = max(ended, key=lambda attempt: attempt.claimed_boot, default=None)
            if last is not None:
                self.executor.nudge(last)
                if last.completed:
                    self.executor.release(last)

    def ask_all_back(self, state: CampaignState) -> None:
        """Before the controller ends: no slot may be lost by a shim that nobody looks at any more."""
        for slot in self.executor.slots():
            if lease := self.executor.lease([slot.name]):
                self.executor.give_back(lease)
            else:
                self._ask_back([slot.name], state)

    # -- claims: lease, then one durable decision for all that ended and all that starts, then the shims

    def claim(
        self, settles: Sequence[Settle], starts: Sequence[Start], state: CampaignState
    ) -> tuple[Committed, list[tuple[Key, Lease]]]:
        if settles:
            reach("exit.seen")
        leases = self._leases(starts, state)
        decisions = [self._settled(settle) for settle in settles]
        decisions += [self._started(start, state) for start, _ in leases.values()]
        try:
            committed = self.store.commit(decisions)
        except BaseException:
            for _, lease in leases.values():
                self.executor.give_back(lease)
            raise
        if settles:
            reach("settle.committed")
        for refusal in committed.refused:
            key = (refusal.decision.cell or "", refusal.decision.attempt or 0)
            if refusal.decision.kind == "start" and key in leases:
                self.executor.give_back(leases.pop(key)[1])
        try:
            self._after_settle(settles)
        except OSError:  # claimed and not launched: the next turn sees that
            for _, lease in leases.values():
                self.executor.give_back(lease)
            raise
        if leases:
            reach("claim.committed")
        return committed, [(key, lease) for key, (_, lease) in leases.items()]

    def _after_settle(self, settles: Sequence[Settle]) -> None:
        for settle in settles:
            self.launched.pop(settle.attempt.key, None)
            self.stopping.discard(settle.attempt.key)
            if settle.release:
                self.executor.release(settle.attempt)

    def launch(self, launches: Sequence[tuple[Key, Lease]], state: CampaignState) -> None:
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
            reach("spawn.sent")
        except (OSError, KeyError, ValueError) as error:
            self.executor.give_back(lease)
            self.launched.pop(attempt.key, None)
            self.executor.revoke(attempt)
            self.note(attempt, f"it could not be launched: {error}")

    def relaunch(self, attempt: Attempt, state: CampaignState) -> None:
        """Same attempt, same order. O_EXCL on `started` makes a second shim harmless."""
        lease = self._lease(attempt.slots)
        if lease is not None:
            self._launch(attempt, lease, state)
        else:  # its slot went to somebody else while nobody watched
            self.executor.revoke(attempt)

    def stop(self, action: Stop, epoch: int) -> None:
        attempt = action.attempt
        self.note(attempt, f"stop requested ({action.cause}): {action.reason}")
        self.executor.stop(attempt, epoch=epoch, reason=action.cause, grace_s=self.grace_s)
        self.stopping.add(attempt.key)

    def fence(self, attempt: Attempt, reason: str) -> None:
        """The request first: it says why the attempt was revoked."""
        self.note(attempt, f"stopped before it was started: {reason}")
        self.executor.stop(attempt, epoch=self.epoch, reason="user_stop", grace_s=self.grace_s)
        self.executor.revoke(attempt)

    # -- decisions

    def decision(
        self, kind: str, reason: str, *, attempt: Attempt | None = None, data: Mapping[str, Any] | None = None
    ) -> Decision:
        cell, n = attempt.key if attempt else (None, None)
        now, boot = iso(self.clock.wall()), self.clock.boot()
        return Decision(kind, self.who, reason, cell, n, self.epoch, now, boot, data or {})

    def note(self, attempt: Attempt, reason: str) -> None:
        self.store.append(self.decision("found", reason, attempt=attempt))

    def _settled(self, settle: Settle) -> Decision:
        from msgspec import to_builtins

        data = {"outcome": to_builtins(settle.outcome), "ended_boot": settle.ended_boot}
        return self.decision("settle", settle.outcome.reason, attempt=settle.attempt, data=data)

    def _started(self, start: Start, state: CampaignState) -> Decision:
        data = {
            "token": secrets.token_hex(16),
            "slots": start.slots,
            "hash": state.cells[start.cell].hash,
            "boot_id": self.boot_id,
            "retry_cause": start.retry_cause,
        }
        now, boot = iso(self.clock.wall()), self.clock.boot()
        return Decision("start", self.who, start.reason, start.cell, start.n, self.epoch, now, boot, data)

    def reconfigure(self, state: CampaignState) -> None:
        self.composer.reconfigure(state)

    def make_room(self, error: OSError) -> None:
        """A full disk: the ballast goes, so that how runs ended can still be written."""
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            self.free_ballast()
