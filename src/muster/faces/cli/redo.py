"""muster redo"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.campaign_status import CellStatus, Status
from muster.app.campaign.observe_campaign import REDO_HINT, refuse_changed_definitions
from muster.app.campaign.verbs.act_on_cells import (
    AttemptEndWaiter,
    RedoPlan,
    build_redo_decisions,
    describe_next_start,
    plan_redo,
    require_reason,
)
from muster.engine.plan.cell_standing import is_outdated_cell
from muster.faces.cli.common.choose_cells import choose_cells, observe_and_revive, print_refusal, start_if_running
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import counted, print_json
from muster.model.campaign_state import Intent
from muster.model.errors import UsageError
from muster.text.sentences import join_few_names

app = typer.Typer(add_completion=False)


@app.command("redo", epilog="Example:  muster redo train/v2_full/2 --because 'the reward had the wrong sign'")
def redo_command(
    ctx: typer.Context,
    because: Annotated[str, typer.Option(help="Why what is DONE must be run again.", show_default=False)],
    cells: Annotated[
        list[str] | None, typer.Argument(metavar="CELL...", help="DONE cells, or globs.", show_default=False)
    ] = None,
    outdated_: Annotated[
        bool, typer.Option("--outdated", help="All DONE cells whose definition has changed since they ran.")
    ] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Runs DONE cells again, from scratch. The old attempts stay, superseded: nothing rests on them any more.

    DONE cells that need one of them, such as its evaluations, are run again with it. Exit code: 0 all that was named
    will run again, 1 some of it can't.
    """
    reason = require_reason(because)
    if bool(cells) == outdated_:
        raise UsageError("name the cells, or say --outdated", hint="muster redo 'train/*/2' --because TEXT")
    desk = CampaignHandle.open_to_act(folder_of_context(ctx))
    AttemptEndWaiter(desk).record_ended()
    before = observe_and_revive(desk)
    declared = [record.cell.id for record in before.state.declared]
    names = _outdated_names(before) if outdated_ else choose_cells("redo", cells or [], before)
    plan = plan_redo(before.state, names)
    again = declared if outdated_ else [step.cell for step in plan.steps]
    refuse_changed_definitions(desk, before.state, again, REDO_HINT)
    decisions = build_redo_decisions(desk, before.state, plan, reason)
    answers = dict(zip((step.cell for step in plan.steps), desk.decide(decisions) if decisions else [], strict=True))
    refused = {**plan.refused, **{cell: why for cell, why in answers.items() if why}}
    redone = [cell for cell in declared if cell in answers and cell not in refused]
    after = start_if_running(desk) if redone else before
    if as_json_:
        print_json(_redo_as_json(plan, redone, refused))
    else:
        _print_redo(plan, redone, refused, before, after)
    return 1 if refused else 0


def _outdated_names(found: Status) -> list[str]:
    return [cell.record.cell.id for cell in found.cells if is_outdated_cell(cell.record)]


def _redo_as_json(plan: RedoPlan, redone: list[str], refused: dict[str, str]) -> dict[str, object]:
    return {
        "muster": 1,
        "redone": redone,
        "followers": [cell for cell in plan.followers if cell in redone],
        "refused": [{"cell": cell, "why": why} for cell, why in refused.items()],
        "overwritten": [cell for cell in plan.overwritten if cell in redone],
    }


def _print_redo(plan: RedoPlan, redone: list[str], refused: dict[str, str], before: Status, after: Status) -> None:
    for cell, why in refused.items():
        print_refusal(cell, "redone", why)
    tried = {cell.record.cell.id: len(cell.record.attempts) for cell in before.cells}
    now = {cell.record.cell.id: cell for cell in after.cells}
    for name in redone:
        if name not in plan.followers:
            print(f"{name}: {_format_redo_result(now[name], tried[name], after.state.intent)}")
    followers = [cell for cell in plan.followers if cell in redone]
    if followers:
        print(f"run again with them, because they rest on them: {counted(len(followers))}: {join_few_names(followers)}")
    overwritten = [cell for cell in plan.overwritten if cell in redone]
    if overwritten:
        print(
            f"what they left may be overwritten, for they write to the same place again: {join_few_names(overwritten)}"
        )
    if not redone and not refused:
        print("nothing to do: no DONE cell has another definition than it ran with")


def _format_redo_result(cell: CellStatus, tried: int, intent: Intent) -> str:
    old = f"attempt {tried} is superseded"
    count = len(cell.record.attempts)
    if count > tried:
        return f"{old}; attempt {count} is {cell.verdict.state}"
    if intent.kind == "running" and not cell.startable:
        return f"{old}; {cell.verdict.reason}; {cell.next}"
    return f"{old}; {describe_next_start(intent)}"
