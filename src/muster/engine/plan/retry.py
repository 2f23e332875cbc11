"""What follows a death: a retry by itself, or held until something changed. Never without a recorded cause.

Also whether a death had nothing to do with the outcome (a seed that was lost to the machine, not to the method), and
the hash of how a proof is read: an error in `proof:` is corrected without running anything again.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, dataclass

from muster.model.attempt import Attempt, CellRecord, Outcome
from muster.model.campaign import Job
from muster.text.phrases import phrase, phrase_as_data

# the machine, the money, or nothing ever ran
UNRELATED_CAUSES = frozenset(
    {
        "never_started",
        "host_reboot",
        "container_restart",
        "preempted",
        "gpu_lost",
        "disk_full",
        "hangup",
        "budget_stop",
    }
)
# what the run computed, whether or not it logged a step
OUTCOME_CAUSES = frozenset({"non_finite", "early_exit"})
# mistakes of the start, where nobody knows whether there were steps
START_MISTAKES = frozenset(
    {
        "ImportError",
        "ModuleNotFoundError",
        "FileNotFoundError",
        "NotADirectoryError",
        "PermissionError",
        "SyntaxError",
        "IndentationError",
    }
)


def is_unrelated_death(outcome: Outcome, stepped: bool | None) -> bool:
    """`stepped`: whether the run made a step; None: nobody knows."""
    cause = outcome.cause
    if cause is None or cause.kind in OUTCOME_CAUSES:
        return False
    if cause.kind in UNRELATED_CAUSES:
        return True
    if stepped is None:
        return cause.kind == "exception" and cause.detail.partition(",")[0].rpartition(".")[2] in START_MISTAKES
    return not stepped


def died_of_unrelated_causes(record: CellRecord, stepped: bool | None) -> bool:
    """Of a cell that is not DONE: none of its deaths had to do with the outcome.

    By whichever definition it ran: an edit that lets the next start fail would clear a seed that diverged.
    """
    return all(is_unrelated_death(each.outcome, stepped) for each in record.current if each.outcome)


def proof_reading_hash(job: Job) -> str:
    """Of `proof:`, `results:` and the `progress:` that a proof may rest on. None of them is part of a definition."""
    import hashlib  # not at the top: `status` rarely needs it, and it loads OpenSSL

    read = [asdict(job.proof), [asdict(each) for each in job.results], [asdict(each) for each in job.progress]]
    return hashlib.sha256(json.dumps(read, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:12]


def only_proof_failed(attempt: Attempt) -> bool:
    """Its command ended with exit 0: what it did may be whole, and only how it was read wrong."""
    outcome = attempt.outcome
    if outcome is None or attempt.adopted or attempt.was_done:
        return False
    return outcome.exit_code == 0 and outcome.cause is not None and outcome.cause.kind == "early_exit"


def reading_hash_of_attempt(attempt: Attempt) -> str:
    """The reading that its verdict or the newest one after it rests on; empty: an older version wrote it."""
    return attempt.reread.read_as if attempt.reread else attempt.outcome.read_as if attempt.outcome else ""


def definition_part(hash_: str) -> str:
    """Of `<definition>-<code>`."""
    return hash_.partition("-")[0]


RETRIED_AT_ONCE = frozenset({"never_started", "host_reboot", "container_restart", "preempted", "gpu_lost"})
RETRIED_ONCE = frozenset({"unknown"})
CAUSES_FROM_OUTSIDE = frozenset({"signal", "hangup"})
STOP_ANSWERS = {  # whoever changes a file has not answered that
    "user_stop": "plan.person_stopped_runs_again_after",
    "budget_stop": "plan.stopped_budget_raise_money_budget_then",
}
ATTEMPTS_WITHOUT_HEADWAY = 3
READ_BY_KEYS = "`proof:` or `results:`"


@dataclass(frozen=True, slots=True)
class RetryDecision:
    """`cause` is set when the cell may start again: it becomes the retry's recorded cause."""

    cause: str | None
    why: str


