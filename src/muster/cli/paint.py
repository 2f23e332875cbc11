"""Colour that survives NO_COLOR and pipes, without the cost of importing a library for it."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from muster.cli.terminal import own_code

CODES = {
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "dim": "2",
    "bold": "1",
}


def paint(text: str, colour: str, *, stream: TextIO | None = None) -> str:
    painted = colour and coloured(stream or sys.stdout)
    return f"{own_code(CODES[colour] + 'm')}{text}{own_code('0m')}" if painted else text


def coloured(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return _real(stream).isatty() and os.environ.get("TERM") != "dumb"


def utf8(stream: TextIO | None = None) -> bool:
    encoding = getattr(_real(stream or sys.stdout), "encoding", None) or ""
    return encoding.lower().replace("-", "") == "utf8"


def _real(stream: TextIO) -> TextIO:
    """While rich draws, stdout is a stand-in that knows neither its encoding nor its terminal."""
    stands_in = stream is sys.stdout and getattr(stream, "encoding", None) is None
    return (sys.__stdout__ or stream) if stands_in else stream
