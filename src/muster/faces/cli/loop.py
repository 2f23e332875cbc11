"""muster loop"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.run_configs import LOOP_FOLDER
from muster.app.campaign.start_controller import observe_and_revive
from muster.app.loop.next_round import next_round_as_json, variant_rulings_as_json
from muster.app.loop.propose_round import PreparedRound, explain_tried_variant, find_loop_variant, prepare_round
from muster.faces.cli.common.command_line import VerbGroup, folder_of_context
from muster.faces.cli.common.terminal_output import paint_text, print_json, print_notice
from muster.model.errors import UsageError
from muster.model.variant import Variant
from muster.rules.proposal_rules import explain_rulings
from muster.text.describe_run import describe_resumed_log
from muster.text.phrases import join_phrases, phrase

if TYPE_CHECKING:
    from muster.app.loop.publish_loop_report import WrittenLoopReport
    from muster.rules.rank_variants import TriedVariant


app = typer.Typer(cls=VerbGroup, add_completion=False, epilog="Example:  muster loop run --rounds 3")


@app.callback(invoke_without_command=True)
def loop_group(ctx: typer.Context) -> None:
    """Rounds of experiments: rules on what the runs logged propose the configs of the next round."""
    if ctx.invoked_subcommand is None:
        raise UsageError(
            phrase("cli.say_propose_run_explain_or_report"), hint=phrase("cli.for_example", command="muster loop run")
        )


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
    desk = (CampaignHandle.open_to_act if take else CampaignHandle.open)(folder_of_context(ctx))
    made = prepare_round(desk, take=take, number=number)
    if made is None:
        print(phrase("cli.round_was_decided", round=number))
        return 0
    if as_json_:
        print_json(next_round_as_json(made.found, made.variants))
    else:
        for line in _next_round_lines(desk, made, taken=take):
            print(line)
    if take:
        _write_round_report(desk, made.tried)
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
    from muster.faces.cli.up import run_campaign

    return run_campaign(folder_of_context(ctx), [], detach=detach, as_json_=as_json_, rounds=rounds, loop=True)


@app.command("explain", epilog="Example:  muster loop explain train/baseline")
def explain(
    ctx: typer.Context,
    cell: Annotated[str, typer.Argument(metavar="CELL", help="A run of the loop, or its variant.", show_default=False)],
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Shows for each rule why it fired for a run or did not, with the numbers, and what it would change."""
    desk = CampaignHandle.open(folder_of_context(ctx))
    status = observe_and_revive(desk, print_notice)
    name = find_loop_variant(status, cell)
    of_cell, found = explain_tried_variant(desk, status, name)
    if as_json_:
        print_json(variant_rulings_as_json(of_cell, found))
        return 0
    for each in status.state.loop.lineage(name):
        print(_variant_lineage_line(each))
    unread = [join_phrases(": ", (one.cell, one.unread)) for one in of_cell.runs if not one.readable]
    resumed = [join_phrases(": ", (one.cell, describe_resumed_log(one.resumed))) for one in of_cell.runs if one.resumed]
    for line in [*unread, *resumed, *explain_rulings(found)]:
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
    from muster.app.loop.publish_loop_report import write_loop_report

    desk = CampaignHandle.open(folder_of_context(ctx))
    made = write_loop_report(desk, observe_and_revive(desk, print_notice))
    if as_json_:
        print_json(made.summary)
        return 0
    for line in _loop_report_lines(made):
        print(line)
    return 0


def _loop_report_lines(made: WrittenLoopReport) -> Iterator[str]:
    best = made.summary["best"]
    if made.facts.identical:
        count = sum(bool(each.values) for each in made.facts.variants)
        yield paint_text(phrase("cli.all_scores_equal", count=count, mean=best["mean"]), "yellow")
    elif best:
        spread = f" ± {best['sd']:.2g}" if best["sd"] is not None else ""
        score = f"{made.facts.by} = {best['mean']:.4g}{spread} ({phrase('count.seed', n=best['n'])})"
        yield f"{phrase('cli.best_so_far')} {paint_text(best['variant'], 'bold')}: {score}"
    else:
        yield phrase("cli.no_variant_has_score" if made.facts.by else "cli.nothing_to_rank_by")
    if made.facts.stopped:
        yield phrase("cli.no_further_round", round=made.facts.round + 1, reason=made.facts.stopped)
    trouble = made.summary["trouble"]
    if trouble:
        yield paint_text(phrase("cli.runs_without_history", n=len(trouble)), "yellow")
    if made.undrawn:
        yield paint_text(phrase("cli.best_so_far_not_drawn", reason=made.undrawn), "yellow")
    yield f"{phrase('count.file', n=len(made.files))}: {', '.join(made.files)}"


def _write_round_report(desk: CampaignHandle, told: list[TriedVariant]) -> None:
    """What goes wrong with it is told, and the round goes on."""
    from muster.app.loop.publish_loop_report import write_report_after_round

    if trouble := write_report_after_round(desk, told):
        print(phrase("cli.loop_report_not_written", trouble=trouble), file=sys.stderr)


def _variant_lineage_line(each: Variant) -> str:
    why = f": {each.reason} ({', '.join(each.edits)})" if each.edits else ""
    code = "cli.round_of_variant" if each.parent else "cli.round_of_base"
    return f"{paint_text(each.name, 'bold')}, {phrase(code, round=each.round, parent=each.parent)}{why}"


def _next_round_lines(desk: CampaignHandle, made: PreparedRound, *, taken: bool) -> Iterator[str]:
    found = made.found
    if found.stopped:
        yield phrase("cli.no_further_round", round=found.round, reason=found.stopped)
        return
    yield paint_text(phrase("cli.variants_of_round", round=found.round, n=len(made.variants)), "bold")
    for each in made.variants:
        edits = ", ".join(each.edits)
        origin = phrase("cli.variant_from_with_edits", parent=each.parent, reason=each.reason, edits=edits)
        yield f"  {each.name} {origin}"
        yield from (f"    {note}" for note in each.notes)
    listed = os.path.relpath(desk.root / LOOP_FOLDER / f"round-{found.round}.txt")
    more = phrase("cli.they_start_with_next_up") if taken else phrase("cli.nothing_started", command=made.command)
    yield join_phrases("; ", (phrase("cli.configs_listed", path=listed), more))
