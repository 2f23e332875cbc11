"""The journal's blocks about gates and stages: which evaluation broke a streak, what is still missing, events by
stage, warnings, contradictions in a run's files.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muster.app.journal.journal_tables import format_iteration, format_metric_value
from muster.app.journal.recorded_run import RecordedGateTrace, RecordedRun
from muster.text.catalogue import Catalogue
from muster.text.escape_markup import escape_sentence
from muster.text.sentences import format_inline_code

GATE_STATES = ("advance", "hold", "failure_hold", "fall_back", "frozen")
_OTHERWISE = {
    "min": "below",
    "max": "above",
    "above": "max",
    "below": "min",
}  # what is true where the bound does not hold
MOST_GATE_ROWS = 40  # evaluations that are told one by one
MOST_OBSTACLES = 3


def gate_body(trace: RecordedGateTrace, w: Catalogue) -> str:
    """What came of it first, then evaluation by evaluation."""
    rows = list(trace.rows)
    source = w("gate.source", source=format_inline_code(trace.source))
    if not rows:
        return w.sentences(w("gate.empty", gate=format_inline_code(trace.name)), source)
    told = rows[-MOST_GATE_ROWS:]
    cut = [w("gate.cut", shown=len(told), n=len(rows))] if len(told) < len(rows) else []
    listed = "\n".join(f"- {_gate_row_text(row, w)}" for row in told)
    return "\n\n".join([w.sentences(_gate_summary(trace, w), *_gate_ending_sentences(rows, w), source), *cut, listed])


def _gate_summary(trace: RecordedGateTrace, w: Catalogue) -> str:
    rows = trace.rows
    states = Counter(str(row.get("state")) for row in rows)
    counts = w.list(
        [
            f"{state} {states[state]}"
            for state in [*GATE_STATES, *sorted(set(states) - set(GATE_STATES))]
            if states[state]
        ]
    )
    last = rows[-1]
    opened = [row for row in rows if row.get("state") == "advance"]
    first = w("gate.summary", gate=format_inline_code(trace.name), n=len(rows), counts=counts)
    phase = last.get("phase", 0)
    if opened:
        at = w.list([format_iteration(_float_or_none(row.get("iteration"))) for row in opened])
        return w.sentences(first, w("gate.opened", n=len(opened), at=at, phase=phase))
    return w.sentences(first, w("gate.shut", phase=phase))


def _gate_row_text(row: Mapping[str, Any], w: Catalogue) -> str:
    stage = w("gate.of_stage", stage=row["stage"]) if row.get("stage") else ""
    verdict, state = str(row.get("verdict", "unknown")), str(row.get("state", "?"))
    judged = w(f"gate.verdict.{verdict}") if w.has(f"gate.verdict.{verdict}") else escape_sentence(verdict)
    told = w(
        "gate.row", at=format_iteration(_float_or_none(row.get("iteration"))), stage=stage, verdict=judged, state=state
    )
    reasons = list(_gate_row_reasons(row, w))
    return w("gate.because", told=told, why=w("semicolon").join(reasons)) if reasons else told


def _gate_row_reasons(row: Mapping[str, Any], w: Catalogue) -> Iterator[str]:
    verdict, state = row.get("verdict"), row.get("state")
    if state == "frozen":
        yield _frozen_until_text(row, w)
        return
    if state == "advance":
        yield w("gate.advanced", phase=row.get("phase", 0))
        return
    failed, unmet = failing_criteria(row), unmet_criteria(row)
    yield from (_criterion_as_found(each, w) for each in failed)
    if failed and unmet:
        yield w("gate.nor_success", what=w.list([_criterion_as_found(each, w) for each in unmet]))
    elif verdict != "success":
        yield from (_criterion_as_found(each, w) for each in unmet)
    if verdict == "both":
        yield w("gate.failure_wins")
    if verdict == "success":
        yield w("gate.streak", streak=row.get("streak", 0), required=row.get("required", 0))
    if row.get("broke"):
        yield w("gate.broke")
    if state == "fall_back":
        yield w("gate.fell_back", phase=row.get("phase", 0))
    if not (failed or unmet) and verdict not in ("success", "both") and row.get("why"):
        yield escape_sentence(str(row["why"]))


def failing_criteria(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Failure criteria that hold."""
    return [each for each in _criteria_of_row(row) if each.get("side") == "failure" and each.get("holds")]


