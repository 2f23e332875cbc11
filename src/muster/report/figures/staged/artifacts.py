"""What a staged training left behind, read for its pictures: whatever can be read is, and the rest is noted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from muster.report.figures.staged.plain import mapping, name_of, number, whole
from muster.stages.errors import SpecError
from muster.stages.schedule import Schedule
from muster.stages.tables import STAGES, STEPS

GATE, SCHEDULE, SUMMARY = "gate_trace.jsonl", "schedule_trace.json", "stage_summary.json"
EVAL, MULTI, TRAIN = "eval_history.jsonl", "eval_multi_history.jsonl", "train.jsonl"
ENDINGS = (GATE, SCHEDULE, SUMMARY, EVAL, MULTI, TRAIN)  # how a file's name ends; the first that fits counts
MOST_ROWS = 2000  # of one file that are drawn: more than a page has pixels for
SURVIVAL = ("survival", "avg_final", "min_final")
FIRST_DEATH = ("first_death", "first_death_step", "first_death_mean")
FIRST_DEATH_P10 = ("first_death_p10",)  # much earlier than the mean: on one scale with it nothing would be seen
EARLY_DEATH = ("early_death_100", "early_death")
CURVES = (SURVIVAL, FIRST_DEATH, FIRST_DEATH_P10, EARLY_DEATH)
Label = tuple[int, str]  # iteration, stage as the run wrote it
_MOVES = ("advance", "fall_back")  # they are never thinned out


class Note(NamedTuple):
    """What a reader must know, put into words later: there are two languages."""

    key: str
    parts: Mapping[str, object]


class Judged(NamedTuple):
    side: str  # success | failure
    key: str
    window: str
    bound: str
    threshold: float
    value: float  # what the window made of it; NaN: it could not be judged
    holds: bool | None


class Seen(NamedTuple):
    """A row of a gate's trace."""

    iteration: int
    stage: str
    state: str
    phase: float
    values: Mapping[str, float]
    checks: tuple[Judged, ...]


class GateTrace(NamedTuple):
    file: str
    name: str
    rows: tuple[Seen, ...]  # those that are drawn
    counts: Mapping[str, int] | None  # of all decisions, by state; None: not all of them were read
    total: int  # rows that there are


class Left(NamedTuple):
    """A row of a schedule's trace."""

    iteration: int
    stage: str
    ratio: Mapping[str, float]
    duration: Mapping[str, float]


class Told(NamedTuple):
    """A warning."""

    type: str
    onset: int | None
    iteration: int | None
    threshold: float
    duration: float


class ScheduleTrace(NamedTuple):
    file: str
    iterations: int | None  # of the whole run
    schedule: Schedule | None
    rows: tuple[Left, ...]
    warnings: tuple[Told, ...]


class Counted(NamedTuple):
    iteration: int
    stage: str
    number: float
    of: float  # NaN: not known


class Events(NamedTuple):
    file: str
    what: str
    totals: Mapping[str, float]
    rows: tuple[Counted, ...]


class Series(NamedTuple):
    """Values by iteration."""

    file: str
    kind: str  # train | eval | multi-eval
    at: tuple[int, ...]
    stages: tuple[str, ...]
    values: Mapping[str, tuple[float, ...]]  # NaN: there is none
    total: int  # rows that there are


class StagedArtifacts(NamedTuple):
    gates: tuple[GateTrace, ...] = ()
    schedule: ScheduleTrace | None = None
    events: Events | None = None
    series: tuple[Series, ...] = ()
    labels: Mapping[str, tuple[Label, ...]] = {}  # of every row that was read, drawn or not; by file
    notes: tuple[Note, ...] = ()
    hashes: Mapping[str, str] = {}  # of the files, where they are known


def kind_of(name: str) -> str | None:
    """Which of the files that is: `v40_gate_trace.jsonl` is a gate's trace."""
    base = name.rpartition("/")[2]
    exact = next((each for each in ENDINGS if base == each), None)
    return exact or next((each for each in ENDINGS if base.endswith(f"_{each}")), None)


def artifacts_of(
    texts: Mapping[str, str], hashes: Mapping[str, str] | None = None, thinned: Mapping[str, int] | None = None,
    notes: Sequence[Note] = (),
) -> StagedArtifacts:  # fmt: skip
    """`texts`: by file name. `thinned`: files of which only some lines were read, and how many they have.

    `notes`: what is known already of files that are not among the texts.
    """
    read = _Reading(thinned or {})
    read.notes += notes
    for name, text in texts.items():
        read.take(name, text)
    return StagedArtifacts(
        tuple(read.gates), read.schedule, read.events, tuple(read.series), read.labels, tuple(read.notes), hashes or {}
    )


