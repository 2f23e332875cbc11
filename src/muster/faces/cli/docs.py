"""muster docs"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muster.app.documents.bind_update_audit import audit_document, bind_document, update_documents
from muster.app.documents.document_results import (
    AmbiguousNumber,
    AuditResult,
    BindResult,
    BoundNumber,
    UpdateResult,
    audit_result_as_json,
    bind_result_as_json,
    update_results_as_json,
)
from muster.faces.cli.common.command_line import VerbGroup, folder_of_context
from muster.faces.cli.common.terminal_output import command_from_here, paint_text, print_json
from muster.files.campaign_ownership import refuse_foreign_campaign
from muster.files.state_folder import SIDECAR_SUFFIX
from muster.model.errors import MusterError, UsageError
from muster.text.phrases import join_phrases, phrase
from muster.text.terminal_text import escape_terminal_line

if TYPE_CHECKING:
    from muster.app.documents.report_quantities import BindableNumbers

MOST_LINES_LISTED = 40
STATE_COLOURS = {"agrees": "green", "stale": "yellow", "disagrees": "red", "untraced": "dim"}
STATE_WORDS = {
    "agrees": "cli.number_agrees",
    "stale": "cli.number_stale",
    "disagrees": "cli.number_disagrees",
    "untraced": "cli.number_untraced",
}
STATE_COUNTS = {
    "agrees": "cli.numbers_agree",
    "stale": "cli.numbers_stale",
    "disagrees": "cli.numbers_disagree",
    "untraced": "cli.numbers_untraced",
}


app = typer.Typer(
    cls=VerbGroup, add_completion=False, epilog="Example:  muster docs bind ppt.md   then   muster docs update"
)


@app.callback(invoke_without_command=True)
def docs_group(ctx: typer.Context) -> None:
    """Numbers in your own texts: binds them to results, updates those and nothing else, says which agree."""
    if ctx.invoked_subcommand is None:
        raise UsageError(
            phrase("cli.say_bind_update_or_audit"), hint=phrase("cli.for_example", command="muster docs bind ppt.md")
        )


@app.command("bind", epilog="Example:  muster docs bind ppt.md --dry-run")
def docs_bind_command(
    ctx: typer.Context,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Texts.", show_default=False)],
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing; what is ambiguous stays unbound.")] = False,
    place: Annotated[
        bool, typer.Option("--place", help="Also bind by row, column or names alone, whatever the value is.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be bound; write nothing.")] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Finds the numbers of a text that stem from results and remembers them in FILE.muster.json beside it.

    The text itself is not touched. What could be several results stays unbound, and is named.
    """
    known = _known_quantities(ctx, to_write=not dry_run)
    asks = not (yes or dry_run or as_json_) and sys.stdin.isatty() and sys.stdout.isatty()
    choose = _ask_which_quantity if asks else None
    found = [
        bind_document(path, known.quantities, choose, by_place=place, dry_run=dry_run)
        for path in _document_paths(ctx, files)
    ]
    if as_json_:
        objects = [bind_result_as_json(each, dry_run=dry_run) for each in found]
        print_json(objects[0] if len(objects) == 1 else objects)
        return 0
    for each in found:
        for line in _bind_result_lines(each, folder_of_context(ctx), dry_run=dry_run):
            print(line)
    return 0


