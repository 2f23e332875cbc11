"""The best variant of a loop after each round, over all that was tried: a dot for each run, mean and sd of seeds."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from muster.app.facts.drawing.figure_context import shorten_drawn_name
from muster.app.facts.drawing.figure_page import (
    EDGE,
    FOOT,
    HEIGHT,
    SMALL,
    TITLE,
    TOP,
    WIDTH,
    Picture,
    add_axes_at,
    add_figure_legend,
    apply_figure_style,
    draw_figure_text,
    fitting_font_size,
    is_drawable_text,
    left_edge_of_axes,
    padded_limits,
    save_figure_files,
    tidy_axis,
)
from muster.app.facts.drawing.figure_style import BLUE, FAINT_COLOUR, QUIET_COLOUR, pale_colour
from muster.app.loop.loop_facts import LoopFacts, LoopVariant
from muster.app.loop.loop_wording import LoopWords
from muster.text.phrases import phrase

BEST_SO_FAR_NAME = "best_so_far"
FAR_FROM_MEDIAN = 6.0  # times as far from the median as the best: a run that went wrong must not flatten the others
BEST_AXES_BOTTOM = FOOT + 0.62
GAP_BETWEEN_ROUNDS = 1.0  # places left free between rounds
CROWDED_VARIANTS = 30  # variants from which marks are smaller


@dataclass(frozen=True, slots=True)
class VariantLayout:
    """Where things are drawn."""

    x: dict[str, float]  # of each variant, in the order of the rounds
    rounds: dict[int, tuple[float, float]]  # from where to where each goes
    low: float
    high: float

    def inside(self, value: float) -> bool:
        return self.low <= value <= self.high


def best_so_far_files(facts: LoopFacts) -> dict[str, bytes]:
    """As png, svg and pdf. There must be a course."""
    with apply_figure_style():
        return save_figure_files(_best_so_far_figure(facts))


def _best_so_far_figure(facts: LoopFacts) -> Picture:
    ground = _lay_out_variants(facts)
    figure = Figure(figsize=(WIDTH, HEIGHT))
    shown = facts.by if is_drawable_text(facts.by) else "score"
    title = f"Best so far: {shown}" + ("" if facts.over else f" ({_partial_runs_mark(facts)})")
    draw_figure_text(figure, EDGE, HEIGHT - 0.45, title, fitting_font_size(title, TITLE, WIDTH - 2 * EDGE))
    how = _best_variant_line(facts)
    draw_figure_text(
        figure, EDGE, HEIGHT - 0.78, how, fitting_font_size(how, SMALL + 0.5, WIDTH - 2 * EDGE), color=QUIET_COLOUR
    )
    over = f"{sum(run.over for run in facts.runs)} of {phrase('count.run', n=len(facts.runs))} over"
    place = f"{shorten_drawn_name(facts.campaign, 40)}: " if is_drawable_text(facts.campaign) else ""
    draw_figure_text(figure, EDGE, 0.14, place + over, SMALL, color=QUIET_COLOUR)
    draw_figure_text(figure, WIDTH - EDGE, 0.14, f"muster {facts.version}", SMALL, color=QUIET_COLOUR, ha="right")
    keys = add_figure_legend(figure, _best_so_far_legend(facts, ground), EDGE, TOP, WIDTH - 2 * EDGE)
    left = left_edge_of_axes((ground.low, ground.high))
    axes = add_axes_at(figure, left, BEST_AXES_BOTTOM, WIDTH - left - EDGE, TOP - keys - 0.15 - BEST_AXES_BOTTOM)
    _draw_score_axes(axes, facts, ground, shown)
    _draw_best_line(axes, facts, ground)
    for each in facts.variants:
        _draw_variant_scores(axes, facts, each, ground)
    told = f"campaign {facts.campaign}; {over}; muster {facts.version}"
    cells = tuple(run.cell for run in facts.runs)
    return Picture(BEST_SO_FAR_NAME, title, told, "", cells, figure)


def _partial_runs_mark(facts: LoopFacts) -> str:
    return f"PARTIAL {sum(run.over for run in facts.runs)}/{len(facts.runs)}"


def undrawable_names(facts: LoopFacts) -> list[str]:
    """What the picture has to leave out: its font lacks the letters."""
    names = [facts.campaign, facts.by, *([facts.best.name] if facts.best else [])]
    return [name for name in names if not is_drawable_text(name)]


def _best_variant_line(facts: LoopFacts) -> str:
    best = facts.best
    assert best is not None
    name = shorten_drawn_name(best.name, 40) if is_drawable_text(best.name) else "the best one"
    words = f"{name}, round {best.variant.round}: {LoopWords(facts).short(best)}"
    return words if best.n > 1 else f"{words}; one seed: a gain can't be told from noise"


def _lay_out_variants(facts: LoopFacts) -> VariantLayout:
    x: dict[str, float] = {}
    rounds: dict[int, tuple[float, float]] = {}
    at = 0.0
    for number in range(1, facts.round + 1):
        mine = facts.of_round(number)
        for place, each in enumerate(mine):
            x[each.name] = at + place
        rounds[number] = (at - 0.5, at + len(mine) - 0.5)
        at += len(mine) + (GAP_BETWEEN_ROUNDS if mine else 0.0)
    low, high = _score_axis_bounds(facts)
    return VariantLayout(x, rounds, low, high)


def _score_axis_bounds(facts: LoopFacts) -> tuple[float, float]:
    """Of all that is drawn, less what lies far on the worse side: that gets a mark at the edge."""
    means = [each.mean for each in facts.variants if each.values]
    ends = [end for each in facts.variants for end in _ends_of_scores(each)]
    best, middle = facts.best.mean if facts.best else means[0], median(means)
    reach = FAR_FROM_MEDIAN * abs(best - middle) if best != middle else float("inf")
    sign = 1 if facts.better == "higher" else -1
    return padded_limits([end for end in ends if sign * (middle - end) <= reach], 0.08)


def _ends_of_scores(of: LoopVariant) -> list[float]:
    return [*of.values, *([of.mean - of.sd, of.mean + of.sd] if of.sd is not None else [])]


def _draw_score_axes(axes: Axes, facts: LoopFacts, ground: VariantLayout, shown: str) -> None:
    right = max(end for _, end in ground.rounds.values())
    axes.set(xlim=(-0.9, right + 0.4), ylim=(ground.low, ground.high))
    axes.set_ylabel(f"{shorten_drawn_name(shown, 30)}")
    axes.set_xlabel(f"variants in the order of the rounds ({facts.better} is better)")
    tidy_axis(axes.yaxis, 6)
    axes.grid(visible=True, axis="y")
    busy = {number: ends for number, ends in ground.rounds.items() if ends[1] > ends[0]}
    every = max(1, round(len(busy) / 10))
    named = [number for at, number in enumerate(busy) if at % every == 0]
    axes.set_xticks([sum(busy[number]) / 2 for number in named], [f"round {number}" for number in named])
    axes.tick_params(axis="x", length=0)
    for start, _ in list(busy.values())[1:]:
        axes.axvline(start - GAP_BETWEEN_ROUNDS / 2, color=FAINT_COLOUR, linewidth=1.0, dashes=(3, 3))


def _draw_best_line(axes: Axes, facts: LoopFacts, ground: VariantLayout) -> None:
    xs: list[float] = []
    ys: list[float] = []
    for each in facts.course:
        start, end = ground.rounds[each.round]
        best = facts.variant(each.best)
        xs += [start - GAP_BETWEEN_ROUNDS / 2 if xs else start, end + GAP_BETWEEN_ROUNDS / 2]
        ys += [best.mean, best.mean]
        if best.sd is not None:
            axes.fill_between(
                xs[-2:], best.mean - best.sd, best.mean + best.sd, color=pale_colour(pale_colour(BLUE)), linewidth=0
            )
    axes.plot(xs, ys, color=BLUE, linewidth=2.6, zorder=3)


def _draw_variant_scores(axes: Axes, facts: LoopFacts, of: LoopVariant, ground: VariantLayout) -> None:
    x, small = ground.x[of.name], len(facts.variants) >= CROWDED_VARIANTS
    is_best = any(each.best == of.name for each in facts.course)
    if not of.values:
        if of.state != "waiting":
            axes.plot([x], [0.03], marker="x", color=QUIET_COLOUR, markersize=7, transform=axes.get_xaxis_transform())
        return
    tint, above = (BLUE, 6) if is_best else (QUIET_COLOUR, 4)
    if not ground.inside(of.mean):
        at, mark = (0.97, "^") if of.mean > ground.high else (0.03, "v")
        axes.plot([x], [at], marker=mark, color=QUIET_COLOUR, markersize=8, transform=axes.get_xaxis_transform())
        return
    axes.plot(
        [x] * of.n,
        of.values,
        linestyle="",
        marker="o",
        color="white",
        markeredgecolor=tint,
        markersize=4.0 if small else 6.0,
        zorder=above,
    )
    if of.sd is not None:
        axes.plot([x, x], [of.mean - of.sd, of.mean + of.sd], color=tint, linewidth=1.6, zorder=above)
    if of.sd is not None or is_best:
        axes.plot(
            [x],
            [of.mean],
            marker="*" if is_best else "D",
            color=tint,
            zorder=above + 1,
            markersize=(11 if small else 15) if is_best else (4 if small else 7),
        )


def _best_so_far_legend(facts: LoopFacts, ground: VariantLayout) -> list[tuple[Artist, str]]:
    sizes = sorted({each.n for each in facts.variants if each.n})
    n = f"n = {sizes[0]}" if len(sizes) == 1 else f"n = {sizes[0]} to {sizes[-1]}"
    found: list[tuple[Artist, str]] = [
        (Line2D([], [], color=BLUE, linewidth=2.6, marker="*", markersize=13), "best after each round"),
        (_legend_marker("o", fill="white"), f"one run ({n} per variant)"),
    ]
    if any(each.sd is not None for each in facts.variants):
        found.append(
            (Line2D([], [], color=QUIET_COLOUR, marker="D", markersize=7, linewidth=1.6), "mean ± sd over seeds")
        )
    failed = sum(not each.values and each.state != "waiting" for each in facts.variants)
    far = sum(bool(each.values) and not ground.inside(each.mean) for each in facts.variants)
    if failed:
        found.append((_legend_marker("x"), f"no score: {failed}"))
    if far:
        found.append((_legend_marker("v" if facts.better == "higher" else "^"), f"beyond the axis: {far}"))
    return found


def _legend_marker(kind: str, fill: str = QUIET_COLOUR) -> Line2D:
    return Line2D([], [], linestyle="", marker=kind, color=fill, markeredgecolor=QUIET_COLOUR, markersize=7)
