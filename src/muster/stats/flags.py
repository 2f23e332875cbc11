"""Red flags: what makes a table no result (ERROR), or one that needs a word beside it (WARN)."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import Literal, TypeVar

from muster.stats.sample import Sample

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
ALIKE = 1e-3  # of the spread: means and sds that agree so well are not independent
EXACT = 1e-9
RARE = 1e-4
LIKELY = 0.05
TOLD = 6
FEW_EPISODES = 10


@dataclass(frozen=True, slots=True)
class Flag:
    level: Literal["ERROR", "WARN"]
    code: str
    cells: tuple[str, ...]  # or configs, where the flag is about those
    message: str
    parts: Mapping[str, str] = field(default_factory=dict)  # what the message is made of, for other languages


@dataclass(frozen=True, slots=True)
class Measured:
    """One cell's results as they were read, before anything is averaged; None: not finite."""

    cell: str
    config: str
    seed: str
    split: str
    values: Mapping[str, float | None]
    now: Mapping[str, float] | None = None  # what its files say today; None: nobody looked


@dataclass(frozen=True, slots=True)
class Made:
    """How one cell came about. None: not known, which raises no flag."""

    cell: str
    config: str
    seed: str
    job: str = ""
    trained: bool = True  # False: it evaluates what others trained
    checkpoint: str | None = None  # hash of the one that was evaluated
    saved_share: float | None = None  # of the training, when it was saved
    saved_early: bool = False  # by the declared proof: at the start, or before the end of the training
    curve: str | None = None  # hash of the learning curve
    steps: float | None = None  # budget
    settings: str | None = None  # hash of the resolved config without names and places
    unlabelled: str | None = None  # and without values that are the config's own name
    label: str | None = None  # what the config file calls itself
    commit: str | None = None
    dirty: str | None = None  # hash of the diff
    best_step: float | None = None
    eval_steps: tuple[float, ...] = ()
    episodes: int | None = None
    another: tuple[str, ...] = ()  # cells whose results name another checkpoint than this one
    written_after: tuple[str, ...] = ()  # cells that had been evaluated when it was last written


@dataclass(frozen=True, slots=True)
class Declared:
    """What the campaign says about its own numbers."""

    checkpoint: str = "last"  # last | best
    best_by: str | None = None
    primary: str = ""
    cost: str | None = None
    splits: tuple[str, ...] = ()
    proxies: Mapping[str, str] = field(default_factory=dict)  # split -> what it stands for
    train_metrics: frozenset[str] = frozenset()  # results of jobs that train
    withdrawn: tuple[str, ...] = ()  # cells that were done and are no longer declared
    changed_at: int = 0  # cells that were done when the decision was last changed; 0: it was declared before


def of_values(samples: Sequence[Sample], measured: Sequence[Measured]) -> list[Flag]:
    """What the numbers show by themselves."""
    found = [*_not_finite(measured), *_duplicated(measured), *_changed(measured)]
    for (split, metric), group in _grouped(samples, lambda s: (s.split, s.metric)):
        alike = list(_same_configs(group, split, metric))
        told = {config for flag in alike for config in flag.cells}
        found += alike
        found += _no_spread([sample for sample in group if sample.sd or sample.config not in told])
    for (config, metric), group in _grouped(samples, lambda s: (s.config, s.metric)):
        found += _same_splits(group, config, metric)
    return found


def of_making(made: Sequence[Made]) -> list[Flag]:
    """What the way they were made shows."""
    return [
        *_shared(made, "checkpoint", "one_checkpoint", "the same checkpoint was evaluated for"),
        *_shared(made, "curve", "one_curve", "the same learning curve lies under"),
        *_saved_early(made),
        *_other_checkpoint(made),
        *_mixed(made, "steps", "ERROR", "mixed_steps", "step budgets differ between cells"),
        *_same_settings(made, "settings", "ERROR", "same_settings", "differ in nothing but their names"),
        *_same_settings(made, "unlabelled", "WARN", "same_but_label", "differ in nothing but a label: their own name"),
        *_labels(made),
        *_mixed(made, "commit", "WARN", "mixed_commits", "cells were made by different commits"),
        *_mixed(made, "dirty", "WARN", "mixed_code", "cells were made by different working trees"),
        *_mixed(made, "episodes", "WARN", "mixed_episodes", "cells were evaluated on different numbers of episodes"),
        *_few_episodes(made),
        *_best_at_an_end(made),
    ]


