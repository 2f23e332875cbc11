"""The reference's training, and gates written short, for the tests of this room."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from muster.stages import Decision, Gate, GateSettings
from muster.stages.replay import drop_criteria_of_keys, find_absent_keys, windows_of_one
from muster.stages.traces import EvaluationRow
from muster.stages.training_flags import TrainingFlags, parse_training_flags

TEXTS = Path(__file__).parent / "texts"
KEYS = ("avg_final", "min_final", "early_death_100", "first_death_p10", "step_one_ratio")
LETTERS = {"advance": "A", "hold": "h", "failure_hold": "f", "fall_back": "b", "frozen": "z"}


def flag_line() -> str:
    return (TEXTS / "dev_v40_flags.txt").read_text(encoding="utf-8")


def reference() -> TrainingFlags:
    return parse_training_flags(flag_line())


def evaluations() -> list[EvaluationRow]:
    """The seven rows of the document's table."""
    lines = (TEXTS / "dev_v40_evals.md").read_text(encoding="utf-8").splitlines()[2:]
    cells = [[each.strip() for each in line.strip("| ").split("|")] for line in lines]
    return [EvaluationRow(int(at), dict(zip(KEYS, map(float, rest), strict=True)), stage) for at, stage, *rest in cells]


def reference_gate(*, windows: bool = False) -> GateSettings:
    """Its criteria on what the table has; with windows of 1, or with its own."""
    gate = reference().gate
    assert gate is not None
    judged = drop_criteria_of_keys(gate, find_absent_keys(gate, evaluations()))
    return judged if windows else windows_of_one(judged)


def gate_of(**written: Any) -> Gate:
    return Gate(GateSettings.of(written))


def fed(gate: Gate, values: Iterable[Any], start: int = 1) -> list[Decision]:
    """One observation of `x` after the other; a pair is a value and its stage, a mapping all the values."""
    found = []
    for at, each in enumerate(values, start):
        value, stage = each if isinstance(each, tuple) else (each, "")
        found.append(gate.observe(at, value if isinstance(value, dict) else {"x": value}, stage))
    return found


def letters(decisions: Iterable[Decision]) -> str:
    return "".join(LETTERS[each.state] for each in decisions)
