"""What a command writes to a terminal: colours, columns, short lists, JSON, mistakes of a campaign file with their
place, the bar of commands that take long. Text from elsewhere is cleaned on the way.

stdout and stderr are wrapped once, in `entrypoint`, so no command has to think of it. Own codes carry a word that is
drawn anew in each process; a run can't know it, so it can't colour, move the cursor or rename the window.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from muster.files.known_secrets import mask_secrets_in_json, mask_secrets_in_output
from muster.model.errors import Mistake
from muster.text.phrases import phrase
from muster.text.sentences import join_few_names
from muster.text.terminal_text import escape_terminal_json, escape_terminal_line, escape_terminal_text

if TYPE_CHECKING:
    from rich.console import Console

    from muster.app.campaign.cell_definitions import DefinitionChanges
    from muster.app.campaign.preflight.python_environments import PythonEnvironment
    from muster.app.facts.gather_facts import ProgressStep

_WORD = os.urandom(12).hex()
_MARK = f"\033<{_WORD}"


class CleanedStream:
    """A text stream in front of another; everything but writing is the other's."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(clean_for_terminal(mask_secrets_in_output(text)))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def __enter__(self) -> CleanedStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.flush()


@contextlib.contextmanager
def cleaned_streams() -> Iterator[None]:
    """Until its end all that is printed is cleaned, by whatever code of this process."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_clean_stream(stream) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


@contextlib.contextmanager
def plain_streams() -> Iterator[None]:
    """For a printer with codes of its own and no text but ours: the help."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = uncleaned_stream(sys.stdout), uncleaned_stream(sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def terminal_code(code: str) -> str:
    """A code of Muster's own, put into text that is printed."""
    return (
        f"{_MARK}{code}>"
        if isinstance(sys.stdout, CleanedStream) or isinstance(sys.stderr, CleanedStream)
        else f"\033[{code}"
    )


def clear_line() -> str:
    return terminal_code("G") + terminal_code("K")


def clear_screen() -> str:
    return terminal_code("H") + terminal_code("2J")


def clean_for_terminal(text: str) -> str:
    """As it gets to the screen. Only what is drawn past `print` needs it: a live view."""
    if _WORD not in text:
        return escape_terminal_text(text)
    parts = re.split(rf"{_MARK}([0-9;]*[A-Za-z])>", text)
    return "".join(f"\033[{part}" if at % 2 else escape_terminal_text(part) for at, part in enumerate(parts))


def uncleaned_stream(stream: TextIO) -> TextIO:
    """Past the cleaning: for a library that draws, with text that was cleaned by `as_printed`."""
    return stream.stream if isinstance(stream, CleanedStream) else stream


def rich_console(stream: TextIO) -> Console:
    from rich.console import Console

    return Console(file=uncleaned_stream(stream))


def without_cleaning(printer: Callable[..., Any]) -> Callable[..., Any]:
    def printing(*arguments: Any, **named: Any) -> Any:
        with plain_streams():
            return printer(*arguments, **named)

    return printing


def _clean_stream(stream: TextIO) -> Any:
    return stream if isinstance(stream, CleanedStream) else CleanedStream(stream)


COLOUR_CODES = {
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "dim": "2",
    "bold": "1",
}


def paint_text(text: str, colour: str, *, stream: TextIO | None = None) -> str:
    painted = colour and uses_colour(stream or sys.stdout)
    return f"{terminal_code(COLOUR_CODES[colour] + 'm')}{text}{terminal_code('0m')}" if painted else text


def uses_colour(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return _real_stream(stream).isatty() and os.environ.get("TERM") != "dumb"


def is_utf8_stream(stream: TextIO | None = None) -> bool:
    encoding = getattr(_real_stream(stream or sys.stdout), "encoding", None) or ""
    return encoding.lower().replace("-", "") == "utf8"


def _real_stream(stream: TextIO) -> TextIO:
    """While rich draws, stdout is a stand-in that knows neither its encoding nor its terminal."""
    stands_in = stream is sys.stdout and getattr(stream, "encoding", None) is None
    return (sys.__stdout__ or stream) if stands_in else stream


LEVEL_LABELS = {
    "error": "cli.label_error",
    "failure": "cli.label_failure",
    "warning": "cli.label_warning",
    "note": "cli.label_note",
}


def print_mistakes(file: str, mistakes: Sequence[Mistake]) -> None:
    for mistake in mistakes:
        place = f"{file}:{mistake.line}:{mistake.column}" if mistake.line else file
        colour = {"warning": "yellow", "note": "dim"}.get(mistake.level, "red")
        word = paint_text(phrase(LEVEL_LABELS[mistake.level]), colour, stream=sys.stderr)
        print(f"{place}: {word} {mistake.message}", file=sys.stderr)
        if mistake.hint:
            print(f"    {phrase('cli.label_fix')} {mistake.hint}", file=sys.stderr)
    errors = sum(mistake.level == "error" for mistake in mistakes)
    if errors:
        print(phrase("cli.mistakes_nothing_changed", n=errors), file=sys.stderr)


def print_notice(line: str) -> None:
    """What a person should know beside the answer."""
    print(line, file=sys.stderr, flush=True)


def print_refusals(refused: Mapping[str, str], label: str) -> None:
    """`refused`: cell -> why; `label`: the code of what was not done with it."""
    for cell, why in refused.items():
        print(f"{cell}: {paint_text(phrase(label), 'yellow')}: {why}")


def print_asked_environment(each: PythonEnvironment) -> None:
    """A framework may take a minute to import; a person should know what is waited for."""
    if sys.stderr.isatty():
        asking = phrase("cli.asking_what_it_sees", python=each.name)
        print(paint_text(asking, "dim", stream=sys.stderr), file=sys.stderr)


NARROWEST = 20


def display_width(text: str) -> int:
    """Columns on a terminal, as `padded` writes it: a Chinese character takes two."""
    text = escape_terminal_line(text)
    if text.isascii() or not is_utf8_stream():
        return len(text)
    import unicodedata

    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)


