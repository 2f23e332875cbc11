"""The main table: one row for each config, the columns of `report: columns`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from muster.report.analysis import Analysis
from muster.report.coverage import seeds_there
from muster.report.estimates import captioned, estimate, format_of, heading, rule
from muster.report.facts import Column
from muster.report.flag_words import flag_standing, flag_text
from muster.report.grid import Cell, Grid, aligned
from muster.report.ranking import Ranking, rank, standing
from muster.report.words import Words
from muster.stats.decision import LEAST_SEEDS
from muster.stats.sample import LEAST_FOR_IQM

OF_SEEDS = ("failed_seeds", "lost_seeds", "withdrawn")  # why k is less than N
MARKS = {"INFEASIBLE": "†", "UNDETERMINED": "?"}


def main_grid(analysis: Analysis, w: Words) -> Grid:
    facts = analysis.facts
    ranking = rank(analysis)
    head = (w("table.config"), w("table.seeds"), *(heading(analysis, column, w) for column in facts.columns))
    rows = tuple(config_row(analysis, config, facts.columns, ranking, w) for config in facts.configs or ("",))
    caption = captioned(analysis, w("table.main", campaign=facts.campaign), w)
    return Grid(caption, head, rows, aligned(2, head), tuple(notes(analysis, facts.columns, ranking, w)))


def config_row(
    analysis: Analysis, config: str, columns: Sequence[Column], ranking: Ranking, w: Words
) -> tuple[Cell, ...]:
    return (name_cell(analysis, config), *numbers_of(analysis, config, columns, ranking, w))


def name_cell(analysis: Analysis, config: str) -> Cell:
    return Cell(config or analysis.facts.campaign, mark=MARKS.get(standing(analysis, config) or "", ""))


def numbers_of(
    analysis: Analysis, config: str, columns: Sequence[Column], ranking: Ranking, w: Words
) -> tuple[Cell, ...]:
    """k/N and the estimates. k is that of the weakest column; one that has more seeds says so."""
    samples = {column: analysis.sample(config, column) for column in columns}
    fewest = min((sample.n for sample in samples.values()), default=0)
    shown = []
    for column, sample in samples.items():
        bold = analysis.facts.plan is not None and column == analysis.facts.plan.primary and config in ranking.bold
        cell = estimate(analysis, sample, format_of(analysis, column), w, bold=bold)
        if sample.n != fewest:
            cell = replace(cell, text=w("table.other_n", text=cell.text, n=sample.n))
        shown.append(cell)
    return (weakest_seeds(analysis, config, columns), *shown)


def weakest_seeds(analysis: Analysis, config: str, columns: Sequence[Column]) -> Cell:
    """k/N of the column with the fewest seeds."""
    samples = [analysis.sample(config, column) for column in columns]
    return Cell(seeds_there(analysis.facts, min(samples, key=lambda each: each.n)) if samples else "—")


def notes(analysis: Analysis, columns: Sequence[Column], ranking: Ranking, w: Words) -> Iterator[str]:
    plan = analysis.facts.plan
    yield w("note.cells")
    if plan is None:
        yield w("note.no_plan")
    else:
        direction = w("direction.higher" if plan.procedure.higher else "direction.lower")
        yield w("note.primary", column=plan.primary.name, direction=direction)
        if plan.primary in columns:
            yield _bold_note(analysis, ranking, w)
            yield from _iqm_note(analysis, plan.primary, w)
    standings = {standing(analysis, config) for config in analysis.facts.configs}
    if "INFEASIBLE" in standings:
        yield w("note.dagger", rule=rule(analysis))
    if "UNDETERMINED" in standings:
        yield w("note.undetermined", rule=rule(analysis))
    if any(not analysis.sample(config, column).n for config in analysis.facts.configs for column in columns):
        yield w("note.missing")
    for flag in analysis.flags:
        if flag.code in OF_SEEDS:
            yield w.sentences(f"{flag_text(flag, w.language)}{w('stop')}", flag_standing(flag, w.language))


def _iqm_note(analysis: Analysis, column: Column, w: Words) -> Iterator[str]:
    """Where there are seeds enough for it; the CSV has it for every column."""
    form = format_of(analysis, column)
    shown = [f"{each.config} {form(each.iqm)}" for each in analysis.samples(column) if each.iqm is not None]
    if shown:
        yield w("note.iqm", column=column.name, values=w("comma").join(shown), least=LEAST_FOR_IQM)


def _bold_note(analysis: Analysis, ranking: Ranking, w: Words) -> str:
    plan = analysis.facts.plan
    assert plan is not None
    if not ranking.bold:
        return w(f"note.no_bold.{ranking.because}", least=LEAST_SEEDS, rule=rule(analysis))
    return w("note.bold" if plan.procedure.limit is not None else "note.bold_no_limit", column=plan.primary.name)
