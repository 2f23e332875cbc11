"""What follows a death: a retry by itself, or held until something changed. Never without a recorded cause."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from muster.domain.attempt import Attempt, CellRecord
from muster.domain.campaign import Job
from muster.plan.proof_reading import definition, only_proof_failed, read_as, reading_hash

AT_ONCE = frozenset({"never_started", "host_reboot", "container_restart", "preempted", "gpu_lost"})
ONCE = frozenset({"unknown"})
FROM_OUTSIDE = frozenset({"signal", "hangup"})
STOPPED = {  # whoever changes a file has not answered that
    "user_stop": "a person stopped it; it runs again after",
    "budget_stop": "it was stopped at the budget; raise money.budget, then",
}
NO_HEADWAY = 3
READ_BY = "`proof:` or `results:`"


@dataclass(frozen=True, slots=True)
class Next:
    """`cause` is set when the cell may start again: it becomes the retry's recorded cause."""

    cause: str | None
    why: str


def after_death(record: CellRecord, job: Job) -> Next:
    last = record.last
    if last is None or last.outcome is None or last.outcome.cause is None:
        return Next(None, "nothing to retry")
    cause, cell = last.outcome.cause, shlex.quote(record.cell.id)
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
    if _to_be_read_again(record, last, job):
        return Next(None, f"`muster up` reads it again, as {READ_BY} say now; nothing is run for that")
    ran = last.reread.hash if last.reread else record.hash_today(last)
    if cause.kind in FROM_OUTSIDE:  # a change that was there when it was killed is no answer to that
        ran = last.outcome.declared or ran
    changed = bool(record.hash and ran and record.hash != ran and not last.adopted)
    if changed and cause.kind != "user_stop":  # what a person stopped, a person starts again
        return Next(
            f"{cause}; its definition changed since", "to be retried: its command, config or code changed since"
        )
    if cause.kind in STOPPED:
        return Next(None, f"held: {STOPPED[cause.kind]} `muster retry {cell} --because ...`")
    if only_proof_failed(last):
        return Next(
            None,
            f"held: its command ended with exit 0, only its proof fails: mend {READ_BY} in campaign.yaml, and `muster "
            f"up` reads it again; or mend the run, then `muster retry {cell} --because ...`",
        )
    limit = _limit(cause.kind, cause.note, job)
    same = sum(1 for attempt in record.current if _kind(attempt.outcome) == cause.kind)
    if limit and _no_headway(record):
        return Next(
            None,
            f"held: {NO_HEADWAY} attempts without a newer checkpoint; `muster retry {cell} --because ...` tries again",
        )
    if limit == 0:
        return Next(
            None,
            f"held: {cause} is not retried by itself; mend it, then `muster up` runs it again where a file changed, "
            f"else `muster retry {cell} --because ...`",
        )
    if same > limit:
        return Next(None, f"held: {cause} {same} times; `muster retry {cell} --because ...` tries again")
    return Next(str(cause), f"retry by itself after {cause} ({same} of {limit})")


def _to_be_read_again(record: CellRecord, last: Attempt, job: Job) -> bool:
    """It ran what is declared, and how it is read has changed since. Of an older version's log this can't be told."""
    if not only_proof_failed(last) or definition(record.hash_today(last)) != definition(record.hash):
        return False
    return read_as(last) not in ("", reading_hash(job))


def _limit(kind: str, note: str, job: Job) -> int:
    if kind == "never_started" and note.startswith("the command could not be executed"):
        return 0  # it would fail in the same way again
    if kind in AT_ONCE or (kind == "stalled" and job.on_stall == "restart"):
        return job.max_retries
    return min(1, job.max_retries) if kind in ONCE else 0


def _no_headway(record: CellRecord) -> bool:
    """Each began where the one before had begun. Where no checkpoint is declared this can't be told."""
    last = record.current[-NO_HEADWAY:]
    saved = [attempt.outcome.saved if attempt.outcome else None for attempt in last]
    return len(last) == NO_HEADWAY and all(each is not None and not each for each in saved)


def _kind(outcome: object) -> str | None:
    cause = getattr(outcome, "cause", None)
    return cause.kind if cause else None
