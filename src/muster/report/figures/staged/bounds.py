"""The bounds of a gate's criteria as they applied row by row, and what its windows made of the values. Pure numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from muster.report.figures.staged.artifacts import Judged, Seen

if TYPE_CHECKING:
    from muster.report.figures.staged.ground import Look

RELATIONS = {"min": "≥", "max": "≤", "above": ">", "below": "<"}
LOWER = ("min", "above")


class Line(NamedTuple):
    side: str
    bound: str  # lower | upper: a stage may say `above` where another says `min`
    thresholds: list[float]  # row by row; NaN: it did not apply


def _side_of(check: Judged) -> tuple[str, str]:
    return check.side, "lower" if check.bound in LOWER else "upper"


def bounds_of(rows: Sequence[Seen], key: str) -> list[Line]:
    found: dict[tuple[str, str], list[float]] = {}
    for at, row in enumerate(rows):
        for check in row.checks:
            if check.key == key:
                found.setdefault(_side_of(check), [math.nan] * len(rows))[at] = check.threshold
    return [Line(*place, thresholds) for place, thresholds in found.items()]


def windowed(rows: Sequence[Seen], key: str) -> Iterator[tuple[str, list[float]]]:
    """By side what was judged, where a window made something else of it than the value itself."""
    for side in ("success", "failure"):
        checks = [[each for each in row.checks if each.key == key and each.side == side] for row in rows]
        if any(each.window != "last" for row in checks for each in row):
            yield side, [row[0].value if row else math.nan for row in checks]


def steps(spans: Sequence[tuple[float, float]], values: Sequence[float]) -> tuple[list[float], list[float]]:
    """A line that jumps between rows; a gap where there is no value. What stays the same is one piece."""
    xs: list[float] = []
    ys: list[float] = []
    for (low, high), value in zip(spans, values, strict=True):
        if len(ys) > 1 and ys[-1] == value and ys[-2] == value:
            xs[-1] = high
            continue
        xs += [low, high]
        ys += [value, value]
    return xs, ys


def described(rows: Sequence[Seen], key: str, looks: Mapping[str, Look]) -> str:
    """`success: median 4 ≥ 70; failure: < 95`, and by stage where stages differ."""
    said = []
    for side in ("success", "failure"):
        by_words: dict[str, dict[str, None]] = {}
        for row in rows:
            mine = [each for each in row.checks if each.key == key and each.side == side]
            if mine:
                by_words.setdefault(" and ".join(map(_words, mine)), {})[row.stage] = None
        if len(by_words) == 1:
            said.append(f"{side}: {next(iter(by_words))}")
        elif by_words:
            each = (
                f"{words} ({'/'.join(_look(looks, stage) for stage in stages)})" for words, stages in by_words.items()
            )
            said.append(f"{side}: {', '.join(each)}")
    return "; ".join(said)


def _words(check: Judged) -> str:
    window = "" if check.window == "last" else f"{check.window} "
    return f"{window}{RELATIONS.get(check.bound, check.bound)} {check.threshold:g}"


def _look(looks: Mapping[str, Look], stage: str) -> str:
    return looks[stage].name if stage in looks else stage
