"""Reads proofs again that failed although the command ended with exit 0, once `proof:` or `results:` has changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.engine.plan.retry import definition_part, only_proof_failed, proof_reading_hash, reading_hash_of_attempt
from muster.files.json_codec import plain_value
from muster.files.state_folder import attempt_folder
from muster.model.attempt import Attempt, CellRecord
from muster.model.attempt_snapshot import ProofReading
from muster.model.campaign import Campaign, Job
from muster.model.campaign_state import CampaignState
from muster.model.cell import Cell, list_campaign_cells
from muster.model.decision import Decision
from muster.readers.attempt_facts import read_exit_file, read_order
from muster.readers.proof import FileProofReader
from muster.readers.resume import orders_before
from muster.text.phrases import join_phrases, phrase


def build_reread_decisions(
    desk: CampaignHandle, campaign: Campaign, hashes: Mapping[str, str], before: CampaignState | None, taken_in: str
) -> list[Decision]:
    """One for each such cell, whether or not its proof holds now. `taken_in`: the snapshot that it is read under."""
    if before is None:
        return []
    return [
        desk.person("reread", found["reason"], cell=cell.id, attempt=attempt.n, data={**found, "campaign": taken_in})
        for cell, attempt in _attempts_to_reread(campaign, hashes, before)
        for found in [_reread_data(desk, campaign.job(cell.job), cell, attempt, hashes[cell.id])]
    ]


def _attempts_to_reread(
    campaign: Campaign, hashes: Mapping[str, str], before: CampaignState
) -> Iterator[tuple[Cell, Attempt]]:
    for cell in list_campaign_cells(campaign):
        record = before.cells.get(cell.id)
        last = _last_failed_by_proof(record, hashes.get(cell.id, "")) if record else None
        if last is not None and reading_hash_of_attempt(last) != proof_reading_hash(campaign.job(cell.job)):
            yield cell, last


def _last_failed_by_proof(record: CellRecord, now: str) -> Attempt | None:
    """Its last attempt, if nothing but its reading was wrong and it ran what is declared now."""
    last = record.last
    if last is None or record.given_up is not None or not only_proof_failed(last):
        return None
    return last if definition_part(record.hash_today(last)) == definition_part(now) else None


def _reread_data(desk: CampaignHandle, job: Job, cell: Cell, attempt: Attempt, hash_: str) -> dict[str, Any]:
    reading = _reread_proof(desk, job, cell, attempt)
    bad = [item.reading for item in reading.evidence if item.says not in ("holds", "abstains")]
    word = phrase("campaign.proof_unreadable") if reading.holds is None else phrase("campaign.proof_fails")
    return {
        "reason": phrase("campaign.reread_holds")
        if reading.holds
        else phrase(
            "campaign.exit_0_proof_fails",
            verdict=word,
            readings=join_phrases("; ", bad or [phrase("campaign.nothing_was_found")]),
        ),
        "read_as": proof_reading_hash(job),
        "hash": hash_,
        "holds": bool(reading.holds),
        "results": dict(reading.results),
        "output": reading.output,
        "evidence": plain_value(reading.evidence),
    }


def _reread_proof(desk: CampaignHandle, job: Job, cell: Cell, attempt: Attempt) -> ProofReading:
    folder = attempt_folder(desk.state, *attempt.place)
    order = read_order(folder)
    if order is None:
        return ProofReading(None)
    if attempt.outcome and attempt.outcome.output:  # a folder that came later may fit the same glob
        order = replace(order, output=attempt.outcome.output)
    try:
        exit_ = read_exit_file(str(folder / "exit.json"), attempt.token)
    except OSError:
        exit_ = None
    return FileProofReader(orders_before).read(job, cell, order, exit_)
