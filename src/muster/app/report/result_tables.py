"""The tables of results: main table (a row for each config), ablation (pairs that differ in one factor), and coverage
(configs by seeds, what is there and what is missing).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from muster.app.facts.report_analysis import (
    ReportAnalysis,
    column_heads,
    declared_seeds_of_config,
    format_seed_coverage,
    measured_points,
)
from muster.app.facts.report_facts import ResultColumn
from muster.app.report.estimates import (
    ConfigRanking,
    column_heading,
    deciding_columns,
    difference_table_cell,
    estimate_cell,
    format_limit_rule,
    format_of_column,
    limit_standing_of_config,
    mark_caption,
    rank_configs,
)
from muster.app.report.red_flag_text import describe_flag, describe_flag_weight
from muster.stats.decision_procedure import LEAST_SEEDS
from muster.stats.samples import LEAST_FOR_IQM
from muster.text.catalogue import Catalogue
from muster.text.table_grid import TableCell, TableGrid, align_columns, cells_from_texts

OF_SEEDS = ("failed_seeds", "lost_seeds", "withdrawn")  # why k is less than N
STANDING_MARKS = {"INFEASIBLE": "†", "UNDETERMINED": "?"}


def main_table_grid(analysis: ReportAnalysis, w: Catalogue) -> TableGrid:
    facts = analysis.facts
    ranking = rank_configs(analysis)
    head = (w("table.config"), w("table.seeds"), *(column_heading(analysis, column, w) for column in facts.columns))
    rows = tuple(main_table_row(analysis, config, facts.columns, ranking, w) for config in facts.configs or ("",))
    caption = mark_caption(analysis, w("table.main", campaign=facts.campaign), w)
    return TableGrid(
        caption, head, rows, align_columns(2, head), tuple(main_table_notes(analysis, facts.columns, ranking, w))
    )


def main_table_row(
    analysis: ReportAnalysis, config: str, columns: Sequence[ResultColumn], ranking: ConfigRanking, w: Catalogue
) -> tuple[TableCell, ...]:
    return (config_name_cell(analysis, config), *estimate_cells_of_config(analysis, config, columns, ranking, w))


def config_name_cell(analysis: ReportAnalysis, config: str) -> TableCell:
    return TableCell(
        config or analysis.facts.campaign, mark=STANDING_MARKS.get(limit_standing_of_config(analysis, config) or "", "")
    )


def estimate_cells_of_config(
    analysis: ReportAnalysis, config: str, columns: Sequence[ResultColumn], ranking: ConfigRanking, w: Catalogue
) -> tuple[TableCell, ...]:
    """k/N and the estimates. k is that of the weakest column; one that has more seeds says so."""
    samples = {column: analysis.sample(config, column) for column in columns}
    fewest = min((sample.n for sample in samples.values()), default=0)
    shown = []
    for column, sample in samples.items():
        bold = analysis.facts.plan is not None and column == analysis.facts.plan.primary and config in ranking.bold
        cell = estimate_cell(analysis, sample, format_of_column(analysis, column), w, bold=bold)
        if sample.n != fewest:
            cell = replace(cell, text=w("table.other_n", text=cell.text, n=sample.n))
        shown.append(cell)
    return (fewest_seeds_cell(analysis, config, columns), *shown)


def fewest_seeds_cell(analysis: ReportAnalysis, config: str, columns: Sequence[ResultColumn]) -> TableCell:
    """k/N of the column with the fewest seeds."""
    samples = [analysis.sample(config, column) for column in columns]
    return TableCell(format_seed_coverage(analysis.facts, min(samples, key=lambda each: each.n)) if samples else "—")


def main_table_notes(
    analysis: ReportAnalysis, columns: Sequence[ResultColumn], ranking: ConfigRanking, w: Catalogue
) -> Iterator[str]:
    plan = analysis.facts.plan
    yield w("note.cells")
    if plan is None:
        yield w("note.no_plan")
    else:
        direction = w("direction.higher" if plan.procedure.higher else "direction.lower")
        yield w("note.primary", column=plan.primary.name, direction=direction)
        if plan.primary in columns:
            yield _bold_type_note(analysis, ranking, w)
            yield from _interquartile_note(analysis, plan.primary, w)
    standings = {limit_standing_of_config(analysis, config) for config in analysis.facts.configs}
    if "INFEASIBLE" in standings:
        yield w("note.dagger", rule=format_limit_rule(analysis))
    if "UNDETERMINED" in standings:
        yield w("note.undetermined", rule=format_limit_rule(analysis))
    if any(not analysis.sample(config, column).n for config in analysis.facts.configs for column in columns):
        yield w("note.missing")
    for flag in analysis.flags:
        if flag.code in OF_SEEDS:
            yield w.sentences(f"{describe_flag(flag, w.language)}{w('stop')}", describe_flag_weight(flag, w.language))


def _interquartile_note(analysis: ReportAnalysis, column: ResultColumn, w: Catalogue) -> Iterator[str]:
    """Where there are seeds enough for it; the CSV has it for every column."""
    form = format_of_column(analysis, column)
    shown = [f"{each.config} {form(each.iqm)}" for each in analysis.samples(column) if each.iqm is not None]
    if shown:
        yield w("note.iqm", column=column.name, values=w("comma").join(shown), least=LEAST_FOR_IQM)


def _bold_type_note(analysis: ReportAnalysis, ranking: ConfigRanking, w: Catalogue) -> str:
    plan = analysis.facts.plan
    assert plan is not None
    if not ranking.bold:
        return w(f"note.no_bold.{ranking.because}", least=LEAST_SEEDS, rule=format_limit_rule(analysis))
    return w("note.bold" if plan.procedure.limit is not None else "note.bold_no_limit", column=plan.primary.name)


@dataclass(frozen=True, slots=True)
class FactorContrast:
    """Two configs that differ in one factor only: `with_` has more of it."""

    factor: str
    with_: str
    without: str
    levels: tuple[Any, Any]
    others: Mapping[str, Any]


def names_of_factors(analysis: ReportAnalysis) -> tuple[str, ...]:
    plan = analysis.facts.plan
    if plan is None:
        return ()
    return tuple(dict.fromkeys(name for levels in plan.factors.values() for name in levels))


def ablation_table_grids(analysis: ReportAnalysis, w: Catalogue) -> list[TableGrid]:
    grids = [_factor_levels_grid(analysis, w)]
    if found := factor_contrasts(analysis):
        grids.append(_factor_contrasts_grid(analysis, found, w))
    return grids


def factor_contrasts(analysis: ReportAnalysis) -> list[FactorContrast]:
    plan = analysis.facts.plan
    if plan is None:
        return []
    names, known = names_of_factors(analysis), _configs_with_all_factors(analysis)
    pairs = combinations([config for config in analysis.facts.configs if config in known], 2)
    return [found for a, b in pairs for found in _contrast_of_pair(plan.factors, names, a, b)]


def _contrast_of_pair(
    factors: Mapping[str, Mapping[str, Any]], names: tuple[str, ...], a: str, b: str
) -> Iterator[FactorContrast]:
    differing = [name for name in names if factors[a][name] != factors[b][name]]
    if len(differing) == 1:
        (name,) = differing
        with_, without = (b, a) if _is_lower_level(factors[a][name], factors[b][name]) else (a, b)
        others = {other: factors[a][other] for other in names if other != name}
        yield FactorContrast(name, with_, without, (factors[with_][name], factors[without][name]), others)


def _is_lower_level(a: Any, b: Any) -> bool:
    """Where levels are no numbers, the config that was declared later is the one with the factor."""
    numbers = isinstance(a, int | float) and isinstance(b, int | float)
    return bool(a < b) if numbers else True


def _configs_with_all_factors(analysis: ReportAnalysis) -> frozenset[str]:
    plan, names = analysis.facts.plan, names_of_factors(analysis)
    return (
        frozenset(c for c, levels in plan.factors.items() if all(n in levels for n in names)) if plan else frozenset()
    )


def _factor_levels_grid(analysis: ReportAnalysis, w: Catalogue) -> TableGrid:
    plan = analysis.facts.plan
    assert plan is not None
    names, columns, ranking = names_of_factors(analysis), deciding_columns(analysis), rank_configs(analysis)
    baseline = plan.procedure.baseline
    head = (
        w("table.config"),
        *names,
        w("table.seeds"),
        *(column_heading(analysis, column, w) for column in columns),
        *(w("table.difference", column=column.name, baseline=baseline) for column in columns),
    )
    rows = tuple(
        (
            config_name_cell(analysis, config),
            *cells_from_texts(*(_format_factor_level(plan.factors, config, name) for name in names)),
            *estimate_cells_of_config(analysis, config, columns, ranking, w),
            *(_difference_from_baseline_cell(analysis, config, column, w) for column in columns),
        )
        for config in analysis.facts.configs
        if config in plan.factors
    )
    caption = mark_caption(analysis, w("table.ablation", campaign=analysis.facts.campaign), w)
    told = (*main_table_notes(analysis, columns, ranking, w), w("note.estimates"))
    return TableGrid(caption, head, rows, align_columns(2 + len(names), head), told)


def _difference_from_baseline_cell(
    analysis: ReportAnalysis, config: str, column: ResultColumn, w: Catalogue
) -> TableCell:
    plan = analysis.facts.plan
    assert plan is not None
    if config == plan.procedure.baseline:
        return TableCell(w("table.baseline"))
    return difference_table_cell(analysis, column, config, plan.procedure.baseline)


def _factor_contrasts_grid(analysis: ReportAnalysis, found: list[FactorContrast], w: Catalogue) -> TableGrid:
    columns = deciding_columns(analysis)
    head = (w("table.factor"), w("table.pair"), w("table.seeds"), w("table.same"), *(c.name for c in columns))
    rows = tuple(
        (
            *cells_from_texts(
                f"{each.factor}: {each.levels[1]} → {each.levels[0]}",
                f"{each.with_} − {each.without}",
                " − ".join(fewest_seeds_cell(analysis, config, columns).text for config in (each.with_, each.without)),
                ", ".join(f"{name} = {level}" for name, level in each.others.items()) or "—",
            ),
            *(difference_table_cell(analysis, column, each.with_, each.without) for column in columns),
        )
        for each in found
    )
    caption = mark_caption(analysis, w("table.contrasts", campaign=analysis.facts.campaign), w)
    return TableGrid(caption, head, rows, align_columns(4, head), (w("note.contrasts"),))


def _format_factor_level(factors: Mapping[str, Mapping[str, Any]], config: str, name: str) -> str:
    """✓ and – where a factor is only there or not."""
    levels = [each[name] for each in factors.values() if name in each]
    if name not in factors[config]:
        return "—"
    level = factors[config][name]
    if all(each in (0, 1) for each in levels):
        return "✓" if level else "–"
    return str(level)


def coverage_matrix_grid(analysis: ReportAnalysis, w: Catalogue) -> TableGrid:
    facts = analysis.facts
    seeds, heads = facts.seeds or ("",), column_heads(facts)
    head = (w("table.config"), *(w("matrix.seed", seed=seed).strip() for seed in seeds), w("matrix.cells"))
    rows = tuple(_coverage_matrix_row(analysis, config, seeds, heads, w) for config in facts.configs or ("",))
    told = [w("matrix.note", heads=w.several(list(heads)))]
    if facts.excluded:
        told.append(w("matrix.note_excluded"))
    caption = mark_caption(analysis, w("matrix.caption", campaign=facts.campaign), w)
    return TableGrid(caption, head, rows, align_columns(len(head), head), tuple(told))


def missing_cells_grid(analysis: ReportAnalysis, w: Catalogue) -> TableGrid | None:
    """Every missing cell with its reason, also those that carry no results."""
    missing = sorted(analysis.facts.missing, key=lambda each: each.state == "BLOCKED")
    if not missing:
        return None
    head = (w("missing.cell"), w("missing.state"), w("missing.reason"))
    rows = tuple(cells_from_texts(each.cell, each.state, each.reason or "—") for each in missing)
    return TableGrid(mark_caption(analysis, w("missing.title"), w), head, rows, align_columns(3, head))


def _coverage_matrix_row(
    analysis: ReportAnalysis, config: str, seeds: tuple[str, ...], heads: tuple[str, ...], w: Catalogue
) -> tuple[TableCell, ...]:
    facts, there = analysis.facts, measured_points(analysis.facts)
    declared = {(seed, head) for head in heads for seed in declared_seeds_of_config(facts, config, head)}
    found = {(seed, head) for seed, head in declared if (config, seed, head) in there}
    shown = []
    for seed in seeds:
        wanted = [head for head in heads if (seed, head) in declared]
        lacking = [head for head in wanted if (seed, head) not in found]
        shown.append(
            _coverage_state(wanted, lacking, w) if wanted or seed not in facts.gone_seeds else w("matrix.not_declared")
        )
    return cells_from_texts(config or facts.campaign, *shown, f"{len(found)}/{len(declared)}")


def _coverage_state(wanted: list[str], lacking: list[str], w: Catalogue) -> str:
    if not wanted:
        return w("matrix.excluded")
    if not lacking:
        return w("matrix.done")
    if len(lacking) == len(wanted):
        return w("matrix.missing")
    return w("matrix.part", heads=w.several(lacking))
