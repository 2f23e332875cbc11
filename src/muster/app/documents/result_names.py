"""Result names in texts: reads configs, splits, metrics, statistics and seeds out of words, and lists the quantities
that a number may show.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from muster.app.documents.vocabulary import (
    CHANGES,
    DERIVED,
    FOREIGN,
    METRICS,
    OTHER_METRICS,
    PLAIN,
    SCALED,
    SPLITS,
    STATS,
    SUPERLATIVE,
)


@dataclass(frozen=True, slots=True)
class Quantity:
    key: str  # unique: ood/score/v2_full/mean
    config: str
    split: str  # "" where the job has none
    metric: str
    stat: str  # mean | sd | n | value (of one seed)
    seed: str  # "" unless stat is value
    value: float
    k: int  # seeds that there are
    n: int  # seeds that are declared
    earlier: tuple[float, ...] = ()  # what it was with fewer seeds, in order; the last one with k - 1

    def seeds_then(self, at: int) -> int:
        """How many seeds `earlier[at]` rests on."""
        return self.k - len(self.earlier) + at


@dataclass(frozen=True, slots=True)
class QuantityGroup:
    """One metric of one config on one split, with all that is known of it."""

    config: str
    split: str
    metric: str
    stats: dict[str, Quantity] = field(default_factory=dict)  # mean, sd, n; value/2 for seed 2

    @property
    def name(self) -> str:
        return "/".join(part for part in (self.split, self.metric, self.config) if part)

    @property
    def identity(self) -> tuple[str, str, str]:
        return self.config, self.split, self.metric

    def magnitude(self) -> float:
        """The largest that any of its values is or was."""
        measured = (quantity for stat, quantity in self.stats.items() if stat != "n")
        known = (abs(each) for quantity in measured for each in (quantity.value, *quantity.earlier))
        return max((each for each in known if math.isfinite(each)), default=0.0)


class QuantityIndex:
    """All quantities, to be asked by name and by value."""

    def __init__(self, quantities: Iterable[Quantity]) -> None:
        self.by_key: dict[str, Quantity] = {}
        self.groups: dict[tuple[str, str, str], QuantityGroup] = {}
        for each in quantities:
            self.by_key[each.key] = each
            named = (each.config, each.split, each.metric)
            group = self.groups.setdefault(named, QuantityGroup(*named))
            group.stats[f"value/{each.seed}" if each.stat == "value" else each.stat] = each
        self._values: dict[str, list[tuple[float, tuple[str, str, str]]]] = {}
        for named, group in self.groups.items():
            for stat, quantity in group.stats.items():
                pairs = ((value, named) for value in (quantity.value, *quantity.earlier) if math.isfinite(value))
                self._values.setdefault(stat, []).extend(pairs)
        for found in self._values.values():
            found.sort()
        self._rates: dict[str, bool | None] = {}

    def select(
        self, configs: Collection[str] = (), splits: Collection[str] = (), metrics: Collection[str] = ()
    ) -> Iterator[QuantityGroup]:
        """The groups that these names allow; no names of a kind allow all."""
        for group in self.groups.values():
            if configs and group.config not in configs:
                continue
            if splits and group.split not in splits:
                continue
            if metrics and group.metric not in metrics:
                continue
            yield group

    def near(self, stat: str, low: float, high: float) -> list[QuantityGroup]:
        """Groups whose value, now or earlier, lies between these."""
        values = self._values.get(stat, [])
        at, end = bisect_left(values, (low, ("", "", ""))), bisect_right(values, high, key=lambda pair: pair[0])
        return list({named: self.groups[named] for _, named in values[at:end]}.values())

    def is_rate(self, metric: str) -> bool | None:
        """Whether the metric lies between 0 and 1 throughout, so that a text may show percent. None: who knows."""
        if metric not in self._rates:
            largest = max((group.magnitude() for group in self.select(metrics=[metric])), default=0.0)
            self._rates[metric] = True if 0 < largest <= 1 else False if largest > 1.5 else None
        return self._rates[metric]


_SPACE = r"\s{0,20}"  # as many as anybody writes: a pattern that tries every place must not walk on from each
_GAP = r"[\s_\-./@()（）]*"
_CHUNKS = re.compile(r"[A-Z]?[a-z]+[0-9]*|[A-Z]+[0-9]*(?![a-z])|[A-Za-z]+[0-9]*|[0-9]+|[^\sA-Za-z0-9_\-./@:()（）]+")
_SQUEEZE = re.compile(r"[\s_\-./@()（）]+")
_LIST = r"[0-9]+(?:\s*(?:,|，|/|、|和|与|and|&)\s*[0-9]+)*"
_SEEDS = re.compile(
    rf"(?:random\s+)?(?:\bseeds?|种子){_SPACE}(?:[=:：#_]|为|编号)?{_SPACE}(?P<list>{_LIST})(?![.0-9])(?P<range>\s*[-–~到至]\s*[0-9]+)?",
    re.I,
)
_COUNTED = re.compile(
    rf"(?<![0-9])[0-9]{{1,9}}{_SPACE}(?:个)?{_SPACE}(?:random{_SPACE}|随机)?(?:seeds?\b|种子)|\b[nkN]\s*=\s*[0-9]*",
    re.I,
)
_AT_BEST = re.compile(r"@\s*best\b|\bat best\b|[(（]\s*best\s*[)）]", re.I)
_WITHOUT = re.compile(r"\b(?:w/o|without|no|minus|except)\b|[-−–+＋]\s*[A-Za-z]|去掉|除去|不含|无", re.I)
_LEFT = re.compile(r"[A-Za-zÀ-ɏͰ-Ͽа-я0-9]+|[㐀-鿿]+|[<>≤≥≠]")
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_DRAWN = {
    "pm": "±",
    "times": "×",
    "Delta": "Δ",
    "delta": "δ",
    "uparrow": "↑",
    "downarrow": "↓",
    "gamma": "γ",
    "alpha": "α",
    "beta": "β",
    "lambda": "λ",
    "tau": "τ",
    "epsilon": "ε",
    "varepsilon": "ε",
    "eta": "η",
    "sigma": "σ",
    "mu": "μ",
    "leq": "≤",
    "geq": "≥",
    "le": "≤",
    "ge": "≥",
}
_WORDS = ("plain", "superlative", "derived", "change")  # kinds that name nothing
_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")  # keeps every place
_SHORT = 3  # a name below this many letters is a word like others


@dataclass(frozen=True, slots=True)
class NamesFound:
    configs: frozenset[str] = frozenset()
    weak: frozenset[str] = frozenset()  # configs by a part of their name that may be just a word
    splits: frozenset[str] = frozenset()
    metrics: frozenset[str] = frozenset()
    stats: frozenset[str] = frozenset()
    seeds: frozenset[str] = frozenset()
    counts: frozenset[int] = frozenset()  # of seeds: 2 seeds, n=2
    unknown: tuple[str, ...] = ()  # words that no list has
    derived: str = ""  # the word
    change: str = ""
    foreign: str = ""
    superlative: bool = False
    percent: bool = False
    scaled: bool = False
    at_best: bool = False
    strange: bool = False  # a config's name that goes on: v2_full_long, v2_full w/o cert
    longer: bool = False  # without a gap: v2_full-XL, v2_full++
    last: str = ""  # what was named last: name or foreign
    open_end: bool = False  # the last word is none that is known
    text: str = ""  # cleaned

    @property
    def all_configs(self) -> frozenset[str]:
        return self.configs | self.weak

    @property
    def any(self) -> bool:
        """Whether anything of the campaign is named."""
        return bool(self.configs or self.weak or self.splits or self.metrics or self.stats or self.seeds)

    @property
    def understood(self) -> bool:
        return not (self.unknown or self.derived or self.change or self.foreign or self.scaled or self.strange)


def strip_markup(text: str) -> str:
    """Without the signs of Markdown and LaTeX."""
    text = text.replace("\\_", "_").replace("\\%", "%").replace("\\&", "&")
    text = _COMMAND.sub(lambda found: _DRAWN.get(found[1], " "), text)
    return re.sub(r"[*`{}$\\]|<[^<>]*>", "", text.replace("~", " "))


def squeeze_name(text: str) -> str:
    return _SQUEEZE.sub("", text).lower()


class NameReader:
    """All names of a campaign, as people may write them."""

    def __init__(self, book: QuantityIndex) -> None:
        groups = book.groups.values()
        self.configs = sorted({group.config for group in groups})
        self.splits = sorted({group.split for group in groups if group.split})
        self.metrics = sorted({group.metric for group in groups})
        self.seeds = {each.seed for each in book.by_key.values() if each.stat == "value"}
        self.words_of_metrics = {word for metric in self.metrics for word in re.findall(r"[a-z]+", metric.lower())}
        self._best = any("best" in metric.lower() for metric in self.metrics)
        self._meanings: dict[str, list[tuple[str, str]]] = {}
        phrases: dict[str, None] = {}
        for kind, value, phrase in self._own():
            phrases[phrase] = None
            self._meanings.setdefault(squeeze_name(phrase), []).append((kind, value))
        own = set(self._meanings)
        for kind, value, phrase in self._common():
            if squeeze_name(phrase) not in own:
                phrases[phrase] = None
                meanings = self._meanings.setdefault(squeeze_name(phrase), [])
                meanings += [(kind, value)] if (kind, value) not in meanings else []
        self._pattern = _pattern_of_phrases(phrases)
        self._known: dict[str, NamesFound] = {}

    def _own(self) -> Iterator[tuple[str, str, str]]:
        """The campaign's names as they are declared."""
        for config in self.configs:
            short = len(squeeze_name(config)) < _SHORT or squeeze_name(config) in PLAIN
            yield ("weak" if short or config.replace(".", "").isdigit() else "config"), config, config
        for split in self.splits:
            yield "split", split, split
        for metric in self.metrics:
            yield "metric", metric, metric

    def _common(self) -> Iterator[tuple[str, str, str]]:
        """Other words for them, then words of the language."""
        yield from (("weak", config, part) for config, part in _config_name_endings(self.configs))
        for split in self.splits:
            yield from (("split", split, phrase) for phrase in _names_called(split, SPLITS))
        for metric in self.metrics:
            yield from (("metric", metric, phrase) for phrase in _names_called(metric, METRICS))
            heads = [each for each in self.metrics if _head_of_metric(each) == _head_of_metric(metric)]
            if len(heads) == 1 and _head_of_metric(metric) not in FOREIGN and len(_head_of_metric(metric)) >= _SHORT:
                yield "metric", metric, _head_of_metric(metric)
        yield from (("foreign", word, word) for word in self._others())
        for stat, words in STATS.items():
            yield from (("stat", stat, word) for word in words)
        for kind, listed in (
            ("derived", DERIVED),
            ("change", CHANGES),
            ("superlative", SUPERLATIVE),
            ("foreign", FOREIGN),
            ("plain", PLAIN),
        ):
            yield from ((kind, word, word) for word in listed)

    def _others(self) -> Iterator[str]:
        """Metrics and splits that people speak of and that this campaign has not."""
        mine = {
            squeeze_name(word)
            for metric in self.metrics
            for word in (*_names_called(metric, METRICS), _head_of_metric(metric))
        }
        for metric, words in METRICS.items():
            yield from (word for word in (metric, *words) if squeeze_name(word) not in mine)
        yield from (word for word in OTHER_METRICS if squeeze_name(word) not in mine)
        mine = {squeeze_name(word) for split in self.splits for word in _names_called(split, SPLITS)}
        yield from (word for words in SPLITS.values() for word in words if squeeze_name(word) not in mine)

    def read(self, text: str) -> NamesFound:
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self._read(text)
            if len(self._known) > 5_000:
                self._known.clear()
        return known

    def _read(self, raw: str) -> NamesFound:
        text = strip_markup(raw)
        exact = [config for config in self.configs if config == text.strip()]
        if exact:
            return NamesFound(configs=frozenset(exact), last="name", text=text)
        seeds, counts, rest = self._seeds(text)
        at_best = not self._best and _AT_BEST.search(rest) is not None
        rest = _AT_BEST.sub(" ", rest) if at_best else rest
        found: dict[str, list[str]] = {}
        left: list[str] = []
        last, end, longer, after_config = "", 0, False, False
        for match in self._pattern.finditer(rest.translate(_LOWER)):
            left.append(rest[end : match.start()])
            for kind, value in self._meaning(match[0]):
                found.setdefault(kind, []).append(value)
                last = kind if kind == "foreign" else last if kind in _WORDS else "name"
            config = self._names_config(match[0])
            longer |= (config and _name_began_before(left[-1])) or (after_config and _name_goes_on(left[-1]))
            after_config, end = config, match.end()
        left.append(rest[end:])
        longer |= after_config and _name_goes_on(left[-1])
        strange = longer
        if found.get("config") or found.get("weak"):
            strange |= any(_WITHOUT.search(piece) for piece in left)
        unknown = _LEFT.findall(" ".join(left))
        named = {kind: frozenset(values) for kind, values in found.items()}
        none: frozenset[str] = frozenset()
        return NamesFound(
            configs=named.get("config", none),
            weak=named.get("weak", none),
            splits=named.get("split", none),
            metrics=named.get("metric", none),
            stats=named.get("stat", none),
            seeds=frozenset(seeds),
            counts=frozenset(counts),
            unknown=tuple(unknown),
            derived=next(iter(found.get("derived", [])), ""),
            change=next(iter(found.get("change", [])), ""),
            foreign=next(iter(found.get("foreign", [])), ""),
            superlative="superlative" in found,
            percent="%" in text or "％" in text or "百分" in text or "percent" in text.lower(),
            scaled=SCALED.search(text) is not None,
            at_best=at_best,
            strange=strange,
            longer=longer,
            last=last,
            open_end=_LEFT.search(left[-1]) is not None,
            text=text,
        )

    def _meaning(self, matched: str) -> list[tuple[str, str]]:
        key = squeeze_name(matched)
        return self._meanings.get(key) or self._meanings.get(key.removesuffix("s"), [])

    def _names_config(self, matched: str) -> bool:
        return any(kind in ("config", "weak") for kind, _ in self._meaning(matched))

    def _seeds(self, text: str) -> tuple[set[str], set[int], str]:
        """Seeds that are named one by one, how many are spoken of, the text without them. All of them say nothing."""
        seeds: set[str] = set()
        for found in _SEEDS.finditer(text):
            listed = set(re.findall(r"[0-9]+", found["list"]))
            if not found["range"] and listed != self.seeds:
                seeds |= listed
        rest = _SEEDS.sub(" ", text)
        counts = {int(count) for found in _COUNTED.finditer(rest) for count in re.findall(r"[0-9]{1,9}", found[0])}
        return seeds, counts, _COUNTED.sub(" ", rest)


