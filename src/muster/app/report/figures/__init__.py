"""The pictures of a report as bytes: PNG, SVG and PDF, the same ones for the same facts.

matplotlib is not imported before the first picture is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from muster.app.facts.report_analysis import ReportAnalysis


@dataclass(frozen=True, slots=True)
class ReportFigure:
    name: str  # learning_score, bars_score, score_against_cost, coverage: without a suffix
    files: Mapping[str, bytes]  # png, svg, pdf
    caption: str  # in the campaign's language
    cells: tuple[str, ...]  # what it rests on


def draw_report_figures(analysis: ReportAnalysis) -> Iterator[ReportFigure]:
    """Each one as soon as it is drawn."""
    from muster.app.facts.drawing.figure_style import with_bundled_fonts_only

    with with_bundled_fonts_only():
        from muster.app.report.figures.draw_all import draw_and_save_pictures
    for picture, files in draw_and_save_pictures(analysis):
        yield ReportFigure(picture.name, files, picture.caption, picture.cells)
