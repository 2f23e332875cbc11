"""What an update leaves as it is and a person should look at: numbers beside changed ones, counts of seeds in words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from muster.report.documents.audit import unbound
from muster.report.documents.bind import decide_all, neighbourhood
from muster.report.documents.context import Context
from muster.report.documents.sidecar import Binding

LEFT = "it stands beside a number that changes, and is not bound"
_WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5}
_SEEDS = re.compile(
    r"(?P<count>(?<![0-9.])[0-9]{1,3}|\b(?:one|two|three|four|five)\b|[一二两三四五])"
    r"(?:[ -]|个)?(?:random |随机)?(?:seeds?\b|种子)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Beside:
    start: int
    text: str
    why: str


def beside(context: Context, bindings: Sequence[Binding], changed: Sequence[int]) -> list[Beside]:
    """`changed`: where the numbers stand that change. In order."""
    near = {neighbourhood(context, at) for at in changed}
    found = list(_numbers(context, bindings, near)) if near else []
    return sorted([*found, *_counts(context, bindings)], key=lambda each: each.start)


def _numbers(context: Context, bindings: Sequence[Binding], near: set[int]) -> Iterator[Beside]:
    """Of a row all that are no integers; of a paragraph those that may be results, or are made from them."""
    for decision in decide_all(context, unbound(context, bindings)):
        number = decision.number
        place = context.layout.at(number.start)
        told = decision.state != "ignored" or (place is not None and place.cell and not place.title)
        if told and not number.plain_integer and neighbourhood(context, number.start) in near:
            yield Beside(number.start, context.source.text[number.start : number.end], LEFT)


def _counts(context: Context, bindings: Sequence[Binding]) -> Iterator[Beside]:
    """`over two seeds`, where the numbers are those of five."""
    known = context.book.by_key
    seeds = {known[key].k for binding in bindings for key in binding.keys if key in known}
    for found in _SEEDS.finditer(context.source.shown) if seeds else ():
        word = found["count"].lower()
        if _WORDS.get(word, int(word) if word.isdigit() else 0) not in seeds:
            many = ", ".join(str(each) for each in sorted(seeds))
            yield Beside(found.start(), found[0], f"the bound numbers are those of {many} seeds")
