"""Made-up metrics for tests."""

from __future__ import annotations

from collections.abc import Sequence

from muster.rules.evaluate_expressions import MetricSummaries
from muster.rules.metric_summary import Summarizer


def logged(known: Sequence[str] = (), /, **columns: Sequence[float]) -> MetricSummaries:
    """`ot__pi_sum=[1, 2]` is the key `ot.pi_sum`."""
    return of({key.replace("__", "."): values for key, values in columns.items()}, known)


def of(columns: dict[str, Sequence[float]], known: Sequence[str] = ()) -> MetricSummaries:
    found = {}
    for key, values in columns.items():
        summarizer = Summarizer(key)
        summarizer.add_many(list(range(len(values))), list(values))
        found[key] = summarizer.summary()
    return MetricSummaries(found, known)
