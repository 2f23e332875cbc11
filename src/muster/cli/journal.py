"""muster journal"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from muster.acts import journal_audit, journal_fill, journal_new
from muster.cli.app import open_folder
from muster.cli.paint import paint
from muster.cli.verbs import Verbs
from muster.cli.words import counted, cut, from_here, say_json, screen_columns
from muster.domain.errors import UsageError
from muster.domain.terminal_text import blanked
from muster.wiring import journaling

Language = Annotated[
    Literal["zh", "en"] | None,
    typer.Option("--language", metavar="zh|en", help="Default: as the journal is written.", show_default=False),
]
Dir = Annotated[
    Path | None,
    typer.Option("--dir", metavar="DIR", help="Where the journals lie; default: the campaign.", show_default=False),
]
File = Annotated[
    Path | None,
    typer.Argument(metavar="[FILE]", help="The journal; default: the newest.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

LISTED = 60
COLOURS = {"agrees": "green", "disagrees": "red", "untraced": "dim"}
WORDS = {"agrees": "agree", "disagrees": "disagree", "untraced": "can't be traced"}

app = typer.Typer(
    cls=Verbs,
    add_completion=False,
    epilog="Example:  muster journal new   then   muster journal fill --run runs/v41   then   muster journal audit",
)


Runs = Annotated[
    list[str] | None,
    typer.Option(
        "--run",
        metavar="DIR|CELL",
        help="A run's folder, or a cell; default: the runs that it has blocks of.",
        show_default=False,
    ),
]


@app.callback(invoke_without_command=True)
def group(ctx: typer.Context) -> None:
    """The research journal dev_vN.md: starts from the last one's open points, is filled from artifacts, is audited."""
    if ctx.invoked_subcommand is None:
        raise UsageError("say what to do: new, fill or audit", hint="for example: muster journal new")


@app.command("new", epilog="Example:  muster journal new   or   muster journal new --dir experiments --language zh")
def new(
    ctx: typer.Context,
    version: Annotated[
        int | None,
        typer.Option("--version", metavar="N", min=0, max=999_999, help="Default: the next one.", show_default=False),
    ] = None,
    language: Language = None,
    folder: Dir = None,
    carry: Annotated[
        bool, typer.Option("--carry", help="Also where the last version learnt nothing: only carries what is open.")
    ] = False,
    as_json_: Json = False,
) -> int:
    """Writes dev_vN.md from the last version: its learning and open points become observations and plan.

    Each point keeps its id until its box is ticked or it is dropped with a reason. The last version is not touched.
    """
    start = open_folder(ctx)
    there = journaling.place(start, folder)
    asked = journal_new.Asked(
        there, datetime.now().astimezone(), version, language, journaling.campaign_language(there), carry
    )
    made = journal_new.new(asked)
    if as_json_:
        say_json(journal_new.as_json(made))
        return 0
    for line in _made_lines(made, start):
        print(line)
    return 0


@app.command(
    "fill", epilog="Example:  muster journal fill --run runs/v41   or   muster journal fill dev_v41.md --run train/0"
)
def fill(
    ctx: typer.Context,
    file: File = None,
    run: Runs = None,
    language: Language = None,
    folder: Dir = None,
    force: Annotated[bool, typer.Option("--force", help="Also overwrite blocks that were edited by hand.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")] = False,
    as_json_: Json = False,
) -> int:
    """Writes command, tables, gate, warnings, figures, artifacts and the comparison with the last version.

    Of all cells, where no run is named and it has no blocks yet. Only between its own markers: what a person wrote
    stays byte for byte. Exit code: 1 if a block that was edited by hand was left alone.
    """
    start = open_folder(ctx)
    opened = journaling.chosen(start, folder, file)
    told = journaling.fill(start, opened, run or [], language, force=force, dry_run=dry_run)
    if as_json_:
        say_json(journal_fill.as_json(told))
        return told.exit
    for line in _filled_lines(told):
        print(line)
    return told.exit


