"""muster docs"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muster.acts import docs
from muster.acts.docs_told import Ambiguous, Audited, Bound, Fixed, Updated, audited_json, bound_json, updated_json
from muster.cli.app import open_folder
from muster.cli.paint import paint
from muster.cli.verbs import Verbs
from muster.cli.words import counted, from_here, say_json
from muster.domain.errors import MusterError, UsageError
from muster.domain.terminal_text import safe_line
from muster.report.documents.sidecar import SUFFIX
from muster.wiring.owner import refuse_stranger

if TYPE_CHECKING:
    from muster.wiring.reporting import Known

LISTED = 40
COLOURS = {"agrees": "green", "stale": "yellow", "disagrees": "red", "untraced": "dim"}
WORDS = {"agrees": "agree", "stale": "are stale", "disagrees": "disagree", "untraced": "can't be traced"}


app = typer.Typer(
    cls=Verbs, add_completion=False, epilog="Example:  muster docs bind ppt.md   then   muster docs update"
)


@app.callback(invoke_without_command=True)
def group(ctx: typer.Context) -> None:
    """Numbers in your own texts: binds them to results, updates those and nothing else, says which agree."""
    if ctx.invoked_subcommand is None:
        raise UsageError("say what to do: bind, update or audit", hint="for example: muster docs bind ppt.md")


@app.command("bind", epilog="Example:  muster docs bind ppt.md --dry-run")
def bind(
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
    known = _known(ctx, to_write=not dry_run)
    asks = not (yes or dry_run or as_json_) and sys.stdin.isatty() and sys.stdout.isatty()
    choose = _ask if asks else None
    found = [docs.bind(path, known.quantities, choose, by_place=place, dry_run=dry_run) for path in _paths(ctx, files)]
    if as_json_:
        objects = [bound_json(each, dry_run=dry_run) for each in found]
        say_json(objects[0] if len(objects) == 1 else objects)
        return 0
    for each in found:
        for line in _bound_lines(each, open_folder(ctx), dry_run=dry_run):
            print(line)
    return 0


@app.command("update", epilog="Example:  muster docs update ppt.md --dry-run")
def update(
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
    from muster.acts.report_verdict import NO_RESULT
    from muster.wiring.publishing import stamp_documents

    known = _known(ctx, to_write=True)
    if known.invalid:
        raise MusterError(NO_RESULT, where=str(known.root), hint="`muster report` names the red flags", code="invalid")
    paths = _paths(ctx, files) if files else _bound_texts(known)
    now = datetime.now().astimezone()
    found = docs.update(paths, known.quantities, known.partial, known.root, now, allowed=partial, dry_run=dry_run)
    if not dry_run:
        stamp_documents(known.found, paths)
    if as_json_:
        say_json(updated_json(found, dry_run=dry_run))
        return 0
    for each in found:
        for line in _updated_lines(each, dry_run=dry_run):
            print(line)
    return 0


@app.command("audit", epilog="Example:  muster docs audit ppt.md --json | jq .counts")
def audit(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The text.", show_default=False)],
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Says which numbers of a text agree with the results, are stale, disagree, or can't be traced.

    Exit code: 1 if any disagrees or is stale.
    """
    known = _known(ctx)
    (path,) = _paths(ctx, [file])
    found = docs.audit(path, known.quantities)
    if as_json_:
        say_json(audited_json(found))
    else:
        for line in _audited_lines(found):
            print(line)
    return 1 if found.wrong else 0


def _known(ctx: typer.Context, *, to_write: bool = False) -> Known:
    from muster.wiring.reporting import quantities

    known = quantities(open_folder(ctx))
    if to_write:
        refuse_stranger(known.root)
    return known


def _paths(ctx: typer.Context, files: Sequence[Path]) -> list[Path]:
    return list(dict.fromkeys(open_folder(ctx) / file for file in files))


def _bound_texts(known: Known) -> list[Path]:
    """What the campaign names, and what is bound beside its file."""
    beside = sorted(path.with_name(path.name.removesuffix(SUFFIX)) for path in known.root.glob(f"*{SUFFIX}"))
    declared = [known.root / name for name in known.documents]
    bound = [path for path in declared if path.resolve().with_name(path.resolve().name + SUFFIX).exists()]
    found = list(dict.fromkeys([*bound, *beside]))
    if not found:
        raise UsageError("no text is bound yet", where=str(known.root), hint="muster docs bind FILE")
    return found