def unmet_criteria(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Success criteria that don't hold; of a key that fails already only the failure is told."""
    told = {str(each.get("key")) for each in failing_criteria(row)}
    unmet = [each for each in _criteria_of_row(row) if each.get("side") == "success" and not each.get("holds")]
    return [each for each in unmet if str(each.get("key")) not in told]


def _criteria_of_row(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [each for each in row.get("criteria") or () if isinstance(each, Mapping)]


def _criterion_as_found(check: Mapping[str, Any], w: Catalogue) -> str:
    name = _criterion_name(check)
    value, threshold = _float_or_none(check.get("value")), _float_or_none(check.get("threshold"))
    bound, holds = str(check.get("bound")), check.get("holds")
    if holds is None or value is None or threshold is None or bound not in _OTHERWISE:
        return w("gate.unjudged", key=name)
    relation = bound if holds else _OTHERWISE[bound]
    return w(
        f"gate.relation.{relation}",
        key=name,
        value=format_metric_value(value, 6),
        threshold=format_metric_value(threshold, 6),
    )


def _gate_ending_sentences(rows: Sequence[Mapping[str, Any]], w: Catalogue) -> Iterator[str]:
    last = rows[-1]
    broken = [format_iteration(_float_or_none(row.get("iteration"))) for row in rows if row.get("broke")]
    if broken:
        yield w("gate.streaks_broken", n=len(broken), at=w.list(broken))
    in_the_way = Counter(
        str(each.get("key"))
        for row in rows
        for each in _distinct_by_key([*failing_criteria(row), *unmet_criteria(row)])
    )
    judged = sum(row.get("state") not in ("frozen", "advance") for row in rows)
    if in_the_way and judged:
        often = [
            w("gate.times", key=format_inline_code(key), n=count)
            for key, count in in_the_way.most_common(MOST_OBSTACLES)
        ]
        yield w("gate.in_the_way", n=judged, often=w.list(often))
    lacking = _what_gate_lacks(last, w)
    if lacking:
        yield w("gate.lacks", what=w.list(lacking))


def _distinct_by_key(checks: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return list({str(each.get("key")): each for each in checks}.values())


def _what_gate_lacks(row: Mapping[str, Any], w: Catalogue) -> list[str]:
    """What would have to come for the gate to advance, after the last evaluation."""
    if row.get("state") in ("advance", "fall_back"):
        return []
    if row.get("state") == "frozen":
        return [_frozen_until_text(row, w)]
    required, streak = _float_or_none(row.get("required")), _float_or_none(row.get("streak")) or 0.0
    more = int(required - streak) if required is not None else 0
    wanted = [_criterion_as_wanted(each, w) for each in [*failing_criteria(row), *unmet_criteria(row)]]
    return [*wanted, *([w("gate.successes", n=more)] if more > 0 else [])]


def _frozen_until_text(row: Mapping[str, Any], w: Catalogue) -> str:
    """`frozen_until` is the last iteration of the freeze: what comes after it is decided."""
    until = _float_or_none(row.get("frozen_until"))
    return w("gate.frozen", next=format_iteration(None if until is None else until + 1))


def _criterion_as_wanted(check: Mapping[str, Any], w: Catalogue) -> str:
    """What would have to be true: a success criterion that holds, or a failure criterion that does not."""
    bound, holds = str(check.get("bound")), check.get("holds")
    value, threshold = _float_or_none(check.get("value")), _float_or_none(check.get("threshold"))
    if holds is None or value is None or threshold is None or bound not in _OTHERWISE:
        return w("gate.wanted.values", key=_criterion_name(check))
    relation = _OTHERWISE[bound] if check.get("side") == "failure" else bound
    parts = {"value": format_metric_value(value, 6), "threshold": format_metric_value(threshold, 6)}
    return w(f"gate.wanted.{relation}", key=_criterion_name(check), **parts)


def _criterion_name(check: Mapping[str, Any]) -> str:
    window = str(check.get("window", "last"))
    return format_inline_code(str(check.get("key"))) + ("" if window == "last" else f" ({window})")


def _float_or_none(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def stages_body(run: RecordedRun, w: Catalogue) -> str:
    told = [*_events_by_stage(run, w), *_schedule_lines(run, w)]
    if not told:
        return ""
    sources = [format_inline_code(each) for each in (run.summary_source, run.schedule_source) if each]
    return "\n".join(f"- {each}" for each in [*told, w("stages.source", source=w.list(sources))])


def _events_by_stage(run: RecordedRun, w: Catalogue) -> Iterator[str]:
    counts = whole_numbers((run.summary or {}).get("events"))
    total = sum(counts.values())
    if total:
        what = escape_sentence(str((run.summary or {}).get("what") or w("stages.what")))
        shown = [
            w("stages.event", stage=escape_sentence(stage), n=count, share=f"{100 * count / total:.1f}")
            for stage, count in sorted(counts.items(), key=lambda each: -each[1])
        ]
        yield w("stages.events", what=what[:1].upper() + what[1:], counts=w.list(shown), n=total)


def _schedule_lines(run: RecordedRun, w: Catalogue) -> Iterator[str]:
    schedule = run.schedule or {}
    again = whole_numbers(schedule.get("reinjections_by_type"))
    ran = iterations_by_stage(schedule)
    if ran:
        yield w("stages.run", counts=_list_stage_counts(ran, w))
    if any(again.values()):
        yield w("stages.again", counts=_list_stage_counts(again, w))


def iterations_by_stage(schedule: Mapping[str, Any]) -> dict[str, int]:
    """As far as the run went."""
    stages, total = schedule.get("stages"), schedule.get("iterations")
    found: dict[str, int] = {}
    for each in stages if isinstance(stages, list) else ():
        span = whole_numbers({name: each.get(name) for name in ("from", "to")}) if isinstance(each, Mapping) else {}
        if len(span) == 2:
            last = min(span["to"], total) if isinstance(total, int) else span["to"]
            kind = str(each.get("type", "?"))
            found[kind] = found.get(kind, 0) + max(0, last - span["from"] + 1)
    return {kind: count for kind, count in found.items() if count}


def whole_numbers(found: Any) -> dict[str, int]:
    if not isinstance(found, Mapping):
        return {}
    numbers = {str(key): value for key, value in found.items() if isinstance(value, int | float)}
    return {key: int(value) for key, value in numbers.items() if not isinstance(value, bool) and math.isfinite(value)}


def _list_stage_counts(counts: Mapping[str, int], w: Catalogue) -> str:
    return w.list([f"{escape_sentence(kind)} {count}" for kind, count in counts.items()])


MOST_WARNINGS = 30
MOST_NAMED = 8


def warnings_body(run: RecordedRun, w: Catalogue) -> str:
    told = list(warnings_of_run(run, w))
    if not told:
        return w("warnings.none")
    more = [w("warnings.more", n=len(told) - MOST_WARNINGS)] if len(told) > MOST_WARNINGS else []
    return "\n".join(f"- {each}" for each in [*told[:MOST_WARNINGS], *more])


def warnings_of_run(run: RecordedRun, w: Catalogue) -> Iterator[str]:
    if run.state and run.state != "DONE":
        yield w("warnings.state", cell=format_inline_code(run.title), state=run.state)
    schedule = run.schedule or {}
    yield from _raised_warnings(schedule, w)
    yield from _stages_used_up(schedule, w)
    yield from _schedule_length_warnings(schedule, w)
    yield from _stage_label_warnings(run, schedule, w)
    yield from _non_finite_warnings(run, w)
    yield from (w(each.key, **each.parts) for each in run.troubles)


def _raised_warnings(schedule: Mapping[str, Any], w: Catalogue) -> Iterator[str]:
    for each in _mappings_in_list(schedule.get("warnings")):
        parts = {
            name: format_iteration(_float_or_none(each.get(name)))
            for name in ("onset", "iteration", "duration", "total")
        }
        ratios = {name: _ratio_text(each.get(name)) for name in ("ratio", "threshold")}
        yield w("warnings.raised", type=escape_sentence(str(each.get("type", "?"))), **parts, **ratios)


def _ratio_text(value: Any) -> str:
    found = _float_or_none(value)
    return "?" if found is None else format_metric_value(found, 3)


def _stages_used_up(schedule: Mapping[str, Any], w: Catalogue) -> Iterator[str]:
    """The iteration after which a type of stage has nothing left, while the run goes on."""
    trace = _mappings_in_list(schedule.get("trace"))
    total = _float_or_none(schedule.get("iterations")) or max(
        (_float_or_none(row.get("iteration")) or 0 for row in trace), default=0
    )
    first: dict[str, float] = {}
    for row in trace:
        at, left = _float_or_none(row.get("iteration")), row.get("remaining")
        for kind, value in left.items() if isinstance(left, Mapping) and at is not None else ():
            if _float_or_none(value) == 0:
                first.setdefault(str(kind), at or 0)
            else:
                first.pop(str(kind), None)
    for kind, at in first.items():
        if at < total:
            yield w(
                "warnings.used_up", type=escape_sentence(kind), at=format_iteration(at), total=format_iteration(total)
            )


def _schedule_length_warnings(schedule: Mapping[str, Any], w: Catalogue) -> Iterator[str]:
    stages = _mappings_in_list(schedule.get("stages"))
    total = _float_or_none(schedule.get("iterations"))
    if not stages or not total:
        return
    never = [each for each in stages if (_float_or_none(each.get("from")) or 0) > total]
    end = max((_float_or_none(each.get("to")) or 0 for each in stages), default=0)
    if end > total:
        names = w.list(
            [
                f"{_schedule_value_text(each, 'type')} "
                f"{_schedule_value_text(each, 'from')}–{_schedule_value_text(each, 'to')}"
                for each in never
            ],
            MOST_NAMED,
        )
        key = "warnings.schedule_long" if never else "warnings.schedule_cut"
        yield w(key, end=format_iteration(end), total=format_iteration(total), n=len(never), names=names)


def _stage_label_warnings(run: RecordedRun, schedule: Mapping[str, Any], w: Catalogue) -> Iterator[str]:
    """Evaluations whose stage is another one than the schedule has at that iteration."""
    stages = [
        (_float_or_none(each.get("from")), _float_or_none(each.get("to")), str(each.get("type", "")))
        for each in _mappings_in_list(schedule.get("stages"))
    ]
    if not stages or run.evaluations is None:
        return
    for row in run.evaluations.rows:
        at = row.at
        if at is None or not row.stage:
            continue
        there = [kind for first, last, kind in stages if first is not None and last is not None and first <= at <= last]
        if there and row.stage not in there:
            told = {
                "at": format_iteration(at),
                "said": format_inline_code(row.stage),
                "meant": format_inline_code(there[0]),
            }
            yield w("warnings.label", **told, source=format_inline_code(run.evaluations.source))


def _non_finite_warnings(run: RecordedRun, w: Catalogue) -> Iterator[str]:
    found: dict[str, list[str]] = {}
    for row in run.evaluations.rows if run.evaluations else ():
        for key, value in row.values.items():
            if not math.isfinite(value):
                found.setdefault(key, []).append(format_iteration(row.at))
    for key, places in found.items():
        yield w("warnings.not_finite", key=format_inline_code(key), n=len(places), at=w.list(places, MOST_NAMED))


def _schedule_value_text(each: Mapping[str, Any], name: str) -> str:
    value = _float_or_none(each.get(name))
    return escape_sentence(str(each.get(name, "?"))) if value is None else format_iteration(value)


def _mappings_in_list(found: Any) -> Sequence[Mapping[str, Any]]:
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []
