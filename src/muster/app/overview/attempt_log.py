"""`muster logs`: which file is the log of an attempt, and whether more will be written to it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.disk_use import describe_cleaning
from muster.app.campaign.verbs.choose_cells import declared_names, resolve_one_cell, withdrawn_names
from muster.engine.judge.attempt_verdict import judge_attempt
from muster.files.state_folder import attempt_folder
from muster.model.attempt import Attempt, CellRecord
from muster.model.campaign_state import CampaignState
from muster.model.errors import MusterError, UsageError
from muster.text.phrases import phrase


@dataclass(frozen=True, slots=True)
class AttemptLog:
    attempt: Attempt
    path: Path  # it may not exist yet


def find_attempt_log(
    desk: CampaignHandle, state: CampaignState, cell: str, number: int | None, *, err: bool
) -> AttemptLog:
    """Of the newest attempt, or of the one that is named. Raises where there is no log, and says why."""
    record = state.cells[resolve_one_cell(cell, declared_names(state), withdrawn_names(state))]
    attempt = _choose_attempt(record, number)
    path = attempt_folder(desk.state, *attempt.place) / ("stderr.log" if err else "stdout.log")
    name = phrase("overview.attempt_of_cell", n=attempt.n, cell=record.cell.id)
    if attempt.adopted:
        where = attempt.outcome.output if attempt.outcome else None
        raise MusterError(phrase("overview.adopted_has_no_log", attempt=name), where=where or "")
    if not path.exists() and (words := describe_cleaning(desk.store.events(record.cell.id), attempt.n)):
        hint = phrase("overview.why_tells_how_it_ended", cell=shlex.quote(record.cell.id))
        raise MusterError(phrase("overview.logs_were_cleaned", attempt=name, cleaned=words), where=str(path), hint=hint)
    return AttemptLog(attempt, path)


def _choose_attempt(record: CellRecord, number: int | None) -> Attempt:
    if record.last is None:
        raise MusterError(
            phrase("overview.no_log_yet", cell=record.cell.id),
            hint=phrase("overview.why_says_what_it_waits_for", cell=shlex.quote(record.cell.id)),
        )
    if number is None:
        return record.last
    if not 1 <= number <= len(record.attempts):
        raise UsageError(
            phrase("overview.no_such_attempt", cell=record.cell.id, attempt=number),
            hint=phrase("overview.has_attempts", last=len(record.attempts)),
        )
    return record.attempts[number - 1]


class AttemptEndObserver:
    """Whether an attempt has ended: recorded, or seen by our own eyes where nobody records."""

    def __init__(self, desk: CampaignHandle, attempt: Attempt) -> None:
        self.desk, self.attempt, self.observer = desk, attempt, desk.observer()
        self.state = desk.load()
        self.observer.configure(self.state)

    def has_ended(self) -> bool:
        cell, n = self.attempt.key
        if not self.desk.store.records([cell])[0].attempts[n - 1].open:
            return True
        seen = self.observer.probe.look([self.attempt])[self.attempt.key]
        job = self.state.job(self.state.cells[cell].cell.job)
        return judge_attempt(self.attempt, seen, job).final
