"""The truth now: a fresh look at what is open, the record of what is not."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from muster.engine.plan.cell_standing import CellStanding, is_outdated_cell, standing_of_cell
from muster.model.attempt import Attempt, AttemptKey, CellRecord
from muster.model.calendar import format_iso_time
from muster.model.campaign_state import CampaignState
from muster.model.verdict import LIVE_STATES, SETTLED_STATES, Evidence, Verdict, VerdictState
from muster.text.phrases import has_code, join_phrases, phrase, phrase_as_data, rewrite_phrase
from muster.text.sentences import join_few_names

if TYPE_CHECKING:
    from muster.app.campaign.disk_use import DiskOutlook, LargeLog
    from muster.app.campaign.finish_steps import FinishView
    from muster.app.campaign.last_report import ReportView
    from muster.app.campaign.loop_progress import LoopProgress
    from muster.app.campaign.spending import OpenAttempts, Spending
    from muster.engine.judge.liveness import WatchOf
    from muster.ledger.budget_forecast import BudgetState
    from muster.model.attempt_snapshot import AttemptSnapshot

CELL_STATES = ("DONE", "RUNNING", "QUIET", "STALLED", "DEAD", "UNKNOWN", "PENDING", "BLOCKED", "HELD", "GIVEN_UP")


@dataclass(frozen=True, slots=True)
class CellStatus:
    record: CellRecord
    verdict: Verdict
    next: str
    startable: bool = False
    pid: int | None = None
    since: str | None = None
    output: str | None = None
    step: float | None = None
    eta: str | None = None  # when it will have ended; None: nothing tells
    gated: bool = False


@dataclass(frozen=True, slots=True)
class ControllerStatus:
    alive: bool
    pid: int | None = None
    since: str | None = None
    trouble: str = ""
    started_here: bool = True  # by this user's own `up`, asked where one is missing
    revived: bool = False  # whoever asked has started another one


@dataclass(frozen=True, slots=True)
class Status:
    state: CampaignState
    as_of: str
    boot: float
    boot_id: str
    controller: ControllerStatus
    cells: tuple[CellStatus, ...]
    withdrawn: tuple[CellStatus, ...] = ()  # no longer declared, and not over
    counts: Mapping[str, int] = field(default_factory=dict)
    finish: FinishView | None = None  # None: none is declared, and nobody wants the machine powered off
    spending: Spending | None = None  # None: no `money:` is declared
    loop: LoopProgress | None = None  # None: there is none, or it was never taken in
    report: ReportView | None = None  # what the last report found; None: there is none
    disk: DiskOutlook | None = None  # None: nothing runs, or no trend is known
    large_logs: tuple[LargeLog, ...] = ()

    @property
    def complete(self) -> bool:
        """Nothing is missing; of a loop it is known, too, why no further round comes."""
        over = self.loop is None or bool(self.loop.stopped)
        return over and all(cell.verdict.state in SETTLED_STATES for cell in self.cells)

    @property
    def going_on(self) -> bool:
        """Something lives, or is going to without anybody's help."""
        every = (*self.cells, *self.withdrawn)
        if any(cell.verdict.state in LIVE_STATES or cell.verdict.kind in ("claimed", "ending") for cell in every):
            return True
        if self.finish and self.finish.due:
            return True
        # an attempt that ended and is not recorded yet: others may wait for it
        if self.state.intent.kind != "running":
            return False
        if any(_cell_goes_on(cell) or ((cell.startable or cell.gated) and not self.state.at_rest) for cell in every):
            return True
        return self.loop is not None and self.loop.due

    @property
    def exit(self) -> int:
        """A finish that failed is something missing, too."""
        if self.going_on:
            return 4
        return 0 if self.complete and not (self.finish and self.finish.failed) else 3


def _cell_goes_on(cell: CellStatus) -> bool:
    """It is open, and not one that only a person can end who has not asked for it yet."""
    waits = cell.verdict.kind == "lost" and cell.record.stop_because is None
    return cell.record.open is not None and not waits


