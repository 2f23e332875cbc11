"""Which square of which panel each cell belongs to: configs down, seeds across, a panel for each job and split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from muster.domain.cell import escape
from muster.report.facts import Facts, Measurement, Missing
from muster.report.figures.names import all_configs, all_seeds

DONE = "DONE"
Square = tuple[str, str]  # config, seed


@dataclass(frozen=True, slots=True)
class Panel:
    job: str
    head: str
    states: Mapping[Square, tuple[str, ...]]  # more than one where the job has further axes

    @property
    def done(self) -> int:
        return sum(state == DONE for states in self.states.values() for state in states)

    @property
    def declared(self) -> int:
        return sum(len(states) for states in self.states.values())


@dataclass(frozen=True, slots=True)
class Grid:
    panels: tuple[Panel, ...]
    elsewhere: tuple[Missing, ...]  # of jobs without results, or cells whose place their name does not tell


@dataclass(frozen=True, slots=True)
class Shape:
    """Where the parts of a job's cell names are; None: it has no such axis."""

    config: int | None
    seed: int | None
    head: int | None

    @property
    def reach(self) -> int:
        return max((place + 1 for place in (self.config, self.seed, self.head) if place is not None), default=0)


def grid_of(facts: Facts) -> Grid:
    found: dict[tuple[str, str], dict[Square, list[str]]] = {}
    for each in facts.measured:
        found.setdefault((each.job, each.head), {}).setdefault((each.config, each.seed), []).append(DONE)
    heads = {column.head for column in facts.columns} | {each.head for each in facts.measured}
    places = Places.of(facts)
    elsewhere = []
    for cell in facts.missing:
        placed = places.place(cell.cell)
        if placed is None or placed[0][1] not in heads:
            elsewhere.append(cell)
        else:
            found.setdefault(placed[0], {}).setdefault(placed[1], []).append(cell.state)
    order = list(dict.fromkeys([*(column.head for column in facts.columns), *(head for _, head in found)]))
    panels = [
        Panel(job, head, {square: tuple(states) for square, states in squares.items()})
        for (job, head), squares in sorted(found.items(), key=lambda item: order.index(item[0][1]))
    ]
    return Grid(tuple(panels), tuple(elsewhere))


@dataclass(frozen=True, slots=True)
class Places:
    """What the parts of a cell's name can mean."""

    configs: Mapping[str, str]  # as part of a name -> itself
    seeds: Mapping[str, str]
    shapes: Mapping[str, Shape | None]  # of jobs that have measured something; None: what they measured does not tell

    @classmethod
    def of(cls, facts: Facts) -> Places:
        by_job: dict[str, list[Measurement]] = {}
        for each in facts.measured:
            by_job.setdefault(each.job, []).append(each)
        return cls(
            {escape(name): name for name in all_configs(facts) if name},
            {escape(name): name for name in all_seeds(facts) if name},
            {job: learned(mine) for job, mine in by_job.items()},
        )

    def place(self, cell: str) -> tuple[tuple[str, str], Square] | None:
        """((job, head), (config, seed)); None where the name does not tell."""
        job, *parts = cell.split("/")
        shape = self.shapes[job] if job in self.shapes else self._guessed(parts)
        if shape is None or shape.reach > len(parts):
            return None
        config = "" if shape.config is None else self.configs.get(parts[shape.config])
        seed = "" if shape.seed is None else self.seeds.get(parts[shape.seed])
        if config is None or seed is None:
            return None
        return (job, job if shape.head is None else _plain(parts[shape.head])), (config, seed)

    def _guessed(self, parts: Sequence[str]) -> Shape | None:
        """By the names, if they leave no doubt."""
        configs = [index for index, part in enumerate(parts) if part in self.configs]
        seeds = [index for index, part in enumerate(parts) if part in self.seeds]
        rest = [index for index in range(len(parts)) if index not in (*configs, *seeds)]
        if max(len(configs), len(seeds), len(rest)) > 1 or (configs and configs == seeds):
            return None
        return Shape(*(found[0] if found else None for found in (configs, seeds, rest)))


def learned(mine: Sequence[Measurement]) -> Shape | None:
    """From cells whose config, seed and split are known."""
    names = [each.cell.split("/")[1:] for each in mine]
    wide = min(len(name) for name in names)

    def same(values: Sequence[str]) -> list[int]:
        parts = [escape(value) for value in values]
        return [i for i in range(wide) if all(name[i] == part for name, part in zip(names, parts, strict=True))]

    found = [same([e.config for e in mine]), same([e.seed for e in mine]), same([e.head for e in mine])]
    certain = [where[0] for where in found if where]
    if any(len(where) > 1 for where in found) or len(set(certain)) < len(certain):
        return None
    return Shape(*(where[0] if where else None for where in found))


def _plain(part: str) -> str:
    return part.replace("%2E", ".").replace("%2F", "/").replace("%25", "%")
