"""The logs of several attempts as one history, where each attempt goes on from a checkpoint of the one before it."""

# Paths are texts here, as in the rest of this room.

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from muster.domain.resumed import Resumption
from muster.observe.joining import Joint, below, joint_of, not_run_again, resumption_of, stretch_of
from muster.observe.metrics.around import Source
from muster.observe.metrics.discover import Run, files_of
from muster.ports.metrics import Column, Ended, MetricReader, Rows, Said, State

Columns = dict[str, Column]


@dataclass(frozen=True, slots=True)
class Piece:
    """One attempt's part of a log, or that of several which appended to one file."""

    attempts: tuple[int, ...]
    make: Callable[[], MetricReader] | None  # None: it is not there
    saved: float | None = None  # the step of the checkpoint that it went on from


class Joined:
    """A metric reader. The first look reads all; a later one costs what is new, unless it changes what counts."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces
        self._readers: list[MetricReader | None] = []
        self._joint: Joint | None = None  # known for good once the last attempt has written something
        self._ends: dict[str, float] = {}  # the last step of each key
        self._handed = False
        self._stale = True  # the next look begins anew
        self.resumption: Resumption | None = None
        self._make_readers()

    def _make_readers(self) -> None:
        self._readers = [piece.make() if piece.make else None for piece in self._pieces]

    def read(self) -> Iterator[Rows]:
        joint, self._stale = None if self._stale else self._joint, True  # until this look has come to its end
        if joint is None:
            yield from self._all()
            return
        news = [rows for reader in self._readers[:-1] if reader for rows in reader.read()]
        last = self._readers[-1]
        more = list(last.read()) if last else []
        if news or any(rows.fresh or self._goes_back(rows) for rows in more):
            yield from self._all()
            return
        for rows in more:
            columns = _moved(dict(rows.columns), joint.shifts[-1])
            self._note_ends(columns)
            yield Rows(columns, rows.count)
        self._stale = False

    def _all(self) -> Iterator[Rows]:
        if self._handed:
            self._make_readers()
        self._handed, fresh = True, self._handed
        read = [self._columns(piece, reader) for piece, reader in zip(self._pieces, self._readers, strict=True)]
        stretches = [stretch_of(*(steps for steps, _ in columns.values())) for columns, _ in read]
        joint = joint_of(stretches, [piece.saved for piece in self._pieces])
        self.resumption = resumption_of([piece.attempts for piece in self._pieces], stretches, joint)
        self._ends.clear()
        for (columns, count), end, shift in zip(read, joint.ends, joint.shifts, strict=True):
            kept = _moved({key: each for key, column in columns.items() if len((each := _cut(column, end))[0])}, shift)
            self._note_ends(kept)
            yield Rows(kept, count, fresh)
            fresh = False
        self._joint, self._stale = joint, stretches[-1].first is None

    def _columns(self, piece: Piece, reader: MetricReader | None) -> tuple[Columns, int]:
        found: Columns = {}
        count = 0
        for rows in reader.read() if reader else ():
            if rows.fresh:
                found.clear()
                count = 0
            count += rows.count
            for key, (steps, values) in rows.columns.items():
                column = found.setdefault(key, (array("d"), array("d")))
                column[0].extend(steps)
                column[1].extend(values)
        times = len(piece.attempts) - 1
        if times:
            found = {key: _masked(column, not_run_again(column[0], times)) for key, column in found.items()}
        return found, count

    def _goes_back(self, rows: Rows) -> bool:
        """Another attempt appended to the same file."""
        if len(self._pieces[-1].attempts) == 1 or self._joint is None:
            return False
        shift = self._joint.shifts[-1]
        return any(steps[0] + shift < self._ends.get(key, steps[0]) for key, (steps, _) in rows.columns.items())

    def _note_ends(self, columns: Columns) -> None:
        self._ends.update({key: steps[-1] for key, (steps, _) in columns.items()})

    def state(self) -> State:
        return {}

    def restore(self, state: State) -> None:  # noqa: ARG002 - what counts is found out anew
        self._stale = True

    @property
    def files(self) -> list[str]:
        """Of all attempts."""
        found = [each for piece, reader in zip(self._pieces, self._readers, strict=True) if reader
                 for each in files_of(reader)]  # fmt: skip
        return list(dict.fromkeys(found))

    @property
    def said(self) -> Said:
        told = [reader.said for reader in self._readers if reader]
        skipped = tuple(text for said in told for text in said.skipped)
        written = [said.written for said in told if said.written is not None]
        return replace(told[-1], skipped=skipped, written=max(written, default=None))

    @property
    def ended(self) -> Ended | None:
        """The last attempt's own word."""
        last = self._readers[-1]
        return last.ended if last else None


