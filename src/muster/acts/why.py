"""Why a cell has its verdict: the evidence, every attempt with its cause, who decided what, what happens next."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from muster.acts.clean import cleaned_words
from muster.acts.gate_trace import newest_rows
from muster.acts.status import CellStatus, Status, cell_json, evidence_json, now_for, sureness_of, survey
from muster.acts.verdict_json import cadence_json, turns_json
from muster.domain.attempt import Attempt
from muster.domain.cell import needed_cells
from muster.domain.variants import AXIS, Variant
from muster.domain.verdict import Cause, Evidence, State, Verdict
from muster.ports.clock import iso
from muster.ports.known_secrets import mask_tail
from muster.ports.plain_files import read_plain
from muster.ports.regular_files import open_regular
from muster.ports.store import Event

TAIL_BYTES = 4096
TAIL_LINES = 12
FolderOf = Callable[[str, int], Path]

UNSEEN = "It is alive and active, but whether it advances can't be seen. That is no reason to restart it."
MEANING = {
    "DONE": "It is finished and does not run again by itself.",
    "RUNNING": "It is alive.",
    "QUIET": "It is alive and advances; only its log is silent. That is no reason to restart it.",
    "STALLED": "It is alive but does not advance. Nothing is killed by itself.",
    "DEAD": "It is not running. What it wrote is kept.",
    "UNKNOWN": "It can't be told just now, so it is called neither running nor dead.",
    "PENDING": "It has not started yet. Nothing is wrong with it.",
    "BLOCKED": "It has not started: other cells must be DONE first, or a gate must open.",
    "HELD": "It has not started: a person holds the campaign.",
    "GIVEN_UP": "It was given up, and does not run by itself. It counts as settled, and reports count it as missing.",
}


def meaning(verdict: Verdict) -> str:
    """What it means for who asks, in a sentence."""
    unseen = verdict.state == State.QUIET and verdict.confidence != "proven"
    return UNSEEN if unseen else MEANING[verdict.state]


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
        return self.resumed_from and f"from {self.resumed_from}{f' ({self.resumed_at})' if self.resumed_at else ''}"


@dataclass(frozen=True, slots=True)
class Turn:
    """A moment at which the newest attempt became something else."""

    at: str
    boot: float
    verdict: str  # RUNNING, QUIET, ..., as the state alone
    text: str


@dataclass(frozen=True, slots=True)
class Story:
    cell: CellStatus
    attempts: tuple[AttemptStory, ...]
    decisions: tuple[Event, ...]  # without the changes of verdicts, which are in the timeline
    timeline: tuple[Turn, ...]  # of the newest attempt
    needs: tuple[tuple[str, str], ...]  # (cell, its verdict)
    variant: Variant | None = None  # of a loop's run: where its config comes from
    gates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # the newest decision of each over it


def story(
    status: Status, cell: CellStatus, events: Sequence[Event], folder_of: FolderOf,
    held: Callable[[str], str] = lambda _: "",
) -> Story:  # fmt: skip
    """`held`: the step that a checkpoint holds, in words; empty: not known."""
    record = cell.record
    attempts = tuple(
        replace(
            _resumed(_told(each, cell, folder := folder_of(*each.place)), folder, held),
            cleaned=cleaned_words(events, each.n),
        )
        for each in record.attempts
    )
    needed = needed_cells(status.state.campaign, [each.cell for each in status.state.declared]).get(record.cell.id, ())
    verdicts = {each.record.cell.id: str(each.verdict.state) for each in status.cells}
    decisions = tuple(event for event in events if event.decision.kind not in ("verdict", "notice"))
    needs = tuple((name, verdicts.get(name, "UNKNOWN")) for name in needed)
    names = {value.name for axis, value in record.cell.values if axis == AXIS}
    variant = next((each for each in status.state.loop.variants if each.name in names), None)
    gates = newest_rows(folder_of(*record.last.place)) if record.last and status.state.campaign.gates else {}
    return Story(cell, attempts, decisions, tuple(_timeline(record.last, events)), needs, variant, gates)


def _timeline(attempt: Attempt | None, events: Sequence[Event]) -> Iterator[Turn]:
    for event in events:
        decision = event.decision
        if attempt is None or decision.attempt != attempt.n or event.void:
            continue
        if decision.kind == "start":
            yield Turn(decision.at, decision.boot, "RUNNING", f"started on {', '.join(attempt.slots)}")
        elif decision.kind == "verdict":
            state = str(decision.data.get("to", "")).partition("(")[0]
            yield Turn(decision.at, decision.boot, state, decision.reason)
        elif decision.kind == "settle":
            state = str(decision.data["outcome"]["verdict"])
            yield Turn(decision.at, decision.boot, state, f"{state}: {decision.reason}")


def forgotten(status: Status) -> tuple[CellStatus, ...]:
    """Cells that are no longer declared and have ended: judged as if they still were, and nothing follows for them."""
    records = {
        name: replace(record, declared=True)
        for name, record in status.state.cells.items()
        if not record.declared and record.attempts and not record.open
    }
    asked = replace(status.state, cells=records)
    found = survey(asked, {}, status.controller, wall=0.0, boot=status.boot, boot_id=status.boot_id)
    return tuple(
        replace(
            cell,
            record=status.state.cells[cell.record.cell.id],
            next="nothing to do: it is no longer declared",
            startable=False,
        )
        for cell in found.cells
    )


def _told(attempt: Attempt, cell: CellStatus, folder: Path) -> AttemptStory:
    log, err = (str(path) if (path := folder / name).exists() else None for name in ("stdout.log", "stderr.log"))
    outcome = attempt.outcome
    if outcome is None:
        facts = _exit_facts(folder, attempt.token)
        verdict = cell.verdict
        return AttemptStory(
            attempt, str(verdict.state), _text(verdict.cause), verdict.confidence, verdict.reason, cell.since,
            iso(facts["at"]) if facts and verdict.final else None, facts.get("duration_s"), facts.get("code"),
            facts.get("signal"), cell.output, verdict.evidence, log, err, verdict.contributing, verdict.lines,
            verdict.advice,
        )  # fmt: skip
    cause = outcome.cause
    return AttemptStory(
        attempt, str(outcome.verdict), _text(cause), cause.confidence if cause else sureness_of(attempt),
        outcome.reason, iso(outcome.started) if outcome.started else None,
        iso(outcome.ended) if outcome.ended else None,
        outcome.duration_s, outcome.exit_code, outcome.exit_signal, outcome.output, outcome.evidence, log, err,
        outcome.contributing, outcome.lines, outcome.advice,
    )  # fmt: skip


def _resumed(told: AttemptStory, folder: Path, held: Callable[[str], str]) -> AttemptStory:
    try:
        found = json.loads(read_plain(str(folder / "attempt.json")))
    except (OSError, ValueError, RecursionError):
        return told  # an adopted one has none
    path = found.get("resumed_from") if isinstance(found, dict) else None
    return replace(told, resumed_from=path, resumed_at=held(path)) if isinstance(path, str) and path else told


def _text(cause: Cause | None) -> str | None:
    return str(cause) if cause else None


def _exit_facts(folder: Path, token: str) -> dict[str, Any]:
    """exit.json of an attempt that has ended and is not recorded yet."""
    try:
        facts = json.loads(read_plain(str(folder / "exit.json")))
    except (OSError, ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) and facts.get("token") == token else {}


def tail(path: str | None) -> list[str]:
    """The last lines of a log."""
    if path is None:
        return []
    try:
        with open_regular(path) as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            data = file.read()
    except OSError:
        return []
    lines = mask_tail(data.decode("utf-8", "replace")).splitlines()
    if size > TAIL_BYTES:
        lines = lines[1:]  # the first of them is cut off
    return lines[-TAIL_LINES:]


def as_json(told: Story, status: Status) -> dict[str, Any]:
    """The object of `muster why --json`: a contract."""
    return {
        **cell_json(told.cell, status),
        "attempts": [_attempt_json(each, now_for(each.attempt, status)) for each in told.attempts],
        "cadence": cadence_json(told.cell.verdict),
        "turns": turns_json(told.cell.verdict, status.boot),
        "timeline": [{"at": turn.at, "verdict": turn.verdict, "what": turn.text} for turn in told.timeline],
        "needs": [{"cell": name, "verdict": verdict} for name, verdict in told.needs],
        "decisions": [_decision_json(event) for event in told.decisions],
        "formerly": list(told.cell.record.formerly),
        "variant": _variant_json(told.variant),
        "gates": {name: dict(row) for name, row in told.gates.items()},
    }


def _variant_json(variant: Variant | None) -> dict[str, Any] | None:
    if variant is None:
        return None
    return {
        "name": variant.name, "round": variant.round, "parent": variant.parent, "edits": list(variant.edits),
        "reason": variant.reason, "by": variant.by, "config": variant.config,
    }  # fmt: skip


def _attempt_json(told: AttemptStory, boot: float) -> dict[str, Any]:
    attempt = told.attempt
    return {
        "n": attempt.n,
        "verdict": told.verdict,
        "cause": told.cause,
        "confidence": told.confidence,
        "reason": told.reason,
        "started": told.started,
        "ended": told.ended,
        "duration_s": told.duration_s,
        "exit": {"code": told.code, "signal": told.signal},
        "evidence": [evidence_json(item, boot) for item in told.evidence],
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
        "reread": {"holds": attempt.reread.holds, "reason": attempt.reread.reason} if attempt.reread else None,
        "adopted": attempt.adopted,
        "cleaned": told.cleaned,
    }


def _decision_json(event: Event) -> dict[str, Any]:
    decision = event.decision
    return {
        "at": decision.at,
        "who": decision.who,
        "what": decision.kind,
        "attempt": decision.attempt,
        "why": decision.reason,
        "refused": event.void,
        "evidence": decision.data.get("evidence") if decision.kind == "note" else None,
    }
