"""muster loop"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from muster.acts.bases import FOLDER
from muster.acts.next_round import Next
from muster.acts.next_round_json import next_json, rulings_json
from muster.acts.rounds_due import most_rounds
from muster.acts.status import Status
from muster.cli.app import open_folder
from muster.cli.cells import declared, looked, one
from muster.cli.paint import paint
from muster.cli.verbs import Verbs
from muster.cli.words import counted, say_json
from muster.domain.errors import MusterError, UsageError
from muster.domain.variants import AXIS, Variant
from muster.report.resumed import resumed_text
from muster.rounds.rules import explain as explained
from muster.wiring import looping
from muster.wiring.desk import Desk

if TYPE_CHECKING:
    from muster.acts.tried import Tried
    from muster.wiring.loop_reporting import Written


app = typer.Typer(cls=Verbs, add_completion=False, epilog="Example:  muster loop run --rounds 3")


@app.callback(invoke_without_command=True)
def group(ctx: typer.Context) -> None:
    """Rounds of experiments: rules on what the runs logged propose the configs of the next round."""
    if ctx.invoked_subcommand is None:
        raise UsageError("say what to do: propose, run, explain or report", hint="for example: muster loop run")


@app.command("propose", epilog="Example:  muster loop propose   then look at loop/round-2.txt")
def propose(
    ctx: typer.Context,
    take: Annotated[
        bool, typer.Option("--take", help="Take the round in as well: its runs start with the next `muster up`.")
    ] = False,
    number: Annotated[
        int | None, typer.Option("--round", min=2, help="With --take: this round and no other; as the controller asks.")
    ] = None,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Writes the configs of the next round and the list of them to loop/round-N.txt. Starts nothing.

    Exit code: 0 also where no further round comes; the reason is told.
    """
    desk = (Desk.open_to_act if take else Desk.open)(open_folder(ctx))
    desk.refuse_stranger()
    status = looping.opened(desk)
    if number is not None and status.state.loop.round + 1 != number:
        print(f"round {number} was decided already")
        return 0
    told = looping.tried(desk, status)
    found = looping.proposed(desk, status, told, most=None if take else status.state.loop.round + 1)
    if take:
        if number is None:
            _refuse_while_not_over(found, status, told)
        void = looping.take(desk, status, found)
        if void:
            raise MusterError(f"the round was not taken in: {void}", where=str(desk.root), hint="`muster status` tells")
        variants = [each.variant for each in found.proposed]
    else:
        variants = looping.write(desk.root, found, status.state.loop.variants)
    if as_json_:
        say_json(next_json(found, variants))
    else:
        for line in _proposed_lines(desk, found, variants, taken=take):
            print(line)
    if take:
        _report_round(desk, told)
    return 0


@app.command("run", epilog="Example:  muster loop run --rounds 3 --detach")
def run(
    ctx: typer.Context,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Rounds at most, all together; default: as the campaign says.")
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Hand over and return; do not stay attached.")] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print the final status as one JSON object.")] = False,
) -> int:
    """Runs round after round until a stop condition holds. Ctrl-C only detaches: runs and rounds go on.

    Exit code: as `muster up`.
    """
    from muster.cli.up import carry_out

    return carry_out(open_folder(ctx), [], detach=detach, as_json_=as_json_, rounds=rounds, loop=True)


