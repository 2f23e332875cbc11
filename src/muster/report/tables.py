"""The tables of a report in every format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from muster.report import table_claims, table_csv, table_latex, table_markdown
from muster.report.ablation import ablation_grids, factor_names
from muster.report.analysis import Analysis
from muster.report.claims import Claim
from muster.report.grid import Grid
from muster.report.main_table import main_grid
from muster.report.words import Words


@dataclass(frozen=True, slots=True)
class Table:
    name: str  # main | ablation
    csv: str
    markdown: str
    latex: str
    cells: tuple[str, ...]  # that it rests on
    claims: Mapping[str, tuple[Claim, ...]]  # csv, md, tex -> the numbers of each line


def tables(analysis: Analysis) -> Iterator[Table]:
    """The main one, and the ablation where factors are declared."""
    own, english = Words(analysis.facts.language), Words("en")
    cells = tuple(each.cell for each in analysis.facts.measured)
    yield _table("main", [main_grid(analysis, own)], [main_grid(analysis, english)], (), cells, analysis)
    if factors := factor_names(analysis):
        grids = ablation_grids(analysis, own), ablation_grids(analysis, english)
        plan = analysis.facts.plan
        chosen = tuple(each.cell for each in analysis.facts.measured if plan and each.config in plan.factors)
        yield _table("ablation", *grids, factors, chosen, analysis)


def _table(
    name: str,
    own: Sequence[Grid],
    english: Sequence[Grid],
    factors: Sequence[str],
    cells: tuple[str, ...],
    analysis: Analysis,
) -> Table:
    """In LaTeX only captions are in the campaign's language: not every document is set in Chinese."""
    w = Words(analysis.facts.language)
    captions = [w.sentences(f"{grid.caption}{w('stop')}", *grid.notes) for grid in own]
    set_in_english = [replace(grid, caption=text) for grid, text in zip(english, captions, strict=True)]
    facts = analysis.facts
    about = " ".join(part for part in (f"Muster {facts.version}, {facts.campaign}", analysis.mark) if part)
    markdown = "\n".join(table_markdown.render(grid) for grid in own)
    latex = table_latex.render(set_in_english, name, about)
    claims = {
        "csv": table_claims.of_csv(analysis, factors),
        "md": table_claims.of_text(markdown, own, lambda row: [table_markdown.row_line(row)]),
        "tex": table_claims.of_text(latex, english, table_latex.row_lines),
    }
    return Table(name, table_csv.render(analysis, factors), markdown, latex, cells, claims)
