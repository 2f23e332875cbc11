"""Billed spans: for how long an attempt held its slots, how much of that its command ran, what came of it, and how
many units are billed.

Durations are by boot time and exact; wall times place a span on the calendar, for prices. A unit is a GPU: two runs
that share one share its price. Where a campaign has no GPU, each slot is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from muster.model.attempt import Attempt, AttemptKey, CellRecord, Outcome, UnadoptedRun
from muster.model.calendar import seconds_of_iso_time
from muster.model.campaign import Campaign, Job
from muster.model.campaign_state import CampaignState

if TYPE_CHECKING:
    from muster.model.attempt_snapshot import AttemptSnapshot, ProcessIdentity


def billed_units(slots: Sequence[str], job: Job, campaign: Campaign) -> tuple[str, ...]:
    """The billed units that an attempt held: `gpu6` of the slot `gpu6.0`; its CPU slots where no GPU is to be had.

    A CPU slot beside GPUs costs nothing of its own.
    """
    gpus = tuple(dict.fromkeys(slot.partition(".")[0] for slot in slots if slot.startswith("gpu")))
    if gpus or not _bills_cpu_slots(job, campaign):
        return gpus
    return tuple(slots)


def priced_unit(campaign: Campaign, held: Iterable[str]) -> str:
    """What the price is for, in a word: `gpu`, `slot` or `machine`. `held`: all slots that attempts had so far."""
    if campaign.money and campaign.money.per == "machine":
        return "machine"
    if campaign.slots.gpus is not None:
        return "gpu" if campaign.slots.gpus else "slot"
    kinds = {slot.startswith("gpu") for slot in held}
    return "slot" if kinds == {False} else "gpu"  # `auto`: nothing held yet, or adopted runs: it asks for GPUs


def units_per_cell(job: Job, campaign: Campaign) -> int:
    """How many units one more cell of the job would hold."""
    gpus, cpus = job.uses.take(has_gpus=campaign.slots.gpus != ())
    return gpus or (cpus if campaign.slots.gpus == () else 0)


def gpu_share_of_cell(job: Job, campaign: Campaign) -> float:
    """The part of its units that one more cell pays for, if all shares of a GPU are in use."""
    gpus, _ = job.uses.take(has_gpus=campaign.slots.gpus != ())
    return 1 / campaign.slots.per_gpu if gpus else 1.0


def _bills_cpu_slots(job: Job, campaign: Campaign) -> bool:
    """`gpus: 0`; or `auto`, and a job that asks for a GPU ran on CPU slots because there was none."""
    if campaign.slots.gpus is None:
        return job.uses.take(has_gpus=True)[0] > 0
    return campaign.slots.gpus == ()


Account = Literal["productive", "wasted", "idle", "overhead", "running"]
AccountLabel = tuple[Account, str]  # an account, and the cause of what was wasted
OVERHEAD: AccountLabel = ("overhead", "")
RUNNING: AccountLabel = ("running", "")
PRODUCTIVE: AccountLabel = ("productive", "")
SUPERSEDED = "superseded"
REFUSED: AccountLabel = ("wasted", "refused")  # made by something else, found by `muster adopt`, and of no use
LEASE_GONE_S = 120.0  # a claim that nobody starts for longer has no lease any more
STOPPED = frozenset(
    {"user_stop", "budget_stop", "timeout", "stalled", "pruned", "gate_stop"}
)  # ended by a person or by Muster


@dataclass(frozen=True, slots=True)
class LedgerTime:
    """The moment that a ledger is drawn up for."""

    wall: float
    boot: float
    boot_id: str

    @property
    def booted(self) -> float:
        """When this machine was switched on, in wall time."""
        return self.wall - self.boot


@dataclass(frozen=True, slots=True)
class SlotSpan:
    """The slots of one attempt, from the claim until they were free again. `lead_s` and `tail_s` are overhead."""

    cell: str
    attempt: int
    job: str
    slots: tuple[str, ...]
    units: tuple[str, ...]  # what is billed: gpu0, or cpu0 where slots are
    gpus: int
    boot_id: str
    boot: float  # of the claim
    wall: float
    lead_s: float  # from the claim until the command ran
    ran_s: float
    tail_s: float  # from its end until the slots were free
    label: AccountLabel  # where the time goes in which the command ran
    adopted: bool = False

    @property
    def held_s(self) -> float:
        return self.lead_s + self.ran_s + self.tail_s

    @property
    def completed(self) -> bool:
        """It tells how long a cell of its job takes, whether or not anybody still wants its own."""
        return self.label in (PRODUCTIVE, ("wasted", SUPERSEDED))


def ledger_time_of(state: CampaignState, wall: float, boot: float, boot_id: str) -> LedgerTime:
    """On the campaign's calendar: a clock that was set since this boot was first seen makes nothing longer."""
    return LedgerTime(state.clock.place(boot_id, boot, wall), boot, boot_id)


