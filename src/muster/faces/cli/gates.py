"""muster gates"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.check_gates_and_loop import facts_of_campaign_gate
from muster.app.campaign.start_controller import observe_and_revive
from muster.app.campaign.verbs.choose_cells import declared_names, resolve_one_cell, withdrawn_names
from muster.app.gates.replay_gates import (
    EvaluationFile,
    GateCheck,
    GateReplay,
    check_training_facts,
    gate_check_as_json,
    gate_replay_as_json,
    make_gate_replay,
    outline_training_facts,
    read_evaluation_file,
    read_facts_of_flags,
    read_facts_of_settings,
    select_campaign_gates,
)
from muster.app.gates.staged_artifacts import STAGED_FILE_ENDINGS, staged_file_kind
from muster.app.gates.staged_pictures import DrawnRunFiles, draw_cell_pictures, draw_run_folder
from muster.app.metrics.measure_runs import select_named_cells
from muster.faces.cli.common.command_line import VerbGroup, folder_of_context
from muster.faces.cli.common.terminal_output import paint_text, print_json, print_notice
from muster.files.campaign_ownership import NOT_YOURS_CODE, find_readable_root
from muster.locales import LANGUAGES
from muster.model.errors import UsageError
from muster.stages.contradictions import TrainingFacts
from muster.stages.gate_decision import ADVANCE, FAILURE_HOLD, FALL_BACK, Decision
from muster.stages.replay import windows_of_one

DRAW_EXAMPLE = "Example:  muster gates draw runs/v40 --language zh   or   muster gates draw train/v2_full/2"


def draw(
    ctx: typer.Context,
    target: Annotated[
        str, typer.Argument(metavar="PATH|CELL", help="The folder of a run, or a cell.", show_default=False)
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where to; default: PATH/figures, of a cell reports/gates/CELL.", show_default=False
        ),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(metavar="zh|en", help="Of captions and notes; else the campaign's, or en.", show_default=False),
    ] = None,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Draws what a staged training left: gate timelines, events by stage, warnings, survival. PNG, SVG and PDF.

    Labels in the data that contradict the schedule are hatched in the pictures and named.
    """
    if language is not None and language not in LANGUAGES:
        raise UsageError(f"--language {language}: expected {' or '.join(LANGUAGES)}")
    base = folder_of_context(ctx)
    made = _draw_target(target, base, base / out if out else None, language)
    if as_json_:
        print_json(_drawn_files_as_json(made))
    else:
        for line in _drawn_files_lines(made):
            print(line)
    return 0


def _draw_target(target: str, base: Path, out: Path | None, language: str | None) -> DrawnRunFiles:
    """What exists as a path is a path."""
    path = base / target
    if target.strip() and path.exists():
        return draw_run_folder(_run_folder_of_target(path, target), out, language or "en")
    try:
        find_readable_root(base)
    except UsageError as error:
        if error.code == NOT_YOURS_CODE:
            raise
        raise UsageError(
            f"there is no folder {target!r}", hint="name the folder of a run, or a cell where a campaign is"
        ) from None
    desk = CampaignHandle.open(base)
    desk.refuse_stranger()
    status = observe_and_revive(desk, print_notice)
    name = resolve_one_cell(target, declared_names(status.state), withdrawn_names(status.state))
    (cell,) = select_named_cells(status, [name])
    return draw_cell_pictures(desk, status, cell, out, language or status.state.campaign.language)


def _run_folder_of_target(path: Path, target: str) -> Path:
    if path.is_dir():
        return path
    if staged_file_kind(path.name) is None:
        raise UsageError(
            f"{target} is none of the files of a run", hint=f"those are called {', '.join(STAGED_FILE_ENDINGS)}"
        )
    return path.parent


def _drawn_files_lines(made: DrawnRunFiles) -> Iterator[str]:
    for stem in made.captions:
        first, *others = (path for path in made.files if path.name.partition(".")[0] == stem)
        also = f" ({', '.join(path.suffix for path in others)})" if others else ""
        yield f"{paint_text(os.path.relpath(first), 'bold')}{also}"
        yield f"  {made.captions[stem]}"
    yield from (paint_text(note, "yellow") for note in made.notes)


def _drawn_files_as_json(made: DrawnRunFiles) -> dict[str, Any]:
    return {
        "folder": str(made.folder),
        "files": [str(path) for path in made.files],
        "captions": dict(made.captions),
        "notes": list(made.notes),
        "contradictions": list(made.contradictions),
        "inputs": [{"path": path, "sha256": digest} for path, digest in made.inputs.items()],
        "stamped": made.stamped,
    }


app = typer.Typer(cls=VerbGroup, add_completion=False, epilog="Example:  muster gates check")

FlagsFileOption = Annotated[
    Path | None, typer.Option("--flags", metavar="FILE", help="A training's command line, or a document with it.")
]
GateNameOption = Annotated[str, typer.Option("--gate", metavar="NAME", help="The gate, where there are several.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
_LEVEL_COLOURS = {"error": "red", "warning": "yellow", "note": "dim"}
_STATE_COLOURS = {ADVANCE: "green", FALL_BACK: "red", FAILURE_HOLD: "yellow"}


@app.callback(invoke_without_command=True)
def gates_group(ctx: typer.Context) -> None:
    """Gates over the metrics of a run: are they sound, and what would another setting have decided?"""
    if ctx.invoked_subcommand is None:
        raise UsageError("say what to do: check, replay or draw", hint="for example: muster gates check")


@app.command(
    "check", epilog="Example:  muster gates check   or   muster gates check --flags train.sh --evals dev_v40.md"
)
def check(
    ctx: typer.Context,
    flags: FlagsFileOption = None,
    evals: Annotated[
        Path | None,
        typer.Option("--evals", metavar="TABLE", help="Evaluations of a past run: JSON lines, CSV, a table in a text."),
    ] = None,
    gate: GateNameOption = "",
    as_json_: JsonOption = False,
) -> int:
    """Finds contradictions of gates, schedules and curricula, before a run is paid for.

    Exit code: 1 where something contradicts itself.
    """
    told = read_evaluation_file(folder_of_context(ctx) / evals) if evals else None
    found = [
        check_training_facts(name, _add_evaluations(facts, told))
        for name, facts in _facts_of_named_gates(ctx, flags, gate)
    ]
    if as_json_:
        print_json({"gates": [gate_check_as_json(each) for each in found]})
    else:
        for each in found:
            _print_gate_check(each)
    return 1 if any(each.contradicts for each in found) else 0


app.command("draw", epilog=DRAW_EXAMPLE)(draw)


@app.command("replay", epilog="Example:  muster gates replay runs/v40/gate_trace.jsonl --with gate_v41.yaml")
def replay(
    ctx: typer.Context,
    trace: Annotated[
        str, typer.Argument(metavar="TRACE", help="A gate's trace, a table of evaluations, a run's folder, or a cell.")
    ],
    with_: Annotated[
        Path | None, typer.Option("--with", metavar="FILE", help="Another setting: a gate in YAML, or a command line.")
    ] = None,
    flags: FlagsFileOption = None,
    gate: GateNameOption = "",
    wins: Annotated[
        str, typer.Option("--wins", metavar="failure|success", help="What counts where both hold.", show_default=False)
    ] = "",
    windows_of_1: Annotated[
        bool, typer.Option("--windows-of-1", help="As if every window held one value only.")
    ] = False,
    as_json_: JsonOption = False,
) -> int:
    """What a setting decides on a finished run, iteration by iteration, and what would have opened the gate.

    Without --with: the settings of the trace itself, of --flags, or of the campaign.
    """
    if wins not in ("", "failure", "success"):
        raise UsageError(f"--wins is failure or success, not {wins!r}")
    told = _read_named_trace(ctx, trace)
    facts = _choose_setting(ctx, told, with_ or flags, gate)
    settings = facts.gate
    if settings is None:
        raise UsageError(
            "there is no gate in it", where=str(with_ or flags or ""), hint="add success or failure criteria"
        )
    changed = settings._replace(wins=wins or settings.wins)
    changed = windows_of_one(changed) if windows_of_1 else changed
    own = changed == told.table.settings
    found = make_gate_replay(changed, told.rows_for(facts), strict=own, decided=told.decided if own else None)
    if as_json_:
        print_json({"trace": told.file, **gate_replay_as_json(found)})
        return 0
    print(paint_text(told.file, "bold"))
    for line in _gate_replay_lines(found, told):
        print(line)
    return 0


def _facts_of_named_gates(ctx: typer.Context, flags: Path | None, gate: str) -> Iterator[tuple[str, TrainingFacts]]:
    if flags:
        yield flags.name, read_facts_of_flags(folder_of_context(ctx) / flags)
        return
    from muster.app.campaign.campaign_handle import CAMPAIGN_FILE_NAME, load_known_state
    from muster.app.campaign.load_campaign import read_campaign_file
    from muster.readers.gate_traces import rows_of_past_runs

    root = folder_of_context(ctx)
    if not (root / CAMPAIGN_FILE_NAME).is_file():
        raise UsageError(
            f"there is no {CAMPAIGN_FILE_NAME} here", where=str(root), hint="or name a command line: --flags FILE"
        )
    campaign, state = read_campaign_file(root / CAMPAIGN_FILE_NAME).campaign, load_known_state(root)
    for name, each in select_campaign_gates(campaign, [gate] if gate else []).items():
        yield name, facts_of_campaign_gate(campaign, each)._replace(runs=rows_of_past_runs(campaign, state, name))


def _add_evaluations(facts: TrainingFacts, told: EvaluationFile | None) -> TrainingFacts:
    return facts._replace(runs=[*facts.runs, told.rows_for(facts)]) if told else facts


def _read_named_trace(ctx: typer.Context, trace: str) -> EvaluationFile:
    path = folder_of_context(ctx) / trace
    if path.exists():
        return read_evaluation_file(path)
    from muster.app.gates.replay_gates import output_of_named_cell

    output = output_of_named_cell(folder_of_context(ctx), trace)
    return read_evaluation_file(Path(output))


def _choose_setting(ctx: typer.Context, told: EvaluationFile, file: Path | None, gate: str) -> TrainingFacts:
    if file:
        return read_facts_of_settings(folder_of_context(ctx) / file, gate)
    if told.table.settings:
        return TrainingFacts(told.table.settings)
    from muster.app.campaign.campaign_handle import CAMPAIGN_FILE_NAME

    if not (folder_of_context(ctx) / CAMPAIGN_FILE_NAME).is_file():
        torn = f"; {told.table.skipped} of its lines can't be read" if told.table.skipped else ""
        raise UsageError(
            f"it holds no settings of a gate{torn}, and there is no {CAMPAIGN_FILE_NAME} here",
            where=told.file,
            hint="name a setting: --with FILE or --flags FILE",
        )
    found = list(_facts_of_named_gates(ctx, None, gate))
    if len(found) != 1:
        raise UsageError(f"there are {len(found)} gates: which?", hint=f"--gate {found[0][0]}")
    return found[0][1]


def _print_gate_check(found: GateCheck) -> None:
    print(paint_text(found.name, "bold"))
    for line in outline_training_facts(found.facts):
        print(f"  {line}")
    for each in found.findings:
        print(f"{paint_text(each.level + ':', _LEVEL_COLOURS[each.level])} {each.message}")
        if each.hint:
            print(f"    mend: {each.hint}")
    if found.replayed:
        print(
            paint_text(
                f"the last of the {len(found.facts.runs)} past runs, replayed:"
                if len(found.facts.runs) > 1
                else "replayed over the evaluations:",
                "bold",
            )
        )
        for line in _gate_replay_lines(found.replayed, None):
            print(line)
    elif not found.findings:
        print("nothing contradicts itself")


def _gate_replay_lines(found: GateReplay, told: EvaluationFile | None) -> Iterator[str]:
    if told and told.table.skipped:
        yield paint_text(f"{told.table.skipped} lines are no rows and were passed over", "yellow")
    if told and told.table.taken_back:
        yield paint_text(
            f"rows that count no more, because a later one goes back to their iteration or before it, as after "
            f"a resume: {told.table.taken_back}",
            "yellow",
        )
    if strangers := found.strangers:
        yield paint_text(f"it has settings for {', '.join(strangers)}, and no row is of such a stage", "yellow")
    if found.left_out:
        there = dict.fromkeys(key for row in told.table.rows for key in row.values) if told else {}
        known = f"; the rows have {', '.join(there)}" if there and not found.decisions else ""
        yield paint_text(f"left out, because no row has it: {', '.join(found.left_out)}{known}", "yellow")
    yield from (_gate_decision_line(each) for each in found.decisions)
    yield paint_text(found.conclusion, "bold")
    opening = [each for each in found.otherwise if each.opens is not None]
    yield from (f"  {each}" for each in opening)
    if found.otherwise and not opening:
        tried = "; ".join(each.what for each in found.otherwise)
        yield f"  tried one at a time, none of these would have opened it: {tried}"
    if found.differs:
        which = ", ".join(map(str, found.differs[:8]))
        yield paint_text(f"the run itself decided otherwise at {which}", "red")


def _gate_decision_line(each: Decision) -> str:
    state = paint_text(f"{each.state:<13}", _STATE_COLOURS.get(each.state, ""))
    stage = f"{each.stage or '-':<6}"
    broke = f"  [streak of {each.before} broken]" if each.broke else ""
    return f"{each.iteration:>6}  {stage} phase {each.phase}  {state}{each.why}{broke}"
