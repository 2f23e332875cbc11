"""Files that were changed since they were taken in: `muster up` alone does that, and until then the old ones hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from muster.acts.status import CellStatus, Status
from muster.domain.campaign import Campaign
from muster.domain.errors import MusterError, UsageError
from muster.domain.state import CampaignState
from muster.domain.verdict import State
from muster.store import campaigns
from muster.wiring.desk import Desk

TOLD = 3
WHAT = "campaign.yaml has changed: `muster up` takes it in; then: "
REDO = "`muster up` takes it in and keeps what is done; then `muster redo` runs it as it is written now"
RETRY = (
    "`muster up` takes it in, and starts again what died by the old definition; what was stopped or given up "
    "starts with `muster retry` after that"
)


def refuse_changed_definitions(desk: Desk, state: CampaignState, names: Sequence[str], hint: str) -> None:
    """A new attempt would run the old definition: nobody who has just mended a file means that."""
    from muster.wiring.taking import read, up_to_date

    if not desk.file.is_file():
        raise UsageError(
            "campaign.yaml is gone: what would run can't be told; nothing was changed", where=str(desk.file)
        )
    now = _hashes_now(desk, state, up_to_date(read(desk.file), state).campaign, names)
    changed = [name for name in names if now.get(name) != state.cells[name].hash]
    if changed:
        more = f" and {len(changed) - TOLD} more" if len(changed) > TOLD else ""
        raise UsageError(
            "campaign.yaml, or a config file that it names, has changed since it was taken in: "
            f"{', '.join(changed[:TOLD])}{more} would run the old definition; nothing was changed",
            where=str(desk.file),
            hint=hint,
            code="not_taken_in",
        )


def as_the_file_says(desk: Desk, status: Status) -> Status:
    """Dead cells with what follows if `muster up` takes the files in that lie there now.

    Whoever has mended a file and looks is not told to mend it. A file that can't be taken in changes nothing here.
    """
    dead = [each.record.cell.id for each in status.cells if each.verdict.state == State.DEAD and not each.startable]
    if not dead or not desk.file.is_file():
        return status
    try:
        following = _next_by_file(desk, status, dead)
    except (MusterError, OSError):
        return status
    return replace(status, cells=tuple(_told(each, following) for each in status.cells))


def _told(cell: CellStatus, following: Mapping[str, str]) -> CellStatus:
    then = following.get(cell.record.cell.id, cell.next)
    return cell if then == cell.next else replace(cell, next=WHAT + then)


def _next_by_file(desk: Desk, status: Status, names: Sequence[str]) -> dict[str, str]:
    from muster.domain.cell import needed_cells
    from muster.plan.outlook import as_if_taken_in
    from muster.plan.standing import standing

    state, campaign = status.state, status.state.campaign
    text = desk.file.read_text(encoding="utf-8")
    if campaign.loop or campaigns.taken(desk.state, state.campaign_hash).text != text:
        from muster.wiring.taking import read, up_to_date

        campaign = up_to_date(read(desk.file, text), state).campaign
    known = {name: record.hash for name, record in state.cells.items()}
    now = known | _hashes_now(desk, state, campaign, names)
    then = as_if_taken_in(campaign, now, state)
    needs = needed_cells(campaign, [record.cell for record in then.declared])
    purse = status.spending.purse if status.spending else None
    return {name: standing(then.cells[name], then, needs, purse).next for name in names if then.cells[name].declared}


def _hashes_now(desk: Desk, state: CampaignState, campaign: Campaign, names: Collection[str]) -> dict[str, str]:
    """Of the cells' definitions, with the code that was there when they were taken in: it is no part of a file."""
    from muster.acts.take_in import hashes

    found = hashes(campaign, str(desk.root), lambda _: {}, desk.store.origin(), frozenset(names))
    return {
        name: "-".join((now.partition("-")[0], *state.cells[name].hash.partition("-")[2:]))
        for name, now in found.items()
    }
