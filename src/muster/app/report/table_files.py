"""The tables of a report as files in every format, and what each of their lines rests on: from there `muster trace`
walks on (`muster trace reports/tables/main.md:5`).

The CSV is for programs: one row for each config and column, every seed in a column of its own, full precision.

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
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from muster.app.campaign.stamp import ReportClaim
from muster.app.facts.report_analysis import (
    ReportAnalysis,
    all_result_columns,
    configs_of_column,
    declared_seeds_of_config,
    values_in_seed_order,
)
from muster.app.facts.report_facts import ResultColumn
from muster.app.report.result_tables import ablation_table_grids, main_table_grid, names_of_factors
from muster.stats.samples import Sample
from muster.text.catalogue import load_catalogue
from muster.text.escape_markup import as_one_safe_line, escape_csv_text
from muster.text.table_grid import (
    TableCell,
    TableGrid,
    latex_row_lines,
    markdown_row_line,
    render_latex_tables,
    render_markdown_table,
)


def table_rows_as_json(analysis: ReportAnalysis) -> list[dict[str, Any]]:
    """`table` of `muster report --json`: every result there is, of each config."""
    facts = analysis.facts
    return [
        _sample_as_json(analysis, analysis.sample(config, column))
        for column in all_result_columns(facts)
        for config in configs_of_column(facts, column)
    ]


def _sample_as_json(analysis: ReportAnalysis, sample: Sample) -> dict[str, Any]:
    return {
        "config": sample.config,
        "split": sample.split,
        "metric": sample.metric,
        "n": sample.n,
        "mean": _null_if_not_finite(sample.mean),
        "sd": None if sample.sd is None else _null_if_not_finite(sample.sd),
        "values": [_null_if_not_finite(value) for value in values_in_seed_order(analysis.facts, sample)],
    }


def _null_if_not_finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


NOT_AVAILABLE = "NA"


def render_csv_table(analysis: ReportAnalysis, factors: Sequence[str] = ()) -> str:
    """`factors`: also their columns, and only the configs that have factors."""
    seeds = analysis.facts.seeds or ("",)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        [
            "config",
            *(as_one_safe_line(f"factor_{name}") for name in factors),
            *("column", "split", "metric", "n", "declared", "mean", "sd", "t95_low", "t95_high", "iqm"),
            *(as_one_safe_line(f"seed_{seed}") for seed in seeds),
            "mark",
        ]
    )
    for config, column in csv_table_rows(analysis, factors):
        writer.writerow(_csv_table_row(analysis, config, column, factors, seeds))
    return out.getvalue()


def csv_table_rows(analysis: ReportAnalysis, factors: Sequence[str] = ()) -> Iterator[tuple[str, ResultColumn]]:
    """What each row is about, in their order; the first stands in line 2."""
    for column in all_result_columns(analysis.facts):
        for config in configs_of_column(analysis.facts, column):
            if not factors or config in _factors_by_config(analysis):
                yield config, column


def _csv_table_row(
    analysis: ReportAnalysis, config: str, column: ResultColumn, factors: Sequence[str], seeds: Sequence[str]
) -> list[str]:
    sample = analysis.sample(config, column)
    declared = max(sample.n, len(declared_seeds_of_config(analysis.facts, config, column.head)))
    levels = _factors_by_config(analysis).get(config, {})
    low, high = sample.interval or (None, None)
    return [
        escape_csv_text(config),
        *(escape_csv_text(str(levels.get(name, NOT_AVAILABLE))) for name in factors),
        *(*map(escape_csv_text, (column.name, column.head, column.metric)), str(sample.n), str(declared)),
        *(_format_csv_number(each) for each in (sample.mean if sample.n else None, sample.sd, low, high, sample.iqm)),
        *(_format_csv_number(sample.by_seed.get(seed)) for seed in seeds),
        escape_csv_text(analysis.mark),
    ]


def _factors_by_config(analysis: ReportAnalysis) -> dict[str, dict[str, object]]:
    plan = analysis.facts.plan
    return {config: dict(levels) for config, levels in plan.factors.items()} if plan else {}


def _format_csv_number(value: float | None) -> str:
    return NOT_AVAILABLE if value is None else repr(float(value))


RenderRow = Callable[[Sequence[TableCell]], list[str]]  # the lines that a row has in a format


def claims_of_csv_table(analysis: ReportAnalysis, factors: Sequence[str] = ()) -> tuple[ReportClaim, ...]:
    """`L2`, ...: one config in one column each."""
    return tuple(
        ReportClaim(f"L{line}", f"{config}, {column.name}", cells, (column.name,))
        for line, (config, column) in enumerate(csv_table_rows(analysis, factors), 2)
        if (cells := analysis.cells(config, column))
    )


def claims_of_text_table(text: str, grids: Sequence[TableGrid], rendered: RenderRow) -> tuple[ReportClaim, ...]:
    """`L5.3`: what stands in line 5, third column."""
    lines, at = text.split("\n"), 0
    found: list[ReportClaim] = []
    for grid in grids:
        for row in grid.rows:
            for part, shown in enumerate(rendered(row)):
                at = next(place for place in range(at, len(lines)) if lines[place].strip() == shown.strip()) + 1
                found += _claims_of_grid_row(grid, row, at, intervals=part > 0)
    return tuple(found)


def _claims_of_grid_row(
    grid: TableGrid, row: Sequence[TableCell], line: int, *, intervals: bool
) -> Iterator[ReportClaim]:
    """`intervals`: they alone stand in this line."""
    for number, (cell, head) in enumerate(zip(row, grid.head, strict=True), 1):
        if cell.rests and (cell.below or not intervals):
            shown = " ".join(part for part in (cell.text, cell.below) if part)
            yield ReportClaim(f"L{line}.{number}", f"{row[0].text}, {head}: {shown}", tuple(dict.fromkeys(cell.rests)))


@dataclass(frozen=True, slots=True)
class RenderedTable:
    name: str  # main | ablation
    csv: str
    markdown: str
    latex: str
    cells: tuple[str, ...]  # that it rests on
    claims: Mapping[str, tuple[ReportClaim, ...]]  # csv, md, tex -> the numbers of each line


def render_report_tables(analysis: ReportAnalysis) -> Iterator[RenderedTable]:
    """The main one, and the ablation where factors are declared."""
    own, english = load_catalogue("report", analysis.facts.language), load_catalogue("report", "en")
    cells = tuple(each.cell for each in analysis.facts.measured)
    yield _render_table_formats(
        "main", [main_table_grid(analysis, own)], [main_table_grid(analysis, english)], (), cells, analysis
    )
    if factors := names_of_factors(analysis):
        grids = ablation_table_grids(analysis, own), ablation_table_grids(analysis, english)
        plan = analysis.facts.plan
        chosen = tuple(each.cell for each in analysis.facts.measured if plan and each.config in plan.factors)
        yield _render_table_formats("ablation", *grids, factors, chosen, analysis)


def _render_table_formats(
    name: str,
    own: Sequence[TableGrid],
    english: Sequence[TableGrid],
    factors: Sequence[str],
    cells: tuple[str, ...],
    analysis: ReportAnalysis,
) -> RenderedTable:
    """In LaTeX only captions are in the campaign's language: not every document is set in Chinese."""
    w = load_catalogue("report", analysis.facts.language)
    captions = [w.sentences(f"{grid.caption}{w('stop')}", *grid.notes) for grid in own]
    set_in_english = [replace(grid, caption=text) for grid, text in zip(english, captions, strict=True)]
    facts = analysis.facts
    about = " ".join(part for part in (f"Muster {facts.version}, {facts.campaign}", analysis.mark) if part)
    markdown = "\n".join(render_markdown_table(grid) for grid in own)
    latex = render_latex_tables(set_in_english, name, about)
    claims = {
        "csv": claims_of_csv_table(analysis, factors),
        "md": claims_of_text_table(markdown, own, lambda row: [markdown_row_line(row)]),
        "tex": claims_of_text_table(latex, english, latex_row_lines),
    }
    return RenderedTable(name, render_csv_table(analysis, factors), markdown, latex, cells, claims)
