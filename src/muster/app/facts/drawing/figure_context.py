"""What all pictures of a report share: the facts, what every title must say, and names shortened to what a font
without Chinese can draw.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from muster.app.facts.report_analysis import ReportAnalysis
from muster.app.facts.report_facts import ReportFacts, ResultColumn
from muster.text.phrases import phrase

LONGEST_NAME = 20  # letters
IsDrawable = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class DrawnNames:
    """Each name of the campaign and what stands for it."""

    config: Mapping[str, str]
    seed: Mapping[str, str]
    head: Mapping[str, str]
    metric: Mapping[str, str]
    campaign: str

    @classmethod
    def of(cls, facts: ReportFacts, drawable: IsDrawable) -> DrawnNames:
        columns = [*facts.columns, *([facts.plan.primary, facts.plan.limit] if facts.plan else [])]
        known = [column for column in columns if column is not None]
        heads = [*(column.head for column in known), *(each.head for each in facts.measured)]
        metrics = [*(column.metric for column in known), *(curve.metric for curve in facts.curves)]
        return cls(
            config=drawable_names("config", configs_in_facts(facts), drawable, blank="all cells"),
            seed=drawable_names("seed", seeds_in_facts(facts), drawable, blank="one run"),
            head=drawable_names("split", heads, drawable),
            metric=drawable_names("metric", metrics, drawable),
            campaign=shorten_drawn_name(facts.campaign, 40) if drawable(facts.campaign) else "",
        )

    def column(self, column: ResultColumn) -> str:
        metric = self.metric[column.metric]
        return f"{self.head[column.head]}/{metric}" if column.head else metric

    def replaced(self, kind: str, names: Iterable[str]) -> list[tuple[str, str]]:
        """What a caption must explain: (as drawn, as it is)."""
        known: Mapping[str, str] = getattr(self, kind)
        return [(known[name], name) for name in names if name and known[name] != name]


def configs_in_facts(facts: ReportFacts) -> tuple[str, ...]:
    found = [*facts.configs, *(each.config for each in facts.measured), *(curve.config for curve in facts.curves)]
    return tuple(dict.fromkeys(found)) or ("",)


def seeds_in_facts(facts: ReportFacts) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*facts.seeds, *(each.seed for each in facts.measured)])) or ("",)


def drawable_names(word: str, names: Iterable[str], drawable: IsDrawable, blank: str = "") -> dict[str, str]:
    """`config 2` for one that can't be drawn, or that looks like another one once it is shortened."""
    unique = list(dict.fromkeys(names))
    short = {name: (shorten_drawn_name(name) if name else blank) for name in unique if drawable(name)}
    alike = Counter(short.values())
    found: dict[str, str] = {}
    taken = set(short.values())
    for number, name in enumerate(unique, start=1):
        if name in short and alike[short[name]] == 1:
            found[name] = short[name]
            continue
        found[name] = f"{word} {number}"
        while found[name] in taken:
            found[name] += "'"
        taken.add(found[name])
    return found


def shorten_drawn_name(name: str, longest: int = LONGEST_NAME) -> str:
    """Its beginning and its end: those tell `..._lr3e-4` from `..._lr1e-3`."""
    if len(name) <= longest:
        return name
    tail = (longest - 3) // 2
    return f"{name[: longest - 3 - tail]}...{name[-tail:]}"


def figure_file_names(names: Iterable[str]) -> dict[str, str]:
    """The same names as parts of file names: letters, digits, `_`, `-` and inner dots; each of them once."""
    found: dict[str, str] = {}
    for number, name in enumerate(dict.fromkeys(names), start=1):
        plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_.") or f"metric_{number}"
        while plain in found.values():
            plain += "_"
        found[name] = plain
    return found


CONFIGS_PER_PAGE = 12  # configs in one picture


@dataclass(frozen=True, slots=True)
class FigureContext:
    analysis: ReportAnalysis
    names: DrawnNames
    configs: tuple[str, ...]

    @classmethod
    def of(cls, analysis: ReportAnalysis, drawable: Callable[[str], bool]) -> FigureContext:
        return cls(analysis, DrawnNames.of(analysis.facts, drawable), configs_in_facts(analysis.facts))

    @property
    def facts(self) -> ReportFacts:
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
            f"{facts.k} of {phrase('count.cell', n=facts.n)} with results",
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

    def cells(self, configs: Iterable[str], columns: Iterable[ResultColumn]) -> tuple[str, ...]:
        wanted = list(columns)
        found = (cell for config in configs for column in wanted for cell in self.analysis.cells(config, column))
        return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class ConfigPage:
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


def split_into_pages(configs: Sequence[str], size: int = CONFIGS_PER_PAGE) -> Iterator[ConfigPage]:
    count = math.ceil(len(configs) / size)
    for index in range(count):
        yield ConfigPage(tuple(configs[index * size : (index + 1) * size]), index + 1, count)
