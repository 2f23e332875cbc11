"""When failures are not the cells' own: a slot or a machine on which everything dies must not burn the whole matrix."""

from __future__ import annotations

from collections.abc import Sequence

from muster.domain.attempt import Attempt
from muster.domain.state import CampaignState
from muster.domain.verdict import State

RECENT = 64  # ended attempts that are looked back at
IN_A_ROW = 5  # cells that die one after the other, with none that succeeded in between
ON_A_SLOT = 3
# what commands fail of by themselves; a kill, a reboot or a stop says nothing about slot and machine
FAILURES = frozenset({"exit_code", "exception", "cuda_oom", "disk_full", "non_finite", "early_exit", "gpu_lost"})


def everything_fails(recent: Sequence[Attempt]) -> str | None:
    """Why nothing more should start, if the newest attempts of different cells have all died. Newest last."""
    cells: list[str] = []
    for attempt in reversed(recent):
        if not _died(attempt):
            break
        if attempt.cell not in cells:
            cells.append(attempt.cell)
        if len(cells) == IN_A_ROW:
            cause = attempt.outcome.cause if attempt.outcome else None
            died = f"the last {IN_A_ROW} cells all died ({cause} among them)"
            return f"{died}: mend it, then `muster release`, or `muster up` if you mended campaign.yaml"
    return None


def failing_slots(recent: Sequence[Attempt]) -> dict[str, str]:
    """Slots to leave alone: a GPU that was lost, or one where all dies while the same work succeeds elsewhere."""
    if all(attempt.was_done for attempt in recent):
        return {}
    newest: dict[str, list[Attempt]] = {}
    successes = 0
    elsewhere: dict[str, int] = {}  # successes seen since the slot's last but three
    for attempt in reversed(recent):
        done = attempt.was_done
        successes += done
        for slot in attempt.slots:
            seen = newest.setdefault(slot, [])
            if len(seen) < ON_A_SLOT:
                seen.append(attempt)
                elsewhere[slot] = successes
    found: dict[str, str] = {}
    for slot, attempts in newest.items():
        lost = attempts[0].outcome and attempts[0].outcome.cause and attempts[0].outcome.cause.kind == "gpu_lost"
        if lost:
            found.update(
                {name: f"its GPU was lost under {attempts[0].cell}" for name in newest if _gpu(name) == _gpu(slot)}
            )
        elif len(attempts) == ON_A_SLOT and all(map(_died, attempts)) and elsewhere[slot] >= 2:
            found[slot] = f"the last {ON_A_SLOT} attempts on it died while others succeeded"
    return found


def _gpu(slot: str) -> str:
    return slot.partition(".")[0]


def recently_ended(state: CampaignState) -> list[Attempt]:
    """Attempts that Muster ran and that have ended since the last release, newest last."""
    ended = [attempt for record in state.cells.values() for attempt in record.attempts if counts(attempt, state)]
    return sorted(ended, key=lambda attempt: attempt.outcome.order if attempt.outcome else 0)[-RECENT:]


def counts(attempt: Attempt, state: CampaignState) -> bool:
    return attempt.outcome is not None and not attempt.adopted and attempt.outcome.order > state.forgiven


def _died(attempt: Attempt) -> bool:
    outcome = attempt.outcome
    if attempt.was_done or outcome is None or outcome.verdict != State.DEAD:
        return False
    cause = outcome.cause
    if cause is None:
        return False
    unexecuted = cause.kind == "never_started" and cause.note.startswith("the command could not be executed")
    return unexecuted or cause.kind in FAILURES
