"""muster retry"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.campaign_status import CellStatus
from muster.app.campaign.observe_campaign import RETRY_HINT, refuse_changed_definitions
from muster.app.campaign.verbs.act_on_cells import AttemptEndWaiter, describe_next_start, require_reason
from muster.faces.cli.common.choose_cells import (
    apply_decisions,
    choose_cells,
    observe_and_revive,
    print_refusal,
    start_if_running,
)
from muster.faces.cli.common.command_line import folder_of_context
from muster.model.campaign_state import Intent

app = typer.Typer(add_completion=False)


@app.command("retry", epilog="Example:  muster retry train/v2_full/2 --because 'more memory since'")
def retry_command(
    ctx: typer.Context,
    cells: Annotated[list[str], typer.Argument(metavar="CELL...", help="Cells, or globs.", show_default=False)],
    because: Annotated[str, typer.Option(help="What changed, so that it may go well now.", show_default=False)],
) -> int:
    """Lets dead or given-up cells start again. The reason is recorded with the new attempt.

    Where campaign.yaml or a config has changed since it was taken in, `muster up` takes it in first.
    """
    reason = require_reason(because)
    desk = CampaignHandle.open_to_act(folder_of_context(ctx))
    AttemptEndWaiter(desk).record_ended()
    before = observe_and_revive(desk)
    names = choose_cells("retry", cells, before)
    refuse_changed_definitions(desk, before.state, names, RETRY_HINT)
    lost = {cell.record.cell.id: cell for cell in before.cells if cell.record.open and cell.verdict.kind == "lost"}
    for name in (name for name in names if name in lost):
        print_refusal(name, "retried", f"{lost[name].verdict.reason}; {lost[name].next}")
    made = [desk.person("retry", reason, cell=name) for name in names if name not in lost]
    accepted, code = apply_decisions(desk, made, "retried") if made else ([], 1)
    code = 1 if len(made) < len(names) else code
    if accepted:
        tried = {cell.record.cell.id: len(cell.record.attempts) for cell in before.cells}
        after = {cell.record.cell.id: cell for cell in start_if_running(desk).cells}
        for name in accepted:
            print(f"{name}: {_format_retry_result(after[name], tried[name], desk.load().intent)}")
    return code


def _format_retry_result(cell: CellStatus, tried: int, intent: Intent) -> str:
    count = len(cell.record.attempts)
    if count > tried:
        return f"retried; attempt {count} is {cell.verdict.state}"
    if intent.kind == "running" and not cell.startable:
        return f"to be retried; {cell.next}"
    return f"to be retried; {describe_next_start(intent)}"
