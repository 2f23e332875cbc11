"""The files of a staged training as texts, written and read: gate traces, schedule traces, and evaluations in JSON
lines, CSV or a Markdown table. The script does the I/O, nothing here does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from typing import Any, NamedTuple

from muster.stages.alarms import Alarm, Watch
from muster.stages.gate_decision import Decision
from muster.stages.gate_settings import GateSettings
from muster.stages.notation import SettingProblem, SpecError, parse_finite_number
from muster.stages.schedule import Curriculum, Schedule, Stage


class EvaluationRow(NamedTuple):
    iteration: int
    values: Mapping[str, Any]
    stage: str = ""  # its label, as the run wrote it


def rows_with_gate_keys(rows: Iterable[EvaluationRow], settings: GateSettings) -> list[EvaluationRow]:
    """Those that are evaluations: a row with none of the gate's keys is about something else, and breaks no streak."""
    keys = set(settings.watched())
    return [row for row in rows if not keys.isdisjoint(row.values)]


class MislabelledRow(NamedTuple):
    row: EvaluationRow
    stage: Stage  # what the schedule says

    def __str__(self) -> str:
        return (
            f"the row of iteration {self.row.iteration} is labelled {self.row.stage}; "
            f"by the schedule it is {self.stage.type} ({self.stage.first}-{self.stage.last})"
        )


def drop_superseded_rows(rows: Iterable[EvaluationRow]) -> list[EvaluationRow]:
    """A run that was resumed says again what it said before: from where it goes back, the later rows count."""
    found: list[EvaluationRow] = []
    for row in rows:
        while found and found[-1].iteration >= row.iteration:
            found.pop()
        found.append(row)
    return found


def find_mislabelled_rows(rows: Sequence[EvaluationRow], schedule: Schedule) -> Iterator[MislabelledRow]:
    """Labels that contradict the schedule. What lies beyond its end is nobody's."""
    for row in rows:
        if row.stage and 1 <= row.iteration <= schedule.total:
            stage = schedule.stage_at(row.iteration)
            if stage.type != row.stage:
                yield MislabelledRow(row, stage)


class ParsedGateTrace(NamedTuple):
    """`gate_trace.jsonl`: the settings of its head, and its rows as they were observed and as they were decided."""

    settings: GateSettings | None
    name: str
    rows: list[EvaluationRow]
    decided: list[dict[str, Any]]
    skipped: int  # lines that could not be read


def head(settings: GateSettings, name: str = "gate") -> str:
    """The first line of `gate_trace.jsonl`."""
    import json

    return json.dumps({"gate": name, "settings": settings.mapping()}, ensure_ascii=False)


def lines(settings: GateSettings, decisions: Iterable[Decision], name: str = "gate") -> str:
    return "".join(f"{line}\n" for line in (head(settings, name), *(each.line() for each in decisions)))


def upto(text: str, iteration: int, key: str = "iteration") -> str:
    """What a run that resumes at `iteration` keeps of a file of rows: nothing later, and no torn line."""
    kept = []
    for line, row in _parse_lines_as_objects(text):
        if row is not None:
            at = row.get(key)
            if not isinstance(at, int | float) or isinstance(at, bool) or at <= iteration:
                kept.append(f"{line}\n")
    return "".join(kept)


def parse_gate_trace(text: str) -> ParsedGateTrace:
    settings, name, skipped = None, "", 0
    decided: list[dict[str, Any]] = []
    for _, row in _parse_lines_as_objects(text):
        if row is None:
            skipped += 1
        elif isinstance(row.get("settings"), Mapping) and "iteration" not in row:
            settings, name = _settings_or_none(row["settings"]), str(row.get("gate", ""))
            skipped += settings is None
        elif isinstance(row.get("iteration"), int) and isinstance(row.get("values"), Mapping):
            while decided and decided[-1]["iteration"] >= row["iteration"]:
                decided.pop()
            decided.append(row)
        else:
            skipped += 1
    rows = [EvaluationRow(each["iteration"], each["values"], str(each.get("stage") or "")) for each in decided]
    return ParsedGateTrace(settings, name, drop_superseded_rows(rows), decided, skipped)


