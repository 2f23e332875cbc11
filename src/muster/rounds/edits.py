"""One edit of a config: `PATH@set=V`, `@mul=F`, `@add=F`, with bounds: `PATH@mul=1.5@max=10`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from muster.rounds.config import is_too_deep
from muster.rounds.paths import PathError, Pattern, parse_path

VERBS = ("set", "mul", "add")
BOUNDS = ("min", "max")
LARGEST = "the largest is about 1.8e308"
EXAMPLE = "for example: model.lr@mul=0.5, layers[0].width@set=64, window@mul=1.5@max=10"
_MARKS = re.compile(rf"@({'|'.join((*VERBS, *BOUNDS))})=")
_QUOTED = re.compile(r'\["(?:[^"\\]|\\.)*"\]')
_NUMBER = re.compile(r"\s*[+-]?(?:[0-9]{1,400}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?\s*")
_DIGITS = re.compile(r"\s*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*")
_WHOLE = re.compile(r"\s*[+-]?[0-9]+\s*")


class EditError(ValueError):
    """An edit that can't be read or carried out; the message says why."""


@dataclass(frozen=True, slots=True)
class Edit:
    text: str
    path: Pattern
    verb: str  # set | mul | add
    value: Any
    raw: str  # the value as it is written
    least: float | None = None
    most: float | None = None


def parse_edit(text: str) -> Edit:
    marks = _marks(text)
    if not marks or marks[0][1] not in VERBS:
        raise EditError(f"{text!r} is no edit: {_why_none(text)}; {EXAMPLE}")
    try:
        path = parse_path(text[: marks[0].start()])
    except PathError as error:
        raise EditError(f"{error}; {EXAMPLE}") from None
    verb = marks[0][1]
    if verb != "set" and any(found[1] in VERBS for found in marks[1:]):
        raise EditError(f"{text!r} is no edit: it asks for two changes; give each of them an edit of its own")
    bounds = _trailing_bounds(text, marks)
    raw = text[marks[0].end() : bounds[0].start() if bounds else len(text)]
    value = _any_value(raw, text) if verb == "set" else _number(raw, text, f"@{verb}")
    limits = _limits(text, bounds)
    return Edit(text, path, verb, value, raw, limits.get("min"), limits.get("max"))


def _marks(text: str) -> list[re.Match[str]]:
    """`@set=` and its like; a key in quotes may hold whatever it likes."""
    marks = list(_MARKS.finditer(text))
    quoted = [found.span() for found in _QUOTED.finditer(text)]
    while marks and any(start < marks[0].start() < end for start, end in quoted):
        marks.pop(0)
    return marks


def _why_none(text: str) -> str:
    named = re.search(r"@([A-Za-z]*)(=?)", text)
    if named and named[1] in BOUNDS:
        return f"@{named[1]} bounds a change, and there is none before it"
    if named and named[1] in VERBS:
        return f"@{named[1]} needs a value: @{named[1]}=..."
    if named and named[1]:
        return f"there is no @{named[1]}; it is @set=, @mul= or @add="
    return "it says no @set=, @mul= or @add="


def _trailing_bounds(text: str, marks: list[re.Match[str]]) -> list[re.Match[str]]:
    """The bounds at the end. A text that is set may hold whatever else."""
    bounds: list[re.Match[str]] = []
    for found in reversed(marks[1:]):
        stop = bounds[0].start() if bounds else len(text)
        if found[1] not in BOUNDS or (marks[0][1] == "set" and not _is_number(text[found.end() : stop])):
            break
        bounds.insert(0, found)
    return bounds


def _limits(text: str, bounds: list[re.Match[str]]) -> dict[str, float]:
    limits: dict[str, float] = {}
    for at, found in enumerate(bounds):
        stop = bounds[at + 1].start() if at + 1 < len(bounds) else len(text)
        if found[1] in limits:
            raise EditError(f"{text!r} is no edit: @{found[1]} is given twice; keep one")
        limits[found[1]] = _number(text[found.end() : stop], text, f"@{found[1]}")
    if limits and limits.get("min", limits.get("max", 0)) > limits.get("max", limits.get("min", 0)):
        least, most = limits["min"], limits["max"]
        raise EditError(f"{text!r} is no edit: @min={least:g} is above @max={most:g}; exchange them")
    return limits


def _is_number(raw: str) -> bool:
    return bool(_NUMBER.fullmatch(raw)) and abs(float(raw)) != float("inf")


def too_large(raw: str) -> bool:
    """Whether it is written as a number, and none can hold it."""
    return bool(_DIGITS.fullmatch(raw)) and abs(float(raw)) == float("inf")


def _number(raw: str, text: str, mark: str) -> float:
    if too_large(raw):
        raise EditError(f"{text!r} is no edit: {mark}={raw.strip()} is too large for a number; {LARGEST}")
    if not _is_number(raw):
        raise EditError(f"{text!r} is no edit: {mark} needs a number, not {raw!r}; {EXAMPLE}")
    return int(raw) if _WHOLE.fullmatch(raw) else float(raw)


def _any_value(raw: str, text: str) -> Any:
    """As JSON where it is JSON, `.5` and `+3` too; else the text itself."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return float(raw) if _is_number(raw) else raw
    if is_too_deep(value):
        raise EditError(f"{text[:60]!r}... is no edit: its value is nested too deeply")
    return value
