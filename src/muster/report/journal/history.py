"""The points of all versions, followed from one to the next: carried for long, lost on the way, of no version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from muster.report.journal.compose import name_of
from muster.report.journal.points import MENTIONED, OPEN, Id, Journal

LONG = 3  # times that a point was carried, from which it is told


@dataclass(frozen=True, slots=True)
class Trouble:
    kind: str  # carried | vanished | unknown
    id: Id
    line: int  # 0: it is nowhere in this journal
    message: str
    wrong: bool  # whether it is more than a warning


def troubles(journals: Sequence[Journal]) -> list[Trouble]:
    """Of the last one; the others are older, in order."""
    return [*_carried(journals), *_vanished(journals), *_unknown(journals)]


def times_carried(id_: Id, journals: Sequence[Journal]) -> int:
    """As the text says it, or as often as it was listed as open before: whichever is more."""
    told = [each.carried for journal in journals for each in journal.tracked if each.id == id_]
    listed = sum(each.id == id_ and each.state == OPEN for journal in journals[:-1] for each in journal.tracked)
    return max([listed, *told[-1:]])


def _carried(journals: Sequence[Journal]) -> Iterator[Trouble]:
    for each in journals[-1].tracked:
        count = times_carried(each.id, journals)
        if each.state == OPEN and count >= LONG:
            what = f"carried {count} times, since v{each.id.version}: do it, drop it with a reason, or cut it smaller"
            yield Trouble("carried", each.id, each.line, what, wrong=False)


def _vanished(journals: Sequence[Journal]) -> Iterator[Trouble]:
    """Open in some version, settled in none, and without a box here.

    Versions that were written before points had ids follow nothing: there nothing can get lost.
    """
    open_: dict[Id, int] = {}  # the version that it was seen in last
    followed = False
    for journal in journals[:-1]:
        followed = followed or bool(journal.tracked)
        if not followed:
            open_.clear()
        for each in journal.tracked:
            open_.pop(each.id, None)
            if each.state == OPEN:
                open_[each.id] = journal.version
        open_ |= {id_: journal.version for id_, _ in journal.born()}
    here = {each.id for each in journals[-1].tracked}
    if not (followed or here):
        return
    for id_, version in open_.items():
        if id_ not in here:
            what = f"open in {name_of(version)} and neither done nor dropped; here it has no box any more"
            yield Trouble("vanished", id_, 0, what, wrong=True)


def _unknown(journals: Sequence[Journal]) -> Iterator[Trouble]:
    """Ids that no version gave."""
    last = journals[-1]
    known = {each.id for journal in journals[:-1] for each in journal.tracked}
    known |= {id_ for journal in journals for id_, _ in journal.born()}
    known |= {id_ for journal in journals for id_ in journal.notes if id_.version == journal.version}
    there = {journal.version for journal in journals}
    seen: set[Id] = set()
    for line in last.lines:
        if line.kind != "text" or line.inside:
            continue
        for found in MENTIONED.finditer(line.text):
            id_ = Id(int(found["version"]), int(found["number"]))
            if id_ in seen or id_ in known:
                continue
            seen.add(id_)
            if id_.version > last.version:
                yield Trouble(
                    "unknown", id_, line.number, f"belongs to no version: this is v{last.version}", wrong=True
                )
            elif id_.version in there and id_.version < last.version:
                what = f"belongs to no version: {name_of(id_.version)}.md has no such point"
                yield Trouble("unknown", id_, line.number, what, wrong=True)
