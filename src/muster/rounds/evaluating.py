"""What an expression gives for a run, with every number on the way. What nobody can tell is unknown, not false."""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from muster.rounds.expressions import Compared, Joined, Literally, Metric, Node, Reckoned
from muster.rounds.summary import Summary

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_RECKON: dict[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Traced:
    """A part of an expression with its value. None: unknown, and `why`."""

    node: Node
    value: float | bool | None
    why: str = ""
    parts: tuple[Traced, ...] = ()

    @property
    def true(self) -> bool:
        return isinstance(self.value, bool) and self.value


@dataclass(frozen=True, slots=True)
class Metrics:
    """A run's summaries, and the keys that any run has, for a hint where a key is misspelt."""

    summaries: Mapping[str, Summary]
    known: Collection[str] = ()

    def find(self, key: str) -> tuple[Summary | None, str]:
        """By its name, with `.` and `/` taken for the same where only one key is meant; else why there is none."""
        meant = names_meant(key, self.summaries)
        if len(meant) > 1:
            return None, f'"{key}" may mean {" or ".join(sorted(meant))}: write which'
        return (self.summaries[meant[0]], "") if meant else (None, self._nowhere(key))

    def _nowhere(self, key: str) -> str:
        if any(alike(name, key) for name in self.known):
            return f'this run logged no "{key}"; others did'
        names = list(dict.fromkeys([*self.summaries, *self.known]))
        near = _near(key, names)
        hint = f'; did you mean "{near}"?' if near else "" if names else "; it logged nothing at all"
        return f'nothing logged "{key}"{hint}'


def names_meant(key: str, names: Collection[str]) -> list[str]:
    """The name that a key means: itself, else what is alike; several: nobody can tell."""
    return [key] if key in names else [name for name in names if alike(name, key)]


def alike(name: str, key: str) -> bool:
    """Whether they are the same where `.` and `/` are."""
    return _plain(name) == _plain(key)


def _plain(key: str) -> str:
    return key.replace("/", ".")


def _near(key: str, names: list[str]) -> str:
    close = difflib.get_close_matches(key, names, 1)
    last = _plain(key).rpartition(".")[2]
    same = [name for name in names if _plain(name).rpartition(".")[2] == last]
    return (close or same or [""])[0]


def evaluate(node: Node, metrics: Metrics) -> Traced:
    if isinstance(node, Literally):
        return Traced(node, node.value if not isinstance(node.value, str) else None)
    if isinstance(node, Metric):
        return _metric(node, metrics)
    if isinstance(node, Reckoned):
        return _reckoned(node, [evaluate(side, metrics) for side in node.sides])
    if isinstance(node, Compared):
        return _compared(node, [evaluate(side, metrics) for side in node.sides])
    assert isinstance(node, Joined)
    return _joined(node, [evaluate(side, metrics) for side in node.sides])


def _metric(node: Metric, metrics: Metrics) -> Traced:
    summary, why = metrics.find(node.key)
    if node.function == "missing":
        if summary is None and names_meant(node.key, metrics.summaries):
            return Traced(node, None, why)
        return Traced(node, summary is None or summary.count == 0)
    if summary is None or summary.count == 0:
        return Traced(node, None, why or f'nothing logged "{node.key}"')
    if node.window:
        summary = summary.window(node.window)
    value = _value(node.function, summary)
    if value is None or not math.isfinite(value):
        return Traced(node, None, _why_none(node, summary, value))
    return Traced(node, float(value))


def _value(function: str, summary: Summary) -> float | None:
    if function == "best":
        return summary.best()
    found: Any = getattr(summary, "pct" if function == "delta_pct" else function)
    return None if found is None else float(found)


def _why_none(node: Metric, summary: Summary, value: float | None) -> str:
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


def _unknown(parts: list[Traced]) -> str:
    return next((part.why for part in parts if part.value is None), "")


def _reckoned(node: Reckoned, parts: list[Traced]) -> Traced:
    values = [part.value for part in parts if part.value is not None]
    if len(values) < len(parts):
        return Traced(node, None, _unknown(parts), tuple(parts))
    if len(values) == 1:
        return Traced(node, -values[0], "", tuple(parts))
    try:
        value = _RECKON[node.sign](values[0], values[1])
    except ZeroDivisionError:
        return Traced(node, None, f"{node.text} divides by zero", tuple(parts))
    if not math.isfinite(value):
        return Traced(node, None, f"{node.text} is too large for a number", tuple(parts))
    return Traced(node, value, "", tuple(parts))


def _compared(node: Compared, parts: list[Traced]) -> Traced:
    """0 < x < 1 is false as soon as one of the two is, whatever the other may be."""
    unknown = False
    for sign, left, right in zip(node.signs, parts, parts[1:], strict=False):
        if left.value is None or right.value is None:
            unknown = True
        elif not _COMPARE[sign](left.value, right.value):
            return Traced(node, False, "", tuple(parts))
    return Traced(node, None if unknown else True, _unknown(parts) if unknown else "", tuple(parts))


def _joined(node: Joined, parts: list[Traced]) -> Traced:
    values = [part.value for part in parts]
    if node.word == "not":
        value = None if values[0] is None else not values[0]
        return Traced(node, value, parts[0].why, tuple(parts))
    settles = node.word == "or"  # the value of one side that settles the whole
    if settles in values:
        return Traced(node, settles, "", tuple(parts))
    if None in values:
        return Traced(node, None, _unknown(parts), tuple(parts))
    return Traced(node, not settles, "", tuple(parts))


# -- as people read it


def sentence(traced: Traced) -> str:
    """`last("ot.pi_sum") = 0.031 < 0.05: true`."""
    node = traced.node
    if isinstance(node, Joined) and node.word == "not":
        return f"not ({sentence(traced.parts[0])}): {verdict(traced)}"
    if isinstance(node, Joined):
        return f" {node.word} ".join(_bracketed(part) for part in traced.parts)
    if isinstance(node, Compared):
        text = _side(traced.parts[0])
        for sign, part in zip(node.signs, traced.parts[1:], strict=True):
            text += f" {sign} {_side(part)}"
        return f"{text}: {verdict(traced)}{_numbers(traced)}"
    return f"{node.text}: {verdict(traced)}" if node.kind == "truth" else f"{_side(traced)}{_numbers(traced)}"


def verdict(traced: Traced) -> str:
    if traced.value is None:
        return f"unknown ({traced.why})"
    return shown(traced.value)


def shown(value: float | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.6g}"


def _bracketed(part: Traced) -> str:
    text = sentence(part)
    return f"({text})" if isinstance(part.node, Joined) and part.node.word != "not" else text


def _side(part: Traced) -> str:
    if isinstance(part.node, Literally) or _signed(part.node):
        return part.node.text
    return f"{part.node.text} = {'unknown' if part.value is None else shown(part.value)}"


def _signed(node: Node) -> bool:
    return isinstance(node, Reckoned) and len(node.sides) == 1 and isinstance(node.sides[0], Literally)


def _numbers(traced: Traced) -> str:
    """The metrics inside of sums and products."""
    sides = traced.parts if isinstance(traced.node, Compared) else (traced,)
    inner = [each for side in sides if isinstance(side.node, Reckoned) for each in _metrics_in(side)]
    told = dict.fromkeys(_side(each) for each in inner)
    return f" ({', '.join(told)})" if told else ""


def _metrics_in(traced: Traced) -> Iterator[Traced]:
    if isinstance(traced.node, Metric):
        yield traced
    for part in traced.parts:
        yield from _metrics_in(part)


def as_json(traced: Traced) -> dict[str, Any]:
    """The whole trace, for programs."""
    found: dict[str, Any] = {"text": traced.node.text, "value": traced.value}
    if traced.why:
        found["why"] = traced.why
    if traced.parts:
        found["parts"] = [as_json(part) for part in traced.parts]
    return found
