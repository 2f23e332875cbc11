"""Which startable cell goes first (the one with the longest remaining chain), how many slots it takes and which, and
when failures belong to a slot or the machine and not to the cells.
"""

from __future__ import annotations

import statistics
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from muster.engine.plan.retry import could_not_be_executed
from muster.ledger.billed_spans import gpu_share_of_cell, units_per_cell
from muster.ledger.budget_forecast import ForecastInterval, forecast_remaining_work
from muster.model.attempt import Attempt, CellRecord
from muster.model.campaign import Campaign, Job
from muster.model.campaign_state import CampaignState
from muster.model.verdict import VerdictState
from muster.text.phrases import phrase

UNKNOWN_DURATION_S = 60.0  # only the order of jobs depends on it, never a figure that is shown


@dataclass(frozen=True, slots=True)
class RemainingEstimate:
    cells: int  # cells still to run
    slot_seconds: float | None  # of slots; None: no sibling has finished yet
    wall_seconds: float | None
    money: float | None
    basis: str  # where it comes from, in words
    money_range: tuple[float, float] | None = None  # nine times in ten between these


def median_durations(records: Sequence[CellRecord]) -> dict[str, float]:
    """Median duration per job, from the attempts that were completed."""
    return {job: statistics.median(values) for job, values in durations_by_job(records).items()}


def durations_by_job(records: Sequence[CellRecord]) -> dict[str, list[float]]:
    known: dict[str, list[float]] = {}
    for record in records:
        attempt = record.completed
        if attempt and attempt.outcome and attempt.outcome.duration_s:
            known.setdefault(record.cell.job, []).append(attempt.outcome.duration_s)
    return known


def chain_lengths(campaign: Campaign, known: Mapping[str, float]) -> dict[str, float]:
    """Seconds from the start of a job's cell to the end of the longest chain that waits for it."""
    followers = {job.name: [other.name for other in campaign.jobs if job.name in other.needs] for job in campaign.jobs}
    lengths: dict[str, float] = {}

    def length(name: str) -> float:
        if name not in lengths:
            behind = max((length(follower) for follower in followers[name]), default=0.0)
            lengths[name] = known.get(name, UNKNOWN_DURATION_S) + behind
        return lengths[name]

    for job in campaign.jobs:
        length(job.name)
    return lengths


def sort_by_chain_length(
    records: Sequence[CellRecord], campaign: Campaign, known: Mapping[str, float]
) -> list[CellRecord]:
    lengths = chain_lengths(campaign, known)
    return sorted(records, key=lambda record: (-lengths[record.cell.job], record.position))


def estimate_remaining(state: CampaignState, slots: int) -> RemainingEstimate:
    """Hours and money for what is not done, from the durations of siblings."""
    todo = [record for record in state.declared if not record.done and record.given_up is None]
    each = durations_by_job(state.declared)
    known = {job: statistics.median(values) for job, values in each.items()}
    missing = sorted({record.cell.job for record in todo} - set(known))
    if not todo:
        return RemainingEstimate(0, 0.0, 0.0, 0.0, phrase("plan.nothing_left_run"))
    if missing:
        return RemainingEstimate(
            len(todo), None, None, None, phrase("plan.no_cell_finished_yet", missing=", ".join(missing))
        )
    seconds = sum(known[record.cell.job] for record in todo)
    wall = seconds / max(1, slots)
    count = sum(1 for record in state.declared if record.done)
    basis = phrase("plan.median_finished_cell", count=count)
    money = _estimate_money(state.campaign, Counter(record.cell.job for record in todo), each, slots)
    span = (money.low, money.high) if money else None
    return RemainingEstimate(len(todo), seconds, wall, money.mid if money else None, basis, span)


def _estimate_money(
    campaign: Campaign, left: Mapping[str, int], known: Mapping[str, Sequence[float]], slots: int
) -> ForecastInterval | None:
    if campaign.money is None or not campaign.money.price:
        return None
    machine = campaign.money.per == "machine"
    jobs = {name: campaign.job(name) for name in left}
    units = {
        name: 1.0 / max(1, slots) if machine else units_per_cell(job, campaign) * gpu_share_of_cell(job, campaign)
        for name, job in jobs.items()
    }
    return forecast_remaining_work(left, known, (), units).billed * (campaign.money.price / 3600)


def slots_needed(job: Job, *, has_gpus: bool) -> tuple[int, int]:
    """(gpu slots, cpu slots). By default one slot of the campaign's kind; a job without GPUs takes one of CPUs."""
    return job.uses.take(has_gpus=has_gpus)


def choose_slots(wanted: tuple[int, int], gpu_slots: Sequence[str], cpu_slots: Sequence[str]) -> tuple[str, ...] | None:
    """Free slots for it, GPUs first; None: not enough are free. Several GPU slots come from different GPUs."""
    gpus: list[str] = []
    for slot in gpu_slots:
        if len(gpus) < wanted[0] and all(slot.split(".")[0] != other.split(".")[0] for other in gpus):
            gpus.append(slot)
    if len(gpus) < wanted[0] or len(cpu_slots) < wanted[1]:
        return None
    return (*gpus, *cpu_slots[: wanted[1]])


