"""muster look"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from muster.acts.look import Look, logged_step
from muster.acts.look_json import as_json
from muster.acts.look_words import meaning
from muster.acts.masking import hidden_words
from muster.cli.app import open_folder
from muster.cli.durations import seconds, span
from muster.cli.grid import mark
from muster.cli.paint import paint
from muster.cli.terminal import clear_line
from muster.cli.why import cadence
from muster.cli.words import padded, say_json, width
from muster.domain.errors import UsageError
from muster.domain.look_facts import Asked
from muster.domain.terminal_text import safe_line
from muster.wiring.peeking import peek

app = typer.Typer(add_completion=False)
SHORTEST_S = 1.0
LONGEST_PID = 10  # digits
LONGEST_COMMAND = 160


@app.command("look", epilog="Example:  muster look 610925   or   muster look runs/20260223_v2_full_3 --for 30s")
def look(
    ctx: typer.Context,
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="PID|DIR...",
            help="A process, the folder that a run writes to, or both side by side: then they are one run.",
            show_default=False,
        ),
    ],
    for_: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="How long to look; a first look proves nothing.")
    ] = "6s",
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """The verdict and the evidence for a training that Muster did not start. Only looks; needs no campaign."""
    for_s = seconds(for_, "--for")
    if for_s < SHORTEST_S:
        raise UsageError(f"--for {for_}: too short, a first look proves nothing", hint="give it at least 1s")
    asked = runs_asked_for(targets, open_folder(ctx))
    counting = None if as_json_ or not sys.stderr.isatty() else _count_down
    looks = peek(asked, for_s, *((counting,) if counting else ()))
    if counting:
        sys.stderr.write(clear_line())
    if as_json_:
        objects = [_printable(as_json(each)) for each in looks]
        say_json(objects if len(objects) > 1 else objects[0])
    else:
        _show(looks)
    codes = {each.exit for each in looks}
    return 4 if 4 in codes else max(codes)


def _count_down(left: float) -> None:
    sys.stderr.write(f"{clear_line()}looking, {left:.0f} s more ...")
    sys.stderr.flush()


# -- what was asked for


def runs_asked_for(targets: Sequence[str], base: Path) -> list[Asked]:
    """A process and a folder side by side are one run."""
    found: list[Asked] = []
    rest = [_target(text, base) for text in targets]
    while rest:
        first = rest.pop(0)
        if rest and (first.pid is None) != (rest[0].pid is None):
            second = rest.pop(0)
            pid, folder = first.pid if first.pid is not None else second.pid, first.folder or second.folder
            first = Asked(f"{first.text} {second.text}", pid, folder)
        found.append(first)
    return found


def _target(text: str, base: Path) -> Asked:
    if not text.strip():
        raise UsageError("nothing was named: the target is empty", hint="give a process id, or the folder of a run")
    if text.isascii() and text.isdecimal():
        if int(text) == 0 or len(text) > LONGEST_PID:
            raise UsageError(f"{text} is no process id", hint=f"a folder of that name is ./{text}")
        return Asked(text, pid=int(text))
    path = base / text
    if not path.exists():
        raise UsageError(f"there is no folder {text}, and it is no process id either", hint=_near(path))
    if path.is_file():
        path = path.parent
    if path.resolve() == Path("/"):
        raise UsageError("/ is everything on this machine", hint="give the folder of one run, or a process id")
    if not path.is_dir():
        raise UsageError(f"{text} is neither a folder nor a file", hint="give the folder that the run writes to")
    return Asked(text, folder=str(path))


def _near(path: Path) -> str:
    try:
        names = [each.name for each in path.parent.iterdir() if each.is_dir()]
    except OSError:
        names = []
    near = difflib.get_close_matches(path.name, names, 1)
    return (
        f"did you mean {path.parent / near[0]}?" if near else "give a process id, or the folder that the run writes to"
    )


# -- what is shown


def _show(looks: Sequence[Look]) -> None:
    for number, each in enumerate(looks):
        if number:
            print()
        for line in lines(each):
            print(line)


def lines(look: Look) -> Iterator[str]:
    verdict, sight = look.verdict, look.sight
    kind = f"({verdict.kind})" if verdict.kind else f"({verdict.cause})" if verdict.cause else ""
    name = paint(safe_line(sight.asked.text), "bold")
    sure = f", {verdict.confidence}" if verdict.confidence != "unknown" else ""
    yield f"{mark(verdict.state)} {name} is {verdict.state}{kind}{sure}: {safe_line(verdict.reason)}"
    yield f"  {meaning(look)}"
    yield from _facts(look)
    yield _title("What to do")
    yield from (f"  {safe_line(text)}" for text in look.advice)
    yield _title("Evidence")
    yield from _table(look)
    if known := [rhythm for rhythm in verdict.rhythms if rhythm.silent_s is not None]:
        yield _title("Cadence")
        yield from (safe_line(f"  {rhythm.signal}: {cadence(rhythm)}") for rhythm in known)
    if verdict.lines:
        yield _title("The lines of its log that show it")
        yield from (f"  | {safe_line(line)}" for line in verdict.lines)
    for text in verdict.contributing:
        yield f"  also: {safe_line(text)}"


def _facts(look: Look) -> Iterator[str]:
    sight, who = look.sight, look.sight.who
    rows: list[tuple[str, str]] = []
    if who is not None and look.pid is not None:
        began = look.since[:19].replace("T", " ") if look.since else ""
        rows.append(("pid", f"{who.pid}, since {began} ({span(sight.boot - who.began)}): {_command(who.argv)}"))
    if sight.found.folder:
        rows.append(("output", sight.found.folder))
    if look.step is not None:
        target = sight.target
        goal = f" of {target.step:g} ({target.where})" if target else ""
        logged = logged_step(sight)
        if target and target.repeat and logged is not None:
            goal += f"; {logged:g} as logged, for {target.repeat.where} is {target.repeat.times:g}"
        rows.append(("step", f"{look.step:g}{goal}"))
    rows += [("note", text) for text in look.notes]
    yield from (f"  {label:<7}{safe_line(text)}" for label, text in rows)


def _command(argv: Sequence[str]) -> str:
    text = " ".join(" ".join(hidden_words(argv)).split())
    return text if len(text) <= LONGEST_COMMAND else text[: LONGEST_COMMAND - 3] + "..."


def _title(text: str) -> str:
    return "\n" + paint(text, "bold")


def _table(look: Look) -> Iterator[str]:
    boot = look.sight.boot
    rows = [("signal", "class", "reading", "age", "says")]
    for item in look.verdict.evidence:
        age = span(max(0.0, boot - item.boot)) if item.boot is not None else ""
        rows.append((safe_line(item.signal), item.kind, safe_line(item.reading), age, item.says))
    widths = [max(width(row[column]) for row in rows) for column in range(5)]
    for number, row in enumerate(rows):
        line = "  ".join(padded(text, most) for text, most in zip(row, widths, strict=True)).rstrip()
        yield "  " + (paint(line, "dim") if number == 0 else line)


# -- names of files and commands are whatever somebody made them


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {key: _printable(each) for key, each in value.items()}
    return [_printable(each) for each in value] if isinstance(value, list) else value
