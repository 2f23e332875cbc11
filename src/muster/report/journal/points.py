"""The open points of a journal: `- [ ] P40.1 ...`, followed by their ids until they are done or dropped.

A point is born in the Learning section of version 40 and is listed with a box in the plan of 41. `[x]` is done, `[-]`
with `(dropped: reason)` is dropped; what is neither is carried into the next version, with the count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from muster.report.journal.scan import Line, Unreadable
from muster.report.journal.sections import LEARNING, OBSERVATIONS, Section, heading, of_role, sections

OPEN, DONE, DROPPED = "open", "done", "dropped"
_MARKS = {" ": OPEN, "x": DONE, "X": DONE, "-": DROPPED}
_ITEM = re.compile(
    r"(?P<indent>[ \t]*)(?:(?P<bullet>[-*+])[ \t]+|(?P<number>[0-9]{1,3})(?:[.)][ \t]+|、[ \t]*))(?P<text>.*)"
)
_BOX = re.compile(r"\[(?P<mark>[^\]\[])\][ \t]+(?P<text>.*)", re.DOTALL)
_ID = re.compile(
    r"(?:\*\*|`)?P(?P<version>[0-9]{1,6})\.(?P<number>[0-9]{1,4})(?![0-9.]*[0-9])(?:\*\*|`)?[ \t]*[:：]?[ \t]*"
    r"(?P<text>.*)",
    re.DOTALL,
)
_CARRIED = re.compile(
    r"[(（](?:carried (?P<en>[0-9]{1,4}) times?, since v[0-9]+"
    r"|已?沿用 ?(?P<zh>[0-9]{1,4}) ?次[，,] ?自 ?v[0-9]+ ?起)[)）][ \t]*(?P<text>.*)",
    re.DOTALL | re.I,
)
_REASON = re.compile(r"[(（]\s*(?:dropped|放弃|弃用|不做)\s*[:：]\s*(?P<reason>.*?)\s*[)）]\s*$", re.DOTALL | re.I)
_REASON_WITHIN = re.compile(r"[(（]\s*(?:dropped|放弃|弃用|不做)\s*[:：]\s*(?P<reason>[^()（）]*?)\s*[)）]", re.I)
MENTIONED = re.compile(r"(?<![\w.])P(?P<version>[0-9]{1,6})\.(?P<number>[0-9]{1,4})(?![0-9]|\.[0-9])")


@dataclass(frozen=True, slots=True)
class Id:
    version: int
    number: int

    def __str__(self) -> str:
        return f"P{self.version}.{self.number}"


@dataclass(frozen=True, slots=True)
class Point:
    """A box with an id."""

    id: Id
    state: str
    text: str  # without its id, its count and its reason
    line: int
    carried: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a list, with all that belongs to it."""

    text: str  # lines are parted by a newline, without what they are indented by
    line: int
    numbered: bool
    indent: int
    end: int  # index of the line behind it
    mark: str = ""  # in its box; "": it has none
    id: Id | None = None

    @property
    def said(self) -> str:
        return self.text.strip()


@dataclass(frozen=True, slots=True)
class Journal:
    """What a version says of its points."""

    version: int
    lines: Sequence[Line]
    tracked: tuple[Point, ...]
    fresh: tuple[Item, ...]  # born here, without an id yet
    notes: dict[Id, Item]  # what the Learning section adds to a point
    observed: dict[Id, Item]
    learning: bool  # whether there is such a section

    def born(self) -> list[tuple[Id, Item]]:
        """The new points with the ids that they get, in order. Numbers that a person gave are left out."""
        taken = {each.id.number for each in self.tracked if each.id.version == self.version}
        taken |= {each.number for each in self.notes if each.version == self.version}
        free = (number for number in count(1) if number not in taken)
        return [(Id(self.version, next(free)), item) for item in self.fresh]


def read(version: int, lines: Sequence[Line]) -> Journal:
    """Raises Unreadable: an unknown mark, an id twice, a point that was dropped without a reason."""
    parts = sections(lines)
    learning = list(of_role(parts, LEARNING))
    own = [item for section in learning for item in _learnt(lines, section)]
    observed = [item for section in of_role(parts, OBSERVATIONS) for item in items(lines, section)]
    return Journal(
        version,
        lines,
        tuple(_tracked(lines)),
        tuple(item for item in own if item.id is None and item.mark in ("", " ")),
        {item.id: item for item in own if item.id and not item.mark},
        {item.id: item for item in observed if item.id and not item.mark},
        bool(learning),
    )


