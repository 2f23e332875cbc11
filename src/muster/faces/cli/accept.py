"""muster accept"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.observe_campaign import observe_campaign
from muster.app.campaign.verbs.act_on_cells import AttemptEndWaiter, why_not_acceptable
from muster.faces.cli.common.choose_cells import (
    apply_decisions,
    choose_cells,
    observe_and_revive,
    print_refusal,
    refuse_many_without_reason,
    require_shared_reason,
    start_if_running,
)
from muster.faces.cli.common.command_line import folder_of_context
from muster.files.state_folder import attempt_folder
from muster.hosts.local.attempt_observer import AttemptObserver
from muster.model.attempt import CellRecord
from muster.model.campaign_state import CampaignState
from muster.model.decision import Decision
from muster.readers.attempt_facts import read_order

app = typer.Typer(add_completion=False)


@app.command("accept", epilog="Example:  muster accept train/v2_full/2 --because 'it failed in its teardown only'")
def accept_command(
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
    desk = CampaignHandle.open_to_act(folder_of_context(ctx))
    refuse_many_without_reason("accept", cells, because, observe_campaign(desk))
    state = AttemptEndWaiter(desk).record_ended()
    names = choose_cells("accept", cells, observe_and_revive(desk))
    reason = require_shared_reason("accepted", names, because, "its proof holds")
    decisions = []
    for name in names:
        decision = _accept_decision(desk, state, state.cells[name], reason, attempt)
        if isinstance(decision, str):
            print_refusal(name, "accepted", decision)
        else:
            decisions.append(decision)
    accepted, code = apply_decisions(desk, decisions, "accepted") if decisions else ([], 1)
    taken = {decision.cell: decision.attempt for decision in decisions}
    for name in accepted:
        count = len(state.cells[name].attempts)
        which = f" (attempt {taken[name]} of {count})" if count > 1 else ""
        print(f"{name}: accepted{which}, it counts as DONE")
    if accepted:
        start_if_running(desk)  # what waited for it may start
    return 1 if len(decisions) < len(names) else code


def _accept_decision(
    desk: CampaignHandle, state: CampaignState, record: CellRecord, reason: str, wanted: int | None
) -> Decision | str:
    """The decision, or why it can't be made. Nothing is believed from the record: the files are read now."""
    attempts = [each for each in reversed(record.attempts) if wanted in (None, each.n)]
    if wanted is not None and not attempts:
        return f"it has no attempt {wanted}; it has {len(record.attempts)}"
    job = state.job(record.cell.job)
    looking = AttemptObserver.of_state(desk.state, desk.store, desk.clock)
    looking.configure(state)
    refusals: dict[str, list[str]] = {}  # why -> the attempts that it is true of
    for each in attempts:
        exit_ = looking.probe.look([each])[each.key].exit
        order = read_order(attempt_folder(desk.state, *each.place))
        proof = looking.proofs.read(job, record.cell, order, exit_) if order else None
        refused = why_not_acceptable(record, job, exit_, proof)
        if not refused and proof is not None:
            data = {"proof": [item.reading for item in proof.evidence], "output": proof.output}
            return desk.person("accept", reason, cell=record.cell.id, attempt=each.n, data=data)
        refusals.setdefault(refused or "its attempt.json can't be read", []).append(str(each.n))
    if len(refusals) > 1:
        return "; ".join(f"attempt {', '.join(numbers)}: {why}" for why, numbers in refusals.items())
    return next(iter(refusals), None) or why_not_acceptable(record, job, None, None) or "it has no attempt to accept"
