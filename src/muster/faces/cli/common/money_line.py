"""Money in one line, for `status` and `plan`."""

from __future__ import annotations

from collections.abc import Iterator

from muster.app.campaign.spending import Spending, budget_level_of
from muster.faces.cli.common.terminal_output import paint_text
from muster.text.phrases import join_phrases, phrase
from muster.text.sentences import join_few_names

ACCOUNT_NAMES = {
    "productive": "cli.account_productive",
    "wasted": "cli.account_wasted",
    "idle": "cli.account_idle",
    "overhead": "cli.account_overhead",
    "running": "cli.account_running",
}
BUDGET_COLOURS = {"warn": "yellow", "no_new_start": "yellow", "at_cap": "red"}


def money_line(found: Spending) -> Iterator[str]:
    """What was spent and on what, what the rest will cost; nothing where no price is declared."""
    money, accounts = found.state.campaign.money, found.ledger.money
    if money is None or accounts is None:
        return
    parts = [
        join_phrases(" ", (phrase(code), f"{amount:.2f}"))
        for account, code in ACCOUNT_NAMES.items()
        if (amount := getattr(accounts, account)) >= 0.005
    ]
    said = [phrase("cli.money_spent", spent=format_spent(accounts.total, money.budget), currency=money.currency)]
    said += [" (", join_phrases(", ", parts), ")"] if parts else []
    line = join_phrases("", (*said, forecast_text(found)))
    yield paint_text(line, BUDGET_COLOURS.get(budget_level_of(found) or "", ""))


def format_spent(spent: float, budget: float | None) -> str:
    if budget is None:
        return f"{spent:.2f}"
    return phrase("cli.spent_of_budget", spent=f"{spent:.2f}", budget=f"{budget:g}")


def forecast_text(found: Spending) -> str:
    expected, unknown = found.forecast, join_few_names(list(found.unknown), 3)
    if expected is None:
        return phrase("cli.no_forecast_yet", jobs=unknown) if found.unknown else ""
    if expected.high - (found.spent or 0.0) < 0.005:
        return ""
    left_out = phrase("cli.forecast_leaves_out", jobs=unknown) if found.unknown else ""
    return phrase("cli.expected_in_all", mid=expected.mid, low=expected.low, high=expected.high, left_out=left_out)
