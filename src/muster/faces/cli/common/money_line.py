"""Money in one line, for `status` and `plan`."""

from __future__ import annotations

from collections.abc import Iterator

from muster.app.campaign.spending import Spending, budget_level_of
from muster.faces.cli.common.terminal_output import paint_text
from muster.text.phrases import phrase
from muster.text.sentences import join_few_names

BUDGET_COLOURS = {"warn": "yellow", "no_new_start": "yellow", "at_cap": "red"}


def money_line(found: Spending) -> Iterator[str]:
    """What was spent and on what, what the rest will cost; nothing where no price is declared."""
    money, accounts = found.state.campaign.money, found.ledger.money
    if money is None or accounts is None:
        return
    spent = f"{accounts.total:.2f} of {money.budget:g}" if money.budget is not None else f"{accounts.total:.2f}"
    parts = [
        f"{name} {amount:.2f}"
        for name, amount in (
            ("productive", accounts.productive),
            ("wasted", accounts.wasted),
            ("idle", accounts.idle),
            ("overhead", accounts.overhead),
            ("running", accounts.running),
        )
        if amount >= 0.005
    ]
    said = phrase("cli.money_spent", spent=spent, currency=money.currency) + (f" ({', '.join(parts)})" if parts else "")
    stands = budget_level_of(found)
    yield paint_text(said + forecast_text(found), BUDGET_COLOURS.get(stands or "", ""))


def forecast_text(found: Spending) -> str:
    expected, unknown = found.forecast, join_few_names(list(found.unknown), 3)
    if expected is None:
        return phrase("cli.no_forecast_yet_no_cell_finished", unknown=unknown) if found.unknown else ""
    if expected.high - (found.spent or 0.0) < 0.005:
        return ""
    left_out = phrase("cli.without_none_finished", unknown=unknown) if found.unknown else ""
    return phrase("cli.expected_all", mid=expected.mid, low=expected.low, high=expected.high, left_out=left_out)