@app.command("explain", epilog="Example:  muster loop explain train/baseline")
def explain(
    ctx: typer.Context,
    cell: Annotated[str, typer.Argument(metavar="CELL", help="A run of the loop, or its variant.", show_default=False)],
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Shows for each rule why it fired for a run or did not, with the numbers, and what it would change."""
    desk = Desk.open(open_folder(ctx))
    status = looked(desk)
    settings = looping.settings_of(status)
    variants = [each.name for each in status.state.loop.variants]
    name = cell if cell in variants else _variant_of(status, cell, settings.job)
    of_cell, found = looping.explained(desk, status, name)
    if as_json_:
        say_json(rulings_json(of_cell, found))
        return 0
    for each in status.state.loop.lineage(name):
        print(_lineage_line(each))
    unread = [f"{one.cell}: {one.unread}" for one in of_cell.runs if not one.readable]
    resumed = [f"{one.cell}: {resumed_text(one.resumed)}" for one in of_cell.runs if one.resumed]
    for line in [*unread, *resumed, *explained(found)]:
        print(line)
    return 0


@app.command("report", epilog="Example:  muster loop report --json | jq '.best, .rules'")
def report(
    ctx: typer.Context,
    as_json_: Annotated[bool, typer.Option("--json", help="Print summary.json.")] = False,
) -> int:
    """Writes reports/loop/: what was tried and why, the best so far and how sure that is, which rules pay.

    It is written after each round by itself; this brings it up to date, also while runs run.
    """
    from muster.wiring.loop_reporting import report as written

    desk = Desk.open(open_folder(ctx))
    made = written(desk, looked(desk))
    if as_json_:
        say_json(made.summary)
        return 0
    for line in _report_lines(made):
        print(line)
    return 0


def _refuse_while_not_over(found: Next, status: Status, told: Sequence[Tried]) -> None:
    """That it is not over yet is no reason to stop the loop."""
    newest = [each for each in told if each.variant.round == status.state.loop.round]
    if any(not run.over for each in newest for run in each.runs):
        error = MusterError(f"the round was not taken in: {found.stopped}", hint="`muster wait` waits for its end")
        error.exit = 3
        raise error


def _goes_on(desk: Desk, found: Next) -> str:
    beyond = found.round > most_rounds(desk.load())
    return f"muster loop run --rounds {found.round}" if beyond else "muster loop run"


def _report_lines(made: Written) -> Iterator[str]:
    best = made.summary["best"]
    if made.facts.identical:
        count = sum(bool(each.values) for each in made.facts.variants)
        told = f"all {count} scores are equal to the last digit ({best['mean']:.4g})"
        yield paint(f"{told}: does the trainer read {{config_file}}?", "yellow")
    elif best:
        spread = f" ± {best['sd']:.2g}" if best["sd"] is not None else ""
        seeds = counted(best["n"], "seed")
        yield f"best so far: {paint(best['variant'], 'bold')}: {made.facts.by} = {best['mean']:.4g}{spread} ({seeds})"
    else:
        yield "no variant has a score" if made.facts.by else "nothing is declared to rank by: `keep: {top, by, better}`"
    if made.facts.stopped:
        yield f"no round {made.facts.round + 1}: {made.facts.stopped}"
    trouble = made.summary["trouble"]
    if trouble:
        named = "it is" if len(trouble) == 1 else "they are"
        many = counted(len(trouble), "run")
        yield paint(f"{many} failed or left no history; {named} named in the report", "yellow")
    if made.undrawn:
        yield paint(f"best_so_far could not be drawn: {made.undrawn}", "yellow")
    yield f"{counted(len(made.files), 'file')}: {', '.join(made.files)}"


def _report_round(desk: Desk, told: list[Tried]) -> None:
    """What goes wrong with it is told, and the round goes on."""
    from muster.wiring.loop_reporting import after_round

    if trouble := after_round(desk, told):
        print(f"the loop's report was not written: {trouble}; `muster loop report` tries again", file=sys.stderr)


def _variant_of(status: Status, pattern: str, job: str) -> str:
    names = declared(status.state)
    seeds = [name for name in names if name.startswith(f"{pattern}/")]  # `train/act` of `train/act/0`, ...
    named = [value.name for each in seeds for axis, value in status.state.cells[each].cell.values if axis == AXIS]
    name = seeds[0] if len(set(named)) == 1 and pattern not in names else one(pattern, names)
    cell = status.state.cells[name].cell
    if cell.job != job:
        raise UsageError(f"{name} is no run of the loop", hint=f"its runs are cells of {job}")
    return cell.value(AXIS).name


def _lineage_line(each: Variant) -> str:
    why = f": {each.reason} ({', '.join(each.edits)})" if each.edits else ""
    made = f" from {each.parent}{why}" if each.parent else f" (base){why}"
    return f"{paint(each.name, 'bold')}, round {each.round}{made}"


def _proposed_lines(desk: Desk, found: Next, variants: list[Variant], *, taken: bool) -> Iterator[str]:
    if found.stopped:
        yield f"no round {found.round}: {found.stopped}"
        return
    yield paint(f"round {found.round}: {counted(len(variants), 'variant')}", "bold")
    for each in variants:
        yield f"  {each.name} from {each.parent}: {each.reason} ({', '.join(each.edits)})"
        yield from (f"    {note}" for note in each.notes)
    listed = os.path.relpath(desk.root / FOLDER / f"round-{found.round}.txt")
    more = (
        "they start with the next `muster up`" if taken else f"nothing was started; `{_goes_on(desk, found)}` runs it"
    )
    yield f"the configs are listed in {listed}; {more}"
