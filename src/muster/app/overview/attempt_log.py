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
    name = f"attempt {attempt.n} of {record.cell.id}"
    if attempt.adopted:
        where = attempt.outcome.output if attempt.outcome else None
        raise MusterError(f"{name} was adopted; Muster has no log of it", where=where or "")
    if not path.exists() and (words := describe_cleaning(desk.store.events(record.cell.id), attempt.n)):
        hint = f"`muster why {shlex.quote(record.cell.id)}` still tells how it ended"
        raise MusterError(f"the logs of {name} were {words}", where=str(path), hint=hint)
    return AttemptLog(attempt, path)


def _choose_attempt(record: CellRecord, number: int | None) -> Attempt:
    if record.last is None:
        raise MusterError(
            f"{record.cell.id} has not run yet, so there is no log",
            hint=f"`muster why {shlex.quote(record.cell.id)}` says what it waits for",
        )
    if number is None:
        return record.last
    if not 1 <= number <= len(record.attempts):
        raise UsageError(
            f"{record.cell.id} has no attempt {number}", hint=f"it has attempts 1 to {len(record.attempts)}"
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
