"""The ablation table: configs by their factors, and the pairs that differ in one factor only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from muster.report.analysis import Analysis
from muster.report.estimates import captioned, difference_cell, heading, judged_columns
from muster.report.facts import Column
from muster.report.grid import Cell, Grid, aligned, cells
from muster.report.main_table import name_cell, notes, numbers_of, weakest_seeds
from muster.report.ranking import rank
from muster.report.words import Words


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two configs that differ in one factor only: `with_` has more of it."""

    factor: str
    with_: str
    without: str
    levels: tuple[Any, Any]
    others: Mapping[str, Any]


def factor_names(analysis: Analysis) -> tuple[str, ...]:
    plan = analysis.facts.plan
    if plan is None:
        return ()
    return tuple(dict.fromkeys(name for levels in plan.factors.values() for name in levels))


def ablation_grids(analysis: Analysis, w: Words) -> list[Grid]:
    grids = [_levels_grid(analysis, w)]
    if found := contrasts(analysis):
        grids.append(_contrasts_grid(analysis, found, w))
    return grids


def contrasts(analysis: Analysis) -> list[Contrast]:
    plan = analysis.facts.plan
    if plan is None:
        return []
    names, known = factor_names(analysis), _with_all_factors(analysis)
    pairs = combinations([config for config in analysis.facts.configs if config in known], 2)
    return [found for a, b in pairs for found in _contrast(plan.factors, names, a, b)]


def _contrast(factors: Mapping[str, Mapping[str, Any]], names: tuple[str, ...], a: str, b: str) -> Iterator[Contrast]:
    differing = [name for name in names if factors[a][name] != factors[b][name]]
    if len(differing) == 1:
        (name,) = differing
        with_, without = (b, a) if _less(factors[a][name], factors[b][name]) else (a, b)
        others = {other: factors[a][other] for other in names if other != name}
        yield Contrast(name, with_, without, (factors[with_][name], factors[without][name]), others)


def _less(a: Any, b: Any) -> bool:
    """Where levels are no numbers, the config that was declared later is the one with the factor."""
    numbers = isinstance(a, int | float) and isinstance(b, int | float)
    return bool(a < b) if numbers else True


def _with_all_factors(analysis: Analysis) -> frozenset[str]:
    plan, names = analysis.facts.plan, factor_names(analysis)
    return (
        frozenset(c for c, levels in plan.factors.items() if all(n in levels for n in names)) if plan else frozenset()
    )


def _levels_grid(analysis: Analysis, w: Words) -> Grid:
    plan = analysis.facts.plan
    assert plan is not None
    names, columns, ranking = factor_names(analysis), judged_columns(analysis), rank(analysis)
    baseline = plan.procedure.baseline
    head = (
        w("table.config"),
        *names,
        w("table.seeds"),
        *(heading(analysis, column, w) for column in columns),
        *(w("table.difference", column=column.name, baseline=baseline) for column in columns),
    )
    rows = tuple(
        (
            name_cell(analysis, config),
            *cells(*(_level(plan.factors, config, name) for name in names)),
            *numbers_of(analysis, config, columns, ranking, w),
            *(_against(analysis, config, column, w) for column in columns),
        )
        for config in analysis.facts.configs
        if config in plan.factors
    )
    caption = captioned(analysis, w("table.ablation", campaign=analysis.facts.campaign), w)
    told = (*notes(analysis, columns, ranking, w), w("note.estimates"))
    return Grid(caption, head, rows, aligned(2 + len(names), head), told)


def _against(analysis: Analysis, config: str, column: Column, w: Words) -> Cell:
    plan = analysis.facts.plan
    assert plan is not None
    if config == plan.procedure.baseline:
        return Cell(w("table.baseline"))
    return difference_cell(analysis, column, config, plan.procedure.baseline)


def _contrasts_grid(analysis: Analysis, found: list[Contrast], w: Words) -> Grid:
    columns = judged_columns(analysis)
    head = (w("table.factor"), w("table.pair"), w("table.seeds"), w("table.same"), *(c.name for c in columns))
    rows = tuple(
        (
            *cells(
                f"{each.factor}: {each.levels[1]} → {each.levels[0]}",
                f"{each.with_} − {each.without}",
                " − ".join(weakest_seeds(analysis, config, columns).text for config in (each.with_, each.without)),
                ", ".join(f"{name} = {level}" for name, level in each.others.items()) or "—",
            ),
            *(difference_cell(analysis, column, each.with_, each.without) for column in columns),
        )
        for each in found
    )
    caption = captioned(analysis, w("table.contrasts", campaign=analysis.facts.campaign), w)
    return Grid(caption, head, rows, aligned(4, head), (w("note.contrasts"),))


def _level(factors: Mapping[str, Mapping[str, Any]], config: str, name: str) -> str:
    """✓ and – where a factor is only there or not."""
    levels = [each[name] for each in factors.values() if name in each]
    if name not in factors[config]:
        return "—"
    level = factors[config][name]
    if all(each in (0, 1) for each in levels):
        return "✓" if level else "–"
    return str(level)
