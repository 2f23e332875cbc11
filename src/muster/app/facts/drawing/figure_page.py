"""A slide-sized page for one figure: axes, tick labels, title, footer and mark, and the files that it is saved as.
Lengths in inches.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from itertools import pairwise
from typing import Any

import matplotlib.style
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.patches import Polygon
from matplotlib.ticker import Formatter, MaxNLocator

from muster.app.facts.drawing.figure_context import FigureContext
from muster.app.facts.drawing.figure_style import FAINT_COLOUR, QUIET_COLOUR, WARNING_COLOUR
from muster.text.phrases import phrase

AxisBounds = tuple[tuple[float, float], tuple[float, float]]  # of the two axes
_UNITS = ((1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))  # from here on, unit, letter
_ROUNDING_SPAN = 1e-9  # of the size of the values: a span below it is rounding


class ShortTickFormatter(Formatter):
    """250k for 250000; as many decimals as the ticks need to differ."""

    def __call__(self, x: float, pos: int | None = None) -> str:  # noqa: ARG002
        return format_axis_number(x)

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        return format_tick_labels(values)


def format_tick_labels(ticks: Sequence[float]) -> list[str]:
    known = sorted(set(ticks))
    largest = max((abs(tick) for tick in known), default=0.0)
    step = min((b - a for a, b in pairwise(known)), default=largest)
    if largest < 1e-3 or largest >= 1e15:
        digits = 2 + math.ceil(math.log10(largest / step)) if step else 1
        return [f"{tick:.{digits}g}" if abs(tick) > step / 100 else "0" for tick in ticks]
    unit, letter = _unit_of_size(largest)
    if step < unit / 1000:  # the unit would hide the difference
        unit, letter = 1.0, ""
    decimals = next((n for n in range(9) if all(abs(round(t / unit, n) * unit - t) < step / 100 for t in known)), 9)
    return [f"{tick / unit:.{decimals}f}{letter}" if abs(tick) > step / 100 else "0" for tick in ticks]


def format_axis_number(value: float, digits: int = 6) -> str:
    """A value as it was declared: 25, 1.625, 2.5M."""
    unit, letter = _unit_of_size(abs(value)) if abs(value) < 1e15 else (1.0, "")
    return f"{value / unit:.{digits}g}{letter}"


def _unit_of_size(size: float) -> tuple[float, str]:
    return next(((unit, letter) for least, unit, letter in _UNITS if size >= least), (1.0, ""))


def format_measured_number(value: float) -> str:
    """A measured value: three digits that count, so that 17.0 stands below 9.90."""
    if not value:
        return "0"
    if not 1e-3 <= abs(value) < 1e15:
        return f"{value:.3g}"
    if abs(value) < 1:
        return f"{value:#.3g}"
    unit, letter = _unit_of_size(abs(value))
    size = abs(value / unit)
    decimals = 2 if size < 9.995 else 1 if size < 99.95 else 0
    return f"{value / unit:.{decimals}f}{letter}"


def padded_limits(values: Iterable[float], share: float = 0.06) -> tuple[float, float]:
    """Limits with some air; also where all values are the same."""
    known = list(values)
    low, high = min(known, default=0.0), max(known, default=1.0)
    size = max(abs(low), abs(high))
    if high - low <= _ROUNDING_SPAN * size:
        return low - (0.1 * size or 1.0), high + (0.1 * size or 1.0)
    air = share * (high - low)
    return low - air, high + air


def tidy_axis(axis: Axis, most: int = 5) -> None:
    axis.set_major_locator(_tick_locator(most))
    axis.set_major_formatter(ShortTickFormatter())


def longest_tick_label(bounds: tuple[float, float], most: int = 5) -> str:
    """Of the ticks that `tidy` makes there."""
    low, high = bounds
    return max(
        format_tick_labels([tick for tick in _tick_locator(most).tick_values(low, high) if low <= tick <= high]),
        key=len,
    )


def _tick_locator(most: int) -> MaxNLocator:
    return MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10])


WIDTH, HEIGHT, DPI = 10.0, 5.6, 160
EDGE = 0.3
TOP = 4.6  # what lies above belongs to title and subtitle
FOOT = 0.5  # what lies below to the footer
TITLE, LABEL, SMALL = 18.0, 14.0, 12.0  # points
LINE = 0.22  # from one line of small text to the next
KINDS = ("png", "svg", "pdf")
FONT = "DejaVu Sans"  # comes with matplotlib: the same on every machine

STYLE: dict[Any, Any] = {
    "figure.dpi": DPI,
    "savefig.dpi": DPI,
    "font.family": FONT,
    "font.size": SMALL,
    "axes.labelsize": LABEL,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": QUIET_COLOUR,
    "axes.axisbelow": True,
    "axes.unicode_minus": False,
    "grid.color": FAINT_COLOUR,
    "grid.linewidth": 0.6,
    "xtick.color": QUIET_COLOUR,
    "ytick.color": QUIET_COLOUR,
    "xtick.labelcolor": "black",
    "ytick.labelcolor": "black",
    "text.parse_math": False,  # a name with dollar signs is a name
    "hatch.linewidth": 0.8,
    "svg.fonttype": "path",  # looks the same where the font is not installed
    "svg.hashsalt": "muster",
    "pdf.fonttype": 3,  # cutting a TrueType font down takes longer than drawing all pictures
}


@dataclass(frozen=True, slots=True)
class Picture:
    """Drawn, not yet saved."""

    name: str
    title: str
    description: str
    caption: str
    cells: tuple[str, ...]
    figure: Figure


@contextmanager
def apply_figure_style() -> Iterator[None]:
    """The settings of the machine neither come in nor are changed."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def make_blank_page(scene: FigureContext, title: str, subtitle: str) -> tuple[Figure, str]:
    """With all that is not the picture itself; and its title in full."""
    figure = Figure(figsize=(WIDTH, HEIGHT))
    room = WIDTH - 2 * EDGE
    if scene.mark:
        title = f"{title} ({scene.mark})"
        room -= _draw_ribbon(figure, scene.facts.mark or scene.mark)
    draw_figure_text(figure, EDGE, HEIGHT - 0.45, title, fitting_font_size(title, TITLE, room))
    draw_figure_text(
        figure, EDGE, HEIGHT - 0.78, subtitle, fitting_font_size(subtitle, SMALL + 0.5, room), color=QUIET_COLOUR
    )
    facts = scene.facts
    place = f"{scene.names.campaign}: " if scene.names.campaign else ""
    draw_figure_text(
        figure,
        EDGE,
        0.14,
        f"{place}{facts.k} of {phrase('count.cell', n=facts.n)} with results",
        SMALL,
        color=QUIET_COLOUR,
    )
    draw_figure_text(figure, WIDTH - EDGE, 0.14, f"muster {facts.version}", SMALL, color=QUIET_COLOUR, ha="right")
    return figure, title


