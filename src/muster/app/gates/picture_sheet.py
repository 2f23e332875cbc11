"""The sheet of a staged training's pictures: as tall as its panels need, with the stages behind them. Inches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from muster.app.facts.drawing.figure_context import drawable_names, shorten_drawn_name
from muster.app.facts.drawing.figure_page import (
    EDGE,
    LINE,
    SMALL,
    TITLE,
    WIDTH,
    ShortTickFormatter,
    add_figure_legend,
    draw_figure_text,
    fitting_font_size,
    is_drawable_text,
    width_of_text,
)
from muster.app.facts.drawing.figure_style import (
    FAINT_COLOUR,
    HATCHES,
    QUIET_COLOUR,
    WARNING_COLOUR,
    pale_colour,
    series_colour,
    series_hatch,
)
from muster.app.gates.stage_bands import StageBand, WrongLabel

LEFT = 1.9  # of all axes: room for the names of decisions
HEAD = 1.0  # title and subtitle
FOOT = 0.4
FLAG_HEIGHT = 0.3  # height of the words about labels
AXIS = 0.6  # below the last panel
GAP = 0.33  # above each panel, for its name
STRIP = 0.27  # height of the stages' names
PLATE = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85}  # behind words on a hatch
DASH_STYLES = ("-", "--", "-.", ":")
WRONG_LABEL_HATCH = "xxx"  # hatch of what contradicts the schedule


class StageLook(NamedTuple):
    name: str  # as drawn
    tint: str
    hatch: str


class LabelMark(NamedTuple):
    low: float
    high: float
    label: str


def join_touching_marks(marks: Iterable[LabelMark]) -> list[LabelMark]:
    """Those that touch and say the same are one."""
    found: list[LabelMark] = []
    for mark in sorted(marks):
        if found and found[-1].label == mark.label and mark.low <= found[-1].high + 1e-9:
            found[-1] = found[-1]._replace(high=max(mark.high, found[-1].high))
        else:
            found.append(mark)
    return found


class StageBackground(NamedTuple):
    """What all panels of a picture have behind them."""

    bands: Sequence[StageBand]
    looks: dict[str, StageLook]  # by type
    marks: Sequence[LabelMark]  # of labels that contradict them
    wrong: Sequence[WrongLabel]
    low: float
    high: float


def looks_of_stages(types: Iterable[str]) -> dict[str, StageLook]:
    """Of all stages that any file names, so that a stage looks the same in every picture."""
    names = drawable_names("stage", types, is_drawable_text, blank="no label")
    many = len(HATCHES)
    return {
        each: StageLook(names[each], series_colour(at), series_hatch(at + at // many))
        if each
        else StageLook(names[each], FAINT_COLOUR, "")
        for at, each in enumerate(names)
    }


class PictureFrame(NamedTuple):
    """What stands around every picture."""

    foot: str  # the run and its files
    version: str
    mark: str = ""  # PARTIAL: the run is not over


def make_picture_sheet(height: float, title: str, subtitle: str, frame: PictureFrame) -> Figure:
    title = f"{title} ({frame.mark})" if frame.mark else title
    figure = Figure(figsize=(WIDTH, height))
    room = WIDTH - 2 * EDGE
    draw_figure_text(figure, EDGE, height - 0.45, title, fitting_font_size(title, TITLE, room))
    draw_figure_text(
        figure, EDGE, height - 0.78, subtitle, fitting_font_size(subtitle, SMALL + 0.5, room), color=QUIET_COLOUR
    )
    mine = f"muster {frame.version}".strip()
    draw_figure_text(
        figure,
        EDGE,
        0.14,
        cut_text_to_room(frame.foot, room - width_of_text(mine, SMALL) - 0.3),
        SMALL,
        color=QUIET_COLOUR,
    )
    draw_figure_text(figure, WIDTH - EDGE, 0.14, mine, SMALL, color=QUIET_COLOUR, ha="right")
    return figure


def begin_panel_sheet(
    panels: float,
    title: str,
    subtitle: str,
    keys: Sequence[tuple[Artist, str]],
    stages: StageBackground,
    frame: PictureFrame,
) -> tuple[Figure, float]:
    """A sheet for panels of this height: with legend, stages and flags; and where the first panel's room begins."""
    room = WIDTH - 2 * EDGE
    lines = _count_legend_lines(len(keys), max(width_of_text(name, SMALL) for _, name in keys), room)
    over = HEAD + lines * LINE + 0.15 + _height_of_strips(stages)
    height = over + panels + AXIS + (FLAG_HEIGHT if stages.wrong else 0.0) + FOOT
    figure = make_picture_sheet(height, title, subtitle, frame)
    at = height - HEAD
    at -= add_figure_legend(figure, keys, EDGE, at, room) + 0.15
    _draw_stage_strips(figure, at, stages)
    if stages.wrong:
        write_wrong_label_note(figure, stages.wrong, stages.looks)
    return figure, height - over


