"""muster journal"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from muster.app.journal.fill_and_audit import (
    FillReport,
    audit_journal_against_runs,
    choose_journal,
    fill_journal_from_runs,
    fill_report_as_json,
    find_journal_folder,
    language_of_campaign,
)
from muster.app.journal.journal_audit import AuditedJournal, audited_journal_as_json
from muster.app.journal.journal_versions import (
    CreatedJournal,
    NewJournalRequest,
    create_journal,
    created_journal_as_json,
)
from muster.faces.cli.common.command_line import VerbGroup, folder_of_context
from muster.faces.cli.common.terminal_output import (
    command_from_here,
    cut_to_width,
    paint_text,
    print_json,
    screen_columns,
)
from muster.model.errors import UsageError
from muster.text.phrases import phrase
from muster.text.terminal_text import replace_unprintable

LanguageOption = Annotated[
    Literal["zh", "en"] | None,
    typer.Option("--language", metavar="zh|en", help="Default: as the journal is written.", show_default=False),
]
FolderOption = Annotated[
    Path | None,
    typer.Option("--dir", metavar="DIR", help="Where the journals lie; default: the campaign.", show_default=False),
]
FileArgument = Annotated[
    Path | None,
    typer.Argument(metavar="[FILE]", help="The journal; default: the newest.", show_default=False),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

MOST_FINDINGS_LISTED = 60
FINDING_COLOURS = {"agrees": "green", "disagrees": "red", "untraced": "dim"}
FINDING_WORDS = {"agrees": "agree", "disagrees": "disagree", "untraced": "can't be traced"}

app = typer.Typer(
    cls=VerbGroup,
    add_completion=False,
    epilog="Example:  muster journal new   then   muster journal fill --run runs/v41   then   muster journal audit",
)


RunsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--run",
        metavar="DIR|CELL",
        help="A run's folder, or a cell; default: the runs that it has blocks of.",
        show_default=False,
    ),
]


@app.callback(invoke_without_command=True)
def journal_group(ctx: typer.Context) -> None:
    """The research journal dev_vN.md: starts from the last one's open points, is filled from artifacts, is audited."""
    if ctx.invoked_subcommand is None:
        raise UsageError(phrase("cli.say_what_do_new_fill_audit"), hint=phrase("cli.example_journal_new"))


@app.command("new", epilog="Example:  muster journal new   or   muster journal new --dir experiments --language zh")
def journal_new_command(
    ctx: typer.Context,
    version: Annotated[
        int | None,
        typer.Option("--version", metavar="N", min=0, max=999_999, help="Default: the next one.", show_default=False),
    ] = None,
    language: LanguageOption = None,
    folder: FolderOption = None,
    carry: Annotated[
        bool, typer.Option("--carry", help="Also where the last version learnt nothing: only carries what is open.")
    ] = False,
    as_json_: JsonOption = False,
) -> int:
    """Writes dev_vN.md from the last version: its learning and open points become observations and plan.

    Each point keeps its id until its box is ticked or it is dropped with a reason. The last version is not touched.
    """
    start = folder_of_context(ctx)
    there = find_journal_folder(start, folder)
    asked = NewJournalRequest(there, datetime.now().astimezone(), version, language, language_of_campaign(there), carry)
    made = create_journal(asked)
    if as_json_:
        print_json(created_journal_as_json(made))
        return 0
    for line in _created_journal_lines(made, start):
        print(line)
    return 0


@app.command(
    "fill", epilog="Example:  muster journal fill --run runs/v41   or   muster journal fill dev_v41.md --run train/0"
)
def journal_fill_command(
    ctx: typer.Context,
    file: FileArgument = None,
    run: RunsOption = None,
    language: LanguageOption = None,
    folder: FolderOption = None,
    force: Annotated[bool, typer.Option("--force", help="Also overwrite blocks that were edited by hand.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")] = False,
    as_json_: JsonOption = False,
) -> int:
    """Writes command, tables, gate, warnings, figures, artifacts and the comparison with the last version.

    Of all cells, where no run is named and it has no blocks yet. Only between its own markers: what a person wrote
    stays byte for byte. Exit code: 1 if a block that was edited by hand was left alone.
    """
    start = folder_of_context(ctx)
    opened = choose_journal(start, folder, file)
    told = fill_journal_from_runs(start, opened, run or [], language, force=force, dry_run=dry_run)
    if as_json_:
        print_json(fill_report_as_json(told))
        return told.exit
    for line in _fill_report_lines(told):
        print(line)
    return told.exit


