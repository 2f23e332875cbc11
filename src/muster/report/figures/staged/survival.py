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
from muster.report.figures.sheet import SMALL, write
from muster.report.figures.staged.artifacts import CURVES, EARLY_DEATH, FIRST_DEATH, FIRST_DEATH_P10, SURVIVAL, Series
from muster.report.figures.staged.ground import (
    GAP,
    LEFT,
    WRONG,
    Frame,
    Stages,
    begun,
    dashes,
    key_of,
    marked,
    panel,
    unnamed,
)

TALL = 1.5
TITLES = {
    SURVIVAL: "survival (share that lives)",
    FIRST_DEATH: "first death (step)",
    FIRST_DEATH_P10: "first death, 10th percentile (step)",
    EARLY_DEATH: "early deaths (share)",
}
FEW = 30  # points from which a marker stands at some of them only


class Curve(NamedTuple):
    series: Series
    key: str
    place: int  # among all curves: its colour and its mark
    dash: int  # among those of its panel

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
        curves: list[Curve] = []
        for key in keys:
            for each in series:
                if any(not math.isnan(value) for value in each.values.get(key, ())):
                    curves.append(Curve(each, key, place, len(curves)))
                    place += 1
        if curves:
            found.append(Group(TITLES[keys], curves))
    return found


def draw(series: Sequence[Series], stages: Stages, frame: Frame) -> Figure:
    groups = groups_of(series)
    keys = [*_keys(groups), *_wrong_key(stages), *unnamed(stages)]
    tall = len(groups) * (GAP + TALL)
    figure, at = begun(tall, "Survival and first death", _subtitle(series), keys, stages, frame)
    for group in groups:
        at -= GAP + TALL
        _panel(panel(figure, at, TALL, stages, last=group is groups[-1]), group)
        write(figure, LEFT, at + TALL + 0.07, group.title, SMALL)
    return figure


def _subtitle(series: Sequence[Series]) -> str:
    return "; ".join(
        f"{each.kind}: {each.total:,} row{'s' if each.total != 1 else ''}, {each.at[0]} to {each.at[-1]}"
        for each in series
    )


def _panel(axes: Axes, group: Group) -> None:
    drawn: list[float] = []
    for curve in group.curves:
        values = curve.series.values[curve.key]
        axes.plot(curve.series.at, values, color=colour(curve.place), linestyle=dashes(curve.dash), linewidth=1.9,
                  marker=marker(curve.place), markersize=6, zorder=4, label=curve.name,
                  markevery=marked(values, 1 if len(values) <= FEW else len(values) // 12))  # fmt: skip
        drawn += [value for value in values if not math.isnan(value)]
    axes.set_ylim(*padded(drawn, 0.1))
    tidy(axes.yaxis, 4)
    axes.grid(visible=True, axis="y", zorder=1)


def _keys(groups: Sequence[Group]) -> Iterator[tuple[Artist, str]]:
    for group in groups:
        for curve in group.curves:
            look = key_of(colour(curve.place), linestyle=dashes(curve.dash), linewidth=1.9,
                          marker=marker(curve.place), markersize=6)  # fmt: skip
            yield look, curve.name


def _wrong_key(stages: Stages) -> Iterator[tuple[Artist, str]]:
    if stages.wrong:
        yield Patch(facecolor="white", edgecolor=WARNING, hatch=WRONG), "label contradicts schedule"
