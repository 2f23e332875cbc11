"""All pictures, one after another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from muster.app.facts.drawing.figure_context import FigureContext
from muster.app.facts.drawing.figure_page import Picture, apply_figure_style, is_drawable_text, save_figure_files
from muster.app.facts.report_analysis import ReportAnalysis
from muster.app.report.figures.bar_chart import draw_bar_charts
from muster.app.report.figures.coverage_matrix import draw_coverage
from muster.app.report.figures.learning_curves import draw_learning_curves
from muster.app.report.figures.score_vs_cost import draw_score_vs_cost


def report_pictures(analysis: ReportAnalysis) -> Iterator[Picture]:
    """Each one as soon as it is asked for: under `style`."""
    scene = FigureContext.of(analysis, is_drawable_text)
    return chain(draw_learning_curves(scene), draw_bar_charts(scene), draw_score_vs_cost(scene), draw_coverage(scene))


def draw_and_save_pictures(analysis: ReportAnalysis) -> Iterator[tuple[Picture, Mapping[str, bytes]]]:
    pictures = report_pictures(analysis)
    while True:
        with apply_figure_style():  # left before anything is handed out: the settings of matplotlib are global
            picture = next(pictures, None)
            if picture is None:
                return
            saved = save_figure_files(picture)
        yield picture, saved