def of_declaration(declared: Declared, samples: Sequence[Sample]) -> list[Flag]:
    """What the declaration leaves open."""
    found = []
    if declared.best_by is not None and declared.best_by == declared.primary:
        text = f"the best checkpoint is chosen by {declared.primary}, the metric that is reported: it is too good"
        found.append(Flag("WARN", "best_on_reported", (), text, {"metric": declared.primary}))
    metrics = {sample.metric for sample in samples}
    if declared.checkpoint == "best" and declared.cost in metrics:
        text = f"{declared.cost} is that of the best checkpoint; at the last one it may be another"
        found.append(Flag("WARN", "cost_at_best", (), text, {"metric": str(declared.cost)}))
    if declared.primary in declared.train_metrics:
        text = f"{declared.primary} is measured while training: it is no evaluation"
        found.append(Flag("WARN", "train_metric", (), text, {"metric": declared.primary}))
    for split, stands_for in declared.proxies.items():
        if not stands_for:
            text = f"{split} stands for something else: say for what, in its note"
            found.append(Flag("WARN", "proxy_undeclared", (split,), text, {"split": split}))
    if declared.withdrawn:
        shown = ", ".join(declared.withdrawn[:TOLD]) + (" ..." if len(declared.withdrawn) > TOLD else "")
        count = len(declared.withdrawn)
        text = f"{count} cells were done and are no longer declared: {shown}"
        found.append(Flag("WARN", "withdrawn", declared.withdrawn, text, {"count": str(count), "cells": shown}))
    if declared.changed_at:
        text = (
            f"the decision was changed when {declared.changed_at} cells were done: it is no longer declared beforehand"
        )
        found.append(Flag("WARN", "decision_changed", (), text, {"count": str(declared.changed_at)}))
    costs = [value for sample in samples if sample.metric == declared.cost for value in sample.values]
    if costs and not any(costs):
        text = f"{declared.cost} is exactly 0 everywhere: is it measured at all?"
        found.append(Flag("WARN", "cost_zero", (), text, {"metric": str(declared.cost)}))
    return found


# -- values


def _not_finite(measured: Iterable[Measured]) -> Iterator[Flag]:
    for each in measured:
        wrong = [name for name, value in each.values.items() if value is None or not math.isfinite(value)]
        if wrong:
            names = ", ".join(wrong)
            text = f"{each.cell}: {names} is not a finite number"
            yield Flag("ERROR", "not_finite", (each.cell,), text, {"cell": each.cell, "metric": names})


def _duplicated(measured: Sequence[Measured]) -> Iterator[Flag]:
    for (config, seed, split), group in _grouped(measured, lambda m: (m.config, m.seed, m.split)):
        if len(group) > 1:
            cells = tuple(each.cell for each in group)
            where = "/".join(part for part in (config, seed, split) if part)
            text = f"{where} was measured {len(group)} times"
            yield Flag("ERROR", "duplicated_cell", cells, text, {"where": where, "times": str(len(group))})


def _changed(measured: Iterable[Measured]) -> Iterator[Flag]:
    """The record keeps what was read when the cell ended: a number that no file vouches for any more is none."""
    for each in measured:
        if each.now is None:
            continue
        lost = [name for name in each.values if name not in each.now]
        other = [
            f"{name} {value:g} -> {each.now[name]:g}"
            for name, value in each.values.items()
            if name in each.now and value is not None and not math.isclose(value, each.now[name], rel_tol=EXACT)
        ]
        if lost:
            text = f"{each.cell}: {', '.join(lost)} can't be read any more: its file is gone or damaged"
            yield Flag("ERROR", "lost_result", (each.cell,), text, {"cell": each.cell, "metric": ", ".join(lost)})
        if other:
            text = f"{each.cell}: its result file was changed after the cell ended: {', '.join(other)}"
            yield Flag("ERROR", "changed_result", (each.cell,), text, {"cell": each.cell, "what": ", ".join(other)})


