"""The one way to a screen: what a command prints is cleaned as it is written, and Muster's own codes alone get through.

stdout and stderr are wrapped once, in `leave`, so no command has to think of it. Own codes carry a word that is drawn
anew in each process; a run can't know it, so it can't colour, move the cursor or rename the window.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TextIO

from muster.domain.terminal_text import safe_text
from muster.ports.known_secrets import mask_output

if TYPE_CHECKING:
    from rich.console import Console

_WORD = os.urandom(12).hex()
_MARK = f"\033<{_WORD}"


class Cleaned:
    """A text stream in front of another; everything but writing is the other's."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(as_printed(mask_output(text)))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def __enter__(self) -> Cleaned:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.flush()


@contextlib.contextmanager
def cleaned_streams() -> Iterator[None]:
    """Until its end all that is printed is cleaned, by whatever code of this process."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_cleaned(stream) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


@contextlib.contextmanager
def plain_streams() -> Iterator[None]:
    """For a printer with codes of its own and no text but ours: the help."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = own_stream(sys.stdout), own_stream(sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def own_code(code: str) -> str:
    """A code of Muster's own, put into text that is printed."""
    return f"{_MARK}{code}>" if isinstance(sys.stdout, Cleaned) or isinstance(sys.stderr, Cleaned) else f"\033[{code}"


def clear_line() -> str:
    return own_code("G") + own_code("K")


def clear_screen() -> str:
    return own_code("H") + own_code("2J")


def as_printed(text: str) -> str:
    """As it gets to the screen. Only what is drawn past `print` needs it: a live view."""
    if _WORD not in text:
        return safe_text(text)
    parts = re.split(rf"{_MARK}([0-9;]*[A-Za-z])>", text)
    return "".join(f"\033[{part}" if at % 2 else safe_text(part) for at, part in enumerate(parts))


def own_stream(stream: TextIO) -> TextIO:
    """Past the cleaning: for a library that draws, with text that was cleaned by `as_printed`."""
    return stream.stream if isinstance(stream, Cleaned) else stream


def rich_console(stream: TextIO) -> Console:
    from rich.console import Console

    return Console(file=own_stream(stream))


def without_cleaning(printer: Callable[..., Any]) -> Callable[..., Any]:
    def printing(*arguments: Any, **named: Any) -> Any:
        with plain_streams():
            return printer(*arguments, **named)

    return printing


def _cleaned(stream: TextIO) -> Any:
    return stream if isinstance(stream, Cleaned) else Cleaned(stream)
