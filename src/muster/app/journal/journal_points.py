"""The open points of a journal: `- [ ] P40.1 ...`, followed by their ids until they are done or dropped.

A point is born in the Learning section of version 40 and is listed with a box in the plan of 41. `[x]` is done, `[-]`
with `(dropped: reason)` is dropped; what is neither is carried into the next version, with the count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from muster.app.journal.journal_text import (
    LEARNING,
    OBSERVATIONS,
    JournalLine,
    JournalSection,
    UnreadableJournal,
    find_sections,
    parse_heading,
    sections_of_role,
)

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
MENTIONED_ID = re.compile(r"(?<![\w.])P(?P<version>[0-9]{1,6})\.(?P<number>[0-9]{1,4})(?![0-9]|\.[0-9])")


@dataclass(frozen=True, slots=True)
class PointId:
    version: int
    number: int

    def __str__(self) -> str:
        return f"P{self.version}.{self.number}"


@dataclass(frozen=True, slots=True)
class JournalPoint:
    """A box with an id."""

    id: PointId
    state: str
    text: str  # without its id, its count and its reason
    line: int
    carried: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ListItem:
    """One item of a list, with all that belongs to it."""

    text: str  # lines are parted by a newline, without what they are indented by
    line: int
    numbered: bool
    indent: int
    end: int  # index of the line behind it
    mark: str = ""  # in its box; "": it has none
    id: PointId | None = None

    @property
    def said(self) -> str:
        return self.text.strip()


@dataclass(frozen=True, slots=True)
class Journal:
    """What a version says of its points."""

    version: int
    lines: Sequence[JournalLine]
    tracked: tuple[JournalPoint, ...]
    fresh: tuple[ListItem, ...]  # born here, without an id yet
    notes: dict[PointId, ListItem]  # what the Learning section adds to a point
    observed: dict[PointId, ListItem]
    learning: bool  # whether there is such a section

    def born(self) -> list[tuple[PointId, ListItem]]:
        """The new points with the ids that they get, in order. Numbers that a person gave are left out."""
        taken = {each.id.number for each in self.tracked if each.id.version == self.version}
        taken |= {each.number for each in self.notes if each.version == self.version}
        free = (number for number in count(1) if number not in taken)
        return [(PointId(self.version, next(free)), item) for item in self.fresh]


def read_journal_points(version: int, lines: Sequence[JournalLine]) -> Journal:
    """Raises Unreadable: an unknown mark, an id twice, a point that was dropped without a reason."""
    parts = find_sections(lines)
    learning = list(sections_of_role(parts, LEARNING))
    own = [item for section in learning for item in _learnt_items(lines, section)]
    observed = [item for section in sections_of_role(parts, OBSERVATIONS) for item in items_of_section(lines, section)]
    return Journal(
        version,
        lines,
        tuple(_tracked_points(lines)),
        tuple(item for item in own if item.id is None and item.mark in ("", " ")),
        {item.id: item for item in own if item.id and not item.mark},
        {item.id: item for item in observed if item.id and not item.mark},
        bool(learning),
    )


def _tracked_points(lines: Sequence[JournalLine]) -> Iterator[JournalPoint]:
    seen: dict[PointId, int] = {}
    for at, line in enumerate(lines):
        item = list_item_at(lines, at)
        if item is None or not item.mark or item.id is None:
            continue
        if item.id in seen:
            raise UnreadableJournal(f"{item.id} has a box already in line {seen[item.id]}", line.number)
        seen[item.id] = line.number
        yield _parse_point(item)


def _parse_point(item: ListItem) -> JournalPoint:
    assert item.id
    if item.mark not in _MARKS:
        known = "[ ] is open, [x] done, [-] dropped"
        raise UnreadableJournal(f"{item.id} has the mark [{item.mark}], which means nothing: {known}", item.line)
    state, text, carried, reason = _MARKS[item.mark], item.said, 0, ""
    if count := _CARRIED.match(text):
        carried, text = int(count["en"] or count["zh"]), count["text"]
    if state == DROPPED:
        why = _REASON.search(text) or _REASON_WITHIN.search(text)
        if why is None or not why["reason"]:
            raise UnreadableJournal(f"{item.id} is dropped without a reason: write (dropped: why) behind it", item.line)
        reason, text = why["reason"], (text[: why.start()] + text[why.end() :]).strip()
    return JournalPoint(item.id, state, text, item.line, carried, reason)


def _learnt_items(lines: Sequence[JournalLine], section: JournalSection) -> list[ListItem]:
    """Numbered items and boxes; where there are none, all items; where there is no list, its paragraphs."""
    found = items_of_section(lines, section)
    counted = [item for item in found if item.numbered or item.mark or item.id]
    return counted or found or _paragraphs_as_items(lines, section)


def items_of_section(lines: Sequence[JournalLine], section: JournalSection) -> list[ListItem]:
    """Of the outermost lists."""
    found, at = [], section.first + 1
    while at < section.end:
        item = list_item_at(lines, at)
        if item is None:
            at += 1
            continue
        if item.said:
            found.append(item)
        at = item.end
    return found


def list_item_at(lines: Sequence[JournalLine], at: int) -> ListItem | None:
    """The item that begins in this line."""
    line = lines[at]
    found = _ITEM.fullmatch(line.text) if line.kind == "text" and not line.inside else None
    if found is None:
        return None
    indent = len(found["indent"].expandtabs(4))
    end = _end_of_item(lines, at + 1, indent)
    more = _outdent_texts([lines[each].text for each in range(at + 1, end) if lines[each].kind != "comment"])
    text, mark, id_ = found["text"], "", None
    if box := _BOX.fullmatch(text):
        mark, text = box["mark"], box["text"]
    if named := _ID.fullmatch(text):
        id_, text = PointId(int(named["version"]), int(named["number"])), named["text"]
    whole = "\n".join([text.strip(), *more]).rstrip()
    return ListItem(whole, line.number, found["number"] is not None, indent, end, mark, id_)


def _end_of_item(lines: Sequence[JournalLine], at: int, indent: int) -> int:
    """Behind the last line that belongs to an item which is indented so much."""
    end, blank = at, False
    while at < len(lines):
        line = lines[at]
        if line.kind in ("begin", "end") or line.inside or parse_heading(line):
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


def _outdent_texts(texts: Sequence[str]) -> list[str]:
    kept = [text.expandtabs(4) for text in texts]
    depth = min((len(text) - len(text.lstrip()) for text in kept if text.strip()), default=0)
    return [text[depth:].rstrip() for text in kept]


def _paragraphs_as_items(lines: Sequence[JournalLine], section: JournalSection) -> list[ListItem]:
    found: list[ListItem] = []
    gathered: list[JournalLine] = []
    for line in [*lines[section.first + 1 : section.end], None]:
        if (
            line is not None
            and line.kind == "text"
            and not line.inside
            and line.text.strip()
            and not parse_heading(line)
        ):
            gathered.append(line)
        elif gathered:
            text = "\n".join(each.text.strip() for each in gathered)
            found.append(ListItem(text, gathered[0].number, False, 0, 0))
            gathered = []
    return found


_LEAD = re.compile(r"(?P<lead>\*\*[^*\n]{1,120}\*\*)[ \t]*[:：]?[ \t]*")
_INTENT = re.compile(
    r"(?P<before>[，,；;。]|[.!?](?=\s)|^)\s*"
    r"(?P<intent>考虑|建议|下一轮|下一步|下一版|下轮|可以?尝试|尝试|应该?|需要|计划|不妨|改为"
    r"|(?:so |therefore |hence |then )?(?:we |one )?(?:should|need to|will|could|consider|try|plan to|propose)\b"
    r"|next(?: time| round| version| step)?[,: ]|let us\b)",
    re.I,
)
_INLINE = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)|“[^”\n]*”|\"[^\"\n]*\"", re.DOTALL)
_SINCE = re.compile(r"^(?:既然|由于|因为|鉴于)\s*")
_CLAUSE = re.compile(r"[。；;]|[.!?](?=\s|$)|\n")
_TITLE = 80  # characters


@dataclass(frozen=True, slots=True)
class CarriedPoint:
    """An open point as the next version gets it."""

    id: PointId
    carried: int
    observed: str
    planned: str


@dataclass(frozen=True, slots=True)
class SettledPoints:
    done: tuple[JournalPoint, ...]
    dropped: tuple[JournalPoint, ...]


def points_to_carry(journal: Journal, earlier: Sequence[Journal] = ()) -> list[CarriedPoint]:
    """What is still open of older versions first, then what was born in this one. `earlier`: older journals."""
    old = [_carry_point(journal, each, earlier) for each in journal.tracked if each.state == OPEN]
    new = [CarriedPoint(id_, 0, *split_observed_and_planned(item.said)) for id_, item in journal.born()]
    return [*sorted(old, key=lambda each: (each.id.version, each.id.number)), *new]


def settled_points_of(journal: Journal) -> SettledPoints:
    def of(state: str) -> tuple[JournalPoint, ...]:
        return tuple(each for each in journal.tracked if each.state == state)

    return SettledPoints(of(DONE), of(DROPPED))


def _carry_point(journal: Journal, point: JournalPoint, earlier: Iterable[Journal]) -> CarriedPoint:
    """A later word about it, in the Learning section, takes the place of the older ones."""
    count = 0 if point.id.version >= journal.version else 1 + max(point.carried, _times_listed_open(point.id, earlier))
    note, before = journal.notes.get(point.id), journal.observed.get(point.id)
    observed, planned = split_observed_and_planned(note.said) if note else (before.said if before else "", "")
    if note and planned == title_of_point(note.said):
        planned = ""
    return CarriedPoint(point.id, count, observed, planned or point.text)


def _times_listed_open(id_: PointId, earlier: Iterable[Journal]) -> int:
    """How often it was listed as open before, the first time aside: a person may have deleted the count."""
    listed = sum(each.id == id_ and each.state == OPEN for journal in earlier for each in journal.tracked)
    return max(0, listed)


def split_observed_and_planned(text: str) -> tuple[str, str]:
    """A point says what was seen and what to do about it. Where the second begins is told by its words.

    Where no word tells, all of it was seen, and the plan is its title. Nothing is left out of both.
    """
    lead = _LEAD.match(text)
    name, rest = (lead["lead"], text[lead.end() :]) if lead else ("", text)
    masked = _INLINE.sub(lambda found: "\0" * len(found[0]), rest)
    intent = _INTENT.search(masked)
    if intent is None:
        return text, title_of_point(text)
    seen, wanted = rest[: intent.start("before")].strip(), rest[intent.start("intent") :].strip()
    if not seen:
        return name or title_of_point(text), text
    return _with_bold_beginning(name, _as_full_sentence(_SINCE.sub("", seen))), _with_bold_beginning(name, wanted)


def _as_full_sentence(text: str) -> str:
    """What stood before a comma, as a sentence."""
    if text.endswith(("。", "！", "？", ".", "!", "?", "…")):
        return text
    return text + ("。" if any("\u4e00" <= letter <= "\u9fff" for letter in text) else ".")


def _with_bold_beginning(name: str, text: str) -> str:
    if not name:
        return text
    colon = "：" if any("\u4e00" <= letter <= "\u9fff" for letter in name + text) else ": "
    return f"{name}{colon}{text}"


def title_of_point(text: str) -> str:
    """Its bold beginning, else its first clause."""
    if lead := _LEAD.match(text):
        return lead["lead"]
    clause = _CLAUSE.search(text)
    first = text[: clause.start()] if clause and clause.start() else text
    return first if len(first) <= _TITLE else first[: _TITLE - 1].rstrip() + "…"