def build_status(
    state: CampaignState,
    sightings: Mapping[AttemptKey, AttemptSnapshot],
    controller: ControllerStatus,
    *,
    wall: float,
    boot: float,
    boot_id: str,
    watch_of: WatchOf = lambda *_: None,
    ledger: bool = False,
    report: ReportView | None = None,
    slot_holders: Sequence[str] = (),
) -> Status:
    """`ledger`: the hours are wanted although no `money:` is declared. `slot_holders`: others on our slots, told."""
    needs = state.needs
    running = _lazy_running(state, sightings, watch_of, boot) if sightings else None
    found = _lazy_spending(state, running, wall, boot, boot_id) if state.campaign.money or ledger else None
    look = _StatusInputs(
        state, needs, sightings, watch_of, found.purse if found else None, _lazy_end_times(state, running, wall)
    )
    cells = tuple(_build_cell_status(record, look) for record in state.declared)
    cells = tuple(_with_slot_holders(cell, slot_holders) for cell in cells) if slot_holders else cells
    left = [record for record in state.cells.values() if record.open and not record.declared]
    withdrawn = tuple(_build_cell_status(record, look) for record in left)
    counts = dict.fromkeys(CELL_STATES, 0)
    for cell in cells:
        counts[cell.verdict.state] += 1
    return Status(
        state,
        format_iso_time(wall),
        boot,
        boot_id,
        controller,
        cells,
        withdrawn,
        counts,
        _lazy_finish_view(state, boot),
        found,
        _lazy_loop_view(state),
        report,
    )


class _StatusInputs:
    """All that the status of a cell may rest on."""

    def __init__(
        self,
        state: CampaignState,
        needs: Mapping[str, tuple[str, ...]],
        sightings: Mapping[AttemptKey, AttemptSnapshot],
        watch_of: WatchOf,
        purse: BudgetState | None,
        etas: Mapping[AttemptKey, str],
    ) -> None:
        self.state, self.needs, self.sightings = state, needs, sightings
        self.watch_of, self.purse, self.etas = watch_of, purse, etas


def _lazy_running(
    state: CampaignState, sightings: Mapping[AttemptKey, AttemptSnapshot], watch_of: WatchOf, boot: float
) -> OpenAttempts:
    from muster.app.campaign.spending import measure_running_attempts  # a campaign at rest needs none of it

    return measure_running_attempts(state, sightings, watch_of, boot)


def _lazy_end_times(state: CampaignState, running: OpenAttempts | None, wall: float) -> Mapping[AttemptKey, str]:
    if running is None:
        return {}
    from muster.app.campaign.spending import estimate_end_times

    return {key: format_iso_time(at) for key, at in estimate_end_times(state, running, wall).items()}


def _lazy_spending(
    state: CampaignState, running: OpenAttempts | None, wall: float, boot: float, boot_id: str
) -> Spending:
    from muster.app.campaign.spending import NOTHING_RUNS, reckon_spending
    from muster.ledger.billed_spans import ledger_time_of

    return reckon_spending(state, ledger_time_of(state, wall, boot, boot_id), running or NOTHING_RUNS)


def _lazy_loop_view(state: CampaignState) -> LoopProgress | None:
    if not state.campaign.loop:
        return None
    from muster.app.campaign.loop_progress import view_loop_progress  # most campaigns have no loop

    return view_loop_progress(state)


def _lazy_finish_view(state: CampaignState, boot: float) -> FinishView | None:
    if not (state.campaign.finish or state.finish.wish or state.finish.stage or state.finish.steps):
        return None
    from muster.app.campaign.finish_steps import build_finish_view  # most looks have no use for it

    return build_finish_view(state, boot)


def _build_cell_status(record: CellRecord, look: _StatusInputs) -> CellStatus:
    attempt = record.open
    if attempt and attempt.key in look.sightings:
        return _open_cell_status(record, attempt, look.sightings[attempt.key], look)
    if attempt:
        unseen = Verdict(VerdictState.UNKNOWN, phrase("campaign.could_not_be_looked_at"), confidence="unknown")
        return CellStatus(record, unseen, phrase("campaign.look_again"))
    return _closed_cell_status(record, standing_of_cell(record, look.state, look.needs, look.purse))


def _open_cell_status(record: CellRecord, attempt: Attempt, seen: AttemptSnapshot, look: _StatusInputs) -> CellStatus:
    from muster.engine.judge.attempt_verdict import LOST_KIND, judge_attempt  # a campaign at rest needs no judge

    state = look.state
    job = state.job(record.cell.job)
    watch = look.watch_of(attempt, seen, job)
    verdict = judge_attempt(attempt, seen, job, watch)
    following = phrase("campaign.nothing_to_do")
    if verdict.state == VerdictState.STALLED:
        following = _next_after_stall(verdict, job.on_stall)
    elif watch and any(pulse.never_fits for pulse in watch.history.pulses.values()):
        following = phrase("campaign.fix_progress_pattern")
    elif verdict.kind == "orphans":
        following = phrase("campaign.orphans_block_start")
    elif verdict.kind == LOST_KIND:
        following = _next_after_loss(record)
    elif verdict.final:
        following = (
            phrase("campaign.being_recorded") if state.intent.kind == "running" else phrase("campaign.recorded_next_up")
        )
    elif record.stop_because is not None:
        following = phrase("campaign.being_stopped", reason=record.stop_because)
    step, target = seen.proof.step if seen.proof else None, job.steps
    if step is not None:
        verdict = replace(verdict, reason=_reason_with_step(verdict, step, target))
    return CellStatus(
        record,
        verdict,
        following,
        pid=seen.identity.pid if seen.identity and seen.lives else None,
        since=format_iso_time(seen.identity.at) if seen.identity else attempt.claimed_at,
        output=seen.proof.output if seen.proof else None,
        step=step,
        eta=look.etas.get(attempt.key),
    )


