"""What is wrong with a written setting: every problem at once, each with its place in the text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

_WIDTH = 72  # of the part of a long text that is shown around a problem


class Problem(NamedTuple):
    what: str
    text: str = ""  # the text it is in; "": it is about a mapping
    at: int = 0  # the character that the caret points at, from 0
    hint: str = ""

    def lines(self) -> list[str]:
        shown = [self.what]
        if self.text:
            shown[0] = f"character {self.at + 1}: {self.what}"
            shown += _pointed(self.text, self.at)
        return [*shown, f"  mend: {self.hint}"] if self.hint else shown


class SpecError(ValueError):
    """A setting that can't be read. `problems` has all of them; the message shows each with a caret."""

    def __init__(self, name: str, problems: Iterable[Problem]) -> None:
        self.name = name  # of what was read: "curriculum"
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{name}: " + "\n".join(each.lines()) for each in self.problems))


class GateError(ValueError):
    """A gate that is used in a way that would falsify its streaks."""


def closest(name: str, known: Sequence[str]) -> str:
    """`did you mean 'x'?`, or what there is."""
    from difflib import get_close_matches  # only where something is wrong already

    near = get_close_matches(name, known, n=1)
    return f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}"


def clipped(text: str, most: int = 60) -> str:
    """On one line, and no longer than this: a slip of the hand may be long."""
    shown = "".join(sign if sign.isprintable() else " " for sign in text[:most])
    return shown + "..." if len(text) > most else shown


def _pointed(text: str, at: int) -> list[str]:
    first = max(0, min(at - _WIDTH // 2, len(text) - _WIDTH))
    lead, part = "..." if first else "", clipped(text[first:], _WIDTH)
    return [f"  {lead}{part}", "  " + " " * _columns(lead + part[: at - first]) + "^"]


def _columns(text: str) -> int:
    """How wide a terminal shows it: a Chinese character takes two columns, an accent of its own none."""
    from unicodedata import combining, east_asian_width  # only where something is wrong already

    return sum(0 if combining(sign) else 2 if east_asian_width(sign) in "WF" else 1 for sign in text)
