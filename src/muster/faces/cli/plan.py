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
from muster.text.sentences import end_with_full_stop, format_count, format_duration

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
    yield paint_text(f"{status.state.campaign.name}: {format_count(len(status.cells))} declared, {done} done", "bold")
    yield ""
    yield from format_grids(status)
    yield format_legend(status)
    yield ""
    yield from _format_file_changes(found)
    later = [other for other in seen.others if other.later]
    follows = "follows" if len(later) == 1 else "follow"
    more = f"; {len(later)} more {follows} when what they need is DONE" if later else ""
    yield paint_text(f"would run now: {len(seen.would_run)} of {format_count(len(status.cells))}{more}", "bold")
    for item in seen.would_run[:MOST_LISTED]:
        yield f"  {item.position:>3}. {item.cell}: {item.why}"
    if len(seen.would_run) > MOST_LISTED:
        yield f"  and {len(seen.would_run) - MOST_LISTED} more; `muster plan --json` has them all"
    for other in later[:MOST_LISTED]:
        yield f"    then {other.cell}: {other.reason}"
    if len(later) > MOST_LISTED:
        yield f"    and {len(later) - MOST_LISTED} more"
    yield from _format_left_out(found)
    if seen.would_run and describe_unknown_runs(status.cells):
        told = "`muster up` starts nothing while such a run lives"
        yield paint_text(f"{told}; `muster up --only AXIS=VALUE` starts the other cells now", "red")
    if found.mistakes:
        told = f"{format_count(found.mistakes, 'mistake')} that {'keeps' if found.mistakes == 1 else 'keep'}"
        yield paint_text(f"`muster check` finds {told} `muster up` from starting any of it", "red")
    loop = status.state.campaign.loop
    if loop and loop.rounds > 1:
        yield f"rounds: {loop.rounds} at most; what each further one runs is proposed when the last one is over"
    yield f"expected: {_format_estimate(found)}"
    if found.status.spending:
        from muster.faces.cli.common.money_line import money_line

        yield from money_line(found.status.spending)


def _format_left_out(found: PlanPreview) -> Iterator[str]:
    """What would not run although it is not done: each is named, with the reason."""
    verdicts = {cell.record.cell.id: cell for cell in found.status.cells}
    left = [other for other in found.outlook.others if not other.later and other.verdict != "DONE"]
    if left:
        yield f"would not run: {len(left)}"
    for other in left[:MOST_LISTED]:
        now = verdicts[other.cell]
        yield f"  {now.verdict.state} {other.cell}: {end_with_full_stop(now.verdict.reason)} Next: {now.next}"
    if len(left) > MOST_LISTED:
        yield f"  and {len(left) - MOST_LISTED} more"


def _format_file_changes(found: PlanPreview) -> Iterator[str]:
    what = found.changes
    if not what:
        return
    yield "`muster up` would take in what changed since the last time:"
    yield from (f"  {line}" for line in format_change_lines(what))
    if what.code_changed:
        yield "  the code changed"
    yield ""


def _format_estimate(found: PlanPreview) -> str:
    expected = found.estimate
    if expected.slot_seconds is None or expected.wall_seconds is None:
        return f"unknown: {expected.basis}"
    if not expected.cells:
        return expected.basis
    price = f", {_format_price(found)}" if expected.money is not None else ""
    clock = f"{format_duration(expected.wall_seconds)} on {format_count(found.slots, 'slot')}"
    return f"{clock}, {format_duration(expected.slot_seconds)} of slot time{price} ({expected.basis})"


def _format_price(found: PlanPreview) -> str:
    """What is still to be paid, and how sure that is."""
    money, expected = found.status.state.campaign.money, found.estimate
    currency = money.currency if money else ""
    low, high = expected.money_range or (0.0, 0.0)
    between = f" ({low:.2f} to {high:.2f})" if high > low else ""
    return f"{expected.money or 0.0:.2f} {currency}{between}"
