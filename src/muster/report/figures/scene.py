"""What all pictures of a report share: the facts, the names as drawn, and what every title must say."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from muster.domain.wording import counted
from muster.report.analysis import Analysis
from muster.report.facts import Column, Facts
from muster.report.figures.names import Names, all_configs

PAGE = 12  # configs in one picture


@dataclass(frozen=True, slots=True)
class Scene:
    analysis: Analysis
    names: Names
    configs: tuple[str, ...]

    @classmethod
    def of(cls, analysis: Analysis, drawable: Callable[[str], bool]) -> Scene:
        return cls(analysis, Names.of(analysis.facts, drawable), all_configs(analysis.facts))

    @property
    def facts(self) -> Facts:
        return self.analysis.facts

    @property
    def mark(self) -> str:
        """What a picture that travels alone must not hide."""
        return ", ".join(word for word in ("INVALID" if self.analysis.errors else "", self.facts.mark) if word)

    @property
    def description(self) -> str:
        """Goes into each file beside its title."""
        facts = self.facts
        parts = [
            f"campaign {facts.campaign}",
            f"{facts.k} of {counted(facts.n)} with results",
            self.mark,
            f"code {facts.code}" if facts.code else "",
            f"muster {facts.version}",
        ]
        return "; ".join(part for part in parts if part)

    def limit_on(self, metric: str) -> float | None:
        """The declared one, where it is about this metric."""
        plan = self.facts.plan
        return plan.procedure.limit if plan and plan.limit and plan.limit.metric == metric else None

    def whose_limit(self) -> str:
        """It is a limit of the evaluation: beside a training's own values that must be said."""
        plan = self.facts.plan
        head = self.names.head.get(plan.limit.head, "") if plan and plan.limit else ""
        return f" of {head}" if head else ""

    def infeasible(self, config: str) -> bool:
        found = self.analysis.decision.safety.get(config)
        return found is not None and found.standing == "INFEASIBLE"

    def named(self, config: str) -> str:
        """With a dagger where its cost is beyond the limit."""
        return f"{self.names.config[config]} †" if self.infeasible(config) else self.names.config[config]

    def cells(self, configs: Iterable[str], columns: Iterable[Column]) -> tuple[str, ...]:
        wanted = list(columns)
        found = (cell for config in configs for column in wanted for cell in self.analysis.cells(config, column))
        return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class Page:
    configs: tuple[str, ...]
    number: int = 1
    of: int = 1

    @property
    def ending(self) -> str:
        """Of the picture's name."""
        return f"_{self.number}" if self.number > 1 else ""

    @property
    def part(self) -> str:
        """For the title."""
        return f", part {self.number} of {self.of}" if self.of > 1 else ""


def pages(configs: Sequence[str], size: int = PAGE) -> Iterator[Page]:
    count = math.ceil(len(configs) / size)
    for index in range(count):
        yield Page(tuple(configs[index * size : (index + 1) * size]), index + 1, count)
