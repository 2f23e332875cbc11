"""The matrix: which cells are done, and what stands in the way of the others."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from muster.domain.wording import counted
from muster.report.figures import captions
from muster.report.figures.grid import DONE, Grid, Panel, grid_of
from muster.report.figures.names import all_seeds
from muster.report.figures.palette import BLUE, GREEN, PURPLE, QUIET, WARNING
from muster.report.figures.scene import Page, Scene, pages
from muster.report.figures.sheet import (
    EDGE,
    FOOT,
    LABEL,
    SMALL,
    TOP,
    WIDTH,
    Picture,
    axes_at,
    blank_sheet,
    drawable,
    legend,
    text_width,
    write,
)

HALF = 0.45  # of a square, where its place is 1
WIDEST = 1.5  # place of a square
ROWS = 16  # configs on a sheet
ACROSS = 4  # panels side by side
FEW = 4  # cells that are named below the squares
MOST_WORDS = 150  # on a sheet
LOOKS = {  # of a state: edge, hatch
    "RUNNING": (GREEN, "//"),
    "PENDING": (QUIET, ""),
    "DEAD": (WARNING, "xx"),
    "GIVEN_UP": (WARNING, "xxxx"),
}
OTHER = (PURPLE, "..")


def draw(scene: Scene) -> Iterator[Picture]:
    grid = grid_of(scene.facts)
    if not grid.panels and not grid.elsewhere:
        return
    for page in pages(scene.configs, ROWS):
        yield _picture(scene, grid, page)


def _picture(scene: Scene, grid: Grid, page: Page) -> Picture:
    facts, configs = scene.facts, page.configs
    how = "a square for each config (rows) and seed (columns); filled: done" if grid.panels else "nothing is done"
    figure, title = blank_sheet(scene, f"Coverage: {facts.k} of {facts.n} done{page.part}", how)
    across = min(ACROSS, max(1, len(grid.panels)))
    down = math.ceil(len(grid.panels) / across)
    left = EDGE + max(text_width(scene.names.config[config], SMALL) for config in configs) + 0.15
    between, head = 0.25, 0.3
    seeds = len(all_seeds(facts))
    width = min(WIDEST * seeds, (WIDTH - left - EDGE - (across - 1) * between) / across)
    words = in_squares(grid, width / seeds * 2 * HALF)
    keys = _keys(grid, words)
    bottom, top = FOOT + 0.62, TOP - (legend(figure, keys, EDGE, TOP, WIDTH - 2 * EDGE - 0.4) if keys else 0.0)
    for place, panel in enumerate(grid.panels):
        row, column = divmod(place, across)
        height = (top - bottom) / down - head
        axes = axes_at(
            figure, left + column * (width + between), bottom + (down - 1 - row) * (height + head), width, height
        )
        _panel(axes, scene, panel, configs, names=column == 0, room=width, words=words)
        if place + across < len(grid.panels):
            axes.tick_params(labelbottom=False)
    if any(all_seeds(facts)) and grid.panels:
        write(figure, left + (across * (width + between) - between) / 2, FOOT + 0.1, "seed", LABEL, ha="center")
    _elsewhere(figure, grid)
    cells = tuple(dict.fromkeys(each.cell for each in facts.measured))
    return Picture(f"coverage{page.ending}", title, scene.description, captions.coverage(scene, grid), cells, figure)


def _panel(
    axes: Axes, scene: Scene, panel: Panel, page: Sequence[str], *, names: bool, room: float, words: Mapping[str, str]
) -> None:
    seeds = all_seeds(scene.facts)
    several = len({each.job for each in scene.facts.measured}) > 1 and panel.job != panel.head
    shown = scene.names.head.get(panel.head, panel.head)
    title = f"{panel.job} {shown}" if several and drawable(panel.job) else shown
    axes.set_title(f"{title}: {panel.done} of {panel.declared}", fontsize=SMALL + 1, loc="left", pad=4)
    axes.set(xlim=(-0.5, len(seeds) - 0.5), ylim=(len(page) - 0.5, -0.5), yticks=range(len(page)))
    axes.set_yticklabels([scene.names.config[config] for config in page] if names else [], fontsize=SMALL)
    step = math.ceil(len(seeds) * max(text_width(scene.names.seed[seed] + "  ", SMALL) for seed in seeds) / room)
    axes.set_xticks(range(0, len(seeds), step), [scene.names.seed[seed] for seed in seeds[::step]], fontsize=SMALL)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    squares: dict[str, list[tuple[int, int]]] = {}
    for row, config in enumerate(page):
        for column, seed in enumerate(seeds):
            if states := panel.states.get((config, seed)):
                squares.setdefault(worst(states), []).append((column, row))
    for state, where in squares.items():
        _squares(axes, state, where)
    _words(axes, squares, words)


def worst(states: Sequence[str]) -> str:
    """A square is done only if all its cells are."""
    return next((state for state in states if state != DONE), DONE)


def _squares(axes: Axes, state: str, where: Sequence[tuple[int, int]]) -> None:
    half = HALF
    corners = [
        [(x - half, y - half), (x + half, y - half), (x + half, y + half), (x - half, y + half)] for x, y in where
    ]
    if state == DONE:
        axes.add_collection(PolyCollection(corners, facecolor=BLUE, edgecolor="none"))
        return
    edge, hatch = LOOKS.get(state, OTHER)
    axes.add_collection(PolyCollection(corners, facecolor="white", edgecolor=edge, hatch=hatch, linewidth=1.2))


def in_squares(grid: Grid, room: float) -> dict[str, str]:
    """What is written in the squares of each state: the word, or as few letters as tell them apart if one is too long;
    nothing where there is no room for that."""
    missing = [s for panel in grid.panels for states in panel.states.values() for s in states if s != DONE]
    states = list(dict.fromkeys(missing))
    for length in (None, 1, 2, 3):
        words = {state: state[:length] for state in states}
        fits = all(text_width(word, SMALL) <= room for word in words.values())
        if fits and len(set(words.values())) == len(states) and len(missing) <= MOST_WORDS:
            return words
    return {}


def _words(axes: Axes, squares: Mapping[str, Sequence[tuple[int, int]]], words: Mapping[str, str]) -> None:
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    for state, where in squares.items():
        for x, y in where if words.get(state) else ():
            axes.text(x, y, words[state], fontsize=SMALL, ha="center", va="center", bbox=ground)


def _with_letter(state: str, words: Mapping[str, str]) -> str:
    word = words.get(state, state)
    return state if word == state else f"{word} = {state}"


def _keys(grid: Grid, words: Mapping[str, str]) -> list[tuple[Artist, str]]:
    count = Counter(state for panel in grid.panels for states in panel.states.values() for state in states)
    states = sorted(count, key=lambda state: (state != DONE, -count[state], state))
    return [(_key(state), f"{_with_letter(state, words)} {count[state]}") for state in states]


def _key(state: str) -> Artist:
    edge, hatch = LOOKS.get(state, OTHER)
    return Patch(facecolor=BLUE) if state == DONE else Patch(facecolor="white", edgecolor=edge, hatch=hatch)


def _elsewhere(figure: Figure, grid: Grid) -> None:
    """Cells without a square: by name if they are few, by number if not, as far as the line goes."""
    if not grid.elsewhere:
        return
    count = Counter((cell.cell.split("/")[0], cell.state) for cell in grid.elsewhere)
    parts = [f"{number} of {job} {state}" for (job, state), number in count.items()]
    if len(grid.elsewhere) <= FEW and all(drawable(cell.cell) for cell in grid.elsewhere):
        parts = [f"{cell.cell} {cell.state}" for cell in grid.elsewhere]
    text = "also missing: " + ", ".join(parts)
    if not drawable(text) or text_width(text, SMALL) > WIDTH - 2 * EDGE:
        text = f"also missing: {counted(len(grid.elsewhere))} without a square"
    write(figure, EDGE, 0.36, text, SMALL, color=WARNING)
