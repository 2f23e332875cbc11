"""muster adopt"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from muster.app.adopt.adopt_runs import AdoptionResult, adopt_found_runs
from muster.app.adopt.find_runs import ProvedRun
from muster.app.campaign.campaign_handle import CAMPAIGN_FILE_NAME
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.status_view import state_mark
from muster.faces.cli.common.terminal_output import is_utf8_stream, paint_text, print_json
from muster.files.campaign_ownership import find_campaign_root
from muster.text.phrases import join_phrases, phrase
from muster.text.terminal_text import escape_terminal_line

app = typer.Typer(add_completion=False)
HARMLESS_REFUSALS = ("superseded", "is DONE already")


@app.command("adopt", epilog="Example:  muster adopt 'runs/*_{config}_*_{seed}' --dry-run")
def adopt_command(
    ctx: typer.Context,
    patterns: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATTERN]...", help="Run folders: globs, {axis} stands for a value. Default: `output:`."
        ),
    ] = None,
    status_tsv: Annotated[
        Path | None,
        typer.Option(
            "--status-tsv",
            metavar="FILE",
            help="A table of runs that a script kept, with tabs or commas and a header. Columns: the axes (config or "
            "method or variant, seed, ...), status, run_dir or logdir or path; also job, checkpoint, started, ended.",
            show_default=False,
        ),
    ] = None,
    job: Annotated[
        str | None,
        typer.Option("--job", metavar="JOB", help="Only cells of this job, where jobs share axes.", show_default=False),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be adopted; record nothing.")] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Takes in runs that something else produced: matches folders to cells, proves them, accounts for them.

    Starts nothing, and what was adopted is run again only by `muster redo`. Exit code: 0 all that was found is in, 1
    nothing could be adopted, 3 some was refused.
    """
    root = find_campaign_root(folder_of_context(ctx))
    table = None if status_tsv is None else status_tsv.absolute()
    found = adopt_found_runs(root, patterns or [], table, dry_run=dry_run, job=job)
    if as_json_:
        print_json(adoption_as_json(found, dry_run))
    else:
        if found.warnings:
            from muster.faces.cli.common.terminal_output import print_mistakes

            print_mistakes(str(root / CAMPAIGN_FILE_NAME), found.warnings)
        print_adoption(found, dry_run)
    return adoption_exit_code(found)


def adoption_exit_code(found: AdoptionResult) -> int:
    """A folder that gave way to a newer one of the same cell, or whose cell is in already, is no failure."""
    if any(not any(word in refused.reason for word in HARMLESS_REFUSALS) for refused in found.refused):
        return 3 if found.taken else 1
    return 0 if found.taken or found.refused or found.found.already else 1


def print_adoption(found: AdoptionResult, dry_run: bool) -> None:
    how = {(match.cell, match.path): match.how for match in found.found.matched}
    for proved in found.taken:
        path = proved.outcome.output or ""
        print(f"  {state_mark('DONE')} {proved.cell}: {path} ({how.get((proved.cell, path), '')})")
        if proved.outcome.note:
            print(f"      {phrase('cli.label_note')} {proved.outcome.note}")
    already = found.found.already
    for known in already:
        print(f"  {state_mark('DONE')} {phrase('cli.cell_already_adopted', cell=known.cell, path=known.path)}")
    for refused in found.refused:
        print(
            f"  {paint_text('✘' if is_utf8_stream() else 'X', 'yellow')} {escape_terminal_line(refused.what)}: "
            f"{escape_terminal_line(refused.reason)}"
        )
    for path in found.found.undeclared:
        print(f"  ? {phrase('cli.output_of_undeclared_values', path=escape_terminal_line(path))}")
    if not found.taken and not found.refused and not already:
        print("  " + phrase("cli.no_run_folder_found"))
    print(_say_adoption_result(found, dry_run))
    left = found.declared - found.done
    if found.taken and left and not dry_run:
        print(phrase("cli.missing_cells_after_adoption", n=left))


def _say_adoption_result(found: AdoptionResult, dry_run: bool) -> str:
    counts = [
        phrase("cli.would_adopt" if dry_run else "cli.adopted_count", count=len(found.taken)),
        *([phrase("cli.already_adopted_count", count=len(found.found.already))] if found.found.already else []),
        phrase("cli.would_refuse" if dry_run else "cli.refused_count", count=len(found.refused)),
    ]
    ends = [
        phrase("cli.nothing_recorded")
        if dry_run
        else phrase("cli.done_of_declared", done=found.done, cells=phrase("count.cell", n=found.declared))
    ]
    if found.spent:
        code = "cli.would_record_waste" if dry_run else "cli.waste_recorded"
        ends.append(phrase(code, runs=phrase("count.refused_run", n=found.spent)))
    elif not found.taken and not dry_run:
        ends.append(phrase("cli.nothing_changed"))
    return join_phrases("; ", (join_phrases(", ", counts), *ends))


def adoption_as_json(found: AdoptionResult, dry_run: bool) -> dict[str, Any]:
    how = {(match.cell, match.path): match.how for match in found.found.matched}
    return {
        "dry_run": dry_run,
        "adopted": [_proved_run_as_json(proved, how) for proved in found.taken],
        "already": [{"cell": known.cell, "path": known.path} for known in found.found.already],
        "refused": [
            {"what": refused.what, "reason": refused.reason, "cell": refused.cell or None} for refused in found.refused
        ],
        "undeclared": list(found.found.undeclared),
        "spent": found.spent,
        "taken_in": found.took_in,
        "declared": found.declared,
        "done": found.done,
    }


def _proved_run_as_json(proved: ProvedRun, how: dict[tuple[str, str], str]) -> dict[str, Any]:
    outcome = proved.outcome
    return {
        "cell": proved.cell,
        "attempt": proved.attempt,
        "path": outcome.output,
        "how": how.get((proved.cell, outcome.output or ""), ""),
        "reason": outcome.reason,
        "note": outcome.note,
        "evidence": [
            {"signal": item.signal, "class": item.kind, "reading": item.reading, "says": item.says}
            for item in proved.evidence
        ],
    }