class _Reading:
    def __init__(self, thinned: Mapping[str, int]) -> None:
        self.thinned = thinned
        self.gates: list[GateTrace] = []
        self.schedule: ScheduleTrace | None = None
        self.events: Events | None = None
        self.series: list[Series] = []
        self.labels: dict[str, tuple[Label, ...]] = {}
        self.notes: list[Note] = []

    def note(self, key: str, **parts: object) -> None:
        self.notes.append(Note(key, parts))

    def take(self, name: str, text: str) -> None:
        kind = kind_of(name)
        try:
            if kind == GATE:
                self._gate(name, text)
            elif kind == SCHEDULE and self._first(name, self.schedule):
                self.schedule = self._schedule(name, text)
            elif kind == SUMMARY and self._first(name, self.events):
                self.events = self._events(name, text)
            elif kind in (EVAL, MULTI, TRAIN):
                self._series(name, {EVAL: "eval", MULTI: "multi-eval", TRAIN: "train"}[kind], text)
        except (ValueError, RecursionError, OverflowError) as error:
            self.note("unreadable", file=name, why=_why(error))

    def _first(self, name: str, known: object) -> bool:
        if known is not None:
            self.note("another", file=name)
        return known is None

    def _gate(self, name: str, text: str) -> None:
        title, rows = "", []
        for row in self._rows(name, text, head=True):
            if "settings" in row:
                title = name_of(row.get("gate"))
            else:
                rows.append(_seen(row))
        if not rows:
            self.note("empty", file=name)
            return
        counts = None if name in self.thinned else dict(Counter(each.state for each in rows))
        self.labels[name] = tuple((each.iteration, each.stage) for each in rows)
        kept = self._few(name, rows, [each.state in _MOVES for each in rows])
        total = self.thinned.get(name, len(rows))
        self.gates.append(GateTrace(name, title or "gate", tuple(kept), counts, total))

    def _series(self, name: str, kind: str, text: str) -> None:
        found = list(self._rows(name, text))
        wanted = [key for group in CURVES for key in group]
        rows = [row for row in found if any(key in row for key in wanted)]
        if not rows:
            self.note("nothing_drawn" if found else "empty", file=name)
            return
        self.labels[name] = tuple((row["iteration"], _stage(row)) for row in rows)
        total = self.thinned.get(name, len(rows))
        rows = self._few(name, rows, [False] * len(rows))
        keys = [key for key in wanted if any(key in row for row in rows)]
        values = {key: tuple(number(row.get(key)) for row in rows) for key in keys}
        at = tuple(row["iteration"] for row in rows)
        self.series.append(Series(name, kind, at, tuple(_stage(row) for row in rows), values, total))

    def _schedule(self, name: str, text: str) -> ScheduleTrace:
        written = _document(text)
        rows = [
            Left(row["iteration"], _stage(row), _numbers(row.get("remaining_ratio")),
                 _numbers(row.get("warn_duration")))
            for row in _settled(_objects(written.get("trace")))
        ]  # fmt: skip
        warnings = [
            Told(name_of(row.get("type")), whole(row.get("onset")), whole(row.get("iteration")),
                 number(row.get("threshold")), number(row.get("duration")))
            for row in _objects(written.get("warnings"))
        ]  # fmt: skip
        self.labels[name] = tuple((row.iteration, row.stage) for row in rows)
        kept = self._few(name, rows, [False] * len(rows))
        return ScheduleTrace(
            name, whole(written.get("iterations")), self._declared(name, written), tuple(kept), tuple(warnings)
        )

    def _declared(self, name: str, written: Mapping[str, Any]) -> Schedule | None:
        stages = [
            {"from": row.get("from"), "to": row.get("to"), "type": row.get("type"), "file": row.get("source") or "-"}
            for row in _objects(written.get("stages"))
        ]
        text = written.get("schedule")
        try:
            if isinstance(text, str) and text.strip():
                return Schedule.parse(text)
            return Schedule.of(stages) if stages else None
        except (SpecError, ValueError, TypeError) as error:
            self.note("no_schedule", file=name, why=_why(error))
            return None

    def _events(self, name: str, text: str) -> Events:
        written = _document(text)
        rows = [
            Counted(row["iteration"], _stage(row), count, number(row.get("of")))
            for row in _settled(_objects(written.get("by_iteration")), again=True)
            if (count := number(row.get("count"))) >= 0
        ]
        self.labels[name] = tuple((row.iteration, row.stage) for row in rows)
        totals = {stage: count for stage, count in _numbers(written.get("events")).items() if count >= 0}
        summed: dict[str, float] = {}
        for row in rows:
            summed[row.stage] = summed.get(row.stage, 0) + row.number
        if totals and rows and {s: c for s, c in totals.items() if c} != {s: c for s, c in summed.items() if c}:
            self.note("sums", file=name, events=_told(totals), rows=_told(summed))
        if not totals and not rows:
            self.note("empty", file=name)
        return Events(name, name_of(written.get("what")) or "events", summed if rows else totals, tuple(rows))

    def _rows(self, name: str, text: str, *, head: bool = False) -> Iterator[dict[str, Any]]:
        lines = [line for line in text.split("\n") if line.strip()]
        read = [_line(line) for line in lines]
        objects = [row for row in read if row is not None]
        first = next((row for row in objects if isinstance(row.get("settings"), Mapping)), None) if head else None
        rows = [row for row in objects if "settings" not in row or any(key in row for key in STEPS)]
        found = list(_settled(rows))
        torn = len(read) - len(objects)
        useless = sum(whole(_at(row)) is None for row in rows)
        if torn:
            last = torn == 1 and read[-1] is None
            self.note("torn" if last else "skipped", file=name, count=torn)
        if useless:
            self.note("no_iteration", file=name, count=useless)
        if name in self.thinned:
            self.note("sampled", file=name, count=len(found), total=self.thinned[name])
        if first is not None:
            yield first
        yield from found

    def _few(self, name: str, rows: list[Any], keep: Sequence[bool]) -> list[Any]:
        if len(rows) <= MOST_ROWS:
            return rows
        every = -(-len(rows) // MOST_ROWS)
        moves = [at for at, kept in enumerate(keep) if kept]
        always = set(moves[:: max(1, -(-len(moves) // MOST_ROWS))])
        kept = [row for at, row in enumerate(rows) if at % every == 0 or at in always or at == len(rows) - 1]
        self.note("thinned", file=name, count=len(kept), total=len(rows))
        return kept


def _line(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _document(text: str) -> dict[str, Any]:
    row = json.loads(text)
    if not isinstance(row, dict):
        raise ValueError(f"expected an object, found {type(row).__name__}")
    return row


def _objects(written: object) -> list[dict[str, Any]]:
    return [row for row in written if isinstance(row, dict)] if isinstance(written, list) else []


def _at(row: Mapping[str, Any]) -> object:
    return next((row[key] for key in STEPS if key in row), None)


def _stage(row: Mapping[str, Any]) -> str:
    return name_of(next((row[key] for key in STAGES if key in row), None))


def _settled(rows: Iterable[dict[str, Any]], *, again: bool = False) -> list[dict[str, Any]]:
    """By iteration. A run that was resumed says again what it said before, and then the later row counts.

    `again`: several rows of one iteration are several stages of it.
    """
    found: list[dict[str, Any]] = []
    for row in rows:
        at = whole(_at(row))
        if at is None:
            continue
        while found and _replaced(found[-1], at, row, again):
            found.pop()
        found.append({**row, "iteration": at})
    return found


def _replaced(before: Mapping[str, Any], at: int, row: Mapping[str, Any], again: bool) -> bool:
    same_stage = _stage(before) == _stage(row)
    return bool(before["iteration"] > at or (before["iteration"] == at and (same_stage or not again)))


def _seen(row: Mapping[str, Any]) -> Seen:
    checks = [
        Judged(name_of(each.get("side")), name_of(each.get("key")), name_of(each.get("window")) or "last",
               name_of(each.get("bound")), number(each.get("threshold")), number(each.get("value")),
               held if isinstance(held := each.get("holds"), bool) else None)
        for each in _objects(row.get("criteria")) if each.get("key")
    ]  # fmt: skip
    return Seen(
        row["iteration"], _stage(row), name_of(row.get("state")), number(row.get("phase")),
        _numbers(row.get("values")), tuple(checks),
    )  # fmt: skip


def _numbers(written: object) -> dict[str, float]:
    return {name_of(key): number(value) for key, value in mapping(written).items()}


def _told(counts: Mapping[str, float]) -> str:
    return ", ".join(f"{stage or '-'} {count:g}" for stage, count in counts.items()) or "0"


def _why(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    said = " ".join(str(error).split())
    return said[:200] or type(error).__name__
