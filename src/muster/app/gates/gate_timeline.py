"""A gate over the iterations, as numbers and as a picture: what it saw of each key, the bounds that applied, what it
decided, and the phase.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from muster.app.facts.drawing.figure_context import drawable_names
from muster.app.facts.drawing.figure_page import (
    EDGE,
    SMALL,
    WIDTH,
    draw_figure_text,
    is_drawable_text,
    padded_limits,
    tidy_axis,
    width_of_text,
)
from muster.app.facts.drawing.figure_style import BLACK, GREEN, PURPLE, QUIET_COLOUR, SKY, WARNING_COLOUR
from muster.app.gates.picture_sheet import (
    GAP,
    LEFT,
    WRONG_LABEL_HATCH,
    PictureFrame,
    StageBackground,
    add_panel_axes,
    begin_panel_sheet,
    legend_line,
    legend_of_narrow_stages,
    marker_positions,
    shorten_drawable_name,
)
from muster.app.gates.stage_bands import row_edges
from muster.app.gates.staged_artifacts import GateRow, GateTrace, JudgedCriterion

if TYPE_CHECKING:
    from muster.app.gates.picture_sheet import StageLook

RELATIONS = {"min": "≥", "max": "≤", "above": ">", "below": "<"}
LOWER_BOUNDS = ("min", "above")


class ThresholdLine(NamedTuple):
    side: str
    bound: str  # lower | upper: a stage may say `above` where another says `min`
    thresholds: list[float]  # row by row; NaN: it did not apply


def _side_and_direction(check: JudgedCriterion) -> tuple[str, str]:
    return check.side, "lower" if check.bound in LOWER_BOUNDS else "upper"


def threshold_lines(rows: Sequence[GateRow], key: str) -> list[ThresholdLine]:
    found: dict[tuple[str, str], list[float]] = {}
    for at, row in enumerate(rows):
        for check in row.checks:
            if check.key == key:
                found.setdefault(_side_and_direction(check), [math.nan] * len(rows))[at] = check.threshold
    return [ThresholdLine(*place, thresholds) for place, thresholds in found.items()]


def windowed_values(rows: Sequence[GateRow], key: str) -> Iterator[tuple[str, list[float]]]:
    """By side what was judged, where a window made something else of it than the value itself."""
    for side in ("success", "failure"):
        checks = [[each for each in row.checks if each.key == key and each.side == side] for row in rows]
        if any(each.window != "last" for row in checks for each in row):
            yield side, [row[0].value if row else math.nan for row in checks]


def step_line(spans: Sequence[tuple[float, float]], values: Sequence[float]) -> tuple[list[float], list[float]]:
    """A line that jumps between rows; a gap where there is no value. What stays the same is one piece."""
    xs: list[float] = []
    ys: list[float] = []
    for (low, high), value in zip(spans, values, strict=True):
        if len(ys) > 1 and ys[-1] == value and ys[-2] == value:
            xs[-1] = high
            continue
        xs += [low, high]
        ys += [value, value]
    return xs, ys


def describe_key_criteria(rows: Sequence[GateRow], key: str, looks: Mapping[str, StageLook]) -> str:
    """`success: median 4 ≥ 70; failure: < 95`, and by stage where stages differ."""
    said = []
    for side in ("success", "failure"):
        by_words: dict[str, dict[str, None]] = {}
        for row in rows:
            mine = [each for each in row.checks if each.key == key and each.side == side]
            if mine:
                by_words.setdefault(" and ".join(map(_describe_judged_criterion, mine)), {})[row.stage] = None
        if len(by_words) == 1:
            said.append(f"{side}: {next(iter(by_words))}")
        elif by_words:
            each = (
                f"{words} ({'/'.join(_stage_look_name(looks, stage) for stage in stages)})"
                for words, stages in by_words.items()
            )
            said.append(f"{side}: {', '.join(each)}")
    return "; ".join(said)


def _describe_judged_criterion(check: JudgedCriterion) -> str:
    window = "" if check.window == "last" else f"{check.window} "
    return f"{window}{RELATIONS.get(check.bound, check.bound)} {check.threshold:g}"


def _stage_look_name(looks: Mapping[str, StageLook], stage: str) -> str:
    return looks[stage].name if stage in looks else stage


VALUE_PANEL_HEIGHT = 1.05  # of a panel of values
LANE_HEIGHT = 0.23
PHASE_PANEL_HEIGHT = 0.55
MOST_KEYS = 6  # on one sheet
MANY_PHASE_CHANGES = 20  # changes of phase: a line for each would hide the values
DENSE_ROWS = 200  # rows from which values have no marks
SIDES = ("success", "failure")


class StateMark(NamedTuple):
    sign: str
    tint: str
    filled: bool = True


STATE_MARKS = {
    "advance": StateMark("^", GREEN),
    "hold": StateMark("o", QUIET_COLOUR),
    "failure_hold": StateMark("X", WARNING_COLOUR),
    "fall_back": StateMark("v", PURPLE),
    "frozen": StateMark("s", SKY, filled=False),
}
SIDE_LOOKS: Mapping[str, tuple[str, str, str]] = {  # colour, style of the bound, marker of what a window made
    "success": (GREEN, "--", "D"),
    "failure": (WARNING_COLOUR, "-.", "P"),
}


class TimelinePage(NamedTuple):
    keys: tuple[str, ...]
    part: str  # for the title
    ending: str  # for the name


def timeline_pages(gate: GateTrace) -> Iterator[TimelinePage]:
    keys = keys_of_gate_rows(gate.rows)
    count = max(1, math.ceil(len(keys) / MOST_KEYS))
    for at in range(count):
        part, ending = (f", part {at + 1} of {count}", f"_{at + 1}" if at else "") if count > 1 else ("", "")
        yield TimelinePage(tuple(keys[at * MOST_KEYS : (at + 1) * MOST_KEYS]), part, ending)


def keys_of_gate_rows(rows: Sequence[GateRow]) -> list[str]:
    """Those that are judged, success first; where no row says so, whatever has values."""
    judged = {check.key: None for side in SIDES for row in rows for check in row.checks if check.side == side}
    if judged:
        return list(judged)
    found = {key: None for row in rows for key, value in row.values.items() if not math.isnan(value)}
    return list(found)[:MOST_KEYS]


def draw_gate_timeline(gate: GateTrace, page: TimelinePage, stages: StageBackground, frame: PictureFrame) -> Figure:
    names = drawable_names("key", page.keys, is_drawable_text)
    keys = _timeline_legend(gate, page.keys, stages)
    states = _decision_lanes(gate)
    lanes = len(states) * LANE_HEIGHT
    tall = len(page.keys) * (GAP + VALUE_PANEL_HEIGHT) + GAP + lanes + GAP + PHASE_PANEL_HEIGHT
    figure, at = begin_panel_sheet(tall, _timeline_title(gate, page), _timeline_subtitle(gate), keys, stages, frame)
    for key in page.keys:
        at -= GAP + VALUE_PANEL_HEIGHT
        axes = add_panel_axes(figure, at, VALUE_PANEL_HEIGHT, stages)
        _write_panel_title(
            figure, at + VALUE_PANEL_HEIGHT, names[key], describe_key_criteria(gate.rows, key, stages.looks)
        )
        _plot_key_values(axes, gate.rows, key)
    at -= GAP + lanes
    _plot_decisions(add_panel_axes(figure, at, lanes, stages), gate, states)
    _write_panel_title(figure, at + lanes, "decisions", "")
    at -= GAP + PHASE_PANEL_HEIGHT
    _plot_phase(add_panel_axes(figure, at, PHASE_PANEL_HEIGHT, stages, last=True), gate.rows)
    _write_panel_title(figure, at + PHASE_PANEL_HEIGHT, "phase", "")
    return figure


def _timeline_title(gate: GateTrace, page: TimelinePage) -> str:
    name = shorten_drawable_name(gate.name)
    return f"Gate timeline{f': {name}' if name and name != 'gate' else ''}{page.part}"


def _timeline_subtitle(gate: GateTrace) -> str:
    rows = gate.rows
    first = next((row.iteration for row in rows if row.state == "advance"), None)
    opened, back = _count_decisions(gate, "advance"), _count_decisions(gate, "fall_back")
    said = f"{gate.total:,} observations, iterations {rows[0].iteration} to {rows[-1].iteration}"
    if gate.total == 1:
        said = f"1 observation, iteration {rows[0].iteration}"
    if gate.counts is None:
        return f"{said}; {len(rows):,} of them are drawn"
    if first is None:
        return f"{said}: the gate never opened"
    fell = f", fell back {_format_times(back)}" if back else ""
    return f"{said}: it opened {_format_times(opened)}, first at {first}{fell}"


def _format_times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _write_panel_title(figure: Figure, top: float, name: str, more: str) -> None:
    draw_figure_text(figure, LEFT, top + 0.07, name, SMALL)
    room = WIDTH - LEFT - EDGE - width_of_text(name, SMALL) - 0.3
    if more and width_of_text(more, SMALL) <= room:
        draw_figure_text(figure, WIDTH - EDGE, top + 0.07, more, SMALL, color=QUIET_COLOUR, ha="right")
    elif more:
        draw_figure_text(
            figure, WIDTH - EDGE, top + 0.07, "bounds differ by stage", SMALL, color=QUIET_COLOUR, ha="right"
        )


def _plot_key_values(axes: Axes, rows: Sequence[GateRow], key: str) -> None:
    at = [row.iteration for row in rows]
    values = [row.values.get(key, math.nan) for row in rows]
    size, dense = _marker_size(axes, at), len(rows) > DENSE_ROWS
    axes.plot(
        at,
        values,
        color=BLACK,
        linewidth=1.0 if dense else 1.5,
        marker="o",
        markersize=0.55 * size,
        zorder=4,
        label="value",
        markevery=marker_positions(values, len(rows) if dense else 1),
    )
    drawn = [value for value in values if not math.isnan(value)]
    for line in threshold_lines(rows, key):
        tint, style, _ = SIDE_LOOKS.get(line.side, (QUIET_COLOUR, ":", "o"))
        xs, ys = step_line(row_edges(at), line.thresholds)
        axes.plot(xs, ys, color=tint, linestyle=style, linewidth=1.8, zorder=3, label=f"{line.side} {line.bound}")
        drawn += [each for each in line.thresholds if not math.isnan(each)]
    for side, judged in windowed_values(rows, key):
        tint, _, sign = SIDE_LOOKS.get(side, (QUIET_COLOUR, ":", "o"))
        axes.plot(
            at,
            judged,
            color=tint,
            linewidth=1.1,
            marker=sign,
            markersize=0.5 * size,
            markerfacecolor="white",
            zorder=5,
            label=f"{side} window",
            markevery=marker_positions(judged, len(rows) if dense else 1),
        )
        drawn += [each for each in judged if not math.isnan(each)]
    failed = [
        (row.iteration, each.value)
        for row in rows
        for each in row.checks
        if each.key == key and each.side == "failure" and each.holds and not math.isnan(each.value)
    ]
    if failed:
        axes.plot(
            *zip(*failed, strict=True),
            linestyle="",
            marker="X",
            color=WARNING_COLOUR,
            markersize=size,
            markeredgecolor="white",
            markeredgewidth=0.0 if dense else 1.0,
            zorder=6,
            label="fails",
        )
    axes.set_ylim(*padded_limits(drawn, 0.12))
    tidy_axis(axes.yaxis, 3)
    _draw_phase_changes(axes, rows)
    if not any(not math.isnan(value) for value in values):
        axes.text(
            0.5, 0.5, "no number in any row", transform=axes.transAxes, ha="center", va="center", color=QUIET_COLOUR
        )


def _draw_phase_changes(axes: Axes, rows: Sequence[GateRow]) -> None:
    """Where the phase changes: a line through all panels."""
    if _count_phase_changes(rows) > MANY_PHASE_CHANGES:
        return
    for row in rows:
        if row.state in ("advance", "fall_back"):
            axes.axvline(
                row.iteration,
                color=STATE_MARKS[row.state].tint,
                linewidth=1.2,
                linestyle="-" if row.state == "advance" else ":",
                zorder=2,
            )


def _count_phase_changes(rows: Sequence[GateRow]) -> int:
    return sum(row.state in ("advance", "fall_back") for row in rows)


def _decision_lanes(gate: GateTrace) -> list[str]:
    """All that a gate can decide, also what it never did; and what else stands there."""
    others = {row.state: None for row in gate.rows if row.state not in STATE_MARKS}
    return [*STATE_MARKS, *(["other"] if others else [])]


def _plot_decisions(axes: Axes, gate: GateTrace, states: Sequence[str]) -> None:
    size = _marker_size(axes, [row.iteration for row in gate.rows])
    for lane, state in enumerate(states):
        mine = [row.iteration for row in gate.rows if (row.state if row.state in STATE_MARKS else "other") == state]
        mark = STATE_MARKS.get(state, StateMark("*", BLACK))
        axes.axhline(lane, color="white", linewidth=0.8, zorder=1)
        axes.plot(
            mine,
            [lane] * len(mine),
            linestyle="",
            marker=mark.sign,
            color=mark.tint,
            markersize=size,
            zorder=4,
            markerfacecolor=mark.tint if mark.filled else "white",
            label=state,
        )
    axes.set_ylim(len(states) - 0.4, -0.6)
    names = [
        f"{state} ({_abbreviate_count(_count_decisions(gate, state))})" if gate.counts is not None else state
        for state in states
    ]
    axes.set_yticks(range(len(states)), names)
    axes.tick_params(axis="y", length=0)
    _draw_phase_changes(axes, gate.rows)


def _count_decisions(gate: GateTrace, state: str) -> int:
    counts = gate.counts or {}
    return (
        counts.get(state, 0)
        if state in STATE_MARKS
        else sum(n for name, n in counts.items() if name not in STATE_MARKS)
    )


def _plot_phase(axes: Axes, rows: Sequence[GateRow]) -> None:
    """From the decision on, not half way before it: until then the run had the phase before."""
    at, phases = [row.iteration for row in rows], [row.phase for row in rows]
    ends = [*map(float, at[1:]), *(high for _, high in row_edges(at)[-1:])]
    axes.plot(*step_line(list(zip(at, ends, strict=True)), phases), color=BLACK, linewidth=2.0, zorder=4, label="phase")
    known = [phase for phase in phases if not math.isnan(phase)] or [0.0]
    axes.set_ylim(min(known) - 0.4, max(*known, min(known) + 1) + 0.4)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=2, integer=True, min_n_ticks=1))
    _draw_phase_changes(axes, rows)


def _abbreviate_count(count: int) -> str:
    return str(count) if count < 1000 else f"{count / 1000:.1f}k" if count < 10_000 else f"{count // 1000}k"


def _marker_size(axes: Axes, at: Sequence[int]) -> float:
    """Of a mark, in points: as the rows leave room for it."""
    low, high = axes.get_xlim()
    between = (at[-1] - at[0]) / (len(at) - 1) if len(at) > 1 else high - low
    return min(9.0, max(4.5, 0.85 * 72 * (WIDTH - LEFT - EDGE) * between / (high - low)))


def _timeline_legend(gate: GateTrace, keys: Sequence[str], stages: StageBackground) -> list[tuple[Artist, str]]:
    found: list[tuple[Artist, str]] = [(legend_line(BLACK, marker="o", markersize=5), "value")]
    sides = {side for key in keys for side in (line.side for line in threshold_lines(gate.rows, key))}
    windows = {side for key in keys for side, _ in windowed_values(gate.rows, key)}
    for side in SIDES:
        tint, style, sign = SIDE_LOOKS[side]
        if side in windows:
            look = legend_line(tint, linewidth=1.1, marker=sign, markersize=5, markerfacecolor="white")
            found.append((look, f"windowed value ({side})"))
        if side in sides:
            found.append((legend_line(tint, linestyle=style, linewidth=1.8), f"{side} bound"))
    if any(each.side == "failure" and each.holds and each.key in keys for row in gate.rows for each in row.checks):
        found.append((legend_line(WARNING_COLOUR, linestyle="", marker="X", markersize=8), "failure criterion holds"))
    for state, name, style in (("advance", "advance", "-"), ("fall_back", "fall back", ":")):
        if any(row.state == state for row in gate.rows) and _count_phase_changes(gate.rows) <= MANY_PHASE_CHANGES:
            found.append((legend_line(STATE_MARKS[state].tint, linestyle=style, linewidth=1.2), name))
    if stages.wrong:
        found.append(
            (Patch(facecolor="white", edgecolor=WARNING_COLOUR, hatch=WRONG_LABEL_HATCH), "label contradicts schedule")
        )
    return [*found, *legend_of_narrow_stages(stages)]
