"""Events by stage: a bar for each block of iterations, stacked by stage, since they are parts of a whole."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from muster.report.figures.palette import BLACK, WARNING, pale
from muster.report.figures.scales import tidy
from muster.report.figures.sheet import EDGE, HEIGHT, SMALL, WIDTH, left_of_axes, legend, text_width
from muster.report.figures.staged.artifacts import Counted, Events
from muster.report.figures.staged.ground import (
    FLAG,
    HEAD,
    PLATE,
    WRONG,
    Frame,
    Look,
    flag,
    sheet,
    short,
)
from muster.report.figures.staged.labels import Wrong

MOST_BLOCKS = 12
BOTTOM = 1.05
WIDE = 0.8  # of a bar, where its place is 1
NICE = (1, 2, 5)


class Block(NamedTuple):
    first: int
    last: int
    counts: Mapping[str, float]  # by stage

    @property
    def total(self) -> float:
        return sum(self.counts.values())

    @property
    def name(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def blocks_of(rows: Sequence[Counted]) -> list[Block]:
    """A dozen at most, of 1, 2, 5, 10, ... iterations each; empty ones between others too."""
    if not rows:
        return []
    start, end = rows[0].iteration, rows[-1].iteration
    size = _size(end - start + 1)
    first = (start - 1) // size * size + 1 if start else 0
    found: list[dict[str, float]] = [{} for _ in range((end - first) // size + 1)]
    for row in rows:
        mine = found[(row.iteration - first) // size]
        mine[row.stage] = mine.get(row.stage, 0) + row.number
    return [
        Block(max(start, first + at * size), min(end, first + (at + 1) * size - 1), counts)
        for at, counts in enumerate(found)
    ]


def _size(count: int) -> int:
    scale = 1
    while True:
        for nice in NICE:
            if count <= nice * scale * MOST_BLOCKS:
                return nice * scale
        scale *= 10


def draw(events: Events, looks: dict[str, Look], wrong: Sequence[Wrong], frame: Frame) -> Figure:
    blocks = blocks_of(events.rows) or [Block(0, 0, events.totals)]
    figure = sheet(HEIGHT, f"{_what(events)} by stage", _subtitle(events, blocks), frame)
    top = HEIGHT - HEAD
    room = WIDTH - 2 * EDGE
    keys = _keys(events, looks, wrong)
    top -= legend(figure, keys, EDGE, top, room) + 0.2
    tallest = max(block.total for block in blocks) or 1.0
    left = left_of_axes((0.0, tallest * 1.15))
    bottom = BOTTOM + (FLAG if wrong else 0.0)
    axes = figure.add_axes((left / WIDTH, bottom / HEIGHT, (WIDTH - left - EDGE) / WIDTH, (top - bottom) / HEIGHT))
    _bars(axes, events, blocks, looks)
    _flags(axes, blocks, wrong)
    axes.set_ylim(0, tallest * 1.15)
    axes.set_xlim(-0.6, max(len(blocks), 3) - 0.4)
    axes.set_ylabel("events")
    tidy(axes.yaxis, 5)
    axes.grid(visible=True, axis="y")
    _name_blocks(axes, blocks, bool(events.rows), (WIDTH - left - EDGE) / max(len(blocks), 3))
    if wrong:
        flag(figure, wrong, looks)
    return figure


def _what(events: Events) -> str:
    what = short(events.what) or "events"
    return what[:1].upper() + what[1:]


def _subtitle(events: Events, blocks: Sequence[Block]) -> str:
    total = sum(events.totals.values())
    of = sum(row.of for row in events.rows) if events.rows else math.nan
    among = f" of {of:,.0f} ({100 * total / of:.2f} %)" if of and not math.isnan(of) else ""
    if not events.rows:
        return f"{total:,g} in the whole run{among}; not told by iteration"
    size = max(block.last - block.first + 1 for block in blocks)
    each = f"blocks of {size} iterations" if size > 1 else "by iteration"
    return f"{total:,g}{among}; {each}, from {blocks[0].first} to {blocks[-1].last}"


def _keys(events: Events, looks: dict[str, Look], wrong: Sequence[Wrong]) -> list[tuple[Artist, str]]:
    total = sum(events.totals.values())
    found: list[tuple[Artist, str]] = []
    for stage, count in events.totals.items():
        look = looks[stage]
        share = f" ({100 * count / total:.1f} %)" if total else ""
        found.append((_patch(look), f"{look.name}: {count:,g}{share}"))
    if wrong:
        found.append((Patch(facecolor="white", edgecolor=WARNING, hatch=WRONG), "block with a label that contradicts"))
    return found


def _patch(look: Look) -> Patch:
    return Patch(facecolor=pale(look.tint), edgecolor=look.tint, hatch=look.hatch)


def _bars(axes: Axes, events: Events, blocks: Sequence[Block], looks: dict[str, Look]) -> None:
    base = [0.0] * len(blocks)
    tallest = max(block.total for block in blocks) or 1.0
    for stage in events.totals:
        look, counts = looks[stage], [block.counts.get(stage, 0.0) for block in blocks]
        some = [at for at, count in enumerate(counts) if count]
        axes.bar(some, [counts[at] for at in some], WIDE, bottom=[base[at] for at in some], facecolor=pale(look.tint),
                 edgecolor=look.tint, hatch=look.hatch, linewidth=1.0, label=look.name, zorder=2)  # fmt: skip
        for at, count in enumerate(counts):
            if count >= 0.09 * tallest and count < blocks[at].total:
                axes.text(at, base[at] + count / 2, f"{count:g}", ha="center", va="center_baseline", fontsize=SMALL,
                          bbox=PLATE, zorder=4)  # fmt: skip
        base = [one + other for one, other in zip(base, counts, strict=True)]
    for at, total in enumerate(base):
        axes.text(at, total + 0.01 * tallest, f"{total:g}", ha="center", va="bottom", fontsize=SMALL, color=BLACK)


def _flags(axes: Axes, blocks: Sequence[Block], wrong: Sequence[Wrong]) -> None:
    """Behind a bar that has a row in it whose label contradicts the schedule."""
    places = {at for each in wrong for at, block in enumerate(blocks)
              if block.first <= each.found.row.iteration <= block.last}  # fmt: skip
    for at in sorted(places):
        axes.axvspan(at - 0.5, at + 0.5, facecolor="none", edgecolor=pale(WARNING), hatch=WRONG, linewidth=0, zorder=0)


def _name_blocks(axes: Axes, blocks: Sequence[Block], known: bool, room: float) -> None:
    names = [block.name for block in blocks] if known else ["whole run"]
    widest = max(text_width(name, SMALL) for name in names)
    every = max(1, math.ceil((widest + 0.1) / room))
    axes.set_xticks(range(0, len(blocks), every), names[::every])
    axes.tick_params(axis="x", length=0)
    if known:
        axes.set_xlabel("iterations")