@app.command("update", epilog="Example:  muster docs update ppt.md --dry-run")
def docs_update_command(
    ctx: typer.Context,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE]...", help="Texts; default: all bound ones of the campaign.", show_default=False),
    ] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Of an incomplete matrix: mark every number PARTIAL k/N.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the difference; write nothing.")] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Writes the current results into bound texts: those numbers, each in its own format, and nothing else.

    The old version is kept in reports/documents/. Exit code: 3 the matrix is incomplete and --partial was not given.
    """
    from muster.app.campaign.last_report import no_result_message
    from muster.app.report.publish_report import write_document_stamps

    known = _known_quantities(ctx, to_write=True)
    if known.invalid:
        raise MusterError(
            no_result_message(), where=str(known.root), hint=phrase("cli.report_names_flags"), code="invalid"
        )
    paths = _document_paths(ctx, files) if files else _bound_document_paths(known)
    now = datetime.now().astimezone()
    found = update_documents(paths, known.quantities, known.partial, known.root, now, allowed=partial, dry_run=dry_run)
    if not dry_run:
        write_document_stamps(known.found, paths)
    if as_json_:
        print_json(update_results_as_json(found, dry_run=dry_run))
        return 0
    for each in found:
        for line in _update_result_lines(each, dry_run=dry_run):
            print(line)
    return 0


@app.command("audit", epilog="Example:  muster docs audit ppt.md --json | jq .counts")
def docs_audit_command(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The text.", show_default=False)],
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Says which numbers of a text agree with the results, are stale, disagree, or can't be traced.

    Exit code: 1 if any disagrees or is stale.
    """
    known = _known_quantities(ctx)
    (path,) = _document_paths(ctx, [file])
    found = audit_document(path, known.quantities)
    if as_json_:
        print_json(audit_result_as_json(found))
    else:
        for line in _document_audit_lines(found):
            print(line)
    return 1 if found.wrong else 0


def _known_quantities(ctx: typer.Context, *, to_write: bool = False) -> BindableNumbers:
    from muster.app.documents.report_quantities import gather_bindable_numbers

    known = gather_bindable_numbers(folder_of_context(ctx))
    if to_write:
        refuse_foreign_campaign(known.root)
    return known


def _document_paths(ctx: typer.Context, files: Sequence[Path]) -> list[Path]:
    return list(dict.fromkeys(folder_of_context(ctx) / file for file in files))


def _bound_document_paths(known: BindableNumbers) -> list[Path]:
    """What the campaign names, and what is bound beside its file."""
    beside = sorted(
        path.with_name(path.name.removesuffix(SIDECAR_SUFFIX)) for path in known.root.glob(f"*{SIDECAR_SUFFIX}")
    )
    declared = [known.root / name for name in known.documents]
    bound = [path for path in declared if path.resolve().with_name(path.resolve().name + SIDECAR_SUFFIX).exists()]
    found = list(dict.fromkeys([*bound, *beside]))
    if not found:
        raise UsageError(phrase("cli.no_text_bound"), where=str(known.root), hint="muster docs bind FILE")
    return found


# -- what is shown


def _ask_which_quantity(about: AmbiguousNumber) -> int | None:
    print(f"\n{_in_line(about.spot.line)}: {paint_text(escape_terminal_line(about.spot.text), 'bold')}: {about.why}")
    print(f"    {escape_terminal_line(about.around)}")
    for number, name in enumerate(about.candidates, 1):
        print(f"    {number}  {name}")
    while True:
        try:
            said = input(phrase("cli.ask_which_number", last=len(about.candidates)) + " ").strip()
        except EOFError:
            print()
            return None
        if not said:
            return None
        if said.isdecimal() and 1 <= int(said) <= len(about.candidates):
            return int(said) - 1


def _bind_result_lines(bound: BindResult, folder: Path, *, dry_run: bool) -> Iterator[str]:
    new = sum(not each.old for each in bound.fixed)
    parts = [phrase("cli.numbers_bound", n=len(bound.fixed))]
    parts += [phrase("cli.of_them_new", count=new)] if new < len(bound.fixed) else []
    parts += [phrase("cli.numbers_ambiguous", count=len(bound.ambiguous))] if bound.ambiguous else []
    parts += [phrase("cli.numbers_not_traced", count=len(bound.untraced))] if bound.untraced else []
    yield paint_text(f"{bound.path}: {join_phrases(', ', parts)}", "bold")
    yield from _limit_listed_lines([_bound_number_line(each) for each in bound.fixed])
    for each in bound.lost:
        number = escape_terminal_line(each.spot.text)
        stood = phrase("cli.number_stood_in_line", number=number, line=each.spot.line, reason=each.why)
        yield f"  {paint_text(phrase('cli.number_lost'), 'red')} {stood}"
    yield from _limit_listed_lines([line for each in bound.ambiguous for line in _ambiguous_number_lines(each)])
    untraced = [
        f"{_in_line(each.spot.line)}: {escape_terminal_line(each.spot.text)}: {each.why}" for each in bound.untraced
    ]
    label = paint_text(phrase("cli.not_traced"), "dim")
    yield from _limit_listed_lines([f"  {label} {line}" for line in untraced])
    if dry_run:
        yield phrase("cli.nothing_written_in_dry_run")
    elif bound.written:
        following = command_from_here(folder, "docs update", bound.path)
        yield phrase("cli.bindings_kept", file=bound.sidecar, command=following)


