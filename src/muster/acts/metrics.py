"""What runs logged, for people and for scripts: one block per run, one row per key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.ports.metrics import Ended, Said
from muster.rounds.summary import Summary, direction_of, facts

COLUMNS = ("key", "first", "last", "best", "delta", "%", "mean", "count", "nan", "last step")
CLOCKS = frozenset({"_step", "_runtime", "_timestamp"})  # of W&B itself: not what the run logged


@dataclass(frozen=True, slots=True)
class Block:
    """One run."""

    name: str  # as it was asked for, or its folder
    sources: tuple[tuple[Said, str], ...]  # and why each was chosen; none: nothing was found, and a note says so
    keys: Mapping[str, Summary]
    ended: Ended | None = None
    written: float | None = None  # wall time of the last value
    notes: tuple[str, ...] = ()  # what was left aside, or can't be read
    others: tuple[str, ...] = ()  # keys that it logged, too, and that nobody asked for


def as_json(block: Block, now: float) -> dict[str, Any]:
    sources = [
        {"path": said.path, "format": said.format, "why": why, "skipped": list(said.skipped)}
        for said, why in block.sources
    ]
    return {
        "muster": 1,
        "run": block.name,
        "sources": sources,
        "keys": {key: facts(summary) for key, summary in sorted(block.keys.items())},
        "age_s": age(block, now),
        "ended": {"code": block.ended.code, "runtime_s": block.ended.runtime_s} if block.ended else None,
        "notes": list(block.notes),
    }


def age(block: Block, now: float) -> float | None:
    """Of the last value; clocks of two machines may differ, and nothing is younger than now."""
    return None if block.written is None else round(max(0.0, now - block.written), 1)


def rows(block: Block, *, clocks: bool = False) -> list[tuple[str, ...]]:
    """For a table, without its header. `clocks`: W&B's own counters as well."""
    shown = [key for key in sorted(block.keys) if clocks or key not in CLOCKS]
    return [_row(block.keys[key]) for key in shown]


def _row(summary: Summary) -> tuple[str, ...]:
    return (
        summary.key,
        told(summary.first),
        told(summary.last),
        _best(summary),
        told(summary.delta, signed=True),
        "" if summary.pct is None else f"{summary.pct:+.3g}",
        told(summary.mean),
        str(summary.count),
        str(summary.nan or ""),
        told(summary.last_step),
    )


def _best(summary: Summary) -> str:
    """With how it is known; where nothing tells what is better, both ends."""
    better = direction_of(summary.key)
    if better is not None:
        return f"{told(summary.best())} {'max' if better == 'higher' else 'min'}"
    return "" if summary.min is None else f"{told(summary.min)} .. {told(summary.max)}"


def told(value: float | None, *, signed: bool = False) -> str:
    if value is None:
        return ""
    if value == int(value) if abs(value) < 1e15 else False:
        return f"{int(value):+d}" if signed else str(int(value))
    return f"{value:+.5g}" if signed else f"{value:.5g}"
