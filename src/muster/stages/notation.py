"""Reads written settings: mappings and lists from YAML or JSON, and the short notations of command lines
(`ne:0.13,main:0.10`). All problems at once, each with its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

_WIDTH = 72  # of the part of a long text that is shown around a problem


class SettingProblem(NamedTuple):
    what: str
    text: str = ""  # the text it is in; "": it is about a mapping
    at: int = 0  # the character that the caret points at, from 0
    hint: str = ""

    def lines(self) -> list[str]:
        shown = [self.what]
        if self.text:
            shown[0] = f"character {self.at + 1}: {self.what}"
            shown += _lines_with_caret(self.text, self.at)
        return [*shown, f"  fix: {self.hint}"] if self.hint else shown


class SpecError(ValueError):
    """A setting that can't be read. `problems` has all of them; the message shows each with a caret."""

    def __init__(self, name: str, problems: Iterable[SettingProblem]) -> None:
        self.name = name  # of what was read: "curriculum"
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{name}: " + "\n".join(each.lines()) for each in self.problems))


class GateError(ValueError):
    """A gate that is used in a way that would falsify its streaks."""


def suggest_closest_name(name: str, known: Sequence[str]) -> str:
    """`did you mean 'x'?`, or what there is."""
    from difflib import get_close_matches  # only where something is wrong already

    near = get_close_matches(name, known, n=1)
    return f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}"


def clip_text(text: str, most: int = 60) -> str:
    """On one line, and no longer than this: a slip of the hand may be long."""
    shown = "".join(sign if sign.isprintable() else " " for sign in text[:most])
    return shown + "..." if len(text) > most else shown


