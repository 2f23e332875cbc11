"""muster cost"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from muster.app.campaign.campaign_cost import CampaignCost, cost_as_json
from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.spending import budget_level_of
from muster.app.facts.stamp_basis import reckon_open_campaign
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.money_line import BUDGET_COLOURS, forecast_text
from muster.faces.cli.common.terminal_output import paint_text, print_json
from muster.ledger.billed_spans import kind_of_waste
from muster.ledger.prices_and_accounts import Accounts
from muster.text.phrases import phrase
from muster.text.sentences import format_duration

app = typer.Typer(add_completion=False)
ACCOUNT_MEANINGS = {
    "productive": "ended in a DONE that is used",
    "wasted": "died, superseded or stopped",
    "idle": "paid for, and nothing ran",
    "overhead": "slots held before the command ran and after its end",
    "running": "not decided yet",
}


@app.command("cost", epilog="Example:  muster cost --json | jq '{spent, unaccounted, by_cause}'")
def cost_command(
    ctx: typer.Context,
    report: Annotated[bool, typer.Option("--report", help="Write reports/cost.md: what the money bought.")] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """The ledger: what every slot-second was spent on, what it cost, what the rest will cost."""
    desk = CampaignHandle.open(folder_of_context(ctx))
    if report:
        desk.refuse_stranger()
    status, events, found = reckon_open_campaign(desk)
    written = None
    if report:
        from muster.app.money.gather_cost import write_cost_report

        written = str(write_cost_report(desk, status, events, found))
    if as_json_:
        print_json(cost_as_json(found) | ({"report": written} if written else {}))
        return 0
    for line in cost_lines(found):
        print(line)
    if written:
        print(f"written: {written}")
    return 0


def cost_lines(found: CampaignCost) -> Iterator[str]:
    spending, book = found.spending, found.spending.ledger
    state = spending.state
    yield phrase(
        "cli.as_of_2",
        paint_text=paint_text(state.campaign.name, "bold"),
        cost_headline=_cost_headline(found),
        as_of=found.as_of[11:19],
    )
    yield ""
    yield from _account_table(book.hours, book.money, state.campaign.money.currency if state.campaign.money else "")
    yield from _cost_footnotes(found)


def _cost_headline(found: CampaignCost) -> str:
    money, accounts = found.spending.state.campaign.money, found.spending.ledger.money
    if money is None or accounts is None:
        return phrase("cli.no_price_declared", slot_hours=format_slot_hours(found.spending.ledger.hours.total))
    of = f" of {money.budget:g}" if money.budget is not None else ""
    spent = f"{accounts.total:.2f}{of} {money.currency} spent"
    return paint_text(spent, BUDGET_COLOURS.get(budget_level_of(found.spending) or "", "")) + forecast_text(
        found.spending
    )


def _account_table(time: Accounts, money: Accounts | None, currency: str) -> Iterator[str]:
    def row(name: str, spent: float, amount: float | None, meaning: str) -> str:
        share = f"{spent / time.total * 100:4.0f} %" if time.total else "     "
        paid = f"{amount:>12.2f} {currency}" if amount is not None else ""
        return f"  {name:<14}{format_slot_hours(spent):>10}{share:>8}{paid}   {meaning}"

    for name, meaning in ACCOUNT_MEANINGS.items():
        amount = getattr(money, name) if money else None
        if getattr(time, name) or amount or name in ("productive", "wasted"):
            yield row(name, getattr(time, name), amount, meaning)
        if name == "wasted":
            for cause, lost in sorted(time.by_cause.items(), key=lambda item: -item[1]):
                yield row(f"  {cause}", lost, money.by_cause.get(cause, 0.0) if money else None, kind_of_waste(cause))


def _cost_footnotes(found: CampaignCost) -> Iterator[str]:
    book, money = found.spending.ledger, found.spending.state.campaign.money
    currency = money.currency if money else ""
    yield ""
    if found.paid is not None:
        more = (found.spending.spent or 0.0) - found.paid
        explained = (
            phrase("cli.more_were_spent", more=more, currency=currency)
            if more >= 0.005
            else phrase("cli.explained_spans_all")
        )
        if found.unaccounted and found.unaccounted >= 0.005:
            explained = phrase(
                "cli.unaccounted_no_span_explains_them", unaccounted=found.unaccounted, currency=currency
            )
        yield f"  paid {found.paid:g} {currency}: {explained}"
    if book.adopted:
        yield (
            phrase(
                "cli.adopted_times_their_files",
                count=phrase("count.run", n=book.adopted),
                slot_hours=format_slot_hours(book.adopted_hours),
            )
        )
    if found.free_hours is not None and found.free_hours >= 0.01:
        yield phrase("cli.slots_stood_free_while_campaign_ran", slot_hours=format_slot_hours(found.free_hours))
    if book.gpu_hours:
        yield phrase("cli.gpus", slot_hours=format_slot_hours(book.gpu_hours))


def format_slot_hours(value: float) -> str:
    return format_duration(value * 3600)
