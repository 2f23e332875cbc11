"""Durations as people write them, always with a unit: 90s, 10m, 2h."""

from __future__ import annotations

import re

from muster.model.errors import UsageError
from muster.text.phrases import phrase
from muster.text.sentences import format_duration

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd])")


def parse_duration(text: str, option: str = "--timeout") -> float:
    """`1h30m` -> 5400.0"""
    wanted = text.strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", wanted):
        raise UsageError(
            phrase("span.without_unit", option=option, text=text), hint=phrase("span.add_unit", number=wanted)
        )
    if not re.fullmatch(rf"({_PART.pattern}\s*)+", wanted):
        raise UsageError(phrase("span.no_duration", option=option, text=text), hint=phrase("span.write_it_so"))
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(wanted))


def format_calendar_duration(seconds_: float) -> str:
    """A duration for people: 0.4 s, 12 s, 3 min, 2.1 h; of the calendar, so days too."""
    return format_duration(seconds_) if seconds_ < 172800 else phrase("span.days", n=f"{seconds_ / 86400:.1f}")