def _lines_with_caret(text: str, at: int) -> list[str]:
    first = max(0, min(at - _WIDTH // 2, len(text) - _WIDTH))
    lead, part = "..." if first else "", clip_text(text[first:], _WIDTH)
    return [f"  {lead}{part}", "  " + " " * _terminal_columns(lead + part[: at - first]) + "^"]


def _terminal_columns(text: str) -> int:
    """How wide a terminal shows it: a Chinese character takes two columns, an accent of its own none."""
    from unicodedata import combining, east_asian_width  # only where something is wrong already

    return sum(0 if combining(sign) else 2 if east_asian_width(sign) in "WF" else 1 for sign in text)


LARGEST_COUNT = 10**9  # iterations: beyond that a number is a slip of the hand


class TextPiece(NamedTuple):
    text: str
    at: int  # its place in the whole


def split_pieces(text: str, separator: str, start: int = 0) -> Iterator[TextPiece]:
    """The parts between separators, without the blanks around them."""
    at = start
    for part in text.split(separator):
        yield _strip_piece(part, at)
        at += len(part) + len(separator)


def _strip_piece(part: str, at: int) -> TextPiece:
    """Without the blanks around it; where there is nothing else, its place is that of what follows."""
    return TextPiece(part.strip(), at + len(part) - len(part.lstrip()))


class NotationReader:
    """Collects what is wrong with one text, so that all of it can be told at once."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.problems: list[SettingProblem] = []

    def wrong(self, what: str, at: int, hint: str = "") -> None:
        self.problems.append(SettingProblem(what, self.text, min(at, max(len(self.text) - 1, 0)), hint))

    def done(self) -> None:
        if self.problems:
            raise SpecError(self.name, self.problems)

    def parts(self, separator: str, example: str) -> list[TextPiece]:
        """Not one of them empty; a separator at the very end is let pass."""
        if not self.text.strip():
            raise SpecError(self.name, [SettingProblem("it is empty", hint=f"write it as in {example}")])
        found = list(split_pieces(self.text, separator))
        if len(found) > 1 and not found[-1].text:
            found.pop()
        for each in found:
            if not each.text:
                self.wrong(f"there is nothing before this '{separator}'", each.at, "take it out")
        return [each for each in found if each.text]

    def pair(self, piece: TextPiece, form: str) -> tuple[TextPiece, TextPiece] | None:
        """What stands before and behind the first colon."""
        left, colon, right = piece.text.partition(":")
        if not colon:
            self.wrong(f"'{clip_text(piece.text)}' has no ':'", piece.at, f"write {form}")
            return None
        behind = piece.at + len(left) + 1
        one, other = _strip_piece(left, piece.at), _strip_piece(right, behind)
        if not one.text or not other.text:
            side = "before" if not one.text else "behind"
            self.wrong(f"there is nothing {side} the ':'", piece.at + len(left), f"write {form}")
            return None
        return one, other

    def count(self, piece: TextPiece, of: str, least: int = 1) -> int | None:
        """A whole number, at least so many."""
        text = piece.text
        try:
            number = int(text) if text.isascii() and "_" not in text else None
        except ValueError:
            number = None
        if number is None:
            self.wrong(f"'{clip_text(text)}' is no whole number of {of}", piece.at, _hint_whole_number(text))
        elif not least <= number <= LARGEST_COUNT:
            which = "negative" if number < 0 else "zero" if number == 0 else "too many"
            self.wrong(
                f"{clip_text(text)} {of} is {which}", piece.at, f"write a whole number from {least} to {LARGEST_COUNT}"
            )
            number = None
        return number

    def number(self, piece: TextPiece) -> int | float | None:
        found = parse_finite_number(piece.text)
        if found is None:
            self.wrong(f"'{clip_text(piece.text)}' is no finite number", piece.at)
        return found


def parse_finite_number(text: str) -> int | float | None:
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


def _hint_whole_number(text: str) -> str:
    found = parse_finite_number(text)
    return f"write {int(found)}" if found is not None and found == int(found) and abs(found) <= LARGEST_COUNT else ""


class SettingsForm:
    """Collects what is wrong with one setting."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.problems: list[SettingProblem] = []

    def wrong(self, where: str, what: str, hint: str = "") -> None:
        self.problems.append(SettingProblem(f"{where}: {what}" if where else what, hint=hint))

    def done(self) -> None:
        if self.problems:
            raise SpecError(self.name, self.problems)

    def known(self, where: str, entry: Mapping[str, Any], keys: Sequence[str]) -> None:
        for key in entry:
            if key not in keys:
                self.wrong(where, f"unknown key '{key}'", suggest_closest_name(str(key), keys))

    def mapping(self, where: str, value: object) -> Mapping[str, Any] | None:
        if isinstance(value, Mapping):
            return value
        self.wrong(where, f"expected a mapping, found {show_found_value(value)}")
        return None

    def number(self, where: str, entry: Mapping[str, Any], key: str, *, needed: bool = True) -> int | float | None:
        value = entry.get(key)
        if value is None:
            if needed:
                self.wrong(where, f"'{key}' is missing")
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite_setting(value):
            self.wrong(where, f"{key}: expected a finite number, found {show_found_value(value)}")
            return None
        return value

    def count(self, where: str, entry: Mapping[str, Any], key: str, least: int = 1) -> int | None:
        value = entry.get(key)
        if value is None:
            self.wrong(where, f"'{key}' is missing")
            return None
        return self.whole(f"{where}: {key}" if where else key, value, least)

    def whole(self, where: str, value: object, least: int = 0) -> int | None:
        if isinstance(value, bool) or not isinstance(value, int):
            self.wrong(where, f"expected a whole number, found {show_found_value(value)}")
        elif not least <= value <= LARGEST_COUNT:
            limit = f"least {least}" if value < least else f"most {LARGEST_COUNT}"
            self.wrong(where, f"must be at {limit}, found {show_found_value(value)}")
        else:
            return value
        return None

    def text(self, where: str, entry: Mapping[str, Any], key: str) -> str:
        value = entry.get(key)
        if value is None:
            self.wrong(where, f"'{key}' is missing")
        elif not isinstance(value, str) or not value.strip():
            self.wrong(where, f"{key}: expected text, found {show_found_value(value)}")
        else:
            return value
        return ""


def show_found_value(value: object) -> str:
    """As Python shows it; it refuses whole numbers of thousands of digits."""
    try:
        return clip_text(repr(value), 80)
    except ValueError:
        return "a number of thousands of digits"


def _is_finite_setting(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


def iterate_mapping_entries(
    form: SettingsForm, written: object, example: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The mappings of a list, each with its name for messages: `2nd` would be vaguer than `[1]`."""
    if not isinstance(written, Sequence) or isinstance(written, str | bytes) or not written:
        form.wrong("", f"expected a list of mappings such as [{example}], found {show_found_value(written)}")
        return
    for at, each in enumerate(written):
        entry = form.mapping(f"[{at}]", each)
        if entry is not None:
            yield f"[{at}]", entry


T = TypeVar("T", int, int | float)
OVERRIDE_EXAMPLE = "ne:0.13,main:0.10 (stage:value)"


def parse_numbers_by_stage(text: str) -> dict[str, int | float]:
    return _parse_overrides(text, NotationReader.number)


def parse_counts_by_stage(text: str, of: str = "evaluations", least: int = 0) -> dict[str, int]:
    return _parse_overrides(text, lambda reader, piece: reader.count(piece, of, least))


def format_overrides(values: Mapping[str, int | float]) -> str:
    return ",".join(f"{stage}:{value}" for stage, value in values.items())


def _parse_overrides(text: str, read: Callable[[NotationReader, TextPiece], T | None]) -> dict[str, T]:
    reader = NotationReader("override", text)
    found: dict[str, T] = {}
    for piece in reader.parts(",", OVERRIDE_EXAMPLE):
        pair = reader.pair(piece, "STAGE:VALUE")
        if pair is None:
            continue
        stage, value = pair[0].text, read(reader, pair[1])
        if stage in found:
            reader.wrong(f"the stage '{clip_text(stage)}' is there twice", piece.at, "keep one of them")
        elif value is not None:
            found[stage] = value
    reader.done()
    return found
