"""The rows of the tables as data."""

from __future__ import annotations

import math
from typing import Any

from muster.report.analysis import Analysis, all_columns
from muster.report.coverage import configs_of, in_order
from muster.stats.sample import Sample


def table_rows_json(analysis: Analysis) -> list[dict[str, Any]]:
    """`table` of `muster report --json`: every result there is, of each config."""
    facts = analysis.facts
    return [
        _json(analysis, analysis.sample(config, column))
        for column in all_columns(facts)
        for config in configs_of(facts, column)
    ]


def _json(analysis: Analysis, sample: Sample) -> dict[str, Any]:
    return {
        "config": sample.config,
        "split": sample.split,
        "metric": sample.metric,
        "n": sample.n,
        "mean": _finite(sample.mean),
        "sd": None if sample.sd is None else _finite(sample.sd),
        "values": [_finite(value) for value in in_order(analysis.facts, sample)],
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
