"""From one version to the next: what stays open, what was learnt anew, and which part of it is a plan."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muster.report.journal.points import DONE, DROPPED, OPEN, Id, Journal, Point

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
class Carried:
    """An open point as the next version gets it."""

    id: Id
    carried: int
    observed: str
    planned: str


@dataclass(frozen=True, slots=True)
class Settled:
    done: tuple[Point, ...]
    dropped: tuple[Point, ...]


def following(journal: Journal, earlier: Sequence[Journal] = ()) -> list[Carried]:
    """What is still open of older versions first, then what was born in this one. `earlier`: older journals."""
    old = [_carried(journal, each, earlier) for each in journal.tracked if each.state == OPEN]
    new = [Carried(id_, 0, *observed_and_planned(item.said)) for id_, item in journal.born()]
    return [*sorted(old, key=lambda each: (each.id.version, each.id.number)), *new]


def settled(journal: Journal) -> Settled:
    def of(state: str) -> tuple[Point, ...]:
        return tuple(each for each in journal.tracked if each.state == state)

    return Settled(of(DONE), of(DROPPED))


def _carried(journal: Journal, point: Point, earlier: Iterable[Journal]) -> Carried:
    """A later word about it, in the Learning section, takes the place of the older ones."""
    count = 0 if point.id.version >= journal.version else 1 + max(point.carried, _times(point.id, earlier))
    note, before = journal.notes.get(point.id), journal.observed.get(point.id)
    observed, planned = observed_and_planned(note.said) if note else (before.said if before else "", "")
    if note and planned == title_of(note.said):
        planned = ""
    return Carried(point.id, count, observed, planned or point.text)


def _times(id_: Id, earlier: Iterable[Journal]) -> int:
    """How often it was listed as open before, the first time aside: a person may have deleted the count."""
    listed = sum(each.id == id_ and each.state == OPEN for journal in earlier for each in journal.tracked)
    return max(0, listed)


def observed_and_planned(text: str) -> tuple[str, str]:
    """A point says what was seen and what to do about it. Where the second begins is told by its words.

    Where no word tells, all of it was seen, and the plan is its title. Nothing is left out of both.
    """
    lead = _LEAD.match(text)
    name, rest = (lead["lead"], text[lead.end() :]) if lead else ("", text)
    masked = _INLINE.sub(lambda found: "\0" * len(found[0]), rest)
    intent = _INTENT.search(masked)
    if intent is None:
        return text, title_of(text)
    seen, wanted = rest[: intent.start("before")].strip(), rest[intent.start("intent") :].strip()
    if not seen:
        return name or title_of(text), text
    return _led(name, _ended(_SINCE.sub("", seen))), _led(name, wanted)


def _ended(text: str) -> str:
    """What stood before a comma, as a sentence."""
    if text.endswith(("。", "！", "？", ".", "!", "?", "…")):
        return text
    return text + ("。" if any("\u4e00" <= letter <= "\u9fff" for letter in text) else ".")


def _led(name: str, text: str) -> str:
    if not name:
        return text
    colon = "：" if any("\u4e00" <= letter <= "\u9fff" for letter in name + text) else ": "
    return f"{name}{colon}{text}"


def title_of(text: str) -> str:
    """Its bold beginning, else its first clause."""
    if lead := _LEAD.match(text):
        return lead["lead"]
    clause = _CLAUSE.search(text)
    first = text[: clause.start()] if clause and clause.start() else text
    return first if len(first) <= _TITLE else first[: _TITLE - 1].rstrip() + "…"
