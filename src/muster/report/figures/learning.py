"""Learning curves: a picture for each metric."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from muster.report.figures import captions
from muster.report.figures.curves import Seeds, seeds_of
from muster.report.figures.names import file_names
from muster.report.figures.palette import BLUE, FAINT, QUIET, WARNING, colour, marker
from muster.report.figures.placing import Box, spread
from muster.report.figures.scales import Bounds, number, padded, tidy
from muster.report.figures.scene import Scene, pages
from muster.report.figures.sheet import (
    EDGE,
    FOOT,
    LABEL,
    SMALL,
    TOP,
    WIDTH,
    Picture,
    axes_at,
    blank_sheet,
    explain_dagger,
    left_of_axes,
    text_width,
    write,
)

TOGETHER = 6  # configs in one pair of axes; more get one each
BOTTOM = FOOT + 0.62
FEW = 3  # ticks of a small panel
BEHIND = 40  # points of a curve in the background


def draw(scene: Scene) -> Iterator[Picture]:
    metrics = list(dict.fromkeys(curve.metric for curve in scene.facts.curves))
    stems = file_names(metrics)
    for metric in metrics:
        curves = [curve for curve in scene.facts.curves if curve.metric == metric]
        found = {config: seeds_of(config, curves) for config in scene.configs}
        known = [config for config in scene.configs if found[config].n]
        keys = list(dict.fromkeys(curve.key for curve in curves))
        limit = scene.limit_on(metric)
        bounds = _bounds([found[config] for config in known], limit) if known else ((0.0, 1.0), (0.0, 1.0))
        for page in pages(known):
            seeds = [found[config] for config in page.configs]
            figure, title = _drawn(scene, metric, seeds, limit, bounds, page.part)
            cells = tuple(dict.fromkeys(cell for each in seeds for cell in each.cells))
            caption = captions.learning(scene, metric, keys, seeds)
            name = f"learning_{stems[metric]}{page.ending}"
            yield Picture(name, title, scene.description, caption, cells, figure)


def _drawn(
    scene: Scene, metric: str, page: Sequence[Seeds], limit: float | None, bounds: Bounds, part: str
) -> tuple[Figure, str]:
    shown = scene.names.metric[metric]
    figure, title = blank_sheet(
        scene, f"Learning curves: {shown}{part}", _how_to_read(page, limit, scene.whose_limit())
    )
    if len(page) <= TOGETHER:
        _together(figure, scene, page, limit, bounds, shown)
    else:
        _apart(figure, scene, page, limit, bounds, shown)
    explain_dagger(figure, scene, [seeds.config for seeds in page])
    return figure, title


def _how_to_read(page: Sequence[Seeds], limit: float | None, whose: str) -> str:
    dashed = "" if limit is None else f"; dashed: limit {number(limit)}{whose}"
    if all(seeds.n == 1 for seeds in page):
        return f"one seed each (n = 1): no band below three seeds{dashed}"
    if any(seeds.mean is not None and seeds.mean.half is not None for seeds in page):
        return f"thick: mean; band: its 95 % t interval (from n = 3); thin: each seed{dashed}"
    return f"thick: mean; thin: each seed; no band below three seeds{dashed}"


def _bounds(page: Sequence[Seeds], limit: float | None) -> Bounds:
    """Of all axes alike, so that panels can be compared."""
    steps = [float(step) for seeds in page for line in seeds.lines for step in (line[0][0], line[0][-1])]
    values = [float(end) for seeds in page for line in seeds.lines for end in (line[1].min(), line[1].max())]
    for seeds in page:
        if seeds.mean is not None and seeds.mean.half is not None:
            values += [
                float((seeds.mean.mean - seeds.mean.half).min()),
                float((seeds.mean.mean + seeds.mean.half).max()),
            ]
    low, high = padded([*values, *([] if limit is None else [limit])])
    if 0 < min(steps) < 0.1 * max(steps):
        steps.append(0.0)  # where training begins
    return padded(steps, 0.0), (low, high)


def _together(
    figure: Figure,
    scene: Scene,
    page: Sequence[Seeds],
    limit: float | None,
    bounds: Bounds,
    shown: str,
) -> None:
    beside = 0.7 + max(text_width(each, SMALL) for seeds in page for each in (scene.named(seeds.config), _n(seeds)))
    left = left_of_axes(bounds[1])
    frame = Box(left, BOTTOM, WIDTH - left - beside - EDGE, TOP - BOTTOM)
    axes = axes_at(figure, frame.left, frame.bottom, frame.width, frame.height)
    _frame(axes, bounds)
    axes.set_xlabel("step")
    axes.set_ylabel(shown)
    for seeds in page:
        index = scene.configs.index(seeds.config)
        _curves(axes, seeds, colour(index), marker(index), thin=0.3)
    if limit is not None:
        _limit(axes, limit)
        _name_limit(axes, f"limit {number(limit)}{scene.whose_limit()}", limit, bounds[0][0])
    _labels(figure, scene, page, bounds, frame)


def _labels(
    figure: Figure,
    scene: Scene,
    page: Sequence[Seeds],
    bounds: Bounds,
    frame: Box,
) -> None:
    """At the height where each curve ends, with its marker."""
    right, bottom, height = frame.left + frame.width, frame.bottom, frame.height
    (first, last), (low, high) = bounds
    ends = [_end(seeds) for seeds in page]
    wanted = [bottom + height * (value - low) / (high - low) for _, value in ends]
    gap = 0.5
    for seeds, (step, _), target, y in zip(
        page, ends, wanted, spread(wanted, gap, bottom + 0.2, bottom + height - 0.1), strict=True
    ):
        index = scene.configs.index(seeds.config)
        x = right - frame.width * (last - step) / (last - first)
        link = Line2D([x, right + 0.12, right + 0.2], [target, y, y], color=colour(index), linewidth=1.0)
        swatch = Line2D([right + 0.2, right + 0.5], [y, y], color=colour(index), linewidth=2.6)
        swatch.set(marker=marker(index), markevery=[1], markersize=8)
        for line in (link, swatch):
            line.set_transform(figure.dpi_scale_trans)
            figure.add_artist(line)
        write(figure, right + 0.6, y - 0.02, scene.named(seeds.config), SMALL, va="bottom")
        write(figure, right + 0.6, y - 0.03, _n(seeds), SMALL, va="top", color=QUIET)


def _n(seeds: Seeds) -> str:
    if seeds.mean is None:
        return f"n = {seeds.n}, no common step"
    return f"n = {seeds.n}" + (f", mean: {_percent(seeds)} of steps" if seeds.patchy else "")


def _percent(seeds: Seeds) -> str:
    return f"{int(100 * seeds.covered)} %"


def _end(seeds: Seeds) -> tuple[float, float]:
    if seeds.mean is not None:
        return float(seeds.mean.steps[-1]), float(seeds.mean.mean[-1])
    steps, values = seeds.lines[0]
    return float(steps[-1]), float(values[-1])


def _apart(
    figure: Figure,
    scene: Scene,
    page: Sequence[Seeds],
    limit: float | None,
    bounds: Bounds,
    shown: str,
) -> None:
    """A small panel for each config, the means of the others in grey behind it."""
    across = 3 if len(page) == 9 else 4
    down = math.ceil(len(page) / across)
    between, head = 0.2, 0.3
    left = left_of_axes(bounds[1], FEW)
    width = (WIDTH - left - EDGE - (across - 1) * between) / across
    height = (TOP + 0.1 - BOTTOM) / down - head
    for place, seeds in enumerate(page):
        row, column = divmod(place, across)
        bottom = BOTTOM + (down - 1 - row) * (height + head)
        axes = axes_at(figure, left + column * (width + between), bottom, width, height)
        _frame(axes, bounds, most=FEW)
        for other in page:
            if other is not seeds and other.mean is not None:
                few = max(1, len(other.mean.steps) // BEHIND)
                axes.plot(other.mean.steps[::few], other.mean.mean[::few], color=FAINT, linewidth=0.9)
        _curves(axes, seeds, BLUE, "", thin=0.5)
        if limit is not None:
            _limit(axes, limit)
        axes.set_title(f"{scene.named(seeds.config)}  {_n(seeds)}", fontsize=SMALL, loc="left", pad=3)
        axes.tick_params(labelbottom=place + across >= len(page), labelleft=column == 0)
    write(figure, left + (WIDTH - left - EDGE) / 2, FOOT + 0.1, "step", LABEL, ha="center")
    write(figure, EDGE, (TOP + BOTTOM) / 2, shown, LABEL, rotation=90, va="center", ha="center")


def _frame(axes: Axes, bounds: Bounds, most: int = 5) -> None:
    axes.set(xlim=bounds[0], ylim=bounds[1])
    tidy(axes.xaxis, most)
    tidy(axes.yaxis, most)
    axes.grid(visible=True, axis="y")


def _curves(axes: Axes, seeds: Seeds, tint: str, sign: str, thin: float) -> None:
    for steps, values in seeds.lines if seeds.n > 1 else ():
        axes.plot(steps, values, color=tint, linewidth=0.8, alpha=thin, marker="." if len(steps) == 1 else "")
    mean = seeds.mean
    if mean is None:
        return
    if mean.half is not None:
        axes.fill_between(mean.steps, mean.mean - mean.half, mean.mean + mean.half, color=tint, alpha=0.18, linewidth=0)
    every = np.unique(np.linspace(0, len(mean.steps) - 1, 8).round().astype(int))[1:-1].tolist()
    every = every or [0]
    axes.plot(
        mean.steps,
        mean.mean,
        color=tint,
        linewidth=2.6,
        marker=sign or ("o" if len(mean.steps) == 1 else ""),
        markersize=9,
        markevery=every,
        markeredgecolor="white",
    )


def _limit(axes: Axes, limit: float) -> None:
    axes.axhline(limit, color=WARNING, linewidth=1.6, dashes=(6, 3))


def _name_limit(axes: Axes, name: str, limit: float, step: float) -> None:
    axes.annotate(
        name,
        (step, limit),
        xytext=(5, 4),
        textcoords="offset points",
        color=WARNING,
        fontsize=SMALL,
        bbox={"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 0.5},
    )
