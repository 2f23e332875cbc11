"""A metric on its splits: a bar for each of them in the group of its config, with a dot for each seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from muster.app.facts.drawing.figure_context import FigureContext, figure_file_names, split_into_pages
from muster.app.facts.drawing.figure_page import (
    EDGE,
    FOOT,
    SMALL,
    TOP,
    WIDTH,
    Picture,
    add_axes_at,
    add_figure_legend,
    format_axis_number,
    format_measured_number,
    make_blank_page,
    padded_limits,
    tidy_axis,
    width_of_text,
    write_dagger_note,
)
from muster.app.facts.drawing.figure_style import (
    WARNING_COLOUR,
    pale_colour,
    series_colour,
    series_hatch,
    series_marker,
)
from muster.app.facts.report_facts import ResultColumn
from muster.app.report.figures.figure_captions import FigureCaptions
from muster.stats.samples import LEAST_FOR_INTERVAL, Sample

FAR_FROM_ZERO = 2.0  # spans of the values that lie between them and zero: bars would be all alike
MOST_BARS = 24  # on a sheet
GROUP_SHARE = 0.8  # of a config's room
ROOM_FOR_VALUE = 0.19  # a bar's height from which a number fits beside it


@dataclass(frozen=True, slots=True)
class BarGroup:
    """All that one picture shows."""

    metric: str
    columns: tuple[ResultColumn, ...]
    samples: tuple[tuple[Sample, ...], ...]  # for each config, for each column
    limit: float | None
    limited: int | None  # the column that the limit belongs to
    ends: tuple[float, ...]  # all values and ends of intervals, of other pages too: they share the axis

    @property
    def configs(self) -> tuple[str, ...]:
        return tuple(row[0].config for row in self.samples)

    @property
    def drawn(self) -> list[Sample]:
        return [sample for row in self.samples for sample in row if sample.n]

    @property
    def as_bars(self) -> bool:
        """A bar begins at zero or misleads; far from zero, points on an open axis show more."""
        low, high = min(self.ends), max(self.ends)
        nearest = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
        return nearest <= FAR_FROM_ZERO * (high - low) or low == high

    @property
    def n(self) -> str:
        sizes = sorted({sample.n for sample in self.drawn})
        return f"n = {sizes[0]}" if len(sizes) == 1 else f"n = {sizes[0]} to {sizes[-1]}"


def draw_bar_charts(scene: FigureContext) -> Iterator[Picture]:
    metrics = list(dict.fromkeys(column.metric for column in scene.facts.columns))
    stems = figure_file_names(metrics)
    for metric in metrics:
        columns = tuple(column for column in scene.facts.columns if column.metric == metric)
        known = [c for c in scene.configs if any(scene.analysis.sample(c, column).n for column in columns)]
        whole = _build_bar_group(scene, metric, columns, known)
        for page in split_into_pages(known, max(1, MOST_BARS // len(columns))):
            group = replace(whole, samples=tuple(row for row in whole.samples if row[0].config in page.configs))
            yield _draw_bar_page(scene, f"bars_{stems[metric]}{page.ending}", group, page.part)


def _build_bar_group(
    scene: FigureContext, metric: str, columns: tuple[ResultColumn, ...], configs: Sequence[str]
) -> BarGroup:
    samples = tuple(tuple(scene.analysis.sample(config, column) for column in columns) for config in configs)
    plan = scene.facts.plan
    limited = columns.index(plan.limit) if plan and plan.limit in columns else None
    limit = scene.limit_on(metric) if limited is not None else None
    ends = [end for row in samples for sample in row for end in (*sample.values, *(sample.interval or ()))]
    return BarGroup(metric, columns, samples, limit, limited, (*ends, *(() if limit is None else (limit,))))


def _draw_bar_page(scene: FigureContext, name: str, group: BarGroup, part: str) -> Picture:
    heads = [scene.names.head[column.head] for column in group.columns]
    shown = scene.names.metric[group.metric]
    what = f"{shown}: {' and '.join(heads)}" if any(heads) else shown
    figure, title = make_blank_page(scene, what + part, _how_to_read_bars(group))
    labels = [_bar_group_label(scene, group, row) for row in group.samples]
    left = EDGE + max(width_of_text(label, SMALL + 1) for label in labels) + 0.15
    keys = add_figure_legend(figure, _bar_legend_keys(scene, group), EDGE, TOP, WIDTH - 2 * EDGE - 0.4)
    bottom, top = FOOT + 0.62, TOP - keys - 0.1
    thick = (top - bottom) * GROUP_SHARE / (len(group.samples) * len(group.columns))
    beside = 0.75 if thick >= ROOM_FOR_VALUE else 0.1
    axes = add_axes_at(figure, left, bottom, WIDTH - left - EDGE - beside, top - bottom)
    axes.set(xlim=_bar_axis_bounds(group), ylim=(len(group.samples) - 0.5, -0.5), yticks=range(len(labels)))
    axes.set_yticklabels(labels, fontsize=SMALL + 1)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(_bar_axis_label(scene, group, shown))
    tidy_axis(axes.xaxis, 6)
    axes.grid(visible=True, axis="x")
    for index, row in enumerate(group.samples):
        for place, sample in enumerate(row):
            _draw_one_bar(axes, group, index, place, sample, thick)
    write_dagger_note(figure, scene, group.configs)
    cells = scene.cells(group.configs, group.columns)
    return Picture(name, title, scene.description, caption_of_bar_chart(scene, group), cells, figure)


def _how_to_read_bars(group: BarGroup) -> str:
    what = "bar" if group.as_bars else "large mark"
    if all(sample.n == 1 for sample in group.drawn):
        return f"{what}: the value of one seed (n = 1): no interval below three seeds"
    words = f"{what}: mean of the seeds ({group.n}); dots: each seed; "
    enough = any(sample.n >= LEAST_FOR_INTERVAL for sample in group.drawn)
    return words + ("line: 95 % t interval (from n = 3)" if enough else "no interval below three seeds")


def _bar_group_label(scene: FigureContext, group: BarGroup, row: Sequence[Sample]) -> str:
    """With its n where the sheet has more than one: the largest would be taken for all."""
    if len({sample.n for sample in group.drawn}) == 1:
        return scene.named(row[0].config)
    sizes = [str(sample.n) for sample in row]
    return f"{scene.named(row[0].config)} (n={sizes[0] if len(set(sizes)) == 1 else '/'.join(sizes)})"


def _bar_axis_label(scene: FigureContext, group: BarGroup, shown: str) -> str:
    plan = scene.facts.plan
    words = [] if group.as_bars else ["axis does not start at 0"]
    if plan and plan.primary.metric == group.metric:
        words.insert(0, "higher is better" if plan.procedure.higher else "lower is better")
    return f"{shown} ({'; '.join(words)})" if words else shown


def _bar_axis_bounds(group: BarGroup) -> tuple[float, float]:
    low, high = padded_limits([*group.ends, *([0.0] if group.as_bars else [])])
    if group.as_bars and min(group.ends) >= 0:
        low = 0.0
    if group.as_bars and max(group.ends) <= 0:
        high = 0.0
    return (low, high) if low < high else (-1.0, 1.0)


def _draw_one_bar(axes: Axes, group: BarGroup, index: int, place: int, sample: Sample, height: float) -> None:
    """`height`: of a bar, in inches."""
    thick = GROUP_SHARE / len(group.columns)
    y = index - GROUP_SHARE / 2 + (place + 0.5) * thick
    if group.limited == place and group.limit is not None:
        axes.plot(
            [group.limit] * 2, [y - thick / 2, y + thick / 2], color=WARNING_COLOUR, linewidth=2.2, dashes=(2.5, 1.2)
        )
    if not sample.n:
        return
    tint = series_colour(place)
    if group.as_bars:
        axes.barh(
            y,
            sample.mean,
            thick * 0.9,
            facecolor=pale_colour(tint),
            edgecolor=tint,
            hatch=series_hatch(place),
            linewidth=1.2,
        )
    else:
        axes.plot(sample.mean, y, marker=series_marker(place), color=tint, markersize=13, markeredgecolor="black")
    if sample.interval:
        axes.plot(sample.interval, [y, y], color="black", linewidth=1.8, marker="|", markersize=min(9, 60 * height))
    if sample.n > 1:
        shift = [thick * 0.22 * ((rank % 3) - 1) for rank in range(sample.n)]
        dots = axes.scatter(sample.values, [y + each for each in shift], s=min(26.0, (32 * height) ** 2), c="white")
        dots.set(edgecolor="black", zorder=5, clip_on=False)
    if height >= ROOM_FOR_VALUE:
        axes.annotate(
            format_measured_number(sample.mean),
            (1.0, y),
            xycoords=("axes fraction", "data"),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            fontsize=SMALL,
        )


def _bar_legend_keys(scene: FigureContext, group: BarGroup) -> list[tuple[Artist, str]]:
    names = [
        scene.names.head[column.head] + (" (proxy)" if scene.facts.split_of(column.head) in scene.facts.proxies else "")
        for column in group.columns
    ]
    found: list[tuple[Artist, str]] = [(_bar_legend_key(group, place), name) for place, name in enumerate(names)]
    if group.limit is not None and group.limited is not None:
        dashes = Line2D([], [], color=WARNING_COLOUR, linewidth=2.2, dashes=(2.5, 1.2))
        found.append((dashes, f"limit of {names[group.limited]}: {format_axis_number(group.limit)}"))
    return found


def _bar_legend_key(group: BarGroup, place: int) -> Artist:
    tint = series_colour(place)
    if not group.as_bars:
        return Line2D(
            [], [], color=tint, marker=series_marker(place), markersize=11, markeredgecolor="black", linestyle=""
        )
    return Patch(facecolor=pale_colour(tint), edgecolor=tint, hatch=series_hatch(place))


def caption_of_bar_chart(scene: FigureContext, group: BarGroup) -> str:
    say = FigureCaptions(scene)
    heads = [column.head for column in group.columns]
    what = "one_bar" if all(sample.n == 1 for sample in group.drawn) else "bars"
    plan = scene.facts.plan
    return say.joined(
        say(what, metric=group.metric, heads=say.list_all(heads), mark=say("bar" if group.as_bars else "point")),
        say("interval" if any(sample.interval for sample in group.drawn) else "no_interval"),
        say.sizes({row[0].config: tuple(sample.n for sample in row) for row in group.samples}),
        "" if group.as_bars else say("open"),
        say("limit", limit=format_axis_number(group.limit), column=plan.limit.name)
        if group.limit is not None and plan and plan.limit
        else "",
        say.dagger(group.configs),
        say.proxies(heads),
        say.key(config=group.configs, head=heads, metric=[group.metric]),
    )
