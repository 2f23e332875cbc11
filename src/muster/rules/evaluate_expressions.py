"""What an expression gives for a run, with every number on the way. What nobody can tell is unknown, not false."""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from muster.rules.expressions import (
    ArithmeticNode,
    BooleanNode,
    ComparisonNode,
    ExpressionNode,
    LiteralNode,
    MetricNode,
)
from muster.rules.metric_summary import Summary

_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


@dataclass(frozen=True, slots=True)
class EvaluatedNode:
    """A part of an expression with its value. None: unknown, and `why`."""

    node: ExpressionNode
    value: float | bool | None
    why: str = ""
    parts: tuple[EvaluatedNode, ...] = ()

    @property
    def true(self) -> bool:
        return isinstance(self.value, bool) and self.value


@dataclass(frozen=True, slots=True)
class MetricSummaries:
    """A run's summaries, and the keys that any run has, for a hint where a key is misspelt."""

    summaries: Mapping[str, Summary]
    known: Collection[str] = ()

    def find(self, key: str) -> tuple[Summary | None, str]:
        """By its name, with `.` and `/` taken for the same where only one key is meant; else why there is none."""
        meant = names_matching_key(key, self.summaries)
        if len(meant) > 1:
            return None, f'"{key}" may mean {" or ".join(sorted(meant))}: write which'
        return (self.summaries[meant[0]], "") if meant else (None, self._nowhere(key))

    def _nowhere(self, key: str) -> str:
        if any(is_same_key(name, key) for name in self.known):
            return f'this run logged no "{key}"; others did'
        names = list(dict.fromkeys([*self.summaries, *self.known]))
        near = _closest_logged_key(key, names)
        hint = f'; did you mean "{near}"?' if near else "" if names else "; it logged nothing at all"
        return f'nothing logged "{key}"{hint}'


def names_matching_key(key: str, names: Collection[str]) -> list[str]:
    """The name that a key means: itself, else what is alike; several: nobody can tell."""
    return [key] if key in names else [name for name in names if is_same_key(name, key)]


def is_same_key(name: str, key: str) -> bool:
    """Whether they are the same where `.` and `/` are."""
    return _dotted_key(name) == _dotted_key(key)


def _dotted_key(key: str) -> str:
    return key.replace("/", ".")


def _closest_logged_key(key: str, names: list[str]) -> str:
    close = difflib.get_close_matches(key, names, 1)
    last = _dotted_key(key).rpartition(".")[2]
    same = [name for name in names if _dotted_key(name).rpartition(".")[2] == last]
    return (close or same or [""])[0]


def evaluate_expression(node: ExpressionNode, metrics: MetricSummaries) -> EvaluatedNode:
    if isinstance(node, LiteralNode):
        return EvaluatedNode(node, node.value if not isinstance(node.value, str) else None)
    if isinstance(node, MetricNode):
        return _evaluate_metric(node, metrics)
    if isinstance(node, ArithmeticNode):
        return _evaluate_arithmetic(node, [evaluate_expression(side, metrics) for side in node.sides])
    if isinstance(node, ComparisonNode):
        return _evaluate_comparison(node, [evaluate_expression(side, metrics) for side in node.sides])
    assert isinstance(node, BooleanNode)
    return _evaluate_boolean(node, [evaluate_expression(side, metrics) for side in node.sides])


def _evaluate_metric(node: MetricNode, metrics: MetricSummaries) -> EvaluatedNode:
    summary, why = metrics.find(node.key)
    if node.function == "missing":
        if summary is None and names_matching_key(node.key, metrics.summaries):
            return EvaluatedNode(node, None, why)
        return EvaluatedNode(node, summary is None or summary.count == 0)
    if summary is None or summary.count == 0:
        return EvaluatedNode(node, None, why or f'nothing logged "{node.key}"')
    if node.window:
        summary = summary.window(node.window)
    value = _metric_function_value(node.function, summary)
    if value is None or not math.isfinite(value):
        return EvaluatedNode(node, None, _explain_missing_number(node, summary, value))
    return EvaluatedNode(node, float(value))


def _metric_function_value(function: str, summary: Summary) -> float | None:
    if function == "best":
        return summary.best()
    found: Any = getattr(summary, "pct" if function == "delta_pct" else function)
    return None if found is None else float(found)


def _explain_missing_number(node: MetricNode, summary: Summary, value: float | None) -> str:
    key = f'"{node.key}"'
    if value is not None:
        return f"the {node.function} of {summary.count} values of {key} is {value}"
    if summary.nan == summary.count:
        return f"none of the {summary.count} values of {key} is a finite number"
    if node.function == "best":
        return f"whether higher or lower {key} is better is not known: write min({key}) or max({key})"
    if node.function == "slope":
        return f"{key} has no two values at different steps"
    if node.function == "delta_pct" and summary.first == 0:
        return f"the first value of {key} is 0, and nothing is a percentage of that"
    return f"the first or the last value of {key} is no finite number"


