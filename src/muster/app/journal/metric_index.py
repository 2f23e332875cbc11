"""The numbers that a journal's text may hold: evaluations, series, flags, settings, counts of a run."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from muster.app.journal.journal_tables import RECENT_ITERATIONS, format_iteration
from muster.app.journal.recorded_run import RecordedRun, flatten_settings, parse_command_flags

_FILLERS = frozenset({"tail", "stage", "by", "type", "of", "total", "count", "n", "events"})
_NUMERALS = re.compile(r"(?<![\w.])[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?(?![\w.])")
_MOST_DEPTH = 4


@dataclass(frozen=True, slots=True)
class KnownNumber:
    """A number with its origin."""

    value: float
    name: str  # as a person is told it: `first_death_p10 at iter 56`
    source: str


class MetricIndex:
    """Of one version: all its runs."""

    def __init__(self, version: str, runs: Sequence[RecordedRun]) -> None:
        self.version, self.runs = version, runs
        self.metrics = {key for run in runs if run.evaluations for key in run.evaluations.keys}
        self.series = {key for run in runs if run.training for key in run.training.series}
        self._settings = [each for run in runs for each in _settings_of_run(run)]
        self._facts = [each for run in runs for each in _counts_of_run(run)]
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

    def _settings_of(self, name: str) -> list[tuple[str, list[KnownNumber]]]:
        """Flags and settings of gates that go by this name, or end with it; each with the numbers in its value."""
        wanted = name.lower()
        same = [each for each in self._settings if each[0].lower() == wanted]
        ends = [each for each in self._settings if _name_ends_with(each[0].lower(), wanted)]
        return [*same, *(each for each in ends if each not in same)]

    def _facts_of(self, name: str) -> list[KnownNumber]:
        """Counts and the like, by their words: `tail_ne_reinjections` is `reinjections_by_type.ne`."""
        wanted = _words_in_name(name)
        return [
            each
            for each in self._facts
            if wanted and wanted in (_words_in_name(each.name), _words_in_name(_last_part_of_name(each.name)))
        ]

    # -- values

    def at(self, key: str, iterations: Sequence[float], stages: Sequence[str] = ()) -> list[KnownNumber]:
        """Of evaluations; where none is of this key and iteration, of the series that a script kept."""
        found = []
        for run in self.runs:
            rows = run.evaluations.rows if run.evaluations else ()
            there = [row for row in rows if row.at in iterations and key in row.values]
            staged = [row for row in there if row.stage in stages]
            source = run.evaluations.source if run.evaluations else ""
            found += [_number_at_iteration(row.values[key], key, row.at, source) for row in staged or there]
        return found or [each for at in iterations for each in self._in_series(key, at)]

    def between(self, key: str, first: float, last: float) -> list[KnownNumber]:
        """The mean, then the lowest and the highest, over these iterations."""
        found = []
        for run in self.runs:
            values = [value for at, value in self._pairs(run, key) if at is not None and first <= at <= last]
            source = _source_of_metric(run, key)
            found += list(
                _reductions_of_values(values, key, f"iter {format_iteration(first)}-{format_iteration(last)}", source)
            )
        return found

    def of(self, key: str) -> list[KnownNumber]:
        """Every value that it had, and those that people quote: mean, lowest, highest, of all and of the last."""
        found = []
        for run in self.runs:
            pairs, source = self._pairs(run, key), _source_of_metric(run, key)
            found += [_number_at_iteration(value, key, at, source) for at, value in reversed(pairs)]
            values = [value for _, value in pairs]
            found += [
                *_reductions_of_values(values[-RECENT_ITERATIONS:], key, f"the last {RECENT_ITERATIONS}", source),
                *_reductions_of_values(values, key, "all", source),
            ]
        return found

    def everything(self) -> Iterator[KnownNumber]:
        for key in sorted(self.metrics | self.series):
            yield from self.of(key)
        yield from self._facts

    def nearest(self, key: str, value: float) -> KnownNumber | None:
        known = [each for each in self.of(key) if math.isfinite(each.value)]
        return min(known, key=lambda each: abs(each.value - value), default=None)

    def _in_series(self, key: str, at: float) -> Iterator[KnownNumber]:
        for run in self.runs:
            values = run.training.series.get(key, ()) if run.training else ()
            place = int(at) - run.training.first if run.training and at == int(at) else -1
            if run.training and 0 <= place < len(values):
                yield _number_at_iteration(values[place], key, at, run.training.source)

    @staticmethod
    def _pairs(run: RecordedRun, key: str) -> list[tuple[float | None, float]]:
        if run.training and key in run.training.series:
            return [(run.training.first + at, value) for at, value in enumerate(run.training.series[key])]
        return run.evaluations.column(key) if run.evaluations else []


def _number_at_iteration(value: float, key: str, at: float | None, source: str) -> KnownNumber:
    return KnownNumber(value, f"{key} at iter {format_iteration(at)}", source)


def _source_of_metric(run: RecordedRun, key: str) -> str:
    if run.training and key in run.training.series:
        return run.training.source
    return run.evaluations.source if run.evaluations else ""


def _reductions_of_values(values: Sequence[float], key: str, what: str, source: str) -> Iterator[KnownNumber]:
    finite = [value for value in values if math.isfinite(value)]
    if finite:
        yield KnownNumber(math.fsum(finite) / len(finite), f"mean of {key} over {what}", source)
        yield KnownNumber(min(finite), f"lowest {key} of {what}", source)
        yield KnownNumber(max(finite), f"highest {key} of {what}", source)


def _settings_of_run(run: RecordedRun) -> Iterator[tuple[str, list[KnownNumber]]]:
    told = [(parse_command_flags(run.command.argv), run.command.source)] if run.command else []
    told += [(flatten_settings(gate.settings), gate.source) for gate in run.gates]
    for mapping, source in told:
        for name, value in mapping.items():
            yield name, [KnownNumber(float(each), name, source) for each in _NUMERALS.findall(value.replace(":", " "))]


def _counts_of_run(run: RecordedRun) -> Iterator[KnownNumber]:
    schedule = {key: value for key, value in (run.schedule or {}).items() if key not in ("trace", "stages")}
    yield from _numbers_in_tree(schedule, "", run.schedule_source)
    summary = {key: value for key, value in (run.summary or {}).items() if key != "by_iteration"}
    yield from _numbers_in_tree(summary, "", run.summary_source)
    events = summary.get("events")
    counts = (
        {str(key): float(value) for key, value in events.items() if _is_number_not_bool(value)}
        if isinstance(events, Mapping)
        else {}
    )
    total = sum(counts.values())
    if total:
        yield from (KnownNumber(value / total, f"share of {key}", run.summary_source) for key, value in counts.items())


def _numbers_in_tree(found: Any, name: str, source: str, depth: int = 0) -> Iterator[KnownNumber]:
    if _is_number_not_bool(found):
        yield KnownNumber(float(found), name, source)
    elif isinstance(found, Mapping) and depth < _MOST_DEPTH:
        for key, value in found.items():
            yield from _numbers_in_tree(value, f"{name}.{key}" if name else str(key), source, depth + 1)
    elif isinstance(found, list) and depth < _MOST_DEPTH:
        for value in found[:100]:
            yield from _numbers_in_tree(value, name, source, depth + 1)


def _is_number_not_bool(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _name_ends_with(name: str, wanted: str) -> bool:
    """`penalty_gate_failure_tolerance_by_stage` belongs to `failure_tolerance`."""
    plain = name.removesuffix("_by_stage")
    return plain == wanted or plain.endswith((f"_{wanted}", f".{wanted}"))


def _words_in_name(name: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]+", name.lower())) - _FILLERS


def _last_part_of_name(name: str) -> str:
    return name.rpartition(".")[2]
