"""The reference's journal, and runs as its own text tells of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from muster.app.journal.journal_points import Journal, read_journal_points
from muster.app.journal.journal_text import scan_journal_lines
from muster.app.journal.recorded_run import (
    ArtifactFile,
    Evaluation,
    EvaluationRows,
    RecordedGateTrace,
    RecordedRun,
    RunCommand,
    RunPicture,
    TrainingSeries,
)

REFERENCE = (Path(__file__).parent / "texts" / "dev_v40.md").read_text(encoding="utf-8")
KEYS = ("avg_final", "min_final", "early_death_100", "first_death_p10", "step_one_ratio")
ROWS = (
    (8, "ne", 0.716, 0.615, 0.117, 83.0, 0.0208),
    (16, "ne", 0.553, 0.417, 0.099, 101.0, 0.0198),
    (24, "main", 0.654, 0.573, 0.099, 100.9, 0.0151),
    (32, "main", 0.668, 0.594, 0.107, 87.0, 0.0240),
    (40, "main", 0.688, 0.552, 0.110, 89.0, 0.0260),
    (48, "ne", 0.721, 0.594, 0.105, 95.0, 0.0219),
    (56, "main", 0.768, 0.615, 0.094, 108.9, 0.0198),
)
LENGTHS = ((8, "ne"), (6, "ne"), (15, "main"), (6, "ne"), (24, "main"), (16, "main"), (25, "main"), (20, "main"))


def evaluations(rows: Sequence[Sequence[Any]] = ROWS, source: str = "runs/v40/eval_history.jsonl") -> EvaluationRows:
    return EvaluationRows(
        source, [Evaluation(row[0], row[1], dict(zip(KEYS, row[2:], strict=True))) for row in rows]
    )  # fmt: skip


def schedule() -> dict[str, Any]:
    stages, first = [], 1
    for length, kind in LENGTHS:
        stages.append({"from": first, "to": first + length - 1, "type": kind, "source": "a.json"})
        first += length
    left = [
        {"ne": sum(max(0, each["to"] - max(at, each["from"] - 1)) for each in stages if each["type"] == "ne"), "main": 60 - at}
        for at in range(1, 61)
    ]  # fmt: skip
    return {
        "iterations": 60,
        "stages": stages,
        "reinjections_by_type": {"ne": 2},
        "warnings": [{"type": "ne", "onset": 56, "iteration": 57, "ratio": 0.7, "threshold": 0.7, "duration": 4, "total": 4}],
        "trace": [{"iteration": at, "stage": "ne", "remaining": each} for at, each in enumerate(left, 1)],
    }  # fmt: skip


def check(side: str, key: str, bound: str, threshold: float, value: float | None, holds: bool | None) -> dict[str, Any]:
    return {
        "side": side,
        "key": key,
        "window": "last",
        "bound": bound,
        "threshold": threshold,
        "value": value,
        "holds": holds,
    }


def gate_row(row: Sequence[Any], streak: int, verdict: str, state: str, broke: str = "") -> dict[str, Any]:
    """As the gate of the reference decides it, with windows of 1."""
    at, stage, _, least, early, p10, ratio = row
    criteria = [
        check("success", "first_death_p10", "min", 70, p10, p10 >= 70),
        check(
            "success",
            "early_death_100",
            "max",
            0.13 if stage == "ne" else 0.1,
            early,
            early <= (0.13 if stage == "ne" else 0.1),
        ),
        check("success", "step_one_ratio", "max", 0.02, ratio, ratio <= 0.02),
        check("failure", "first_death_p10", "below", 95, p10, p10 < 95),
        check("failure", "min_final", "below", 0.5, least, least < 0.5),
    ]
    return {
        "iteration": at, "stage": stage, "phase": 0, "state": state, "verdict": verdict, "streak": streak, "required": 2,
        "failures": 0, "tolerance": 2, "frozen_until": None, "criteria": criteria, "broke": broke, "missing": [], "why": "",
    }  # fmt: skip


DECIDED = (
    (0, "failure", "failure_hold", ""),
    (0, "both", "failure_hold", ""),
    (1, "success", "hold", ""),
    (0, "failure", "failure_hold", "first_death_p10 87 is below 95"),
    (0, "failure", "failure_hold", ""),
    (0, "neither", "hold", ""),
    (1, "success", "hold", ""),
)


def gate(settings: Mapping[str, Any] | None = None) -> RecordedGateTrace:
    rows = [gate_row(row, *decided) for row, decided in zip(ROWS, DECIDED, strict=True)]
    return RecordedGateTrace("runs/v40/gate_trace.jsonl", "penalty", settings or {"required": 2}, rows)


def series() -> dict[str, list[float]]:
    rising = [0.5 + 0.34 * at / 50 for at in range(50)]
    return {
        "survival": [*rising, 0.837, 0.84, 0.845, 0.85, 0.851, 0.852, 0.853, 0.854, 0.855, 0.853],
        "first_death_step": [402.0] * 60,
        "step_one_ratio": [0.0198] * 60,
    }


def run(name: str = "runs/v40", **changed: Any) -> RecordedRun:
    whole = RecordedRun(
        name,
        name.rpartition("/")[2],
        name,
        RunCommand(("python", "train.py", "--penalty_gate_success_p10", "70", "--penalty_gate_failure_tolerance_by_stage",
                 "main:3", "--lr", "2.5e-4"), f"{name}/command.txt"),
        evaluations(source=f"{name}/eval_history.jsonl"),
        (gate(),),
        schedule(),
        f"{name}/schedule_trace.json",
        {"what": "first-step deaths", "events": {"ne": 120, "main": 163}},
        f"{name}/stage_summary.json",
        TrainingSeries(f"{name}/training_stats.pkl", series()),
        (ArtifactFile(f"{name}/eval_history.jsonl", 812, "ab" * 32), ArtifactFile(f"{name}/checkpoints/", 4096, "cd" * 32, 15)),
        (RunPicture(f"{name}/plots/stages.png"),),
    )  # fmt: skip
    return replace(whole, **changed)


def journal(version: int, text: str) -> Journal:
    return read_journal_points(version, scan_journal_lines(text))
