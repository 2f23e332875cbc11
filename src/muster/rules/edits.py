"""One edit of a config: `PATH@set=V`, `@mul=F`, `@add=F`, with bounds: `PATH@mul=1.5@max=10`. Types are kept: an
integer stays one, and says where it was rounded.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from muster.rules.config_paths import PathError, PathPattern, is_nested_too_deep, parse_config_path

EDIT_VERBS = ("set", "mul", "add")
EDIT_BOUNDS = ("min", "max")
LARGEST_NUMBER_HINT = "the largest is about 1.8e308"
EDIT_EXAMPLE = "for example: model.lr@mul=0.5, layers[0].width@set=64, window@mul=1.5@max=10"
_EDIT_MARK = re.compile(rf"@({'|'.join((*EDIT_VERBS, *EDIT_BOUNDS))})=")
_QUOTED = re.compile(r'\["(?:[^"\\]|\\.)*"\]')
_SAFE_NUMBER = re.compile(r"\s*[+-]?(?:[0-9]{1,400}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?\s*")
_DIGITS = re.compile(r"\s*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*")
_WHOLE = re.compile(r"\s*[+-]?[0-9]+\s*")


class EditError(ValueError):
    """An edit that can't be read or carried out; the message says why."""


@dataclass(frozen=True, slots=True)
class Edit:
    text: str
    path: PathPattern
    verb: str  # set | mul | add
    value: Any
    raw: str  # the value as it is written
    least: float | None = None
    most: float | None = None


def parse_edit(text: str) -> Edit:
    marks = _find_edit_marks(text)
    if not marks or marks[0][1] not in EDIT_VERBS:
        raise EditError(f"{text!r} is no edit: {_explain_invalid_edit(text)}; {EDIT_EXAMPLE}")
    try:
        path = parse_config_path(text[: marks[0].start()])
    except PathError as error:
        raise EditError(f"{error}; {EDIT_EXAMPLE}") from None
    verb = marks[0][1]
    if verb != "set" and any(found[1] in EDIT_VERBS for found in marks[1:]):
        raise EditError(f"{text!r} is no edit: it asks for two changes; give each of them an edit of its own")
    bounds = _trailing_bounds(text, marks)
    raw = text[marks[0].end() : bounds[0].start() if bounds else len(text)]
    value = _parse_set_value(raw, text) if verb == "set" else _parse_edit_number(raw, text, f"@{verb}")
    limits = _parse_edit_limits(text, bounds)
    return Edit(text, path, verb, value, raw, limits.get("min"), limits.get("max"))


def _find_edit_marks(text: str) -> list[re.Match[str]]:
    """`@set=` and its like; a key in quotes may hold whatever it likes."""
    marks = list(_EDIT_MARK.finditer(text))
    quoted = [found.span() for found in _QUOTED.finditer(text)]
    while marks and any(start < marks[0].start() < end for start, end in quoted):
        marks.pop(0)
    return marks


def _explain_invalid_edit(text: str) -> str:
    named = re.search(r"@([A-Za-z]*)(=?)", text)
    if named and named[1] in EDIT_BOUNDS:
        return f"@{named[1]} bounds a change, and there is none before it"
    if named and named[1] in EDIT_VERBS:
        return f"@{named[1]} needs a value: @{named[1]}=..."
    if named and named[1]:
        return f"there is no @{named[1]}; it is @set=, @mul= or @add="
    return "it says no @set=, @mul= or @add="


def _trailing_bounds(text: str, marks: list[re.Match[str]]) -> list[re.Match[str]]:
    """The bounds at the end. A text that is set may hold whatever else."""
    bounds: list[re.Match[str]] = []
    for found in reversed(marks[1:]):
        stop = bounds[0].start() if bounds else len(text)
        if found[1] not in EDIT_BOUNDS or (marks[0][1] == "set" and not _is_number_text(text[found.end() : stop])):
            break
        bounds.insert(0, found)
    return bounds


