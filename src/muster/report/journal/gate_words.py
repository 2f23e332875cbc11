"""What a gate did, in words: which evaluation was what, what broke its streak, what it still lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muster.report.journal.facts import GateTrace
from muster.report.journal.shown import iteration, number
from muster.report.journal.wording import Wording
from muster.report.record_wording import code, plain

STATES = ("advance", "hold", "failure_hold", "fall_back", "frozen")
VERDICTS = ("success", "failure", "both", "neither", "unknown")
_OTHERWISE = {
    "min": "below",
    "max": "above",
    "above": "max",
    "below": "min",
}  # what is true where the bound does not hold
MOST = 40  # evaluations that are told one by one
NEAREST = 3


def gate_body(trace: GateTrace, w: Wording) -> str:
    """What came of it first, then evaluation by evaluation."""
    rows = list(trace.rows)
    source = w("gate.source", source=code(trace.source))
    if not rows:
        return w.sentences(w("gate.empty", gate=code(trace.name)), source)
    told = rows[-MOST:]
    cut = [w("gate.cut", shown=len(told), n=len(rows))] if len(told) < len(rows) else []
    listed = "\n".join(f"- {_row(row, w)}" for row in told)
    return "\n\n".join([w.sentences(_summary(trace, w), *_ending(rows, w), source), *cut, listed])


def _summary(trace: GateTrace, w: Wording) -> str:
    rows = trace.rows
    states = Counter(str(row.get("state")) for row in rows)
    counts = w.list(
        [f"{state} {states[state]}" for state in [*STATES, *sorted(set(states) - set(STATES))] if states[state]]
    )
    last = rows[-1]
    opened = [row for row in rows if row.get("state") == "advance"]
    first = w("gate.summary", gate=code(trace.name), n=len(rows), counts=counts)
    phase = last.get("phase", 0)
    if opened:
        at = w.list([iteration(_number(row.get("iteration"))) for row in opened])
        return w.sentences(first, w("gate.opened", n=len(opened), at=at, phase=phase))
    return w.sentences(first, w("gate.shut", phase=phase))


def _row(row: Mapping[str, Any], w: Wording) -> str:
    stage = (
        f"（{row['stage']}）"
        if w.language == "zh" and row.get("stage")
        else f" ({row['stage']})"
        if row.get("stage")
        else ""
    )
    verdict, state = str(row.get("verdict", "unknown")), str(row.get("state", "?"))
    judged = w(f"gate.verdict.{verdict}") if w.has(f"gate.verdict.{verdict}") else plain(verdict)
    told = w("gate.row", at=iteration(_number(row.get("iteration"))), stage=stage, verdict=judged, state=state)
    reasons = list(_reasons(row, w))
    return (
        w("gate.because", told=told, why="；".join(reasons) if w.language == "zh" else "; ".join(reasons))
        if reasons
        else told
    )


def _reasons(row: Mapping[str, Any], w: Wording) -> Iterator[str]:
    verdict, state = row.get("verdict"), row.get("state")
    if state == "frozen":
        yield _frozen(row, w)
        return
    if state == "advance":
        yield w("gate.advanced", phase=row.get("phase", 0))
        return
    failed, unmet = failing(row), unmet_criteria(row)
    yield from (_said(each, w) for each in failed)
    if failed and unmet:
        yield w("gate.nor_success", what=w.list([_said(each, w) for each in unmet]))
    elif verdict != "success":
        yield from (_said(each, w) for each in unmet)
    if verdict == "both":
        yield w("gate.failure_wins")
    if verdict == "success":
        yield w("gate.streak", streak=row.get("streak", 0), required=row.get("required", 0))
    if row.get("broke"):
        yield w("gate.broke")
    if state == "fall_back":
        yield w("gate.fell_back", phase=row.get("phase", 0))
    if not (failed or unmet) and verdict not in ("success", "both") and row.get("why"):
        yield plain(str(row["why"]))


def failing(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Failure criteria that hold."""
    return [each for each in _criteria(row) if each.get("side") == "failure" and each.get("holds")]


def unmet_criteria(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Success criteria that don't hold; of a key that fails already only the failure is told."""
    told = {str(each.get("key")) for each in failing(row)}
    unmet = [each for each in _criteria(row) if each.get("side") == "success" and not each.get("holds")]
    return [each for each in unmet if str(each.get("key")) not in told]


def _criteria(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [each for each in row.get("criteria") or () if isinstance(each, Mapping)]


def _said(check: Mapping[str, Any], w: Wording) -> str:
    name = _name(check)
    value, threshold = _number(check.get("value")), _number(check.get("threshold"))
    bound, holds = str(check.get("bound")), check.get("holds")
    if holds is None or value is None or threshold is None or bound not in _OTHERWISE:
        return w("gate.unjudged", key=name)
    relation = bound if holds else _OTHERWISE[bound]
    return w(f"gate.relation.{relation}", key=name, value=number(value, 6), threshold=number(threshold, 6))


def _ending(rows: Sequence[Mapping[str, Any]], w: Wording) -> Iterator[str]:
    last = rows[-1]
    broken = [iteration(_number(row.get("iteration"))) for row in rows if row.get("broke")]
    if broken:
        yield w("gate.streaks_broken", n=len(broken), at=w.list(broken))
    in_the_way = Counter(
        str(each.get("key")) for row in rows for each in _distinct([*failing(row), *unmet_criteria(row)])
    )
    judged = sum(row.get("state") not in ("frozen", "advance") for row in rows)
    if in_the_way and judged:
        often = [w("gate.times", key=code(key), n=count) for key, count in in_the_way.most_common(NEAREST)]
        yield w("gate.in_the_way", n=judged, often=w.list(often))
    lacking = _lacking(last, w)
    if lacking:
        yield w("gate.lacks", what=w.list(lacking))


def _distinct(checks: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return list({str(each.get("key")): each for each in checks}.values())


def _lacking(row: Mapping[str, Any], w: Wording) -> list[str]:
    """What would have to come for the gate to advance, after the last evaluation."""
    if row.get("state") in ("advance", "fall_back"):
        return []
    if row.get("state") == "frozen":
        return [_frozen(row, w)]
    required, streak = _number(row.get("required")), _number(row.get("streak")) or 0.0
    more = int(required - streak) if required is not None else 0
    wanted = [_wanted(each, w) for each in [*failing(row), *unmet_criteria(row)]]
    return [*wanted, *([w("gate.successes", n=more)] if more > 0 else [])]


def _frozen(row: Mapping[str, Any], w: Wording) -> str:
    """`frozen_until` is the last iteration of the freeze: what comes after it is decided."""
    until = _number(row.get("frozen_until"))
    return w("gate.frozen", next=iteration(None if until is None else until + 1))


def _wanted(check: Mapping[str, Any], w: Wording) -> str:
    """What would have to be true: a success criterion that holds, or a failure criterion that does not."""
    bound, holds = str(check.get("bound")), check.get("holds")
    value, threshold = _number(check.get("value")), _number(check.get("threshold"))
    if holds is None or value is None or threshold is None or bound not in _OTHERWISE:
        return w("gate.wanted.values", key=_name(check))
    relation = _OTHERWISE[bound] if check.get("side") == "failure" else bound
    parts = {"value": number(value, 6), "threshold": number(threshold, 6)}
    return w(f"gate.wanted.{relation}", key=_name(check), **parts)


def _name(check: Mapping[str, Any]) -> str:
    window = str(check.get("window", "last"))
    return code(str(check.get("key"))) + ("" if window == "last" else f" ({window})")


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
