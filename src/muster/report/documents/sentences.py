"""Sentences and clauses, English and Chinese. A full stop or a comma within a number parts nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Span = tuple[int, int]

_ENDS = re.compile(r"[。！？!?]|(?<![\s.])\.(?=[*_`)\]}\"'”’]*(?:\s|$))|[\"”」』](?=[ \t]*\r?\n)|\n[ \t]*\r?\n")
_SHORTENED = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|cf|vs|etc|al|approx|resp|fig|figs|eq|eqs|sec|tab|no|vol|ca|dr|prof|w\.r\.t|[A-Za-z])$",
    re.IGNORECASE,
)
_PARTS = re.compile(r"[,，;；]|\b(?:while|whereas)\b")


@dataclass(frozen=True, slots=True)
class Sentence:
    span: Span
    clauses: list[Span]


def sentences_of(text: str, start: int, end: int) -> list[Span]:
    return list(_cut(_ENDS, text[start:end], start, ()))


def clauses_of(text: str, span: Span, numbers: Sequence[Span]) -> list[Span]:
    return list(_cut(_PARTS, text[span[0] : span[1]], span[0], numbers))


def _cut(pattern: re.Pattern[str], text: str, shift: int, kept: Sequence[Span]) -> Iterator[Span]:
    """`kept`: in order; nothing is cut within them."""
    at, next_ = 0, 0
    for found in pattern.finditer(text):
        begin, end = found.start() + shift, found.end() + shift
        if found[0] == "." and _SHORTENED.search(text, max(0, found.start() - 10), found.start()):
            continue
        while next_ < len(kept) and kept[next_][1] <= begin:
            next_ += 1
        if next_ < len(kept) and kept[next_][0] < end:
            continue
        yield at + shift, end
        at = found.end()
    if at < len(text):
        yield at + shift, len(text) + shift
