"""The traces that the controller keeps of gates in an attempt's folder, their newest rows, and what past runs of a
campaign wrote for a gate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from muster.files.safe_open import open_regular_file
from muster.model.campaign import Campaign, DeclaredGate, section_as_written
from muster.model.campaign_state import CampaignState
from muster.readers.gate_stream import open_gate_stream
from muster.readers.output_files import folder_of_output
from muster.readers.records.row_steps import decode_json_row
from muster.stages.gate_settings import GateSettings
from muster.stages.traces import EvaluationRow, drop_superseded_rows, rows_with_gate_keys

TRACE_FOLDER = "gates"
TRACE_TAIL_BYTES = 64 << 10
TRACE_FIELDS = (
    "iteration",
    "stage",
    "phase",
    "state",
    "streak",
    "required",
    "failures",
    "tolerance",
    "broke",
    "missing",
    "why",
)


def newest_gate_rows(folder: Path) -> dict[str, Mapping[str, Any]]:
    """By gate; nothing where there is none, or none that can be read."""
    found: dict[str, Mapping[str, Any]] = {}
    for path in sorted((folder / TRACE_FOLDER).glob("*.jsonl")):
        row = _read_last_trace_row(path)
        if row:
            found[path.stem] = {name: row.get(name) for name in TRACE_FIELDS}
    return found


def _read_last_trace_row(path: Path) -> dict[str, Any] | None:
    try:
        with open_regular_file(path) as file:
            file.seek(max(0, file.seek(0, 2) - TRACE_TAIL_BYTES))
            lines = file.read().splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        row = decode_json_row(line)
        if isinstance(row, dict) and "iteration" in row:
            return row
    return None


MOST_PAST_RUNS = 8  # the newest ones: what they never met, the next one hardly will


def rows_of_past_runs(campaign: Campaign, state: CampaignState | None, name: str) -> Sequence[Sequence[EvaluationRow]]:
    """One list for each run that has ended. What can't be read tells nothing."""
    gate = (campaign.gates or {})[name]
    if state is None:
        return ()
    ended = [
        attempt.outcome
        for record in state.cells.values()
        if record.cell.job == gate.job and (attempt := record.completed or record.last) and attempt.outcome
    ]
    found = []
    for outcome in ended[-MOST_PAST_RUNS:]:
        if outcome.output and (rows := read_gate_rows(gate, outcome.output)):
            found.append(rows)
    return found


def read_gate_rows(gate: DeclaredGate, output: str) -> list[EvaluationRow]:
    """Of a run that has ended."""
    stream = open_gate_stream(gate.read, gate.stage, folder_of_output(output))
    try:
        rows = [*stream.look().rows, *stream.rest()]
    except Exception:  # whatever a run left behind
        return []
    return drop_superseded_rows(rows_with_gate_keys(rows, GateSettings.of(section_as_written(gate))))