def schedule_trace(
    schedule: Schedule,
    iterations: int,
    *,
    reached: int | None = None,
    curriculum: Curriculum | None = None,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """What `schedule_trace.json` holds of a run that has come as far as `reached`."""
    alarm = Alarm(watch) if watch else None
    end = iterations if reached is None else min(reached, iterations)
    trace = []
    for at in range(1, end + 1):
        ratios = schedule.remaining_ratio(at, iterations)
        if alarm:
            alarm.observe(at, ratios)
        row: dict[str, Any] = {"iteration": at, "stage": schedule.stage_at(at).type}
        if curriculum:
            row["value"] = curriculum.value_at(at)
        row |= {
            "remaining": schedule.remaining(at, iterations),
            "remaining_ratio": {name: round(ratio, 6) for name, ratio in ratios.items()},
            "warn_duration": alarm.durations() if alarm else {},
        }
        trace.append(row)
    return {
        "iterations": iterations,
        "schedule": schedule.text(),
        "curriculum": curriculum.text() if curriculum else None,
        "stages": [{"from": s.first, "to": s.last, "type": s.type, "source": s.source} for s in schedule.stages],
        "reinjections_by_type": schedule.reinjections(end),
        "warnings": [each.row(alarm.watch.ratio) for each in alarm.events] if alarm else [],
        "trace": trace,
    }


def stage_summary(counts: Iterable[tuple[int, str, int, int]], what: str = "first-step deaths") -> dict[str, Any]:
    """What `stage_summary.json` holds. `counts`: iteration, stage, events, and of how many."""
    events: dict[str, int] = {}
    by_iteration = []
    for iteration, stage, count, of in counts:
        events[stage] = events.get(stage, 0) + count
        by_iteration.append({"iteration": iteration, "stage": stage, "count": count, "of": of})
    total = sum(events.values())
    share = {stage: round(count / total, 6) for stage, count in events.items()} if total else {}
    return {"what": what, "events": events, "share": share, "by_iteration": by_iteration}


def _settings_or_none(written: Mapping[str, Any]) -> GateSettings | None:
    """None: another version wrote them. The rows can be read all the same."""
    try:
        return GateSettings.of(written)
    except SpecError:
        return None


def _parse_lines_as_objects(text: str) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Line by line; None: it is no object. The last line may be torn. (`splitlines` would split within a text too.)"""
    import json

    for line in text.split("\n"):
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                row = None
            yield line, row if isinstance(row, dict) else None


STEP_COLUMNS = ("iteration", "iter", "step", "_step", "epoch")
STAGE_COLUMNS = ("stage", "stage_type", "tail_stage")
MOST_TABLE_ROWS = 500_000  # lines
MOST_TABLE_CELLS = 1_000_000  # of a table: a row that lacks its cells has one for each column all the same
_MARKDOWN_RULE = re.compile(r"\s*\|?\s*:?-{3,}:?\s*(\|\s*:?-{3,}:?\s*)*\|?\s*")
_QUOTED_TEXT = re.compile(r'"[^"]*"')
_PERCENTAGE = re.compile(r"(-?[0-9.]+)\s*%")


class GateEvaluationTable(NamedTuple):
    rows: list[EvaluationRow]
    kind: str  # trace | jsonl | csv | markdown
    settings: GateSettings | None = None  # of a gate's trace
    skipped: int = 0  # lines that are no row
    taken_back: int = 0  # rows that count no more, because a later one goes back to their iteration or before it


def parse_evaluation_table(text: str, *, step: str = "", stage: str = "") -> GateEvaluationTable:
    """`step`, `stage`: the columns that hold them; else the usual names. SpecError: there is no such table."""
    if max(text.count("\n"), text.count("\r")) > MOST_TABLE_ROWS:
        raise SpecError(
            "table", [SettingProblem(f"it has more than {MOST_TABLE_ROWS} lines: more than anybody evaluates")]
        )
    text = text.removeprefix("\ufeff")
    body = text.lstrip()
    if body.startswith("{"):
        trace = parse_gate_trace(text)
        if trace.rows and any("criteria" in each for each in trace.decided):
            return GateEvaluationTable(trace.rows, "trace", trace.settings, trace.skipped)
        return _make_evaluation_table("jsonl", _objects_of_json_lines(text), step, stage)
    if body.startswith("["):
        return _make_evaluation_table("jsonl", _objects_of_json_list(body), step, stage)
    tables = list(_tables_of_markdown(text))
    for found in tables:
        if _find_usual_column(found[0], step, STEP_COLUMNS) is not None:
            return _make_evaluation_table("markdown", found, step, stage)
    if tables:
        raise SpecError(
            "table",
            [
                SettingProblem(
                    f"no table has a column for the iteration ({_describe_wanted_column(step, STEP_COLUMNS)})"
                )
            ],
        )
    return _make_evaluation_table("csv", _rows_of_csv(text), step, stage)


def rename_columns_to_keys(rows: Sequence[EvaluationRow], keys: Sequence[str]) -> list[EvaluationRow]:
    """Columns by the names that a gate knows them by: `early_death₁₀₀` is `early_death_100`."""
    known = {_normalize_column_name(key): key for key in keys}
    return [
        row._replace(values={known.get(_normalize_column_name(key), key): value for key, value in row.values.items()})
        for row in rows
    ]


def _normalize_column_name(name: str) -> str:
    import unicodedata

    return "".join(sign for sign in unicodedata.normalize("NFKC", name).lower() if sign.isalnum())


def _make_evaluation_table(
    kind: str, found: Sequence[Mapping[str, Any] | None], step: str, stage: str
) -> GateEvaluationTable:
    entries = [each for each in found if each]
    if not entries:
        raise SpecError("table", [SettingProblem("there is no row in it")])
    names = dict.fromkeys(name for each in entries for name in each)
    at = _find_usual_column(names, step, STEP_COLUMNS)
    if at is None:
        raise SpecError(
            "table",
            [
                SettingProblem(
                    f"no row has the iteration ({_describe_wanted_column(step, STEP_COLUMNS)})",
                    hint=f"its columns are {', '.join(names)}",
                )
            ],
        )
    label = _find_usual_column(names, stage, STAGE_COLUMNS)
    rows = [row for each in entries if (row := _make_evaluation_row(each, at, label)) is not None]
    if not rows:
        raise SpecError("table", [SettingProblem(f"no row has a whole number as its {at}")])
    kept = drop_superseded_rows(rows)
    return GateEvaluationTable(kept, kind, None, len(found) - len(rows), len(rows) - len(kept))


def _make_evaluation_row(entry: Mapping[str, Any], at: str, label: str | None) -> EvaluationRow | None:
    number = entry.get(at)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        return None
    values = {name: value for name, value in entry.items() if name not in (at, label)}
    return EvaluationRow(number, values, str(entry.get(label) or "") if label else "")


def _find_usual_column(names: Mapping[str, Any], wanted: str, usual: Sequence[str]) -> str | None:
    return next((name for name in ((wanted,) if wanted else usual) if name in names), None)


def _describe_wanted_column(wanted: str, usual: Sequence[str]) -> str:
    return wanted or " or ".join(usual)


def _objects_of_json_lines(text: str) -> list[Mapping[str, Any] | None]:
    return [row for _, row in _parse_lines_as_objects(text)]


def _objects_of_json_list(text: str) -> list[Mapping[str, Any] | None]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SpecError("table", [SettingProblem(f"it begins as a JSON list and is none: {error}")]) from None
    return [each if isinstance(each, dict) else None for each in found]


def choose_delimiter(header: str) -> str:
    """What stands between the names of a table: spreadsheets of some countries write semicolons."""
    return max(",\t;", key=_QUOTED_TEXT.sub("", header).count)


def _rows_of_csv(text: str) -> list[Mapping[str, Any] | None]:
    import csv
    from io import StringIO

    try:
        table = csv.DictReader(StringIO(text, newline=""), delimiter=choose_delimiter(text.partition("\n")[0]))
        left = [MOST_TABLE_CELLS]
        return list(
            _limit_table_cells(
                left, ({name: _parse_table_cell(cell) for name, cell in row.items() if name} for row in table)
            )
        )
    except csv.Error as error:
        raise SpecError("table", [SettingProblem(f"it can't be read as CSV: {error}")]) from None


def _tables_of_markdown(text: str) -> Iterator[list[dict[str, Any]]]:
    lines = text.splitlines()
    left = [MOST_TABLE_CELLS]  # of all tables: each line of dashes may begin one
    for at in range(1, len(lines)):
        if _MARKDOWN_RULE.fullmatch(lines[at]) and "|" in lines[at - 1]:
            names = _split_markdown_cells(lines[at - 1])
            below = takewhile(lambda line: "|" in line, islice(lines, at + 1, None))
            body = list(
                _limit_table_cells(
                    left,
                    (
                        {
                            name: _parse_table_cell(c)
                            for name, c in zip(names, _split_markdown_cells(line), strict=False)
                        }
                        for line in below
                    ),
                )
            )
            if body:
                yield body


def _limit_table_cells(left: list[int], rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        left[0] -= len(row) + 1
        if left[0] < 0:
            raise SpecError(
                "table", [SettingProblem(f"it has more than {MOST_TABLE_CELLS} cells: more than anybody evaluates")]
            )
        yield row


def _split_markdown_cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def _parse_table_cell(cell: str | None) -> Any:
    text = (cell or "").strip().strip("*`_ ")
    share = _PERCENTAGE.fullmatch(text)
    if share and (part := parse_finite_number(share[1])) is not None:
        return part / 100
    number = parse_finite_number(text)
    if number is None and text.lower() in ("nan", "inf", "-inf"):
        return float(text)
    return text if number is None else number
