"""The primary metric against the cost that is limited: what a better score costs, and who keeps the limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from muster.app.facts.drawing.figure_context import FigureContext, figure_file_names
from muster.app.facts.drawing.figure_page import (
    EDGE,
    FOOT,
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
from muster.app.facts.drawing.figure_style import QUIET_COLOUR, WARNING_COLOUR, series_colour, series_marker
from muster.app.facts.report_facts import DecisionPlan, ResultColumn
from muster.app.report.figures.figure_captions import FigureCaptions
from muster.app.report.figures.label_layout import LabelBox, LinkLine, place_labels, shortest_link
from muster.stats.samples import LEAST_FOR_INTERVAL, Sample

AXES_BOTTOM = FOOT + 0.62
NEAR_LABEL = 0.22  # a label so near to its mark needs no line


@dataclass(frozen=True, slots=True)
class ConfigPoint:
    config: str
    cost: Sample
    score: Sample

    @property
    def seeds(self) -> list[tuple[float, float]]:
        """(cost, score) of those that have both."""
        found = self.score.by_seed
        return [(cost, found[seed]) for seed, cost in self.cost.by_seed.items() if seed in found]

    @property
    def n(self) -> int:
        return len(self.seeds)


def draw_score_vs_cost(scene: FigureContext) -> Iterator[Picture]:
    plan = scene.facts.plan
    if plan is None or plan.limit is None:
        return
    pairs = [
        ConfigPoint(config, scene.analysis.sample(config, plan.limit), scene.analysis.sample(config, plan.primary))
        for config in scene.configs
    ]
    points = [point for point in pairs if point.cost.n and point.score.n]
    if points:
        yield _draw_score_vs_cost_page(scene, plan, points)


def _draw_score_vs_cost_page(scene: FigureContext, plan: DecisionPlan, points: Sequence[ConfigPoint]) -> Picture:
    assert plan.limit is not None
    score, cost = scene.names.column(plan.primary), scene.names.column(plan.limit)
    figure, title = make_blank_page(scene, f"{score} against {cost}", _how_to_read_points(points))
    limit = plan.procedure.limit
    bounds = _score_and_cost_bounds(points, limit)
    left = left_edge_of_axes(bounds[1])
    frame = LabelBox(left, AXES_BOTTOM, WIDTH - left - EDGE, TOP - AXES_BOTTOM)
    axes = add_axes_at(figure, frame.left, frame.bottom, frame.width, frame.height)
    axes.set(xlim=bounds[0], ylim=bounds[1])
    tidy_axis(axes.xaxis, 7)
    tidy_axis(axes.yaxis, 5)
    axes.grid(visible=True)
    better = "higher" if plan.procedure.higher else "lower"
    axes.set_ylabel(f"{score} ({better} is better)")
    axes.set_xlabel(cost)
    if limit is not None:
        _draw_cost_limit(axes, limit, bounds[0], frame.width, at_most=plan.procedure.at_most)
    for point in points:
        _draw_config_point(axes, scene, point)
    _draw_point_labels(figure, scene, points, plan, bounds, frame)
    write_dagger_note(figure, scene, [point.config for point in points])
    cells = scene.cells([point.config for point in points], [plan.primary, plan.limit])
    stems = figure_file_names([plan.primary.metric, plan.limit.metric])
    name = f"{stems[plan.primary.metric]}_against_{stems[plan.limit.metric]}"
    return Picture(name, title, scene.description, caption_of_score_vs_cost(scene, plan, points), cells, figure)


def _how_to_read_points(points: Sequence[ConfigPoint]) -> str:
    sizes = sorted({size for point in points for size in (point.cost.n, point.score.n)})
    n = f"n = {sizes[0]}" if len(sizes) == 1 else f"n = {sizes[0]} to {sizes[-1]}"
    if sizes[-1] == 1:
        return "large mark: the value of one seed (n = 1): no interval below three seeds"
    bars = "lines: 95 % t intervals" if sizes[-1] >= LEAST_FOR_INTERVAL else "no interval below three seeds"
    return f"large mark: mean of the seeds ({n}); {bars}; small marks: each seed"


def _score_and_cost_bounds(points: Sequence[ConfigPoint], limit: float | None) -> AxisBounds:
    costs = [end for point in points for end in (*point.cost.values, *(point.cost.interval or ()))]
    scores = [end for point in points for end in (*point.score.values, *(point.score.interval or ()))]
    return padded_limits([*costs, *([] if limit is None else [limit])], 0.1), padded_limits(scores, 0.1)


def _draw_cost_limit(axes: Axes, limit: float, costs: tuple[float, float], wide: float, *, at_most: bool) -> None:
    axes.axvline(limit, color=WARNING_COLOUR, linewidth=1.8, dashes=(6, 3))
    axes.axvspan(limit, costs[1] if at_most else costs[0], color=WARNING_COLOUR, alpha=0.09, linewidth=0)
    words = f"limit {format_axis_number(limit)}: infeasible side"
    beyond = (costs[1] - limit if at_most else limit - costs[0]) / (costs[1] - costs[0])
    if beyond * wide < width_of_text(words, SMALL) + 0.2:  # no room there
        at_most, words = not at_most, f"limit {format_axis_number(limit)}; shaded: infeasible"
    axes.annotate(
        words,
        (limit, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(6 if at_most else -6, -4),
        textcoords="offset points",
        color=WARNING_COLOUR,
        fontsize=SMALL,
        va="top",
        ha="left" if at_most else "right",
    )


def _draw_config_point(axes: Axes, scene: FigureContext, point: ConfigPoint) -> None:
    index = scene.configs.index(point.config)
    tint, sign = series_colour(index), series_marker(index)
    if point.n and max(point.cost.n, point.score.n) > 1:
        costs, scores = zip(*point.seeds, strict=True)
        axes.scatter(costs, scores, s=28, marker=sign, color=tint, alpha=0.75, linewidth=0)
    if point.cost.interval:
        axes.plot(point.cost.interval, [point.score.mean] * 2, color=tint, linewidth=1.8, marker="|", markersize=9)
    if point.score.interval:
        axes.plot([point.cost.mean] * 2, point.score.interval, color=tint, linewidth=1.8, marker="_", markersize=9)
    axes.plot(point.cost.mean, point.score.mean, marker=sign, markersize=13, color=tint, markeredgecolor="black")


def _draw_point_labels(
    figure: Figure,
    scene: FigureContext,
    points: Sequence[ConfigPoint],
    plan: DecisionPlan,
    bounds: AxisBounds,
    frame: LabelBox,
) -> None:
    limit = plan.procedure.limit
    (left, right), (low, high) = bounds

    def at(cost: float, score: float) -> tuple[float, float]:
        return (
            frame.left + frame.width * (cost - left) / (right - left),
            frame.bottom + frame.height * (score - low) / (high - low),
        )

    anchors = [at(point.cost.mean, point.score.mean) for point in points]
    alike = len({point.n for point in points}) == 1
    names = [scene.named(point.config) + ("" if alike else f" (n={point.n})") for point in points]
    sizes = [(width_of_text(name, SMALL + 1) + 0.06, 0.24) for name in names]
    obstacles = [LabelBox(x - 0.1, y - 0.1, 0.2, 0.2) for x, y in anchors for _ in range(3)]  # a mark weighs more
    for point in points:
        obstacles += _boxes_of_point(point, at)
    if limit is not None:
        x, _ = at(limit, low)
        obstacles += [LabelBox(x - 0.03, frame.bottom, 0.06, frame.height)]
        obstacles += [LabelBox(x - 2.6, frame.bottom + frame.height - 0.3, 5.2, 0.3) for _ in range(9)]  # its name
    for (x, y), name, box in zip(anchors, names, place_labels(anchors, sizes, obstacles, frame), strict=True):
        _draw_leader_line(figure, shortest_link((x, y), box))
        across, up = box.middle
        ground = {"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 0.5}
        draw_figure_text(figure, across, up, name, SMALL + 1, ha="center", va="center", bbox=ground)


def _draw_leader_line(figure: Figure, line: LinkLine) -> None:
    """Where the label is not beside its mark."""
    if (far := math.dist(*line)) > NEAR_LABEL:
        (x, y), (end_x, end_y) = line
        start = 0.13 / far  # at the edge of the mark
        x, y = x + start * (end_x - x), y + start * (end_y - y)
        figure.add_artist(
            Line2D([x, end_x], [y, end_y], color=QUIET_COLOUR, linewidth=0.8, transform=figure.dpi_scale_trans)
        )


def _boxes_of_point(point: ConfigPoint, at: Callable[[float, float], tuple[float, float]]) -> list[LabelBox]:
    found = []
    if point.cost.interval:
        (x, y), (end, _) = (at(each, point.score.mean) for each in point.cost.interval)
        found.append(LabelBox(x, y - 0.04, end - x, 0.08))
    if point.score.interval:
        (x, y), (_, end) = (at(point.cost.mean, each) for each in point.score.interval)
        found.append(LabelBox(x - 0.04, y, 0.08, end - y))
    for seed in point.seeds:
        x, y = at(*seed)
        found.append(LabelBox(x - 0.05, y - 0.05, 0.1, 0.1))
    return found


def caption_of_score_vs_cost(scene: FigureContext, plan: DecisionPlan, points: Sequence[ConfigPoint]) -> str:
    say = FigureCaptions(scene)
    assert plan.limit is not None
    configs = [point.config for point in points]
    columns: list[ResultColumn] = [plan.primary, plan.limit]
    unclear = [c for c in configs if (s := scene.analysis.decision.safety.get(c)) and s.standing == "UNDETERMINED"]
    intervals = any(sample.interval for point in points for sample in (point.cost, point.score))
    limit = plan.procedure.limit
    what = "one_point" if all(point.n == 1 for point in points) else "trade"
    return say.joined(
        say(what, score=plan.primary.name, cost=plan.limit.name),
        say("interval" if intervals else "no_interval"),
        say.sizes({point.config: (point.n,) for point in points}),
        say("limit", limit=format_axis_number(limit), column=plan.limit.name) if limit is not None else "",
        say.dagger(configs),
        say("undetermined", configs=say.list_all(unclear)) if unclear else "",
        say.proxies([column.head for column in columns]),
        say.key(config=configs, head=[column.head for column in columns], metric=[column.metric for column in columns]),
    )
