"""muster gates"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from muster.app.gates.replay_gates import (
    EvaluationFile,
    GateCheck,
    GateReplay,
    check_gates,
    gate_check_as_json,
    gate_replay_as_json,
    outline_training_facts,
    replay_gate_trace,
)
from muster.app.gates.staged_pictures import DrawnRunFiles, draw_run_or_cell, drawn_files_as_json
from muster.faces.cli.common.command_line import VerbGroup, folder_of_context
from muster.faces.cli.common.terminal_output import LEVEL_LABELS, pad_name, paint_text, print_json, print_notice
from muster.locales import LANGUAGES
from muster.model.errors import UsageError
from muster.stages.gate_decision import ADVANCE, FAILURE_HOLD, FALL_BACK, Decision
from muster.text.phrases import join_phrases, phrase

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
        raise UsageError(
            phrase(
                "cli.language_expected",
                language=language,
                languages=phrase("list.one_or_other", one=LANGUAGES[0], other=LANGUAGES[1]),
            )
        )
    base = folder_of_context(ctx)
    made = draw_run_or_cell(target, base, base / out if out else None, language, print_notice)
    if as_json_:
        print_json(drawn_files_as_json(made))
    else:
        for line in _drawn_files_lines(made):
            print(line)
    return 0


def _drawn_files_lines(made: DrawnRunFiles) -> Iterator[str]:
    for stem in made.captions:
        first, *others = (path for path in made.files if path.name.partition(".")[0] == stem)
        also = f" ({', '.join(path.suffix for path in others)})" if others else ""
        yield f"{paint_text(os.path.relpath(first), 'bold')}{also}"
        yield f"  {made.captions[stem]}"
    yield from (paint_text(note, "yellow") for note in made.notes)


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
        raise UsageError(
            phrase("cli.say_check_replay_or_draw"), hint=phrase("cli.for_example", command="muster gates check")
        )


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
    folder = folder_of_context(ctx)
    found = check_gates(folder, folder / flags if flags else None, folder / evals if evals else None, gate)
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
        raise UsageError(phrase("cli.wins_unknown", wins=wins))
    folder, setting = folder_of_context(ctx), with_ or flags
    found, told = replay_gate_trace(folder, trace, setting, gate, wins=wins, windows_of_1=windows_of_1)
    if as_json_:
        print_json({"trace": told.file, **gate_replay_as_json(found)})
        return 0
    print(paint_text(told.file, "bold"))
    for line in _gate_replay_lines(found, told):
        print(line)
    return 0


def _print_gate_check(found: GateCheck) -> None:
    print(paint_text(found.name, "bold"))
    for line in outline_training_facts(found.facts):
        print(f"  {line}")
    for each in found.findings:
        print(f"{paint_text(phrase(LEVEL_LABELS[each.level]), _LEVEL_COLOURS[each.level])} {each.message}")
        if each.hint:
            print(f"    {phrase('cli.label_fix')} {each.hint}")
    if found.replayed:
        print(
            paint_text(
                phrase("cli.last_run_replayed", runs=len(found.facts.runs))
                if len(found.facts.runs) > 1
                else phrase("cli.replayed_on_evaluations"),
                "bold",
            )
        )
        for line in _gate_replay_lines(found.replayed, None):
            print(line)
    elif not found.findings:
        print(phrase("cli.nothing_contradicts_itself"))


def _gate_replay_lines(found: GateReplay, told: EvaluationFile | None) -> Iterator[str]:
    if told and told.table.skipped:
        yield paint_text(phrase("cli.lines_passed_over", count=told.table.skipped), "yellow")
    if told and told.table.taken_back:
        yield paint_text(
            phrase("cli.rows_taken_back", count=told.table.taken_back),
            "yellow",
        )
    if strangers := found.strangers:
        yield paint_text(phrase("cli.settings_of_unknown_stages", stages=", ".join(strangers)), "yellow")
    if found.left_out:
        there = dict.fromkeys(key for row in told.table.rows for key in row.values) if told else {}
        left_out = [phrase("cli.conditions_left_out", keys=", ".join(found.left_out))]
        left_out += [phrase("cli.rows_have_keys", keys=", ".join(there))] if there and not found.decisions else []
        yield paint_text(join_phrases("; ", left_out), "yellow")
    yield from (_gate_decision_line(each) for each in found.decisions)
    yield paint_text(found.conclusion, "bold")
    opening = [each for each in found.otherwise if each.opens is not None]
    yield from (f"  {each}" for each in opening)
    if found.otherwise and not opening:
        tried = join_phrases("; ", [each.what for each in found.otherwise])
        yield f"  {phrase('cli.none_would_have_opened', tried=tried)}"
    if found.differs:
        which = ", ".join(map(str, found.differs[:8]))
        yield paint_text(phrase("cli.run_decided_otherwise", iterations=which), "red")


def _gate_decision_line(each: Decision) -> str:
    state = paint_text(pad_name(each.state, 13), _STATE_COLOURS.get(each.state, ""))
    stage = pad_name(each.stage or "-", 6)
    broke = f"  [{phrase('cli.streak_broken', length=each.before)}]" if each.broke else ""
    return f"{each.iteration:>6}  {stage} {phrase('cli.in_phase', phase=each.phase)}  {state}{each.why}{broke}"
