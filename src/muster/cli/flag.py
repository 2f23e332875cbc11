"""muster flag"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from muster.acts.accepted import flag_data, flags_json
from muster.acts.decisions import given
from muster.acts.flag_accept import acceptable_flags
from muster.cli.app import open_folder
from muster.cli.report import flag_line
from muster.cli.verbs import Verbs
from muster.cli.words import counted, say_json
from muster.domain.errors import MusterError
from muster.report.flag_words import by_level
from muster.stats.flags import Acceptance
from muster.wiring.desk import Desk
from muster.wiring.reporting import flags_now

app = typer.Typer(
    cls=Verbs,
    add_completion=False,
    epilog="Example:  muster flag list   then   muster flag accept same_seeds --because 'both runs were looked at'",
)
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.callback(invoke_without_command=True)
def group(ctx: typer.Context) -> None:
    """The red flags that a report would raise now, and a person's word about them."""
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())
        raise typer.Exit(2)


@app.command("list", epilog="Example:  muster flag list --json | jq '.flags[] | select(.level == \"ERROR\")'")
def list_(ctx: typer.Context, as_json_: Json = False) -> int:
    """Every flag that is raised now, ERROR before WARN, and what was accepted. Writes nothing."""
    desk = Desk.open(open_folder(ctx))
    flags, language = flags_now(desk)
    if as_json_:
        say_json({"flags": flags_json(by_level(flags))})
        return 0
    for flag in by_level(flags):
        print(flag_line(flag, language))
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
    as_json_: Json = False,
) -> int:
    """Acknowledges all flags of one code that are raised now: they no longer void the verdict.

    Who, when and why are recorded and printed in every report. It covers these flags on these cells; one that is raised
    later elsewhere counts again. Divergence and failure of a method can't be accepted.
    """
    reason = given(because)
    desk = Desk.open(open_folder(ctx))
    desk.refuse_stranger()
    flags, language = flags_now(desk)
    meant = acceptable_flags(code, flags)
    decision = desk.person("flag", reason, data=flag_data(code, meant))
    (refused,) = desk.decide([decision])
    if refused:
        raise MusterError(f"{code}: not accepted: {refused}")
    by = Acceptance(decision.who, decision.at, reason)
    accepted = [replace(flag, accepted=by) for flag in meant]
    if as_json_:
        say_json({"flags": flags_json(accepted)})
        return 0
    for flag in accepted:
        print(flag_line(flag, language))
    print(f"{counted(len(accepted), 'flag')} accepted; `muster report` tells it, and the verdict without it")
    return 0