def _in_line(number: int) -> str:
    return phrase("cli.in_line", line=str(number))


def _bound_number_line(each: BoundNumber) -> str:
    by = [phrase("cli.bound_by", way=each.binding.by)]
    if each.now != "now":
        by.append(phrase("cli.as_with_fewer_seeds" if each.now == "earlier" else "cli.value_differs"))
    note = f" ({each.binding.note})" if each.binding.note else ""
    bound = f"  {_in_line(each.spot.line)}: {escape_terminal_line(each.spot.text)}"
    return f"{bound}  {paint_text(_join_keys(each.binding.keys), 'green')}  {join_phrases(', ', by)}{note}"


def _join_keys(keys: Sequence[str]) -> str:
    return reduce(lambda first, second: phrase("list.one_and_other", one=first, other=second), keys)


def _ambiguous_number_lines(each: AmbiguousNumber) -> Iterator[str]:
    yield (
        f"  {paint_text(phrase('cli.ambiguous'), 'yellow')} {_in_line(each.spot.line)}: "
        f"{escape_terminal_line(each.spot.text)}: {each.why}"
    )
    yield from (f"      {name}" for name in each.candidates)


def _update_result_lines(updated: UpdateResult, *, dry_run: bool) -> Iterator[str]:
    for line in updated.diff:
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        yield paint_text(escape_terminal_line(line), colour) if colour else escape_terminal_line(line)
    yield phrase(
        "cli.numbers_would_change" if dry_run else "cli.numbers_changed",
        path=updated.path,
        n=len(updated.changes),
        unchanged=updated.unchanged,
    )
    if updated.kept:
        yield phrase("cli.old_version_kept", path=updated.kept)
    told = [f"{_in_line(each.spot.line)}: {escape_terminal_line(each.spot.text)}: {each.why}" for each in updated.left]
    label = paint_text(phrase("cli.look_at"), "yellow")
    yield from _limit_listed_lines([f"  {label} {line}" for line in told])


def _document_audit_lines(audited: AuditResult) -> Iterator[str]:
    for spot, each in audited.findings:
        if each.state == "agrees":
            continue
        should = ", " + phrase("cli.number_now", value=each.should) if each.should else ""
        keys = f" {_join_keys(each.keys)}" if each.keys else ""
        because = f": {each.because}" if each.because else ""
        state = paint_text(phrase(STATE_WORDS[each.state]), STATE_COLOURS[each.state])
        yield f"{_in_line(spot.line)}: {escape_terminal_line(spot.text)} {state}{should}{keys}{because}"
    if bare := audited.unlabelled:
        yield (
            f"{_in_line(bare.spot.line)}: {escape_terminal_line(bare.spot.text)} "
            f"{paint_text(phrase('cli.unlabelled'), 'yellow')}: {bare.why}"
        )
    told = [phrase(STATE_COUNTS[state], n=count) for state, count in audited.counts.items() if count]
    said = join_phrases(", ", told) if told else phrase("cli.no_number_from_results")
    yield paint_text(f"{audited.path}: {said}", "bold")


def _limit_listed_lines(lines: Sequence[str]) -> Iterator[str]:
    yield from lines[:MOST_LINES_LISTED]
    if len(lines) > MOST_LINES_LISTED:
        yield "  " + phrase("cli.more_in_json", count=len(lines) - MOST_LINES_LISTED)
