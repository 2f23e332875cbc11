"""muster flag"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from muster.app.campaign.accepted_flags import flag_decision_data, flags_as_json
from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.verbs.choose_cells import require_reason
from muster.app.facts.gather_facts import current_red_flags
from muster.app.report.red_flag_text import flags_to_accept, sort_flags_by_level
from muster.faces.cli.common.command_line import VerbGroup, folder_of_context
from muster.faces.cli.common.terminal_output import print_json
from muster.faces.cli.report import format_flag_line
from muster.model.errors import MusterError
from muster.stats.red_flags import FlagAcceptance
from muster.text.sentences import format_count

app = typer.Typer(
    cls=VerbGroup,
    add_completion=False,
    epilog="Example:  muster flag list   then   muster flag accept same_seeds --because 'both runs were looked at'",
)
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.callback(invoke_without_command=True)
def show_flag_help(ctx: typer.Context) -> None:
    """The red flags that a report would raise now, and a person's word about them."""
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())
        raise typer.Exit(2)


@app.command("list", epilog="Example:  muster flag list --json | jq '.flags[] | select(.level == \"ERROR\")'")
def list_flags(ctx: typer.Context, as_json_: JsonOption = False) -> int:
    """Every flag that is raised now, ERROR before WARN, and what was accepted. Writes nothing."""
    desk = CampaignHandle.open(folder_of_context(ctx))
    flags, language = current_red_flags(desk)
    if as_json_:
        print_json({"flags": flags_as_json(sort_flags_by_level(flags))})
        return 0
    for flag in sort_flags_by_level(flags):
        print(format_flag_line(flag, language))
    if not flags:
        print("no red flag is raised")
    return 0


@app.command(
    "accept",
    epilog="Example:  muster flag accept mixed_steps --because 'the queue cut seed 3 at 95 %, its curve is flat'",
)
def accept(
    ctx: typer.Context,
    code: Annotated[str, typer.Argument(metavar="CODE", help="As `muster flag list` names it.", show_default=False)],
    because: Annotated[str, typer.Option("--because", metavar="TEXT", help="Why; required.", show_default=False)],
    as_json_: JsonOption = False,
) -> int:
    """Acknowledges all flags of one code that are raised now: they no longer void the verdict.

    Who, when and why are recorded and printed in every report. It covers these flags on these cells; one that is raised
    later elsewhere counts again. Divergence and failure of a method can't be accepted.
    """
    reason = require_reason(because)
    desk = CampaignHandle.open(folder_of_context(ctx))
    desk.refuse_stranger()
    flags, language = current_red_flags(desk)
    meant = flags_to_accept(code, flags)
    decision = desk.person("flag", reason, data=flag_decision_data(code, meant))
    (refused,) = desk.decide([decision])
    if refused:
        raise MusterError(f"{code}: not accepted: {refused}")
    by = FlagAcceptance(decision.who, decision.at, reason)
    accepted = [replace(flag, accepted=by) for flag in meant]
    if as_json_:
        print_json({"flags": flags_as_json(accepted)})
        return 0
    for flag in accepted:
        print(format_flag_line(flag, language))
    print(f"{format_count(len(accepted), 'flag')} accepted; `muster report` tells it, and the verdict without it")
    return 0
