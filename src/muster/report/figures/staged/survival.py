"""Survival, first death and early deaths over the iterations, as trained and as evaluated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from muster.report.figures.palette import WARNING, colour, marker
from muster.report.figures.scales import padded, tidy
from muster.report.figures.sheet import EDGE, LINE, SMALL, WIDTH, legend, text_width, write
from muster.report.figures.staged.artifacts import CURVES, EARLY_DEATH, FIRST_DEATH, SURVIVAL, Series
from muster.report.figures.staged.ground import (
    FOOT,
    HEAD,
    LEFT,
    STRIP,
    WRONG,
    Stages,
    dashes,
    key_of,
    panel,
    rows_of_legend,
    sheet,
    strips,
    unnamed,
    wrong_words,
)
from muster.report.figures.staged.timeline import AXIS, GAP

TALL = 1.5
TITLES = {
    SURVIVAL: "survival (share that lives)",
    FIRST_DEATH: "first death (step)",
    EARLY_DEATH: "early deaths (share)",
}
FEW = 80  # points from which a marker stands at some of them only


class Curve(NamedTuple):
    series: Series
    key: str
    place: int  # among all curves: its looks

    @property
    def name(self) -> str:
        return f"{self.key} ({self.series.kind})"


class Group(NamedTuple):
    title: str
    curves: list[Curve]


def groups_of(series: Sequence[Series]) -> list[Group]:
    """A panel for each kind of number that some file has."""
    found = []
    place = 0
    for keys in CURVES:
        curves = []
        for key in keys:
            for each in series:
                if any(not math.isnan(value) for value in each.values.get(key, ())):
                    curves.append(Curve(each, key, place))
                    place += 1
        if curves:
            found.append(Group(TITLES[keys], curves))
    return found


def draw(series: Sequence[Series], stages: Stages, foot: str, version: str) -> Figure:
    groups = groups_of(series)
    keys = [*_keys(groups), *_wrong_key(stages), *unnamed(stages)]
    room = WIDTH - 2 * EDGE
    lines = rows_of_legend(len(keys), max(text_width(name, SMALL) for _, name in keys), room)
    strip = 0.0 if not stages.bands else 2 * STRIP + 0.04 if stages.wrong else STRIP
    told = LINE + 0.1 if stages.wrong else 0.0
    height = HEAD + lines * LINE + 0.15 + strip + len(groups) * (GAP + TALL) + AXIS + told + FOOT
    figure = sheet(height, "Survival and first death", _subtitle(series), foot, version)
    at = height - HEAD
    at -= legend(figure, keys, EDGE, at, room) + 0.15
    at -= strips(figure, at, stages)
    for group in groups:
        at -= GAP + TALL
        _panel(panel(figure, at, TALL, stages, last=group is groups[-1]), group)
        write(figure, LEFT, at + TALL + 0.07, group.title, SMALL)
    if stages.wrong:
        write(figure, EDGE, 0.42, wrong_words(stages.wrong, stages.looks, room), SMALL, color=WARNING)
    return figure


def _subtitle(series: Sequence[Series]) -> str:
    return "; ".join(
        f"{each.kind}: {len(each.at)} row{'s' if len(each.at) != 1 else ''}, {each.at[0]} to {each.at[-1]}"
        for each in series
    )


def _panel(axes: Axes, group: Group) -> None:
    drawn: list[float] = []
    for curve in group.curves:
        values = curve.series.values[curve.key]
        count = len(values)
        axes.plot(curve.series.at, values, color=colour(curve.place), linestyle=dashes(curve.place), linewidth=1.9,
                  marker=marker(curve.place), markersize=6, zorder=4, label=curve.name,
                  markevery=1 if count <= FEW else max(1, count // 12))  # fmt: skip
        drawn += [value for value in values if not math.isnan(value)]
    axes.set_ylim(*padded(drawn, 0.1))
    tidy(axes.yaxis, 4)
    axes.grid(visible=True, axis="y", zorder=1)


def _keys(groups: Sequence[Group]) -> Iterator[tuple[Artist, str]]:
    for group in groups:
        for curve in group.curves:
            look = key_of(colour(curve.place), linestyle=dashes(curve.place), linewidth=1.9,
                          marker=marker(curve.place), markersize=6)  # fmt: skip
            yield look, curve.name


def _wrong_key(stages: Stages) -> Iterator[tuple[Artist, str]]:
    if stages.wrong:
        yield Patch(facecolor="white", edgecolor=WARNING, hatch=WRONG), "label contradicts schedule"