def _fill_report_lines(told: FillReport) -> Iterator[str]:
    done = told.filled
    changed = len(done.refreshed) + len(done.forced)
    parts = [f"{phrase('count.block', n=len(done.written))} written"] if done.written else []
    parts += [f"{changed} refreshed"] if changed else []
    parts += [phrase("cli.they_were_2", same=len(done.same))] if done.same else []
    yield paint_text(f"{os.path.relpath(told.path)}: {', '.join(parts) or 'nothing changed'}", "bold")
    for run in told.runs:
        kinds = [kind for kind, of in [*done.written, *done.refreshed] if of == run]
        yield f"  {run}: {', '.join(kinds) or 'nothing new'}"
    yield from (f"  figure {os.path.relpath(each)}" for each in told.figures)
    yield from (f"  {note}" for note in told.notes)
    if told.against:
        yield phrase("cli.compared_md", against=told.against)
    for block in done.silent:
        yield paint_text(
            phrase("cli.line_no_artifact_any_more_left", line=block.line, kind=block.kind, run=block.run), "yellow"
        )
    for block in done.edited:
        yield paint_text(phrase("cli.line_edited_hand_left", line=block.line, kind=block.kind, run=block.run), "yellow")
    if done.edited:
        yield phrase("cli.force_overwrites_them_move_your_text")
    if told.dry_run:
        yield phrase("cli.nothing_written_dry_run")


@app.command(
    "audit", epilog="Example:  muster journal audit   or   muster journal audit dev_v41.md --json | jq .counts"
)
def journal_audit_command(
    ctx: typer.Context,
    file: FileArgument = None,
    run: RunsOption = None,
    folder: FolderOption = None,
    as_json_: JsonOption = False,
) -> int:
    """Says which numbers agree with the artifacts and which don't, which points got stuck or lost, what was edited.

    Exit code: 1 if a number disagrees, a point vanished, a generated block was edited or an artifact is gone.
    """
    start = folder_of_context(ctx)
    found = audit_journal_against_runs(start, choose_journal(start, folder, file), run or [])
    if as_json_:
        print_json(audited_journal_as_json(found))
    else:
        for line in _journal_audit_lines(found):
            print(line)
    return 1 if found.wrong else 0


def _journal_audit_lines(found: AuditedJournal) -> Iterator[str]:
    spots = [each for each in found.numbers if each.finding.state != "agrees"]
    for each in spots[:MOST_FINDINGS_LISTED]:
        should = phrase("cli.it_is_2", should=each.finding.should) if each.finding.should else ""
        state = paint_text(each.finding.state, FINDING_COLOURS[each.finding.state])
        yield f"line {each.line}: {each.finding.text} {state}{should}: {each.finding.because}"
    if len(spots) > MOST_FINDINGS_LISTED:
        yield phrase("cli.more_json_lists_them_all_2", spots=len(spots) - MOST_FINDINGS_LISTED)
    for point in found.points:
        where = f"line {point.line}: " if point.line else ""
        yield f"{where}{point.id} {paint_text(point.kind, 'red' if point.wrong else 'yellow')}: {point.message}"
    for block in found.edited:
        yield (
            phrase(
                "cli.line_hand_since_generated",
                line=block.line,
                kind=block.kind,
                run=block.run,
                paint_text=paint_text("edited", "red"),
            )
        )
    for artifact in found.artifacts:
        what = phrase("cli.gone") if artifact.state == "missing" else phrase("cli.changed_since_journal_filled")
        yield f"{artifact.path} {paint_text(what, 'red')} (of {artifact.run})"
    yield from (paint_text(note, "yellow") for note in found.notes)
    told = [f"{count} {FINDING_WORDS[state]}" for state, count in found.counts.items() if count]
    yield paint_text(
        f"{os.path.relpath(found.path)}: {', '.join(told) or 'no number that could stem from a run'}", "bold"
    )


def _created_journal_lines(made: CreatedJournal, start: Path) -> Iterator[str]:
    after = f" from {made.last.name}" if made.last else phrase("cli.first_one_here")
    yield paint_text(f"{os.path.relpath(made.path)}{after}", "bold")
    for each in made.points:
        times = f" (carried {phrase('count.time', n=each.carried)})" if each.carried else ""
        yield _fit_to_screen(f"  {each.id}{times} {_one_safe_line(each.planned)}")
    ended = [f"{len(made.settled.done)} done"] if made.settled.done else []
    ended += [f"{len(made.settled.dropped)} dropped"] if made.settled.dropped else []
    if ended:
        yield phrase("cli.last_versions_points", ended=", ".join(ended))
    if made.missing:
        names = ", ".join(f"dev_v{each}.md" for each in made.missing)
        yield paint_text(phrase("cli.between_two_there_no", names=names), "yellow")
    yield phrase(
        "cli.next_write_goal_when_run_over_run_dir",
        command_from_here=command_from_here(start, "journal fill", made.path),
    )


def _fit_to_screen(text: str) -> str:
    return cut_to_width(text, screen_columns())


def _one_safe_line(text: str) -> str:
    """One line, and nothing that a terminal would obey."""
    return " ".join(replace_unprintable(text).split())
