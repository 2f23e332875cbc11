"""A metric on its splits: a bar for each of them in the group of its config, with a dot for each seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from muster.report.facts import Column
from muster.report.figures import captions
from muster.report.figures.names import file_names
from muster.report.figures.palette import WARNING, colour, hatch, marker, pale
from muster.report.figures.scales import number, padded, rounded, tidy
from muster.report.figures.scene import Scene, pages
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
    legend,
    text_width,
)
from muster.stats.sample import LEAST_FOR_INTERVAL, Sample

FAR = 2.0  # spans of the values that lie between them and zero: bars would be all alike
MOST_BARS = 24  # on a sheet
GROUP = 0.8  # of a config's room
ROOM_FOR_VALUE = 0.19  # a bar's height from which a number fits beside it


@dataclass(frozen=True, slots=True)
class Group:
    """All that one picture shows."""

    metric: str
    columns: tuple[Column, ...]
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
        return nearest <= FAR * (high - low) or low == high

    @property
    def n(self) -> str:
        sizes = sorted({sample.n for sample in self.drawn})
        return f"n = {sizes[0]}" if len(sizes) == 1 else f"n = {sizes[0]} to {sizes[-1]}"


def draw(scene: Scene) -> Iterator[Picture]:
    metrics = list(dict.fromkeys(column.metric for column in scene.facts.columns))
    stems = file_names(metrics)
    for metric in metrics:
        columns = tuple(column for column in scene.facts.columns if column.metric == metric)
        known = [c for c in scene.configs if any(scene.analysis.sample(c, column).n for column in columns)]
        whole = _group(scene, metric, columns, known)
        for page in pages(known, max(1, MOST_BARS // len(columns))):
            group = replace(whole, samples=tuple(row for row in whole.samples if row[0].config in page.configs))
            yield _picture(scene, f"bars_{stems[metric]}{page.ending}", group, page.part)


def _group(scene: Scene, metric: str, columns: tuple[Column, ...], configs: Sequence[str]) -> Group:
    samples = tuple(tuple(scene.analysis.sample(config, column) for column in columns) for config in configs)
    plan = scene.facts.plan
    limited = columns.index(plan.limit) if plan and plan.limit in columns else None
    limit = scene.limit_on(metric) if limited is not None else None
    ends = [end for row in samples for sample in row for end in (*sample.values, *(sample.interval or ()))]
    return Group(metric, columns, samples, limit, limited, (*ends, *(() if limit is None else (limit,))))


def _picture(scene: Scene, name: str, group: Group, part: str) -> Picture:
    heads = [scene.names.head[column.head] for column in group.columns]
    shown = scene.names.metric[group.metric]
    what = f"{shown}: {' and '.join(heads)}" if any(heads) else shown
    figure, title = blank_sheet(scene, what + part, _how_to_read(group))
    labels = [_label(scene, group, row) for row in group.samples]
    left = EDGE + max(text_width(label, SMALL + 1) for label in labels) + 0.15
    keys = legend(figure, _keys(scene, group), EDGE, TOP, WIDTH - 2 * EDGE - 0.4)
    bottom, top = FOOT + 0.62, TOP - keys - 0.1
    thick = (top - bottom) * GROUP / (len(group.samples) * len(group.columns))
    beside = 0.75 if thick >= ROOM_FOR_VALUE else 0.1
    axes = axes_at(figure, left, bottom, WIDTH - left - EDGE - beside, top - bottom)
    axes.set(xlim=_bounds(group), ylim=(len(group.samples) - 0.5, -0.5), yticks=range(len(labels)))
    axes.set_yticklabels(labels, fontsize=SMALL + 1)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(_axis(scene, group, shown))
    tidy(axes.xaxis, 6)
    axes.grid(visible=True, axis="x")
    for index, row in enumerate(group.samples):
        for place, sample in enumerate(row):
            _one(axes, group, index, place, sample, thick)
    explain_dagger(figure, scene, group.configs)
    cells = scene.cells(group.configs, group.columns)
    return Picture(name, title, scene.description, captions.bars(scene, group), cells, figure)


def _how_to_read(group: Group) -> str:
    what = "bar" if group.as_bars else "large mark"
    if all(sample.n == 1 for sample in group.drawn):
        return f"{what}: the value of one seed (n = 1): no interval below three seeds"
    words = f"{what}: mean of the seeds ({group.n}); dots: each seed; "
    enough = any(sample.n >= LEAST_FOR_INTERVAL for sample in group.drawn)
    return words + ("line: 95 % t interval (from n = 3)" if enough else "no interval below three seeds")


def _label(scene: Scene, group: Group, row: Sequence[Sample]) -> str:
    """With its n where the sheet has more than one: the largest would be taken for all."""
    if len({sample.n for sample in group.drawn}) == 1:
        return scene.named(row[0].config)
    sizes = [str(sample.n) for sample in row]
    return f"{scene.named(row[0].config)} (n={sizes[0] if len(set(sizes)) == 1 else '/'.join(sizes)})"


def _axis(scene: Scene, group: Group, shown: str) -> str:
    plan = scene.facts.plan
    words = [] if group.as_bars else ["axis does not start at 0"]
    if plan and plan.primary.metric == group.metric:
        words.insert(0, "higher is better" if plan.procedure.higher else "lower is better")
    return f"{shown} ({'; '.join(words)})" if words else shown


def _bounds(group: Group) -> tuple[float, float]:
    low, high = padded([*group.ends, *([0.0] if group.as_bars else [])])
    if group.as_bars and min(group.ends) >= 0:
        low = 0.0
    if group.as_bars and max(group.ends) <= 0:
        high = 0.0
    return (low, high) if low < high else (-1.0, 1.0)


def _one(axes: Axes, group: Group, index: int, place: int, sample: Sample, height: float) -> None:
    """`height`: of a bar, in inches."""
    thick = GROUP / len(group.columns)
    y = index - GROUP / 2 + (place + 0.5) * thick
    if group.limited == place and group.limit is not None:
        axes.plot([group.limit] * 2, [y - thick / 2, y + thick / 2], color=WARNING, linewidth=2.2, dashes=(2.5, 1.2))
    if not sample.n:
        return
    tint = colour(place)
    if group.as_bars:
        axes.barh(y, sample.mean, thick * 0.9, facecolor=pale(tint), edgecolor=tint, hatch=hatch(place), linewidth=1.2)
    else:
        axes.plot(sample.mean, y, marker=marker(place), color=tint, markersize=13, markeredgecolor="black")
    if sample.interval:
        axes.plot(sample.interval, [y, y], color="black", linewidth=1.8, marker="|", markersize=min(9, 60 * height))
    if sample.n > 1:
        shift = [thick * 0.22 * ((rank % 3) - 1) for rank in range(sample.n)]
        dots = axes.scatter(sample.values, [y + each for each in shift], s=min(26.0, (32 * height) ** 2), c="white")
        dots.set(edgecolor="black", zorder=5, clip_on=False)
    if height >= ROOM_FOR_VALUE:
        axes.annotate(
            rounded(sample.mean),
            (1.0, y),
            xycoords=("axes fraction", "data"),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            fontsize=SMALL,
        )


def _keys(scene: Scene, group: Group) -> list[tuple[Artist, str]]:
    names = [
        scene.names.head[column.head] + (" (proxy)" if scene.facts.split_of(column.head) in scene.facts.proxies else "")
        for column in group.columns
    ]
    found: list[tuple[Artist, str]] = [(_key(group, place), name) for place, name in enumerate(names)]
    if group.limit is not None and group.limited is not None:
        dashes = Line2D([], [], color=WARNING, linewidth=2.2, dashes=(2.5, 1.2))
        found.append((dashes, f"limit of {names[group.limited]}: {number(group.limit)}"))
    return found


def _key(group: Group, place: int) -> Artist:
    tint = colour(place)
    if not group.as_bars:
        return Line2D([], [], color=tint, marker=marker(place), markersize=11, markeredgecolor="black", linestyle="")
    return Patch(facecolor=pale(tint), edgecolor=tint, hatch=hatch(place))
