"""muster plan"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CAMPAIGN_FILE_NAME
from muster.app.campaign.unknown_runs import describe_unknown_runs
from muster.app.overview.plan_preview import PlanPreview, build_plan_preview, plan_as_json
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.status_view import format_grids, format_legend
from muster.faces.cli.common.terminal_output import format_change_lines, paint_text, print_json
from muster.files.campaign_ownership import find_readable_root
from muster.text.phrases import join_phrases, phrase
from muster.text.sentences import end_with_full_stop, format_duration

app = typer.Typer(add_completion=False)
MOST_LISTED = 40


@app.command("plan", epilog="Example:  muster plan --json | jq '.would_run[].cell'")
def plan_command(
    ctx: typer.Context,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """The matrix as a grid, what would run in which order, why the rest would not, hours and money. Starts nothing."""
    root = find_readable_root(folder_of_context(ctx))
    found = build_plan_preview(root)
    if as_json_:
        print_json(plan_as_json(found))
        return 0
    if found.warnings:
        from muster.faces.cli.common.terminal_output import print_mistakes

        print_mistakes(str(root / CAMPAIGN_FILE_NAME), found.warnings)
    for line in format_plan_lines(found):
        print(line)
    return 0


def format_plan_lines(found: PlanPreview) -> Iterator[str]:
    status, seen = found.status, found.outlook
    done = status.counts["DONE"]
    yield paint_text(
        phrase(
            "cli.cells_declared",
            campaign=status.state.campaign.name,
            cells=phrase("count.cell", n=len(status.cells)),
            done=done,
        ),
        "bold",
    )
    yield ""
    yield from format_grids(status)
    yield format_legend(status)
    yield ""
    yield from _format_file_changes(found)
    later = [other for other in seen.others if other.later]
    cells = phrase("count.cell", n=len(status.cells))
    would_run = [phrase("cli.would_run_now", count=len(seen.would_run), cells=cells)]
    would_run += [phrase("cli.cells_follow_later", n=len(later))] if later else []
    yield paint_text(join_phrases("; ", would_run), "bold")
    for item in seen.would_run[:MOST_LISTED]:
        yield f"  {item.position:>3}. {item.cell}: {item.why}"
    if len(seen.would_run) > MOST_LISTED:
        yield "  " + phrase("cli.more_in_plan_json", count=len(seen.would_run) - MOST_LISTED)
    for other in later[:MOST_LISTED]:
        yield f"    {phrase('cli.then_runs', cell=other.cell, reason=other.reason)}"
    if len(later) > MOST_LISTED:
        yield "    " + phrase("cli.and_more", count=len(later) - MOST_LISTED)
    yield from _format_left_out(found)
    if seen.would_run and describe_unknown_runs(status.cells):
        yield paint_text(phrase("cli.unknown_run_keeps_up_from_starting"), "red")
    if found.mistakes:
        yield paint_text(phrase("cli.mistakes_keep_up_from_starting", n=found.mistakes), "red")
    loop = status.state.campaign.loop
    if loop and loop.rounds > 1:
        yield phrase("cli.rounds_at_most", rounds=loop.rounds)
    yield phrase("cli.expected", estimate=_format_estimate(found))
    if found.status.spending:
        from muster.faces.cli.common.status_view import money_line

        yield from money_line(found.status.spending)


def _format_left_out(found: PlanPreview) -> Iterator[str]:
    """What would not run although it is not done: each is named, with the reason."""
    verdicts = {cell.record.cell.id: cell for cell in found.status.cells}
    left = [other for other in found.outlook.others if not other.later and other.verdict != "DONE"]
    if left:
        yield phrase("cli.would_not_run", count=len(left))
    for other in left[:MOST_LISTED]:
        now = verdicts[other.cell]
        said = phrase("cli.and_next", said=end_with_full_stop(now.verdict.reason), next=now.next)
        yield f"  {now.verdict.state} {other.cell}: {said}"
    if len(left) > MOST_LISTED:
        yield "  " + phrase("cli.and_more", count=len(left) - MOST_LISTED)


def _format_file_changes(found: PlanPreview) -> Iterator[str]:
    what = found.changes
    if not what:
        return
    yield phrase("cli.up_would_take_in")
    yield from (f"  {line}" for line in format_change_lines(what))
    if what.code_changed:
        yield "  " + phrase("cli.code_changed")
    yield ""


def _format_estimate(found: PlanPreview) -> str:
    expected = found.estimate
    if expected.slot_seconds is None or expected.wall_seconds is None:
        return phrase("cli.no_estimate", reason=expected.basis)
    if not expected.cells:
        return expected.basis
    clock = format_duration(expected.wall_seconds)
    said = [
        phrase("cli.time_on_slots", duration=clock, slots=phrase("count.slot", n=found.slots)),
        phrase("cli.slot_time", duration=format_duration(expected.slot_seconds)),
        *([_format_price(found)] if expected.money is not None else []),
    ]
    return join_phrases("", (join_phrases(", ", said), " (", expected.basis, ")"))


def _format_price(found: PlanPreview) -> str:
    """What is still to be paid, and how sure that is."""
    money, expected = found.status.state.campaign.money, found.estimate
    currency = money.currency if money else ""
    low, high = expected.money_range or (0.0, 0.0)
    price = f"{expected.money or 0.0:.2f} {currency}"
    return phrase("cli.price_between", price=price, low=low, high=high) if high > low else price
