"""muster accept"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.acts.decisions import not_acceptable
from muster.cli.app import open_folder
from muster.cli.cells import looked
from muster.cli.deciding import carry, go_on, meant, refuse
from muster.cli.reasons import reason_for, refuse_many
from muster.domain.attempt import CellRecord
from muster.domain.decision import Decision
from muster.domain.state import CampaignState
from muster.execute.local import read_order
from muster.execute.paths import attempt_folder
from muster.wiring.desk import Desk
from muster.wiring.looking import Looking
from muster.wiring.stopping import Stopping
from muster.wiring.survey import look

app = typer.Typer(add_completion=False)


@app.command("accept", epilog="Example:  muster accept train/v2_full/2 --because 'it failed in its teardown only'")
def accept(
    ctx: typer.Context,
    cells: Annotated[list[str], typer.Argument(metavar="CELL...", help="Cells, or globs.", show_default=False)],
    because: Annotated[
        str | None, typer.Option(help="Why, for the record; more than one cell needs it.", show_default=False)
    ] = None,
    attempt: Annotated[
        int | None,
        typer.Option("--attempt", metavar="N", help="This attempt and no other.", show_default=False),
    ] = None,
) -> int:
    """Takes an attempt of a dead cell as DONE although it did not exit with 0: the newest whose proof holds.

    Proofs are read again.
    """
    desk = Desk.open_to_act(open_folder(ctx))
    refuse_many("accept", cells, because, look(desk))
    state = Stopping(desk).record_ended()
    names = meant("accept", cells, looked(desk))
    reason = reason_for("accepted", names, because, "its proof holds")
    decisions = []
    for name in names:
        decision = _checked(desk, state, state.cells[name], reason, attempt)
        if isinstance(decision, str):
            refuse(name, "accepted", decision)
        else:
            decisions.append(decision)
    accepted, code = carry(desk, decisions, "accepted") if decisions else ([], 1)
    taken = {decision.cell: decision.attempt for decision in decisions}
    for name in accepted:
        count = len(state.cells[name].attempts)
        which = f" (attempt {taken[name]} of {count})" if count > 1 else ""
        print(f"{name}: accepted{which}, it counts as DONE")
    if accepted:
        go_on(desk)  # what waited for it may start
    return 1 if len(decisions) < len(names) else code


def _checked(desk: Desk, state: CampaignState, record: CellRecord, reason: str, wanted: int | None) -> Decision | str:
    """The decision, or why it can't be made. Nothing is believed from the record: the files are read now."""
    attempts = [each for each in reversed(record.attempts) if wanted in (None, each.n)]
    if wanted is not None and not attempts:
        return f"it has no attempt {wanted}; it has {len(record.attempts)}"
    job = state.job(record.cell.job)
    looking = Looking.of_desk(desk)
    looking.configure(state)
    refusals: dict[str, list[str]] = {}  # why -> the attempts that it is true of
    for each in attempts:
        exit_ = looking.probe.look([each])[each.key].exit
        order = read_order(attempt_folder(desk.state, *each.place))
        proof = looking.proofs.read(job, record.cell, order, exit_) if order else None
        refused = not_acceptable(record, job, exit_, proof)
        if not refused and proof is not None:
            data = {"proof": [item.reading for item in proof.evidence], "output": proof.output}
            return desk.person("accept", reason, cell=record.cell.id, attempt=each.n, data=data)
        refusals.setdefault(refused or "its attempt.json can't be read", []).append(str(each.n))
    if len(refusals) > 1:
        return "; ".join(f"attempt {', '.join(numbers)}: {why}" for why, numbers in refusals.items())
    return next(iter(refusals), None) or not_acceptable(record, job, None, None) or "it has no attempt to accept"
