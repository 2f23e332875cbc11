"""What an edit makes of a value. Types are kept: an integer stays one, and says where it was rounded."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from muster.rounds.edits import LARGEST, Edit, EditError, too_large

LARGE = 1e300
BY_HAND = "only a person can change it, in the file"


@dataclass(frozen=True, slots=True)
class Edited:
    """A value after an edit."""

    value: Any
    note: str = ""  # what a person should know: it was rounded, or held at a bound


def apply_to(edit: Edit, old: Any, where: str) -> Edited:
    return _set(edit, old, where) if edit.verb == "set" else _reckoned(edit, old, where)


def _reckoned(edit: Edit, old: Any, where: str) -> Edited:
    if isinstance(old, bool) or not isinstance(old, int | float):
        told = f"{edit.text}: {where} is {kind(old)}, and @{edit.verb} needs a number"
        raise EditError(f"{told}; {'@set= gives it another value' if _settable(old) else BY_HAND}")
    if not math.isfinite(old):
        told = f"{edit.text}: {where} is {old}, which @{edit.verb} can't change"
        raise EditError(f"{told}; @set= gives it another value")
    change = exact(edit.value)
    made = exact(old) * change if edit.verb == "mul" else exact(old) + change
    return _bounded(edit, made, where, whole=isinstance(old, int))


def _set(edit: Edit, old: Any, where: str) -> Edited:
    value = edit.value
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number and (edit.least is not None or edit.most is not None):
        quoted = f'"{edit.text.partition("=")[2]}"'
        raise EditError(f"{edit.text}: bounds are for numbers, and {edit.raw!r} is none; a text in quotes: {quoted}")
    if value is None or old is None:
        return _held(edit, value, where)
    if isinstance(old, str):
        return Edited(value if isinstance(value, str) else edit.raw)
    if isinstance(old, bool):
        if not isinstance(value, bool):
            raise EditError(f"{edit.text}: {where} is {json.dumps(old)}; it takes true or false, not {edit.raw!r}")
        return Edited(value)
    if isinstance(old, int | float):
        return _set_number(edit, old, where)
    if not _settable(old):
        raise EditError(f"{edit.text}: {where} is {kind(old)}; {BY_HAND}")
    if type(value) is not type(old):
        raise EditError(f"{edit.text}: {where} is {kind(old)}, and {edit.raw!r} is none; write it as JSON")
    return Edited(value)


def _settable(old: Any) -> bool:
    """Dates and bytes have too many forms in a file."""
    return old is None or isinstance(old, str | bool | int | float | list | dict)


def _set_number(edit: Edit, old: float, where: str) -> Edited:
    value = edit.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise EditError(f"{edit.text}: {where} is a number ({old}), and {edit.raw!r} is none")
    if not math.isfinite(value):
        return _endless(edit)
    if isinstance(old, float):
        return _bounded(edit, exact(value), where, whole=False)
    if isinstance(value, float) and not value.is_integer():
        made = _bounded(edit, exact(value), where, whole=False)
        return Edited(made.value, f"it was an integer; {made.note}" if made.note else "it was an integer")
    return _bounded(edit, exact(value), where, whole=True)


def _held(edit: Edit, value: Any, where: str) -> Edited:
    """A value whose old type says nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Edited(value)
    if not math.isfinite(value):
        return _endless(edit)
    return _bounded(edit, exact(value), where, whole=isinstance(value, int))


def _endless(edit: Edit) -> Edited:
    """NaN and Infinity by their names; a number that became infinite only by its size was not meant so."""
    if too_large(edit.raw):
        raise EditError(f"{edit.text}: {edit.raw.strip()} is too large for a number; {LARGEST}")
    return Edited(edit.value)


def exact(number: float) -> Fraction:
    """The number as it is written: 0.1 times 1.5 is 0.15, not 0.15000000000000002."""
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


def _bounded(edit: Edit, made: Fraction, where: str, *, whole: bool) -> Edited:
    note = ""
    least, most = edit.least, edit.most
    if least is not None and made < exact(least):
        made, note = exact(least), f"held at {least:g}"
    elif most is not None and made > exact(most):
        made, note = exact(most), f"held at {most:g}"
    if whole:
        return _whole(edit, made, where, note)
    try:
        return Edited(float(made), note)
    except OverflowError:
        raise EditError(f"{edit.text}: {where} would become too large for a number; bound it: @max=...") from None


def _whole(edit: Edit, made: Fraction, where: str, note: str) -> Edited:
    """To the nearest, halves up, but never across a bound."""
    number = math.floor(made + Fraction(1, 2))
    if edit.most is not None and number > exact(edit.most):
        number = math.floor(exact(edit.most))
    if edit.least is not None and number < exact(edit.least):
        number = math.ceil(exact(edit.least))
    if edit.most is not None and number > exact(edit.most):
        bounds = f"@min={edit.least:g} and @max={edit.most:g}"
        raise EditError(f"{edit.text}: {where} is an integer, and there is none between {bounds}")
    if number != made:
        rounded = f"{_short(made)} rounded to {number}, because it is an integer"
        note = f"{rounded}; {note}" if note else rounded
    return Edited(number, note)


def _short(made: Fraction) -> str:
    return f"{float(made):g}" if abs(made) < LARGE else "it is"


def kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    if value is None:
        return "null"
    words = {str: "a text", dict: "a mapping", list: "a list", int: "a number", float: "a number", bytes: "bytes"}
    return words.get(type(value), "a date or a time")
