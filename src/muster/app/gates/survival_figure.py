"""Survival, first death and early deaths over the iterations, as trained and as evaluated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from muster.app.facts.drawing.figure_page import SMALL, draw_figure_text, padded_limits, tidy_axis
from muster.app.facts.drawing.figure_style import WARNING_COLOUR, series_colour, series_marker
from muster.app.gates.picture_sheet import (
    GAP,
    LEFT,
    WRONG_LABEL_HATCH,
    PictureFrame,
    StageBackground,
    add_panel_axes,
    begin_panel_sheet,
    dash_style,
    legend_line,
    legend_of_narrow_stages,
    marker_positions,
)
from muster.app.gates.staged_artifacts import CURVE_PANELS, MetricSeries

SURVIVAL_PANEL_HEIGHT = 1.5
FEW_POINTS = 30  # points from which a marker stands at some of them only


class SurvivalCurve(NamedTuple):
    series: MetricSeries
    key: str
    place: int  # among all curves: its colour and its mark
    dash: int  # among those of its panel

    @property
    def name(self) -> str:
        return f"{self.key} ({self.series.kind})"


class CurveGroup(NamedTuple):
    title: str
    curves: list[SurvivalCurve]


def group_survival_curves(series: Sequence[MetricSeries]) -> list[CurveGroup]:
    """A panel for each kind of number that some file has."""
    found = []
    place = 0
    for title, keys in CURVE_PANELS.items():
        curves: list[SurvivalCurve] = []
        for key in keys:
            for each in series:
                if any(not math.isnan(value) for value in each.values.get(key, ())):
                    curves.append(SurvivalCurve(each, key, place, len(curves)))
                    place += 1
        if curves:
            found.append(CurveGroup(title, curves))
    return found


def draw_survival(series: Sequence[MetricSeries], stages: StageBackground, frame: PictureFrame) -> Figure:
    groups = group_survival_curves(series)
    keys = [*_survival_legend(groups), *_wrong_label_legend(stages), *legend_of_narrow_stages(stages)]
    tall = len(groups) * (GAP + SURVIVAL_PANEL_HEIGHT)
    figure, at = begin_panel_sheet(tall, "Survival and first death", _survival_subtitle(series), keys, stages, frame)
    for group in groups:
        at -= GAP + SURVIVAL_PANEL_HEIGHT
        _plot_curve_group(add_panel_axes(figure, at, SURVIVAL_PANEL_HEIGHT, stages, last=group is groups[-1]), group)
        draw_figure_text(figure, LEFT, at + SURVIVAL_PANEL_HEIGHT + 0.07, group.title, SMALL)
    return figure


def _survival_subtitle(series: Sequence[MetricSeries]) -> str:
    return "; ".join(
        f"{each.kind}: {each.total:,} row{'s' if each.total != 1 else ''}, {each.at[0]} to {each.at[-1]}"
        for each in series
    )


def _plot_curve_group(axes: Axes, group: CurveGroup) -> None:
    drawn: list[float] = []
    for curve in group.curves:
        values = curve.series.values[curve.key]
        axes.plot(
            curve.series.at,
            values,
            color=series_colour(curve.place),
            linestyle=dash_style(curve.dash),
            linewidth=1.9,
            marker=series_marker(curve.place),
            markersize=6,
            zorder=4,
            label=curve.name,
            markevery=marker_positions(values, 1 if len(values) <= FEW_POINTS else len(values) // 12),
        )
        drawn += [value for value in values if not math.isnan(value)]
    axes.set_ylim(*padded_limits(drawn, 0.1))
    tidy_axis(axes.yaxis, 4)
    axes.grid(visible=True, axis="y", zorder=1)


def _survival_legend(groups: Sequence[CurveGroup]) -> Iterator[tuple[Artist, str]]:
    for group in groups:
        for curve in group.curves:
            look = legend_line(
                series_colour(curve.place),
                linestyle=dash_style(curve.dash),
                linewidth=1.9,
                marker=series_marker(curve.place),
                markersize=6,
            )
            yield look, curve.name


def _wrong_label_legend(stages: StageBackground) -> Iterator[tuple[Artist, str]]:
    if stages.wrong:
        yield Patch(facecolor="white", edgecolor=WARNING_COLOUR, hatch=WRONG_LABEL_HATCH), "label contradicts schedule"