def _tracked(lines: Sequence[Line]) -> Iterator[Point]:
    seen: dict[Id, int] = {}
    for at, line in enumerate(lines):
        item = item_at(lines, at)
        if item is None or not item.mark or item.id is None:
            continue
        if item.id in seen:
            raise Unreadable(f"{item.id} has a box already in line {seen[item.id]}", line.number)
        seen[item.id] = line.number
        yield _point(item)


def _point(item: Item) -> Point:
    assert item.id
    if item.mark not in _MARKS:
        known = "[ ] is open, [x] done, [-] dropped"
        raise Unreadable(f"{item.id} has the mark [{item.mark}], which means nothing: {known}", item.line)
    state, text, carried, reason = _MARKS[item.mark], item.said, 0, ""
    if count := _CARRIED.match(text):
        carried, text = int(count["en"] or count["zh"]), count["text"]
    if state == DROPPED:
        why = _REASON.search(text) or _REASON_WITHIN.search(text)
        if why is None or not why["reason"]:
            raise Unreadable(f"{item.id} is dropped without a reason: write (dropped: why) behind it", item.line)
        reason, text = why["reason"], (text[: why.start()] + text[why.end() :]).strip()
    return Point(item.id, state, text, item.line, carried, reason)


def _learnt(lines: Sequence[Line], section: Section) -> list[Item]:
    """Numbered items and boxes; where there are none, all items; where there is no list, its paragraphs."""
    found = items(lines, section)
    counted = [item for item in found if item.numbered or item.mark or item.id]
    return counted or found or _paragraphs(lines, section)


def items(lines: Sequence[Line], section: Section) -> list[Item]:
    """Of the outermost lists."""
    found, at = [], section.first + 1
    while at < section.end:
        item = item_at(lines, at)
        if item is None:
            at += 1
            continue
        if item.said:
            found.append(item)
        at = item.end
    return found


def item_at(lines: Sequence[Line], at: int) -> Item | None:
    """The item that begins in this line."""
    line = lines[at]
    found = _ITEM.fullmatch(line.text) if line.kind == "text" and not line.inside else None
    if found is None:
        return None
    indent = len(found["indent"].expandtabs(4))
    end = _end(lines, at + 1, indent)
    more = _outdented([lines[each].text for each in range(at + 1, end) if lines[each].kind != "comment"])
    text, mark, id_ = found["text"], "", None
    if box := _BOX.fullmatch(text):
        mark, text = box["mark"], box["text"]
    if named := _ID.fullmatch(text):
        id_, text = Id(int(named["version"]), int(named["number"])), named["text"]
    whole = "\n".join([text.strip(), *more]).rstrip()
    return Item(whole, line.number, found["number"] is not None, indent, end, mark, id_)


def _end(lines: Sequence[Line], at: int, indent: int) -> int:
    """Behind the last line that belongs to an item which is indented so much."""
    end, blank = at, False
    while at < len(lines):
        line = lines[at]
        if line.kind in ("begin", "end") or line.inside or heading(line):
            break
        if line.kind == "text" and not line.text.strip():
            blank = True
        elif line.kind == "code" and end == at and lines[at - 1].kind == "code":
            end = at + 1  # a code block is one thing
        elif line.kind != "comment":
            deep = len(line.text.expandtabs(4)) - len(line.text.expandtabs(4).lstrip())
            outer = deep <= indent and (blank or _ITEM.fullmatch(line.text) is not None or line.text.startswith("|"))
            if outer and (line.kind == "text" or blank):
                break
            blank, end = False, at + 1
        at += 1
    return end


def _outdented(texts: Sequence[str]) -> list[str]:
    kept = [text.expandtabs(4) for text in texts]
    depth = min((len(text) - len(text.lstrip()) for text in kept if text.strip()), default=0)
    return [text[depth:].rstrip() for text in kept]


def _paragraphs(lines: Sequence[Line], section: Section) -> list[Item]:
    found: list[Item] = []
    gathered: list[Line] = []
    for line in [*lines[section.first + 1 : section.end], None]:
        if line is not None and line.kind == "text" and not line.inside and line.text.strip() and not heading(line):
            gathered.append(line)
        elif gathered:
            text = "\n".join(each.text.strip() for each in gathered)
            found.append(Item(text, gathered[0].number, False, 0, 0))
            gathered = []
    return found
