"""Makes texts about made-up campaigns, and knows for each number in them which result it is, or that it is none."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from document_world import of_values

from muster.app.documents.result_names import Quantity

CONFIGS = (
    ("v2_baseline", "v2_u_only", "v2_cert_only", "v2_full"), ("ppo", "cpo", "trpo_lag"), ("SafeDreamer", "SafeDreamerPlus"),
    ("base", "base_aug", "base_aug_long"), ("run-a1", "run-a2", "run-b1"),
)  # fmt: skip
SPLITS = (("id", "ood"), ("test",), ("val", "test"))
METRICS = (("score", "cost"), ("success_rate", "return"), ("score", "cost", "risk_penalty"), ("accuracy", "loss"))
RANGES = {
    "score": (0.5, 4.0), "cost": (5.0, 90.0), "success_rate": (0.3, 0.97), "return": (2000.0, 15000.0),
    "risk_penalty": (0.01, 3.0), "accuracy": (0.4, 0.99), "loss": (0.1, 6.0),
}  # fmt: skip
DECIMALS = {"cost": 1, "return": 0}


@dataclass
class Made:
    name: str
    text: str = ""
    truth: dict[int, str] = field(default_factory=dict)  # where a number begins -> name of its result

    def add(self, *pieces: str | tuple[str, str]) -> None:
        """Text, and (number, name of its result) for numbers that are results."""
        for piece in pieces:
            if isinstance(piece, tuple):
                self.truth[len(self.text)] = piece[1]
                self.text += piece[0]
            else:
                self.text += piece


class World:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.configs = rng.choice(CONFIGS)
        self.splits = rng.choice(SPLITS)
        self.metrics = rng.choice(METRICS)
        self.values: dict[tuple[str, str, str], list[float]] = {}
        for metric in self.metrics:
            low, high = RANGES[metric]
            for split in self.splits:
                for config in self.configs:
                    middle, width = rng.uniform(low, high), (high - low) * 0.05
                    drawn = [min(high, max(low, rng.gauss(middle, width))) for _ in range(5)]
                    self.values[config, split, metric] = [round(value, 4) for value in drawn]
        if rng.random() < 0.5:  # two configs with the same first seeds, as in the story
            first, second = rng.sample(self.configs, 2)
            for split in self.splits:
                for metric in self.metrics:
                    self.values[second, split, metric][:2] = self.values[first, split, metric][:2]

    def quantities(self) -> list[Quantity]:
        return [each for (config, split, metric), values in self.values.items()
                for each in of_values(config, split, metric, values, 5)]  # fmt: skip

    def stat(self, key: tuple[str, str, str], stat: str, k: int) -> float:
        found = {each.stat: each for each in of_values(*key, self.values[key][:k], 5) if each.stat in ("mean", "sd")}
        return found[stat].value


class Writer:
    """Writes one text. `when`: the number of seeds its numbers rest on; 0: numbers that were never true."""

    def __init__(self, world: World, rng: random.Random, kind: str) -> None:
        self.world, self.rng, self.kind = world, rng, kind
        self.when = rng.choice((5, 5, 2, 3, 0))
        self.made = Made(f"text.{kind}")

    # -- numbers

    def number(self, key: tuple[str, str, str], *, pair: bool) -> str:
        metric = key[2]
        if self.when:
            mean, sd = (self.world.stat(key, stat, self.when) for stat in ("mean", "sd"))
        else:
            mean, sd = self.world.stat(key, "mean", 5) * 1.377 + 0.0517, self.world.stat(key, "sd", 5) * 0.611
        percent = metric in ("success_rate", "accuracy") and self.rng.random() < 0.5
        decimals = DECIMALS.get(metric, 3)
        sign = ("\\%" if self.kind == "tex" else "%") if percent else ""
        shown = [f"{value * 100:.1f}" if percent else f"{value:,.{decimals}f}" if metric == "return" else f"{value:.{decimals}f}"
                 for value in (mean, sd)]  # fmt: skip
        if not pair:
            return shown[0] + sign
        middle = self.rng.choice(
            ["±", " ± "] if self.kind == "md" else [" $\\pm$ ", "\\,$\\pm$\\,"] if self.kind == "tex" else [" +- "]
        )
        return shown[0] + middle + shown[1] + sign

    def collision(self) -> str:
        """A number that is the value of some result, where none is meant."""
        key = self.rng.choice(list(self.world.values))
        return f"{self.world.stat(key, 'mean', self.rng.choice((5, 2, 3))):.3f}"

    def name(self, config: str) -> str:
        if self.kind == "tex":
            return config.replace("_", "\\_")
        return self.rng.choice((config, f"**{config}**", f"`{config}`")) if self.kind == "md" else config

    def cell(self, key: tuple[str, str, str], *, pair: bool) -> tuple[str, str]:
        return self.number(key, pair=pair), "/".join(filter(None, (key[1], key[2], key[0])))

    def column(self, split: str, metric: str) -> str:
        chosen = self.rng.choice((f"{split.upper()} {metric}", f"{split} {metric}", f"{metric} ({split})"))
        return chosen.replace("_", " " if self.kind == "tex" else "_")

    # -- blocks

    def table(self) -> None:
        world, rng = self.world, self.rng
        columns = [(split, metric) for split in world.splits for metric in world.metrics]
        configs: list[str] = list(world.configs)
        rows: list[list[str | tuple[str, str]]] = []
        pair = rng.random() < 0.5
        heads = [rng.choice(("config", "Config", "method")), *(self.column(*each) for each in columns)]
        foreign = rng.choice((None, "time (h)", "Δ vs first", "params", "rank"))
        for config in configs:
            row: list[str | tuple[str, str]] = [self.name(config)]
            row += [self.cell((config, *each), pair=pair) for each in columns]
            rows.append([*row, self.collision()] if foreign else row)
        if rng.random() < 0.5:
            other: list[str | tuple[str, str]] = [
                rng.choice(("Octo", "human expert", "人工")),
                *(self.collision() for _ in columns),
            ]
            rows.insert(rng.randrange(len(rows) + 1), [*other, self.collision()] if foreign else other)
        heads += [foreign] if foreign else []
        if rng.random() < 0.3 and not foreign:  # the other way round
            grid: list[list[str | tuple[str, str]]] = [list(heads), *rows]
            turned = [[line[at] for line in grid] for at in range(len(heads))]
            heads, rows = [str(each) for each in turned[0]], turned[1:]
        self.rows(heads, rows)

    def rows(self, heads: Sequence[str], rows: Sequence[Sequence[str | tuple[str, str]]]) -> None:
        made = self.made
        if self.kind == "tex":
            made.add(
                "\\begin{tabular}{l" + "r" * len(heads) + "}\n\\toprule\n", " & ".join(heads), " \\\\\n\\midrule\n"
            )
            for row in rows:
                for at, piece in enumerate(row):
                    made.add(*((" & ",) if at else ()), piece)
                made.add(" \\\\\n")
            made.add("\\bottomrule\n\\end{tabular}\n\n")
        elif self.kind == "md":
            made.add("| ", " | ".join(heads), " |\n", "|", "---|" * len(heads), "\n")
            for row in rows:
                made.add("| ")
                for piece in row:
                    made.add(piece, " | ")
                made.add("\n")
            made.add("\n")
        else:
            made.add("   ".join(heads), "\n")
            for row in rows:
                for at, piece in enumerate(row):
                    made.add(*(("   ",) if at else ()), piece)
                made.add("\n")
            made.add("\n")

    def sentences(self) -> None:
        rng = self.rng
        for _ in range(rng.randint(1, 3)):
            key = rng.choice(list(self.world.values))
            config, split, metric = key
            shown = self.cell(key, pair=rng.random() < 0.5)
            label, name, said = self.column(split, metric), self.name(config), metric.replace("_", " ")
            said = f"{split.upper()} {said}"
            forms: Sequence[Sequence[str | tuple[str, str]]] = (
                (f"{name} has a {label} of ", shown, ". "),
                (f"The {said} of {name} is ", shown, ". "),
                (f"On {split}, {name} reaches a {metric.replace('_', ' ')} of ", shown, ", which surprised us. "),
                (f"{name} 的 {said} 为 ", shown, "。"),
                (f"With {name} we saw ", shown, f" ({said}). "),
            )
            self.made.add(*rng.choice(forms))
        self.made.add("\n\n")

    def items(self) -> None:
        bullet = "\\item " if self.kind == "tex" else "- "
        for config in self.world.configs:
            split, metric = self.rng.choice(self.world.splits), self.rng.choice(self.world.metrics)
            shown = self.cell((config, split, metric), pair=self.rng.random() < 0.3)
            self.made.add(bullet, self.name(config), f": {self.column(split, metric)} ", shown, "\n")
        self.made.add("\n")

    def pairs(self) -> None:
        """Two configs in one sentence."""
        first, second = self.rng.sample(self.world.configs, 2)
        split, metric = self.rng.choice(self.world.splits), self.rng.choice(self.world.metrics)
        one, two = (self.cell((each, split, metric), pair=False) for each in (first, second))
        said = f"{split.upper()} {metric.replace('_', ' ')}"
        a, b = self.name(first), self.name(second)
        forms: Sequence[Sequence[str | tuple[str, str]]] = (
            (one, f" for {a} and ", two, f" for {b} in {said}. "),
            (f"{a}, {b} reach a {said} of ", one, ", ", two, ". "),
            (f"{a} reaches a {said} of ", one, f", while {b} reaches ", two, ". "),
            (f"{a}（", one, f"）与 {b}（", two, f"）的 {said}。"),
            (f"The {said} of {a} and {b}: ", one, " and ", two, ". "),
            (f"Compared with {a}, the {said} is ", two, ". "),
        )
        self.made.add(*self.rng.choice(forms), "\n\n")

    def noise(self) -> None:
        """Numbers that are no results, though results have these values."""
        x = self.collision
        config = self.name(self.rng.choice(self.world.configs))
        metric, split = self.rng.choice(self.world.metrics).replace("_", " "), self.rng.choice(self.world.splits)
        forms = [
            f"We use gamma = {x()}, a learning rate of {x()} and dropout {x()}. ", f"It took {x()} hours and {x()} GB. ",
            f"See Section {x()} and Table {x()}. ", f"{config} was trained for {x()} h. ", f"折扣因子为 {x()}，温度 {x()}。",
            f"{config} improves the {split} {metric} by {x()}. ", f"The median {split} {metric} of {config} is {x()}. ",
            f"The {metric} limit is {x()}. ", f"Others report {x()} with a budget of {x()} CNY. ", f"在第 {x()} 节与图 {x()} 中。",
            f"The difference in {split} {metric} is {x()}. ", f"{config} 的 {split} {metric} 提升了 {x()}。", f"lambda={x()}, PyTorch {x()}. ",
            f"The {split} {metric} must stay below {x()}. ", f"A range of {x()}–{x()}, or [{x()}, {x()}]. ", f"{config}: {x()} seconds. ",
        ]  # fmt: skip
        if self.kind == "md":
            forms += [f"`{x()}` ", f"\n```\n{config} {split} {metric} {x()}\n```\n", f"<!-- {config} {metric} {x()} -->",
                      f"[a](http://e.com/{x()}) ", f"> \"{config} has a {split} {metric} of {x()}\"\n"]  # fmt: skip
        if self.kind == "tex":
            forms += [f"% {config} {split} {metric} {x()}\n", f"\\vspace{{{x()}cm}} ", f"\\label{{tab:{x()}}} "]
        self.made.add(*self.rng.sample(forms, 3), "\n\n")

    def write(self) -> Made:
        blocks: list[Callable[[], None]] = [self.table, self.sentences, self.items, self.pairs, self.noise, self.noise]
        self.made.add("# Results\n\n" if self.kind == "md" else "\\section{Results}\n\n" if self.kind == "tex" else "")
        for _ in range(self.rng.randint(2, 6)):
            self.rng.choice(blocks)()
        return self.made


def make(seed: int) -> tuple[World, Made]:
    rng = random.Random(seed)
    world = World(rng)
    return world, Writer(world, rng, rng.choice(("md", "tex", "txt"))).write()
