"""Evaluations out of whatever holds them: JSON lines, a gate's trace, CSV, or a table in a Markdown document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from typing import Any, NamedTuple

from muster.stages.errors import Problem, SpecError
from muster.stages.notation import number_of
from muster.stages.rows import Row, settled
from muster.stages.settings import GateSettings
from muster.stages.traces import read_trace

STEPS = ("iteration", "iter", "step", "_step", "epoch")
STAGES = ("stage", "stage_type", "tail_stage")
MOST_ROWS = 500_000  # lines
MOST_CELLS = 1_000_000  # of a table: a row that lacks its cells has one for each column all the same
_RULE = re.compile(r"\s*\|?\s*:?-{3,}:?\s*(\|\s*:?-{3,}:?\s*)*\|?\s*")
_SHARE = re.compile(r"(-?[0-9.]+)\s*%")


class Table(NamedTuple):
    rows: list[Row]
    kind: str  # trace | jsonl | csv | markdown
    settings: GateSettings | None = None  # of a gate's trace
    skipped: int = 0  # lines that are no row
    taken_back: int = 0  # rows that count no more, because a later one goes back to their iteration or before it


def read_table(text: str, *, step: str = "", stage: str = "") -> Table:
    """`step`, `stage`: the columns that hold them; else the usual names. SpecError: there is no such table."""
    if max(text.count("\n"), text.count("\r")) > MOST_ROWS:
        raise SpecError("table", [Problem(f"it has more than {MOST_ROWS} lines: more than anybody evaluates")])
    text = text.removeprefix("\ufeff")
    body = text.lstrip()
    if body.startswith("{"):
        trace = read_trace(text)
        if trace.rows and any("criteria" in each for each in trace.decided):
            return Table(trace.rows, "trace", trace.settings, trace.skipped)
        return _table("jsonl", _json_lines(text), step, stage)
    if body.startswith("["):
        return _table("jsonl", _json_list(body), step, stage)
    tables = list(_markdown(text))
    for found in tables:
        if _column(found[0], step, STEPS) is not None:
            return _table("markdown", found, step, stage)
    if tables:
        raise SpecError("table", [Problem(f"no table has a column for the iteration ({_wanted(step, STEPS)})")])
    return _table("csv", _csv(text), step, stage)


def fitted(rows: Sequence[Row], keys: Sequence[str]) -> list[Row]:
    """Columns by the names that a gate knows them by: `early_death₁₀₀` is `early_death_100`."""
    known = {_bare(key): key for key in keys}
    return [row._replace(values={known.get(_bare(key), key): value for key, value in row.values.items()})
            for row in rows]  # fmt: skip


def _bare(name: str) -> str:
    import unicodedata

    return "".join(sign for sign in unicodedata.normalize("NFKC", name).lower() if sign.isalnum())


def _table(kind: str, found: Sequence[Mapping[str, Any] | None], step: str, stage: str) -> Table:
    entries = [each for each in found if each]
    if not entries:
        raise SpecError("table", [Problem("there is no row in it")])
    names = dict.fromkeys(name for each in entries for name in each)
    at = _column(names, step, STEPS)
    if at is None:
        raise SpecError("table", [Problem(f"no row has the iteration ({_wanted(step, STEPS)})",
                                          hint=f"its columns are {', '.join(names)}")])  # fmt: skip
    label = _column(names, stage, STAGES)
    rows = [row for each in entries if (row := _row(each, at, label)) is not None]
    if not rows:
        raise SpecError("table", [Problem(f"no row has a whole number as its {at}")])
    kept = settled(rows)
    return Table(kept, kind, None, len(found) - len(rows), len(rows) - len(kept))


def _row(entry: Mapping[str, Any], at: str, label: str | None) -> Row | None:
    number = entry.get(at)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        return None
    values = {name: value for name, value in entry.items() if name not in (at, label)}
    return Row(number, values, str(entry.get(label) or "") if label else "")


def _column(names: Mapping[str, Any], wanted: str, usual: Sequence[str]) -> str | None:
    return next((name for name in ((wanted,) if wanted else usual) if name in names), None)


def _wanted(wanted: str, usual: Sequence[str]) -> str:
    return wanted or " or ".join(usual)


def _json_lines(text: str) -> list[Mapping[str, Any] | None]:
    found: list[Mapping[str, Any] | None] = []
    for line in text.split("\n"):  # `splitlines` would split within a text too
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                row = None
            found.append(row if isinstance(row, dict) else None)
    return found


def _json_list(text: str) -> list[Mapping[str, Any] | None]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SpecError("table", [Problem(f"it begins as a JSON list and is none: {error}")]) from None
    return [each if isinstance(each, dict) else None for each in found]


def _csv(text: str) -> list[Mapping[str, Any] | None]:
    import csv
    from io import StringIO

    parted = max(",;\t", key=text.partition("\n")[0].count)  # spreadsheets of some countries write semicolons
    try:
        table = csv.DictReader(StringIO(text, newline=""), delimiter=parted)
        left = [MOST_CELLS]
        return list(_counted(left, ({name: _value(cell) for name, cell in row.items() if name} for row in table)))
    except csv.Error as error:
        raise SpecError("table", [Problem(f"it can't be read as CSV: {error}")]) from None


def _markdown(text: str) -> Iterator[list[dict[str, Any]]]:
    lines = text.splitlines()
    left = [MOST_CELLS]  # of all tables: each line of dashes may begin one
    for at in range(1, len(lines)):
        if _RULE.fullmatch(lines[at]) and "|" in lines[at - 1]:
            names = _cells(lines[at - 1])
            below = takewhile(lambda line: "|" in line, islice(lines, at + 1, None))
            body = list(
                _counted(
                    left, ({name: _value(c) for name, c in zip(names, _cells(line), strict=False)} for line in below)
                )
            )
            if body:
                yield body


def _counted(left: list[int], rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        left[0] -= len(row) + 1
        if left[0] < 0:
            raise SpecError("table", [Problem(f"it has more than {MOST_CELLS} cells: more than anybody evaluates")])
        yield row


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def _value(cell: str | None) -> Any:
    text = (cell or "").strip().strip("*`_ ")
    share = _SHARE.fullmatch(text)
    if share and (part := number_of(share[1])) is not None:
        return part / 100
    number = number_of(text)
    if number is None and text.lower() in ("nan", "inf", "-inf"):
        return float(text)
    return text if number is None else number
