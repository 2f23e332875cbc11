"""The campaign as its file declares it now: what is told about results follows the file, not its last `up`."""

from __future__ import annotations

from muster.acts.status import Status
from muster.acts.take_in import hashes
from muster.plan.outlook import as_if_taken_in
from muster.store import campaigns
from muster.wiring.codes import CodeReader
from muster.wiring.desk import Desk
from muster.wiring.survey import look
from muster.wiring.taking import read


def declared_now(desk: Desk, *, ledger: bool = False) -> Status:
    """Whether or not it was taken in; where campaign.yaml was deleted, as it was taken in."""
    before = desk.load()
    if not desk.file.exists():
        return look(desk, before, ledger=ledger)
    found = read(desk.file)
    if campaigns.taken(desk.state, before.campaign_hash).text == found.text:
        return look(desk, before, ledger=ledger)
    hashed = hashes(found.campaign, str(desk.root), CodeReader(found.campaign, desk.root), desk.store.origin())
    return look(desk, as_if_taken_in(found.campaign, hashed, before), ledger=ledger)