def _draw_ribbon(figure: Figure, mark: str) -> float:
    """Across the upper right corner; the width that it takes from the title."""
    thick = 0.42  # along the edge of the sheet
    start = max(0.8, (width_of_text(mark, SMALL) + 0.35) / math.sqrt(2) - thick / 2)
    corners = [
        (WIDTH - start - thick, HEIGHT),
        (WIDTH - start, HEIGHT),
        (WIDTH, HEIGHT - start),
        (WIDTH, HEIGHT - start - thick),
    ]
    figure.add_artist(Polygon(corners, facecolor=WARNING_COLOUR, edgecolor="none", transform=figure.dpi_scale_trans))
    middle = (start + thick / 2) / 2
    draw_figure_text(
        figure, WIDTH - middle, HEIGHT - middle, mark, SMALL, color="white", ha="center", va="center", rotation=-45
    )
    return start + thick - EDGE / 2


def draw_figure_text(figure: Figure, x: float, y: float, text: str, size: float, **how: Any) -> None:
    figure.text(x, y, text, fontsize=size, transform=figure.dpi_scale_trans, **how)


def left_edge_of_axes(bounds: tuple[float, float], most: int = 5) -> float:
    """Where axes with such values begin: beside the labels of their ticks and their name."""
    return EDGE + 0.35 + max(0.3, width_of_text(longest_tick_label(bounds, most), SMALL))


