"""muster gates"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from muster.acts.gate_check import facts_of
from muster.acts.gate_replay import GateCheck, Replayed, as_json, check_facts, outline, replay_json, replayed
from muster.cli.app import open_folder
from muster.cli.gates_draw import EXAMPLE, draw
from muster.cli.paint import paint
from muster.cli.verbs import Verbs
from muster.cli.words import say_json
from muster.domain.errors import UsageError
from muster.stages.decision import ADVANCE, FAILURE_HOLD, FALL_BACK, Decision
from muster.stages.lint import Facts
from muster.stages.replay import windows_of_one
from muster.wiring.gate_files import Told, gates_of, read_evals, read_flags, read_rules

app = typer.Typer(cls=Verbs, add_completion=False, epilog="Example:  muster gates check")

FlagsFile = Annotated[
    Path | None, typer.Option("--flags", metavar="FILE", help="A training's command line, or a document with it.")
]
Named = Annotated[str, typer.Option("--gate", metavar="NAME", help="The gate, where there are several.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
_LEVELS = {"error": "red", "warning": "yellow", "note": "dim"}
_STATES = {ADVANCE: "green", FALL_BACK: "red", FAILURE_HOLD: "yellow"}


@app.callback(invoke_without_command=True)
def group(ctx: typer.Context) -> None:
    """Gates over the metrics of a run: are they sound, and what would another setting have decided?"""
    if ctx.invoked_subcommand is None:
        raise UsageError("say what to do: check, replay or draw", hint="for example: muster gates check")


@app.command(
    "check", epilog="Example:  muster gates check   or   muster gates check --flags train.sh --evals dev_v40.md"
)
def check(
    ctx: typer.Context,
    flags: FlagsFile = None,
    evals: Annotated[
        Path | None,
        typer.Option("--evals", metavar="TABLE", help="Evaluations of a past run: JSON lines, CSV, a table in a text."),
    ] = None,
    gate: Named = "",
    as_json_: AsJson = False,
) -> int:
    """Finds contradictions of gates, schedules and curricula, before a run is paid for.

    Exit code: 1 where something contradicts itself.
    """
    told = read_evals(open_folder(ctx) / evals) if evals else None
    found = [check_facts(name, _with(facts, told)) for name, facts in _asked(ctx, flags, gate)]
    if as_json_:
        say_json({"gates": [as_json(each) for each in found]})
    else:
        for each in found:
            _show_check(each)
    return 1 if any(each.contradicts for each in found) else 0


app.command("draw", epilog=EXAMPLE)(draw)


@app.command("replay", epilog="Example:  muster gates replay runs/v40/gate_trace.jsonl --with gate_v41.yaml")
def replay(
    ctx: typer.Context,
    trace: Annotated[
        str, typer.Argument(metavar="TRACE", help="A gate's trace, a table of evaluations, a run's folder, or a cell.")
    ],
    with_: Annotated[
        Path | None, typer.Option("--with", metavar="FILE", help="Another setting: a gate in YAML, or a command line.")
    ] = None,
    flags: FlagsFile = None,
    gate: Named = "",
    wins: Annotated[
        str, typer.Option("--wins", metavar="failure|success", help="What counts where both hold.", show_default=False)
    ] = "",
    windows_of_1: Annotated[
        bool, typer.Option("--windows-of-1", help="As if every window held one value only.")
    ] = False,
    as_json_: AsJson = False,
) -> int:
    """What a setting decides on a finished run, iteration by iteration, and what would have opened the gate.

    Without --with: the settings of the trace itself, of --flags, or of the campaign.
    """
    if wins not in ("", "failure", "success"):
        raise UsageError(f"--wins is failure or success, not {wins!r}")
    told = _told(ctx, trace)
    facts = _setting(ctx, told, with_ or flags, gate)
    settings = facts.gate
    if settings is None:
        raise UsageError(
            "there is no gate in it", where=str(with_ or flags or ""), hint="add success or failure criteria"
        )
    changed = settings._replace(wins=wins or settings.wins)
    changed = windows_of_one(changed) if windows_of_1 else changed
    own = changed == told.table.settings
    found = replayed(changed, told.rows_for(facts), strict=own, decided=told.decided if own else None)
    if as_json_:
        say_json({"trace": told.file, **replay_json(found)})
        return 0
    print(paint(told.file, "bold"))
    for line in _replay_lines(found, told):
        print(line)
    return 0


def _asked(ctx: typer.Context, flags: Path | None, gate: str) -> Iterator[tuple[str, Facts]]:
    if flags:
        yield flags.name, read_flags(open_folder(ctx) / flags)
        return
    from muster.wiring.desk import FILE
    from muster.wiring.fitting import known_state
    from muster.wiring.gate_rows import past_rows
    from muster.wiring.taking import read

    root = open_folder(ctx)
    if not (root / FILE).is_file():
        raise UsageError(f"there is no {FILE} here", where=str(root), hint="or name a command line: --flags FILE")
    campaign, state = read(root / FILE).campaign, known_state(root)
    for name, each in gates_of(campaign, [gate] if gate else []).items():
        yield name, facts_of(campaign, each)._replace(runs=past_rows(campaign, state, name))


def _with(facts: Facts, told: Told | None) -> Facts:
    return facts._replace(runs=[*facts.runs, told.rows_for(facts)]) if told else facts


def _told(ctx: typer.Context, trace: str) -> Told:
    path = open_folder(ctx) / trace
    if path.exists():
        return read_evals(path)
    from muster.wiring.gate_rows import cell_output

    output = cell_output(open_folder(ctx), trace)
    return read_evals(Path(output))


def _setting(ctx: typer.Context, told: Told, file: Path | None, gate: str) -> Facts:
    if file:
        return read_rules(open_folder(ctx) / file, gate)
    if told.table.settings:
        return Facts(told.table.settings)
    from muster.wiring.desk import FILE

    if not (open_folder(ctx) / FILE).is_file():
        torn = f"; {told.table.skipped} of its lines can't be read" if told.table.skipped else ""
        raise UsageError(f"it holds no settings of a gate{torn}, and there is no {FILE} here", where=told.file,
                         hint="name a setting: --with FILE or --flags FILE")  # fmt: skip
    found = list(_asked(ctx, None, gate))
    if len(found) != 1:
        raise UsageError(f"there are {len(found)} gates: which?", hint=f"--gate {found[0][0]}")
    return found[0][1]


def _show_check(found: GateCheck) -> None:
    print(paint(found.name, "bold"))
    for line in outline(found.facts):
        print(f"  {line}")
    for each in found.findings:
        print(f"{paint(each.level + ':', _LEVELS[each.level])} {each.message}")
        if each.hint:
            print(f"    mend: {each.hint}")
    if found.replayed:
        print(paint(f"the last of the {len(found.facts.runs)} past runs, replayed:" if len(found.facts.runs) > 1
                    else "replayed over the evaluations:", "bold"))  # fmt: skip
        for line in _replay_lines(found.replayed, None):
            print(line)
    elif not found.findings:
        print("nothing contradicts itself")


def _replay_lines(found: Replayed, told: Told | None) -> Iterator[str]:
    if told and told.table.skipped:
        yield paint(f"{told.table.skipped} lines are no rows and were passed over", "yellow")
    if told and told.table.taken_back:
        yield paint(f"rows that count no more, because a later one goes back to their iteration or before it, as after "
                    f"a resume: {told.table.taken_back}", "yellow")  # fmt: skip
    if strangers := found.strangers:
        yield paint(f"it has settings for {', '.join(strangers)}, and no row is of such a stage", "yellow")
    if found.left_out:
        there = dict.fromkeys(key for row in told.table.rows for key in row.values) if told else {}
        known = f"; the rows have {', '.join(there)}" if there and not found.decisions else ""
        yield paint(f"left out, because no row has it: {', '.join(found.left_out)}{known}", "yellow")
    yield from (_line(each) for each in found.decisions)
    yield paint(found.conclusion, "bold")
    opening = [each for each in found.otherwise if each.opens is not None]
    yield from (f"  {each}" for each in opening)
    if found.otherwise and not opening:
        tried = "; ".join(each.what for each in found.otherwise)
        yield f"  tried one at a time, none of these would have opened it: {tried}"
    if found.differs:
        which = ", ".join(map(str, found.differs[:8]))
        yield paint(f"the run itself decided otherwise at {which}", "red")


def _line(each: Decision) -> str:
    state = paint(f"{each.state:<13}", _STATES.get(each.state, ""))
    stage = f"{each.stage or '-':<6}"
    broke = f"  [streak of {each.before} broken]" if each.broke else ""
    return f"{each.iteration:>6}  {stage} phase {each.phase}  {state}{each.why}{broke}"
