"""Whether a death had to do with the outcome: a seed that the method lost, or one that it was robbed of."""

from __future__ import annotations

from muster.domain.attempt import CellRecord, Outcome

# the machine, the money, or nothing ever ran
UNRELATED = frozenset({
    "never_started", "host_reboot", "container_restart", "preempted", "gpu_lost", "disk_full", "hangup", "budget_stop",
})  # fmt: skip
# what the run computed, whether or not it logged a step
OUTCOMES = frozenset({"non_finite", "early_exit"})
# mistakes of the start, where nobody knows whether there were steps
AT_THE_START = frozenset({
    "ImportError", "ModuleNotFoundError", "FileNotFoundError", "NotADirectoryError", "PermissionError", "SyntaxError",
    "IndentationError",
})  # fmt: skip


def is_unrelated(outcome: Outcome, stepped: bool | None) -> bool:
    """`stepped`: whether the run made a step; None: nobody knows."""
    cause = outcome.cause
    if cause is None or cause.kind in OUTCOMES:
        return False
    if cause.kind in UNRELATED:
        return True
    if stepped is None:
        return cause.kind == "exception" and cause.detail.partition(",")[0].rpartition(".")[2] in AT_THE_START
    return not stepped


def lost_to_others(record: CellRecord, stepped: bool | None) -> bool:
    """Of a cell that is not DONE: none of its deaths had to do with the outcome.

    By whichever definition it ran: an edit that lets the next start fail would clear a seed that diverged.
    """
    return all(is_unrelated(each.outcome, stepped) for each in record.current if each.outcome)