def cut_text_to_room(text: str, room: float) -> str:
    """As much of it as there is room for."""
    while text and width_of_text(text, SMALL) > room:
        text = text[: max(0, len(text) - 5)].rstrip() + "..." if len(text) > 8 else ""
    return text


def add_panel_axes(
    figure: Figure, bottom: float, height: float, stages: StageBackground, *, last: bool = False
) -> Axes:
    """`last`: it has the numbers of the iterations."""
    tall = float(figure.get_size_inches()[1])
    axes = figure.add_axes((LEFT / WIDTH, bottom / tall, (WIDTH - LEFT - EDGE) / WIDTH, height / tall))
    axes.set_xlim(stages.low, stages.high)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=10, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))
    axes.xaxis.set_major_formatter(ShortTickFormatter())
    axes.tick_params(labelbottom=last)
    if last:
        axes.set_xlabel("iteration", labelpad=2)
    _draw_stages_behind(axes, stages)
    return axes


def _draw_stages_behind(axes: Axes, stages: StageBackground) -> None:
    for band in stages.bands:
        tint = pale_colour(pale_colour(pale_colour(stages.looks[band.type].tint)))
        axes.axvspan(band.first - 0.5, band.last + 0.5, facecolor=tint, edgecolor="none", zorder=0)
    for band in stages.bands[1:]:
        axes.axvline(band.first - 0.5, color="white", linewidth=1.5, zorder=0.4)
    for mark in stages.marks:
        axes.axvspan(
            mark.low,
            mark.high,
            facecolor="none",
            edgecolor=pale_colour(WARNING_COLOUR),
            hatch=WRONG_LABEL_HATCH,
            linewidth=0,
            zorder=0.3,
        )


def _draw_stage_strips(figure: Figure, top: float, stages: StageBackground) -> None:
    """The stages by name and, where labels contradict them, the labels."""
    if not stages.bands:
        return
    axes = _add_strip_axes(figure, top - STRIP, stages, "schedule" if stages.wrong else "stage")
    for band in stages.bands:
        _draw_stage_box(axes, band.first - 0.5, band.last + 0.5, stages.looks[band.type])
    if not stages.wrong:
        return
    axes = _add_strip_axes(figure, top - 2 * STRIP - 0.04, stages, "label differs")
    middles = [(mark.low + mark.high) / 2 for mark in stages.marks]
    nearest = min((abs(other - one) for one, other in pairwise(sorted(middles))), default=stages.high - stages.low)
    for middle, mark in zip(middles, stages.marks, strict=True):
        wide = mark.high - mark.low
        axes.add_patch(
            Rectangle((mark.low, 0), wide, 1, facecolor="white", edgecolor=WARNING_COLOUR, hatch=WRONG_LABEL_HATCH)
        )
        half = max(nearest, wide) / 2
        _write_name_in_band(axes, middle - half, middle + half, stages.looks[mark.label].name, WARNING_COLOUR)


def _height_of_strips(stages: StageBackground) -> float:
    return 0.0 if not stages.bands else 2 * STRIP + 0.04 if stages.wrong else STRIP


def write_wrong_label_note(figure: Figure, wrong: Sequence[WrongLabel], looks: dict[str, StageLook]) -> None:
    """What is hatched, in words."""
    draw_figure_text(
        figure,
        EDGE,
        0.14 + FLAG_HEIGHT,
        _describe_wrong_labels(wrong, looks, WIDTH - 2 * EDGE),
        SMALL,
        color=WARNING_COLOUR,
    )


