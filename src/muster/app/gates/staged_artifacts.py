"""Parses what a staged training left behind (gate and schedule traces, events, series) for its pictures. Whatever can
be read is used; the rest is noted.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from muster.stages.notation import SpecError
from muster.stages.schedule import Schedule
from muster.stages.traces import STAGE_COLUMNS, STEP_COLUMNS

LARGEST_ITERATION = 10**12  # an iteration
LONGEST_STAGED_NAME = 200  # letters of a name


def drawable_number(value: object) -> float:
    """NaN where it is none: infinite is drawn nowhere. A text such as `nan` stands for what JSON can't hold."""
    if value is None or isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return math.nan
    return found if abs(found) < 1e300 else math.nan


def whole_iteration(value: object) -> int | None:
    """An iteration."""
    found = drawable_number(value)
    if math.isnan(found) or found != math.floor(found) or not 0 <= found <= LARGEST_ITERATION:
        return None
    return int(found)


def name_on_one_line(value: object) -> str:
    """On one line."""
    if value is None or isinstance(value, dict | list):
        return ""
    return " ".join(str(value).split())[:LONGEST_STAGED_NAME]


def mapping_or_empty(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


GATE, SCHEDULE, SUMMARY = "gate_trace.jsonl", "schedule_trace.json", "stage_summary.json"
EVAL, MULTI, TRAIN = "eval_history.jsonl", "eval_multi_history.jsonl", "train.jsonl"
STAGED_FILE_ENDINGS = (
    GATE,
    SCHEDULE,
    SUMMARY,
    EVAL,
    MULTI,
    TRAIN,
)  # how a file's name ends; the first that fits counts
MOST_DRAWN_ROWS = 2000  # of one file that are drawn: more than a page has pixels for
CURVE_PANELS = {  # of the picture of survival: the title of each panel, and the keys that are drawn in it
    "survival (share that lives)": ("survival", "avg_final", "min_final"),
    "first death (step)": ("first_death", "first_death_step", "first_death_mean"),
    # much earlier than the mean: on one scale with it nothing would be seen
    "first death, 10th percentile (step)": ("first_death_p10",),
    "early deaths (share)": ("early_death_100", "early_death"),
}
StageLabel = tuple[int, str]  # iteration, stage as the run wrote it
_PHASE_CHANGES = ("advance", "fall_back")  # they are never thinned out


class StagedNote(NamedTuple):
    """What a reader must know, put into words later: there are two languages."""

    key: str
    parts: Mapping[str, object]


class JudgedCriterion(NamedTuple):
    side: str  # success | failure
    key: str
    window: str
    bound: str
    threshold: float
    value: float  # what the window made of it; NaN: it could not be judged
    holds: bool | None


class GateRow(NamedTuple):
    """A row of a gate's trace."""

    iteration: int
    stage: str
    state: str
    phase: float
    values: Mapping[str, float]
    checks: tuple[JudgedCriterion, ...]


class GateTrace(NamedTuple):
    file: str
    name: str
    rows: tuple[GateRow, ...]  # those that are drawn
    counts: Mapping[str, int] | None  # of all decisions, by state; None: not all of them were read
    total: int  # rows that there are


class ScheduleRow(NamedTuple):
    """A row of a schedule's trace."""

    iteration: int
    stage: str
    ratio: Mapping[str, float]
    duration: Mapping[str, float]


class WarningRow(NamedTuple):
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
    rows: tuple[ScheduleRow, ...]
    warnings: tuple[WarningRow, ...]


class EventCount(NamedTuple):
    iteration: int
    stage: str
    number: float
    of: float  # NaN: not known


class StageEvents(NamedTuple):
    file: str
    what: str
    totals: Mapping[str, float]
    rows: tuple[EventCount, ...]


class MetricSeries(NamedTuple):
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
    events: StageEvents | None = None
    series: tuple[MetricSeries, ...] = ()
    labels: Mapping[str, tuple[StageLabel, ...]] = {}  # of every row that was read, drawn or not; by file
    notes: tuple[StagedNote, ...] = ()
    hashes: Mapping[str, str] = {}  # of the files, where they are known


def staged_file_kind(name: str) -> str | None:
    """Which of the files that is: `v40_gate_trace.jsonl` is a gate's trace."""
    base = name.rpartition("/")[2]
    exact = next((each for each in STAGED_FILE_ENDINGS if base == each), None)
    return exact or next((each for each in STAGED_FILE_ENDINGS if base.endswith(f"_{each}")), None)


def parse_staged_artifacts(
    texts: Mapping[str, str],
    hashes: Mapping[str, str] | None = None,
    thinned: Mapping[str, int] | None = None,
    notes: Sequence[StagedNote] = (),
) -> StagedArtifacts:
    """`texts`: by file name. `thinned`: files of which only some lines were read, and how many they have.

    `notes`: what is known already of files that are not among the texts.
    """
    read = _ArtifactReader(thinned or {})
    read.notes += notes
    for name, text in texts.items():
        read.take(name, text)
    return StagedArtifacts(
        tuple(read.gates), read.schedule, read.events, tuple(read.series), read.labels, tuple(read.notes), hashes or {}
    )


class _ArtifactReader:
    def __init__(self, thinned: Mapping[str, int]) -> None:
        self.thinned = thinned
        self.gates: list[GateTrace] = []
        self.schedule: ScheduleTrace | None = None
        self.events: StageEvents | None = None
        self.series: list[MetricSeries] = []
        self.labels: dict[str, tuple[StageLabel, ...]] = {}
        self.notes: list[StagedNote] = []

    def note(self, key: str, **parts: object) -> None:
        self.notes.append(StagedNote(key, parts))

    def take(self, name: str, text: str) -> None:
        kind = staged_file_kind(name)
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
            self.note("unreadable", file=name, why=_describe_parse_error(error))

    def _first(self, name: str, known: object) -> bool:
        if known is not None:
            self.note("another", file=name)
        return known is None

    def _gate(self, name: str, text: str) -> None:
        title, rows = "", []
        for row in self._rows(name, text, head=True):
            if "settings" in row:
                title = name_on_one_line(row.get("gate"))
            else:
                rows.append(_make_gate_row(row))
        if not rows:
            self.note("empty", file=name)
            return
        counts = None if name in self.thinned else dict(Counter(each.state for each in rows))
        self.labels[name] = tuple((each.iteration, each.stage) for each in rows)
        kept = self._few(name, rows, [each.state in _PHASE_CHANGES for each in rows])
        total = self.thinned.get(name, len(rows))
        self.gates.append(GateTrace(name, title or "gate", tuple(kept), counts, total))

    def _series(self, name: str, kind: str, text: str) -> None:
        found = list(self._rows(name, text))
        wanted = [key for group in CURVE_PANELS.values() for key in group]
        rows = [row for row in found if any(key in row for key in wanted)]
        if not rows:
            self.note("nothing_drawn" if found else "empty", file=name)
            return
        self.labels[name] = tuple((row["iteration"], _written_stage(row)) for row in rows)
        total = self.thinned.get(name, len(rows))
        rows = self._few(name, rows, [False] * len(rows))
        keys = [key for key in wanted if any(key in row for row in rows)]
        values = {key: tuple(drawable_number(row.get(key)) for row in rows) for key in keys}
        at = tuple(row["iteration"] for row in rows)
        self.series.append(MetricSeries(name, kind, at, tuple(_written_stage(row) for row in rows), values, total))

    def _schedule(self, name: str, text: str) -> ScheduleTrace:
        written = _parse_json_document(text)
        rows = [
            ScheduleRow(
                row["iteration"],
                _written_stage(row),
                _numbers_by_name(row.get("remaining_ratio")),
                _numbers_by_name(row.get("warn_duration")),
            )
            for row in _settle_staged_rows(_objects_in_list(written.get("trace")))
        ]
        warnings = [
            WarningRow(
                name_on_one_line(row.get("type")),
                whole_iteration(row.get("onset")),
                whole_iteration(row.get("iteration")),
                drawable_number(row.get("threshold")),
                drawable_number(row.get("duration")),
            )
            for row in _objects_in_list(written.get("warnings"))
        ]
        self.labels[name] = tuple((row.iteration, row.stage) for row in rows)
        kept = self._few(name, rows, [False] * len(rows))
        return ScheduleTrace(
            name,
            whole_iteration(written.get("iterations")),
            self._declared(name, written),
            tuple(kept),
            tuple(warnings),
        )

    def _declared(self, name: str, written: Mapping[str, Any]) -> Schedule | None:
        stages = [
            {"from": row.get("from"), "to": row.get("to"), "type": row.get("type"), "file": row.get("source") or "-"}
            for row in _objects_in_list(written.get("stages"))
        ]
        text = written.get("schedule")
        try:
            if isinstance(text, str) and text.strip():
                return Schedule.parse(text)
            return Schedule.of(stages) if stages else None
        except (SpecError, ValueError, TypeError) as error:
            self.note("no_schedule", file=name, why=_describe_parse_error(error))
            return None

    def _events(self, name: str, text: str) -> StageEvents:
        written = _parse_json_document(text)
        rows = [
            EventCount(row["iteration"], _written_stage(row), count, drawable_number(row.get("of")))
            for row in _settle_staged_rows(_objects_in_list(written.get("by_iteration")), again=True)
            if (count := drawable_number(row.get("count"))) >= 0
        ]
        self.labels[name] = tuple((row.iteration, row.stage) for row in rows)
        totals = {stage: count for stage, count in _numbers_by_name(written.get("events")).items() if count >= 0}
        summed: dict[str, float] = {}
        for row in rows:
            summed[row.stage] = summed.get(row.stage, 0) + row.number
        if totals and rows and {s: c for s, c in totals.items() if c} != {s: c for s, c in summed.items() if c}:
            self.note("sums", file=name, events=_format_stage_counts(totals), rows=_format_stage_counts(summed))
        if not totals and not rows:
            self.note("empty", file=name)
        return StageEvents(
            name, name_on_one_line(written.get("what")) or "events", summed if rows else totals, tuple(rows)
        )

    def _rows(self, name: str, text: str, *, head: bool = False) -> Iterator[dict[str, Any]]:
        lines = [line for line in text.split("\n") if line.strip()]
        read = [_parse_json_row(line) for line in lines]
        objects = [row for row in read if row is not None]
        first = next((row for row in objects if isinstance(row.get("settings"), Mapping)), None) if head else None
        rows = [row for row in objects if "settings" not in row or any(key in row for key in STEP_COLUMNS)]
        found = list(_settle_staged_rows(rows))
        torn = len(read) - len(objects)
        useless = sum(whole_iteration(_written_iteration(row)) is None for row in rows)
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
        if len(rows) <= MOST_DRAWN_ROWS:
            return rows
        every = -(-len(rows) // MOST_DRAWN_ROWS)
        moves = [at for at, kept in enumerate(keep) if kept]
        always = set(moves[:: max(1, -(-len(moves) // MOST_DRAWN_ROWS))])
        kept = [row for at, row in enumerate(rows) if at % every == 0 or at in always or at == len(rows) - 1]
        self.note("thinned", file=name, count=len(kept), total=len(rows))
        return kept


def _parse_json_row(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _parse_json_document(text: str) -> dict[str, Any]:
    row = json.loads(text)
    if not isinstance(row, dict):
        raise ValueError(f"expected an object, found {type(row).__name__}")
    return row


def _objects_in_list(written: object) -> list[dict[str, Any]]:
    return [row for row in written if isinstance(row, dict)] if isinstance(written, list) else []


def _written_iteration(row: Mapping[str, Any]) -> object:
    return next((row[key] for key in STEP_COLUMNS if key in row), None)


def _written_stage(row: Mapping[str, Any]) -> str:
    return name_on_one_line(next((row[key] for key in STAGE_COLUMNS if key in row), None))


def _settle_staged_rows(rows: Iterable[dict[str, Any]], *, again: bool = False) -> list[dict[str, Any]]:
    """By iteration. A run that was resumed says again what it said before, and then the later row counts.

    `again`: several rows of one iteration are several stages of it.
    """
    found: list[dict[str, Any]] = []
    for row in rows:
        at = whole_iteration(_written_iteration(row))
        if at is None:
            continue
        while found and _is_superseded_by(found[-1], at, row, again):
            found.pop()
        found.append({**row, "iteration": at})
    return found


def _is_superseded_by(before: Mapping[str, Any], at: int, row: Mapping[str, Any], again: bool) -> bool:
    same_stage = _written_stage(before) == _written_stage(row)
    return bool(before["iteration"] > at or (before["iteration"] == at and (same_stage or not again)))


def _make_gate_row(row: Mapping[str, Any]) -> GateRow:
    checks = [
        JudgedCriterion(
            name_on_one_line(each.get("side")),
            name_on_one_line(each.get("key")),
            name_on_one_line(each.get("window")) or "last",
            name_on_one_line(each.get("bound")),
            drawable_number(each.get("threshold")),
            drawable_number(each.get("value")),
            held if isinstance(held := each.get("holds"), bool) else None,
        )
        for each in _objects_in_list(row.get("criteria"))
        if each.get("key")
    ]
    return GateRow(
        row["iteration"],
        _written_stage(row),
        name_on_one_line(row.get("state")),
        drawable_number(row.get("phase")),
        _numbers_by_name(row.get("values")),
        tuple(checks),
    )


def _numbers_by_name(written: object) -> dict[str, float]:
    return {name_on_one_line(key): drawable_number(value) for key, value in mapping_or_empty(written).items()}


def _format_stage_counts(counts: Mapping[str, float]) -> str:
    return ", ".join(f"{stage or '-'} {count:g}" for stage, count in counts.items()) or "0"


def _describe_parse_error(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    said = " ".join(str(error).split())
    return said[:200] or type(error).__name__
