"""The object of `muster look --json`."""

from __future__ import annotations

from typing import Any

from muster.acts.look import Look, logged_step
from muster.acts.masking import hidden_words
from muster.acts.status import evidence_json
from muster.acts.verdict_json import cadence_json, turns_json


def as_json(look: Look) -> dict[str, Any]:
    """The object of `muster look --json`: a contract."""
    sight, verdict = look.sight, look.verdict
    return {
        "muster": 1,
        "asked": sight.asked.text,
        "verdict": str(verdict.state),
        "kind": verdict.kind,
        "confidence": verdict.confidence,
        "cause": str(verdict.cause) if verdict.cause else None,
        "reason": verdict.reason,
        "next": look.advice[0] if look.advice else "nothing to do",
        "advice": list(look.advice),
        "notes": list(look.notes),
        "pid": look.pid,
        "command": hidden_words(sight.who.argv) if sight.who else None,
        "output": sight.found.folder or None,
        "step": look.step,
        "logged_step": logged_step(sight),
        "target": sight.target.step if sight.target else None,
        "since": look.since,
        "evidence": [evidence_json(item, sight.boot) for item in verdict.evidence],
        "cadence": cadence_json(verdict),
        "turns": turns_json(verdict, sight.boot),
        "contributing": list(verdict.contributing),
        "lines": list(verdict.lines),
        "try": verdict.advice or None,
        "files": [_file_json(look, index) for index in range(len(sight.found.traces))],
    }


def _file_json(look: Look, index: int) -> dict[str, Any]:
    trace = look.sight.found.traces[index]
    last = trace.dated.last
    return {
        "file": trace.progress.path,
        "kind": "log" if trace.progress.kind == "stdout" else trace.progress.kind,
        "counts": trace.progress.step if trace.progress.kind in ("jsonl", "csv") else None,
        "age_s": round(max(0.0, look.sight.wall - last), 1) if last is not None else None,
        "advanced": trace.progress.path in look.sight.watch.advanced,
        "trouble": trace.mute or trace.dated.why or None,
    }
