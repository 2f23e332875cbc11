"""muster flag"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.app.campaign.accepted_flags import flags_as_json
from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.verbs.choose_cells import require_reason
from muster.app.report.accept_flags import FlagList, accept_red_flags, list_red_flags
from muster.faces.cli.common.command_line import VerbGroup, folder_of_context
from muster.faces.cli.common.terminal_output import print_json
from muster.faces.cli.report import format_flag_line
from muster.text.phrases import phrase

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
    found = list_red_flags(CampaignHandle.open(folder_of_context(ctx)))
    _print_flags(found, as_json_)
    if not found.flags and not as_json_:
        print(phrase("cli.no_flag_raised"))
    return 0


def _print_flags(found: FlagList, as_json_: bool) -> None:
    if as_json_:
        print_json({"flags": flags_as_json(found.flags)})
        return
    for flag in found.flags:
        print(format_flag_line(flag, found.language))


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
    accepted = accept_red_flags(CampaignHandle.open(folder_of_context(ctx)), code, reason)
    _print_flags(accepted, as_json_)
    if not as_json_:
        print(phrase("cli.flags_accepted", flags=phrase("count.flag", n=len(accepted.flags))))
    return 0
