"""`muster cost`: the ledger as one object, and what a few more cells would cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muster.acts.money import Spending, lengths, level, rounded
from muster.acts.status import Status
from muster.domain.calendar import UNSEEN, ClockRecord
from muster.ledger.accounts import Accounts
from muster.ledger.forecast import middle
from muster.ledger.idle import going_on, idle_hours
from muster.ledger.prices import HOUR
from muster.ledger.spans import moment, now_of
from muster.ledger.units import asked, share
from muster.ports.store import Event

if TYPE_CHECKING:
    from muster.acts.cost_report import CostSources

_TURNS = {"hold": "hold", "release": "release", "end": "end"}


@dataclass(frozen=True, slots=True)
class Cost:
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


def cost(status: Status, events: Iterable[Event], wall: float) -> Cost:
    found = status.spending
    assert found is not None  # it was asked for
    money = status.state.campaign.money
    free = None
    if money is None or money.per == "gpu":
        now = now_of(status.state, wall, status.boot, status.boot_id)
        free = idle_hours(found.spans, status.state.campaign, going_on(turns(events, status.state.clock), now))
    return Cost(status.as_of, found, free)


def turns(events: Iterable[Event], clock: ClockRecord = UNSEEN) -> list[tuple[float, str]]:
    """When the campaign was made to run and when it was not, on its calendar."""
    found = []
    boot_id = ""  # in which the next decisions were made
    for event in events:
        decision = event.decision
        what = str(decision.data.get("intent")) if decision.kind == "intent" else _TURNS.get(decision.kind)
        boot_id = str(decision.data.get("boot_id", boot_id)) if decision.kind in ("epoch", "clock") else boot_id
        at = moment(decision.at)
        if what and at is not None and not event.void:
            found.append((clock.place(boot_id, decision.boot, at), what))
    return found


def price_of(found: Spending, cells: Sequence[str], slots: int = 1) -> float | None:
    """What running these cells is expected to cost; None: no price, or nobody knows how long they take."""
    state, money = found.state, found.state.campaign.money
    if found.prices is None or money is None:
        return None
    known = lengths(found.spans)
    seconds = 0.0
    for name in cells:
        job = state.job(state.cells[name].cell.job)
        if job.name not in known:
            return None
        units = 1 / max(1, slots) if money.per == "machine" else asked(job, state.campaign) * share(job, state.campaign)
        seconds += middle(known[job.name]) * units
    return seconds * found.prices.now(money.per)


def hours_of(found: Spending, cells: Sequence[str]) -> float | None:
    """Slot hours that running these cells is expected to take."""
    known = lengths(found.spans)
    jobs = [found.state.cells[name].cell.job for name in cells]
    if any(job not in known for job in jobs):
        return None
    return sum(middle(known[job]) for job in jobs) / HOUR


def as_json(found: Cost) -> dict[str, Any]:
    """The object of `muster cost --json`: a contract."""
    spending, book = found.spending, found.spending.ledger
    money, expected = spending.state.campaign.money, spending.forecast
    amounts, hours = _amounts(book.money), _amounts(book.hours)
    return {
        "muster": 1,
        "campaign": spending.state.campaign.name,
        "as_of": found.as_of,
        "currency": money.currency if money else None,
        "per": money.per if money else None,
        "spent": rounded(spending.spent),
        "paid": found.paid,
        "unaccounted": rounded(found.unaccounted),
        **amounts,
        "gpu_hours": rounded(book.gpu_hours),
        "slot_hours": rounded(book.slot_hours),
        "by_cause": {cause: rounded(amount) for cause, amount in (book.money or book.hours).by_cause.items()}
        if book.money
        else dict.fromkeys(book.hours.by_cause),
        "forecast": {"low": rounded(expected.low), "mid": rounded(expected.mid), "high": rounded(expected.high)}
        if expected
        else None,
        "forecast_without": list(spending.unknown),
        "budget": money.budget if money else None,
        "level": level(spending),
        "hours": {
            **hours,
            "by_cause": {cause: rounded(amount) for cause, amount in book.hours.by_cause.items()},
            "free": rounded(found.free_hours),
        },
        "adopted": {
            "runs": book.adopted,
            "hours": rounded(book.adopted_hours),
            "money": rounded(book.adopted_money),
        },
    }


def _amounts(accounts: Accounts | None) -> dict[str, float | None]:
    names = ("productive", "wasted", "idle", "overhead", "running")
    return {name: rounded(getattr(accounts, name)) if accounts else None for name in names}


def report_text(status: Status, events: Sequence[Event], found: Cost, sources: CostSources) -> str:
    """What did it buy? As Markdown, in the campaign's language."""
    from muster.acts.cost_report import cost_facts
    from muster.report.cost_report import cost_markdown

    return cost_markdown(cost_facts(status, events, found, sources))
