"""Learning curves: a picture for each metric."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from muster.app.facts.drawing.figure_context import FigureContext, figure_file_names, split_into_pages
from muster.app.facts.drawing.figure_page import (
    EDGE,
    FOOT,
    LABEL,
    SMALL,
    TOP,
    WIDTH,
    AxisBounds,
    Picture,
    add_axes_at,
    draw_figure_text,
    format_axis_number,
    left_edge_of_axes,
    make_blank_page,
    padded_limits,
    tidy_axis,
    width_of_text,
    write_dagger_note,
)
from muster.app.facts.drawing.figure_style import (
    BLUE,
    FAINT_COLOUR,
    QUIET_COLOUR,
    WARNING_COLOUR,
    series_colour,
    series_marker,
)
from muster.app.report.figures.figure_captions import FigureCaptions
from muster.app.report.figures.figure_data import SeedCurves, seed_curves_of_config
from muster.app.report.figures.label_layout import LabelBox, spread_labels


def caption_of_learning_curves(
    scene: FigureContext, metric: str, keys: Sequence[str], page: Sequence[SeedCurves]
) -> str:
    say = FigureCaptions(scene)
    other = [key for key in keys if key and key != metric]
    banded = any(seeds.mean is not None and seeds.mean.half is not None for seeds in page)
    limit, plan = scene.limit_on(metric), scene.facts.plan
    left_out = sum(seeds.left_out for seeds in page)
    uneven = [seeds.config for seeds in page if seeds.mean is None]
    patchy = [f"{each.config or '-'} {int(100 * each.covered)} %" for each in page if each.patchy]
    what = "single" if all(seeds.n == 1 for seeds in page) else "learning"
    return say.joined(
        say(what, metric=metric, keys=f" ({say.list_all(other)})" if other else ""),
        say("band") if banded else say("no_band"),
        say.sizes({seeds.config: (seeds.n,) for seeds in page}),
        say("uneven", configs=say.list_all(uneven)) if uneven else "",
        say("patchy", configs=say.list_all(patchy)) if patchy else "",
        say("left_out", count=left_out) if left_out else "",
        say("limit", limit=format_axis_number(limit), column=plan.limit.name)
        if limit is not None and plan and plan.limit
        else "",
        say.dagger([seeds.config for seeds in page]),
        say.key(config=[seeds.config for seeds in page], metric=[metric]),
    )


MOST_TOGETHER = 6  # configs in one pair of axes; more get one each
AXES_BOTTOM = FOOT + 0.62
PANEL_TICKS = 3  # ticks of a small panel
BACKGROUND_POINTS = 40  # points of a curve in the background


def draw_learning_curves(scene: FigureContext) -> Iterator[Picture]:
    metrics = list(dict.fromkeys(curve.metric for curve in scene.facts.curves))
    stems = figure_file_names(metrics)
    for metric in metrics:
        curves = [curve for curve in scene.facts.curves if curve.metric == metric]
        found = {config: seed_curves_of_config(config, curves) for config in scene.configs}
        known = [config for config in scene.configs if found[config].n]
        keys = list(dict.fromkeys(curve.key for curve in curves))
        limit = scene.limit_on(metric)
        bounds = _curve_bounds([found[config] for config in known], limit) if known else ((0.0, 1.0), (0.0, 1.0))
        for page in split_into_pages(known):
            seeds = [found[config] for config in page.configs]
            figure, title = _draw_learning_page(scene, metric, seeds, limit, bounds, page.part)
            cells = tuple(dict.fromkeys(cell for each in seeds for cell in each.cells))
            caption = caption_of_learning_curves(scene, metric, keys, seeds)
            name = f"learning_{stems[metric]}{page.ending}"
            yield Picture(name, title, scene.description, caption, cells, figure)


def _draw_learning_page(
    scene: FigureContext, metric: str, page: Sequence[SeedCurves], limit: float | None, bounds: AxisBounds, part: str
) -> tuple[Figure, str]:
    shown = scene.names.metric[metric]
    figure, title = make_blank_page(
        scene, f"Learning curves: {shown}{part}", _how_to_read_curves(page, limit, scene.whose_limit())
    )
    if len(page) <= MOST_TOGETHER:
        _draw_curves_together(figure, scene, page, limit, bounds, shown)
    else:
        _draw_curves_in_panels(figure, scene, page, limit, bounds, shown)
    write_dagger_note(figure, scene, [seeds.config for seeds in page])
    return figure, title


def _how_to_read_curves(page: Sequence[SeedCurves], limit: float | None, whose: str) -> str:
    dashed = "" if limit is None else f"; dashed: limit {format_axis_number(limit)}{whose}"
    if all(seeds.n == 1 for seeds in page):
        return f"one seed each (n = 1): no band below three seeds{dashed}"
    if any(seeds.mean is not None and seeds.mean.half is not None for seeds in page):
        return f"thick: mean; band: its 95 % t interval (from n = 3); thin: each seed{dashed}"
    return f"thick: mean; thin: each seed; no band below three seeds{dashed}"


def _curve_bounds(page: Sequence[SeedCurves], limit: float | None) -> AxisBounds:
    """Of all axes alike, so that panels can be compared."""
    steps = [float(step) for seeds in page for line in seeds.lines for step in (line[0][0], line[0][-1])]
    values = [float(end) for seeds in page for line in seeds.lines for end in (line[1].min(), line[1].max())]
    for seeds in page:
        if seeds.mean is not None and seeds.mean.half is not None:
            values += [
                float((seeds.mean.mean - seeds.mean.half).min()),
                float((seeds.mean.mean + seeds.mean.half).max()),
            ]
    low, high = padded_limits([*values, *([] if limit is None else [limit])])
    if 0 < min(steps) < 0.1 * max(steps):
        steps.append(0.0)  # where training begins
    return padded_limits(steps, 0.0), (low, high)


def _draw_curves_together(
    figure: Figure,
    scene: FigureContext,
    page: Sequence[SeedCurves],
    limit: float | None,
    bounds: AxisBounds,
    shown: str,
) -> None:
    beside = 0.7 + max(
        width_of_text(each, SMALL) for seeds in page for each in (scene.named(seeds.config), _format_curve_count(seeds))
    )
    left = left_edge_of_axes(bounds[1])
    frame = LabelBox(left, AXES_BOTTOM, WIDTH - left - beside - EDGE, TOP - AXES_BOTTOM)
    axes = add_axes_at(figure, frame.left, frame.bottom, frame.width, frame.height)
    _frame_curve_axes(axes, bounds)
    axes.set_xlabel("step")
    axes.set_ylabel(shown)
    for seeds in page:
        index = scene.configs.index(seeds.config)
        _draw_seed_curves(axes, seeds, series_colour(index), series_marker(index), thin=0.3)
    if limit is not None:
        _draw_limit_line(axes, limit)
        _label_limit_line(axes, f"limit {format_axis_number(limit)}{scene.whose_limit()}", limit, bounds[0][0])
    _draw_curve_labels(figure, scene, page, bounds, frame)


def _draw_curve_labels(
    figure: Figure,
    scene: FigureContext,
    page: Sequence[SeedCurves],
    bounds: AxisBounds,
    frame: LabelBox,
) -> None:
    """At the height where each curve ends, with its marker."""
    right, bottom, height = frame.left + frame.width, frame.bottom, frame.height
    (first, last), (low, high) = bounds
    ends = [_end_of_curve(seeds) for seeds in page]
    wanted = [bottom + height * (value - low) / (high - low) for _, value in ends]
    gap = 0.5
    for seeds, (step, _), target, y in zip(
        page, ends, wanted, spread_labels(wanted, gap, bottom + 0.2, bottom + height - 0.1), strict=True
    ):
        index = scene.configs.index(seeds.config)
        x = right - frame.width * (last - step) / (last - first)
        link = Line2D([x, right + 0.12, right + 0.2], [target, y, y], color=series_colour(index), linewidth=1.0)
        swatch = Line2D([right + 0.2, right + 0.5], [y, y], color=series_colour(index), linewidth=2.6)
        swatch.set(marker=series_marker(index), markevery=[1], markersize=8)
        for line in (link, swatch):
            line.set_transform(figure.dpi_scale_trans)
            figure.add_artist(line)
        draw_figure_text(figure, right + 0.6, y - 0.02, scene.named(seeds.config), SMALL, va="bottom")
        draw_figure_text(figure, right + 0.6, y - 0.03, _format_curve_count(seeds), SMALL, va="top", color=QUIET_COLOUR)


def _format_curve_count(seeds: SeedCurves) -> str:
    if seeds.mean is None:
        return f"n = {seeds.n}, no common step"
    return f"n = {seeds.n}" + (f", mean: {_format_covered_percent(seeds)} of steps" if seeds.patchy else "")


def _format_covered_percent(seeds: SeedCurves) -> str:
    return f"{int(100 * seeds.covered)} %"


def _end_of_curve(seeds: SeedCurves) -> tuple[float, float]:
    if seeds.mean is not None:
        return float(seeds.mean.steps[-1]), float(seeds.mean.mean[-1])
    steps, values = seeds.lines[0]
    return float(steps[-1]), float(values[-1])


def _draw_curves_in_panels(
    figure: Figure,
    scene: FigureContext,
    page: Sequence[SeedCurves],
    limit: float | None,
    bounds: AxisBounds,
    shown: str,
) -> None:
    """A small panel for each config, the means of the others in grey behind it."""
    across = 3 if len(page) == 9 else 4
    down = math.ceil(len(page) / across)
    between, head = 0.2, 0.3
    left = left_edge_of_axes(bounds[1], PANEL_TICKS)
    width = (WIDTH - left - EDGE - (across - 1) * between) / across
    height = (TOP + 0.1 - AXES_BOTTOM) / down - head
    for place, seeds in enumerate(page):
        row, column = divmod(place, across)
        bottom = AXES_BOTTOM + (down - 1 - row) * (height + head)
        axes = add_axes_at(figure, left + column * (width + between), bottom, width, height)
        _frame_curve_axes(axes, bounds, most=PANEL_TICKS)
        for other in page:
            if other is not seeds and other.mean is not None:
                few = max(1, len(other.mean.steps) // BACKGROUND_POINTS)
                axes.plot(other.mean.steps[::few], other.mean.mean[::few], color=FAINT_COLOUR, linewidth=0.9)
        _draw_seed_curves(axes, seeds, BLUE, "", thin=0.5)
        if limit is not None:
            _draw_limit_line(axes, limit)
        axes.set_title(f"{scene.named(seeds.config)}  {_format_curve_count(seeds)}", fontsize=SMALL, loc="left", pad=3)
        axes.tick_params(labelbottom=place + across >= len(page), labelleft=column == 0)
    draw_figure_text(figure, left + (WIDTH - left - EDGE) / 2, FOOT + 0.1, "step", LABEL, ha="center")
    draw_figure_text(figure, EDGE, (TOP + AXES_BOTTOM) / 2, shown, LABEL, rotation=90, va="center", ha="center")


def _frame_curve_axes(axes: Axes, bounds: AxisBounds, most: int = 5) -> None:
    axes.set(xlim=bounds[0], ylim=bounds[1])
    tidy_axis(axes.xaxis, most)
    tidy_axis(axes.yaxis, most)
    axes.grid(visible=True, axis="y")


def _draw_seed_curves(axes: Axes, seeds: SeedCurves, tint: str, sign: str, thin: float) -> None:
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


def _draw_limit_line(axes: Axes, limit: float) -> None:
    axes.axhline(limit, color=WARNING_COLOUR, linewidth=1.6, dashes=(6, 3))


def _label_limit_line(axes: Axes, name: str, limit: float, step: float) -> None:
    axes.annotate(
        name,
        (step, limit),
        xytext=(5, 4),
        textcoords="offset points",
        color=WARNING_COLOUR,
        fontsize=SMALL,
        bbox={"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 0.5},
    )
