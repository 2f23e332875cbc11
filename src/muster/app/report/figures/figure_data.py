"""The numbers behind figures: learning curves over the seeds of a config, and the square of each cell in the coverage
matrix (configs down, seeds across, a panel for each job and split).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muster.app.facts.drawing.figure_context import configs_in_facts, seeds_in_facts
from muster.app.facts.report_facts import LearningCurve, Measurement, MissingCell, ReportFacts
from muster.model.cell import escape_cell_value
from muster.stats.quantiles import student_t_quantile
from muster.stats.samples import CONFIDENCE_LEVEL, LEAST_FOR_INTERVAL

COVERED_SHARE = 0.9  # of the steps: a mean over fewer is told to be one
MOST_MEAN_POINTS = 300  # of a mean: more than a slide has pixels for
StepsAndValues = tuple[NDArray[np.float64], NDArray[np.float64]]  # steps, values


@dataclass(frozen=True, slots=True)
class MeanCurve:
    """Over all seeds, where each of them has values: an end that some seeds do not reach would be another sample."""

    steps: NDArray[np.float64]
    mean: NDArray[np.float64]
    half: NDArray[np.float64] | None  # of the Student-t interval; None below three seeds


@dataclass(frozen=True, slots=True)
class SeedCurves:
    """The curves of one config: one for each seed."""

    config: str
    lines: tuple[StepsAndValues, ...]
    mean: MeanCurve | None  # None: the seeds have no step in common
    cells: tuple[str, ...]
    left_out: int  # further curves of seeds that have one already

    @property
    def n(self) -> int:
        return len(self.lines)

    @property
    def covered(self) -> float:
        """Which share of the steps that any seed has values for the mean is drawn over."""
        if self.mean is None:
            return 0.0
        whole = max(steps[-1] for steps, _ in self.lines) - min(steps[0] for steps, _ in self.lines)
        return float((self.mean.steps[-1] - self.mean.steps[0]) / whole) if whole > 0 else 1.0

    @property
    def patchy(self) -> bool:
        """Whether the mean leaves out so much that a reader has to be told."""
        return self.mean is not None and self.covered < COVERED_SHARE


def seed_curves_of_config(config: str, curves: Iterable[LearningCurve]) -> SeedCurves:
    mine = [curve for curve in curves if curve.config == config and curve.steps]
    by_seed: dict[str, LearningCurve] = {}
    for curve in mine:
        by_seed.setdefault(curve.seed, curve)
    lines = tuple(steps_and_values_of_curve(curve) for curve in by_seed.values())
    cells = tuple(curve.cell for curve in by_seed.values())
    return SeedCurves(config, lines, mean_curve(lines), cells, len(mine) - len(by_seed))


def steps_and_values_of_curve(curve: LearningCurve) -> StepsAndValues:
    """In the order of steps. A step that was logged twice, as after a resume, counts as it was last."""
    last = dict(sorted(zip(curve.steps, curve.values, strict=True), key=lambda pair: pair[0]))
    return np.fromiter(last.keys(), dtype=float), np.fromiter(last.values(), dtype=float)


def mean_curve(lines: Sequence[StepsAndValues]) -> MeanCurve | None:
    """Interpolated between a seed's own steps and never beyond them."""
    if not lines:
        return None
    low, high = max(steps[0] for steps, _ in lines), min(steps[-1] for steps, _ in lines)
    if low > high:
        return None
    steps = _thin_steps(np.unique(np.concatenate([[low, high], *(steps for steps, _ in lines)])), low, high)
    values = np.array([np.interp(steps, *line) for line in lines])
    n = len(lines)
    if n < LEAST_FOR_INTERVAL:
        return MeanCurve(steps, values.mean(axis=0), None)
    half = student_t_quantile((1 + CONFIDENCE_LEVEL) / 2, n - 1) * values.std(axis=0, ddof=1) / math.sqrt(n)
    return MeanCurve(steps, values.mean(axis=0), half)


