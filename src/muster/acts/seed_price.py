"""What one more seed of one config would cost, and what is left to pay for it."""

from __future__ import annotations

from muster.acts.cost import price_of
from muster.acts.money import Spending
from muster.acts.status import Status


def seed_price(status: Status, spending: Spending, slots: int) -> float | None:
    """All cells that one seed takes, priced as one that is known; None: nobody knows how long they take."""
    by_seed: dict[tuple[str, str], list[str]] = {}
    for cell in status.cells:
        names = {axis: value.name for axis, value in cell.record.cell.values}
        if "seed" in names:
            by_seed.setdefault((names.get("config", ""), names["seed"]), []).append(cell.record.cell.id)
    known = spending.state.cells
    groups = sorted(by_seed.items(), key=lambda item: not item[0][0])  # those with a config first
    one = next((cells for _, cells in groups if all(cell in known for cell in cells)), None)
    return price_of(spending, one, slots) if one else None


def money_left(spending: Spending) -> float | None:
    """Of the budget; None: there is none, or nobody knows what was spent."""
    money, spent = spending.state.campaign.money, spending.spent
    budget = money.budget if money else None
    return budget - spent if budget is not None and spent is not None else None
