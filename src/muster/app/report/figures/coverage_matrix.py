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

from muster.app.facts.drawing.figure_context import ConfigPage, FigureContext, seeds_in_facts, split_into_pages
from muster.app.facts.drawing.figure_page import (
    EDGE,
    FOOT,
    LABEL,
    SMALL,
    TOP,
    WIDTH,
    Picture,
    add_axes_at,
    add_figure_legend,
    draw_figure_text,
    is_drawable_text,
    make_blank_page,
    width_of_text,
)
from muster.app.facts.drawing.figure_style import BLUE, GREEN, PURPLE, QUIET_COLOUR, WARNING_COLOUR
from muster.app.report.figures.figure_captions import MOST_CELLS_IN_CAPTION, FigureCaptions
from muster.app.report.figures.figure_data import DONE_STATE, CoverageGrid, CoveragePanel, build_coverage_grid
from muster.text.phrases import phrase


def caption_of_coverage(scene: FigureContext, grid: CoverageGrid) -> str:
    say = FigureCaptions(scene)
    facts = scene.facts
    count = Counter(each.state for each in facts.missing)
    named = [f"{each.cell} {each.state}" for each in grid.elsewhere[:MOST_CELLS_IN_CAPTION]]
    if len(grid.elsewhere) > MOST_CELLS_IN_CAPTION:
        named.append(say("more", more=len(grid.elsewhere) - MOST_CELLS_IN_CAPTION))
    return say.joined(
        say("coverage", k=facts.k, n=facts.n),
        say("missing", states=say.list_all(f"{state} {number}" for state, number in count.items())) if count else "",
        say("elsewhere", cells=say.list_all(named)) if named else "",
        say.key(config=scene.configs, seed=scene.names.seed, head=scene.names.head),
    )


HALF_SQUARE = 0.45  # of a square, where its place is 1
WIDEST_SQUARE = 1.5  # place of a square
ROWS_PER_PAGE = 16  # configs on a sheet
PANELS_ACROSS = 4  # panels side by side
MOST_CELLS_BELOW = 4  # cells that are named below the squares
MOST_WORDS = 150  # on a sheet
STATE_LOOKS = {  # of a state: edge, hatch
    "RUNNING": (GREEN, "//"),
    "PENDING": (QUIET_COLOUR, ""),
    "DEAD": (WARNING_COLOUR, "xx"),
    "GIVEN_UP": (WARNING_COLOUR, "xxxx"),
}
OTHER_LOOK = (PURPLE, "..")


def draw_coverage(scene: FigureContext) -> Iterator[Picture]:
    grid = build_coverage_grid(scene.facts)
    if not grid.panels and not grid.elsewhere:
        return
    for page in split_into_pages(scene.configs, ROWS_PER_PAGE):
        yield _draw_coverage_page(scene, grid, page)


def _draw_coverage_page(scene: FigureContext, grid: CoverageGrid, page: ConfigPage) -> Picture:
    facts, configs = scene.facts, page.configs
    how = "a square for each config (rows) and seed (columns); filled: done" if grid.panels else "nothing is done"
    figure, title = make_blank_page(scene, f"Coverage: {facts.k} of {facts.n} done{page.part}", how)
    across = min(PANELS_ACROSS, max(1, len(grid.panels)))
    down = math.ceil(len(grid.panels) / across)
    left = EDGE + max(width_of_text(scene.names.config[config], SMALL) for config in configs) + 0.15
    between, head = 0.25, 0.3
    seeds = len(seeds_in_facts(facts))
    width = min(WIDEST_SQUARE * seeds, (WIDTH - left - EDGE - (across - 1) * between) / across)
    words = words_in_squares(grid, width / seeds * 2 * HALF_SQUARE)
    keys = _coverage_legend_keys(grid, words)
    bottom, top = (
        FOOT + 0.62,
        TOP - (add_figure_legend(figure, keys, EDGE, TOP, WIDTH - 2 * EDGE - 0.4) if keys else 0.0),
    )
    for place, panel in enumerate(grid.panels):
        row, column = divmod(place, across)
        height = (top - bottom) / down - head
        axes = add_axes_at(
            figure, left + column * (width + between), bottom + (down - 1 - row) * (height + head), width, height
        )
        _draw_coverage_panel(axes, scene, panel, configs, names=column == 0, room=width, words=words)
        if place + across < len(grid.panels):
            axes.tick_params(labelbottom=False)
    if any(seeds_in_facts(facts)) and grid.panels:
        draw_figure_text(
            figure, left + (across * (width + between) - between) / 2, FOOT + 0.1, "seed", LABEL, ha="center"
        )
    _write_cells_without_square(figure, grid)
    cells = tuple(dict.fromkeys(each.cell for each in facts.measured))
    return Picture(f"coverage{page.ending}", title, scene.description, caption_of_coverage(scene, grid), cells, figure)


