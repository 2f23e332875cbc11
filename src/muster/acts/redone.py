"""Cells that were run again although nothing but their results spoke for it: who does so may choose the better ones."""

from __future__ import annotations

from collections.abc import Iterator

from muster.acts.stamping import relevant
from muster.acts.status import Status
from muster.domain.attempt import Attempt, CellRecord
from muster.domain.cell import needed_cells
from muster.plan.proof_reading import definition
from muster.stats.flag_types import Redone

DIVERGED = "non_finite"


def redone_cells(status: Status, metric: str) -> Iterator[Redone]:
    """DONE cells that were DONE before, by the very definition that counts now, and every reason that was given.

    What a new definition made due is no choice, nor what rests on that; more than once, by however many edits, is one.
    """
    campaign = status.state.campaign
    records = {cell.record.cell.id: cell.record for cell in status.cells}
    needs = needed_cells(campaign, [record.cell for record in records.values()])

    def is_due(name: str) -> bool:
        record = records[name]
        done, old = record.completed, _superseded(record)
        other = done and old and definition(record.hash_today(old[-1])) != definition(record.hash_today(done))
        return bool(other) or any(is_due(need) for need in needs.get(name, ()) if need in records)

    for name, record in records.items():
        old, done = _superseded(record), record.completed
        if done and old and record.cell.job in relevant(campaign) and (len(old) > 1 or not is_due(name)):
            why = "; ".join(dict.fromkeys(attempt.superseded for attempt in old if attempt.superseded))
            yield Redone(name, why, tuple(attempt.results.get(metric) for attempt in (*old, done)))


def recovered_cells(status: Status) -> Iterator[str]:
    """DONE cells that the same definition had lost before: another try of a seed is no seed that never failed."""
    asked = relevant(status.state.campaign)
    for cell in status.cells:
        record, done = cell.record, cell.record.completed
        if done is None or record.cell.job not in asked:
            continue
        own = definition(record.hash_today(done))
        if any(_diverged(each) and definition(record.hash_today(each)) == own for each in record.attempts):
            yield record.cell.id


def _diverged(attempt: Attempt) -> bool:
    cause = attempt.outcome.cause if attempt.outcome else None
    return cause is not None and cause.kind == DIVERGED


def _superseded(record: CellRecord) -> list[Attempt]:
    return [attempt for attempt in record.attempts if attempt.superseded is not None]
