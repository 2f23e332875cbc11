"""Tables of a journal: evaluations and training series by iteration and by stage, with their numbers formatted."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence

from muster.app.journal.recorded_run import ITERATION_KEYS, Evaluation, EvaluationRows, TrainingSeries
from muster.text.catalogue import Catalogue
from muster.text.sentences import format_inline_code
from muster.text.table_grid import CellAlignment, TableCell, TableGrid, markdown_table_body

NumberFormatter = Callable[[float], str]
SIGNIFICANT_DIGITS = 4
_LARGE = 1e7


def format_metric_value(value: float, digits: int = SIGNIFICANT_DIGITS) -> str:
    """`0.7164`, `83`, `NaN`, `1.2e-05`."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if float(value).is_integer() and abs(value) < _LARGE:
        return str(int(value))
    return f"{value:.{digits}g}"


def column_formatter(values: Sequence[float], digits: int = SIGNIFICANT_DIGITS) -> NumberFormatter:
    """One number of decimals for all of a column, as few as tell its values apart."""
    finite = [value for value in values if math.isfinite(value)]
    texts = [format_metric_value(value, digits) for value in finite]
    if not texts or any("e" in text for text in texts):
        return lambda value: format_metric_value(value, digits)
    decimals = max(len(text.partition(".")[2]) for text in texts)
    return lambda value: f"{value:.{decimals}f}" if math.isfinite(value) else format_metric_value(value)


def format_iteration(value: float | None) -> str:
    return "?" if value is None else format_metric_value(value, 12)


def journal_markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1, words: int = 0) -> str:
    """Markdown; the first `left` columns and the last `words` ones stand to the left, numbers to the right."""
    end = len(head) - words
    align: tuple[CellAlignment, ...] = tuple("r" if left <= at < end else "l" for at in range(len(head)))
    cells = tuple(tuple(TableCell(text) for text in row) for row in rows)
    return markdown_table_body(TableGrid("", tuple(head), cells, align))


def fenced_code_block(text: str, language: str = "") -> str:
    longest = max((len(run) for line in text.splitlines() for run in [_longest_backtick_run(line)]), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _longest_backtick_run(line: str) -> str:
    found = best = ""
    for letter in line:
        found = found + letter if letter == "`" else ""
        best = max(best, found, key=len)
    return best


MOST_ROWS = 60
MOST_COLUMNS = 12
RECENT_ITERATIONS = 10  # iterations at the end that a training is told by
MOST_SERIES = 24
LEAST_SAME = 3
_SEED = re.compile(r"(?:^|_)seed(?:$|_)", re.I)


def evaluation_body(found: EvaluationRows, w: Catalogue) -> str:
    rows = list(found.rows)[-MOST_ROWS:]
    keys = _varying_keys(found)[:MOST_COLUMNS]
    stages = list(dict.fromkeys(row.stage for row in found.rows if row.stage))
    parts = [_table_by_iteration(rows, keys, w, staged=bool(stages))]
    if len(stages) > 1:
        parts.append(f"{w('evaluation.by_stage')}\n\n{_table_by_stage(found, stages, keys, w)}")
    parts.append("\n".join(f"- {note}" for note in _evaluation_notes(found, w)))
    return "\n\n".join(parts)


def _varying_keys(found: EvaluationRows) -> list[str]:
    """What differs from one evaluation to the next; seeds tell a reader nothing."""
    same = _constant_keys(found)
    return [key for key in found.keys if key not in same and not _SEED.search(key)]


def _constant_keys(found: EvaluationRows) -> dict[str, float]:
    """Keys with one value in all of several evaluations: how many episodes, how many fish."""
    if len(found.rows) < LEAST_SAME:
        return {}
    values = {key: [value for _, value in found.column(key)] for key in found.keys}
    return {key: each[0] for key, each in values.items() if len(each) == len(found.rows) and len(set(each)) == 1}


def _table_by_iteration(rows: Sequence[Evaluation], keys: Sequence[str], w: Catalogue, *, staged: bool) -> str:
    forms = {key: column_formatter([row.values[key] for row in rows if key in row.values]) for key in keys}
    head = [w("head.iter"), *([w("head.stage")] if staged else []), *keys]
    body = [
        [format_iteration(row.at), *([row.stage] if staged else [])]
        + [forms[key](row.values[key]) if key in row.values else "" for key in keys]
        for row in rows
    ]
    return journal_markdown_table(head, body, left=2 if staged else 1)


def _table_by_stage(found: EvaluationRows, stages: Sequence[str], keys: Sequence[str], w: Catalogue) -> str:
    means = {
        (stage, key): _mean_of_finite([value for _, value in found.column(key, stage)])
        for stage in stages
        for key in keys
    }
    forms = {key: column_formatter([means[stage, key] for stage in stages]) for key in keys}
    body = [
        [stage, str(sum(row.stage == stage for row in found.rows))]
        + [forms[key](means[stage, key]) if math.isfinite(means[stage, key]) else "" for key in keys]
        for stage in stages
    ]
    return journal_markdown_table([w("head.stage"), w("head.evaluations"), *keys], body)


def _mean_of_finite(values: Sequence[float]) -> float:
    finite = [value for value in values if math.isfinite(value)]
    return math.fsum(finite) / len(finite) if finite else math.nan


def _evaluation_notes(found: EvaluationRows, w: Catalogue) -> Iterator[str]:
    yield w("evaluation.source", n=len(found.rows), source=format_inline_code(found.source))
    if len(found.rows) > MOST_ROWS:
        yield w("evaluation.cut", shown=MOST_ROWS, n=len(found.rows))
    if same := _constant_keys(found):
        yield w(
            "evaluation.constant",
            told=w.list([f"{format_inline_code(key)} {format_metric_value(value, 9)}" for key, value in same.items()]),
        )
    shown = _varying_keys(found)[:MOST_COLUMNS]
    if hidden := [format_inline_code(key) for key in found.keys if key not in shown and key not in same]:
        yield w("evaluation.columns", names=w.list(hidden))


def training_body(found: TrainingSeries, w: Catalogue) -> str:
    """The mean of the last iterations of each series, as people quote it, with the lowest and the highest of them."""
    rows = []
    told = {name: values for name, values in found.series.items() if name.lower() not in ITERATION_KEYS}
    for name, values in list(told.items())[:MOST_SERIES]:
        recent = [value for value in values[-RECENT_ITERATIONS:] if math.isfinite(value)]
        if recent:
            form = column_formatter([_mean_of_finite(recent), min(recent), max(recent)])
            shown = [form(each) for each in (_mean_of_finite(recent), min(recent), max(recent))]
            rows.append(
                [name, str(len(values)), format_metric_value(values[0]), format_metric_value(values[-1]), *shown]
            )
    last = max((len(values) for values in found.series.values()), default=0) + found.first - 1
    head = [w("head.series"), w("head.count"), w("head.first"), w("head.last")]
    head += [w(f"head.recent_{each}", n=RECENT_ITERATIONS) for each in ("mean", "min", "max")]
    notes = [
        w(
            "training.source",
            source=format_inline_code(found.source),
            first=max(found.first, last - RECENT_ITERATIONS + 1),
            last=last,
        )
    ]
    if len(told) > MOST_SERIES:
        notes.append(w("training.cut", n=len(told) - MOST_SERIES))
    return "\n\n".join([journal_markdown_table(head, rows), "\n".join(f"- {note}" for note in notes)])
