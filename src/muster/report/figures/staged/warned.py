"""What is left of each type of stage, and how long it has been warned of: one picture tells if it is late."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from muster.report.figures.palette import WARNING, marker
from muster.report.figures.sheet import EDGE, SMALL, WIDTH, text_width, write
from muster.report.figures.staged.artifacts import ScheduleTrace, Told
from muster.report.figures.staged.ground import (
    GAP,
    LEFT,
    Frame,
    Stages,
    begun,
    dashes,
    key_of,
    marked,
    panel,
    unnamed,
    within,
)

RATIO, DURATION = 1.9, 1.2  # heights
OFTEN = 10  # marks on a line


def types_of(trace: ScheduleTrace) -> list[str]:
    rows = {name: None for row in trace.rows for name in (*row.ratio, *row.duration)}
    return list(rows | {each.type: None for each in trace.warnings})


def draw(trace: ScheduleTrace, stages: Stages, frame: Frame) -> Figure:
    types = types_of(trace)
    keys = _keys(trace, types, stages)
    tall = 2 * GAP + RATIO + DURATION
    figure, at = begun(tall, "Stages that run out, and the warnings", _subtitle(trace, stages), keys, stages, frame)
    at -= GAP + RATIO
    _ratios(panel(figure, at, RATIO, stages), trace, types, stages)
    write(figure, LEFT, at + RATIO + 0.07, "remaining ratio (iterations of the type that are left)", SMALL)
    at -= GAP + DURATION
    _durations(panel(figure, at, DURATION, stages, last=True), trace, types, stages)
    write(figure, LEFT, at + DURATION + 0.07, "warning duration (iterations since it was told)", SMALL)
    return figure


def _subtitle(trace: ScheduleTrace, stages: Stages) -> str:
    if not trace.warnings:
        return "no warning was told"
    said = [_warning(each, stages) for each in trace.warnings]
    fits = 1
    while fits < len(said) and text_width("; ".join(said[: fits + 1]) + "; and 99 more", SMALL) <= WIDTH - 2 * EDGE:
        fits += 1
    more = f"; and {len(said) - fits} more" if len(said) > fits else ""
    return within("; ".join(said[:fits]) + more, WIDTH - 2 * EDGE)


def _warning(each: Told, stages: Stages) -> str:
    name = stages.looks[each.type].name
    onset = f"below {each.threshold:g} from {each.onset}, " if each.onset is not None else ""
    lasted = f", lasted {each.duration:g}" if not math.isnan(each.duration) else ""
    return f"{name}: {onset}told at {each.iteration if each.iteration is not None else '?'}{lasted}"


def _ratios(axes: Axes, trace: ScheduleTrace, types: Sequence[str], stages: Stages) -> None:
    at = [row.iteration for row in trace.rows]
    every = max(1, len(at) // OFTEN)
    for place, name in enumerate(types):
        look = stages.looks[name]
        ratios = [row.ratio.get(name, math.nan) for row in trace.rows]
        axes.plot(at, ratios, color=look.tint, linestyle=dashes(place), linewidth=2.0,
                  marker=marker(place), markersize=6, label=look.name, zorder=4,
                  markevery=marked(ratios, every, every * place // len(types)))  # fmt: skip
    for threshold in dict.fromkeys(each.threshold for each in trace.warnings if not math.isnan(each.threshold)):
        axes.axhline(threshold, color=WARNING, linewidth=1.6, dashes=(6, 3), zorder=3, label="threshold")
    for each in trace.warnings:
        _told(axes, trace, each)
    axes.set_ylim(-0.06, 1.08)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1.0])
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))


def _told(axes: Axes, trace: ScheduleTrace, each: Told) -> None:
    """On the line of its type: where it fell below the threshold, and where that was told."""
    size = 11 if len(trace.warnings) <= 4 else 7
    ratios = {row.iteration: row.ratio.get(each.type, math.nan) for row in trace.rows}
    for iteration, sign, fill, label in ((each.onset, "o", "white", "onset"), (each.iteration, "v", WARNING, "told")):
        if iteration is not None:
            axes.plot([iteration], [ratios.get(iteration, math.nan)], marker=sign, markersize=size, color=WARNING,
                      markerfacecolor=fill, markeredgewidth=1.8, linestyle="", zorder=6, label=label)  # fmt: skip
            axes.axvline(iteration, color=WARNING, linewidth=0.9, linestyle=":", zorder=2)


def _durations(axes: Axes, trace: ScheduleTrace, types: Sequence[str], stages: Stages) -> None:
    at = [row.iteration for row in trace.rows]
    every = max(1, len(at) // OFTEN)
    most = 1.0
    for place, name in enumerate(types):
        look = stages.looks[name]
        lasted = [0.0 if math.isnan(one := row.duration.get(name, 0.0)) else one for row in trace.rows]
        most = max(most, *lasted) if lasted else most
        axes.plot(at, lasted, color=look.tint, linestyle=dashes(place), linewidth=2.0,
                  marker=marker(place), markersize=6, label=look.name, zorder=4,
                  markevery=marked(lasted, every, every * place // len(types)))  # fmt: skip
    for each in trace.warnings:
        for iteration in (each.onset, each.iteration):
            if iteration is not None:
                axes.axvline(iteration, color=WARNING, linewidth=0.9, linestyle=":", zorder=2)
    axes.set_ylim(-0.08 * most, 1.15 * most)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True, min_n_ticks=1))


def _keys(trace: ScheduleTrace, types: Sequence[str], stages: Stages) -> list[tuple[Artist, str]]:
    found: list[tuple[Artist, str]] = [
        (key_of(stages.looks[name].tint, linestyle=dashes(place), linewidth=2.0,
                marker=marker(place), markersize=6), stages.looks[name].name)
        for place, name in enumerate(types)
    ]  # fmt: skip
    thresholds = sorted({each.threshold for each in trace.warnings if not math.isnan(each.threshold)})
    if thresholds:
        words = f"threshold {', '.join(f'{each:g}' for each in thresholds)}"
        found.append((key_of(WARNING, linewidth=1.6, dashes=(6, 3)), words))
    if trace.warnings:
        found.append((_sign("o", "white"), "onset: falls below"))
        found.append((_sign("v", WARNING), "told"))
    return [*found, *unnamed(stages)]


def _sign(sign: str, fill: str) -> Artist:
    return key_of(WARNING, linestyle="", marker=sign, markerfacecolor=fill, markersize=9)
