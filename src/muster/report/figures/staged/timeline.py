"""A gate over the iterations: what it saw of each key, the bounds that applied, what it decided, and the phase."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from muster.report.figures.names import shown
from muster.report.figures.palette import BLACK, GREEN, PURPLE, QUIET, SKY, WARNING
from muster.report.figures.scales import padded, tidy
from muster.report.figures.sheet import EDGE, SMALL, WIDTH, drawable, text_width, write
from muster.report.figures.staged import bounds as bounds_
from muster.report.figures.staged.artifacts import GateTrace, Seen
from muster.report.figures.staged.ground import (
    GAP,
    LEFT,
    WRONG,
    Frame,
    Stages,
    begun,
    key_of,
    marked,
    panel,
    short,
    unnamed,
)
from muster.report.figures.staged.labels import edges

TALL = 1.05  # of a panel of values
LANE = 0.23
PHASES = 0.55
MOST_KEYS = 6  # on one sheet
MANY = 20  # changes of phase: a line for each would hide the values
DENSE = 200  # rows from which values have no marks
SIDES = ("success", "failure")


class Mark(NamedTuple):
    sign: str
    tint: str
    filled: bool = True


STATES = {
    "advance": Mark("^", GREEN),
    "hold": Mark("o", QUIET),
    "failure_hold": Mark("X", WARNING),
    "fall_back": Mark("v", PURPLE),
    "frozen": Mark("s", SKY, filled=False),
}
SIDE_LOOKS: Mapping[str, tuple[str, str, str]] = {  # colour, style of the bound, marker of what a window made
    "success": (GREEN, "--", "D"),
    "failure": (WARNING, "-.", "P"),
}


class Page(NamedTuple):
    keys: tuple[str, ...]
    part: str  # for the title
    ending: str  # for the name


def pages(gate: GateTrace) -> Iterator[Page]:
    keys = keys_of(gate.rows)
    count = max(1, math.ceil(len(keys) / MOST_KEYS))
    for at in range(count):
        part, ending = (f", part {at + 1} of {count}", f"_{at + 1}" if at else "") if count > 1 else ("", "")
        yield Page(tuple(keys[at * MOST_KEYS : (at + 1) * MOST_KEYS]), part, ending)


def keys_of(rows: Sequence[Seen]) -> list[str]:
    """Those that are judged, success first; where no row says so, whatever has values."""
    judged = {check.key: None for side in SIDES for row in rows for check in row.checks if check.side == side}
    if judged:
        return list(judged)
    found = {key: None for row in rows for key, value in row.values.items() if not math.isnan(value)}
    return list(found)[:MOST_KEYS]


def draw(gate: GateTrace, page: Page, stages: Stages, frame: Frame) -> Figure:
    names = shown("key", page.keys, drawable)
    keys = _legend_keys(gate, page.keys, stages)
    states = _lanes(gate)
    lanes = len(states) * LANE
    tall = len(page.keys) * (GAP + TALL) + GAP + lanes + GAP + PHASES
    figure, at = begun(tall, _title(gate, page), _subtitle(gate), keys, stages, frame)
    for key in page.keys:
        at -= GAP + TALL
        axes = panel(figure, at, TALL, stages)
        _title_of(figure, at + TALL, names[key], bounds_.described(gate.rows, key, stages.looks))
        _values(axes, gate.rows, key)
    at -= GAP + lanes
    _decisions(panel(figure, at, lanes, stages), gate, states)
    _title_of(figure, at + lanes, "decisions", "")
    at -= GAP + PHASES
    _phase(panel(figure, at, PHASES, stages, last=True), gate.rows)
    _title_of(figure, at + PHASES, "phase", "")
    return figure


def _title(gate: GateTrace, page: Page) -> str:
    name = short(gate.name)
    return f"Gate timeline{f': {name}' if name and name != 'gate' else ''}{page.part}"


def _subtitle(gate: GateTrace) -> str:
    rows = gate.rows
    first = next((row.iteration for row in rows if row.state == "advance"), None)
    opened, back = _count(gate, "advance"), _count(gate, "fall_back")
    said = f"{gate.total:,} observations, iterations {rows[0].iteration} to {rows[-1].iteration}"
    if gate.total == 1:
        said = f"1 observation, iteration {rows[0].iteration}"
    if gate.counts is None:
        return f"{said}; {len(rows):,} of them are drawn"
    if first is None:
        return f"{said}: the gate never opened"
    fell = f", fell back {_times(back)}" if back else ""
    return f"{said}: it opened {_times(opened)}, first at {first}{fell}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _title_of(figure: Figure, top: float, name: str, more: str) -> None:
    write(figure, LEFT, top + 0.07, name, SMALL)
    room = WIDTH - LEFT - EDGE - text_width(name, SMALL) - 0.3
    if more and text_width(more, SMALL) <= room:
        write(figure, WIDTH - EDGE, top + 0.07, more, SMALL, color=QUIET, ha="right")
    elif more:
        write(figure, WIDTH - EDGE, top + 0.07, "bounds differ by stage", SMALL, color=QUIET, ha="right")


def _values(axes: Axes, rows: Sequence[Seen], key: str) -> None:
    at = [row.iteration for row in rows]
    values = [row.values.get(key, math.nan) for row in rows]
    size, dense = _size(axes, at), len(rows) > DENSE
    axes.plot(at, values, color=BLACK, linewidth=1.0 if dense else 1.5, marker="o", markersize=0.55 * size, zorder=4,
              label="value", markevery=marked(values, len(rows) if dense else 1))  # fmt: skip
    drawn = [value for value in values if not math.isnan(value)]
    for line in bounds_.bounds_of(rows, key):
        tint, style, _ = SIDE_LOOKS.get(line.side, (QUIET, ":", "o"))
        xs, ys = bounds_.steps(edges(at), line.thresholds)
        axes.plot(xs, ys, color=tint, linestyle=style, linewidth=1.8, zorder=3, label=f"{line.side} {line.bound}")
        drawn += [each for each in line.thresholds if not math.isnan(each)]
    for side, judged in bounds_.windowed(rows, key):
        tint, _, sign = SIDE_LOOKS.get(side, (QUIET, ":", "o"))
        axes.plot(at, judged, color=tint, linewidth=1.1, marker=sign, markersize=0.5 * size, markerfacecolor="white",
                  zorder=5, label=f"{side} window", markevery=marked(judged, len(rows) if dense else 1))  # fmt: skip
        drawn += [each for each in judged if not math.isnan(each)]
    failed = [(row.iteration, each.value) for row in rows for each in row.checks
              if each.key == key and each.side == "failure" and each.holds and not math.isnan(each.value)]  # fmt: skip
    if failed:
        axes.plot(*zip(*failed, strict=True), linestyle="", marker="X", color=WARNING, markersize=size,
                  markeredgecolor="white", markeredgewidth=0.0 if dense else 1.0, zorder=6, label="fails")  # fmt: skip
    axes.set_ylim(*padded(drawn, 0.12))
    tidy(axes.yaxis, 3)
    _moves(axes, rows)
    if not any(not math.isnan(value) for value in values):
        axes.text(0.5, 0.5, "no number in any row", transform=axes.transAxes, ha="center", va="center", color=QUIET)


def _moves(axes: Axes, rows: Sequence[Seen]) -> None:
    """Where the phase changes: a line through all panels."""
    if _moved(rows) > MANY:
        return
    for row in rows:
        if row.state in ("advance", "fall_back"):
            axes.axvline(row.iteration, color=STATES[row.state].tint, linewidth=1.2,
                         linestyle="-" if row.state == "advance" else ":", zorder=2)  # fmt: skip


def _moved(rows: Sequence[Seen]) -> int:
    return sum(row.state in ("advance", "fall_back") for row in rows)


def _lanes(gate: GateTrace) -> list[str]:
    """All that a gate can decide, also what it never did; and what else stands there."""
    others = {row.state: None for row in gate.rows if row.state not in STATES}
    return [*STATES, *(["other"] if others else [])]


def _decisions(axes: Axes, gate: GateTrace, states: Sequence[str]) -> None:
    size = _size(axes, [row.iteration for row in gate.rows])
    for lane, state in enumerate(states):
        mine = [row.iteration for row in gate.rows if (row.state if row.state in STATES else "other") == state]
        mark = STATES.get(state, Mark("*", BLACK))
        axes.axhline(lane, color="white", linewidth=0.8, zorder=1)
        axes.plot(mine, [lane] * len(mine), linestyle="", marker=mark.sign, color=mark.tint, markersize=size, zorder=4,
                  markerfacecolor=mark.tint if mark.filled else "white", label=state)  # fmt: skip
    axes.set_ylim(len(states) - 0.4, -0.6)
    names = [f"{state} ({_short(_count(gate, state))})" if gate.counts is not None else state for state in states]
    axes.set_yticks(range(len(states)), names)
    axes.tick_params(axis="y", length=0)
    _moves(axes, gate.rows)


def _count(gate: GateTrace, state: str) -> int:
    counts = gate.counts or {}
    return counts.get(state, 0) if state in STATES else sum(n for name, n in counts.items() if name not in STATES)


def _phase(axes: Axes, rows: Sequence[Seen]) -> None:
    """From the decision on, not half way before it: until then the run had the phase before."""
    at, phases = [row.iteration for row in rows], [row.phase for row in rows]
    ends = [*map(float, at[1:]), *(high for _, high in edges(at)[-1:])]
    axes.plot(
        *bounds_.steps(list(zip(at, ends, strict=True)), phases), color=BLACK, linewidth=2.0, zorder=4, label="phase"
    )
    known = [phase for phase in phases if not math.isnan(phase)] or [0.0]
    axes.set_ylim(min(known) - 0.4, max(*known, min(known) + 1) + 0.4)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=2, integer=True, min_n_ticks=1))
    _moves(axes, rows)


def _short(count: int) -> str:
    return str(count) if count < 1000 else f"{count / 1000:.1f}k" if count < 10_000 else f"{count // 1000}k"


def _size(axes: Axes, at: Sequence[int]) -> float:
    """Of a mark, in points: as the rows leave room for it."""
    low, high = axes.get_xlim()
    between = (at[-1] - at[0]) / (len(at) - 1) if len(at) > 1 else high - low
    return min(9.0, max(4.5, 0.85 * 72 * (WIDTH - LEFT - EDGE) * between / (high - low)))


def _legend_keys(gate: GateTrace, keys: Sequence[str], stages: Stages) -> list[tuple[Artist, str]]:
    found: list[tuple[Artist, str]] = [(key_of(BLACK, marker="o", markersize=5), "value")]
    sides = {side for key in keys for side in (line.side for line in bounds_.bounds_of(gate.rows, key))}
    windows = {side for key in keys for side, _ in bounds_.windowed(gate.rows, key)}
    for side in SIDES:
        tint, style, sign = SIDE_LOOKS[side]
        if side in windows:
            look = key_of(tint, linewidth=1.1, marker=sign, markersize=5, markerfacecolor="white")
            found.append((look, f"windowed value ({side})"))
        if side in sides:
            found.append((key_of(tint, linestyle=style, linewidth=1.8), f"{side} bound"))
    if any(each.side == "failure" and each.holds and each.key in keys for row in gate.rows for each in row.checks):
        found.append((key_of(WARNING, linestyle="", marker="X", markersize=8), "failure criterion holds"))
    for state, name, style in (("advance", "advance", "-"), ("fall_back", "fall back", ":")):
        if any(row.state == state for row in gate.rows) and _moved(gate.rows) <= MANY:
            found.append((key_of(STATES[state].tint, linestyle=style, linewidth=1.2), name))
    if stages.wrong:
        found.append((Patch(facecolor="white", edgecolor=WARNING, hatch=WRONG), "label contradicts schedule"))
    return [*found, *unnamed(stages)]
