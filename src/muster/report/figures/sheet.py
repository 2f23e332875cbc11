"""A slide-sized sheet: its style, title, footer and mark, and the files that it is saved as. Lengths in inches."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from typing import Any

import matplotlib
import matplotlib.style  # asks for the folder of settings, as rcdefaults does: once and for all in `loading`
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.patches import Polygon

from muster.domain.wording import counted
from muster.report.figures.palette import FAINT, QUIET, WARNING
from muster.report.figures.scales import longest_label
from muster.report.figures.scene import Scene

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
    "axes.edgecolor": QUIET,
    "axes.axisbelow": True,
    "axes.unicode_minus": False,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
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
def style() -> Iterator[None]:
    """The settings of the machine neither come in nor are changed."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def blank_sheet(scene: Scene, title: str, subtitle: str) -> tuple[Figure, str]:
    """With all that is not the picture itself; and its title in full."""
    figure = Figure(figsize=(WIDTH, HEIGHT))
    room = WIDTH - 2 * EDGE
    if scene.mark:
        title = f"{title} ({scene.mark})"
        room -= _ribbon(figure, scene.facts.mark or scene.mark)
    write(figure, EDGE, HEIGHT - 0.45, title, fitting(title, TITLE, room))
    write(figure, EDGE, HEIGHT - 0.78, subtitle, fitting(subtitle, SMALL + 0.5, room), color=QUIET)
    facts = scene.facts
    place = f"{scene.names.campaign}: " if scene.names.campaign else ""
    write(figure, EDGE, 0.14, f"{place}{facts.k} of {counted(facts.n)} with results", SMALL, color=QUIET)
    write(figure, WIDTH - EDGE, 0.14, f"muster {facts.version}", SMALL, color=QUIET, ha="right")
    return figure, title


def _ribbon(figure: Figure, mark: str) -> float:
    """Across the upper right corner; the width that it takes from the title."""
    thick = 0.42  # along the edge of the sheet
    start = max(0.8, (text_width(mark, SMALL) + 0.35) / math.sqrt(2) - thick / 2)
    corners = [
        (WIDTH - start - thick, HEIGHT),
        (WIDTH - start, HEIGHT),
        (WIDTH, HEIGHT - start),
        (WIDTH, HEIGHT - start - thick),
    ]
    figure.add_artist(Polygon(corners, facecolor=WARNING, edgecolor="none", transform=figure.dpi_scale_trans))
    middle = (start + thick / 2) / 2
    write(figure, WIDTH - middle, HEIGHT - middle, mark, SMALL, color="white", ha="center", va="center", rotation=-45)
    return start + thick - EDGE / 2


def write(figure: Figure, x: float, y: float, text: str, size: float, **how: Any) -> None:
    figure.text(x, y, text, fontsize=size, transform=figure.dpi_scale_trans, **how)


def left_of_axes(bounds: tuple[float, float], most: int = 5) -> float:
    """Where axes with such values begin: beside the labels of their ticks and their name."""
    return EDGE + 0.35 + max(0.3, text_width(longest_label(bounds, most), SMALL))


def axes_at(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    return figure.add_axes((left / WIDTH, bottom / HEIGHT, width / WIDTH, height / HEIGHT))


def files(picture: Picture, kinds: Sequence[str] = KINDS) -> dict[str, bytes]:
    """No dates in them: the same picture is the same bytes."""
    metadata: dict[str, dict[str, str | None]] = {
        "png": {"Description": picture.description, "Software": "muster"},
        "svg": {"Description": picture.description, "Creator": "muster", "Date": None},
        "pdf": {"Subject": picture.description, "Creator": "muster", "CreationDate": None},
    }
    return {kind: _saved(picture, kind, metadata[kind]) for kind in kinds}


def _saved(picture: Picture, kind: str, metadata: dict[str, str | None]) -> bytes:
    into = BytesIO()
    more: dict[str, Any] = {"pil_kwargs": {"compress_level": 3}} if kind == "png" else {}
    picture.figure.savefig(into, format=kind, metadata={"Title": picture.title, **metadata}, **more)
    return into.getvalue()


@cache
def _characters() -> frozenset[int]:
    return frozenset(get_font(findfont(FONT)).get_charmap())


def drawable(text: str) -> bool:
    """By the bundled font, letter after letter from left to right."""
    return text.isprintable() and all(ord(each) in _characters() and _plain(each) for each in text)


def _plain(character: str) -> bool:
    return not unicodedata.combining(character) and unicodedata.bidirectional(character) not in ("R", "AL", "AN")


@cache
def _renderer() -> RendererAgg:
    return RendererAgg(8, 8, DPI)  # type: ignore[no-untyped-call]


@cache
def text_width(text: str, size: float) -> float:
    font = FontProperties(family=FONT, size=size)
    width, _, _ = _renderer().get_text_width_height_descent(text, font, False)  # type: ignore[no-untyped-call]
    return float(width) / DPI


def fitting(text: str, size: float, room: float) -> float:
    """The font size at which it fits, or the smallest that can be read."""
    return max(SMALL, min(size, size * room / max(0.01, text_width(text, size))))


def legend(figure: Figure, keys: Sequence[tuple[Artist, str]], left: float, top: float, room: float) -> float:
    """Names beside their looks, in as many lines as they need; the height of these."""
    wide = max(text_width(name, SMALL) for _, name in keys) + 0.6
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


def explain_dagger(figure: Figure, scene: Scene, configs: Iterable[str]) -> None:
    plan = scene.facts.plan
    if plan and plan.limit and any(scene.infeasible(config) for config in configs):
        words = f"† infeasible: mean {scene.names.column(plan.limit)} beyond its limit (one-sided 95 % bound)"
        write(figure, EDGE, 0.36, words, SMALL, color=WARNING)
