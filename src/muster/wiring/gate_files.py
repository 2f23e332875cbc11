"""Reads what `muster gates` is asked about: flag lines, evaluation tables, settings, traces, runs of a campaign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.acts.gate_check import rule_facts
from muster.acts.gate_replay import flag_facts
from muster.domain.campaign import Campaign
from muster.domain.errors import MusterError, UsageError
from muster.ports.bounded_json import TooManyValues, check_values
from muster.ports.regular_files import read_regular
from muster.stages.errors import SpecError, closest
from muster.stages.flags import settings_of
from muster.stages.lint import Facts
from muster.stages.rows import Row, judged
from muster.stages.tables import Table, fitted, read_table
from muster.stages.traces import read_trace

LARGEST = 16 << 20
IN_A_RUN = ("gate_trace.jsonl", "eval_history.jsonl", "eval_multi_history.jsonl")
_FENCE = "```"
OURS = ("--penalty_gate_", "--tail_", "--curriculum", "--multi_eval_")  # flags: a comment may hold others


@dataclass(frozen=True, slots=True)
class Told:
    """A table of evaluations, and how the run itself decided, where it says so."""

    file: str
    table: Table
    decided: dict[int, str]

    def rows_for(self, facts: Facts) -> list[Row]:
        if facts.gate is None:
            return self.table.rows
        rows = fitted(self.table.rows, facts.gate.watched())
        return rows if self.table.kind == "trace" else judged(rows, facts.gate) or rows  # none: the keys are misspelt


def read_text(path: Path) -> str:
    """Raises MusterError, with what is wrong."""
    try:
        if path.is_dir():
            raise UsageError(f"{path} is a folder", hint="name the file in it")
        if path.stat().st_size > LARGEST:
            raise MusterError(f"it is larger than {LARGEST >> 20} MiB", where=str(path))
        return read_regular(path, LARGEST).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}", hint="check its name and your folder") from None
    except UnicodeDecodeError:
        raise MusterError("it is not UTF-8 text", where=str(path), hint="save it as UTF-8") from None


def in_words(error: SpecError, where: str) -> MusterError:
    """Every problem with its caret."""
    hint = "mend them all; nothing was changed" if len(error.problems) > 1 else ""
    return UsageError(str(error), where=where, hint=hint)


def read_flags(path: Path, iterations: int | None = None) -> Facts:
    """A command line in a file of its own, or in a code block of a document."""
    try:
        facts = flag_facts(settings_of(command_in(read_text(path))), iterations)
    except SpecError as error:
        raise in_words(error, str(path)) from None
    if not any((facts.gate, facts.schedule, facts.curriculum)):
        raise UsageError(
            "no flag in it is about gates, stages or a curriculum", where=str(path),
            hint="it should hold a command with --penalty_gate_*, --tail_seed_stage_spec or --curriculum",
        )  # fmt: skip
    return facts


def command_in(text: str) -> str:
    """Of a document the code block with the most flags; else all of it."""
    blocks = [block.partition("\n")[2] for block in text.split(_FENCE)[1::2]]
    return max(blocks, key=lambda block: block.count("--")) if any("--" in block for block in blocks) else text


def read_rules(path: Path, name: str = "", base: Facts | None = None) -> Facts:
    """Another setting: a gate as under its name in a campaign file, a campaign file with one gate, or a flag line."""
    text = read_text(path)
    if any(word.startswith(OURS) for word in text.split()):
        return read_flags(path)
    from muster.spec.rules import read_rules as rules_of

    try:
        found = rule_facts(rules_of(text, file=str(path), name=name))
    except SpecError as error:
        raise in_words(error, str(path)) from None
    if base is None:
        return found
    return found._replace(
        schedule=found.schedule or base.schedule, curriculum=found.curriculum or base.curriculum,
        iterations=found.iterations or base.iterations, interval=found.interval or base.interval,
    )  # fmt: skip


def read_evals(path: Path, step: str = "", stage: str = "") -> Told:
    """A table in whatever form, or a run's folder."""
    file = _in_run(path) if path.is_dir() else path
    text = read_text(file)
    try:
        check_values(text.encode())
    except TooManyValues as error:
        raise MusterError(str(error), where=str(file)) from None
    try:
        table = read_table(text, step=step, stage=stage)
        decided = (
            {row["iteration"]: str(row.get("state")) for row in read_trace(text).decided} if table.settings else {}
        )
    except SpecError as error:
        raise in_words(error, str(file)) from None
    return Told(str(file), table, decided)


def _in_run(folder: Path) -> Path:
    for name in IN_A_RUN:
        found = [folder / name, *sorted(folder.glob(f"*/{name}"))]
        there = next((path for path in found if path.is_file()), None)
        if there:
            return there
    raise UsageError(f"there is no trace in {folder}", hint=f"looked for {', '.join(IN_A_RUN)}")


def gates_of(campaign: Campaign, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Those that are named; none: all."""
    known = dict(campaign.gates or {})
    if not known:
        raise UsageError("the campaign has no gates", hint="declare them under `gates:`, or name a file: --flags FILE")
    for name in names:
        if name not in known:
            raise UsageError(f"there is no gate '{name}'", hint=closest(name, list(known)))
    return {name: known[name] for name in names or known}