def _same_configs(group: Sequence[Sample], split: str, metric: str) -> Iterator[Flag]:
    """Configs that agree where independent ones can't, each set of them told once."""
    alike: list[list[Sample]] = []
    for sample in group:
        home = next((set_ for set_ in alike if _alike(set_[0], sample)), None)
        if home is None:
            alike.append([sample])
        else:
            home.append(sample)
    for set_ in alike:
        if len(set_) > 1:
            names = tuple(sample.config for sample in set_)
            same_values = all(_same_values(set_[0], sample) for sample in set_[1:])
            what = "the same value for every seed" if same_values else "the same mean and sd"
            level: Literal["ERROR", "WARN"] = "WARN" if all(map(_by_chance, set_)) else "ERROR"
            where = f"{split}/{metric}" if split else metric
            text = f"{', '.join(names)} have {what} in {where}"
            parts = {"configs": ", ".join(names), "what": "values" if same_values else "moments", "where": where}
            yield Flag(level, "same_values", names, text, parts)


def _ties_are_likely(sample: Sample) -> bool:
    """Of means over a known number of episodes, with the spread that is seen: not even worth a word."""
    pairs = sample.n * (sample.n - 1) / 2
    return not sample.on_a_lattice and bool(sample.grain and sample.sd) and pairs * _meeting(sample) >= LIKELY


def _meeting(sample: Sample) -> float:
    """The chance that two seeds of one normal distribution fall on the same multiple."""
    return min(1.0, 1 / ((sample.grain or 1) * (sample.sd or math.inf) * math.sqrt(4 * math.pi)))


def _by_chance(sample: Sample) -> bool:
    """Whether another config may well have the same: integers, or so coarse means that all seeds agree by chance."""
    if sample.on_a_lattice or not sample.grain:
        return sample.on_a_lattice
    if not sample.sd:
        return sample.n <= 2
    return _meeting(sample) ** sample.n >= RARE


def _alike(a: Sample, b: Sample) -> bool:
    if a.n < 2 or b.n < 2:
        return a.n == b.n == 1 and _same_values(a, b)
    if _same_values(a, b):
        return True
    spread = max(a.sd or 0.0, b.sd or 0.0)
    if not spread or a.sd is None or b.sd is None:
        return a.mean == b.mean
    return abs(a.mean - b.mean) <= ALIKE * spread and abs(a.sd - b.sd) <= ALIKE * spread


def _same_values(a: Sample, b: Sample) -> bool:
    return a.by_seed.keys() == b.by_seed.keys() and all(
        math.isclose(a.by_seed[seed], b.by_seed[seed], rel_tol=EXACT) for seed in a.by_seed
    )


def _no_spread(group: Iterable[Sample]) -> Iterator[Flag]:
    for sample in group:
        same = [
            (a, b) for (a, x), (b, y) in combinations(sample.by_seed.items(), 2) if math.isclose(x, y, rel_tol=EXACT)
        ]
        if same and not _ties_are_likely(sample):
            seeds = " and ".join(same[0])
            where = "/".join(part for part in (sample.config, sample.split, sample.metric) if part)
            text = f"{where}: seeds {seeds} have the same value" if sample.sd else f"{where}: all seeds are the same"
            level: Literal["ERROR", "WARN"] = (
                "WARN" if sample.on_a_lattice or (sample.grain and (sample.sd or sample.n == 2)) else "ERROR"
            )
            parts = {"where": where, "seeds": ", ".join(same[0]) if sample.sd else ""}
            yield Flag(level, "same_seeds", (sample.config,), text, parts)


def _same_splits(group: Sequence[Sample], config: str, metric: str) -> Iterator[Flag]:
    for a, b in combinations(group, 2):
        if a.n and _same_values(a, b):
            text = f"{config}: {metric} is the same on {a.split} and {b.split}"
            parts = {"config": config, "metric": metric, "splits": f"{a.split}, {b.split}"}
            yield Flag("WARN", "same_splits", (config,), text, parts)


# -- making


def _shared(made: Sequence[Made], field_: str, code: str, told: str) -> Iterator[Flag]:
    for _, group in _grouped((each for each in made if getattr(each, field_)), lambda m: str(getattr(m, field_))):
        cells = tuple(dict.fromkeys(each.cell for each in group))
        if len(cells) > 1:
            yield Flag("ERROR", code, cells, f"{told} {', '.join(cells)}", {"cells": ", ".join(cells)})


