"""The logs of several attempts as one history, where each attempt goes on from a checkpoint of the one before it."""

# Paths are texts here, as in the rest of this room.

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from muster.model.provenance import Resumption
from muster.readers.discovery.folder_walk import LogSource
from muster.readers.log_rows import (
    JoinPlan,
    build_resumption,
    mask_of_kept_rows,
    plan_join,
    steps_of_columns,
)
from muster.readers.records.history_parts import cut_column, mask_below_step
from muster.readers.records.logged_runs import LoggedRun, files_of_reader
from muster.readers.records.metric_reader import (
    MetricColumn,
    MetricReader,
    MetricRows,
    MetricSource,
    ReaderState,
    RecordedRunEnd,
)

HistoryColumns = dict[str, MetricColumn]


@dataclass(frozen=True, slots=True)
class HistoryPiece:
    """One attempt's part of a log, or that of several which appended to one file."""

    attempts: tuple[int, ...]
    make: Callable[[], MetricReader] | None  # None: it is not there
    saved: float | None = None  # the step of the checkpoint that it went on from


class JoinedHistory:
    """A metric reader. The first look reads all; a later one costs what is new, unless it changes what counts."""

    def __init__(self, pieces: Sequence[HistoryPiece]) -> None:
        self._pieces = pieces
        self._readers: list[MetricReader | None] = []
        self._joint: JoinPlan | None = None  # known for good once the last attempt has written something
        self._ends: dict[str, float] = {}  # the last step of each key
        self._handed = False
        self._stale = True  # the next look begins anew
        self.resumption: Resumption | None = None
        self._make_readers()

    def _make_readers(self) -> None:
        self._readers = [piece.make() if piece.make else None for piece in self._pieces]

    def read(self) -> Iterator[MetricRows]:
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
            columns = _shift_columns(dict(rows.columns), joint.shifts[-1])
            self._note_ends(columns)
            yield MetricRows(columns, rows.count)
        self._stale = False

    def _all(self) -> Iterator[MetricRows]:
        if self._handed:
            self._make_readers()
        self._handed, fresh = True, self._handed
        read = [self._columns(piece, reader) for piece, reader in zip(self._pieces, self._readers, strict=True)]
        stretches = [steps_of_columns(*(steps for steps, _ in columns.values())) for columns, _ in read]
        joint = plan_join(stretches, [piece.saved for piece in self._pieces])
        self.resumption = build_resumption([piece.attempts for piece in self._pieces], stretches, joint)
        self._ends.clear()
        for (columns, count), end, shift in zip(read, joint.ends, joint.shifts, strict=True):
            kept = _shift_columns(
                {key: each for key, column in columns.items() if len((each := _cut_column(column, end))[0])}, shift
            )
            self._note_ends(kept)
            yield MetricRows(kept, count, fresh)
            fresh = False
        self._joint, self._stale = joint, stretches[-1].first is None

    def _columns(self, piece: HistoryPiece, reader: MetricReader | None) -> tuple[HistoryColumns, int]:
        found: HistoryColumns = {}
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
            found = {key: cut_column(column, mask_of_kept_rows(column[0], times)) for key, column in found.items()}
        return found, count

    def _goes_back(self, rows: MetricRows) -> bool:
        """Another attempt appended to the same file."""
        if len(self._pieces[-1].attempts) == 1 or self._joint is None:
            return False
        shift = self._joint.shifts[-1]
        return any(steps[0] + shift < self._ends.get(key, steps[0]) for key, (steps, _) in rows.columns.items())

    def _note_ends(self, columns: HistoryColumns) -> None:
        self._ends.update({key: steps[-1] for key, (steps, _) in columns.items()})

    def state(self) -> ReaderState:
        return {}

    def restore(self, state: ReaderState) -> None:  # noqa: ARG002 - what counts is found out anew
        self._stale = True

    @property
    def files(self) -> list[str]:
        """Of all attempts."""
        found = [
            each
            for piece, reader in zip(self._pieces, self._readers, strict=True)
            if reader
            for each in files_of_reader(reader)
        ]
        return list(dict.fromkeys(found))

    @property
    def said(self) -> MetricSource:
        told = [reader.said for reader in self._readers if reader]
        skipped = tuple(text for said in told for text in said.skipped)
        written = [said.written for said in told if said.written is not None]
        return replace(told[-1], skipped=skipped, written=max(written, default=None))

    @property
    def ended(self) -> RecordedRunEnd | None:
        """The last attempt's own word."""
        last = self._readers[-1]
        return last.ended if last else None


def _cut_column(column: MetricColumn, end: float) -> MetricColumn:
    return column if end == float("inf") else cut_column(column, mask_below_step(column[0], end))


def _shift_columns(columns: HistoryColumns, shift: float) -> HistoryColumns:
    if not shift:
        return columns
    return {key: (array("d", (step + shift for step in steps)), values) for key, (steps, values) in columns.items()}


# -- runs


@dataclass(frozen=True, slots=True)
class AttemptLogs:
    """What one attempt of a chain logged."""

    attempt: int
    run: LoggedRun | None
    saved: float | None = None  # the step of the checkpoint that it went on from


def join_attempt_runs(chain: Sequence[AttemptLogs]) -> LoggedRun | None:
    """All attempts as one run, under the sources of the last one that logged something. None: none did."""
    some = [each for each in chain if each.run is not None]
    if not some or some[-1].run is None:
        return None
    newest = some[-1].run
    if len(chain) == 1:
        return newest
    matched = [_pieces_of_source(source, newest, chain) for source in newest.sources]
    used = {path for _, paths in matched for path in paths}
    sources = [_joined_source(source, pieces) for source, (pieces, _) in zip(newest.sources, matched, strict=True)]
    for each in some[:-1]:  # what the last attempt has not written yet
        for source in each.run.sources if each.run else ():
            if os.path.realpath(source.path) not in used:
                pieces, paths = _pieces_of_source(source, each.run, chain)  # type: ignore[arg-type]
                used |= set(paths)
                sources.append(_joined_source(source, pieces))
    return LoggedRun(newest.folder, tuple(sources), newest.passed)


def _joined_source(source: LogSource, pieces: Sequence[HistoryPiece]) -> LogSource:
    if len(pieces) == 1 and len(pieces[0].attempts) == 1:
        return source
    return replace(source, make=lambda: JoinedHistory(pieces))


def _pieces_of_source(
    source: LogSource, of: LoggedRun, chain: Sequence[AttemptLogs]
) -> tuple[list[HistoryPiece], list[str]]:
    """The same log of each attempt; those that share one file are one piece."""
    pieces: list[tuple[str, HistoryPiece]] = []
    for each in chain:
        found = _same_source_in_run(source, of, each.run) if each.run else None
        place = os.path.realpath(found.path) if found else ""
        if found and pieces and pieces[-1][0] == place:
            before = pieces[-1][1]
            pieces[-1] = (place, replace(before, attempts=(*before.attempts, each.attempt), make=found.make))
        else:
            pieces.append((place, HistoryPiece((each.attempt,), found.make if found else None, each.saved)))
    return [piece for _, piece in pieces], [place for place, _ in pieces if place]


def _same_source_in_run(source: LogSource, of: LoggedRun, run: LoggedRun) -> LogSource | None:
    """By its name below the run's folder; W&B and event files have names of their own."""
    alike = [each for each in run.sources if each.kind == source.kind]
    name = os.path.relpath(source.path, of.folder)
    for each in alike:
        if os.path.relpath(each.path, run.folder) == name:
            return each
    mine = [each for each in of.sources if each.kind == source.kind]
    return alike[0] if len(alike) == len(mine) == 1 else None