def _first_unknown_reason(parts: list[EvaluatedNode]) -> str:
    return next((part.why for part in parts if part.value is None), "")


def _evaluate_arithmetic(node: ArithmeticNode, parts: list[EvaluatedNode]) -> EvaluatedNode:
    values = [part.value for part in parts if part.value is not None]
    if len(values) < len(parts):
        return EvaluatedNode(node, None, _first_unknown_reason(parts), tuple(parts))
    if len(values) == 1:
        return EvaluatedNode(node, -values[0], "", tuple(parts))
    try:
        value = _ARITHMETIC[node.sign](values[0], values[1])
    except ZeroDivisionError:
        return EvaluatedNode(node, None, f"{node.text} divides by zero", tuple(parts))
    if not math.isfinite(value):
        return EvaluatedNode(node, None, f"{node.text} is too large for a number", tuple(parts))
    return EvaluatedNode(node, value, "", tuple(parts))


def _evaluate_comparison(node: ComparisonNode, parts: list[EvaluatedNode]) -> EvaluatedNode:
    """0 < x < 1 is false as soon as one of the two is, whatever the other may be."""
    unknown = False
    for sign, left, right in zip(node.signs, parts, parts[1:], strict=False):
        if left.value is None or right.value is None:
            unknown = True
        elif not _COMPARISONS[sign](left.value, right.value):
            return EvaluatedNode(node, False, "", tuple(parts))
    return EvaluatedNode(node, None if unknown else True, _first_unknown_reason(parts) if unknown else "", tuple(parts))


def _evaluate_boolean(node: BooleanNode, parts: list[EvaluatedNode]) -> EvaluatedNode:
    values = [part.value for part in parts]
    if node.word == "not":
        value = None if values[0] is None else not values[0]
        return EvaluatedNode(node, value, parts[0].why, tuple(parts))
    settles = node.word == "or"  # the value of one side that settles the whole
    if settles in values:
        return EvaluatedNode(node, settles, "", tuple(parts))
    if None in values:
        return EvaluatedNode(node, None, _first_unknown_reason(parts), tuple(parts))
    return EvaluatedNode(node, not settles, "", tuple(parts))


# -- as people read it


def explain_evaluation(traced: EvaluatedNode) -> str:
    """`last("ot.pi_sum") = 0.031 < 0.05: true`."""
    node = traced.node
    if isinstance(node, BooleanNode) and node.word == "not":
        return f"not ({explain_evaluation(traced.parts[0])}): {describe_truth(traced)}"
    if isinstance(node, BooleanNode):
        return f" {node.word} ".join(_bracket_boolean(part) for part in traced.parts)
    if isinstance(node, ComparisonNode):
        text = _describe_side(traced.parts[0])
        for sign, part in zip(node.signs, traced.parts[1:], strict=True):
            text += f" {sign} {_describe_side(part)}"
        return f"{text}: {describe_truth(traced)}{_list_inner_metrics(traced)}"
    return (
        f"{node.text}: {describe_truth(traced)}"
        if node.kind == "truth"
        else f"{_describe_side(traced)}{_list_inner_metrics(traced)}"
    )


def describe_truth(traced: EvaluatedNode) -> str:
    if traced.value is None:
        return f"unknown ({traced.why})"
    return format_truth_or_number(traced.value)


def format_truth_or_number(value: float | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.6g}"


def _bracket_boolean(part: EvaluatedNode) -> str:
    text = explain_evaluation(part)
    return f"({text})" if isinstance(part.node, BooleanNode) and part.node.word != "not" else text


def _describe_side(part: EvaluatedNode) -> str:
    if isinstance(part.node, LiteralNode) or _is_signed_literal(part.node):
        return part.node.text
    return f"{part.node.text} = {'unknown' if part.value is None else format_truth_or_number(part.value)}"


def _is_signed_literal(node: ExpressionNode) -> bool:
    return isinstance(node, ArithmeticNode) and len(node.sides) == 1 and isinstance(node.sides[0], LiteralNode)


def _list_inner_metrics(traced: EvaluatedNode) -> str:
    """The metrics inside of sums and products."""
    sides = traced.parts if isinstance(traced.node, ComparisonNode) else (traced,)
    inner = [each for side in sides if isinstance(side.node, ArithmeticNode) for each in _metrics_within(side)]
    told = dict.fromkeys(_describe_side(each) for each in inner)
    return f" ({', '.join(told)})" if told else ""


def _metrics_within(traced: EvaluatedNode) -> Iterator[EvaluatedNode]:
    if isinstance(traced.node, MetricNode):
        yield traced
    for part in traced.parts:
        yield from _metrics_within(part)


def evaluation_as_json(traced: EvaluatedNode) -> dict[str, Any]:
    """The whole trace, for programs."""
    found: dict[str, Any] = {"text": traced.node.text, "value": traced.value}
    if traced.why:
        found["why"] = traced.why
    if traced.parts:
        found["parts"] = [evaluation_as_json(part) for part in traced.parts]
    return found
