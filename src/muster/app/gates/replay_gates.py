"""`muster gates check` and `muster gates replay`: reads flag lines, settings, evaluation files and runs of a
campaign, and returns what was found or decided, as values and JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.app.campaign.check_gates_and_loop import facts_of_campaign_gate, facts_of_gate_section
from muster.files.json_codec import TooManyJsonValues, check_json_values
from muster.files.safe_open import read_regular_file
from muster.files.state_folder import attempt_folder
from muster.model.campaign import Campaign, DeclaredGate
from muster.model.errors import MusterError, UsageError
from muster.stages.contradictions import ERROR, GateFinding, TrainingFacts, find_contradictions
from muster.stages.gate_decision import Decision
from muster.stages.gate_settings import GateSettings
from muster.stages.notation import SpecError, suggest_closest_name
from muster.stages.replay import (
    SingleChange,
    drop_criteria_of_keys,
    find_absent_keys,
    first_opening,
    replay_gate,
    summarize_replay,
    try_single_changes,
    windows_of_one,
)
from muster.stages.traces import (
    EvaluationRow,
    GateEvaluationTable,
    parse_evaluation_table,
    parse_gate_trace,
    rename_columns_to_keys,
    rows_with_gate_keys,
)
from muster.stages.training_flags import TrainingFlags, parse_training_flags
from muster.text.phrases import phrase


@dataclass(frozen=True, slots=True)
class GateReplay:
    """A gate over the rows of a finished run."""

    settings: GateSettings
    decisions: Sequence[Decision]
    strangers: Sequence[str] = ()  # stages that it names, and no row is of
    left_out: Sequence[str] = ()  # keys that no row has: their criteria could not be judged
    otherwise: Sequence[SingleChange] = ()
    differs: Sequence[int] = ()  # iterations at which the run itself decided otherwise

    @property
    def opens(self) -> int | None:
        return first_opening(self.decisions)

    @property
    def conclusion(self) -> str:
        if self.left_out and not self.decisions:
            return "there is nothing to decide on: no row has a key of its criteria"
        return summarize_replay(self.decisions)


def make_gate_replay(
    settings: GateSettings,
    rows: Sequence[EvaluationRow],
    *,
    strict: bool = False,
    decided: Mapping[int, str] | None = None,
) -> GateReplay:
    """`strict`: a key that no row has keeps its criterion from being met, as it did in the run. `decided`: by whom
    the run was decided, state by iteration."""
    left_out = [] if strict else find_absent_keys(settings, rows)
    judged = drop_criteria_of_keys(settings, left_out)
    decisions = replay_gate(judged, rows) if judged.success or judged.failure else []
    shut = first_opening(decisions) is None
    changes = [*try_single_changes(judged, rows)] if decisions and shut else []
    differs = [each.iteration for each in decisions if decided and decided.get(each.iteration) != each.state]
    labels = {row.stage for row in rows if row.stage}
    strangers = [stage for stage in settings.stages() if labels and stage not in labels]
    return GateReplay(judged, decisions, strangers, left_out, changes, differs)


@dataclass(frozen=True, slots=True)
class GateCheck:
    """One gate, or one flag line."""

    name: str
    facts: TrainingFacts
    findings: Sequence[GateFinding]
    replayed: GateReplay | None = None

    @property
    def contradicts(self) -> bool:
        return any(each.level == ERROR for each in self.findings)


def check_training_facts(name: str, facts: TrainingFacts) -> GateCheck:
    seen = make_gate_replay(facts.gate, facts.runs[-1]) if facts.gate and facts.runs else None
    return GateCheck(name, facts, find_contradictions(facts), seen)


def facts_of_training_flags(settings: TrainingFlags, iterations: int | None = None) -> TrainingFacts:
    return TrainingFacts(
        settings.gate,
        settings.schedule,
        settings.curriculum,
        iterations or settings.iterations,
        settings.evaluations.interval,
    )


def outline_training_facts(facts: TrainingFacts) -> Iterator[str]:
    """What was read, so that a misreading is seen."""
    if facts.iterations:
        every = f", an evaluation every {facts.interval}" if facts.interval else ""
        yield f"run: {phrase('count.iteration', n=facts.iterations)}{every}"
    if facts.curriculum:
        each = ", ".join(f"{lesson.value:g} for {lesson.iterations}" for lesson in facts.curriculum.lessons)
        yield f"curriculum (value:iterations): {each}; {facts.curriculum.total} in all"
    if facts.schedule:
        yield f"schedule (iterations:path): {', '.join(map(str, facts.schedule.stages))}; {facts.schedule.total} in all"
    if facts.gate:
        yield from _outline_gate_settings(facts.gate)


def _outline_gate_settings(gate: GateSettings) -> Iterator[str]:
    for side, criteria in (("success", gate.success), ("failure", gate.failure)):
        for each in criteria:
            stages = "; ".join(
                f"{stage}: {_format_written_bounds(each.by_stage[stage].mapping())}" for stage in each.by_stage
            )
            yield (
                f"{side}: {each.key} {_format_written_bounds(each.limits.mapping())}{f' ({stages})' if stages else ''}"
            )
    borne = ", ".join(f"{stage} {count}" for stage, count in gate.tolerance.items()) or "none"
    yield (f"advances after {phrase('count.success', n=gate.required)} in a row; failures borne in a row: {borne}")


def _format_written_bounds(written: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in written.items())


def gate_check_as_json(check: GateCheck) -> dict[str, Any]:
    facts = check.facts
    return {
        "gate": check.name,
        "iterations": facts.iterations,
        "interval": facts.interval,
        "curriculum": facts.curriculum.mappings() if facts.curriculum else None,
        "schedule": facts.schedule.mappings() if facts.schedule else None,
        "settings": facts.gate.mapping() if facts.gate else None,
        "findings": [each._asdict() for each in check.findings],
        "replay": gate_replay_as_json(check.replayed) if check.replayed else None,
    }


def gate_replay_as_json(found: GateReplay) -> dict[str, Any]:
    return {
        "settings": found.settings.mapping(),
        "opens": found.opens,
        "conclusion": found.conclusion,
        "left_out": list(found.left_out),
        "otherwise": [{"what": each.what, "opens": each.opens} for each in found.otherwise],
        "differs": list(found.differs),
        "decisions": [each.row() for each in found.decisions],
    }


LARGEST_GATE_INPUT = 16 << 20
TRACE_FILES_OF_RUN = ("gate_trace.jsonl", "eval_history.jsonl", "eval_multi_history.jsonl")
_FENCE = "```"
TRAINING_FLAGS = ("--penalty_gate_", "--tail_", "--curriculum", "--multi_eval_")  # flags: a comment may hold others


@dataclass(frozen=True, slots=True)
class EvaluationFile:
    """A table of evaluations, and how the run itself decided, where it says so."""

    file: str
    table: GateEvaluationTable
    decided: dict[int, str]

    def rows_for(self, facts: TrainingFacts) -> list[EvaluationRow]:
        if facts.gate is None:
            return self.table.rows
        rows = rename_columns_to_keys(self.table.rows, facts.gate.watched())
        return (
            rows if self.table.kind == "trace" else rows_with_gate_keys(rows, facts.gate) or rows
        )  # none: the keys are misspelt


def read_gate_input(path: Path) -> str:
    """Raises MusterError, with what is wrong."""
    try:
        if path.is_dir():
            raise UsageError(f"{path} is a folder", hint="name the file in it")
        if path.stat().st_size > LARGEST_GATE_INPUT:
            raise MusterError(f"it is larger than {LARGEST_GATE_INPUT >> 20} MiB", where=str(path))
        return read_regular_file(path, LARGEST_GATE_INPUT).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}", hint="check its name and your folder") from None
    except UnicodeDecodeError:
        raise MusterError("it is not UTF-8 text", where=str(path), hint="save it as UTF-8") from None


def usage_error_from_spec(error: SpecError, where: str) -> MusterError:
    """Every problem with its caret."""
    hint = "fix them all; nothing was changed" if len(error.problems) > 1 else ""
    return UsageError(str(error), where=where, hint=hint)


def read_facts_of_flags(path: Path, iterations: int | None = None) -> TrainingFacts:
    """A command line in a file of its own, or in a code block of a document."""
    try:
        facts = facts_of_training_flags(parse_training_flags(extract_command_line(read_gate_input(path))), iterations)
    except SpecError as error:
        raise usage_error_from_spec(error, str(path)) from None
    if not any((facts.gate, facts.schedule, facts.curriculum)):
        raise UsageError(
            "no flag in it is about gates, stages or a curriculum",
            where=str(path),
            hint="it should hold a command with --penalty_gate_*, --tail_seed_stage_spec or --curriculum",
        )
    return facts


def extract_command_line(text: str) -> str:
    """Of a document the code block with the most flags; else all of it."""
    blocks = [block.partition("\n")[2] for block in text.split(_FENCE)[1::2]]
    return max(blocks, key=lambda block: block.count("--")) if any("--" in block for block in blocks) else text


def read_facts_of_settings(path: Path, name: str = "", base: TrainingFacts | None = None) -> TrainingFacts:
    """Another setting: a gate as under its name in a campaign file, a campaign file with one gate, or a flag line."""
    text = read_gate_input(path)
    if any(word.startswith(TRAINING_FLAGS) for word in text.split()):
        return read_facts_of_flags(path)
    from muster.spec.gate_rules import read_gate_file

    try:
        found = facts_of_gate_section(read_gate_file(text, file=str(path), name=name))
    except SpecError as error:
        raise usage_error_from_spec(error, str(path)) from None
    if base is None:
        return found
    return found._replace(
        schedule=found.schedule or base.schedule,
        curriculum=found.curriculum or base.curriculum,
        iterations=found.iterations or base.iterations,
        interval=found.interval or base.interval,
    )


def read_evaluation_file(path: Path, step: str = "", stage: str = "") -> EvaluationFile:
    """A table in whatever form, or a run's folder."""
    file = _find_trace_in_run(path) if path.is_dir() else path
    text = read_gate_input(file)
    try:
        check_json_values(text.encode())
    except TooManyJsonValues as error:
        raise MusterError(str(error), where=str(file)) from None
    try:
        table = parse_evaluation_table(text, step=step, stage=stage)
        decided = (
            {row["iteration"]: str(row.get("state")) for row in parse_gate_trace(text).decided}
            if table.settings
            else {}
        )
    except SpecError as error:
        raise usage_error_from_spec(error, str(file)) from None
    return EvaluationFile(str(file), table, decided)


def _find_trace_in_run(folder: Path) -> Path:
    for name in TRACE_FILES_OF_RUN:
        found = [folder / name, *sorted(folder.glob(f"*/{name}"))]
        there = next((path for path in found if path.is_file()), None)
        if there:
            return there
    raise UsageError(f"there is no trace in {folder}", hint=f"looked for {', '.join(TRACE_FILES_OF_RUN)}")


def select_campaign_gates(campaign: Campaign, names: Sequence[str]) -> dict[str, DeclaredGate]:
    """Those that are named; none: all."""
    known = dict(campaign.gates or {})
    if not known:
        raise UsageError("the campaign has no gates", hint="declare them under `gates:`, or name a file: --flags FILE")
    for name in names:
        if name not in known:
            raise UsageError(f"there is no gate '{name}'", hint=suggest_closest_name(name, list(known)))
    return {name: known[name] for name in names or known}


def output_of_named_cell(root: Path, name: str) -> str:
    """Where the run of a cell writes; raises UsageError where there is neither such a cell nor such a path."""
    from muster.app.campaign.campaign_handle import load_known_state

    state = load_known_state(root)
    record = state.cells.get(name) if state else None
    if record is None:
        raise UsageError(f"{name} is neither a file, nor a folder, nor a cell", hint="name a trace, or a cell that ran")
    attempt = record.completed or record.last
    if attempt is None:
        raise UsageError(f"{name} has not run yet", hint="`muster status` tells what has")
    output = attempt.outcome.output if attempt.outcome else None
    return output or str(attempt_folder(root / ".muster", *attempt.place) / "out")


def facts_of_gates(folder: Path, flags: Path | None, gate: str) -> Iterator[tuple[str, TrainingFacts]]:
    """Of a training's command line; or of the campaign in this folder: of all its gates, or of the named one."""
    if flags:
        yield flags.name, read_facts_of_flags(flags)
        return
    from muster.app.campaign.campaign_handle import CAMPAIGN_FILE_NAME, load_known_state
    from muster.app.campaign.load_campaign import read_campaign_file
    from muster.readers.gate_traces import rows_of_past_runs

    file = folder / CAMPAIGN_FILE_NAME
    if not file.is_file():
        raise UsageError(
            f"there is no {CAMPAIGN_FILE_NAME} here", where=str(folder), hint="or name a command line: --flags FILE"
        )
    campaign, state = read_campaign_file(file).campaign, load_known_state(folder)
    for name, each in select_campaign_gates(campaign, [gate] if gate else []).items():
        yield name, facts_of_campaign_gate(campaign, each)._replace(runs=rows_of_past_runs(campaign, state, name))


def check_gates(folder: Path, flags: Path | None, evals: Path | None, gate: str) -> list[GateCheck]:
    """`evals`: evaluations of a past run, beside those of the campaign."""
    told = read_evaluation_file(evals) if evals else None
    return [
        check_training_facts(name, facts._replace(runs=[*facts.runs, told.rows_for(facts)]) if told else facts)
        for name, facts in facts_of_gates(folder, flags, gate)
    ]


def replay_gate_trace(
    folder: Path, trace: str, setting: Path | None, gate: str, *, wins: str = "", windows_of_1: bool = False
) -> tuple[GateReplay, EvaluationFile]:
    """`setting`: a gate in YAML, or a command line; without it that of the trace itself, or of the campaign."""
    path = folder / trace
    told = read_evaluation_file(path if path.exists() else Path(output_of_named_cell(folder, trace)))
    facts = _choose_setting(folder, told, setting, gate)
    settings = facts.gate
    if settings is None:
        raise UsageError("there is no gate in it", where=str(setting or ""), hint="add success or failure criteria")
    changed = settings._replace(wins=wins or settings.wins)
    changed = windows_of_one(changed) if windows_of_1 else changed
    own = changed == told.table.settings
    return make_gate_replay(changed, told.rows_for(facts), strict=own, decided=told.decided if own else None), told


def _choose_setting(folder: Path, told: EvaluationFile, file: Path | None, gate: str) -> TrainingFacts:
    if file:
        return read_facts_of_settings(folder / file, gate)
    if told.table.settings:
        return TrainingFacts(told.table.settings)
    from muster.app.campaign.campaign_handle import CAMPAIGN_FILE_NAME

    if not (folder / CAMPAIGN_FILE_NAME).is_file():
        torn = f"; {told.table.skipped} of its lines can't be read" if told.table.skipped else ""
        raise UsageError(
            f"it holds no settings of a gate{torn}, and there is no {CAMPAIGN_FILE_NAME} here",
            where=told.file,
            hint="name a setting: --with FILE or --flags FILE",
        )
    found = list(facts_of_gates(folder, None, gate))
    if len(found) != 1:
        raise UsageError(f"there are {len(found)} gates: which?", hint=f"--gate {found[0][0]}")
    return found[0][1]
