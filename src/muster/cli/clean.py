"""muster clean"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.cli.app import open_folder
from muster.cli.durations import seconds
from muster.cli.words import counted, say_json
from muster.wiring.desk import Desk

app = typer.Typer(add_completion=False)
LISTED = 10


@app.command("clean", epilog="Example:  muster clean --older-than 7d   then   muster clean --older-than 7d --yes")
def clean(
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
    from muster.acts.clean import as_json, clean_lines, size_words
    from muster.wiring.cleaning import Cleaning

    age_s = seconds(older, "--older-than")
    desk = (Desk.open_to_act if yes else Desk.open)(open_folder(ctx))
    cleaning = Cleaning(desk, age_s)
    found = cleaning.find()
    if not yes:
        if as_json_:
            say_json(as_json(found, deleted=False, refused={}, freed=0))
            return 0
        for line in clean_lines(found, LISTED):
            print(line)
        total = size_words(sum(each.bytes for each in found))
        more = f"; {total} in all. `muster clean --older-than {older} --yes` deletes it" if found else ""
        print(f"{counted(len(found), 'leftover')} can go{more}")
        return 0
    done = cleaning.carry_out(found)
    if as_json_:
        say_json(as_json(done.found, deleted=True, refused=done.refused, freed=done.freed))
    else:
        for name, why in done.refused.items():
            print(f"{name} stays: {why}")
        print(f"deleted {counted(len(done.found), 'leftover')}, {size_words(done.freed)}")
    return 1 if done.refused else 0