def _thin_steps(steps: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    inside: NDArray[np.float64] = steps[(steps >= low) & (steps <= high)]
    if len(inside) <= MOST_MEAN_POINTS:
        return inside
    chosen = np.unique(np.linspace(0, len(inside) - 1, MOST_MEAN_POINTS).round().astype(int))
    return np.take(inside, chosen)


DONE_STATE = "DONE"
SquarePlace = tuple[str, str]  # config, seed


@dataclass(frozen=True, slots=True)
class CoveragePanel:
    job: str
    head: str
    states: Mapping[SquarePlace, tuple[str, ...]]  # more than one where the job has further axes

    @property
    def done(self) -> int:
        return sum(state == DONE_STATE for states in self.states.values() for state in states)

    @property
    def declared(self) -> int:
        return sum(len(states) for states in self.states.values())


@dataclass(frozen=True, slots=True)
class CoverageGrid:
    panels: tuple[CoveragePanel, ...]
    elsewhere: tuple[MissingCell, ...]  # of jobs without results, or cells whose place their name does not tell


@dataclass(frozen=True, slots=True)
class CellNameShape:
    """Where the parts of a job's cell names are; None: it has no such axis."""

    config: int | None
    seed: int | None
    head: int | None

    @property
    def reach(self) -> int:
        return max((place + 1 for place in (self.config, self.seed, self.head) if place is not None), default=0)


def build_coverage_grid(facts: ReportFacts) -> CoverageGrid:
    found: dict[tuple[str, str], dict[SquarePlace, list[str]]] = {}
    for each in facts.measured:
        found.setdefault((each.job, each.head), {}).setdefault((each.config, each.seed), []).append(DONE_STATE)
    heads = {column.head for column in facts.columns} | {each.head for each in facts.measured}
    places = CellNameParts.of(facts)
    elsewhere = []
    for cell in facts.missing:
        placed = places.place(cell.cell)
        if placed is None or placed[0][1] not in heads:
            elsewhere.append(cell)
        else:
            found.setdefault(placed[0], {}).setdefault(placed[1], []).append(cell.state)
    order = list(dict.fromkeys([*(column.head for column in facts.columns), *(head for _, head in found)]))
    panels = [
        CoveragePanel(job, head, {square: tuple(states) for square, states in squares.items()})
        for (job, head), squares in sorted(found.items(), key=lambda item: order.index(item[0][1]))
    ]
    return CoverageGrid(tuple(panels), tuple(elsewhere))


@dataclass(frozen=True, slots=True)
class CellNameParts:
    """What the parts of a cell's name can mean."""

    configs: Mapping[str, str]  # as part of a name -> itself
    seeds: Mapping[str, str]
    shapes: Mapping[
        str, CellNameShape | None
    ]  # of jobs that have measured something; None: what they measured does not tell

    @classmethod
    def of(cls, facts: ReportFacts) -> CellNameParts:
        by_job: dict[str, list[Measurement]] = {}
        for each in facts.measured:
            by_job.setdefault(each.job, []).append(each)
        return cls(
            {escape_cell_value(name): name for name in configs_in_facts(facts) if name},
            {escape_cell_value(name): name for name in seeds_in_facts(facts) if name},
            {job: learn_name_shape(mine) for job, mine in by_job.items()},
        )

    def place(self, cell: str) -> tuple[tuple[str, str], SquarePlace] | None:
        """((job, head), (config, seed)); None where the name does not tell."""
        job, *parts = cell.split("/")
        shape = self.shapes[job] if job in self.shapes else self._guessed(parts)
        if shape is None or shape.reach > len(parts):
            return None
        config = "" if shape.config is None else self.configs.get(parts[shape.config])
        seed = "" if shape.seed is None else self.seeds.get(parts[shape.seed])
        if config is None or seed is None:
            return None
        return (job, job if shape.head is None else _unescape_cell_part(parts[shape.head])), (config, seed)

    def _guessed(self, parts: Sequence[str]) -> CellNameShape | None:
        """By the names, if they leave no doubt."""
        configs = [index for index, part in enumerate(parts) if part in self.configs]
        seeds = [index for index, part in enumerate(parts) if part in self.seeds]
        rest = [index for index in range(len(parts)) if index not in (*configs, *seeds)]
        if max(len(configs), len(seeds), len(rest)) > 1 or (configs and configs == seeds):
            return None
        return CellNameShape(*(found[0] if found else None for found in (configs, seeds, rest)))


def learn_name_shape(mine: Sequence[Measurement]) -> CellNameShape | None:
    """From cells whose config, seed and split are known."""
    names = [each.cell.split("/")[1:] for each in mine]
    wide = min(len(name) for name in names)

    def same(values: Sequence[str]) -> list[int]:
        parts = [escape_cell_value(value) for value in values]
        return [i for i in range(wide) if all(name[i] == part for name, part in zip(names, parts, strict=True))]

    found = [same([e.config for e in mine]), same([e.seed for e in mine]), same([e.head for e in mine])]
    certain = [where[0] for where in found if where]
    if any(len(where) > 1 for where in found) or len(set(certain)) < len(certain):
        return None
    return CellNameShape(*(where[0] if where else None for where in found))


def _unescape_cell_part(part: str) -> str:
    return part.replace("%2E", ".").replace("%2F", "/").replace("%25", "%")
