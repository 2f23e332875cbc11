"""Why a cell has its verdict: the evidence, every attempt with its cause, who decided what, what happens next."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from muster.app.campaign.campaign_status import (
    CellStatus,
    Status,
    boot_time_for_attempt,
    build_status,
    cell_status_as_json,
    confidence_of_attempt,
    evidence_as_json,
    reason_code_as_json,
)
from muster.app.campaign.disk_use import describe_cleaning
from muster.app.campaign.status_json import cadence_as_json, verdict_change_as_json
from muster.engine.ports.store import LoggedDecision
from muster.files.json_codec import outcome_in_words
from muster.files.known_secrets import mask_secrets_in_tail
from muster.files.safe_open import open_regular_file, read_plain_file
from muster.model.attempt import Attempt
from muster.model.calendar import format_iso_time
from muster.model.decision import Decision
from muster.model.variant import VARIANT_AXIS, Variant
from muster.model.verdict import Cause, Evidence, Verdict, VerdictState
from muster.readers.gate_traces import newest_gate_rows
from muster.text.phrases import join_phrases, phrase, phrase_from_data

TAIL_BYTES = 4096
TAIL_LINES = 12
FolderOf = Callable[[str, int], Path]

UNSEEN_MEANING = "overview.quiet_and_unseen_means"
MEANING_BY_STATE = {
    "DONE": "overview.done_means",
    "RUNNING": "overview.running_means",
    "QUIET": "overview.quiet_means",
    "STALLED": "overview.stalled_means",
    "DEAD": "overview.dead_means",
    "UNKNOWN": "overview.unknown_means",
    "PENDING": "overview.pending_means",
    "BLOCKED": "overview.blocked_means",
    "HELD": "overview.held_means",
    "GIVEN_UP": "overview.given_up_means",
}


def explain_verdict(verdict: Verdict) -> str:
    """What it means for who asks, in a sentence."""
    unseen = verdict.state == VerdictState.QUIET and verdict.confidence != "proven"
    return phrase(UNSEEN_MEANING if unseen else MEANING_BY_STATE[verdict.state])


@dataclass(frozen=True, slots=True)
class AttemptStory:
    """One attempt as people and programs are told about it."""

    attempt: Attempt
    verdict: str
    cause: str | None
    confidence: str
    reason: str
    started: str | None
    ended: str | None
    duration_s: float | None
    code: int | None
    signal: int | None
    output: str | None
    evidence: tuple[Evidence, ...]
    log: str | None  # None: Muster has none, the run was adopted
    err: str | None
    contributing: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()  # of the log, that show the cause
    advice: str = ""
    cleaned: str | None = None  # when and by whom its output and logs were deleted
    resumed_from: str | None = None  # the checkpoint that it went on from
    resumed_at: str = ""  # the step that this holds, in words

    @property
    def resumed(self) -> str | None:
        if not self.resumed_from:
            return None
        if not self.resumed_at:
            return phrase("overview.resumed_from", checkpoint=self.resumed_from)
        return phrase("overview.resumed_from_step", checkpoint=self.resumed_from, step=self.resumed_at)


@dataclass(frozen=True, slots=True)
class VerdictChange:
    """A moment at which the newest attempt became something else."""

    at: str
    boot: float
    verdict: str  # RUNNING, QUIET, ..., as the state alone
    text: str


@dataclass(frozen=True, slots=True)
class CellStory:
    cell: CellStatus
    attempts: tuple[AttemptStory, ...]
    decisions: tuple[LoggedDecision, ...]  # without the changes of verdicts, which are in the timeline
    timeline: tuple[VerdictChange, ...]  # of the newest attempt
    needs: tuple[tuple[str, str], ...]  # (cell, its verdict)
    variant: Variant | None = None  # of a loop's run: where its config comes from
    gates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # the newest decision of each over it


def build_cell_story(
    status: Status,
    cell: CellStatus,
    events: Sequence[LoggedDecision],
    folder_of: FolderOf,
    held: Callable[[str], str] = lambda _: "",
) -> CellStory:
    """`held`: the step that a checkpoint holds, in words; empty: not known."""
    record = cell.record
    attempts = tuple(
        replace(
            _with_resume_facts(_build_attempt_story(each, cell, folder := folder_of(*each.place)), folder, held),
            cleaned=describe_cleaning(events, each.n),
        )
        for each in record.attempts
    )
    needed = status.state.needs.get(record.cell.id, ())
    verdicts = {each.record.cell.id: str(each.verdict.state) for each in status.cells}
    decisions = tuple(event for event in events if event.decision.kind not in ("verdict", "notice"))
    needs = tuple((name, verdicts.get(name, "UNKNOWN")) for name in needed)
    names = {value.name for axis, value in record.cell.values if axis == VARIANT_AXIS}
    variant = next((each for each in status.state.loop.variants if each.name in names), None)
    gates = newest_gate_rows(folder_of(*record.last.place)) if record.last and status.state.campaign.gates else {}
    return CellStory(cell, attempts, decisions, tuple(_build_timeline(record.last, events)), needs, variant, gates)


def _build_timeline(attempt: Attempt | None, events: Sequence[LoggedDecision]) -> Iterator[VerdictChange]:
    for event in events:
        decision = event.decision
        if attempt is None or decision.attempt != attempt.n or event.void:
            continue
        if decision.kind == "start":
            yield VerdictChange(
                decision.at, decision.boot, "RUNNING", phrase("overview.started_on", slots=", ".join(attempt.slots))
            )
        elif decision.kind == "verdict":
            state = str(decision.data.get("to", "")).partition("(")[0]
            yield VerdictChange(decision.at, decision.boot, state, reason_in_words(decision))
        elif decision.kind == "settle":
            state = str(decision.data["outcome"]["verdict"])
            said = join_phrases(": ", (state, reason_in_words(decision)))
            yield VerdictChange(decision.at, decision.boot, state, said)


def reason_in_words(decision: Decision) -> str:
    """As it was recorded, in the language of this process."""
    recorded = decision.data.get("phrases")
    if not isinstance(recorded, Mapping):  # of a settled attempt they stand with its outcome
        outcome = decision.data.get("outcome")
        recorded = outcome.get("phrases") if isinstance(outcome, Mapping) else None
    return phrase_from_data(decision.reason, recorded.get(decision.reason) if isinstance(recorded, Mapping) else None)


def find_withdrawn_cells(status: Status) -> tuple[CellStatus, ...]:
    """Cells that are no longer declared and have ended: judged as if they still were, and nothing follows for them."""
    records = {
        name: replace(record, declared=True)
        for name, record in status.state.cells.items()
        if not record.declared and record.attempts and not record.open
    }
    asked = replace(status.state, cells=records)
    found = build_status(asked, {}, status.controller, wall=0.0, boot=status.boot, boot_id=status.boot_id)
    return tuple(
        replace(
            cell,
            record=status.state.cells[cell.record.cell.id],
            next=phrase("overview.nothing_to_do_not_declared"),
            startable=False,
        )
        for cell in found.cells
    )


def _build_attempt_story(attempt: Attempt, cell: CellStatus, folder: Path) -> AttemptStory:
    log, err = (str(path) if (path := folder / name).exists() else None for name in ("stdout.log", "stderr.log"))
    outcome = attempt.outcome
    if outcome is None:
        facts = _read_exit_facts(folder, attempt.token)
        verdict = cell.verdict
        return AttemptStory(
            attempt,
            str(verdict.state),
            _cause_text(verdict.cause),
            verdict.confidence,
            verdict.reason,
            cell.since,
            format_iso_time(facts["at"]) if facts and verdict.final else None,
            facts.get("duration_s"),
            facts.get("code"),
            facts.get("signal"),
            cell.output,
            verdict.evidence,
            log,
            err,
            verdict.contributing,
            verdict.lines,
            verdict.advice,
        )
    outcome = outcome_in_words(outcome)
    cause = outcome.cause
    return AttemptStory(
        attempt,
        str(outcome.verdict),
        _cause_text(cause),
        cause.confidence if cause else confidence_of_attempt(attempt),
        outcome.reason,
        format_iso_time(outcome.started) if outcome.started else None,
        format_iso_time(outcome.ended) if outcome.ended else None,
        outcome.duration_s,
        outcome.exit_code,
        outcome.exit_signal,
        outcome.output,
        outcome.evidence,
        log,
        err,
        outcome.contributing,
        outcome.lines,
        outcome.advice,
    )


def _with_resume_facts(told: AttemptStory, folder: Path, held: Callable[[str], str]) -> AttemptStory:
    try:
        found = json.loads(read_plain_file(str(folder / "attempt.json")))
    except (OSError, ValueError, RecursionError):
        return told  # an adopted one has none
    path = found.get("resumed_from") if isinstance(found, dict) else None
    return replace(told, resumed_from=path, resumed_at=held(path)) if isinstance(path, str) and path else told


def _cause_text(cause: Cause | None) -> str | None:
    return str(cause) if cause else None


def _read_exit_facts(folder: Path, token: str) -> dict[str, Any]:
    """exit.json of an attempt that has ended and is not recorded yet."""
    try:
        facts = json.loads(read_plain_file(str(folder / "exit.json")))
    except (OSError, ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) and facts.get("token") == token else {}


def read_log_tail(path: str | None) -> list[str]:
    """The last lines of a log."""
    if path is None:
        return []
    try:
        with open_regular_file(path) as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            data = file.read()
    except OSError:
        return []
    lines = mask_secrets_in_tail(data.decode("utf-8", "replace")).splitlines()
    if size > TAIL_BYTES:
        lines = lines[1:]  # the first of them is cut off
    return lines[-TAIL_LINES:]


def cell_story_as_json(told: CellStory, status: Status) -> dict[str, Any]:
    """The object of `muster why --json`: a contract."""
    return {
        **cell_status_as_json(told.cell, status),
        "attempts": [
            _attempt_story_as_json(each, boot_time_for_attempt(each.attempt, status)) for each in told.attempts
        ],
        "cadence": cadence_as_json(told.cell.verdict),
        "turns": verdict_change_as_json(told.cell.verdict, status.boot),
        "timeline": [{"at": turn.at, "verdict": turn.verdict, "what": turn.text} for turn in told.timeline],
        "needs": [{"cell": name, "verdict": verdict} for name, verdict in told.needs],
        "decisions": [_decision_as_json(event) for event in told.decisions],
        "formerly": list(told.cell.record.formerly),
        "variant": _lineage_as_json(told.variant),
        "gates": {name: dict(row) for name, row in told.gates.items()},
    }


def _lineage_as_json(variant: Variant | None) -> dict[str, Any] | None:
    if variant is None:
        return None
    return {
        "name": variant.name,
        "round": variant.round,
        "parent": variant.parent,
        "edits": list(variant.edits),
        "reason": variant.reason,
        "by": variant.by,
        "config": variant.config,
    }


def _attempt_story_as_json(told: AttemptStory, boot: float) -> dict[str, Any]:
    attempt = told.attempt
    return {
        "n": attempt.n,
        "verdict": told.verdict,
        "cause": told.cause,
        "confidence": told.confidence,
        "reason": told.reason,
        **reason_code_as_json(told.reason),
        "started": told.started,
        "ended": told.ended,
        "duration_s": told.duration_s,
        "exit": {"code": told.code, "signal": told.signal},
        "evidence": [evidence_as_json(item, boot) for item in told.evidence],
        "log": told.log,
        "err": told.err,
        "output": told.output,
        "contributing": list(told.contributing),
        "lines": list(told.lines),
        "try": told.advice or None,
        "retry_cause": attempt.retry_cause,
        "resumed_from": told.resumed_from,
        "accepted": attempt.accepted,
        "superseded": attempt.superseded,
        "reread": _reread_as_json(attempt),
        "adopted": attempt.adopted,
        "cleaned": told.cleaned,
    }


def _reread_as_json(attempt: Attempt) -> dict[str, Any] | None:
    if attempt.reread is None:
        return None
    reason = attempt.reread.reason
    return {"holds": attempt.reread.holds, "reason": reason, **reason_code_as_json(reason)}


def _decision_as_json(event: LoggedDecision) -> dict[str, Any]:
    decision = event.decision
    return {
        "at": decision.at,
        "who": decision.who,
        "what": decision.kind,
        "attempt": decision.attempt,
        "why": decision.reason,
        **reason_code_as_json(reason_in_words(decision)),
        "refused": event.void,
        "evidence": decision.data.get("evidence") if decision.kind == "note" else None,
    }
