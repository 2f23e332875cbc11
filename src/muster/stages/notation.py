"""Reads the short notations of command lines: pieces with their places, numbers that say what is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from muster.stages.errors import Problem, SpecError, clipped

MOST = 10**9  # iterations: beyond that a number is a slip of the hand


class Piece(NamedTuple):
    text: str
    at: int  # its place in the whole


def pieces(text: str, separator: str, start: int = 0) -> Iterator[Piece]:
    """The parts between separators, without the blanks around them."""
    at = start
    for part in text.split(separator):
        yield _bare(part, at)
        at += len(part) + len(separator)


def _bare(part: str, at: int) -> Piece:
    """Without the blanks around it; where there is nothing else, its place is that of what follows."""
    return Piece(part.strip(), at + len(part) - len(part.lstrip()))


class Reader:
    """Collects what is wrong with one text, so that all of it can be told at once."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.problems: list[Problem] = []

    def wrong(self, what: str, at: int, hint: str = "") -> None:
        self.problems.append(Problem(what, self.text, min(at, max(len(self.text) - 1, 0)), hint))

    def done(self) -> None:
        if self.problems:
            raise SpecError(self.name, self.problems)

    def parts(self, separator: str, example: str) -> list[Piece]:
        """Not one of them empty; a separator at the very end is let pass."""
        if not self.text.strip():
            raise SpecError(self.name, [Problem("it is empty", hint=f"write it as in {example}")])
        found = list(pieces(self.text, separator))
        if len(found) > 1 and not found[-1].text:
            found.pop()
        for each in found:
            if not each.text:
                self.wrong(f"there is nothing before this '{separator}'", each.at, "take it out")
        return [each for each in found if each.text]

    def pair(self, piece: Piece, form: str) -> tuple[Piece, Piece] | None:
        """What stands before and behind the first colon."""
        left, colon, right = piece.text.partition(":")
        if not colon:
            self.wrong(f"'{clipped(piece.text)}' has no ':'", piece.at, f"write {form}")
            return None
        behind = piece.at + len(left) + 1
        one, other = _bare(left, piece.at), _bare(right, behind)
        if not one.text or not other.text:
            side = "before" if not one.text else "behind"
            self.wrong(f"there is nothing {side} the ':'", piece.at + len(left), f"write {form}")
            return None
        return one, other

    def count(self, piece: Piece, of: str, least: int = 1) -> int | None:
        """A whole number, at least so many."""
        text = piece.text
        try:
            number = int(text) if text.isascii() and "_" not in text else None
        except ValueError:
            number = None
        if number is None:
            self.wrong(f"'{clipped(text)}' is no whole number of {of}", piece.at, _whole_hint(text))
        elif not least <= number <= MOST:
            which = "negative" if number < 0 else "zero" if number == 0 else "too many"
            self.wrong(f"{clipped(text)} {of} is {which}", piece.at, f"write a whole number from {least} to {MOST}")
            number = None
        return number

    def number(self, piece: Piece) -> int | float | None:
        found = number_of(piece.text)
        if found is None:
            self.wrong(f"'{clipped(piece.text)}' is no finite number", piece.at)
        return found


def number_of(text: str) -> int | float | None:
    """As it is written: 9 stays a whole number. None: it is no finite number."""
    if not text.isascii() or "_" in text:
        return None
    try:
        found = float(text)
    except ValueError:
        return None
    if not math.isfinite(found):
        return None
    try:
        return int(text)
    except ValueError:
        return found


def _whole_hint(text: str) -> str:
    found = number_of(text)
    return f"write {int(found)}" if found is not None and found == int(found) and abs(found) <= MOST else ""
