"""What a campaign has spent and will spend: ledger, budget and forecast, with the expected end of each open attempt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muster.engine.judge.run_evidence import progress_rate
from muster.engine.plan.cell_standing import passes_filter
from muster.engine.plan.scheduling import slots_needed
from muster.ledger.billed_spans import (
    LedgerTime,
    SlotSpan,
    all_slot_spans,
    gpu_share_of_cell,
    held_seconds,
    seconds_without_lease,
    units_per_cell,
)
from muster.ledger.budget_forecast import (
    BudgetState,
    ForecastInterval,
    ProgressRate,
    RemainingWork,
    forecast_remaining_work,
    quick_median,
    remaining_seconds,
)
from muster.ledger.prices_and_accounts import (
    Ledger,
    Prices,
    build_ledger,
    declared_prices,
    first_claim_time,
    rented_stretches,
)
from muster.ledger.running_cost import RunningCost
from muster.model.attempt import AttemptKey
from muster.model.attempt_snapshot import AttemptSnapshot
from muster.model.campaign_state import CampaignState

if TYPE_CHECKING:
    from muster.engine.judge.liveness import WatchOf


@dataclass(frozen=True, slots=True)
class Spending:
    state: CampaignState
    ledger: Ledger
    spans: tuple[SlotSpan, ...]
    prices: Prices | None
    purse: BudgetState | None  # None: no budget is declared
    forecast: ForecastInterval | None  # of all that will have been spent when the matrix is complete
    unknown: tuple[str, ...] = ()  # jobs that the forecast leaves out: none of their cells has finished

    @property
    def spent(self) -> float | None:
        return self.ledger.money.total if self.ledger.money else None


@dataclass(frozen=True, slots=True)
class OpenAttempts:
    """What a look at the open attempts showed."""

    paces: Mapping[AttemptKey, ProgressRate]
    held: Mapping[
        AttemptKey, float
    ]  # of those that have ended and are not recorded yet: for how long they held their slots
    late: Mapping[AttemptKey, float]  # of the others: how long each was claimed without a lease, where it was


NOTHING_RUNS = OpenAttempts({}, {}, {})


def reckon_spending(state: CampaignState, now: LedgerTime, running: OpenAttempts = NOTHING_RUNS) -> Spending:
    found = tuple(all_slot_spans(state, now, {**running.held, **_held_so_far(state, now, running)}))
    declared = declared_prices(state)
    machine = declared is not None and declared.ever("machine")
    on = rented_stretches(state, now, first_claim_time(state)) if machine else []
    book = build_ledger(found, declared, on)
    purse = _budget_state(state, declared, found, now, running)
    coming = _remaining_work(state, found, running)
    return Spending(
        state, book, found, declared, purse, _forecast_total_cost(state, book, declared, coming), coming.unknown
    )


def _held_so_far(state: CampaignState, now: LedgerTime, running: OpenAttempts) -> dict[AttemptKey, float]:
    """How long those that live have held their slots, where that is not simply the time since the claim."""
    return {
        (cell, n): max(0.0, now.boot - state.cells[cell].attempts[n - 1].claimed_boot - late)
        for (cell, n), late in running.late.items()
    }


def completed_run_lengths(found: Sequence[SlotSpan]) -> dict[str, list[float]]:
    """How long completed attempts held their slots, by job."""
    known: dict[str, list[float]] = {}
    for span in found:
        if span.completed:
            known.setdefault(span.job, []).append(span.held_s)
    return known


def remaining_run_seconds(
    known: Mapping[str, Sequence[float]], running: OpenAttempts, state: CampaignState
) -> dict[AttemptKey, float]:
    """How long each running attempt will still run, where that can be told."""
    found = {}
    for key, pace in running.paces.items():
        if key not in running.held:
            siblings = known.get(state.cells[key[0]].cell.job)
            rest = (
                remaining_seconds(pace, quick_median(siblings), max(siblings)) if siblings else remaining_seconds(pace)
            )
            if rest is not None:
                found[key] = rest
    return found


def _budget_state(
    state: CampaignState, declared: Prices | None, found: Sequence[SlotSpan], now: LedgerTime, running: OpenAttempts
) -> BudgetState | None:
    if declared is None or state.campaign.money is None or state.campaign.money.budget is None:
        return None
    till = RunningCost(state, declared, found)
    till.foresee({key: (pace, None) for key, pace in running.paces.items()}, now)
    till.ended(running.held)
    till.begun(running.late)
    return till.purse(now)


def _remaining_work(state: CampaignState, found: Sequence[SlotSpan], running: OpenAttempts) -> RemainingWork:
    left: dict[str, int] = {}
    for record in state.declared:
        if not (record.done or record.open or record.given_up is not None) and passes_filter(record.cell, state.only):
            left[record.cell.job] = left.get(record.cell.job, 0) + 1
    known = completed_run_lengths(found)
    to_come = remaining_run_seconds(known, running, state)
    at_work = [(state.cells[key[0]].cell.job, to_come.get(key)) for key in running.paces if key not in running.held]
    return forecast_remaining_work(
        left, known, at_work, _units_paid_by_job(state, {*left, *(job for job, _ in at_work)})
    )


def _units_paid_by_job(state: CampaignState, jobs: set[str]) -> dict[str, float]:
    """What a cell of each job pays for: billed units, or slots of the machine."""
    campaign, machine = state.campaign, state.campaign.money is not None and state.campaign.money.per == "machine"
    found = {}
    for name in jobs:
        job = state.job(name)
        slots = float(sum(slots_needed(job, has_gpus=campaign.slots.gpus != ())))
        found[name] = slots if machine else units_per_cell(job, campaign) * gpu_share_of_cell(job, campaign)
    return found


def _forecast_total_cost(
    state: CampaignState, book: Ledger, declared: Prices | None, coming: RemainingWork
) -> ForecastInterval | None:
    money = state.campaign.money
    if declared is None or money is None or book.money is None:
        return None
    if coming.cells and coming.unknown and not coming.billed.mid:
        return None  # nothing has finished yet
    price = declared.now(money.per)
    more = coming.billed
    if money.per == "machine":
        used = len({slot for record in state.cells.values() for each in record.attempts for slot in each.slots})
        more = more * (1 / max(1, used))
        more = ForecastInterval(*(max(each, coming.longest_s) for each in (more.low, more.mid, more.high)))
    spent = book.money.total
    return ForecastInterval(spent + more.low * price, spent + more.mid * price, spent + more.high * price)


def spending_as_json(found: Spending | None) -> dict[str, Any] | None:
    """The `money` of `muster status --json`; None: no price is declared."""
    money = found.state.campaign.money if found else None
    accounts = found.ledger.money if found else None
    if found is None or money is None or accounts is None:
        return None
    return {
        "currency": money.currency,
        "spent": round_money(found.spent),
        "productive": round_money(accounts.productive),
        "wasted": round_money(accounts.wasted),
        "idle": round_money(accounts.idle),
        "overhead": round_money(accounts.overhead),
        "running": round_money(accounts.running),
        "forecast": round_money(found.forecast.mid if found.forecast else None),
        "budget": money.budget,
        "level": budget_level_of(found),
    }


def budget_level_of(found: Spending) -> str | None:
    """fine, warn, no_new_start or at_cap; None: there is no budget."""
    purse = found.purse
    if purse is None:
        return None
    left = [each for each in found.state.declared if not (each.done or each.open or each.given_up is not None)]
    jobs = {record.cell.job for record in left}
    return purse.level(refused=any(purse.refuses(job) for job in jobs))


def round_money(amount: float | None) -> float | None:
    return None if amount is None else round(amount, 6)


def measure_running_attempts(
    state: CampaignState, sightings: Mapping[AttemptKey, AttemptSnapshot], watch_of: WatchOf, boot: float
) -> OpenAttempts:
    paces, over, late = {}, {}, {}
    for (cell, n), seen in sightings.items():
        record = state.cells[cell]
        attempt, job = record.attempts[n - 1], state.job(record.cell.job)
        if seen.exit is not None or seen.host != "same":
            seconds = held_seconds(attempt, seen, boot)
            if seconds is not None:
                over[cell, n] = seconds
                continue
        if unleased := seconds_without_lease(attempt, seen, boot):
            late[cell, n] = unleased
        watch = watch_of(attempt, seen, job)
        elapsed = max(0.0, boot - (seen.identity.boot if seen.identity else attempt.claimed_boot))
        step = seen.proof.step if seen.proof else None
        paces[cell, n] = progress_rate(watch.history if watch else None, elapsed, job.steps, step)
    return OpenAttempts(paces, over, late)


def estimate_end_times(state: CampaignState, running: OpenAttempts, wall: float) -> dict[AttemptKey, float]:
    """Wall times, where they can be told."""
    jobs = {state.cells[cell].cell.job for cell, _ in running.paces}
    known: dict[str, list[float]] = {}
    for record in state.cells.values():
        done = record.completed if record.cell.job in jobs else None
        if done and done.outcome and done.outcome.duration_s:
            known.setdefault(record.cell.job, []).append(done.outcome.duration_s)
    return {key: wall + rest for key, rest in remaining_run_seconds(known, running, state).items()}