def _filled_lines(told: journal_fill.Told) -> Iterator[str]:
    done = told.filled
    changed = len(done.refreshed) + len(done.forced)
    parts = [f"{counted(len(done.written), 'block')} written"] if done.written else []
    parts += [f"{changed} refreshed"] if changed else []
    parts += [f"{len(done.same)} as they were"] if done.same else []
    yield paint(f"{os.path.relpath(told.path)}: {', '.join(parts) or 'nothing changed'}", "bold")
    for run in told.runs:
        kinds = [kind for kind, of in [*done.written, *done.refreshed] if of == run]
        yield f"  {run}: {', '.join(kinds) or 'nothing new'}"
    yield from (f"  figure {os.path.relpath(each)}" for each in told.figures)
    yield from (f"  {note}" for note in told.notes)
    if told.against:
        yield f"  compared with {told.against}.md"
    for block in done.silent:
        yield paint(
            f"  line {block.line}: {block.kind} of {block.run} has no artifact any more; left as it is", "yellow"
        )
    for block in done.edited:
        yield paint(f"  line {block.line}: {block.kind} of {block.run} was edited by hand; left as it is", "yellow")
    if done.edited:
        yield "--force overwrites them; or move your text out of the block"
    if told.dry_run:
        yield "nothing was written (--dry-run)"


@app.command(
    "audit", epilog="Example:  muster journal audit   or   muster journal audit dev_v41.md --json | jq .counts"
)
def audit(
    ctx: typer.Context,
    file: File = None,
    run: Runs = None,
    folder: Dir = None,
    as_json_: Json = False,
) -> int:
    """Says which numbers agree with the artifacts and which don't, which points got stuck or lost, what was edited.

    Exit code: 1 if a number disagrees, a point vanished, a generated block was edited or an artifact is gone.
    """
    start = open_folder(ctx)
    found = journaling.audit(start, journaling.chosen(start, folder, file), run or [])
    if as_json_:
        say_json(journal_audit.as_json(found))
    else:
        for line in _audited_lines(found):
            print(line)
    return 1 if found.wrong else 0


def _audited_lines(found: journal_audit.Audited) -> Iterator[str]:
    spots = [each for each in found.numbers if each.finding.state != "agrees"]
    for each in spots[:LISTED]:
        should = f", it is {each.finding.should}" if each.finding.should else ""
        state = paint(each.finding.state, COLOURS[each.finding.state])
        yield f"line {each.line}: {each.finding.text} {state}{should}: {each.finding.because}"
    if len(spots) > LISTED:
        yield f"and {len(spots) - LISTED} more; --json lists them all"
    for point in found.points:
        where = f"line {point.line}: " if point.line else ""
        yield f"{where}{point.id} {paint(point.kind, 'red' if point.wrong else 'yellow')}: {point.message}"
    for block in found.edited:
        yield f"line {block.line}: {block.kind} of {block.run} {paint('edited', 'red')} by hand since it was generated"
    for artifact in found.artifacts:
        what = "is gone" if artifact.state == "missing" else "has changed since the journal was filled"
        yield f"{artifact.path} {paint(what, 'red')} (of {artifact.run})"
    yield from (paint(note, "yellow") for note in found.notes)
    told = [f"{count} {WORDS[state]}" for state, count in found.counts.items() if count]
    yield paint(f"{os.path.relpath(found.path)}: {', '.join(told) or 'no number that could stem from a run'}", "bold")


def _made_lines(made: journal_new.Made, start: Path) -> Iterator[str]:
    after = f" from {made.last.name}" if made.last else ", the first one here"
    yield paint(f"{os.path.relpath(made.path)}{after}", "bold")
    for each in made.points:
        times = f" (carried {counted(each.carried, 'time')})" if each.carried else ""
        yield _fitting(f"  {each.id}{times} {_plain(each.planned)}")
    ended = [f"{len(made.settled.done)} done"] if made.settled.done else []
    ended += [f"{len(made.settled.dropped)} dropped"] if made.settled.dropped else []
    if ended:
        yield f"  of the last version's points {', '.join(ended)}"
    if made.missing:
        names = ", ".join(f"dev_v{each}.md" for each in made.missing)
        yield paint(f"  between the two there is no {names}", "yellow")
    yield f"next: write the goal; when a run is over: {from_here(start, 'journal fill', made.path)} --run DIR"


def _fitting(text: str) -> str:
    return cut(text, screen_columns())


def _plain(text: str) -> str:
    """One line, and nothing that a terminal would obey."""
    return " ".join(blanked(text).split())