def all_slot_spans(
    state: CampaignState, now: LedgerTime, held: Mapping[AttemptKey, float] | None = None
) -> Iterator[SlotSpan]:
    """Of every attempt, and of runs of others that were refused. `held`: for how long, of open ones that were seen."""
    without = jobs_without_gpus(state)
    for record in state.cells.values():
        for attempt in record.attempts:
            yield slot_span_of(record, attempt, state, now, (held or {}).get(attempt.key), without)
    for number, run in enumerate(state.refused, 1):
        if run.cell in state.cells:
            yield _refused_run_span(run, -number, state, without)


def _refused_run_span(run: UnadoptedRun, number: int, state: CampaignState, without_gpus: frozenset[str]) -> SlotSpan:
    job = state.job(state.cells[run.cell].cell.job)
    count = units_per_cell(job, state.campaign)
    units = tuple(f"{run.path}.{at}" for at in range(count))
    gpus = 0 if state.campaign.slots.gpus == () or job.name in without_gpus else count
    parts = (0.0, run.duration_s, 0.0)
    return SlotSpan(run.cell, number, job.name, (), units, gpus, "", 0.0, run.started, *parts, REFUSED, adopted=True)


def jobs_without_gpus(state: CampaignState) -> frozenset[str]:
    """Jobs that ran here on no GPU: nor did, as far as anyone knows, the runs of them that were adopted."""
    here: dict[str, bool] = {}
    for record in state.cells.values():
        for attempt in record.attempts:
            if not attempt.adopted and attempt.slots:
                has = any(slot.startswith("gpu") for slot in attempt.slots)
                here[record.cell.job] = here.get(record.cell.job, False) or has
    return frozenset(job for job, has in here.items() if not has)


def slot_span_of(
    record: CellRecord,
    attempt: Attempt,
    state: CampaignState,
    now: LedgerTime,
    held_s: float | None = None,
    without_gpus: frozenset[str] = frozenset(),
) -> SlotSpan:
    job, outcome = state.job(record.cell.job), attempt.outcome
    if attempt.adopted:
        count = units_per_cell(job, state.campaign)
        units = tuple(f"{attempt.cell}@{attempt.n}.{number}" for number in range(count))  # nobody shared them
        none = state.campaign.slots.gpus == () or job.name in without_gpus
        gpus, wall = 0 if none else count, adopted_run_start(attempt)
        parts = (0.0, _recorded_duration(outcome), 0.0)
    else:
        units, wall = billed_units(attempt.slots, job, state.campaign), claim_calendar_time(state, attempt)
        gpus = sum(unit.startswith("gpu") for unit in units)
        parts = _lead_ran_tail(attempt, outcome, claim_wall_time(attempt), now, held_s)
    return SlotSpan(
        attempt.cell,
        attempt.n,
        job.name,
        attempt.slots,
        units,
        gpus,
        attempt.boot_id,
        attempt.claimed_boot,
        wall,
        *parts,
        account_label_of(record, attempt),
        attempt.adopted,
    )


def account_label_of(record: CellRecord, attempt: Attempt) -> AccountLabel:
    if attempt.was_done:
        return PRODUCTIVE if attempt.completed and record.declared else ("wasted", SUPERSEDED)
    if attempt.outcome is None:
        return RUNNING
    return ("wasted", attempt.outcome.cause.kind if attempt.outcome.cause else "unknown")


def kind_of_waste(cause: str) -> str:
    """died, superseded, refused or stopped."""
    if cause == REFUSED[1]:
        return cause
    return SUPERSEDED if cause == SUPERSEDED else "stopped" if cause in STOPPED else "died"


