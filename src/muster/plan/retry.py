"""What follows a death: a retry by itself, or held until something changed. Never without a recorded cause."""

from __future__ import annotations

from dataclasses import dataclass

from muster.domain.attempt import CellRecord
from muster.domain.campaign import Job

AT_ONCE = frozenset({"never_started", "host_reboot", "container_restart", "preempted", "gpu_lost"})
ONCE = frozenset({"unknown"})
NO_HEADWAY = 3


@dataclass(frozen=True, slots=True)
class Next:
    """`cause` is set when the cell may start again: it becomes the retry's recorded cause."""

    cause: str | None
    why: str


def after_death(record: CellRecord, job: Job) -> Next:
    last = record.last
    if last is None or last.outcome is None or last.outcome.cause is None:
        return Next(None, "nothing to retry")
    cause, cell = last.outcome.cause, record.cell.id
    if record.retry_because is not None:
        return Next(
            f"{cause}; a person asked: {record.retry_because}",
            f"to be retried, as a person asked: {record.retry_because}",
        )
    if record.stop_because is not None:
        return Next(
            None, f"held: a stop was asked for ({record.stop_because}); `muster retry {cell} --because ...` lets it go"
        )
    if last.outcome.note:
        return Next(None, f"held: artifacts complete; `muster accept {cell}` takes them, `muster retry` runs it again")
    changed = bool(record.hash and last.hash and record.hash != last.hash and not last.adopted)
    if changed and cause.kind != "user_stop":  # what a person stopped, a person starts again
        return Next(
            f"{cause}; its definition changed since", "to be retried: its command, config or code changed since"
        )
    if cause.kind == "budget_stop":
        return Next(
            None, f"held: it was stopped at the budget; raise money.budget, then `muster retry {cell} --because ...`"
        )
    limit = _limit(cause.kind, cause.note, job)
    same = sum(1 for attempt in record.attempts if _kind(attempt.outcome) == cause.kind)
    if limit and _no_headway(record):
        return Next(
            None,
            f"held: {NO_HEADWAY} attempts without a newer checkpoint; `muster retry {cell} --because ...` tries again",
        )
    if limit == 0:
        return Next(None, f"held: {cause} is not retried by itself; mend it, then `muster retry {cell} --because ...`")
    if same > limit:
        return Next(None, f"held: {cause} {same} times; `muster retry {cell} --because ...` tries again")
    return Next(str(cause), f"retry by itself after {cause} ({same} of {limit})")


def _limit(kind: str, note: str, job: Job) -> int:
    if kind == "never_started" and note.startswith("the command could not be executed"):
        return 0  # it would fail in the same way again
    if kind in AT_ONCE or (kind == "stalled" and job.on_stall == "restart"):
        return job.max_retries
    return min(1, job.max_retries) if kind in ONCE else 0


def _no_headway(record: CellRecord) -> bool:
    """Each began where the one before had begun. Where no checkpoint is declared this can't be told."""
    last = record.attempts[-NO_HEADWAY:]
    return len(last) == NO_HEADWAY and all(attempt.outcome and attempt.outcome.saved is False for attempt in last)


def _kind(outcome: object) -> str | None:
    cause = getattr(outcome, "cause", None)
    return cause.kind if cause else None