RECENT_ATTEMPTS = 64  # ended attempts that are looked back at
FAILURES_IN_A_ROW = 5  # cells that die one after the other, with none that succeeded in between
FAILURES_ON_A_SLOT = 3
# what commands fail of by themselves; a kill, a reboot or a stop says nothing about slot and machine
FAILURE_CAUSES = frozenset({"exit_code", "exception", "cuda_oom", "disk_full", "non_finite", "early_exit", "gpu_lost"})


def why_everything_fails(recent: Sequence[Attempt]) -> str | None:
    """Why nothing more should start, if the newest attempts of different cells have all died. Newest last."""
    cells: list[str] = []
    for attempt in reversed(recent):
        if not _died_by_itself(attempt):
            break
        if attempt.cell not in cells:
            cells.append(attempt.cell)
        if len(cells) == FAILURES_IN_A_ROW:
            cause = attempt.outcome.cause if attempt.outcome else None
            died = phrase("plan.last_cells_all_died_among_them", failures_in_a_row=FAILURES_IN_A_ROW, cause=cause)
            return phrase("plan.fix_then_release_up_if_you_fixed", died=died)
    return None


def find_failing_slots(recent: Sequence[Attempt]) -> dict[str, str]:
    """Slots to leave alone: a GPU that was lost, or one where all dies while the same work succeeds elsewhere."""
    if all(attempt.was_done for attempt in recent):
        return {}
    newest: dict[str, list[Attempt]] = {}
    successes = 0
    elsewhere: dict[str, int] = {}  # successes seen since the slot's last but three
    for attempt in reversed(recent):
        done = attempt.was_done
        successes += done
        for slot in attempt.slots:
            seen = newest.setdefault(slot, [])
            if len(seen) < FAILURES_ON_A_SLOT:
                seen.append(attempt)
                elsewhere[slot] = successes
    found: dict[str, str] = {}
    for slot, attempts in newest.items():
        lost = attempts[0].outcome and attempts[0].outcome.cause and attempts[0].outcome.cause.kind == "gpu_lost"
        if lost:
            found.update(
                {
                    name: phrase("plan.gpu_lost_under", cell=attempts[0].cell)
                    for name in newest
                    if _gpu_of_slot(name) == _gpu_of_slot(slot)
                }
            )
        elif len(attempts) == FAILURES_ON_A_SLOT and all(map(_died_by_itself, attempts)) and elsewhere[slot] >= 2:
            found[slot] = phrase("plan.last_attempts_died_while_others", failures_on_a_slot=FAILURES_ON_A_SLOT)
    return found


def _gpu_of_slot(slot: str) -> str:
    return slot.partition(".")[0]


def recently_ended_attempts(state: CampaignState) -> list[Attempt]:
    """Attempts that Muster ran and that have ended since the last release, newest last."""
    ended = [
        attempt for record in state.cells.values() for attempt in record.attempts if counts_for_trust(attempt, state)
    ]
    return sorted(ended, key=lambda attempt: attempt.outcome.order if attempt.outcome else 0)[-RECENT_ATTEMPTS:]


def counts_for_trust(attempt: Attempt, state: CampaignState) -> bool:
    return attempt.outcome is not None and not attempt.adopted and attempt.outcome.order > state.forgiven


def _died_by_itself(attempt: Attempt) -> bool:
    outcome = attempt.outcome
    if attempt.was_done or outcome is None or outcome.verdict != VerdictState.DEAD:
        return False
    cause = outcome.cause
    if cause is None:
        return False
    return could_not_be_executed(outcome) or cause.kind in FAILURE_CAUSES


class CellQueue:
    def __init__(self, state: CampaignState) -> None:
        self.state = state
        self.needs = state.needs
        self._open = {attempt.key: attempt for attempt in state.open_attempts}
        self.recent = deque(recently_ended_attempts(state), maxlen=RECENT_ATTEMPTS)
        self._known_jobs: set[str] = set()
        self._order()

    def _order(self) -> None:
        left = [record for record in self.state.declared if not record.done and record.given_up is None]
        known = median_durations(self.state.declared)
        self._known_jobs = set(known)
        self._cells = {record.cell.id: record for record in sort_by_chain_length(left, self.state.campaign, known)}

    @property
    def cells(self) -> Sequence[CellRecord]:
        return list(self._cells.values())

    @property
    def open(self) -> Sequence[Attempt]:
        return list(self._open.values())

    def update(self, records: Iterable[CellRecord]) -> None:
        for record in records:
            self.state.cells[record.cell.id] = record
            for attempt in record.attempts:
                if self._open.pop(attempt.key, None) and counts_for_trust(attempt, self.state):
                    self.recent.append(attempt)
            if record.open:
                self._open[record.open.key] = record.open
            self._file(record)

    def _file(self, record: CellRecord) -> None:
        cell = record.cell.id
        if record.done or record.given_up is not None or not record.declared:
            self._cells.pop(cell, None)
            if record.done and record.cell.job not in self._known_jobs:
                self._order()  # the first duration of a job is known: chains can be compared now
        elif cell in self._cells:
            self._cells[cell] = record
        else:
            self._order()