# -- what is shown


def _ask(about: Ambiguous) -> int | None:
    print(f"\nline {about.spot.line}: {paint(safe_line(about.spot.text), 'bold')}: {about.why}")
    print(f"    {safe_line(about.around)}")
    for number, name in enumerate(about.candidates, 1):
        print(f"    {number}  {name}")
    while True:
        try:
            said = input(f"which one? [1-{len(about.candidates)}, Enter: none of them] ").strip()
        except EOFError:
            print()
            return None
        if not said:
            return None
        if said.isdecimal() and 1 <= int(said) <= len(about.candidates):
            return int(said) - 1


def _bound_lines(bound: Bound, folder: Path, *, dry_run: bool) -> Iterator[str]:
    new = sum(not each.old for each in bound.fixed)
    parts = [
        f"{counted(len(bound.fixed), 'number')} bound" + (f", {new} of them new" if new < len(bound.fixed) else "")
    ]
    parts += [f"{len(bound.ambiguous)} ambiguous"] if bound.ambiguous else []
    parts += [f"{len(bound.untraced)} not traced"] if bound.untraced else []
    yield paint(f"{bound.path}: {', '.join(parts)}", "bold")
    yield from _limited([_fixed_line(each) for each in bound.fixed])
    for each in bound.lost:
        yield f"  {paint('lost', 'red')} {safe_line(each.spot.text)}, which stood in line {each.spot.line}: {each.why}"
    yield from _limited([line for each in bound.ambiguous for line in _ambiguous_lines(each)])
    untraced = [f"line {each.spot.line}: {safe_line(each.spot.text)}: {each.why}" for each in bound.untraced]
    yield from _limited([f"  {paint('not traced', 'dim')} {line}" for line in untraced])
    if dry_run:
        yield "nothing was written (--dry-run)"
    elif bound.written:
        following = from_here(folder, "docs update", bound.path)
        yield f"kept in {bound.sidecar}; the text is untouched. Next: {following}"


def _fixed_line(each: Fixed) -> str:
    told = {"now": "", "earlier": ", as it was with fewer seeds", "": ", the value differs"}[each.now]
    note = f" ({each.binding.note})" if each.binding.note else ""
    keys = " and ".join(each.binding.keys)
    bound = f"  line {each.spot.line}: {safe_line(each.spot.text)}  {paint(keys, 'green')}"
    return f"{bound}  by {each.binding.by}{told}{note}"


def _ambiguous_lines(each: Ambiguous) -> Iterator[str]:
    yield f"  {paint('ambiguous', 'yellow')} line {each.spot.line}: {safe_line(each.spot.text)}: {each.why}"
    yield from (f"      {name}" for name in each.candidates)


def _updated_lines(updated: Updated, *, dry_run: bool) -> Iterator[str]:
    for line in updated.diff:
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        yield paint(safe_line(line), colour) if colour else safe_line(line)
    verb = "would change" if dry_run else "changed"
    yield f"{updated.path}: {counted(len(updated.changes), 'number')} {verb}, {updated.unchanged} as they were"
    if updated.kept:
        yield f"the old version: {updated.kept}"
    told = [f"line {each.spot.line}: {safe_line(each.spot.text)}: {each.why}" for each in updated.left]
    yield from _limited([f"  {paint('look at', 'yellow')} {line}" for line in told])


def _audited_lines(audited: Audited) -> Iterator[str]:
    for spot, each in audited.findings:
        if each.state == "agrees":
            continue
        should = f", now {each.should}" if each.should else ""
        keys = f" {' and '.join(each.keys)}" if each.keys else ""
        because = f": {each.because}" if each.because else ""
        state = paint(each.state, COLOURS[each.state])
        yield f"line {spot.line}: {safe_line(spot.text)} {state}{should}{keys}{because}"
    if bare := audited.unlabelled:
        yield f"line {bare.spot.line}: {safe_line(bare.spot.text)} {paint('unlabelled', 'yellow')}: {bare.why}"
    told = [f"{count} {WORDS[state]}" for state, count in audited.counts.items() if count]
    yield paint(f"{audited.path}: {', '.join(told) or 'no number that could stem from results'}", "bold")


def _limited(lines: Sequence[str]) -> Iterator[str]:
    yield from lines[:LISTED]
    if len(lines) > LISTED:
        yield f"  and {len(lines) - LISTED} more; --json lists them all"