def held_seconds(attempt: Attempt, seen: AttemptSnapshot, boot: float, *, over: bool = False) -> float | None:
    """For how long the slots were held; None: its tree still holds them, or may. `over`: that it has ended is sure.

    Where nobody saw the end of its tree: until now; after a reboot until the last sign of it.
    """
    freed = _slots_freed_at(seen)
    if freed is not None:
        seconds = freed - attempt.claimed_boot
    elif not over and _tree_may_live(seen):
        return None
    elif seen.host == "same" or seen.tree_locked or seen.shim_locked:
        seconds = boot - attempt.claimed_boot
    else:
        seconds = _seconds_until_last_sign(attempt, seen)
        if seen.host == "restarted" and _began_in_boot_of_claim(attempt, seen.identity):
            seconds = min(seconds, boot - attempt.claimed_boot)  # a file may be of a clock that jumped
    return max(0.0, seconds - seconds_without_lease(attempt, seen, attempt.claimed_boot + seconds))


def _slots_freed_at(seen: AttemptSnapshot) -> float | None:
    """Boot time at which its reaper saw that nothing was left."""
    if seen.exit is None or (seen.exit.orphans != () and (seen.freed is None or seen.tree_lives)):
        return None
    return max(seen.exit.boot, seen.freed or 0.0)


def _tree_may_live(seen: AttemptSnapshot) -> bool:
    if seen.tree_locked or seen.shim_locked:
        return True  # in whichever container
    return seen.host == "same" and (seen.exit is None or seen.tree_lives)


def _seconds_until_last_sign(attempt: Attempt, seen: AttemptSnapshot) -> float:
    """Files go by the wall clock, which may jump; from the claim to the start boot time tells."""
    least = seen.exit.boot - attempt.claimed_boot if seen.exit is not None else 0.0
    known, at = 0.0, claim_wall_time(attempt)  # so long after the claim the wall clock showed this
    if (identity := seen.identity) is not None:
        same = _began_in_boot_of_claim(attempt, identity)
        known, at = identity.boot - attempt.claimed_boot if same else identity.at - at, identity.at
    later = seen.last_sign - at if seen.last_sign is not None else 0.0
    return max(least, known, known + later)


def _began_in_boot_of_claim(attempt: Attempt, identity: ProcessIdentity | None) -> bool:
    """Whether boot times of the claim and of the start can be compared."""
    return identity is not None and identity.boot_id == attempt.boot_id


def seconds_without_lease(attempt: Attempt, seen: AttemptSnapshot, boot: float) -> float:
    """Of the time before its start, what no lease can explain: a controller died between the claim and the launch."""
    identity = seen.identity
    unknown = seen.started in ("unread", "lost") and identity is None
    if unknown or (identity is not None and identity.boot_id != attempt.boot_id):
        return 0.0
    started = identity.boot if identity is not None else boot
    return max(0.0, started - attempt.claimed_boot - LEASE_GONE_S)


def claim_wall_time(attempt: Attempt) -> float:
    """Wall time of the claim."""
    return seconds_of_iso_time(attempt.claimed_at) or 0.0


def claim_calendar_time(state: CampaignState, attempt: Attempt) -> float:
    return state.clock.place(attempt.boot_id, attempt.claimed_boot, claim_wall_time(attempt))


def adopted_run_start(attempt: Attempt) -> float:
    """When a run that something else produced began, by its files; else when it was taken in."""
    outcome = attempt.outcome
    return outcome.started if outcome and outcome.started is not None else claim_wall_time(attempt)


def _lead_ran_tail(
    attempt: Attempt, outcome: Outcome | None, wall: float, now: LedgerTime, held_s: float | None
) -> tuple[float, float, float]:
    """(lead, ran, tail) in seconds."""
    if outcome is None:
        if held_s is None:
            held_s = max(0.0, now.boot - attempt.claimed_boot) if attempt.boot_id == now.boot_id else 0.0
        return 0.0, held_s, 0.0
    lead = max(0.0, outcome.started - wall) if outcome.started is not None else 0.0
    total = outcome.held_s if outcome.held_s is not None else _held_by_old_log(outcome, lead, wall)
    if outcome.started is None and outcome.duration_s is None:
        return total, 0.0, 0.0  # it never ran
    ran = min(total, outcome.duration_s) if outcome.duration_s is not None else max(0.0, total - lead)
    lead = min(lead, total - ran)
    return lead, ran, total - ran - lead


def _held_by_old_log(outcome: Outcome, lead: float, wall: float) -> float:
    """Of a log that did not say yet how long slots were held."""
    if outcome.duration_s is not None:
        return lead + outcome.duration_s
    return max(0.0, outcome.ended - wall) if outcome.ended is not None else lead


def _recorded_duration(outcome: Outcome | None) -> float:
    return outcome.duration_s or 0.0 if outcome else 0.0
