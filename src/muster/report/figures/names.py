"""Names as they can be written in a picture: the font has no Chinese, and a slide has no room for long ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from muster.report.facts import Column, Facts

LONGEST = 20  # letters
Drawable = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Names:
    """Each name of the campaign and what stands for it."""

    config: Mapping[str, str]
    seed: Mapping[str, str]
    head: Mapping[str, str]
    metric: Mapping[str, str]
    campaign: str

    @classmethod
    def of(cls, facts: Facts, drawable: Drawable) -> Names:
        columns = [*facts.columns, *([facts.plan.primary, facts.plan.limit] if facts.plan else [])]
        known = [column for column in columns if column is not None]
        heads = [*(column.head for column in known), *(each.head for each in facts.measured)]
        metrics = [*(column.metric for column in known), *(curve.metric for curve in facts.curves)]
        return cls(
            config=shown("config", all_configs(facts), drawable, blank="all cells"),
            seed=shown("seed", all_seeds(facts), drawable, blank="one run"),
            head=shown("split", heads, drawable),
            metric=shown("metric", metrics, drawable),
            campaign=shorten(facts.campaign, 40) if drawable(facts.campaign) else "",
        )

    def column(self, column: Column) -> str:
        metric = self.metric[column.metric]
        return f"{self.head[column.head]}/{metric}" if column.head else metric

    def replaced(self, kind: str, names: Iterable[str]) -> list[tuple[str, str]]:
        """What a caption must explain: (as drawn, as it is)."""
        known: Mapping[str, str] = getattr(self, kind)
        return [(known[name], name) for name in names if name and known[name] != name]


def all_configs(facts: Facts) -> tuple[str, ...]:
    found = [*facts.configs, *(each.config for each in facts.measured), *(curve.config for curve in facts.curves)]
    return tuple(dict.fromkeys(found)) or ("",)


def all_seeds(facts: Facts) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*facts.seeds, *(each.seed for each in facts.measured)])) or ("",)


def shown(word: str, names: Iterable[str], drawable: Drawable, blank: str = "") -> dict[str, str]:
    """`config 2` for one that can't be drawn, or that looks like another one once it is shortened."""
    unique = list(dict.fromkeys(names))
    short = {name: (shorten(name) if name else blank) for name in unique if drawable(name)}
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


def shorten(name: str, longest: int = LONGEST) -> str:
    """Its beginning and its end: those tell `..._lr3e-4` from `..._lr1e-3`."""
    if len(name) <= longest:
        return name
    tail = (longest - 3) // 2
    return f"{name[: longest - 3 - tail]}...{name[-tail:]}"


def file_names(names: Iterable[str]) -> dict[str, str]:
    """The same names as parts of file names: letters, digits, `_`, `-` and inner dots; each of them once."""
    found: dict[str, str] = {}
    for number, name in enumerate(dict.fromkeys(names), start=1):
        plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_.") or f"metric_{number}"
        while plain in found.values():
            plain += "_"
        found[name] = plain
    return found
