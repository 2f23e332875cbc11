"""Red flags: what makes a table no result (ERROR), or one that needs a word beside it (WARN)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from muster.domain.wording import counted
from muster.stats.flag_types import Declared, Flag, Level, Made, Measured, Place
from muster.stats.flags_making import of_making
from muster.stats.groups import grouped
from muster.stats.sample import Sample
from muster.stats.units import Value, mixed_units

__all__ = ["Declared", "Flag", "Made", "Measured", "Place", "of_declaration", "of_making", "of_values"]

ALIKE = 1e-3  # of the spread: means and sds that agree so well are not independent
EXACT = 1e-9
RARE = 1e-4
LIKELY = 0.05
TOLD = 6


def of_values(samples: Sequence[Sample], measured: Sequence[Measured]) -> list[Flag]:
    """What the numbers show by themselves."""
    found = [*_not_finite(measured), *_duplicated(measured), *_changed(measured), *_units(measured)]
    for (split, metric), group in grouped(samples, lambda s: (s.split, s.metric)):
        alike = list(_same_configs(group, split, metric))
        told = {config for flag in alike for config in flag.cells}
        found += alike
        found += _no_spread([sample for sample in group if sample.sd or sample.config not in told])
    for (config, metric), group in grouped(samples, lambda s: (s.config, s.metric)):
        found += _same_splits(group, config, metric)
    return found


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
    if len(set(declared.picked.values())) > 1:
        best = ", ".join(metric for metric, step in declared.picked.items() if step == "best")
        last = ", ".join(metric for metric, step in declared.picked.items() if step == "last")
        text = f"{best} is that of the best step, {last} that of the last one"
        found.append(Flag("WARN", "best_beside_last", (), text, {"best": best, "last": last}))
    if declared.primary in declared.train_metrics:
        text = f"{declared.primary} is measured while training: it is no evaluation"
        found.append(Flag("WARN", "train_metric", (), text, {"metric": declared.primary}))
    for split, stands_for in declared.proxies.items():
        if not stands_for:
            text = f"{split} stands for something else: say for what, in its note"
            heads = dict.fromkeys(sample.split for sample in samples if split in sample.split.split("/"))
            place = Place(tuple(heads) or (split,))
            found.append(Flag("WARN", "proxy_undeclared", (split,), text, {"split": split}, place))
    if declared.withdrawn:
        shown = ", ".join(declared.withdrawn[:TOLD]) + (" ..." if len(declared.withdrawn) > TOLD else "")
        count = len(declared.withdrawn)
        done = counted(count, "cell was done and is", "cells were done and are")
        text = f"{done} no longer declared: {shown}"
        found.append(Flag("WARN", "withdrawn", declared.withdrawn, text, {"count": str(count), "cells": shown}))
    if declared.changed_at:
        done = counted(declared.changed_at, "cell was", "cells were")
        text = f"the decision was changed when {done} done: it is no longer declared beforehand"
        found.append(Flag("WARN", "decision_changed", (), text, {"count": str(declared.changed_at)}))
    costs = [value for sample in samples if sample.metric == declared.cost for value in sample.values]
    if costs and not any(costs):
        text = f"{declared.cost} is exactly 0 everywhere: is it measured at all?"
        place = Place(metric=str(declared.cost))
        found.append(Flag("WARN", "cost_zero", (), text, {"metric": str(declared.cost)}, place))
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
    for (config, seed, split), group in grouped(measured, lambda m: (m.config, m.seed, m.split)):
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


def _units(measured: Sequence[Measured]) -> Iterator[Flag]:
    """The campaign file knows no units: a rate that is 0.87 here and 87 there shows it by itself."""
    for split, group in grouped(measured, lambda m: m.split):
        for metric in dict.fromkeys(name for each in group for name in each.values):
            values = [
                Value(each.cell, each.config, value, each.episodes)
                for each in group
                if (value := each.values.get(metric)) is not None and math.isfinite(value)
            ]
            found = mixed_units(metric, values)
            if found is None:
                continue
            where = f"{split}/{metric}" if split else metric
            parts = {"where": where, "count": str(len(found.parts)), "part": f"{found.parts[0].value:g}",
                     "others": str(len(found.percents)), "percent": f"{found.percents[0].value:g}"}  # fmt: skip
            text = (
                f"{where}: mixed units: cells in parts of 1: {parts['count']}, such as {parts['part']}; "
                f"in percent: {parts['others']}, such as {parts['percent']}"
            )
            level: Level = "ERROR" if found.certain else "WARN"
            yield Flag(level, "mixed_units", tuple(each.cell for each in found.rarer), text, parts)


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
            level: Level = "WARN" if all(map(_by_chance, set_)) else "ERROR"
            where = f"{split}/{metric}" if split else metric
            text = f"{', '.join(names)} have {what} in {where}"
            parts = {"configs": ", ".join(names), "what": "values" if same_values else "moments", "where": where}
            yield Flag(level, "same_values", names, text, parts, Place((split,), metric, configs=names))


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
            level: Level = "WARN" if sample.on_a_lattice or (sample.grain and (sample.sd or sample.n == 2)) else "ERROR"
            parts = {"where": where, "seeds": ", ".join(same[0]) if sample.sd else ""}
            place = Place((sample.split,), sample.metric, same[0] if sample.sd else (), (sample.config,))
            yield Flag(level, "same_seeds", (sample.config,), text, parts, place)


def _same_splits(group: Sequence[Sample], config: str, metric: str) -> Iterator[Flag]:
    for a, b in combinations(group, 2):
        if a.n and _same_values(a, b):
            text = f"{config}: {metric} is the same on {a.split} and {b.split}"
            parts = {"config": config, "metric": metric, "splits": f"{a.split}, {b.split}"}
            place = Place((a.split, b.split), metric, configs=(config,))
            yield Flag("WARN", "same_splits", (config,), text, parts, place)
