"""Red flags: what makes a table no result (ERROR), or one that needs a word beside it (WARN)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from muster.domain.wording import counted
from muster.stats.flag_types import Acceptance, Declared, Flag, Level, Made, Measured, Place, Redone
from muster.stats.flags_making import of_making
from muster.stats.groups import grouped
from muster.stats.sample import Sample
from muster.stats.ties import ALIKE, Scale, TieColumn, Ties, chance_of_twins, find_ties, tie_columns
from muster.stats.units import Value, mixed_units

__all__ = ["Acceptance", "Declared", "Flag", "Made", "Measured", "Place", "of_declaration", "of_making", "of_values"]

FEW = 6  # cells that a message names
EXACT = 1e-9
LARGEST = 1e100  # of a number that can be squared and summed
RARE = 1e-4
LIKELY = 0.05
TOLD = 6  # cells in a sentence


def of_values(
    samples: Sequence[Sample], measured: Sequence[Measured], scales: Mapping[str, Scale] | None = None
) -> list[Flag]:
    """What the numbers show by themselves. `scales`: what is declared of metrics."""
    found = [*_not_finite(measured), *_duplicated(measured), *_changed(measured), *_units(measured)]
    columns = tie_columns(samples, scales or {})
    alike = [flag for column in columns for flag in _same_configs(column, len(columns))]
    places = [flag.place for flag in alike if flag.place]
    told = {(config, place.splits[0], place.metric) for place in places for config in place.configs}
    found += alike
    found += _same_seeds(find_ties(columns), told)
    found += _same_rows(columns, measured, [flag.cells for flag in alike if flag.level == "ERROR"])
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
            text = f"{split} stands for something else: say for what, in its `proxy:`"
            heads = dict.fromkeys(sample.split for sample in samples if split in sample.split.split("/"))
            place = Place(tuple(heads) or (split,))
            found.append(Flag("WARN", "proxy_undeclared", (split,), text, {"split": split}, place))
    found.extend(_redone(declared.redone))
    found.extend(_recovered(declared.recovered))
    if declared.changed_at:
        done = counted(declared.changed_at, "cell was", "cells were")
        text = (
            f"the decision, or how its metrics are read, was changed when {done} done: it was not declared beforehand"
        )
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
        wrong = [name for name, value in each.values.items() if value is None or not abs(value) <= LARGEST]
        if wrong:
            names = ", ".join(wrong)
            text = f"{each.cell}: {names} is not a finite number, or too large to compute with"
            parts = {"cell": each.cell, "metric": names}
            yield Flag("ERROR", "not_finite", (each.cell,), text, parts, metrics=tuple(wrong), acceptable=False)


def _duplicated(measured: Sequence[Measured]) -> Iterator[Flag]:
    for (config, seed, split), group in grouped(measured, lambda m: (m.config, m.seed, m.split)):
        if len(group) > 1:
            cells = tuple(each.cell for each in group)
            where = "/".join(part for part in (config, seed, split) if part)
            text = f"{where} was measured {len(group)} times"
            parts = {"where": where, "times": str(len(group))}
            yield Flag("ERROR", "duplicated_cell", cells, text, parts, acceptable=False)


def _changed(measured: Iterable[Measured]) -> Iterator[Flag]:
    """The record keeps what was read when the cell ended: a number that no file vouches for any more is none."""
    for each in measured:
        if each.now is None:
            continue
        lost = [name for name in each.values if name not in each.now]
        other = {
            name: f"{name} {value:g} -> {each.now[name]:g}"
            for name, value in each.values.items()
            if name in each.now and value is not None and not math.isclose(value, each.now[name], rel_tol=EXACT)
        }
        if lost:
            why = each.unread or "its file is not there"
            text = f"{each.cell}: {', '.join(lost)} can't be read any more: {why}"
            parts = {"cell": each.cell, "metric": ", ".join(lost), "why": why}
            yield Flag("ERROR", "lost_result", (each.cell,), text, parts, metrics=tuple(lost))
        if other:
            shown = ", ".join(other.values())
            text = f"{each.cell}: its result file was changed after the cell ended: {shown}"
            parts = {"cell": each.cell, "what": shown}
            yield Flag("ERROR", "changed_result", (each.cell,), text, parts, metrics=tuple(other))


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
            cells = tuple(each.cell for each in found.rarer)
            yield Flag(level, "mixed_units", cells, text, parts, metrics=(metric,), acceptable=level == "WARN")


def _same_configs(column: TieColumn, columns: int) -> Iterator[Flag]:
    """Configs that agree where independent ones can't, each set of them told once."""
    alike: list[list[Sample]] = []
    for sample in column.samples:
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
            chance = chance_of_twins(column, set_, columns)
            if not same_values and chance >= LIKELY:
                continue
            text = f"{', '.join(names)} have {what} in {column.where} ({_chance_words(chance)})"
            parts = {"configs": ", ".join(names), "what": "values" if same_values else "moments",
                     "where": column.where, "chance": chance_shown(chance)}  # fmt: skip
            place = Place((column.split,), column.metric, configs=names)
            yield Flag("ERROR" if chance < RARE else "WARN", "same_values", names, text, parts, place)


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


