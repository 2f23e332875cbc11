"""What a campaign has spent and will spend, for every command that tells it: the ledger, the purse, a forecast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muster.domain.state import CampaignState
from muster.ledger.accounts import Ledger, ledger
from muster.ledger.budget import Purse
from muster.ledger.forecast import Ahead, Interval, Pace, ahead, middle, rest_s
from muster.ledger.prices import Prices, first_claim, prices, rented
from muster.ledger.spans import Now, Span, spans
from muster.ledger.till import Till
from muster.ledger.units import asked, share
from muster.plan.slots import need
from muster.plan.standing import wanted

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Spending:
    state: CampaignState
    ledger: Ledger
    spans: tuple[Span, ...]
    prices: Prices | None
    purse: Purse | None  # None: no budget is declared
    forecast: Interval | None  # of all that will have been spent when the matrix is complete
    unknown: tuple[str, ...] = ()  # jobs that the forecast leaves out: none of their cells has finished

    @property
    def spent(self) -> float | None:
        return self.ledger.money.total if self.ledger.money else None


@dataclass(frozen=True, slots=True)
class Running:
    """What a look at the open attempts showed."""

    paces: Mapping[Key, Pace]
    held: Mapping[Key, float]  # of those that have ended and are not recorded yet: for how long they held their slots
    late: Mapping[Key, float]  # of the others: how long each was claimed without a lease, where it was


NOTHING_RUNS = Running({}, {}, {})


def spending(state: CampaignState, now: Now, running: Running = NOTHING_RUNS) -> Spending:
    found = tuple(spans(state, now, {**running.held, **_so_far(state, now, running)}))
    declared = prices(state)
    machine = declared is not None and declared.ever("machine")
    on = rented(state, now, first_claim(state)) if machine else []
    book = ledger(found, declared, on)
    purse = _purse(state, declared, found, now, running)
    coming = _ahead(state, found, running)
    return Spending(state, book, found, declared, purse, _forecast(state, book, declared, coming), coming.unknown)


def _so_far(state: CampaignState, now: Now, running: Running) -> dict[Key, float]:
    """How long those that live have held their slots, where that is not simply the time since the claim."""
    return {
        (cell, n): max(0.0, now.boot - state.cells[cell].attempts[n - 1].claimed_boot - late)
        for (cell, n), late in running.late.items()
    }


def lengths(found: Sequence[Span]) -> dict[str, list[float]]:
    """How long completed attempts held their slots, by job."""
    known: dict[str, list[float]] = {}
    for span in found:
        if span.completed:
            known.setdefault(span.job, []).append(span.held_s)
    return known


def rests(known: Mapping[str, Sequence[float]], running: Running, state: CampaignState) -> dict[Key, float]:
    """How long each running attempt will still run, where that can be told."""
    found = {}
    for key, pace in running.paces.items():
        if key not in running.held:
            siblings = known.get(state.cells[key[0]].cell.job)
            rest = rest_s(pace, middle(siblings), max(siblings)) if siblings else rest_s(pace)
            if rest is not None:
                found[key] = rest
    return found


def _purse(
    state: CampaignState, declared: Prices | None, found: Sequence[Span], now: Now, running: Running
) -> Purse | None:
    if declared is None or state.campaign.money is None or state.campaign.money.budget is None:
        return None
    till = Till(state, declared, found)
    till.foresee({key: (pace, None) for key, pace in running.paces.items()}, now)
    till.ended(running.held)
    till.begun(running.late)
    return till.purse(now)


def _ahead(state: CampaignState, found: Sequence[Span], running: Running) -> Ahead:
    left: dict[str, int] = {}
    for record in state.declared:
        if not (record.done or record.open or record.given_up is not None) and wanted(record.cell, state.only):
            left[record.cell.job] = left.get(record.cell.job, 0) + 1
    known = lengths(found)
    to_come = rests(known, running, state)
    at_work = [(state.cells[key[0]].cell.job, to_come.get(key)) for key in running.paces if key not in running.held]
    return ahead(left, known, at_work, _pays(state, {*left, *(job for job, _ in at_work)}))


def _pays(state: CampaignState, jobs: set[str]) -> dict[str, float]:
    """What a cell of each job pays for: billed units, or slots of the machine."""
    campaign, machine = state.campaign, state.campaign.money is not None and state.campaign.money.per == "machine"
    found = {}
    for name in jobs:
        job = state.job(name)
        slots = float(sum(need(job, has_gpus=campaign.slots.gpus != ())))
        found[name] = slots if machine else asked(job, campaign) * share(job, campaign)
    return found


def _forecast(state: CampaignState, book: Ledger, declared: Prices | None, coming: Ahead) -> Interval | None:
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
        more = Interval(*(max(each, coming.longest_s) for each in (more.low, more.mid, more.high)))
    spent = book.money.total
    return Interval(spent + more.low * price, spent + more.mid * price, spent + more.high * price)


def status_json(found: Spending | None) -> dict[str, Any] | None:
    """The `money` of `muster status --json`; None: no price is declared."""
    money = found.state.campaign.money if found else None
    accounts = found.ledger.money if found else None
    if found is None or money is None or accounts is None:
        return None
    return {
        "currency": money.currency,
        "spent": rounded(found.spent),
        "productive": rounded(accounts.productive),
        "wasted": rounded(accounts.wasted),
        "idle": rounded(accounts.idle),
        "overhead": rounded(accounts.overhead),
        "running": rounded(accounts.running),
        "forecast": rounded(found.forecast.mid if found.forecast else None),
        "budget": money.budget,
        "level": level(found),
    }


def level(found: Spending) -> str | None:
    """fine, warn, no_new_start or at_cap; None: there is no budget."""
    purse = found.purse
    if purse is None:
        return None
    left = [each for each in found.state.declared if not (each.done or each.open or each.given_up is not None)]
    jobs = {record.cell.job for record in left}
    return purse.level(refused=any(purse.refuses(job) for job in jobs))


def rounded(amount: float | None) -> float | None:
    return None if amount is None else round(amount, 6)
