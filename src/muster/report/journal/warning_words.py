"""What a run warned of, what in its files contradicts itself, and what could not be read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muster.report.journal.facts import Run
from muster.report.journal.gate_words import _number
from muster.report.journal.shown import iteration, number
from muster.report.journal.wording import Wording
from muster.report.record_wording import code, plain

MOST = 30
NAMED = 8


def warnings_body(run: Run, w: Wording) -> str:
    told = list(warnings(run, w))
    if not told:
        return w("warnings.none")
    more = [w("warnings.more", n=len(told) - MOST)] if len(told) > MOST else []
    return "\n".join(f"- {each}" for each in [*told[:MOST], *more])


def warnings(run: Run, w: Wording) -> Iterator[str]:
    if run.state and run.state != "DONE":
        yield w("warnings.state", cell=code(run.title), state=run.state)
    schedule = run.schedule or {}
    yield from _raised(schedule, w)
    yield from _used_up(schedule, w)
    yield from _length(schedule, w)
    yield from _labels(run, schedule, w)
    yield from _not_finite(run, w)
    yield from (w(each.key, **each.parts) for each in run.troubles)


def _raised(schedule: Mapping[str, Any], w: Wording) -> Iterator[str]:
    for each in _mappings(schedule.get("warnings")):
        parts = {name: iteration(_number(each.get(name))) for name in ("onset", "iteration", "duration", "total")}
        ratios = {name: _ratio(each.get(name)) for name in ("ratio", "threshold")}
        yield w("warnings.raised", type=plain(str(each.get("type", "?"))), **parts, **ratios)


def _ratio(value: Any) -> str:
    found = _number(value)
    return "?" if found is None else number(found, 3)


def _used_up(schedule: Mapping[str, Any], w: Wording) -> Iterator[str]:
    """The iteration after which a type of stage has nothing left, while the run goes on."""
    trace = _mappings(schedule.get("trace"))
    total = _number(schedule.get("iterations")) or max((_number(row.get("iteration")) or 0 for row in trace), default=0)
    first: dict[str, float] = {}
    for row in trace:
        at, left = _number(row.get("iteration")), row.get("remaining")
        for kind, value in left.items() if isinstance(left, Mapping) and at is not None else ():
            if _number(value) == 0:
                first.setdefault(str(kind), at or 0)
            else:
                first.pop(str(kind), None)
    for kind, at in first.items():
        if at < total:
            yield w("warnings.used_up", type=plain(kind), at=iteration(at), total=iteration(total))


def _length(schedule: Mapping[str, Any], w: Wording) -> Iterator[str]:
    stages = _mappings(schedule.get("stages"))
    total = _number(schedule.get("iterations"))
    if not stages or not total:
        return
    never = [each for each in stages if (_number(each.get("from")) or 0) > total]
    end = max((_number(each.get("to")) or 0 for each in stages), default=0)
    if end > total:
        names = w.list([f"{_text(each, 'type')} {_text(each, 'from')}–{_text(each, 'to')}" for each in never], NAMED)
        key = "warnings.schedule_long" if never else "warnings.schedule_cut"
        yield w(key, end=iteration(end), total=iteration(total), n=len(never), names=names)


def _labels(run: Run, schedule: Mapping[str, Any], w: Wording) -> Iterator[str]:
    """Evaluations whose stage is another one than the schedule has at that iteration."""
    stages = [(_number(each.get("from")), _number(each.get("to")), str(each.get("type", ""))) for each in
              _mappings(schedule.get("stages"))]  # fmt: skip
    if not stages or run.evaluations is None:
        return
    for row in run.evaluations.rows:
        at = row.at
        if at is None or not row.stage:
            continue
        there = [kind for first, last, kind in stages if first is not None and last is not None and first <= at <= last]
        if there and row.stage not in there:
            told = {"at": iteration(at), "said": code(row.stage), "meant": code(there[0])}
            yield w("warnings.label", **told, source=code(run.evaluations.source))


def _not_finite(run: Run, w: Wording) -> Iterator[str]:
    found: dict[str, list[str]] = {}
    for row in run.evaluations.rows if run.evaluations else ():
        for key, value in row.values.items():
            if not math.isfinite(value):
                found.setdefault(key, []).append(iteration(row.at))
    for key, places in found.items():
        yield w("warnings.not_finite", key=code(key), n=len(places), at=w.list(places, NAMED))


def _text(each: Mapping[str, Any], name: str) -> str:
    value = _number(each.get(name))
    return plain(str(each.get(name, "?"))) if value is None else iteration(value)


def _mappings(found: Any) -> Sequence[Mapping[str, Any]]:
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []
