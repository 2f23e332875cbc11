"""The numbers that a journal's text may hold: evaluations, series, flags, settings, counts of a run."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from muster.report.journal.evaluation import RECENT
from muster.report.journal.facts import Run
from muster.report.journal.flags import flags_of, flat
from muster.report.journal.shown import iteration

_FILLERS = frozenset({"tail", "stage", "by", "type", "of", "total", "count", "n", "events"})
_NUMERALS = re.compile(r"(?<![\w.])[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?(?![\w.])")
_MOST_DEPTH = 4


@dataclass(frozen=True, slots=True)
class Known:
    """A number with its origin."""

    value: float
    name: str  # as a person is told it: `first_death_p10 at iter 56`
    source: str


class Book:
    """Of one version: all its runs."""

    def __init__(self, version: str, runs: Sequence[Run]) -> None:
        self.version, self.runs = version, runs
        self.metrics = {key for run in runs if run.evaluations for key in run.evaluations.keys}
        self.series = {key for run in runs if run.training for key in run.training.series}
        self._settings = [each for run in runs for each in _settings(run)]
        self._facts = [each for run in runs for each in _facts(run)]
        # a text names the same things again and again
        self.metric = cache(self._metric)
        self.metric_like = cache(self._metric_like)
        self.settings = cache(self._settings_of)
        self.facts = cache(self._facts_of)

    def __bool__(self) -> bool:
        return bool(self.runs)

    # -- names

    def _metric(self, name: str) -> str | None:
        """The key of this name."""
        wanted = name.lower()
        keys = self.metrics | self.series
        same = [key for key in keys if key.lower() == wanted or key.lower().rpartition(".")[2] == wanted]
        return same[0] if len(same) == 1 else next((key for key in same if key == name), None)

    def _metric_like(self, name: str) -> str | None:
        """That, or the only one that ends with it: `p10` for `first_death_p10`."""
        near = [key for key in self.metrics | self.series if key.lower().endswith(f"_{name.lower()}")]
        return self.metric(name) or (near[0] if len(near) == 1 else None)

    def _settings_of(self, name: str) -> list[tuple[str, list[Known]]]:
        """Flags and settings of gates that go by this name, or end with it; each with the numbers in its value."""
        wanted = name.lower()
        same = [each for each in self._settings if each[0].lower() == wanted]
        ends = [each for each in self._settings if _ends(each[0].lower(), wanted)]
        return [*same, *(each for each in ends if each not in same)]

    def _facts_of(self, name: str) -> list[Known]:
        """Counts and the like, by their words: `tail_ne_reinjections` is `reinjections_by_type.ne`."""
        wanted = _words(name)
        return [each for each in self._facts if wanted and wanted in (_words(each.name), _words(_last(each.name)))]

    # -- values

    def at(self, key: str, iterations: Sequence[float], stages: Sequence[str] = ()) -> list[Known]:
        """Of evaluations; where none is of this key and iteration, of the series that a script kept."""
        found = []
        for run in self.runs:
            rows = run.evaluations.rows if run.evaluations else ()
            there = [row for row in rows if row.at in iterations and key in row.values]
            staged = [row for row in there if row.stage in stages]
            source = run.evaluations.source if run.evaluations else ""
            found += [_known(row.values[key], key, row.at, source) for row in staged or there]
        return found or [each for at in iterations for each in self._in_series(key, at)]

    def between(self, key: str, first: float, last: float) -> list[Known]:
        """The mean, then the lowest and the highest, over these iterations."""
        found = []
        for run in self.runs:
            values = [value for at, value in self._pairs(run, key) if at is not None and first <= at <= last]
            source = _source(run, key)
            found += list(_reduced(values, key, f"iter {iteration(first)}-{iteration(last)}", source))
        return found

    def of(self, key: str) -> list[Known]:
        """Every value that it had, and those that people quote: mean, lowest, highest, of all and of the last."""
        found = []
        for run in self.runs:
            pairs, source = self._pairs(run, key), _source(run, key)
            found += [_known(value, key, at, source) for at, value in reversed(pairs)]
            values = [value for _, value in pairs]
            found += [
                *_reduced(values[-RECENT:], key, f"the last {RECENT}", source),
                *_reduced(values, key, "all", source),
            ]
        return found

    def everything(self) -> Iterator[Known]:
        for key in sorted(self.metrics | self.series):
            yield from self.of(key)
        yield from self._facts

    def nearest(self, key: str, value: float) -> Known | None:
        known = [each for each in self.of(key) if math.isfinite(each.value)]
        return min(known, key=lambda each: abs(each.value - value), default=None)

    def _in_series(self, key: str, at: float) -> Iterator[Known]:
        for run in self.runs:
            values = run.training.series.get(key, ()) if run.training else ()
            place = int(at) - run.training.first if run.training and at == int(at) else -1
            if run.training and 0 <= place < len(values):
                yield _known(values[place], key, at, run.training.source)

    @staticmethod
    def _pairs(run: Run, key: str) -> list[tuple[float | None, float]]:
        if run.training and key in run.training.series:
            return [(run.training.first + at, value) for at, value in enumerate(run.training.series[key])]
        return run.evaluations.column(key) if run.evaluations else []


def _known(value: float, key: str, at: float | None, source: str) -> Known:
    return Known(value, f"{key} at iter {iteration(at)}", source)


def _source(run: Run, key: str) -> str:
    if run.training and key in run.training.series:
        return run.training.source
    return run.evaluations.source if run.evaluations else ""


def _reduced(values: Sequence[float], key: str, what: str, source: str) -> Iterator[Known]:
    finite = [value for value in values if math.isfinite(value)]
    if finite:
        yield Known(math.fsum(finite) / len(finite), f"mean of {key} over {what}", source)
        yield Known(min(finite), f"lowest {key} of {what}", source)
        yield Known(max(finite), f"highest {key} of {what}", source)


def _settings(run: Run) -> Iterator[tuple[str, list[Known]]]:
    told = [(flags_of(run.command.argv), run.command.source)] if run.command else []
    told += [(flat(gate.settings), gate.source) for gate in run.gates]
    for mapping, source in told:
        for name, value in mapping.items():
            yield name, [Known(float(each), name, source) for each in _NUMERALS.findall(value.replace(":", " "))]


def _facts(run: Run) -> Iterator[Known]:
    schedule = {key: value for key, value in (run.schedule or {}).items() if key not in ("trace", "stages")}
    yield from _leaves(schedule, "", run.schedule_source)
    summary = {key: value for key, value in (run.summary or {}).items() if key != "by_iteration"}
    yield from _leaves(summary, "", run.summary_source)
    events = summary.get("events")
    counts = (
        {str(key): float(value) for key, value in events.items() if _is_number(value)}
        if isinstance(events, Mapping)
        else {}
    )
    total = sum(counts.values())
    if total:
        yield from (Known(value / total, f"share of {key}", run.summary_source) for key, value in counts.items())


def _leaves(found: Any, name: str, source: str, depth: int = 0) -> Iterator[Known]:
    if _is_number(found):
        yield Known(float(found), name, source)
    elif isinstance(found, Mapping) and depth < _MOST_DEPTH:
        for key, value in found.items():
            yield from _leaves(value, f"{name}.{key}" if name else str(key), source, depth + 1)
    elif isinstance(found, list) and depth < _MOST_DEPTH:
        for value in found[:100]:
            yield from _leaves(value, name, source, depth + 1)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _ends(name: str, wanted: str) -> bool:
    """`penalty_gate_failure_tolerance_by_stage` belongs to `failure_tolerance`."""
    plain = name.removesuffix("_by_stage")
    return plain == wanted or plain.endswith((f"_{wanted}", f".{wanted}"))


def _words(name: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]+", name.lower())) - _FILLERS


def _last(name: str) -> str:
    return name.rpartition(".")[2]
