"""The best variant of a loop after each round, over all that was tried: a dot for each run, mean and sd of seeds."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from muster.domain.wording import counted
from muster.report.figures.names import shorten
from muster.report.figures.palette import BLUE, FAINT, QUIET, pale
from muster.report.figures.scales import padded, tidy
from muster.report.figures.sheet import (
    EDGE,
    FOOT,
    HEIGHT,
    SMALL,
    TITLE,
    TOP,
    WIDTH,
    Picture,
    axes_at,
    drawable,
    files,
    fitting,
    left_of_axes,
    legend,
    style,
    write,
)
from muster.report.loop_facts import LoopFacts, LoopVariant
from muster.report.loop_say import Say

NAME = "best_so_far"
FAR = 6.0  # times as far from the median as the best: a run that went wrong must not flatten the others
BOTTOM = FOOT + 0.62
BETWEEN = 1.0  # places left free between rounds
CROWD = 30  # variants from which marks are smaller


@dataclass(frozen=True, slots=True)
class Ground:
    """Where things are drawn."""

    x: dict[str, float]  # of each variant, in the order of the rounds
    rounds: dict[int, tuple[float, float]]  # from where to where each goes
    low: float
    high: float

    def inside(self, value: float) -> bool:
        return self.low <= value <= self.high


def best_so_far(facts: LoopFacts) -> dict[str, bytes]:
    """As png, svg and pdf. There must be a course."""
    with style():
        return files(_picture(facts))


def _picture(facts: LoopFacts) -> Picture:
    ground = _ground(facts)
    figure = Figure(figsize=(WIDTH, HEIGHT))
    shown = facts.by if drawable(facts.by) else "score"
    title = f"Best so far: {shown}" + ("" if facts.over else f" ({_partial(facts)})")
    write(figure, EDGE, HEIGHT - 0.45, title, fitting(title, TITLE, WIDTH - 2 * EDGE))
    how = _bottom_line(facts)
    write(figure, EDGE, HEIGHT - 0.78, how, fitting(how, SMALL + 0.5, WIDTH - 2 * EDGE), color=QUIET)
    over = f"{sum(run.over for run in facts.runs)} of {counted(len(facts.runs), 'run')} over"
    place = f"{shorten(facts.campaign, 40)}: " if drawable(facts.campaign) else ""
    write(figure, EDGE, 0.14, place + over, SMALL, color=QUIET)
    write(figure, WIDTH - EDGE, 0.14, f"muster {facts.version}", SMALL, color=QUIET, ha="right")
    keys = legend(figure, _keys(facts, ground), EDGE, TOP, WIDTH - 2 * EDGE)
    left = left_of_axes((ground.low, ground.high))
    axes = axes_at(figure, left, BOTTOM, WIDTH - left - EDGE, TOP - keys - 0.15 - BOTTOM)
    _frame(axes, facts, ground, shown)
    _line(axes, facts, ground)
    for each in facts.variants:
        _variant(axes, facts, each, ground)
    told = f"campaign {facts.campaign}; {over}; muster {facts.version}"
    cells = tuple(run.cell for run in facts.runs)
    return Picture(NAME, title, told, "", cells, figure)


def _partial(facts: LoopFacts) -> str:
    return f"PARTIAL {sum(run.over for run in facts.runs)}/{len(facts.runs)}"


def unnamed(facts: LoopFacts) -> list[str]:
    """What the picture has to leave out: its font lacks the letters."""
    names = [facts.campaign, facts.by, *([facts.best.name] if facts.best else [])]
    return [name for name in names if not drawable(name)]


def _bottom_line(facts: LoopFacts) -> str:
    best = facts.best
    assert best is not None
    name = shorten(best.name, 40) if drawable(best.name) else "the best one"
    words = f"{name}, round {best.variant.round}: {Say(facts).short(best)}"
    return words if best.n > 1 else f"{words}; one seed: a gain can't be told from noise"


def _ground(facts: LoopFacts) -> Ground:
    x: dict[str, float] = {}
    rounds: dict[int, tuple[float, float]] = {}
    at = 0.0
    for number in range(1, facts.round + 1):
        mine = facts.of_round(number)
        for place, each in enumerate(mine):
            x[each.name] = at + place
        rounds[number] = (at - 0.5, at + len(mine) - 0.5)
        at += len(mine) + (BETWEEN if mine else 0.0)
    low, high = _bounds(facts)
    return Ground(x, rounds, low, high)


def _bounds(facts: LoopFacts) -> tuple[float, float]:
    """Of all that is drawn, less what lies far on the worse side: that gets a mark at the edge."""
    means = [each.mean for each in facts.variants if each.values]
    ends = [end for each in facts.variants for end in _ends(each)]
    best, middle = facts.best.mean if facts.best else means[0], median(means)
    reach = FAR * abs(best - middle) if best != middle else float("inf")
    sign = 1 if facts.better == "higher" else -1
    return padded([end for end in ends if sign * (middle - end) <= reach], 0.08)


def _ends(of: LoopVariant) -> list[float]:
    return [*of.values, *([of.mean - of.sd, of.mean + of.sd] if of.sd is not None else [])]


def _frame(axes: Axes, facts: LoopFacts, ground: Ground, shown: str) -> None:
    right = max(end for _, end in ground.rounds.values())
    axes.set(xlim=(-0.9, right + 0.4), ylim=(ground.low, ground.high))
    axes.set_ylabel(f"{shorten(shown, 30)}")
    axes.set_xlabel(f"variants in the order of the rounds ({facts.better} is better)")
    tidy(axes.yaxis, 6)
    axes.grid(visible=True, axis="y")
    busy = {number: ends for number, ends in ground.rounds.items() if ends[1] > ends[0]}
    every = max(1, round(len(busy) / 10))
    named = [number for at, number in enumerate(busy) if at % every == 0]
    axes.set_xticks([sum(busy[number]) / 2 for number in named], [f"round {number}" for number in named])
    axes.tick_params(axis="x", length=0)
    for start, _ in list(busy.values())[1:]:
        axes.axvline(start - BETWEEN / 2, color=FAINT, linewidth=1.0, dashes=(3, 3))


def _line(axes: Axes, facts: LoopFacts, ground: Ground) -> None:
    xs: list[float] = []
    ys: list[float] = []
    for each in facts.course:
        start, end = ground.rounds[each.round]
        best = facts.variant(each.best)
        xs += [start - BETWEEN / 2 if xs else start, end + BETWEEN / 2]
        ys += [best.mean, best.mean]
        if best.sd is not None:
            axes.fill_between(xs[-2:], best.mean - best.sd, best.mean + best.sd, color=pale(pale(BLUE)), linewidth=0)
    axes.plot(xs, ys, color=BLUE, linewidth=2.6, zorder=3)


def _variant(axes: Axes, facts: LoopFacts, of: LoopVariant, ground: Ground) -> None:
    x, small = ground.x[of.name], len(facts.variants) >= CROWD
    is_best = any(each.best == of.name for each in facts.course)
    if not of.values:
        if of.state != "waiting":
            axes.plot([x], [0.03], marker="x", color=QUIET, markersize=7, transform=axes.get_xaxis_transform())
        return
    tint, above = (BLUE, 6) if is_best else (QUIET, 4)
    if not ground.inside(of.mean):
        at, mark = (0.97, "^") if of.mean > ground.high else (0.03, "v")
        axes.plot([x], [at], marker=mark, color=QUIET, markersize=8, transform=axes.get_xaxis_transform())
        return
    axes.plot([x] * of.n, of.values, linestyle="", marker="o", color="white", markeredgecolor=tint,
              markersize=4.0 if small else 6.0, zorder=above)  # fmt: skip
    if of.sd is not None:
        axes.plot([x, x], [of.mean - of.sd, of.mean + of.sd], color=tint, linewidth=1.6, zorder=above)
    if of.sd is not None or is_best:
        axes.plot([x], [of.mean], marker="*" if is_best else "D", color=tint, zorder=above + 1,
                  markersize=(11 if small else 15) if is_best else (4 if small else 7))  # fmt: skip


def _keys(facts: LoopFacts, ground: Ground) -> list[tuple[Artist, str]]:
    sizes = sorted({each.n for each in facts.variants if each.n})
    n = f"n = {sizes[0]}" if len(sizes) == 1 else f"n = {sizes[0]} to {sizes[-1]}"
    found: list[tuple[Artist, str]] = [
        (Line2D([], [], color=BLUE, linewidth=2.6, marker="*", markersize=13), "best after each round"),
        (_mark("o", fill="white"), f"one run ({n} per variant)"),
    ]
    if any(each.sd is not None for each in facts.variants):
        found.append((Line2D([], [], color=QUIET, marker="D", markersize=7, linewidth=1.6), "mean ± sd over seeds"))
    failed = sum(not each.values and each.state != "waiting" for each in facts.variants)
    far = sum(bool(each.values) and not ground.inside(each.mean) for each in facts.variants)
    if failed:
        found.append((_mark("x"), f"no score: {failed}"))
    if far:
        found.append((_mark("v" if facts.better == "higher" else "^"), f"beyond the axis: {far}"))
    return found


def _mark(kind: str, fill: str = QUIET) -> Line2D:
    return Line2D([], [], linestyle="", marker=kind, color=fill, markeredgecolor=QUIET, markersize=7)
