"""Reads settings that come as mappings and lists, as YAML and JSON give them; all mistakes at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muster.stages.errors import Problem, SpecError, clipped, closest
from muster.stages.notation import MOST


class Form:
    """Collects what is wrong with one setting."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.problems: list[Problem] = []

    def wrong(self, where: str, what: str, hint: str = "") -> None:
        self.problems.append(Problem(f"{where}: {what}" if where else what, hint=hint))

    def done(self) -> None:
        if self.problems:
            raise SpecError(self.name, self.problems)

    def known(self, where: str, entry: Mapping[str, Any], keys: Sequence[str]) -> None:
        for key in entry:
            if key not in keys:
                self.wrong(where, f"unknown key '{key}'", closest(str(key), keys))

    def mapping(self, where: str, value: object) -> Mapping[str, Any] | None:
        if isinstance(value, Mapping):
            return value
        self.wrong(where, f"expected a mapping, found {found(value)}")
        return None

    def number(self, where: str, entry: Mapping[str, Any], key: str, *, needed: bool = True) -> int | float | None:
        value = entry.get(key)
        if value is None:
            if needed:
                self.wrong(where, f"'{key}' is missing")
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
            self.wrong(where, f"{key}: expected a finite number, found {found(value)}")
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
            self.wrong(where, f"expected a whole number, found {found(value)}")
        elif not least <= value <= MOST:
            limit = f"least {least}" if value < least else f"most {MOST}"
            self.wrong(where, f"must be at {limit}, found {found(value)}")
        else:
            return value
        return None

    def text(self, where: str, entry: Mapping[str, Any], key: str) -> str:
        value = entry.get(key)
        if value is None:
            self.wrong(where, f"'{key}' is missing")
        elif not isinstance(value, str) or not value.strip():
            self.wrong(where, f"{key}: expected text, found {found(value)}")
        else:
            return value
        return ""


def found(value: object) -> str:
    """As Python shows it; it refuses whole numbers of thousands of digits."""
    try:
        return clipped(repr(value), 80)
    except ValueError:
        return "a number of thousands of digits"


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


def entries(form: Form, written: object, example: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The mappings of a list, each with its name for messages: `2nd` would be vaguer than `[1]`."""
    if not isinstance(written, Sequence) or isinstance(written, str | bytes) or not written:
        form.wrong("", f"expected a list of mappings such as [{example}], found {found(written)}")
        return
    for at, each in enumerate(written):
        entry = form.mapping(f"[{at}]", each)
        if entry is not None:
            yield f"[{at}]", entry