def _parse_edit_limits(text: str, bounds: list[re.Match[str]]) -> dict[str, float]:
    limits: dict[str, float] = {}
    for at, found in enumerate(bounds):
        stop = bounds[at + 1].start() if at + 1 < len(bounds) else len(text)
        if found[1] in limits:
            raise EditError(f"{text!r} is no edit: @{found[1]} is given twice; keep one")
        limits[found[1]] = _parse_edit_number(text[found.end() : stop], text, f"@{found[1]}")
    if limits and limits.get("min", limits.get("max", 0)) > limits.get("max", limits.get("min", 0)):
        least, most = limits["min"], limits["max"]
        raise EditError(f"{text!r} is no edit: @min={least:g} is above @max={most:g}; exchange them")
    return limits


def _is_number_text(raw: str) -> bool:
    return bool(_SAFE_NUMBER.fullmatch(raw)) and abs(float(raw)) != float("inf")


def is_too_large_number(raw: str) -> bool:
    """Whether it is written as a number, and none can hold it."""
    return bool(_DIGITS.fullmatch(raw)) and abs(float(raw)) == float("inf")


def _parse_edit_number(raw: str, text: str, mark: str) -> float:
    if is_too_large_number(raw):
        raise EditError(f"{text!r} is no edit: {mark}={raw.strip()} is too large for a number; {LARGEST_NUMBER_HINT}")
    if not _is_number_text(raw):
        raise EditError(f"{text!r} is no edit: {mark} needs a number, not {raw!r}; {EDIT_EXAMPLE}")
    return int(raw) if _WHOLE.fullmatch(raw) else float(raw)


def _parse_set_value(raw: str, text: str) -> Any:
    """As JSON where it is JSON, `.5` and `+3` too; else the text itself."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return float(raw) if _is_number_text(raw) else raw
    if is_nested_too_deep(value):
        raise EditError(f"{text[:60]!r}... is no edit: its value is nested too deeply")
    return value


LARGE = 1e300
BY_HAND = "only a person can change it, in the file"


@dataclass(frozen=True, slots=True)
class EditedValue:
    """A value after an edit."""

    value: Any
    note: str = ""  # what a person should know: it was rounded, or held at a bound


def apply_edit_to_value(edit: Edit, old: Any, where: str) -> EditedValue:
    return _apply_set(edit, old, where) if edit.verb == "set" else _apply_arithmetic(edit, old, where)


def _apply_arithmetic(edit: Edit, old: Any, where: str) -> EditedValue:
    if isinstance(old, bool) or not isinstance(old, int | float):
        told = f"{edit.text}: {where} is {describe_value_kind(old)}, and @{edit.verb} needs a number"
        raise EditError(f"{told}; {'@set= gives it another value' if _is_settable(old) else BY_HAND}")
    if not math.isfinite(old):
        told = f"{edit.text}: {where} is {old}, which @{edit.verb} can't change"
        raise EditError(f"{told}; @set= gives it another value")
    change = exact_fraction(edit.value)
    made = exact_fraction(old) * change if edit.verb == "mul" else exact_fraction(old) + change
    return _clamp_to_bounds(edit, made, where, whole=isinstance(old, int))


def _apply_set(edit: Edit, old: Any, where: str) -> EditedValue:
    value = edit.value
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number and (edit.least is not None or edit.most is not None):
        quoted = f'"{edit.text.partition("=")[2]}"'
        raise EditError(f"{edit.text}: bounds are for numbers, and {edit.raw!r} is none; a text in quotes: {quoted}")
    if value is None or old is None:
        return _bound_untyped_value(edit, value, where)
    if isinstance(old, str):
        return EditedValue(value if isinstance(value, str) else edit.raw)
    if isinstance(old, bool):
        if not isinstance(value, bool):
            raise EditError(f"{edit.text}: {where} is {json.dumps(old)}; it takes true or false, not {edit.raw!r}")
        return EditedValue(value)
    if isinstance(old, int | float):
        return _apply_set_to_number(edit, old, where)
    if not _is_settable(old):
        raise EditError(f"{edit.text}: {where} is {describe_value_kind(old)}; {BY_HAND}")
    if type(value) is not type(old):
        raise EditError(
            f"{edit.text}: {where} is {describe_value_kind(old)}, and {edit.raw!r} is none; write it as JSON"
        )
    return EditedValue(value)


def _is_settable(old: Any) -> bool:
    """Dates and bytes have too many forms in a file."""
    return old is None or isinstance(old, str | bool | int | float | list | dict)


def _apply_set_to_number(edit: Edit, old: float, where: str) -> EditedValue:
    value = edit.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise EditError(f"{edit.text}: {where} is a number ({old}), and {edit.raw!r} is none")
    if not math.isfinite(value):
        return _check_endless_number(edit)
    if isinstance(old, float):
        return _clamp_to_bounds(edit, exact_fraction(value), where, whole=False)
    if isinstance(value, float) and not value.is_integer():
        made = _clamp_to_bounds(edit, exact_fraction(value), where, whole=False)
        return EditedValue(made.value, f"it was an integer; {made.note}" if made.note else "it was an integer")
    return _clamp_to_bounds(edit, exact_fraction(value), where, whole=True)


def _bound_untyped_value(edit: Edit, value: Any, where: str) -> EditedValue:
    """A value whose old type says nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return EditedValue(value)
    if not math.isfinite(value):
        return _check_endless_number(edit)
    return _clamp_to_bounds(edit, exact_fraction(value), where, whole=isinstance(value, int))


