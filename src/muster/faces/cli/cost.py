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
from muster.faces.cli.common.status_view import ACCOUNT_NAMES, BUDGET_COLOURS, forecast_text, format_spent
from muster.faces.cli.common.terminal_output import display_width, pad_name, paint_text, print_json
from muster.ledger.billed_spans import kind_of_waste
from muster.ledger.prices_and_accounts import Accounts
from muster.text.phrases import phrase
from muster.text.sentences import format_duration

app = typer.Typer(add_completion=False)
ACCOUNT_MEANINGS = {
    "productive": "cli.productive_means",
    "wasted": "cli.wasted_means",
    "idle": "cli.idle_means",
    "overhead": "cli.overhead_means",
    "running": "cli.running_means",
}
KINDS_OF_WASTE = {
    "died": "cli.waste_died",
    "superseded": "cli.waste_superseded",
    "refused": "cli.waste_refused",
    "stopped": "cli.waste_stopped",
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
        print(phrase("cli.report_written", path=written))
    return 0


def cost_lines(found: CampaignCost) -> Iterator[str]:
    spending, book = found.spending, found.spending.ledger
    state = spending.state
    as_of = phrase("cli.as_of", time=found.as_of[11:19])
    yield f"{paint_text(state.campaign.name, 'bold')}: {_cost_headline(found)}   {as_of}"
    yield ""
    yield from _account_table(book.hours, book.money, state.campaign.money.currency if state.campaign.money else "")
    yield from _cost_footnotes(found)


def _cost_headline(found: CampaignCost) -> str:
    money, accounts = found.spending.state.campaign.money, found.spending.ledger.money
    if money is None or accounts is None:
        return phrase("cli.no_price_declared", duration=format_slot_hours(found.spending.ledger.hours.total))
    amount = format_spent(accounts.total, money.budget)
    spent = phrase("cli.spent_so_far", spent=amount, currency=money.currency)
    return paint_text(spent, BUDGET_COLOURS.get(budget_level_of(found.spending) or "", "")) + forecast_text(
        found.spending
    )


def _account_table(time: Accounts, money: Accounts | None, currency: str) -> Iterator[str]:
    def row(name: str, spent: float, amount: float | None, meaning: str) -> str:
        share = f"{spent / time.total * 100:4.0f} %" if time.total else "     "
        paid = f"{amount:>12.2f} {currency}" if amount is not None else ""
        duration = format_slot_hours(spent)
        before = " " * (10 - display_width(duration))
        return f"  {pad_name(name, 14)}{before}{duration}{share:>8}{paid}   {meaning}"

    for name, code in ACCOUNT_MEANINGS.items():
        meaning, title = phrase(code), phrase(ACCOUNT_NAMES[name])
        amount = getattr(money, name) if money else None
        if getattr(time, name) or amount or name in ("productive", "wasted"):
            yield row(title, getattr(time, name), amount, meaning)
        if name == "wasted":
            for cause, lost in sorted(time.by_cause.items(), key=lambda item: -item[1]):
                kind = phrase(KINDS_OF_WASTE[kind_of_waste(cause)])
                yield row(f"  {cause}", lost, money.by_cause.get(cause, 0.0) if money else None, kind)


def _cost_footnotes(found: CampaignCost) -> Iterator[str]:
    book, money = found.spending.ledger, found.spending.state.campaign.money
    currency = money.currency if money else ""
    yield ""
    if found.paid is not None:
        more = (found.spending.spent or 0.0) - found.paid
        explained = (
            phrase("cli.more_were_spent", amount=more, currency=currency)
            if more >= 0.005
            else phrase("cli.spans_explain_all")
        )
        if found.unaccounted and found.unaccounted >= 0.005:
            explained = phrase("cli.unaccounted_for", amount=found.unaccounted, currency=currency)
        yield f"  {phrase('cli.paid_and_explained', paid=found.paid, currency=currency, explained=explained)}"
    if book.adopted:
        runs, duration = phrase("count.run", n=book.adopted), format_slot_hours(book.adopted_hours)
        yield f"  {phrase('cli.adopted_runs_took', runs=runs, duration=duration)}"
    if found.free_hours is not None and found.free_hours >= 0.01:
        yield f"  {phrase('cli.slots_stood_free', duration=format_slot_hours(found.free_hours))}"
    if book.gpu_hours:
        yield f"  {phrase('cli.of_gpus', duration=format_slot_hours(book.gpu_hours))}"


def format_slot_hours(value: float) -> str:
    return format_duration(value * 3600)