def screen_columns() -> int:
    """As shutil.get_terminal_size tells it, less the milliseconds of importing that."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked) > 0:
        return max(NARROWEST, int(asked))
    try:
        return max(NARROWEST, os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ else 1).columns)
    except (OSError, ValueError):
        return 80


def pad_name(text: str, columns: int) -> str:
    """A name in a table; it stays in its row."""
    return escape_terminal_line(text) + " " * (columns - display_width(text))


def pad_label(text: str, columns: int) -> str:
    """What stands before a value: at least a space between them, however long it is in another language."""
    return pad_name(text, max(columns, display_width(text) + 1))


def format_table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The first row is its head. Columns line up, however wide their characters are."""
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        line = "  ".join(pad_name(text, most) for text, most in zip(row, widths, strict=True)).rstrip()
        yield "  " + (paint_text(line, "dim") if number == 0 else line)


EVIDENCE_HEAD = ("cli.head_signal", "cli.head_class", "cli.head_reading", "cli.head_age", "cli.head_says")


EVIDENCE_WORDS = {  # of its classes, and of what it says
    "life": "cli.word_life",
    "progress": "cli.word_progress",
    "activity": "cli.word_activity",
    "exit": "cli.word_exit",
    "proof": "cli.word_proof",
    "decision": "cli.word_decision",
    "alive": "cli.word_alive",
    "gone": "cli.word_gone",
    "stopped": "cli.word_stopped",
    "ended": "cli.word_ended",
    "lost": "cli.word_lost",
    "nobody": "cli.word_nobody",
    "holds": "cli.word_holds",
    "fails": "cli.word_fails",
    "abstains": "cli.word_abstains",
    "advances": "cli.word_advances",
    "overdue": "cli.word_overdue",
    "silent": "cli.word_silent",
    "idle": "cli.word_idle",
    "busy": "cli.word_busy",
    "can't be read": "cli.word_unreadable",
    "belongs to it": "cli.word_belongs",
}


def format_evidence_table(rows: Iterable[tuple[str, str, str, str, str]]) -> Iterator[str]:
    """Of each reading: its signal, class, text, age, and what it says."""
    shown = ((signal, _say_word(kind), text, age, _say_word(says)) for signal, kind, text, age, says in rows)
    return format_table([tuple(map(phrase, EVIDENCE_HEAD)), *shown])


def _say_word(word: str) -> str:
    return phrase(EVIDENCE_WORDS[word]) if word in EVIDENCE_WORDS else word


def section_title(code: str) -> str:
    return "\n" + paint_text(phrase(code), "bold")


def cut_to_width(text: str, columns: int) -> str:
    if display_width(text) <= columns:
        return text
    while display_width(text) > columns - 1:
        text = text[:-1]
    return text + ("…" if is_utf8_stream() else "~")


def print_json(value: Any, stream: TextIO | None = None, indent: int | None = None) -> None:
    """One object, which is JSON in any locale, whatever its texts hold."""
    stream = stream or sys.stdout
    text = json.dumps(value, ensure_ascii=not is_utf8_stream(stream), indent=indent)
    if (own := uncleaned_stream(stream)) is not stream:
        text = mask_secrets_in_json(text)
    own.write(escape_terminal_json(text) + "\n")


def format_change_lines(what: DefinitionChanges) -> Iterator[str]:
    """Which cells an edited campaign file changes, and that finished ones are kept."""
    if what.released:
        yield phrase("cli.released_since_file_changed")
    for code, cells in (
        ("cli.cells_new", what.new),
        ("cli.cells_no_longer_declared", what.gone),
        ("cli.cells_changed", what.changed),
        ("cli.done_cells_changed", what.changed_done),
        ("cli.cells_now_proven", what.proven),
        ("cli.cells_no_longer_proven", what.unproven),
    ):
        if cells:
            yield phrase(code, n=len(cells), cells=join_few_names(cells))
    if what.changed_done:
        yield phrase("cli.redo_runs_them_again")


def resolve_parent(path: Path) -> Path:
    """Absolute, with its folder as it is really called; a link at its end stays one."""
    return path.parent.resolve() / path.name if path.name else path.resolve()


def command_from_here(folder: Path, verb: str, path: Path) -> str:
    """A command on a file that works from where the person stands; `folder`: that of -C, from which paths count."""
    import shlex

    there = folder.resolve()
    into = "" if there == Path.cwd() else f"-C {shlex.quote(str(folder))} "
    return f"muster {into}{verb} {shlex.quote(os.path.relpath(path.resolve(), there))}"


def find_muster_command() -> str:
    """`muster`, where that is the one that was called; else what was called."""
    import shlex
    import shutil

    called, found = Path(sys.argv[0]), shutil.which("muster")
    if called.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -P -m muster"
    same = found is not None and called.exists() and Path(found).samefile(called)
    return "muster" if same or not called.exists() else shlex.quote(str(called))


@contextmanager
def show_progress_bar(quiet: bool) -> Iterator[ProgressStep]:
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
                tasks[what] = bar.add_task(clean_for_terminal(what), total=of or None)
            bar.update(tasks[what], completed=done)

        yield step