def _check_endless_number(edit: Edit) -> EditedValue:
    """NaN and Infinity by their names; a number that became infinite only by its size was not meant so."""
    if is_too_large_number(edit.raw):
        raise EditError(f"{edit.text}: {edit.raw.strip()} is too large for a number; {LARGEST_NUMBER_HINT}")
    return EditedValue(edit.value)


def exact_fraction(number: float) -> Fraction:
    """The number as it is written: 0.1 times 1.5 is 0.15, not 0.15000000000000002."""
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


def _clamp_to_bounds(edit: Edit, made: Fraction, where: str, *, whole: bool) -> EditedValue:
    note = ""
    least, most = edit.least, edit.most
    if least is not None and made < exact_fraction(least):
        made, note = exact_fraction(least), f"held at {least:g}"
    elif most is not None and made > exact_fraction(most):
        made, note = exact_fraction(most), f"held at {most:g}"
    if whole:
        return _round_within_bounds(edit, made, where, note)
    try:
        return EditedValue(float(made), note)
    except OverflowError:
        raise EditError(f"{edit.text}: {where} would become too large for a number; bound it: @max=...") from None


def _round_within_bounds(edit: Edit, made: Fraction, where: str, note: str) -> EditedValue:
    """To the nearest, halves up, but never across a bound."""
    number = math.floor(made + Fraction(1, 2))
    if edit.most is not None and number > exact_fraction(edit.most):
        number = math.floor(exact_fraction(edit.most))
    if edit.least is not None and number < exact_fraction(edit.least):
        number = math.ceil(exact_fraction(edit.least))
    if edit.most is not None and number > exact_fraction(edit.most):
        bounds = f"@min={edit.least:g} and @max={edit.most:g}"
        raise EditError(f"{edit.text}: {where} is an integer, and there is none between {bounds}")
    if number != made:
        rounded = f"{_format_fraction(made)} rounded to {number}, because it is an integer"
        note = f"{rounded}; {note}" if note else rounded
    return EditedValue(number, note)


def _format_fraction(made: Fraction) -> str:
    return f"{float(made):g}" if abs(made) < LARGE else "it is"


def describe_value_kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    if value is None:
        return "null"
    words = {str: "a text", dict: "a mapping", list: "a list", int: "a number", float: "a number", bytes: "bytes"}
    return words.get(type(value), "a date or a time")