def _draw_coverage_panel(
    axes: Axes,
    scene: FigureContext,
    panel: CoveragePanel,
    page: Sequence[str],
    *,
    names: bool,
    room: float,
    words: Mapping[str, str],
) -> None:
    seeds = seeds_in_facts(scene.facts)
    several = len({each.job for each in scene.facts.measured}) > 1 and panel.job != panel.head
    shown = scene.names.head.get(panel.head, panel.head)
    title = f"{panel.job} {shown}" if several and is_drawable_text(panel.job) else shown
    axes.set_title(f"{title}: {panel.done} of {panel.declared}", fontsize=SMALL + 1, loc="left", pad=4)
    axes.set(xlim=(-0.5, len(seeds) - 0.5), ylim=(len(page) - 0.5, -0.5), yticks=range(len(page)))
    axes.set_yticklabels([scene.names.config[config] for config in page] if names else [], fontsize=SMALL)
    step = math.ceil(len(seeds) * max(width_of_text(scene.names.seed[seed] + "  ", SMALL) for seed in seeds) / room)
    axes.set_xticks(range(0, len(seeds), step), [scene.names.seed[seed] for seed in seeds[::step]], fontsize=SMALL)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    squares: dict[str, list[tuple[int, int]]] = {}
    for row, config in enumerate(page):
        for column, seed in enumerate(seeds):
            if states := panel.states.get((config, seed)):
                squares.setdefault(worst_state(states), []).append((column, row))
    for state, where in squares.items():
        _draw_squares(axes, state, where)
    _draw_square_words(axes, squares, words)


def worst_state(states: Sequence[str]) -> str:
    """A square is done only if all its cells are."""
    return next((state for state in states if state != DONE_STATE), DONE_STATE)


def _draw_squares(axes: Axes, state: str, where: Sequence[tuple[int, int]]) -> None:
    half = HALF_SQUARE
    corners = [
        [(x - half, y - half), (x + half, y - half), (x + half, y + half), (x - half, y + half)] for x, y in where
    ]
    if state == DONE_STATE:
        axes.add_collection(PolyCollection(corners, facecolor=BLUE, edgecolor="none"))
        return
    edge, hatch = STATE_LOOKS.get(state, OTHER_LOOK)
    axes.add_collection(PolyCollection(corners, facecolor="white", edgecolor=edge, hatch=hatch, linewidth=1.2))


def words_in_squares(grid: CoverageGrid, room: float) -> dict[str, str]:
    """What is written in the squares of each state: the word, or as few letters as tell them apart if one is too long;
    nothing where there is no room for that."""
    missing = [s for panel in grid.panels for states in panel.states.values() for s in states if s != DONE_STATE]
    states = list(dict.fromkeys(missing))
    for length in (None, 1, 2, 3):
        words = {state: state[:length] for state in states}
        fits = all(width_of_text(word, SMALL) <= room for word in words.values())
        if fits and len(set(words.values())) == len(states) and len(missing) <= MOST_WORDS:
            return words
    return {}


def _draw_square_words(axes: Axes, squares: Mapping[str, Sequence[tuple[int, int]]], words: Mapping[str, str]) -> None:
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    for state, where in squares.items():
        for x, y in where if words.get(state) else ():
            axes.text(x, y, words[state], fontsize=SMALL, ha="center", va="center", bbox=ground)


def _explain_state_letter(state: str, words: Mapping[str, str]) -> str:
    word = words.get(state, state)
    return state if word == state else f"{word} = {state}"


def _coverage_legend_keys(grid: CoverageGrid, words: Mapping[str, str]) -> list[tuple[Artist, str]]:
    count = Counter(state for panel in grid.panels for states in panel.states.values() for state in states)
    states = sorted(count, key=lambda state: (state != DONE_STATE, -count[state], state))
    return [(_coverage_legend_key(state), f"{_explain_state_letter(state, words)} {count[state]}") for state in states]


def _coverage_legend_key(state: str) -> Artist:
    edge, hatch = STATE_LOOKS.get(state, OTHER_LOOK)
    return Patch(facecolor=BLUE) if state == DONE_STATE else Patch(facecolor="white", edgecolor=edge, hatch=hatch)


def _write_cells_without_square(figure: Figure, grid: CoverageGrid) -> None:
    """Cells without a square: by name if they are few, by number if not, as far as the line goes."""
    if not grid.elsewhere:
        return
    count = Counter((cell.cell.split("/")[0], cell.state) for cell in grid.elsewhere)
    parts = [f"{number} of {job} {state}" for (job, state), number in count.items()]
    if len(grid.elsewhere) <= MOST_CELLS_BELOW and all(is_drawable_text(cell.cell) for cell in grid.elsewhere):
        parts = [f"{cell.cell} {cell.state}" for cell in grid.elsewhere]
    text = "also missing: " + ", ".join(parts)
    if not is_drawable_text(text) or width_of_text(text, SMALL) > WIDTH - 2 * EDGE:
        text = f"also missing: {phrase('count.cell', n=len(grid.elsewhere))} without a square"
    draw_figure_text(figure, EDGE, 0.36, text, SMALL, color=WARNING_COLOUR)
