"""muster report"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from muster.acts.report import as_json
from muster.cli.app import open_folder
from muster.cli.paint import paint
from muster.cli.terminal import as_printed, rich_console
from muster.cli.words import counted, from_here, say_json
from muster.report.facts import Missing
from muster.report.flag_words import by_level, flag_standing, flag_text
from muster.report.next_words import loss_statements
from muster.report.table import table_rows_json
from muster.report.verdict import verdict_sentence
from muster.report.words import Words
from muster.stats.flags import Flag
from muster.wiring.desk import Desk
from muster.wiring.publishing import Report, make
from muster.wiring.reporting import Step

app = typer.Typer(add_completion=False)
COLOURS = {"RECOMMEND": "green", "EQUIVALENT": "cyan", "KEEP_BASELINE": "cyan", "INVALID": "red"}
NAMED = 12
WAYS = {  # to what is missing, by its state; what was excluded or given up has a sentence of its own
    "PENDING": "`muster up` runs what is missing",
    "DEAD": "`muster why CELL` says what a dead one needs",
}


@app.command("report", epilog="Example:  muster report --partial --json | jq .verdict")
def report(
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
    desk = Desk.open(open_folder(ctx))
    desk.refuse_stranger()
    with progress(as_json_) as step:
        made = make(desk, partial=partial, step=step)
    if as_json_:
        say_json(_json(made))
    else:
        for line in lines(made, desk.root, open_folder(ctx)):
            print(line)
    return exit_code(made, exit_zero=exit_zero)


def exit_code(made: Report, *, exit_zero: bool) -> int:
    """3 where these numbers may not be used as they are; `exit_zero` asks for the whole matrix only."""
    invalid = made.analysis.decision.verdict == "INVALID" and not exit_zero
    return 3 if made.analysis.facts.partial or invalid else 0


def _json(made: Report) -> dict[str, Any]:
    documents = made.documents
    told = {
        "updated": list(documents.updated) if documents else [],
        "unbound": list(documents.unbound) if documents else [],
        "refused": [{"path": path, "because": why} for path, why in documents.refused] if documents else [],
    }
    files = made.kept.written if made.kept else ()
    return as_json(made.analysis, verdict_sentence(made.analysis), table_rows_json(made.analysis), files, told)


def lines(made: Report, root: Path, folder: Path) -> Iterator[str]:
    analysis, facts = made.analysis, made.analysis.facts
    verdict = analysis.decision.verdict
    mark = f" ({facts.mark})" if facts.mark and made.kept else ""
    yield verdict_sentence(analysis).replace(verdict, f"{paint(verdict, COLOURS.get(verdict, 'yellow'))}{mark}", 1)
    if facts.missing:
        yield from _missing(facts.missing)
    for flag in by_level(analysis.flags):
        yield f"  {flag_line(flag, facts.language)}"
    if not facts.missing and any(flag.acceptable for flag in analysis.errors):
        yield "  looked into, and sound? `muster flag accept CODE --because TEXT`, which every report then tells"
    if made.kept is None:
        yield from (each.text for each in loss_statements(analysis, Words(facts.language)))
        ways = "".join(f"{way}, " for state, way in WAYS.items() if any(each.state == state for each in facts.missing))
        yield f"nothing was written; {ways}`muster report --partial` stamps all PARTIAL"
        return
    yield ""
    yield f"{counted(len(made.kept.written), 'file')} in {root}, each with its stamp:"
    yield from (f"  {path}" for path in _grouped(made.kept.written))
    yield from (f"  removed: {path} (an earlier report's)" for path in made.kept.removed)
    yield from (f"  left alone: {path} was changed by somebody" for path in made.kept.left)
    if made.documents:
        yield from (f"  numbers updated: {path}" for path in made.documents.updated)
        for path in made.documents.unbound:
            yield f"  not bound, left alone: {path}; `{from_here(folder, 'docs bind', root / path)}`"
        yield from (f"  {paint('not updated', 'yellow')}: {path}: {why}" for path, why in made.documents.refused)


def flag_line(flag: Flag, language: str) -> str:
    level = paint(flag.level, "red" if flag.voids else "yellow")
    standing = flag_standing(flag, language)
    return f"{level} {flag.code}: {flag_text(flag, language)}" + (f" ({standing.rstrip('.。')})" if standing else "")


def _missing(missing: Sequence[Missing]) -> Iterator[str]:
    yield f"{counted(len(missing))} missing:"
    for each in missing[:NAMED]:
        yield f"  {each.state:<8} {each.cell}: {each.reason}"
    if len(missing) > NAMED:
        yield f"  and {len(missing) - NAMED} more; `muster status` names them all"


def _grouped(paths: Sequence[str]) -> Iterator[str]:
    """main.{csv,md,tex}: one line for what differs in its ending only."""
    groups: dict[str, list[str]] = {}
    for path in paths:
        stem, _, suffix = path.rpartition(".")
        groups.setdefault(stem, []).append(suffix)
    for stem, suffixes in groups.items():
        yield f"{stem}.{suffixes[0]}" if len(suffixes) == 1 else f"{stem}.{{{','.join(suffixes)}}}"


@contextmanager
def progress(quiet: bool) -> Iterator[Step]:
    """A bar on a terminal; nothing in a pipe."""
    if quiet or not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.progress import Progress

    console = rich_console(sys.stderr)
    with Progress(console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as bar:
        tasks: dict[str, Any] = {}

        def step(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(as_printed(what), total=of or None)
            bar.update(tasks[what], completed=done)

        yield step
