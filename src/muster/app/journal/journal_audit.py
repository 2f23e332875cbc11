"""`muster journal audit`: numbers against artifacts, points that were carried for long or got lost, blocks and listed
files that changed since they were filled.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from muster.app.documents.text_tables import parse_pipe_table
from muster.app.journal.generated_blocks import GeneratedBlock, find_generated_blocks
from muster.app.journal.journal_points import MENTIONED_ID, OPEN, Journal, PointId
from muster.app.journal.journal_text import UnreadableJournal
from muster.app.journal.journal_versions import (
    OpenedJournal,
    journal_name,
    journal_path,
    journal_versions_in,
    open_journal_or_none,
    unreadable_journal_error,
)
from muster.app.journal.metric_index import MetricIndex
from muster.app.journal.number_audit import DISAGREES, FINDING_STATES, JournalFinding, audit_journal_numbers
from muster.text.terminal_text import replace_unprintable

CARRIED_FOR_LONG = 3  # times that a point was carried, from which it is told


@dataclass(frozen=True, slots=True)
class PointProblem:
    kind: str  # carried | vanished | unknown
    id: PointId
    line: int  # 0: it is nowhere in this journal
    message: str
    wrong: bool  # whether it is more than a warning


def find_point_problems(journals: Sequence[Journal]) -> list[PointProblem]:
    """Of the last one; the others are older, in order."""
    return [*_points_carried_long(journals), *_points_that_vanished(journals), *_points_of_no_version(journals)]


def times_point_was_carried(id_: PointId, journals: Sequence[Journal]) -> int:
    """As the text says it, or as often as it was listed as open before: whichever is more."""
    told = [each.carried for journal in journals for each in journal.tracked if each.id == id_]
    listed = sum(each.id == id_ and each.state == OPEN for journal in journals[:-1] for each in journal.tracked)
    return max([listed, *told[-1:]])


def _points_carried_long(journals: Sequence[Journal]) -> Iterator[PointProblem]:
    for each in journals[-1].tracked:
        count = times_point_was_carried(each.id, journals)
        if each.state == OPEN and count >= CARRIED_FOR_LONG:
            what = f"carried {count} times, since v{each.id.version}: do it, drop it with a reason, or cut it smaller"
            yield PointProblem("carried", each.id, each.line, what, wrong=False)


def _points_that_vanished(journals: Sequence[Journal]) -> Iterator[PointProblem]:
    """Open in some version, settled in none, and without a box here.

    Versions that were written before points had ids follow nothing: there nothing can get lost.
    """
    open_: dict[PointId, int] = {}  # the version that it was seen in last
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
            what = f"open in {journal_name(version)} and neither done nor dropped; here it has no box any more"
            yield PointProblem("vanished", id_, 0, what, wrong=True)


def _points_of_no_version(journals: Sequence[Journal]) -> Iterator[PointProblem]:
    """Ids that no version gave."""
    last = journals[-1]
    known = {each.id for journal in journals[:-1] for each in journal.tracked}
    known |= {id_ for journal in journals for id_, _ in journal.born()}
    known |= {id_ for journal in journals for id_ in journal.notes if id_.version == journal.version}
    there = {journal.version for journal in journals}
    seen: set[PointId] = set()
    for line in last.lines:
        if line.kind != "text" or line.inside:
            continue
        for found in MENTIONED_ID.finditer(line.text):
            id_ = PointId(int(found["version"]), int(found["number"]))
            if id_ in seen or id_ in known:
                continue
            seen.add(id_)
            if id_.version > last.version:
                yield PointProblem(
                    "unknown", id_, line.number, f"belongs to no version: this is v{last.version}", wrong=True
                )
            elif id_.version in there and id_.version < last.version:
                what = f"belongs to no version: {journal_name(id_.version)}.md has no such point"
                yield PointProblem("unknown", id_, line.number, what, wrong=True)


_ESCAPED = re.compile(r"\\([\\`*|<~\]&_])")
_FOLDER = re.compile(r"(?P<path>.*?/) ?[(（][0-9]+ [^()（）]*[)）]")
_HASH = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class ListedArtifact:
    path: str
    sha256: str  # its first digits
    run: str


def artifacts_listed_in(blocks: Sequence[GeneratedBlock]) -> Iterator[ListedArtifact]:
    """Of blocks that nobody edited: what a person wrote into one says nothing about a file."""
    for block in blocks:
        if block.kind != "artifacts" or block.edited:
            continue
        lines = [(0, line.rstrip("\r")) for line in block.body.split("\n") if line.startswith("|")]
        for row in (parse_pipe_table(lines) or [])[1:]:
            texts = [_ESCAPED.sub(r"\1", cell.text) for cell in row.cells]
            if len(texts) == 3 and _HASH.fullmatch(texts[2]):
                folder = _FOLDER.fullmatch(texts[0])
                yield ListedArtifact(folder["path"] if folder else texts[0], texts[2], block.run)


HashOfPath = Callable[[str], str | None]  # of a file or folder; None: it is gone
VERSIONS_LOOKED_BACK = 200  # versions
MOST_GAPS = 20


@dataclass(frozen=True, slots=True)
class ChangedArtifact:
    path: str
    run: str
    state: str  # missing | changed
    was: str


@dataclass(frozen=True, slots=True)
class PlacedFinding:
    line: int
    column: int
    finding: JournalFinding


@dataclass(frozen=True, slots=True)
class AuditedJournal:
    path: Path
    version: int
    numbers: tuple[PlacedFinding, ...]
    points: tuple[PointProblem, ...]
    edited: tuple[GeneratedBlock, ...]
    artifacts: tuple[ChangedArtifact, ...]
    notes: tuple[str, ...]

    @property
    def counts(self) -> dict[str, int]:
        return {state: sum(each.finding.state == state for each in self.numbers) for state in FINDING_STATES}

    @property
    def wrong(self) -> bool:
        points = any(each.wrong for each in self.points)
        return bool(self.counts[DISAGREES] or points or self.edited or self.artifacts)


def audit_opened_journal(
    opened: OpenedJournal, books: Mapping[int, MetricIndex], hash_: HashOfPath, notes: Sequence[str] = ()
) -> AuditedJournal:
    document = opened.document
    try:
        blocks = find_generated_blocks(document.text, opened.lines)
    except UnreadableJournal as error:
        raise unreadable_journal_error(document.path, error) from None
    numbers = audit_journal_numbers(document.text, opened.lines, opened.version, books)
    journals, told = _read_older_journals(opened)
    return AuditedJournal(
        document.path,
        opened.version,
        tuple(_place_of_finding(opened, each) for each in numbers),
        tuple(find_point_problems([*journals, opened.journal])),
        tuple(block for block in blocks if block.edited),
        tuple(_changed_artifacts(blocks, document.path.parent, hash_)),
        (*notes, *told),
    )


def _read_older_journals(opened: OpenedJournal) -> tuple[list[Journal], list[str]]:
    """Those that can be read, and what is to be said of the others."""
    folder = opened.document.path.parent
    known = [each for each in journal_versions_in(folder) if each < opened.version][-VERSIONS_LOOKED_BACK:]
    found, notes = [], []
    for version in known:
        journal = open_journal_or_none(journal_path(folder, version))
        if journal is None:
            notes.append(f"{journal_name(version)}.md can't be read: its points are not followed")
        else:
            found.append(journal.journal)
    every = [*known, opened.version]
    gaps = [each for a, b in pairwise(every) for each in range(a + 1, b)][:MOST_GAPS]
    if gaps:
        notes.append(f"there is no {', '.join(f'{journal_name(each)}.md' for each in gaps)}")
    return found, notes


def _changed_artifacts(blocks: Sequence[GeneratedBlock], base: Path, hash_: HashOfPath) -> Iterator[ChangedArtifact]:
    for each in artifacts_listed_in(blocks):
        now = hash_(str(base / each.path))
        if now is None:
            yield ChangedArtifact(each.path, each.run, "missing", each.sha256)
        elif not now.startswith(each.sha256):
            yield ChangedArtifact(each.path, each.run, "changed", each.sha256)


def _place_of_finding(opened: OpenedJournal, finding: JournalFinding) -> PlacedFinding:
    starts = [line.start for line in opened.lines]
    at = bisect_right(starts, finding.start) - 1
    line = opened.lines[at]
    return PlacedFinding(line.number, finding.start - line.start + 1, _finding_for_terminal(finding))


def _finding_for_terminal(finding: JournalFinding) -> JournalFinding:
    """A text may hold what a terminal would obey."""
    return replace(finding, text=replace_unprintable(finding.text))


def audited_journal_as_json(audited: AuditedJournal) -> dict[str, Any]:
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