def _with_slot_holders(cell: CellStatus, holders: Sequence[str]) -> CellStatus:
    """A cell that waits for a slot says who has one that it might have; of a dead one that is what follows."""
    told = join_few_names(holders, 3)
    if cell.startable and cell.verdict.state == VerdictState.DEAD:
        return replace(cell, next=phrase("campaign.then_waits_for_slot_of", next=cell.next, holders=told))
    if not cell.startable or not has_code(cell.verdict.reason, "plan.waits_slot"):
        return cell
    return replace(cell, verdict=replace(cell.verdict, reason=join_phrases(": ", (cell.verdict.reason, told))))


def _next_after_loss(record: CellRecord) -> str:
    cell = shlex.quote(record.cell.id)
    return phrase("campaign.lost_run_hint", cell=cell)


def _reason_with_step(verdict: Verdict, step: float, target: int | None) -> str:
    """How far it is, of how much; a log that is silent does not mean that nobody knows."""
    if verdict.state not in (VerdictState.RUNNING, VerdictState.QUIET, VerdictState.STALLED):
        return verdict.reason
    told = phrase("campaign.step", step=f"{step:g}")
    goal = phrase("campaign.step_of", step=f"{step:g}", target=target) if target else told
    reading, left = re.compile(rf"\bstep {re.escape(f'{step:g}')}(?![\d.])"), [goal]

    def say_goal(text: str) -> str:
        """In what the run itself logged, once."""
        found = reading.search(text) if left else None
        return join_phrases("", (text[: found.start()], left.pop(), text[found.end() :])) if found else text

    # a step is there all the same
    reason = rewrite_phrase(verdict.reason, {_NO_PROGRESS_YET: "judge.not_seen_to_advance_yet"}, say_goal)
    return join_phrases("; ", (goal, reason)) if left else reason


_NO_PROGRESS_YET = "judge.no_progress_yet_after_start_grace"


def _next_after_stall(verdict: Verdict, on_stall: str) -> str:
    if verdict.kind == "stopped":
        return phrase("campaign.stopped_run_hint")
    if on_stall == "restart":
        return phrase("campaign.stall_restart_hint")
    return phrase("campaign.stall_notify_hint")


def _closed_cell_status(record: CellRecord, where: CellStanding) -> CellStatus:
    shown = record.completed or record.last
    outcome = shown.outcome if shown else None
    cause = outcome.cause if outcome and where.state == VerdictState.DEAD else None
    verdict = Verdict(
        where.state,
        where.reason,
        confidence=cause.confidence if cause else confidence_of_attempt(shown),
        cause=cause,
        evidence=_newest_evidence(shown) if shown and where.state in (VerdictState.DONE, VerdictState.DEAD) else (),
        note=outcome.note if outcome else "",
    )
    since = format_iso_time(outcome.ended) if outcome and outcome.ended else shown.claimed_at if shown else None
    return CellStatus(
        record,
        verdict,
        where.next,
        where.startable,
        since=since,
        output=outcome.output if outcome else None,
        gated=where.gated,
    )


def confidence_of_attempt(attempt: Attempt | None) -> str:
    """A run whose exit nobody knows is taken as DONE by what it left: that is no proof that it ended well."""
    outcome = attempt.outcome if attempt and attempt.was_done else None
    known = outcome is None or outcome.exit_code is not None or outcome.exit_signal is not None
    return "proven" if known else "presumed"


def _newest_evidence(attempt: Attempt) -> tuple[Evidence, ...]:
    """With the newest reading of its proof in the place of the old one."""
    evidence = attempt.outcome.evidence if attempt.outcome else ()
    if attempt.reread is None:
        return evidence
    return (*(item for item in evidence if item.kind != "proof"), *attempt.reread.evidence)