def decide_retry(record: CellRecord, job: Job) -> RetryDecision:
    last = record.last
    if last is None or last.outcome is None or last.outcome.cause is None:
        return RetryDecision(None, phrase("plan.nothing_retry"))
    cause, cell = last.outcome.cause, shlex.quote(record.cell.id)
    if record.retry_because is not None:
        return RetryDecision(
            phrase("plan.person_asked", cause=cause, retry_because=record.retry_because),
            phrase("plan.retried_person_asked", retry_because=record.retry_because),
        )
    if record.stop_because is not None:
        return RetryDecision(
            None, phrase("plan.held_stop_asked_retry_because_lets_go", stop_because=record.stop_because, cell=cell)
        )
    if last.outcome.note:
        return RetryDecision(None, phrase("plan.held_artifacts_complete_accept_takes", cell=cell))
    if _needs_reread(record, last, job):
        return RetryDecision(None, phrase("plan.up_reads_again_say_now_nothing_run", read_by_keys=READ_BY_KEYS))
    ran = last.reread.hash if last.reread else record.hash_today(last)
    if cause.kind in CAUSES_FROM_OUTSIDE:  # a change that was there when it was killed is no answer to that
        ran = last.outcome.declared or ran
    changed = bool(record.hash and ran and record.hash != ran and not last.adopted)
    if changed and cause.kind != "user_stop":  # what a person stopped, a person starts again
        return RetryDecision(
            phrase("plan.cause_and_definition_changed", cause=cause), phrase("plan.retried_command_config_code_changed")
        )
    if cause.kind in STOP_ANSWERS:
        return RetryDecision(None, phrase("plan.held_after_stop", answer=phrase(STOP_ANSWERS[cause.kind]), cell=cell))
    if only_proof_failed(last):
        return RetryDecision(
            None,
            phrase("plan.held_command_ended_exit_0_only_proof", read_by_keys=READ_BY_KEYS, cell=cell),
        )
    limit = _retry_limit(last.outcome, job)
    same = sum(1 for attempt in record.current if _cause_kind_of(attempt.outcome) == cause.kind)
    if limit and _made_no_headway(record):
        return RetryDecision(
            None,
            phrase(
                "plan.held_attempts_without_newer_checkpoint",
                attempts_without_headway=ATTEMPTS_WITHOUT_HEADWAY,
                cell=cell,
            ),
        )
    if limit == 0:
        return RetryDecision(
            None,
            phrase("plan.held_not_retried_itself_fix_then_up", cause=cause, cell=cell),
        )
    if same > limit:
        return RetryDecision(
            None, phrase("plan.held_times_retry_because_tries_again", cause=cause, same=same, cell=cell)
        )
    return RetryDecision(str(cause), phrase("plan.retry_itself_after", cause=cause, same=same, limit=limit))


def _needs_reread(record: CellRecord, last: Attempt, job: Job) -> bool:
    """It ran what is declared, and how it is read has changed since. Of an older version's log this can't be told."""
    if not only_proof_failed(last) or definition_part(record.hash_today(last)) != definition_part(record.hash):
        return False
    return reading_hash_of_attempt(last) not in ("", proof_reading_hash(job))


def _retry_limit(outcome: Outcome, job: Job) -> int:
    kind = outcome.cause.kind if outcome.cause else ""
    if could_not_be_executed(outcome):
        return 0  # it would fail in the same way again
    if kind in RETRIED_AT_ONCE or (kind == "stalled" and job.on_stall == "restart"):
        return job.max_retries
    return min(1, job.max_retries) if kind in RETRIED_ONCE else 0


def could_not_be_executed(outcome: Outcome) -> bool:
    cause = outcome.cause
    if cause is None or cause.kind != "never_started":
        return False
    code = outcome.phrases.get(cause.note, phrase_as_data(cause.note)).get("code")
    if code is None:  # logs of 0.1 have no codes, and always this sentence
        return cause.note.startswith("the command could not be executed")
    return bool(code == "judge.command_could_not_executed")


def _made_no_headway(record: CellRecord) -> bool:
    """Each began where the one before had begun. Where no checkpoint is declared this can't be told."""
    last = record.current[-ATTEMPTS_WITHOUT_HEADWAY:]
    saved = [attempt.outcome.saved if attempt.outcome else None for attempt in last]
    return len(last) == ATTEMPTS_WITHOUT_HEADWAY and all(each is not None and not each for each in saved)


def _cause_kind_of(outcome: object) -> str | None:
    cause = getattr(outcome, "cause", None)
    return cause.kind if cause else None