def add_axes_at(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    return figure.add_axes((left / WIDTH, bottom / HEIGHT, width / WIDTH, height / HEIGHT))


def save_figure_files(picture: Picture, kinds: Sequence[str] = KINDS) -> dict[str, bytes]:
    """No dates in them: the same picture is the same bytes."""
    metadata: dict[str, dict[str, str | None]] = {
        "png": {"Description": picture.description, "Software": "muster"},
        "svg": {"Description": picture.description, "Creator": "muster", "Date": None},
        "pdf": {"Subject": picture.description, "Creator": "muster", "CreationDate": None},
    }
    return {kind: _save_figure(picture, kind, metadata[kind]) for kind in kinds}


def _save_figure(picture: Picture, kind: str, metadata: dict[str, str | None]) -> bytes:
    into = BytesIO()
    more: dict[str, Any] = {"pil_kwargs": {"compress_level": 3}} if kind == "png" else {}
    picture.figure.savefig(into, format=kind, metadata={"Title": picture.title, **metadata}, **more)
    return into.getvalue()


@cache
def _font_characters() -> frozenset[int]:
    return frozenset(get_font(findfont(FONT)).get_charmap())


def is_drawable_text(text: str) -> bool:
    """By the bundled font, letter after letter from left to right."""
    return text.isprintable() and all(ord(each) in _font_characters() and _is_plain_character(each) for each in text)


def _is_plain_character(character: str) -> bool:
    return not unicodedata.combining(character) and unicodedata.bidirectional(character) not in ("R", "AL", "AN")


@cache
def _text_renderer() -> RendererAgg:
    return RendererAgg(8, 8, DPI)  # type: ignore[no-untyped-call]


@cache
def width_of_text(text: str, size: float) -> float:
    font = FontProperties(family=FONT, size=size)
    width, _, _ = _text_renderer().get_text_width_height_descent(text, font, False)  # type: ignore[no-untyped-call]
    return float(width) / DPI


def fitting_font_size(text: str, size: float, room: float) -> float:
    """The font size at which it fits, or the smallest that can be read."""
    return max(SMALL, min(size, size * room / max(0.01, width_of_text(text, size))))


def add_figure_legend(
    figure: Figure, keys: Sequence[tuple[Artist, str]], left: float, top: float, room: float
) -> float:
    """Names beside their looks, in as many lines as they need; the height of these."""
    wide = max(width_of_text(name, SMALL) for _, name in keys) + 0.6
    across = max(1, min(len(keys), int(room / wide)))
    across = math.ceil(len(keys) / math.ceil(len(keys) / across))  # lines of about the same length
    figure.legend(
        [handle for handle, _ in keys],
        [f" {name}" for _, name in keys],  # one that begins with an underscore would be left out
        loc="upper left",
        bbox_to_anchor=(left, top),
        bbox_transform=figure.dpi_scale_trans,
        ncols=across,
        frameon=False,
        fontsize=SMALL,
        borderaxespad=0.0,
        borderpad=0.0,
        labelspacing=0.25,
        columnspacing=1.3,
        handlelength=1.6,
        handletextpad=0.2,
    )
    return LINE * math.ceil(len(keys) / across)


def write_dagger_note(figure: Figure, scene: FigureContext, configs: Iterable[str]) -> None:
    plan = scene.facts.plan
    if plan and plan.limit and any(scene.infeasible(config) for config in configs):
        words = f"† infeasible: mean {scene.names.column(plan.limit)} beyond its limit (one-sided 95 % bound)"
        draw_figure_text(figure, EDGE, 0.36, words, SMALL, color=WARNING_COLOUR)