def _pattern_of_phrases(phrases: Iterable[str]) -> re.Pattern[str]:
    """One pattern, the longest phrase first. Words begin where no word goes on; Chinese has no such places.

    In lower case and with literals first: a text is searched for some hundred phrases at once."""
    words: list[str] = []
    others: list[str] = []
    for phrase in sorted(phrases, key=len, reverse=True):
        chunks = [chunk.translate(_LOWER) for chunk in _CHUNKS.findall(phrase)]
        if chunks:
            (words if re.match(r"[a-z0-9]", chunks[0]) else others).append(_pattern_of_phrase(chunks))
    parts = [rf"(?<![a-z0-9])(?:{'|'.join(words)})", *others]
    return re.compile("|".join(parts))


def _pattern_of_phrase(chunks: Sequence[str]) -> str:
    body = _GAP.join(map(re.escape, chunks))
    if re.search(r"[a-z]$", chunks[-1]):
        return body + r"s?(?![a-z0-9])"
    return body + r"(?![a-z0-9]|\.[0-9])" if re.search(r"[0-9]$", chunks[-1]) else body


def _names_called(name: str, table: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The name, its last part (eval/score), and other words for them."""
    for part in dict.fromkeys((name.lower(), re.split(r"[/.]", name.lower())[-1])):
        yield part
        yield from table.get(part, ())


def _head_of_metric(metric: str) -> str:
    """risk_penalty is also called risk."""
    chunks = _CHUNKS.findall(metric)
    return chunks[0].lower() if len(chunks) > 1 else ""


def _config_name_endings(configs: Iterable[str]) -> Iterator[tuple[str, str]]:
    """v2_full and v2_u_only are also called full and u_only."""
    split = {config: _CHUNKS.findall(config) for config in configs}
    if len(split) < 2:
        return
    shared = 0
    while all(len(chunks) > shared + 1 for chunks in split.values()):
        if len({chunks[shared].lower() for chunks in split.values()}) > 1:
            break
        shared += 1
    if shared:
        yield from ((config, "_".join(chunks[shared:])) for config, chunks in split.items())


def _name_goes_on(between: str) -> bool:
    """Whether the name before it goes on: v2_full_long, v2_full-XL, v2_full++."""
    return re.match(r"[_\-][A-Za-z0-9]|\+(?:[A-Za-z0-9+]|\s*$|\s*\|)", between) is not None


def _name_began_before(between: str) -> bool:
    return re.search(r"[A-Za-z0-9][_\-+]$", between) is not None
