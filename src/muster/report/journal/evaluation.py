"""Tables of evaluations and of what the script kept for itself, by iteration and by stage."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from muster.report.journal.facts import COUNTERS, Evaluation, Evaluations, Training
from muster.report.journal.shown import column, iteration, number, table
from muster.report.journal.wording import Wording
from muster.report.record_wording import code

MOST_ROWS = 60
MOST_COLUMNS = 12
RECENT = 10  # iterations at the end that a training is told by
MOST_SERIES = 24
LEAST_SAME = 3
_SEED = re.compile(r"(?:^|_)seed(?:$|_)", re.I)


def evaluation_body(found: Evaluations, w: Wording) -> str:
    rows = list(found.rows)[-MOST_ROWS:]
    keys = _columns(found)[:MOST_COLUMNS]
    stages = list(dict.fromkeys(row.stage for row in found.rows if row.stage))
    parts = [_by_iteration(rows, keys, w, staged=bool(stages))]
    if len(stages) > 1:
        parts.append(f"{w('evaluation.by_stage')}\n\n{_by_stage(found, stages, keys, w)}")
    parts.append("\n".join(f"- {note}" for note in _notes(found, w)))
    return "\n\n".join(parts)


def _columns(found: Evaluations) -> list[str]:
    """What differs from one evaluation to the next; seeds tell a reader nothing."""
    same = _constants(found)
    return [key for key in found.keys if key not in same and not _SEED.search(key)]


def _constants(found: Evaluations) -> dict[str, float]:
    """Keys with one value in all of several evaluations: how many episodes, how many fish."""
    if len(found.rows) < LEAST_SAME:
        return {}
    values = {key: [value for _, value in found.column(key)] for key in found.keys}
    return {key: each[0] for key, each in values.items() if len(each) == len(found.rows) and len(set(each)) == 1}


def _by_iteration(rows: Sequence[Evaluation], keys: Sequence[str], w: Wording, *, staged: bool) -> str:
    forms = {key: column([row.values[key] for row in rows if key in row.values]) for key in keys}
    head = [w("head.iter"), *([w("head.stage")] if staged else []), *keys]
    body = [
        [iteration(row.at), *([row.stage] if staged else [])]
        + [forms[key](row.values[key]) if key in row.values else "" for key in keys]
        for row in rows
    ]
    return table(head, body, left=2 if staged else 1)


def _by_stage(found: Evaluations, stages: Sequence[str], keys: Sequence[str], w: Wording) -> str:
    means = {(stage, key): _mean([value for _, value in found.column(key, stage)]) for stage in stages for key in keys}
    forms = {key: column([means[stage, key] for stage in stages]) for key in keys}
    body = [
        [stage, str(sum(row.stage == stage for row in found.rows))]
        + [forms[key](means[stage, key]) if math.isfinite(means[stage, key]) else "" for key in keys]
        for stage in stages
    ]
    return table([w("head.stage"), w("head.evaluations"), *keys], body)


def _mean(values: Sequence[float]) -> float:
    finite = [value for value in values if math.isfinite(value)]
    return math.fsum(finite) / len(finite) if finite else math.nan


def _notes(found: Evaluations, w: Wording) -> Iterator[str]:
    yield w("evaluation.source", n=len(found.rows), source=code(found.source))
    if len(found.rows) > MOST_ROWS:
        yield w("evaluation.cut", shown=MOST_ROWS, n=len(found.rows))
    if same := _constants(found):
        yield w("evaluation.constant", told=w.list([f"{code(key)} {number(value, 9)}" for key, value in same.items()]))
    shown = _columns(found)[:MOST_COLUMNS]
    if hidden := [code(key) for key in found.keys if key not in shown and key not in same]:
        yield w("evaluation.columns", names=w.list(hidden))


def training_body(found: Training, w: Wording) -> str:
    """The mean of the last iterations of each series, as people quote it, with the lowest and the highest of them."""
    rows = []
    told = {name: values for name, values in found.series.items() if name.lower() not in COUNTERS}
    for name, values in list(told.items())[:MOST_SERIES]:
        recent = [value for value in values[-RECENT:] if math.isfinite(value)]
        if recent:
            form = column([_mean(recent), min(recent), max(recent)])
            shown = [form(each) for each in (_mean(recent), min(recent), max(recent))]
            rows.append([name, str(len(values)), number(values[0]), number(values[-1]), *shown])
    last = max((len(values) for values in found.series.values()), default=0) + found.first - 1
    head = [w("head.series"), w("head.count"), w("head.first"), w("head.last")]
    head += [w(f"head.recent_{each}", n=RECENT) for each in ("mean", "min", "max")]
    notes = [w("training.source", source=code(found.source), first=max(found.first, last - RECENT + 1), last=last)]
    if len(told) > MOST_SERIES:
        notes.append(w("training.cut", n=len(told) - MOST_SERIES))
    return "\n\n".join([table(head, rows), "\n".join(f"- {note}" for note in notes)])
