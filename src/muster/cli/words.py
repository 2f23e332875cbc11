"""Small things that many commands say: counts, a few of many names, columns that line up, one JSON object."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from muster.cli.paint import utf8
from muster.cli.terminal import own_stream
from muster.domain import wording
from muster.domain.terminal_text import safe_json, safe_line
from muster.ports.known_secrets import mask_json

if TYPE_CHECKING:
    from muster.acts.take_in import Changes

NAMED = 8
NARROWEST = 20
counted = wording.counted


def few(names: Sequence[str], most: int = NAMED) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def width(text: str) -> int:
    """Columns on a terminal, as `padded` writes it: a Chinese character takes two."""
    text = safe_line(text)
    if text.isascii() or not utf8():
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


def padded(text: str, columns: int) -> str:
    """A name in a table; it stays in its row."""
    return safe_line(text) + " " * (columns - width(text))


def cut(text: str, columns: int) -> str:
    if width(text) <= columns:
        return text
    while width(text) > columns - 1:
        text = text[:-1]
    return text + ("…" if utf8() else "~")


def say_json(value: Any, stream: TextIO | None = None, indent: int | None = None) -> None:
    """One object, which is JSON in any locale, whatever its texts hold."""
    stream = stream or sys.stdout
    text = json.dumps(value, ensure_ascii=not utf8(stream), indent=indent)
    if (own := own_stream(stream)) is not stream:
        text = mask_json(text)
    own.write(safe_json(text) + "\n")


def change_lines(what: Changes) -> Iterator[str]:
    """Which cells an edited campaign file changes, and that finished ones are kept."""
    if what.released:
        yield "released: campaign.yaml was changed since the campaign was held"
    for cells, one, many in (
        (what.new, "new cell", "new cells"),
        (what.gone, "cell that is no longer declared (its attempts are kept)",
         "cells that are no longer declared (their attempts are kept)"),
        (what.changed, "cell whose definition changed", "cells whose definition changed"),
        (what.changed_done, "DONE cell whose definition changed (kept, with its old hash)",
         "DONE cells whose definition changed (kept, with their old hash)"),
        (what.proven, "cell whose proof holds now that it was read again: it is DONE, and nothing was run",
         "cells whose proof holds now that it was read again: they are DONE, and nothing was run"),
        (what.unproven, "cell whose proof was read again and does not hold (`muster why` says what is missing)",
         "cells whose proof was read again and does not hold (`muster why` says what is missing)"),
    ):  # fmt: skip
        if cells:
            yield f"{len(cells)} {one if len(cells) == 1 else many}: {few(cells)}"
    if what.changed_done:
        yield "`muster redo --outdated --because ...` runs them again"


def placed(path: Path) -> Path:
    """Absolute, with its folder as it is really called; a link at its end stays one."""
    return path.parent.resolve() / path.name if path.name else path.resolve()


def from_here(folder: Path, verb: str, path: Path) -> str:
    """A command on a file that works from where the person stands; `folder`: that of -C, from which paths count."""
    import shlex

    there = folder.resolve()
    into = "" if there == Path.cwd() else f"-C {shlex.quote(str(folder))} "
    return f"muster {into}{verb} {shlex.quote(os.path.relpath(path.resolve(), there))}"


def command_that_works() -> str:
    """`muster`, where that is the one that was called; else what was called."""
    import shlex
    import shutil

    called, found = Path(sys.argv[0]), shutil.which("muster")
    if called.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -P -m muster"
    same = found is not None and called.exists() and Path(found).samefile(called)
    return "muster" if same or not called.exists() else shlex.quote(str(called))