def _saved_early(made: Iterable[Made]) -> Iterator[Flag]:
    for each in made:
        if each.saved_early:
            when = "" if each.saved_share is None else f", at {int(each.saved_share * 100)} % of it"
            text = f"{each.cell}: its checkpoint was saved before the end of its training{when}: untrained weights?"
            share = "" if each.saved_share is None else str(int(each.saved_share * 100))
            yield Flag("ERROR", "early_checkpoint", (each.cell,), text, {"cell": each.cell, "percent": share})


def _other_checkpoint(made: Iterable[Made]) -> Iterator[Flag]:
    for each in made:
        if each.another:
            cells = ", ".join(each.another)
            text = f"{each.cell}: {cells} evaluated another checkpoint than the one that is there now"
            yield Flag("ERROR", "other_checkpoint", each.another, text, {"cell": each.cell, "cells": cells})
        elif each.written_after:
            cells = ", ".join(each.written_after)
            text = f"{each.cell}: its checkpoint was written again after it had been evaluated by {cells}"
            yield Flag("ERROR", "checkpoint_changed", each.written_after, text, {"cell": each.cell, "cells": cells})


def _mixed(made: Sequence[Made], field_: str, level: Literal["ERROR", "WARN"], code: str, told: str) -> Iterator[Flag]:
    """Within a job: a fine-tuning is shorter than the training before it."""
    for _, of_job in _grouped((each for each in made if getattr(each, field_) is not None), lambda m: m.job):
        groups = list(_grouped(of_job, lambda m: getattr(m, field_)))
        if len(groups) > 1:
            rarest = min(groups, key=lambda item: len(item[1]))
            cells = tuple(each.cell for each in rarest[1])
            shown = ", ".join(f"{len(group)} x {str(value)[:12]}" for value, group in groups)
            yield Flag(level, code, cells, f"{told}: {shown}", {"groups": shown})


def _same_settings(
    made: Sequence[Made], field_: str, level: Literal["ERROR", "WARN"], code: str, words: str
) -> Iterator[Flag]:
    known = (each for each in made if getattr(each, field_))
    for (_, seed), group in _grouped(known, lambda m: (m.job, m.seed)):
        for _, same in _grouped(group, partial(_text_of, field_)):
            configs = tuple(dict.fromkeys(each.config for each in same))
            whole = len({each.settings for each in same}) == 1  # told as the graver of the two
            if len(configs) > 1 and whole == (field_ == "settings"):
                text = f"{', '.join(configs)} (seed {seed}) {words}"
                parts = {"configs": ", ".join(configs), "seed": seed}
                yield Flag(level, code, tuple(each.cell for each in same), text, parts)


def _text_of(field_: str, made: Made) -> str:
    return str(getattr(made, field_))


def _labels(made: Iterable[Made]) -> Iterator[Flag]:
    for each in made:
        if each.label is not None and each.label != each.config:
            text = f"{each.cell}: its own config calls it {each.label}"
            yield Flag("ERROR", "label_contradicts", (each.cell,), text, {"cell": each.cell, "label": each.label})


def _few_episodes(made: Sequence[Made]) -> Iterator[Flag]:
    few = [each for each in made if each.episodes is not None and each.episodes < FEW_EPISODES]
    if few:
        least = min(each.episodes or 0 for each in few)
        text = f"{len(few)} cells were evaluated on few episodes: {least} at the least"
        parts = {"count": str(len(few)), "least": str(least)}
        yield Flag("WARN", "few_episodes", tuple(each.cell for each in few), text, parts)


def _best_at_an_end(made: Iterable[Made]) -> Iterator[Flag]:
    for each in made:
        if each.best_step is None or len(each.eval_steps) < 2:
            continue
        for end, step in (("first", each.eval_steps[0]), ("last", each.eval_steps[-1])):
            if each.best_step == step:
                text = f"{each.cell}: the best step is the {end} evaluation"
                yield Flag("WARN", "best_at_an_end", (each.cell,), text, {"cell": each.cell, "end": end})


def _grouped(items: Iterable[T], key: Callable[[T], K]) -> Iterable[tuple[K, list[T]]]:
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups.items()