def status_as_json(status: Status) -> dict[str, Any]:
    """The object of `muster status --json`: a contract."""
    state = status.state
    controller = status.controller
    return {
        "muster": 1,
        "campaign": state.campaign.name,
        "as_of": status.as_of,
        "intent": state.intent.kind,
        "controller": {
            "alive": controller.alive,
            "pid": controller.pid,
            "since": controller.since,
            "trouble": controller.trouble or None,
            "revived": controller.revived,
            "started_here": controller.started_here,
        },
        "complete": status.complete,
        "declared": len(status.cells),
        "counts": dict(status.counts),
        "cells": [cell_status_as_json(cell, status) for cell in status.cells],
        "withdrawn": [cell_status_as_json(cell, status) for cell in status.withdrawn],
        "money": _lazy_money_json(status.spending),
        "finish": _lazy_finish_json(status.finish),
        "loop": _lazy_loop_json(status.loop),
        "report": _lazy_report_json(status.report),
        "disk": _lazy_disk_json(status.disk),
        "large_logs": _lazy_logs_json(status.large_logs),
    }


def _lazy_disk_json(found: DiskOutlook | None) -> dict[str, Any] | None:
    if found is None:
        return None
    from muster.app.campaign.disk_use import disk_outlook_as_json

    return disk_outlook_as_json(found)


def _lazy_logs_json(found: tuple[LargeLog, ...]) -> list[dict[str, Any]]:
    if not found:
        return []
    from muster.app.campaign.disk_use import large_logs_as_json

    return large_logs_as_json(found)


def _lazy_money_json(found: Spending | None) -> dict[str, Any] | None:
    if found is None:
        return None
    from muster.app.campaign.spending import spending_as_json

    return spending_as_json(found)


def _lazy_finish_json(found: FinishView | None) -> dict[str, Any] | None:
    if found is None:
        return None
    from muster.app.campaign.finish_steps import finish_view_as_json

    return finish_view_as_json(found)


def _lazy_loop_json(found: LoopProgress | None) -> dict[str, Any] | None:
    if found is None:
        return None
    from muster.app.campaign.loop_progress import loop_progress_as_json

    return loop_progress_as_json(found)


def _lazy_report_json(found: ReportView | None) -> dict[str, Any] | None:
    if found is None:
        return None
    from muster.app.campaign.last_report import report_view_as_json

    return report_view_as_json(found)


def cell_status_as_json(cell: CellStatus, status: Status) -> dict[str, Any]:
    record, verdict = cell.record, cell.verdict
    last = record.completed or record.last
    job = status.state.job(record.cell.job)
    return {
        "cell": record.cell.id,
        "job": record.cell.job,
        "axes": record.cell.axes,
        "verdict": str(verdict.state),
        "kind": verdict.kind,
        "confidence": verdict.confidence,
        "cause": str(verdict.cause) if verdict.cause else None,
        "reason": verdict.reason,
        **reason_code_as_json(verdict.reason, last.outcome.phrases if last and last.outcome else {}),
        "next": cell.next,
        **next_code_as_json(cell.next),
        "attempt": last.n if last else None,
        "attempt_count": len(record.attempts),
        "pid": cell.pid,
        "slot": ",".join(last.slots) if last and last.open else None,
        "step": cell.step,
        "target": job.steps,
        "eta": cell.eta,
        "outdated": is_outdated_cell(record),
        "since": cell.since,
        "output": cell.output,
        "evidence": [evidence_as_json(item, boot_time_for_attempt(last, status)) for item in verdict.evidence],
    }


def reason_code_as_json(reason: str, recorded: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """What stands beside a reason; null where it has no code: a person's words, or an older log.

    `recorded`: the codes of an outcome's texts, which are plain English once they are read from the log.
    """
    data = phrase_as_data(reason) or recorded.get(reason)
    if not data:
        return {"code": None, "params": None}
    params = data["params"]
    if recorded:
        params = {
            name: {"text": value, **recorded[value]} if isinstance(value, str) and value in recorded else value
            for name, value in params.items()
        }
    return {"code": data["code"], "params": params}


def next_code_as_json(following: str) -> dict[str, Any]:
    data = phrase_as_data(following)
    return {"next_code": data.get("code"), "next_params": data.get("params")}


def boot_time_for_attempt(attempt: Attempt | None, status: Status) -> float:
    """The boot time that readings of this attempt can be compared with; before all of them if the machine rebooted."""
    return status.boot if attempt is None or attempt.boot_id == status.boot_id else float("-inf")


def evidence_as_json(item: Evidence, boot: float) -> dict[str, Any]:
    age = round(boot - item.boot, 3) if item.boot is not None and boot - item.boot >= 0 else None
    return {"signal": item.signal, "class": item.kind, "reading": item.reading, "age_s": age, "says": item.says}