def _same_seeds(found: Iterable[Ties], told: Collection[tuple[str, str, str]]) -> Iterator[Flag]:
    """`told`: places whose configs agree with others already, seed by seed."""
    for ties in found:
        sample = ties.sample
        if not ties.whole and (ties.bound or ties.chance >= LIKELY):
            continue  # not even worth a word
        if ties.whole and ties.chance >= RARE and (sample.config, sample.split, sample.metric) in told:
            continue
        where = "/".join(part for part in (sample.config, sample.split, sample.metric) if part)
        said = "all seeds are the same" if ties.whole else f"seeds {' and '.join(ties.seeds)} have the same value"
        shown = chance_shown(ties.chance)
        why = "at a bound of the metric" if ties.bound else _chance_words(ties.chance)
        seeds = () if ties.whole else ties.seeds
        parts = {"where": where, "seeds": ", ".join(seeds), "chance": "" if ties.bound else shown}
        place = Place((sample.split,), sample.metric, seeds, (sample.config,))
        level: Level = "ERROR" if ties.chance < RARE else "WARN"
        yield Flag(level, "same_seeds", (sample.config,), f"{where}: {said} ({why})", parts, place)


def _chance_words(chance: float) -> str:
    return f"chance of that: {chance_shown(chance)}"


def chance_shown(chance: float) -> str:
    """`3e-07`, `0.02`, `below 1e-12`"""
    return "below 1e-12" if chance < 1e-12 else f"{chance:.1g}"


def _same_rows(
    columns: Sequence[TieColumn], measured: Sequence[Measured], told: Sequence[Sequence[str]]
) -> Iterator[Flag]:
    """Runs whose results agree in every column. `told`: configs that are known to agree as a whole."""
    by_place = {(column.split, column.metric): column for column in columns}
    rows: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    cells: dict[tuple[str, str], list[str]] = {}
    for each in measured:
        own = (each.config, each.seed)
        known = {name: value for name, value in each.values.items() if value is not None and math.isfinite(value)}
        rows.setdefault(own, {}).update({(each.split, name): value for name, value in known.items()})
        cells.setdefault(own, []).append(each.cell)
    for _, group in grouped(rows, lambda own: tuple(sorted((at, f"{v:.12g}") for at, v in rows[own].items()))):
        configs = {config for config, _ in group}
        if len(group) < 2 or not rows[group[0]] or any(configs <= set(names) for names in told if len(configs) > 1):
            continue
        chance = math.comb(len(rows), 2) * math.prod(
            max(column.meeting(config) for config in configs) ** (len(group) - 1)
            for at, value in rows[group[0]].items()
            if (column := by_place.get(at)) is not None and not column.at_bound(value)
        )
        if chance < RARE:
            names = tuple(cell for own in group for cell in cells[own])
            shown = ", ".join("/".join(part for part in own if part) for own in group)
            text = f"{shown} have the same results in every column ({_chance_words(chance)})"
            yield Flag("ERROR", "same_row", names, text, {"runs": shown, "chance": chance_shown(chance)})


def _same_splits(group: Sequence[Sample], config: str, metric: str) -> Iterator[Flag]:
    for a, b in combinations(group, 2):
        if a.n and _same_values(a, b):
            text = f"{config}: {metric} is the same on {a.split} and {b.split}"
            parts = {"config": config, "metric": metric, "splits": f"{a.split}, {b.split}"}
            place = Place((a.split, b.split), metric, configs=(config,))
            yield Flag("WARN", "same_splits", (config,), text, parts, place)


def _redone(redone: Sequence[Redone]) -> Iterator[Flag]:
    """By reason: who ran which seeds again after their results had been seen, how often, and what they were."""
    for why in dict.fromkeys(each.why for each in redone):
        meant = [each for each in redone if each.why == why]
        cells = tuple(each.cell for each in meant)
        shown = "; ".join(map(_all_values, meant[:FEW])) + (" ..." if len(cells) > FEW else "")
        done = counted(len(cells), "cell was", "cells were")
        text = f"{done} run again after being DONE ({shown}): {why}"
        yield Flag("WARN", "redone", cells, text, {"count": str(len(cells)), "cells": shown, "why": why})


def _all_values(each: Redone) -> str:
    """`eval/new/0: 1.2 -> 3.4 -> 2.2`: every result that it ever had."""
    if any(value is not None for value in each.values):
        return f"{each.cell}: " + " -> ".join("?" if value is None else f"{value:.4g}" for value in each.values)
    return f"{each.cell} x {len(each.values)}" if len(each.values) > 2 else each.cell


def _recovered(cells: Sequence[str]) -> Iterator[Flag]:
    if cells:
        shown = ", ".join(cells[:FEW]) + (" ..." if len(cells) > FEW else "")
        text = f"{counted(len(cells), 'cell')} diverged and ran again until DONE, by the same definition: {shown}"
        yield Flag("WARN", "recovered", tuple(cells), text, {"count": str(len(cells)), "cells": shown})
