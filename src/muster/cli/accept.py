"""muster accept"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.acts.decisions import given, not_acceptable
from muster.cli.app import open_folder
from muster.cli.cells import looked
from muster.cli.deciding import carry, go_on, meant, refuse
from muster.domain.attempt import CellRecord
from muster.domain.decision import Decision
from muster.domain.state import CampaignState
from muster.execute.local import read_order
from muster.execute.paths import attempt_folder
from muster.wiring.desk import Desk
from muster.wiring.looking import Looking
from muster.wiring.stopping import Stopping

app = typer.Typer(add_completion=False)


@app.command(epilog="Example:  muster accept train/v2_full/2 --because 'it failed in its teardown only'")
def accept(
    ctx: typer.Context,
    cells: Annotated[list[str], typer.Argument(metavar="CELL...", help="Cells, or globs.", show_default=False)],
    because: Annotated[str, typer.Option(help="Why, for the record.")] = "its proof holds",
) -> int:
    """Takes the last attempt of a dead cell as DONE although it did not exit with 0.

    Its proof is read again and must hold.
    """
    reason = given(because)
    desk = Desk.open(open_folder(ctx))
    state = Stopping(desk).record_ended()
    names = meant("accept", cells, looked(desk))
    decisions = []
    for name in names:
        decision = _checked(desk, state, state.cells[name], reason)
        if isinstance(decision, str):
            refuse(name, "accepted", decision)
        else:
            decisions.append(decision)
    accepted, code = carry(desk, decisions, "accepted") if decisions else ([], 1)
    for name in accepted:
        print(f"{name}: accepted, it counts as DONE")
    if accepted:
        go_on(desk)  # what waited for it may start
    return 1 if len(decisions) < len(names) else code


def _checked(desk: Desk, state: CampaignState, record: CellRecord, reason: str) -> Decision | str:
    """The decision, or why it can't be made. Nothing is believed from the record: the files are read now."""
    last = record.last
    job = state.job(record.cell.job)
    exit_ = proof = None
    if last is not None:
        looking = Looking(lambda cell, n: attempt_folder(desk.state, cell, n), desk.clock)
        looking.configure(state)
        exit_ = looking.probe.look([last])[last.key].exit
        order = read_order(attempt_folder(desk.state, *last.key))
        proof = looking.proofs.read(job, record.cell, order, exit_) if order else None
    refused = not_acceptable(record, job, exit_, proof)
    if refused or last is None or proof is None:
        return refused or "it has no attempt to accept"
    data = {"proof": [item.reading for item in proof.evidence], "output": proof.output}
    return desk.person("accept", reason, cell=record.cell.id, attempt=last.n, data=data)
