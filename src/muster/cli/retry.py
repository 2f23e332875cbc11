"""muster retry"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.acts.decisions import given, when
from muster.acts.status import CellStatus
from muster.cli.app import open_folder
from muster.cli.cells import looked
from muster.cli.deciding import carry, go_on, meant, refuse
from muster.domain.state import Intent
from muster.wiring.desk import Desk
from muster.wiring.mended import RETRY, refuse_changed_definitions
from muster.wiring.stopping import Stopping

app = typer.Typer(add_completion=False)


@app.command("retry", epilog="Example:  muster retry train/v2_full/2 --because 'more memory since'")
def retry(
    ctx: typer.Context,
    cells: Annotated[list[str], typer.Argument(metavar="CELL...", help="Cells, or globs.", show_default=False)],
    because: Annotated[str, typer.Option(help="What changed, so that it may go well now.", show_default=False)],
) -> int:
    """Lets dead or given-up cells start again. The reason is recorded with the new attempt.

    Where campaign.yaml or a config has changed since it was taken in, `muster up` takes it in first.
    """
    reason = given(because)
    desk = Desk.open_to_act(open_folder(ctx))
    Stopping(desk).record_ended()
    before = looked(desk)
    names = meant("retry", cells, before)
    refuse_changed_definitions(desk, before.state, names, RETRY)
    lost = {cell.record.cell.id: cell for cell in before.cells if cell.record.open and cell.verdict.kind == "lost"}
    for name in (name for name in names if name in lost):
        refuse(name, "retried", f"{lost[name].verdict.reason}; {lost[name].next}")
    made = [desk.person("retry", reason, cell=name) for name in names if name not in lost]
    accepted, code = carry(desk, made, "retried") if made else ([], 1)
    code = 1 if len(made) < len(names) else code
    if accepted:
        tried = {cell.record.cell.id: len(cell.record.attempts) for cell in before.cells}
        after = {cell.record.cell.id: cell for cell in go_on(desk).cells}
        for name in accepted:
            print(f"{name}: {_told(after[name], tried[name], desk.load().intent)}")
    return code


def _told(cell: CellStatus, tried: int, intent: Intent) -> str:
    count = len(cell.record.attempts)
    if count > tried:
        return f"retried; attempt {count} is {cell.verdict.state}"
    if intent.kind == "running" and not cell.startable:
        return f"to be retried; {cell.next}"
    return f"to be retried; {when(intent)}"
