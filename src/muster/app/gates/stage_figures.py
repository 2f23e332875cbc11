"""Pictures by stage: events in blocks of iterations, a stacked bar for each block, and what is left of each type of
stage with its warnings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, PercentFormatter

from muster.app.facts.drawing.figure_page import (
    EDGE,
    HEIGHT,
    SMALL,
    WIDTH,
    add_figure_legend,
    draw_figure_text,
    left_edge_of_axes,
    tidy_axis,
    width_of_text,
)
from muster.app.facts.drawing.figure_style import BLACK, WARNING_COLOUR, pale_colour, series_marker
from muster.app.gates.picture_sheet import (
    FLAG_HEIGHT,
    GAP,
    HEAD,
    LEFT,
    PLATE,
    WRONG_LABEL_HATCH,
    PictureFrame,
    StageBackground,
    StageLook,
    add_panel_axes,
    begin_panel_sheet,
    cut_text_to_room,
    dash_style,
    legend_line,
    legend_of_narrow_stages,
    make_picture_sheet,
    marker_positions,
    shorten_drawable_name,
    write_wrong_label_note,
)
from muster.app.gates.stage_bands import WrongLabel
from muster.app.gates.staged_artifacts import EventCount, ScheduleTrace, StageEvents, WarningRow
from muster.text.sentences import join_few_names

MOST_BLOCKS = 12
EVENTS_BOTTOM = 1.05
BAR_WIDTH = 0.8  # of a bar, where its place is 1
ROUND_BLOCK_SIZES = (1, 2, 5)


class IterationBlock(NamedTuple):
    first: int
    last: int
    counts: Mapping[str, float]  # by stage

    @property
    def total(self) -> float:
        return sum(self.counts.values())

    @property
    def name(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def iteration_blocks(rows: Sequence[EventCount]) -> list[IterationBlock]:
    """A dozen at most, of 1, 2, 5, 10, ... iterations each; empty ones between others too."""
    if not rows:
        return []
    start, end = rows[0].iteration, rows[-1].iteration
    size = _round_block_size(end - start + 1)
    first = (start - 1) // size * size + 1 if start else 0
    found: list[dict[str, float]] = [{} for _ in range((end - first) // size + 1)]
    for row in rows:
        mine = found[(row.iteration - first) // size]
        mine[row.stage] = mine.get(row.stage, 0) + row.number
    return [
        IterationBlock(max(start, first + at * size), min(end, first + (at + 1) * size - 1), counts)
        for at, counts in enumerate(found)
    ]


def _round_block_size(count: int) -> int:
    scale = 1
    while True:
        for nice in ROUND_BLOCK_SIZES:
            if count <= nice * scale * MOST_BLOCKS:
                return nice * scale
        scale *= 10


def draw_stage_events(
    events: StageEvents, looks: dict[str, StageLook], wrong: Sequence[WrongLabel], frame: PictureFrame
) -> Figure:
    blocks = iteration_blocks(events.rows) or [IterationBlock(0, 0, events.totals)]
    figure = make_picture_sheet(HEIGHT, f"{_events_title(events)} by stage", _events_subtitle(events, blocks), frame)
    top = HEIGHT - HEAD
    room = WIDTH - 2 * EDGE
    keys = _events_legend(events, looks, wrong)
    top -= add_figure_legend(figure, keys, EDGE, top, room) + 0.2
    tallest = max(block.total for block in blocks) or 1.0
    left = left_edge_of_axes((0.0, tallest * 1.15))
    bottom = EVENTS_BOTTOM + (FLAG_HEIGHT if wrong else 0.0)
    axes = figure.add_axes((left / WIDTH, bottom / HEIGHT, (WIDTH - left - EDGE) / WIDTH, (top - bottom) / HEIGHT))
    _draw_event_bars(axes, events, blocks, looks)
    _hatch_wrong_blocks(axes, blocks, wrong)
    axes.set_ylim(0, tallest * 1.15)
    axes.set_xlim(-0.6, max(len(blocks), 3) - 0.4)
    axes.set_ylabel("events")
    tidy_axis(axes.yaxis, 5)
    axes.grid(visible=True, axis="y")
    _label_block_axis(axes, blocks, bool(events.rows), (WIDTH - left - EDGE) / max(len(blocks), 3))
    if wrong:
        write_wrong_label_note(figure, wrong, looks)
    return figure


def _events_title(events: StageEvents) -> str:
    what = shorten_drawable_name(events.what) or "events"
    return what[:1].upper() + what[1:]


def _events_subtitle(events: StageEvents, blocks: Sequence[IterationBlock]) -> str:
    total = sum(events.totals.values())
    of = sum(row.of for row in events.rows) if events.rows else math.nan
    among = f" of {of:,.0f} ({100 * total / of:.2f} %)" if of and not math.isnan(of) else ""
    if not events.rows:
        return f"{total:,g} in the whole run{among}; not told by iteration"
    size = max(block.last - block.first + 1 for block in blocks)
    each = f"blocks of {size} iterations" if size > 1 else "by iteration"
    return f"{total:,g}{among}; {each}, from {blocks[0].first} to {blocks[-1].last}"


def _events_legend(
    events: StageEvents, looks: dict[str, StageLook], wrong: Sequence[WrongLabel]
) -> list[tuple[Artist, str]]:
    total = sum(events.totals.values())
    found: list[tuple[Artist, str]] = []
    for stage, count in events.totals.items():
        look = looks[stage]
        share = f" ({100 * count / total:.1f} %)" if total else ""
        found.append((_stage_patch(look), f"{look.name}: {count:,g}{share}"))
    if wrong:
        found.append(
            (
                Patch(facecolor="white", edgecolor=WARNING_COLOUR, hatch=WRONG_LABEL_HATCH),
                "block with a label that contradicts",
            )
        )
    return found


def _stage_patch(look: StageLook) -> Patch:
    return Patch(facecolor=pale_colour(look.tint), edgecolor=look.tint, hatch=look.hatch)


def _draw_event_bars(
    axes: Axes, events: StageEvents, blocks: Sequence[IterationBlock], looks: dict[str, StageLook]
) -> None:
    base = [0.0] * len(blocks)
    tallest = max(block.total for block in blocks) or 1.0
    for stage in events.totals:
        look, counts = looks[stage], [block.counts.get(stage, 0.0) for block in blocks]
        some = [at for at, count in enumerate(counts) if count]
        axes.bar(
            some,
            [counts[at] for at in some],
            BAR_WIDTH,
            bottom=[base[at] for at in some],
            facecolor=pale_colour(look.tint),
            edgecolor=look.tint,
            hatch=look.hatch,
            linewidth=1.0,
            label=look.name,
            zorder=2,
        )
        for at, count in enumerate(counts):
            if count >= 0.09 * tallest and count < blocks[at].total:
                axes.text(
                    at,
                    base[at] + count / 2,
                    f"{count:g}",
                    ha="center",
                    va="center_baseline",
                    fontsize=SMALL,
                    bbox=PLATE,
                    zorder=4,
                )
        base = [one + other for one, other in zip(base, counts, strict=True)]
    for at, total in enumerate(base):
        axes.text(at, total + 0.01 * tallest, f"{total:g}", ha="center", va="bottom", fontsize=SMALL, color=BLACK)


def _hatch_wrong_blocks(axes: Axes, blocks: Sequence[IterationBlock], wrong: Sequence[WrongLabel]) -> None:
    """Behind a bar that has a row in it whose label contradicts the schedule."""
    places = {
        at for each in wrong for at, block in enumerate(blocks) if block.first <= each.found.row.iteration <= block.last
    }
    for at in sorted(places):
        axes.axvspan(
            at - 0.5,
            at + 0.5,
            facecolor="none",
            edgecolor=pale_colour(WARNING_COLOUR),
            hatch=WRONG_LABEL_HATCH,
            linewidth=0,
            zorder=0,
        )


def _label_block_axis(axes: Axes, blocks: Sequence[IterationBlock], known: bool, room: float) -> None:
    names = [block.name for block in blocks] if known else ["whole run"]
    widest = max(width_of_text(name, SMALL) for name in names)
    every = max(1, math.ceil((widest + 0.1) / room))
    axes.set_xticks(range(0, len(blocks), every), names[::every])
    axes.tick_params(axis="x", length=0)
    if known:
        axes.set_xlabel("iterations")


RATIO, DURATION = 1.9, 1.2  # heights
MARKS_ON_LINE = 10  # marks on a line


def stage_types_in_trace(trace: ScheduleTrace) -> list[str]:
    rows = {name: None for row in trace.rows for name in (*row.ratio, *row.duration)}
    return list(rows | {each.type: None for each in trace.warnings})


def draw_stage_warnings(trace: ScheduleTrace, stages: StageBackground, frame: PictureFrame) -> Figure:
    types = stage_types_in_trace(trace)
    keys = _warnings_legend(trace, types, stages)
    tall = 2 * GAP + RATIO + DURATION
    figure, at = begin_panel_sheet(
        tall, "Stages that run out, and the warnings", _warnings_subtitle(trace, stages), keys, stages, frame
    )
    at -= GAP + RATIO
    _plot_remaining_ratios(add_panel_axes(figure, at, RATIO, stages), trace, types, stages)
    draw_figure_text(figure, LEFT, at + RATIO + 0.07, "remaining ratio (iterations of the type that are left)", SMALL)
    at -= GAP + DURATION
    _plot_warning_durations(add_panel_axes(figure, at, DURATION, stages, last=True), trace, types, stages)
    draw_figure_text(figure, LEFT, at + DURATION + 0.07, "warning duration (iterations since it was told)", SMALL)
    return figure


def _warnings_subtitle(trace: ScheduleTrace, stages: StageBackground) -> str:
    if not trace.warnings:
        return "no warning was told"
    said = [_describe_warning_row(each, stages) for each in trace.warnings]
    fits = 1
    while fits < len(said) and width_of_text("; ".join(said[: fits + 1]) + "; and 99 more", SMALL) <= WIDTH - 2 * EDGE:
        fits += 1
    return cut_text_to_room(join_few_names(said, fits, "; "), WIDTH - 2 * EDGE)


def _describe_warning_row(each: WarningRow, stages: StageBackground) -> str:
    name = stages.looks[each.type].name
    onset = f"below {each.threshold:g} from {each.onset}, " if each.onset is not None else ""
    lasted = f", lasted {each.duration:g}" if not math.isnan(each.duration) else ""
    return f"{name}: {onset}told at {each.iteration if each.iteration is not None else '?'}{lasted}"


def _plot_line_of_type(
    axes: Axes, trace: ScheduleTrace, values: Sequence[float], look: StageLook, place: int, types: int
) -> None:
    at = [row.iteration for row in trace.rows]
    every = max(1, len(at) // MARKS_ON_LINE)
    axes.plot(
        at,
        values,
        color=look.tint,
        linestyle=dash_style(place),
        linewidth=2.0,
        marker=series_marker(place),
        markersize=6,
        label=look.name,
        zorder=4,
        markevery=marker_positions(values, every, every * place // types),
    )


def _plot_remaining_ratios(axes: Axes, trace: ScheduleTrace, types: Sequence[str], stages: StageBackground) -> None:
    for place, name in enumerate(types):
        ratios = [row.ratio.get(name, math.nan) for row in trace.rows]
        _plot_line_of_type(axes, trace, ratios, stages.looks[name], place, len(types))
    for threshold in dict.fromkeys(each.threshold for each in trace.warnings if not math.isnan(each.threshold)):
        axes.axhline(threshold, color=WARNING_COLOUR, linewidth=1.6, dashes=(6, 3), zorder=3, label="threshold")
    for each in trace.warnings:
        _mark_warning_on_line(axes, trace, each)
    axes.set_ylim(-0.06, 1.08)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1.0])
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))


def _mark_warning_on_line(axes: Axes, trace: ScheduleTrace, each: WarningRow) -> None:
    """On the line of its type: where it fell below the threshold, and where that was told."""
    size = 11 if len(trace.warnings) <= 4 else 7
    ratios = {row.iteration: row.ratio.get(each.type, math.nan) for row in trace.rows}
    for iteration, sign, fill, label in (
        (each.onset, "o", "white", "onset"),
        (each.iteration, "v", WARNING_COLOUR, "told"),
    ):
        if iteration is not None:
            axes.plot(
                [iteration],
                [ratios.get(iteration, math.nan)],
                marker=sign,
                markersize=size,
                color=WARNING_COLOUR,
                markerfacecolor=fill,
                markeredgewidth=1.8,
                linestyle="",
                zorder=6,
                label=label,
            )
            axes.axvline(iteration, color=WARNING_COLOUR, linewidth=0.9, linestyle=":", zorder=2)


def _plot_warning_durations(axes: Axes, trace: ScheduleTrace, types: Sequence[str], stages: StageBackground) -> None:
    most = 1.0
    for place, name in enumerate(types):
        lasted = [0.0 if math.isnan(one := row.duration.get(name, 0.0)) else one for row in trace.rows]
        most = max(most, *lasted) if lasted else most
        _plot_line_of_type(axes, trace, lasted, stages.looks[name], place, len(types))
    for each in trace.warnings:
        for iteration in (each.onset, each.iteration):
            if iteration is not None:
                axes.axvline(iteration, color=WARNING_COLOUR, linewidth=0.9, linestyle=":", zorder=2)
    axes.set_ylim(-0.08 * most, 1.15 * most)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True, min_n_ticks=1))


def _warnings_legend(trace: ScheduleTrace, types: Sequence[str], stages: StageBackground) -> list[tuple[Artist, str]]:
    found: list[tuple[Artist, str]] = [
        (
            legend_line(
                stages.looks[name].tint,
                linestyle=dash_style(place),
                linewidth=2.0,
                marker=series_marker(place),
                markersize=6,
            ),
            stages.looks[name].name,
        )
        for place, name in enumerate(types)
    ]
    thresholds = sorted({each.threshold for each in trace.warnings if not math.isnan(each.threshold)})
    if thresholds:
        words = f"threshold {', '.join(f'{each:g}' for each in thresholds)}"
        found.append((legend_line(WARNING_COLOUR, linewidth=1.6, dashes=(6, 3)), words))
    if trace.warnings:
        found.append((_warning_legend_sign("o", "white"), "onset: falls below"))
        found.append((_warning_legend_sign("v", WARNING_COLOUR), "told"))
    return [*found, *legend_of_narrow_stages(stages)]


def _warning_legend_sign(sign: str, fill: str) -> Artist:
    return legend_line(WARNING_COLOUR, linestyle="", marker=sign, markerfacecolor=fill, markersize=9)