def _cut(column: Column, end: float) -> Column:
    return column if end == float("inf") else _masked(column, below(column[0], end))


def _masked(column: Column, mask: Any) -> Column:
    import numpy as np

    steps, values = (np.frombuffer(each)[mask] for each in column)
    return array("d", steps.tobytes()), array("d", values.tobytes())


def _moved(columns: Columns, shift: float) -> Columns:
    if not shift:
        return columns
    return {key: (array("d", (step + shift for step in steps)), values) for key, (steps, values) in columns.items()}


# -- runs


@dataclass(frozen=True, slots=True)
class AttemptRun:
    """What one attempt of a chain logged."""

    attempt: int
    run: Run | None
    saved: float | None = None  # the step of the checkpoint that it went on from


def joined_run(chain: Sequence[AttemptRun]) -> Run | None:
    """All attempts as one run, under the sources of the last one that logged something. None: none did."""
    some = [each for each in chain if each.run is not None]
    if not some or some[-1].run is None:
        return None
    newest = some[-1].run
    if len(chain) == 1:
        return newest
    matched = [_pieces(source, newest, chain) for source in newest.sources]
    used = {path for _, paths in matched for path in paths}
    sources = [_joined(source, pieces) for source, (pieces, _) in zip(newest.sources, matched, strict=True)]
    for each in some[:-1]:  # what the last attempt has not written yet
        for source in each.run.sources if each.run else ():
            if os.path.realpath(source.path) not in used:
                pieces, paths = _pieces(source, each.run, chain)  # type: ignore[arg-type]
                used |= set(paths)
                sources.append(_joined(source, pieces))
    return Run(newest.folder, tuple(sources), newest.passed)


def _joined(source: Source, pieces: Sequence[Piece]) -> Source:
    if len(pieces) == 1 and len(pieces[0].attempts) == 1:
        return source
    return replace(source, make=lambda: Joined(pieces))


def _pieces(source: Source, of: Run, chain: Sequence[AttemptRun]) -> tuple[list[Piece], list[str]]:
    """The same log of each attempt; those that share one file are one piece."""
    pieces: list[tuple[str, Piece]] = []
    for each in chain:
        found = _same(source, of, each.run) if each.run else None
        place = os.path.realpath(found.path) if found else ""
        if found and pieces and pieces[-1][0] == place:
            before = pieces[-1][1]
            pieces[-1] = (place, replace(before, attempts=(*before.attempts, each.attempt), make=found.make))
        else:
            pieces.append((place, Piece((each.attempt,), found.make if found else None, each.saved)))
    return [piece for _, piece in pieces], [place for place, _ in pieces if place]


def _same(source: Source, of: Run, run: Run) -> Source | None:
    """By its name below the run's folder; W&B and event files have names of their own."""
    alike = [each for each in run.sources if each.kind == source.kind]
    name = os.path.relpath(source.path, of.folder)
    for each in alike:
        if os.path.relpath(each.path, run.folder) == name:
            return each
    mine = [each for each in of.sources if each.kind == source.kind]
    return alike[0] if len(alike) == len(mine) == 1 else None
