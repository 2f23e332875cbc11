"""The cost of a campaign as one object for `muster cost`, `status` and reports: the ledger so far, and the price of
one more seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from muster.app.campaign.campaign_status import Status
from muster.app.campaign.spending import Spending, budget_level_of, completed_run_lengths, round_money
from muster.engine.ports.store import LoggedDecision
from muster.ledger.billed_spans import gpu_share_of_cell, ledger_time_of, units_per_cell
from muster.ledger.budget_forecast import quick_median
from muster.ledger.prices_and_accounts import HOUR_S, Accounts, campaign_running_stretches, idle_slot_hours
from muster.model.calendar import NO_CLOCK_RECORD, ClockRecord, seconds_of_iso_time

_TURN_OF_DECISION = {"hold": "hold", "release": "release", "end": "end"}


@dataclass(frozen=True, slots=True)
class CampaignCost:
    as_of: str
    spending: Spending
    free_hours: float | None  # of slots that stood free while the campaign ran, not billed; None: the machine is paid

    @property
    def paid(self) -> float | None:
        money = self.spending.state.campaign.money
        return money.paid if money else None

    @property
    def unaccounted(self) -> float | None:
        """What was paid and no span explains."""
        spent = self.spending.spent
        return None if self.paid is None or spent is None else max(0.0, self.paid - spent)


def reckon_cost(status: Status, events: Iterable[LoggedDecision], wall: float) -> CampaignCost:
    found = status.spending
    assert found is not None  # it was asked for
    money = status.state.campaign.money
    free = None
    if money is None or money.per == "gpu":
        now = ledger_time_of(status.state, wall, status.boot, status.boot_id)
        free = idle_slot_hours(
            found.spans,
            status.state.campaign,
            campaign_running_stretches(running_turns(events, status.state.clock), now),
        )
    return CampaignCost(status.as_of, found, free)


def running_turns(events: Iterable[LoggedDecision], clock: ClockRecord = NO_CLOCK_RECORD) -> list[tuple[float, str]]:
    """When the campaign was made to run and when it was not, on its calendar."""
    found = []
    boot_id = ""  # in which the next decisions were made
    for event in events:
        decision = event.decision
        what = str(decision.data.get("intent")) if decision.kind == "intent" else _TURN_OF_DECISION.get(decision.kind)
        boot_id = str(decision.data.get("boot_id", boot_id)) if decision.kind in ("epoch", "clock") else boot_id
        at = seconds_of_iso_time(decision.at)
        if what and at is not None and not event.void:
            found.append((clock.place(boot_id, decision.boot, at), what))
    return found


def expected_price(found: Spending, cells: Sequence[str], slots: int = 1) -> float | None:
    """What running these cells is expected to cost; None: no price, or nobody knows how long they take."""
    state, money = found.state, found.state.campaign.money
    if found.prices is None or money is None:
        return None
    known = completed_run_lengths(found.spans)
    seconds = 0.0
    for name in cells:
        job = state.job(state.cells[name].cell.job)
        if job.name not in known:
            return None
        units = (
            1 / max(1, slots)
            if money.per == "machine"
            else units_per_cell(job, state.campaign) * gpu_share_of_cell(job, state.campaign)
        )
        seconds += quick_median(known[job.name]) * units
    return seconds * found.prices.now(money.per)


def expected_slot_hours(found: Spending, cells: Sequence[str]) -> float | None:
    """Slot hours that running these cells is expected to take."""
    known = completed_run_lengths(found.spans)
    jobs = [found.state.cells[name].cell.job for name in cells]
    if any(job not in known for job in jobs):
        return None
    return sum(quick_median(known[job]) for job in jobs) / HOUR_S


def cost_as_json(found: CampaignCost) -> dict[str, Any]:
    """The object of `muster cost --json`: a contract."""
    spending, book = found.spending, found.spending.ledger
    money, expected = spending.state.campaign.money, spending.forecast
    amounts, hours = _amounts_as_json(book.money), _amounts_as_json(book.hours)
    return {
        "muster": 1,
        "campaign": spending.state.campaign.name,
        "as_of": found.as_of,
        "currency": money.currency if money else None,
        "per": money.per if money else None,
        "spent": round_money(spending.spent),
        "paid": found.paid,
        "unaccounted": round_money(found.unaccounted),
        **amounts,
        "gpu_hours": round_money(book.gpu_hours),
        "slot_hours": round_money(book.slot_hours),
        "by_cause": {cause: round_money(amount) for cause, amount in (book.money or book.hours).by_cause.items()}
        if book.money
        else dict.fromkeys(book.hours.by_cause),
        "forecast": {
            "low": round_money(expected.low),
            "mid": round_money(expected.mid),
            "high": round_money(expected.high),
        }
        if expected
        else None,
        "forecast_without": list(spending.unknown),
        "budget": money.budget if money else None,
        "level": budget_level_of(spending),
        "hours": {
            **hours,
            "by_cause": {cause: round_money(amount) for cause, amount in book.hours.by_cause.items()},
            "free": round_money(found.free_hours),
        },
        "adopted": {
            "runs": book.adopted,
            "hours": round_money(book.adopted_hours),
            "money": round_money(book.adopted_money),
        },
    }


def _amounts_as_json(accounts: Accounts | None) -> dict[str, float | None]:
    names = ("productive", "wasted", "idle", "overhead", "running")
    return {name: round_money(getattr(accounts, name)) if accounts else None for name in names}


def price_of_next_seed(status: Status, spending: Spending, slots: int) -> float | None:
    """All cells that one seed takes, priced as one that is known; None: nobody knows how long they take."""
    by_seed: dict[tuple[str, str], list[str]] = {}
    for cell in status.cells:
        names = cell.record.cell.names
        if "seed" in names:
            by_seed.setdefault((names.get("config", ""), names["seed"]), []).append(cell.record.cell.id)
    known = spending.state.cells
    groups = sorted(by_seed.items(), key=lambda item: not item[0][0])  # those with a config first
    one = next((cells for _, cells in groups if all(cell in known for cell in cells)), None)
    return expected_price(spending, one, slots) if one else None


def budget_left(spending: Spending) -> float | None:
    """Of the budget; None: there is none, or nobody knows what was spent."""
    money, spent = spending.state.campaign.money, spending.spent
    budget = money.budget if money else None
    return budget - spent if budget is not None and spent is not None else None
