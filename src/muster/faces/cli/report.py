"""muster report"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.facts.report_facts import MissingCell
from muster.app.report.next_steps import statements_of_losses
from muster.app.report.publish_report import PublishedReport, make_report, published_report_as_json
from muster.app.report.red_flag_text import describe_flag, describe_flag_weight, sort_flags_by_level
from muster.app.report.verdict_sentences import plain_verdict_sentence
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import command_from_here, paint_text, print_json, show_progress_bar
from muster.stats.red_flags import RedFlag
from muster.text.catalogue import load_catalogue
from muster.text.phrases import join_phrases, phrase

app = typer.Typer(add_completion=False)
VERDICT_COLOURS = {"RECOMMEND": "green", "EQUIVALENT": "cyan", "KEEP_BASELINE": "cyan", "INVALID": "red"}
MOST_MISSING_NAMED = 12
INCOMPLETE_EXIT_CODE = 3
WAYS_BY_STATE = {  # to what is missing, by its state; what was excluded or given up has a sentence of its own
    "PENDING": "cli.up_runs_what_is_missing",
    "DEAD": "cli.why_says_what_dead_needs",
}


@app.command("report", epilog="Example:  muster report --partial --json | jq .verdict")
def report_command(
    ctx: typer.Context,
    partial: Annotated[
        bool, typer.Option("--partial", help="Report an incomplete matrix; everything is stamped PARTIAL k/N.")
    ] = False,
    exit_zero: Annotated[
        bool, typer.Option("--exit-zero", help="Exit 0 for INVALID too, as before; INCOMPLETE still exits 3.")
    ] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Tables, figures, defence notes, the decision report, and the numbers in bound documents; all with their stamp.

    An incomplete matrix is refused, with the missing cells named, unless --partial is given.
    Exit code: 0 a verdict of a complete matrix, 3 INVALID or INCOMPLETE.
    """
    desk = CampaignHandle.open(folder_of_context(ctx))
    desk.refuse_stranger()
    with show_progress_bar(as_json_) as step:
        made = make_report(desk, partial=partial, step=step)
    if as_json_:
        print_json(published_report_as_json(made))
    else:
        for line in format_report_lines(made, desk.root, folder_of_context(ctx)):
            print(line)
    return 0 if made.usable or (exit_zero and not made.analysis.facts.partial) else INCOMPLETE_EXIT_CODE


def format_report_lines(made: PublishedReport, root: Path, folder: Path) -> Iterator[str]:
    analysis, facts = made.analysis, made.analysis.facts
    verdict = analysis.decision.verdict
    mark = f" ({facts.mark})" if facts.mark and made.kept else ""
    yield plain_verdict_sentence(analysis).replace(
        verdict, f"{paint_text(verdict, VERDICT_COLOURS.get(verdict, 'yellow'))}{mark}", 1
    )
    if facts.missing:
        yield from _format_missing_cells(facts.missing)
    for flag in sort_flags_by_level(analysis.flags):
        yield f"  {format_flag_line(flag, facts.language)}"
    if not facts.missing and any(flag.acceptable for flag in analysis.errors):
        yield "  " + phrase("cli.flag_can_be_accepted")
    if made.kept is None:
        yield from (each.text for each in statements_of_losses(analysis, load_catalogue("report", facts.language)))
        ways = [
            phrase(code) for state, code in WAYS_BY_STATE.items() if any(each.state == state for each in facts.missing)
        ]
        ways = [*ways, phrase("cli.report_partial_stamps_all")]
        yield join_phrases("; ", (phrase("cli.nothing_written"), join_phrases(", ", ways)))
        return
    yield ""
    yield phrase("cli.files_stamped", n=len(made.kept.written), folder=root)
    yield from (f"  {path}" for path in _group_paths_by_suffix(made.kept.written))
    yield from ("  " + phrase("cli.file_removed", path=path) for path in made.kept.removed)
    yield from ("  " + phrase("cli.file_left_alone", path=path) for path in made.kept.left)
    if made.documents:
        yield from ("  " + phrase("cli.numbers_updated", path=path) for path in made.documents.updated)
        for path in made.documents.unbound:
            binds = command_from_here(folder, "docs bind", root / path)
            yield "  " + phrase("cli.document_not_bound", path=path, command=binds)
        label = paint_text(phrase("cli.not_updated"), "yellow")
        yield from (f"  {label}: {path}: {why}" for path, why in made.documents.refused)


def format_flag_line(flag: RedFlag, language: str) -> str:
    level = paint_text(flag.level, "red" if flag.voids else "yellow")
    standing = describe_flag_weight(flag, language)
    return f"{level} {flag.code}: {describe_flag(flag, language)}" + (
        f" ({standing.rstrip('.。')})" if standing else ""
    )


def _format_missing_cells(missing: Sequence[MissingCell]) -> Iterator[str]:
    yield phrase("cli.cells_missing", n=len(missing))
    for each in missing[:MOST_MISSING_NAMED]:
        yield f"  {each.state:<8} {each.cell}: {each.reason}"
    if len(missing) > MOST_MISSING_NAMED:
        yield "  " + phrase("cli.more_in_status", count=len(missing) - MOST_MISSING_NAMED)


def _group_paths_by_suffix(paths: Sequence[str]) -> Iterator[str]:
    """main.{csv,md,tex}: one line for what differs in its ending only."""
    groups: dict[str, list[str]] = {}
    for path in paths:
        stem, _, suffix = path.rpartition(".")
        groups.setdefault(stem, []).append(suffix)
    for stem, suffixes in groups.items():
        yield f"{stem}.{suffixes[0]}" if len(suffixes) == 1 else f"{stem}.{{{','.join(suffixes)}}}"
