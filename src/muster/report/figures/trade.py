"""The primary metric against the cost that is limited: what a better score costs, and who keeps the limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from muster.report.facts import Plan
from muster.report.figures import captions
from muster.report.figures.names import file_names
from muster.report.figures.palette import QUIET, WARNING, colour, marker
from muster.report.figures.placing import Box, Line, link, place
from muster.report.figures.scales import Bounds, number, padded, tidy
from muster.report.figures.scene import Scene
from muster.report.figures.sheet import (
    EDGE,
    FOOT,
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
from muster.stats.sample import LEAST_FOR_INTERVAL, Sample

BOTTOM = FOOT + 0.62
BESIDE = 0.22  # a label so near to its mark needs no line


@dataclass(frozen=True, slots=True)
class Point:
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


def draw(scene: Scene) -> Iterator[Picture]:
    plan = scene.facts.plan
    if plan is None or plan.limit is None:
        return
    pairs = [
        Point(config, scene.analysis.sample(config, plan.limit), scene.analysis.sample(config, plan.primary))
        for config in scene.configs
    ]
    points = [point for point in pairs if point.cost.n and point.score.n]
    if points:
        yield _picture(scene, plan, points)


def _picture(scene: Scene, plan: Plan, points: Sequence[Point]) -> Picture:
    assert plan.limit is not None
    score, cost = scene.names.column(plan.primary), scene.names.column(plan.limit)
    figure, title = blank_sheet(scene, f"{score} against {cost}", _how_to_read(points))
    limit = plan.procedure.limit
    bounds = _bounds(points, limit)
    left = left_of_axes(bounds[1])
    frame = Box(left, BOTTOM, WIDTH - left - EDGE, TOP - BOTTOM)
    axes = axes_at(figure, frame.left, frame.bottom, frame.width, frame.height)
    axes.set(xlim=bounds[0], ylim=bounds[1])
    tidy(axes.xaxis, 7)
    tidy(axes.yaxis, 5)
    axes.grid(visible=True)
    better = "higher" if plan.procedure.higher else "lower"
    axes.set_ylabel(f"{score} ({better} is better)")
    axes.set_xlabel(cost)
    if limit is not None:
        _limit(axes, limit, bounds[0], frame.width, at_most=plan.procedure.at_most)
    for point in points:
        _one(axes, scene, point)
    _labels(figure, scene, points, plan, bounds, frame)
    explain_dagger(figure, scene, [point.config for point in points])
    cells = scene.cells([point.config for point in points], [plan.primary, plan.limit])
    stems = file_names([plan.primary.metric, plan.limit.metric])
    name = f"{stems[plan.primary.metric]}_against_{stems[plan.limit.metric]}"
    return Picture(name, title, scene.description, captions.trade(scene, plan, points), cells, figure)


def _how_to_read(points: Sequence[Point]) -> str:
    sizes = sorted({size for point in points for size in (point.cost.n, point.score.n)})
    n = f"n = {sizes[0]}" if len(sizes) == 1 else f"n = {sizes[0]} to {sizes[-1]}"
    if sizes[-1] == 1:
        return "large mark: the value of one seed (n = 1): no interval below three seeds"
    bars = "lines: 95 % t intervals" if sizes[-1] >= LEAST_FOR_INTERVAL else "no interval below three seeds"
    return f"large mark: mean of the seeds ({n}); {bars}; small marks: each seed"


def _bounds(points: Sequence[Point], limit: float | None) -> Bounds:
    costs = [end for point in points for end in (*point.cost.values, *(point.cost.interval or ()))]
    scores = [end for point in points for end in (*point.score.values, *(point.score.interval or ()))]
    return padded([*costs, *([] if limit is None else [limit])], 0.1), padded(scores, 0.1)


def _limit(axes: Axes, limit: float, costs: tuple[float, float], wide: float, *, at_most: bool) -> None:
    axes.axvline(limit, color=WARNING, linewidth=1.8, dashes=(6, 3))
    axes.axvspan(limit, costs[1] if at_most else costs[0], color=WARNING, alpha=0.09, linewidth=0)
    words = f"limit {number(limit)}: infeasible side"
    beyond = (costs[1] - limit if at_most else limit - costs[0]) / (costs[1] - costs[0])
    if beyond * wide < text_width(words, SMALL) + 0.2:  # no room there
        at_most, words = not at_most, f"limit {number(limit)}; shaded: infeasible"
    axes.annotate(
        words,
        (limit, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(6 if at_most else -6, -4),
        textcoords="offset points",
        color=WARNING,
        fontsize=SMALL,
        va="top",
        ha="left" if at_most else "right",
    )


def _one(axes: Axes, scene: Scene, point: Point) -> None:
    index = scene.configs.index(point.config)
    tint, sign = colour(index), marker(index)
    if point.n and max(point.cost.n, point.score.n) > 1:
        costs, scores = zip(*point.seeds, strict=True)
        axes.scatter(costs, scores, s=28, marker=sign, color=tint, alpha=0.75, linewidth=0)
    if point.cost.interval:
        axes.plot(point.cost.interval, [point.score.mean] * 2, color=tint, linewidth=1.8, marker="|", markersize=9)
    if point.score.interval:
        axes.plot([point.cost.mean] * 2, point.score.interval, color=tint, linewidth=1.8, marker="_", markersize=9)
    axes.plot(point.cost.mean, point.score.mean, marker=sign, markersize=13, color=tint, markeredgecolor="black")


def _labels(
    figure: Figure,
    scene: Scene,
    points: Sequence[Point],
    plan: Plan,
    bounds: Bounds,
    frame: Box,
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
    sizes = [(text_width(name, SMALL + 1) + 0.06, 0.24) for name in names]
    obstacles = [Box(x - 0.1, y - 0.1, 0.2, 0.2) for x, y in anchors for _ in range(3)]  # a mark weighs more
    for point in points:
        obstacles += _lines(point, at)
    if limit is not None:
        x, _ = at(limit, low)
        obstacles += [Box(x - 0.03, frame.bottom, 0.06, frame.height)]
        obstacles += [Box(x - 2.6, frame.bottom + frame.height - 0.3, 5.2, 0.3) for _ in range(9)]  # its name
    for (x, y), name, box in zip(anchors, names, place(anchors, sizes, obstacles, frame), strict=True):
        _leader(figure, link((x, y), box))
        across, up = box.middle
        ground = {"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 0.5}
        write(figure, across, up, name, SMALL + 1, ha="center", va="center", bbox=ground)


def _leader(figure: Figure, line: Line) -> None:
    """Where the label is not beside its mark."""
    if (far := math.dist(*line)) > BESIDE:
        (x, y), (end_x, end_y) = line
        start = 0.13 / far  # at the edge of the mark
        x, y = x + start * (end_x - x), y + start * (end_y - y)
        figure.add_artist(Line2D([x, end_x], [y, end_y], color=QUIET, linewidth=0.8, transform=figure.dpi_scale_trans))


def _lines(point: Point, at: Callable[[float, float], tuple[float, float]]) -> list[Box]:
    found = []
    if point.cost.interval:
        (x, y), (end, _) = (at(each, point.score.mean) for each in point.cost.interval)
        found.append(Box(x, y - 0.04, end - x, 0.08))
    if point.score.interval:
        (x, y), (_, end) = (at(point.cost.mean, each) for each in point.score.interval)
        found.append(Box(x - 0.04, y, 0.08, end - y))
    for seed in point.seeds:
        x, y = at(*seed)
        found.append(Box(x - 0.05, y - 0.05, 0.1, 0.1))
    return found
