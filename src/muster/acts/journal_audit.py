"""`muster journal audit`: numbers against artifacts, points that got stuck or lost, blocks that were edited."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from muster.acts.journal_files import Opened, file_of, opened_or_none, unreadable, versions
from muster.domain.terminal_text import blanked
from muster.report.journal.audit import DISAGREES, STATES, Finding, audit_numbers
from muster.report.journal.blocks import Block, find
from muster.report.journal.book import Book
from muster.report.journal.compose import name_of
from muster.report.journal.history import Trouble, troubles
from muster.report.journal.listed import listed
from muster.report.journal.points import Journal
from muster.report.journal.scan import Unreadable

Hash = Callable[[str], str | None]  # of a file or folder; None: it is gone
LOOKED_BACK = 200  # versions
MOST_GAPS = 20


@dataclass(frozen=True, slots=True)
class Artifact:
    path: str
    run: str
    state: str  # missing | changed
    was: str


@dataclass(frozen=True, slots=True)
class Spot:
    line: int
    column: int
    finding: Finding


@dataclass(frozen=True, slots=True)
class Audited:
    path: Path
    version: int
    numbers: tuple[Spot, ...]
    points: tuple[Trouble, ...]
    edited: tuple[Block, ...]
    artifacts: tuple[Artifact, ...]
    notes: tuple[str, ...]

    @property
    def counts(self) -> dict[str, int]:
        return {state: sum(each.finding.state == state for each in self.numbers) for state in STATES}

    @property
    def wrong(self) -> bool:
        points = any(each.wrong for each in self.points)
        return bool(self.counts[DISAGREES] or points or self.edited or self.artifacts)


def audit(opened: Opened, books: Mapping[int, Book], hash_: Hash, notes: Sequence[str] = ()) -> Audited:
    document = opened.document
    try:
        blocks = find(document.text, opened.lines)
    except Unreadable as error:
        raise unreadable(document.path, error) from None
    numbers = audit_numbers(document.text, opened.lines, opened.version, books)
    journals, told = _older(opened)
    return Audited(
        document.path,
        opened.version,
        tuple(_spot(opened, each) for each in numbers),
        tuple(troubles([*journals, opened.journal])),
        tuple(block for block in blocks if block.edited),
        tuple(_artifacts(blocks, document.path.parent, hash_)),
        (*notes, *told),
    )


def _older(opened: Opened) -> tuple[list[Journal], list[str]]:
    """Those that can be read, and what is to be said of the others."""
    folder = opened.document.path.parent
    known = [each for each in versions(folder) if each < opened.version][-LOOKED_BACK:]
    found, notes = [], []
    for version in known:
        journal = opened_or_none(file_of(folder, version))
        if journal is None:
            notes.append(f"{name_of(version)}.md can't be read: its points are not followed")
        else:
            found.append(journal.journal)
    every = [*known, opened.version]
    gaps = [each for a, b in pairwise(every) for each in range(a + 1, b)][:MOST_GAPS]
    if gaps:
        notes.append(f"there is no {', '.join(f'{name_of(each)}.md' for each in gaps)}")
    return found, notes


def _artifacts(blocks: Sequence[Block], base: Path, hash_: Hash) -> Iterator[Artifact]:
    for each in listed(blocks):
        now = hash_(str(base / each.path))
        if now is None:
            yield Artifact(each.path, each.run, "missing", each.sha256)
        elif not now.startswith(each.sha256):
            yield Artifact(each.path, each.run, "changed", each.sha256)


def _spot(opened: Opened, finding: Finding) -> Spot:
    starts = [line.start for line in opened.lines]
    at = bisect_right(starts, finding.start) - 1
    line = opened.lines[at]
    return Spot(line.number, finding.start - line.start + 1, _plain(finding))


def _plain(finding: Finding) -> Finding:
    """A text may hold what a terminal would obey."""
    return replace(finding, text=blanked(finding.text))


def as_json(audited: Audited) -> dict[str, Any]:
    return {
        "file": str(audited.path),
        "version": audited.version,
        "wrong": audited.wrong,
        "counts": audited.counts,
        "numbers": [
            {
                "line": each.line,
                "column": each.column,
                "text": each.finding.text,
                "state": each.finding.state,
                "should": each.finding.should or None,
                "because": each.finding.because,
            }
            for each in audited.numbers
        ],
        "points": [
            {
                "id": str(each.id),
                "kind": each.kind,
                "line": each.line or None,
                "because": each.message,
                "wrong": each.wrong,
            }
            for each in audited.points
        ],
        "edited": [{"kind": each.kind, "run": each.run, "line": each.line} for each in audited.edited],
        "artifacts": [
            {"path": each.path, "run": each.run, "state": each.state, "sha256": each.was} for each in audited.artifacts
        ],
        "notes": list(audited.notes),
    }
