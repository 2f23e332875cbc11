"""Durations, lists and groups of cells as people are told them, and durations as they write them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from muster.model.errors import UsageError
from muster.text.phrases import PluralNumber, join_phrases, phrase
from muster.text.terminal_text import escape_terminal_text


def group_cell_names(cells: Sequence[str]) -> list[str]:
    """Cells that differ in one value only, together: `train/v2_full/{0,1,3}`, as a shell would expand it."""
    rows: list[list[tuple[str, ...]]] = [[(part,) for part in cell.split("/")] for cell in dict.fromkeys(cells)]
    for back in range(1, max(map(len, rows), default=0)):  # the last value first; the job stays what it is
        merged: dict[object, list[tuple[str, ...]]] = {}
        for row in rows:
            at = len(row) - back
            key = (len(row), *row[:at], None, *row[at + 1 :]) if at > 0 else tuple(row)
            known = merged.get(key)
            if known is None:
                merged[key] = row
            elif at > 0:
                known[at] = (*known[at], *row[at])
        rows = list(merged.values())
    return ["/".join(part[0] if len(part) == 1 else f"{{{','.join(part)}}}" for part in row) for row in rows]


MOST_NAMES = 8
LONGEST_QUOTE = 300  # characters of a reason or a log line
SECONDS_BELOW_S = 120.0  # below it in seconds
MINUTES_BELOW_S = 3600.0  # below it in minutes


def join_few_names(names: Sequence[str], most: int = MOST_NAMES, between: str = ", ") -> str:
    """`a, b and 3 more`; with `; ` between them: `a; b; and 3 more`."""
    shown = join_phrases(between, names[:most])
    left = len(names) - most
    return (
        shown
        if left <= 0
        else phrase("list.and_more", shown=join_phrases("", (shown, between.rstrip(" ,"))), left=left)
    )


def strip_full_stop(text: str) -> str:
    """Without its full stop: what others wrote, as a part of a sentence. `...` stays."""
    return text[:-1] if text.endswith((".", "。")) and not text.endswith("..") else text


def end_with_full_stop(text: str) -> str:
    """As a sentence of its own: one full stop, whoever wrote it."""
    if text.endswith(("!", "?", "...", "。", "！", "？")) or (text.endswith(".") and not text.endswith("..")):
        return text
    return phrase("list.sentence", text=text)


def split_duration(seconds: float) -> tuple[str, str]:
    """The number and its unit, `s`, `min` or `h`: a short time never reads as 0.0 h."""
    if seconds < SECONDS_BELOW_S:
        return (f"{seconds:.0f}" if seconds >= 10 or not seconds else f"{seconds:.1f}"), "s"
    if seconds < MINUTES_BELOW_S:
        return f"{seconds / 60:.0f}", "min"
    hours = seconds / 3600
    return (f"{hours:.1f}" if hours < 100 else f"{hours:.0f}"), "h"


_SPAN_CODES = {"s": "span.seconds", "min": "span.minutes", "h": "span.hours"}


def format_duration(seconds: float) -> str:
    """`0.4 s`, `12 s`, `3 min`, `2.1 h`."""
    number, unit = split_duration(seconds)
    return phrase(_SPAN_CODES[unit], n=number)


def fill_sentence(text: str, parts: dict[str, object]) -> str:
    """A text of a report with its parts put in; whole numbers choose between one and many.

    What stands in backticks stays code, whatever is put in there.
    """
    counts = {
        name: PluralNumber(value) if isinstance(value, int) and not isinstance(value, bool) else value
        for name, value in parts.items()
    }
    if "`" not in text:
        return text.format(**counts)
    pieces = (
        format_inline_code(part.format(**counts)) if at % 2 else part.format(**counts)
        for at, part in enumerate(text.split("`"))
    )
    return "".join(pieces) if text.count("`") % 2 == 0 else text.format(**counts)


def format_inline_code(text: str) -> str:
    """As code in Markdown, on one line, whatever backticks are in it."""
    line = escape_terminal_text(" ".join(text.splitlines()))
    longest = max((len(run) for run in re.findall(r"`+", line)), default=0)
    if not longest:
        return f"`{line}`"
    fence = "`" * (longest + 1)
    return f"{fence} {line} {fence}"


def format_moment(iso: str) -> str:
    return iso[:19].replace("T", " ")


def shorten_quote(text: str) -> str:
    line = " ".join(text.split()) if "\n" in text else text.rstrip()
    return line if len(line) <= LONGEST_QUOTE else line[: LONGEST_QUOTE - 1] + "…"


# -- as people write them

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