def _add_strip_axes(figure: Figure, bottom: float, stages: StageBackground, name: str) -> Axes:
    tall = float(figure.get_size_inches()[1])
    axes = figure.add_axes((LEFT / WIDTH, bottom / tall, (WIDTH - LEFT - EDGE) / WIDTH, STRIP / tall))
    axes.set(xlim=(stages.low, stages.high), ylim=(0, 1), xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    draw_figure_text(figure, LEFT - 0.1, bottom + STRIP / 2, name, SMALL, ha="right", va="center_baseline")
    return axes


def _draw_stage_box(axes: Axes, low: float, high: float, look: StageLook) -> None:
    axes.add_patch(
        Rectangle(
            (low, 0),
            high - low,
            1,
            facecolor=pale_colour(pale_colour(look.tint)),
            edgecolor=look.tint,
            hatch=look.hatch,
            linewidth=0.8,
        )
    )
    _write_name_in_band(axes, low, high, look.name, "black")


def _write_name_in_band(axes: Axes, low: float, high: float, name: str, tint: str) -> None:
    """Where it fits; a legend has all of them."""
    start, end = axes.get_xlim()
    if not start <= (low + high) / 2 <= end:
        return
    low, high = max(low, start), min(high, end)
    room = (WIDTH - LEFT - EDGE) * (high - low) / (end - start)
    if width_of_text(name, SMALL) + 0.12 <= room:
        axes.text(
            (low + high) / 2, 0.47, name, fontsize=SMALL, ha="center", va="center_baseline", color=tint, bbox=PLATE
        )


def legend_of_narrow_stages(stages: StageBackground) -> list[tuple[Patch, str]]:
    """Legend keys of the stages, for those that have no band wide enough for their name."""
    found: dict[str, tuple[Patch, str]] = {}
    named: set[str] = set()
    wide = (WIDTH - LEFT - EDGE) / (stages.high - stages.low)
    for band in stages.bands:
        look = stages.looks[band.type]
        if width_of_text(look.name, SMALL) + 0.12 <= wide * (min(band.last, stages.high) - band.first + 1):
            named.add(band.type)
        patch = Patch(facecolor=pale_colour(pale_colour(look.tint)), edgecolor=look.tint, hatch=look.hatch)
        found.setdefault(band.type, (patch, f"stage {look.name}" if look.name == band.type else look.name))
    return [key for stage, key in found.items() if stage not in named]


def _describe_wrong_labels(wrong: Sequence[WrongLabel], looks: dict[str, StageLook], room: float) -> str:
    """`iteration 16 is labelled ne, by the schedule main; 32 ...`; as many as there is room for."""
    words = "label contradicts the schedule: "
    for at, each in enumerate(wrong):
        row, stage = each.found
        said = f"{row.iteration} {looks[row.stage].name} (schedule: {looks[stage.type].name})"
        rest = len(wrong) - at - 1
        more = f" and {rest} more" if rest else ""
        longer = f"{words}{'; ' if at else ''}{said}"
        if at and width_of_text(longer + more, SMALL) > room:
            return f"{words} and {len(wrong) - at} more"
        words = longer
    return words


def legend_line(tint: str, **how: Any) -> Line2D:
    """How a line looks, for a legend."""
    return Line2D([], [], color=tint, **how)


def dash_style(place: int) -> str:
    return DASH_STYLES[place % len(DASH_STYLES)]


def marker_positions(values: Sequence[float], every: int, start: int = 0) -> list[int]:
    """Where a line has a mark: now and then, and wherever a value stands alone, which would not be seen without."""
    known = [not math.isnan(value) for value in values]
    beside = [before or after for before, after in zip([False, *known], [*known[1:], False], strict=False)]
    alone = [at for at, here in enumerate(known) if here and not beside[at]]
    return sorted({*range(start, len(values), max(1, every)), *alone})


def _count_legend_lines(count: int, widest: float, room: float) -> int:
    """Lines that `sheet.legend` needs."""
    across = max(1, min(count, int(room / (widest + 0.6))))
    return math.ceil(count / across)


def shorten_drawable_name(name: str, longest: int = 34) -> str:
    return shorten_drawn_name(name, longest) if is_drawable_text(name) else ""
