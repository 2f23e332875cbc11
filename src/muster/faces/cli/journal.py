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
from muster.text.phrases import join_phrases, phrase
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
FINDING_WORDS = {
    "agrees": "cli.number_agrees",
    "disagrees": "cli.number_disagrees",
    "untraced": "cli.number_untraced",
}
FINDING_COUNTS = {
    "agrees": "cli.numbers_agree",
    "disagrees": "cli.numbers_disagree",
    "untraced": "cli.numbers_untraced",
}

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
        raise UsageError(
            phrase("cli.say_new_fill_or_audit"), hint=phrase("cli.for_example", command="muster journal new")
        )


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
    parts = [phrase("cli.blocks_written", n=len(done.written))] if done.written else []
    parts += [phrase("cli.blocks_refreshed", count=changed)] if changed else []
    parts += [phrase("cli.blocks_as_they_were", count=len(done.same))] if done.same else []
    said = join_phrases(", ", parts) if parts else phrase("cli.no_block_changed")
    yield paint_text(f"{os.path.relpath(told.path)}: {said}", "bold")
    for run in told.runs:
        kinds = [kind for kind, of in [*done.written, *done.refreshed] if of == run]
        yield f"  {run}: {', '.join(kinds) or phrase('cli.nothing_new')}"
    yield from (f"  {phrase('cli.figure_drawn', path=os.path.relpath(each))}" for each in told.figures)
    yield from (f"  {note}" for note in told.notes)
    if told.against:
        yield "  " + phrase("cli.compared_with", journal=f"{told.against}.md")
    for block in done.silent:
        said = phrase("cli.block_without_artifact", line=block.line, block=block.kind, run=block.run)
        yield paint_text("  " + said, "yellow")
    for block in done.edited:
        said = phrase("cli.block_edited_by_hand", line=block.line, block=block.kind, run=block.run)
        yield paint_text("  " + said, "yellow")
    if done.edited:
        yield phrase("cli.force_overwrites_blocks")
    if told.dry_run:
        yield phrase("cli.nothing_written_in_dry_run")


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
        should = ", " + phrase("cli.number_is", value=each.finding.should) if each.finding.should else ""
        state = paint_text(phrase(FINDING_WORDS[each.finding.state]), FINDING_COLOURS[each.finding.state])
        yield f"{_in_line(each.line)}: {each.finding.text} {state}{should}: {each.finding.because}"
    if len(spots) > MOST_FINDINGS_LISTED:
        yield phrase("cli.more_in_json", count=len(spots) - MOST_FINDINGS_LISTED)
    for point in found.points:
        where = f"{_in_line(point.line)}: " if point.line else ""
        yield f"{where}{point.id} {paint_text(point.kind, 'red' if point.wrong else 'yellow')}: {point.message}"
    for block in found.edited:
        edited = paint_text(phrase("cli.block_edited"), "red")
        of_run = phrase("cli.block_of_run", block=block.kind, run=block.run)
        yield f"{_in_line(block.line)}: {of_run} {edited} {phrase('cli.by_hand_since_generated')}"
    for artifact in found.artifacts:
        what = phrase("cli.artifact_gone" if artifact.state == "missing" else "cli.artifact_changed")
        yield f"{artifact.path} {paint_text(what, 'red')} ({phrase('cli.of_run', run=artifact.run)})"
    yield from (paint_text(note, "yellow") for note in found.notes)
    told = [phrase(FINDING_COUNTS[state], n=count) for state, count in found.counts.items() if count]
    said = join_phrases(", ", told) if told else phrase("cli.no_number_from_runs")
    yield paint_text(f"{os.path.relpath(found.path)}: {said}", "bold")


def _in_line(number: int) -> str:
    return phrase("cli.in_line", line=str(number))


def _created_journal_lines(made: CreatedJournal, start: Path) -> Iterator[str]:
    path = os.path.relpath(made.path)
    begun = (
        phrase("cli.journal_from", path=path, last=made.last.name)
        if made.last
        else phrase("cli.first_journal", path=path)
    )
    yield paint_text(begun, "bold")
    for each in made.points:
        times = f" ({phrase('cli.carried_times', n=each.carried)})" if each.carried else ""
        yield _fit_to_screen(f"  {each.id}{times} {_one_safe_line(each.planned)}")
    ended = [phrase("cli.points_done", count=len(made.settled.done))] if made.settled.done else []
    ended += [phrase("cli.points_dropped", count=len(made.settled.dropped))] if made.settled.dropped else []
    if ended:
        yield "  " + phrase("cli.last_points_ended", counts=join_phrases(", ", ended))
    if made.missing:
        names = ", ".join(f"dev_v{each}.md" for each in made.missing)
        yield paint_text("  " + phrase("cli.journals_missing", names=names), "yellow")
    yield phrase(
        "cli.next_after_journal",
        command=command_from_here(start, "journal fill", made.path),
    )


def _fit_to_screen(text: str) -> str:
    return cut_to_width(text, screen_columns())


def _one_safe_line(text: str) -> str:
    """One line, and nothing that a terminal would obey."""
    return " ".join(replace_unprintable(text).split())
