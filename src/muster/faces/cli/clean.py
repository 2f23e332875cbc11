"""muster clean"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import print_json
from muster.text.phrases import join_phrases, phrase
from muster.text.sentences import parse_duration

app = typer.Typer(add_completion=False)
MOST_LEFTOVERS = 10


@app.command("clean", epilog="Example:  muster clean --older-than 7d   then   muster clean --older-than 7d --yes")
def clean_command(
    ctx: typer.Context,
    yes: Annotated[bool, typer.Option("--yes", help="Delete what is listed without it.")] = False,
    older: Annotated[
        str, typer.Option("--older-than", metavar="DURATION", help="Only what was last written so long ago.")
    ] = "1d",
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Shows what can go, by kind, size and age; with --yes it goes, and the log says who decided so.

    Never what counts, what a report, a stamp or a note rests on, what an attempt has resumed from, what belongs to a
    cell that is not DONE, or anything outside `.muster`. How each attempt ended stays known.
    """
    from muster.app.campaign.disk_use import clean_as_json, format_clean_lines, format_leftover_size
    from muster.app.campaign.verbs.clean_leftovers import LeftoverCleaner

    age_s = parse_duration(older, "--older-than")
    desk = (CampaignHandle.open_to_act if yes else CampaignHandle.open)(folder_of_context(ctx))
    cleaning = LeftoverCleaner(desk, age_s)
    found = cleaning.find()
    if not yes:
        if as_json_:
            print_json(clean_as_json(found, deleted=False, refused={}, freed=0))
            return 0
        for line in format_clean_lines(found, MOST_LEFTOVERS):
            print(line)
        total = format_leftover_size(sum(each.bytes for each in found))
        can_go = [phrase("cli.leftovers_can_go", leftovers=phrase("count.leftover", n=len(found)))]
        can_go += [phrase("cli.clean_deletes_them", size=total, age=older)] if found else []
        print(join_phrases("; ", can_go))
        return 0
    done = cleaning.carry_out(found)
    if as_json_:
        print_json(clean_as_json(done.found, deleted=True, refused=done.refused, freed=done.freed))
    else:
        for name, why in done.refused.items():
            print(phrase("cli.leftover_stays", leftover=name, reason=why))
        leftovers = phrase("count.leftover", n=len(done.found))
        print(phrase("cli.leftovers_deleted", leftovers=leftovers, size=format_leftover_size(done.freed)))
    return 1 if done.refused else 0
