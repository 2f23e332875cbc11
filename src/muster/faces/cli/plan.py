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
from muster.text.phrases import phrase
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
            "cli.declared_done",
            name=status.state.campaign.name,
            count=phrase("count.cell", n=len(status.cells)),
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
    follows = "follows" if len(later) == 1 else "follow"
    more = phrase("cli.more_when_what_they_need_done", later=len(later), follows=follows) if later else ""
    yield paint_text(
        phrase(
            "cli.would_run_now",
            would_run=len(seen.would_run),
            count=phrase("count.cell", n=len(status.cells)),
            more=more,
        ),
        "bold",
    )
    for item in seen.would_run[:MOST_LISTED]:
        yield f"  {item.position:>3}. {item.cell}: {item.why}"
    if len(seen.would_run) > MOST_LISTED:
        yield phrase("cli.more_plan_json_them_all", would_run=len(seen.would_run) - MOST_LISTED)
    for other in later[:MOST_LISTED]:
        yield f"    then {other.cell}: {other.reason}"
    if len(later) > MOST_LISTED:
        yield phrase("cli.more_2", later=len(later) - MOST_LISTED)
    yield from _format_left_out(found)
    if seen.would_run and describe_unknown_runs(status.cells):
        told = phrase("cli.up_starts_nothing_while_such_run_lives")
        yield paint_text(phrase("cli.up_only_axis_value_starts_other_cells", told=told), "red")
    if found.mistakes:
        told = f"{phrase('count.mistake', n=found.mistakes)} that {'keeps' if found.mistakes == 1 else 'keep'}"
        yield paint_text(phrase("cli.check_finds_up_from_starting_any", told=told), "red")
    loop = status.state.campaign.loop
    if loop and loop.rounds > 1:
        yield phrase("cli.rounds_most_what_each_further_one_runs", rounds=loop.rounds)
    yield f"expected: {_format_estimate(found)}"
    if found.status.spending:
        from muster.faces.cli.common.money_line import money_line

        yield from money_line(found.status.spending)


def _format_left_out(found: PlanPreview) -> Iterator[str]:
    """What would not run although it is not done: each is named, with the reason."""
    verdicts = {cell.record.cell.id: cell for cell in found.status.cells}
    left = [other for other in found.outlook.others if not other.later and other.verdict != "DONE"]
    if left:
        yield phrase("cli.would_not_run", left=len(left))
    for other in left[:MOST_LISTED]:
        now = verdicts[other.cell]
        yield f"  {now.verdict.state} {other.cell}: {end_with_full_stop(now.verdict.reason)} Next: {now.next}"
    if len(left) > MOST_LISTED:
        yield phrase("cli.more", left=len(left) - MOST_LISTED)


def _format_file_changes(found: PlanPreview) -> Iterator[str]:
    what = found.changes
    if not what:
        return
    yield phrase("cli.up_would_take_what_changed_since_last")
    yield from (f"  {line}" for line in format_change_lines(what))
    if what.code_changed:
        yield phrase("cli.code_changed")
    yield ""


def _format_estimate(found: PlanPreview) -> str:
    expected = found.estimate
    if expected.slot_seconds is None or expected.wall_seconds is None:
        return f"unknown: {expected.basis}"
    if not expected.cells:
        return expected.basis
    price = f", {_format_price(found)}" if expected.money is not None else ""
    clock = f"{format_duration(expected.wall_seconds)} on {phrase('count.slot', n=found.slots)}"
    return phrase(
        "cli.slot_time", clock=clock, duration=format_duration(expected.slot_seconds), price=price, basis=expected.basis
    )


def _format_price(found: PlanPreview) -> str:
    """What is still to be paid, and how sure that is."""
    money, expected = found.status.state.campaign.money, found.estimate
    currency = money.currency if money else ""
    low, high = expected.money_range or (0.0, 0.0)
    between = f" ({low:.2f} to {high:.2f})" if high > low else ""
    return f"{expected.money or 0.0:.2f} {currency}{between}"
