"""Where a cell stands that has no open attempt: may it start, and if not, why not."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from muster.engine.plan.retry import decide_retry, definition_part
from muster.model.attempt import CellRecord
from muster.model.campaign_state import CampaignState, CellFilter
from muster.model.cell import Cell
from muster.model.verdict import VerdictState
from muster.text.phrases import join_phrases, phrase
from muster.text.sentences import join_few_names

if TYPE_CHECKING:
    from muster.ledger.budget_forecast import BudgetState  # `status` of a campaign without a budget has no use for it

CellNeeds = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class CellStanding:
    state: VerdictState
    reason: str
    next: str
    startable: bool = False
    gated: bool = False  # only a gate keeps it from starting: the controller may still find it open
    retry_cause: str | None = None


def standing_of_cell(
    record: CellRecord, state: CampaignState, needs: CellNeeds, purse: BudgetState | None = None
) -> CellStanding:
    """For a cell without an open attempt. A hold stops every start, whatever else is true; then the budget does."""
    if record.completed:
        return CellStanding(VerdictState.DONE, _describe_completion(record), _next_after_done(record))
    if record.given_up is not None:
        return CellStanding(
            VerdictState.GIVEN_UP,
            phrase("plan.given_up", given_up=record.given_up),
            phrase("plan.retry_takes_up_again"),
        )
    if record.last and record.redo_because is None:
        return _standing_of_dead_cell(record, state, needs, purse)
    if state.intent.kind == "held":
        return CellStanding(
            VerdictState.HELD,
            phrase("plan.campaign_held", reason=state.intent.reason),
            phrase("plan.starts_after_release"),
        )
    waiting = unmet_needs(record.cell, state, needs)
    if waiting:
        return CellStanding(
            VerdictState.BLOCKED,
            phrase("plan.needs_cells", needs=join_few_names(waiting, 3)),
            _next_of_blocked(waiting, state),
        )
    if closed := shut_gate_reason(record.cell, state, needs):
        return CellStanding(VerdictState.BLOCKED, closed, phrase("plan.starts_once_run_opens_gate_gates"), gated=True)
    if not passes_filter(record.cell, state.only):
        return CellStanding(
            VerdictState.PENDING,
            phrase("plan.left_out_only", cell_filter=format_cell_filter(state.only)),
            phrase("plan.up_without_only_runs"),
        )
    if purse and (why := purse.refuses(record.cell.job)):
        return CellStanding(VerdictState.HELD, why, phrase("plan.raise_money_budget_run_up_give_cells"))
    cause = redo_retry_cause(record)
    again = (cause,) if cause else ()
    if state.intent.kind == "down":
        told, following = phrase("plan.campaign_down"), phrase("plan.starts_after_up_alone")
    else:
        told, following = phrase("plan.waits_slot"), phrase("plan.starts_when_slot_free")
    return CellStanding(
        VerdictState.PENDING,
        join_phrases("; ", (*again, told)) if again else told,
        following,
        startable=True,
        retry_cause=cause,
    )


def redo_retry_cause(record: CellRecord) -> str | None:
    """What is recorded with the attempt that follows a redo; None: it was not asked for, or has started."""
    if record.redo_because is None:
        return None
    return phrase("plan.run_again_person_asked", retry_because=record.retry_because or record.redo_because)


def _next_after_done(record: CellRecord) -> str:
    if not is_outdated_cell(record):
        return phrase("plan.nothing_do")
    return phrase("plan.redo_because_runs_defined_now", id=shlex.quote(record.cell.id))


def _standing_of_dead_cell(
    record: CellRecord, state: CampaignState, needs: CellNeeds, purse: BudgetState | None
) -> CellStanding:
    last = record.last
    outcome = last.outcome if last else None
    reason = (last.reread.reason if last and last.reread else outcome.reason if outcome else "") or phrase("plan.ended")
    if outcome and outcome.note:
        reason = phrase("plan.ended_with_note", reason=reason, note=outcome.note)
    following = decide_retry(record, state.job(record.cell.job))
    if following.cause is None:
        return CellStanding(VerdictState.DEAD, reason, following.why)
    if state.intent.kind == "held":
        return CellStanding(
            VerdictState.DEAD, reason, phrase("plan.held_until_release", why=following.why, reason=state.intent.reason)
        )
    waiting = unmet_needs(record.cell, state, needs)
    if waiting:
        return CellStanding(
            VerdictState.DEAD, reason, phrase("plan.after_needs", why=following.why, needs=join_few_names(waiting, 3))
        )
    if closed := shut_gate_reason(record.cell, state, needs):
        return CellStanding(VerdictState.DEAD, reason, join_phrases("; ", (following.why, closed)), gated=True)
    if not passes_filter(record.cell, state.only):
        return CellStanding(
            VerdictState.DEAD, reason, phrase("plan.left_out_only", cell_filter=format_cell_filter(state.only))
        )
    if purse and (short := purse.refuses(record.cell.job)):
        return CellStanding(
            VerdictState.DEAD, reason, phrase("plan.retry_held_for_budget", why=following.why, short=short)
        )
    why = phrase("plan.starts_after_up", why=following.why) if state.intent.kind == "down" else following.why
    return CellStanding(VerdictState.DEAD, reason, why, startable=True, retry_cause=following.cause)


def unmet_needs(cell: Cell, state: CampaignState, needs: CellNeeds) -> list[str]:
    """The needed cells that are not DONE."""
    return [need for need in needs.get(cell.id, ()) if not (need in state.cells and state.cells[need].done)]


def shut_gate_reason(cell: Cell, state: CampaignState, needs: CellNeeds) -> str:
    """Why gates that let its job start have not: each of its runs must have come to a phase above 0, and be there."""
    for name, gate in (state.campaign.gates or {}).items():
        for need in needs.get(cell.id, ()) if cell.job in gate.lets else ():
            record = state.cells.get(need)
            if record is None or record.cell.job != gate.job:
                continue
            known, completed = state.gates.get(need, {}).get(name), record.completed
            if known is None or completed is None or known.attempt != completed.n or known.phase < 1:
                ours = known is not None and completed is not None and known.attempt == completed.n
                shut = phrase("plan.needs_gate_open_shut", gate=name, need=need)
                if known is None or not ours:
                    return shut
                last = phrase("plan.last_recorded_iteration", iteration=known.iteration, why=known.why)
                return join_phrases("; ", (shut, last))
    return ""


def passes_filter(cell: Cell, only: CellFilter) -> bool:
    """Repeated --only are combined by and; commas inside one by or. An axis that the job lacks does not filter it."""
    names = cell.names
    names["job"] = cell.job
    return all(names[axis] in values for part in only for axis, values in part.items() if axis in names)


def format_cell_filter(only: CellFilter) -> str:
    return " --only ".join(f"{axis}={','.join(values)}" for part in only for axis, values in part.items())


def _describe_completion(record: CellRecord) -> str:
    attempt = record.completed
    if attempt is None or attempt.outcome is None:
        return phrase("plan.done")
    how = (
        attempt.outcome.reason
        if attempt.accepted is None
        else phrase("plan.accepted_person", accepted=attempt.accepted)
    )
    if attempt.reread and attempt.reread.holds:
        how = attempt.reread.reason
    return phrase("plan.definition_changed_since", how=how) if is_outdated_cell(record) else how


def is_outdated_cell(record: CellRecord) -> bool:
    """DONE, but under a definition that is no longer the campaign's. The code is another matter: see `verify`.

    Of an adopted run it is the definition under which it was taken in.
    """
    attempt = record.completed
    if attempt is None or not record.hash or not attempt.hash:
        return False
    return definition_part(record.hash_today(attempt)) != definition_part(record.hash)


def _next_of_blocked(waiting: list[str], state: CampaignState) -> str:
    given_up = [need for need in waiting if need in state.cells and state.cells[need].given_up is not None]
    if given_up:
        return phrase("plan.cant_start_given_up", few_names=join_few_names(given_up, 3))
    return (
        phrase("plan.starts_when_they_done")
        if len(waiting) > 1
        else phrase("plan.starts_when_done", waiting=waiting[0])
    )
