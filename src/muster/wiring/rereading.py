"""Reads proofs again that failed although the command ended with exit 0, once `proof:` or `results:` has changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from muster.domain.attempt import Attempt, CellRecord
from muster.domain.campaign import Campaign, Job
from muster.domain.cell import Cell, all_cells
from muster.domain.decision import Decision
from muster.domain.sighting import ProofReading
from muster.domain.state import CampaignState
from muster.execute.local import read_order
from muster.execute.paths import attempt_folder
from muster.execute.resumed import orders_before
from muster.observe.facts import read_exit
from muster.observe.proof import FileProofReader
from muster.plan.proof_reading import definition, only_proof_failed, read_as, reading_hash
from muster.wiring.desk import Desk

HOLDS = "exit 0 and its proof holds, read again because `proof:` or `results:` has changed"


def reread_decisions(
    desk: Desk, campaign: Campaign, hashes: Mapping[str, str], before: CampaignState | None, taken_in: str
) -> list[Decision]:
    """One for each such cell, whether or not its proof holds now. `taken_in`: the snapshot that it is read under."""
    if before is None:
        return []
    return [
        desk.person("reread", found["reason"], cell=cell.id, attempt=attempt.n, data={**found, "campaign": taken_in})
        for cell, attempt in _to_read(campaign, hashes, before)
        for found in [_found(desk, campaign.job(cell.job), cell, attempt, hashes[cell.id])]
    ]


def _to_read(campaign: Campaign, hashes: Mapping[str, str], before: CampaignState) -> Iterator[tuple[Cell, Attempt]]:
    for cell in all_cells(campaign):
        record = before.cells.get(cell.id)
        last = _last(record, hashes.get(cell.id, "")) if record else None
        if last is not None and read_as(last) != reading_hash(campaign.job(cell.job)):
            yield cell, last


def _last(record: CellRecord, now: str) -> Attempt | None:
    """Its last attempt, if nothing but its reading was wrong and it ran what is declared now."""
    last = record.last
    if last is None or record.given_up is not None or not only_proof_failed(last):
        return None
    return last if definition(record.hash_today(last)) == definition(now) else None


def _found(desk: Desk, job: Job, cell: Cell, attempt: Attempt, hash_: str) -> dict[str, Any]:
    reading = _read(desk, job, cell, attempt)
    bad = [item.reading for item in reading.evidence if item.says not in ("holds", "abstains")]
    word = "can't be read" if reading.holds is None else "fails"
    return {
        "reason": HOLDS if reading.holds else f"exit 0, but its proof {word}: {'; '.join(bad) or 'nothing was found'}",
        "read_as": reading_hash(job),
        "hash": hash_,
        "holds": bool(reading.holds),
        "results": dict(reading.results),
        "output": reading.output,
        "evidence": msgspec.to_builtins(reading.evidence),
    }


def _read(desk: Desk, job: Job, cell: Cell, attempt: Attempt) -> ProofReading:
    folder = attempt_folder(desk.state, *attempt.place)
    order = read_order(folder)
    if order is None:
        return ProofReading(None)
    if attempt.outcome and attempt.outcome.output:  # a folder that came later may fit the same glob
        order = replace(order, output=attempt.outcome.output)
    try:
        exit_ = read_exit(str(folder / "exit.json"), attempt.token)
    except OSError:
        exit_ = None
    return FileProofReader(orders_before).read(job, cell, order, exit_)
