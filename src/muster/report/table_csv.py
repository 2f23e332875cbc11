"""Tables for programs: one row for each config and column, every seed in a column of its own, full precision.

| column | meaning |
| --- | --- |
| `config` | as declared |
| `factor_X` | the config's factor X; in the ablation table only |
| `column` | `ood/score`, as in `report: columns`; these come first, then every other result there is |
| `split`, `metric` | its two halves; `split` is the job where that has no splits |
| `n`, `declared` | training seeds there are, and declared ones |
| `mean`, `sd` | over training seeds; sd with n - 1, from two seeds on |
| `t95_low`, `t95_high` | Student-t 95 % interval of the mean, from three seeds on |
| `iqm` | interquartile mean: of the middle half of the seeds, from ten seeds on |
| `seed_S` | the value of seed S |
| `mark` | `PARTIAL k/N`, or empty where the matrix is complete |

What is not there is `NA`, never blank. Numbers read back to the same value. UTF-8, with a header line. A text that a
spreadsheet would take for a formula has a `'` before it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from muster.report.analysis import Analysis, all_columns
from muster.report.coverage import configs_of, declared_seeds
from muster.report.escape import csv_text, one_line
from muster.report.facts import Column

NOT_THERE = "NA"


def render(analysis: Analysis, factors: Sequence[str] = ()) -> str:
    """`factors`: also their columns, and only the configs that have factors."""
    seeds = analysis.facts.seeds or ("",)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        [
            "config",
            *(one_line(f"factor_{name}") for name in factors),
            *("column", "split", "metric", "n", "declared", "mean", "sd", "t95_low", "t95_high", "iqm"),
            *(one_line(f"seed_{seed}") for seed in seeds),
            "mark",
        ]
    )
    for config, column in rows(analysis, factors):
        writer.writerow(_row(analysis, config, column, factors, seeds))
    return out.getvalue()


def rows(analysis: Analysis, factors: Sequence[str] = ()) -> Iterator[tuple[str, Column]]:
    """What each row is about, in their order; the first stands in line 2."""
    for column in all_columns(analysis.facts):
        for config in configs_of(analysis.facts, column):
            if not factors or config in _with_factors(analysis):
                yield config, column


def _row(analysis: Analysis, config: str, column: Column, factors: Sequence[str], seeds: Sequence[str]) -> list[str]:
    sample = analysis.sample(config, column)
    declared = max(sample.n, len(declared_seeds(analysis.facts, config, column.head)))
    levels = _with_factors(analysis).get(config, {})
    low, high = sample.interval or (None, None)
    return [
        csv_text(config),
        *(csv_text(str(levels.get(name, NOT_THERE))) for name in factors),
        *(*map(csv_text, (column.name, column.head, column.metric)), str(sample.n), str(declared)),
        *(_number(each) for each in (sample.mean if sample.n else None, sample.sd, low, high, sample.iqm)),
        *(_number(sample.by_seed.get(seed)) for seed in seeds),
        csv_text(analysis.mark),
    ]


def _with_factors(analysis: Analysis) -> dict[str, dict[str, object]]:
    plan = analysis.facts.plan
    return {config: dict(levels) for config, levels in plan.factors.items()} if plan else {}


def _number(value: float | None) -> str:
    return NOT_THERE if value is None else repr(float(value))
