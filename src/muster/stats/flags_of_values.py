"""Red flags about values: not finite, equal where chance can't explain it, in mixed units (a rate as 0.87 in some
cells and as 87 in others), changed or chosen by running again. ERROR makes a table no result, WARN needs a word
beside it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from muster.stats.coincidences import (
    ALIKE,
    MetricScale,
    SeedTies,
    TieColumn,
    build_tie_columns,
    chance_of_twin_configs,
    find_seed_ties,
)
from muster.stats.red_flags import DeclaredMetrics, FlagLevel, FlagPlace, MeasuredCell, RedFlag, RedoneCell
from muster.stats.samples import Sample, group_by_key
from muster.text.phrases import phrase

NEAR_RATIO = 1.25  # largest over smallest, once all are in percent: seeds of one config lie closer than a factor of 100
_RATE_WORDS = frozenset(
    {
        "acc",
        "accuracy",
        "auc",
        "auroc",
        "coverage",
        "f1",
        "fraction",
        "iou",
        "miou",
        "pct",
        "percent",
        "percentage",
        "precision",
        "prob",
        "probability",
        "ratio",
        "recall",
        "share",
        "success",
        "win",
    }
)
_WORD_PATTERN = re.compile(r"[a-z]+[0-9]*")


@dataclass(frozen=True, slots=True)
class CellValue:
    cell: str
    config: str
    value: float
    episodes: int = 1  # that it is the mean of; 1: not known


@dataclass(frozen=True, slots=True)
class MixedUnits:
    parts: tuple[CellValue, ...]  # of 1
    percents: tuple[CellValue, ...]
    certain: bool  # False: no config has both, so that it may be a difference between configs

    @property
    def rarer(self) -> tuple[CellValue, ...]:
        """Those that are probably wrong; all, where nothing says which."""
        if len(self.parts) == len(self.percents):
            return (*self.parts, *self.percents)
        return min(self.parts, self.percents, key=len)


def find_mixed_units(metric: str, values: Sequence[CellValue]) -> MixedUnits | None:
    """Of one metric on one split. None: nothing that could not be so by nature.

    Seeds of one config that differ by a factor of 100 and agree once it is taken out: no chance where the metric is
    called a rate, or where two cells stand on either side. Between configs it may be a real difference.
    """
    if not all(0 <= each.value <= 100 for each in values):
        return None
    rate = is_named_like_rate(metric)
    least = 1 if rate else 2
    sides = [_split_parts_and_percents(group) for _, group in group_by_key(values, lambda each: each.config)]
    within = [each for each in sides if min(map(len, each)) >= least and _agree_in_percent(*each)]
    if within:
        return MixedUnits(tuple(v for a, _ in within for v in a), tuple(v for _, b in within for v in b), certain=True)
    parts, percents = _split_parts_and_percents(values)
    if rate and min(len(parts), len(percents)) >= 2 and _agree_in_percent(parts, percents):
        return MixedUnits(tuple(parts), tuple(percents), certain=False)
    return None


def is_named_like_rate(metric: str) -> bool:
    """By its name: success_rate, eval/accuracy, 成功率."""
    words = _WORD_PATTERN.findall(metric.lower())
    return "率" in metric or any(word in _RATE_WORDS or word.endswith(("rate", "rates")) for word in words)


def _split_parts_and_percents(values: Sequence[CellValue]) -> tuple[list[CellValue], list[CellValue]]:
    """0 and 1 may be either, and so may what so many episodes make in percent, too."""
    parts = [each for each in values if 0 < each.value < 1 and not _may_be_in_percent(each)]
    return parts, [each for each in values if each.value > 1]


def _may_be_in_percent(each: CellValue) -> bool:
    hits = each.value * each.episodes / 100
    return each.episodes > 1 and abs(hits - round(hits)) < 1e-6 * max(1.0, hits)


def _agree_in_percent(parts: Sequence[CellValue], percents: Sequence[CellValue]) -> bool:
    scaled = [*(100 * each.value for each in parts), *(each.value for each in percents)]
    return max(scaled) <= NEAR_RATIO * min(scaled)


MOST_CELLS_IN_MESSAGE = 6  # cells that a message names
EXACT_TOLERANCE = 1e-9
LARGEST_NUMBER = 1e100  # of a number that can be squared and summed
RARE_CHANCE = 1e-4
LIKELY_CHANCE = 0.05


def flag_values(
    samples: Sequence[Sample], measured: Sequence[MeasuredCell], scales: Mapping[str, MetricScale] | None = None
) -> list[RedFlag]:
    """What the numbers show by themselves. `scales`: what is declared of metrics."""
    found = [
        *_flag_not_finite(measured),
        *_flag_duplicated_cells(measured),
        *_flag_changed_results(measured),
        *_flag_mixed_units(measured),
    ]
    columns = build_tie_columns(samples, scales or {})
    alike = [flag for column in columns for flag in _flag_same_configs(column, len(columns))]
    places = [flag.place for flag in alike if flag.place]
    told = {(config, place.splits[0], place.metric) for place in places for config in place.configs}
    found += alike
    found += _flag_same_seeds(find_seed_ties(columns), told)
    found += _flag_same_rows(columns, measured, [flag.cells for flag in alike if flag.level == "ERROR"])
    for (config, metric), group in group_by_key(samples, lambda s: (s.config, s.metric)):
        found += _flag_same_splits(group, config, metric)
    return found


def flag_declaration(declared: DeclaredMetrics, samples: Sequence[Sample]) -> list[RedFlag]:
    """What the declaration leaves open."""
    found = []
    if declared.best_by is not None and declared.best_by == declared.primary:
        text = f"the best checkpoint is chosen by {declared.primary}, the metric that is reported: it is too good"
        found.append(RedFlag("WARN", "best_on_reported", (), text, {"metric": declared.primary}))
    metrics = {sample.metric for sample in samples}
    if declared.checkpoint == "best" and declared.cost in metrics:
        text = f"{declared.cost} is that of the best checkpoint; at the last one it may be another"
        found.append(RedFlag("WARN", "cost_at_best", (), text, {"metric": str(declared.cost)}))
    if len(set(declared.picked.values())) > 1:
        best = ", ".join(metric for metric, step in declared.picked.items() if step == "best")
        last = ", ".join(metric for metric, step in declared.picked.items() if step == "last")
        text = f"{best} is that of the best step, {last} that of the last one"
        found.append(RedFlag("WARN", "best_beside_last", (), text, {"best": best, "last": last}))
    if declared.primary in declared.train_metrics:
        text = f"{declared.primary} is measured while training: it is no evaluation"
        found.append(RedFlag("WARN", "train_metric", (), text, {"metric": declared.primary}))
    for split, stands_for in declared.proxies.items():
        if not stands_for:
            text = f"{split} stands for something else: say for what, in its `proxy:`"
            heads = dict.fromkeys(sample.split for sample in samples if split in sample.split.split("/"))
            place = FlagPlace(tuple(heads) or (split,))
            found.append(RedFlag("WARN", "proxy_undeclared", (split,), text, {"split": split}, place))
    found.extend(_flag_redone_cells(declared.redone))
    found.extend(_flag_recovered_cells(declared.recovered))
    if declared.changed_at:
        done = phrase("count.cell_was", n=declared.changed_at)
        text = (
            f"the decision, or how its metrics are read, was changed when {done} done: it was not declared beforehand"
        )
        found.append(RedFlag("WARN", "decision_changed", (), text, {"count": str(declared.changed_at)}))
    costs = [value for sample in samples if sample.metric == declared.cost for value in sample.values]
    if costs and not any(costs):
        text = f"{declared.cost} is exactly 0 everywhere: is it measured at all?"
        place = FlagPlace(metric=str(declared.cost))
        found.append(RedFlag("WARN", "cost_zero", (), text, {"metric": str(declared.cost)}, place))
    return found


# -- values


def _flag_not_finite(measured: Iterable[MeasuredCell]) -> Iterator[RedFlag]:
    for each in measured:
        wrong = [name for name, value in each.values.items() if value is None or not abs(value) <= LARGEST_NUMBER]
        if wrong:
            names = ", ".join(wrong)
            text = f"{each.cell}: {names} is not a finite number, or too large to compute with"
            parts = {"cell": each.cell, "metric": names}
            yield RedFlag("ERROR", "not_finite", (each.cell,), text, parts, metrics=tuple(wrong), acceptable=False)


def _flag_duplicated_cells(measured: Sequence[MeasuredCell]) -> Iterator[RedFlag]:
    for (config, seed, split), group in group_by_key(measured, lambda m: (m.config, m.seed, m.split)):
        if len(group) > 1:
            cells = tuple(each.cell for each in group)
            where = "/".join(part for part in (config, seed, split) if part)
            text = f"{where} was measured {len(group)} times"
            parts = {"where": where, "times": str(len(group))}
            yield RedFlag("ERROR", "duplicated_cell", cells, text, parts, acceptable=False)


def _flag_changed_results(measured: Iterable[MeasuredCell]) -> Iterator[RedFlag]:
    """The record keeps what was read when the cell ended: a number that no file vouches for any more is none."""
    for each in measured:
        if each.now is None:
            continue
        lost = [name for name in each.values if name not in each.now]
        other = {
            name: f"{name} {value:g} -> {each.now[name]:g}"
            for name, value in each.values.items()
            if name in each.now
            and value is not None
            and not math.isclose(value, each.now[name], rel_tol=EXACT_TOLERANCE)
        }
        if lost:
            why = each.unread or "its file is not there"
            text = f"{each.cell}: {', '.join(lost)} can't be read any more: {why}"
            parts = {"cell": each.cell, "metric": ", ".join(lost), "why": why}
            yield RedFlag("ERROR", "lost_result", (each.cell,), text, parts, metrics=tuple(lost))
        if other:
            shown = ", ".join(other.values())
            text = f"{each.cell}: its result file was changed after the cell ended: {shown}"
            parts = {"cell": each.cell, "what": shown}
            yield RedFlag("ERROR", "changed_result", (each.cell,), text, parts, metrics=tuple(other))


def _flag_mixed_units(measured: Sequence[MeasuredCell]) -> Iterator[RedFlag]:
    """The campaign file knows no units: a rate that is 0.87 here and 87 there shows it by itself."""
    for split, group in group_by_key(measured, lambda m: m.split):
        for metric in dict.fromkeys(name for each in group for name in each.values):
            values = [
                CellValue(each.cell, each.config, value, each.episodes)
                for each in group
                if (value := each.values.get(metric)) is not None and math.isfinite(value)
            ]
            found = find_mixed_units(metric, values)
            if found is None:
                continue
            where = f"{split}/{metric}" if split else metric
            parts = {
                "where": where,
                "count": str(len(found.parts)),
                "part": f"{found.parts[0].value:g}",
                "others": str(len(found.percents)),
                "percent": f"{found.percents[0].value:g}",
            }
            text = (
                f"{where}: mixed units: cells in parts of 1: {parts['count']}, such as {parts['part']}; "
                f"in percent: {parts['others']}, such as {parts['percent']}"
            )
            level: FlagLevel = "ERROR" if found.certain else "WARN"
            cells = tuple(each.cell for each in found.rarer)
            yield RedFlag(level, "mixed_units", cells, text, parts, metrics=(metric,), acceptable=level == "WARN")


def _flag_same_configs(column: TieColumn, columns: int) -> Iterator[RedFlag]:
    """Configs that agree where independent ones can't, each set of them told once."""
    alike: list[list[Sample]] = []
    for sample in column.samples:
        home = next((set_ for set_ in alike if _have_like_samples(set_[0], sample)), None)
        if home is None:
            alike.append([sample])
        else:
            home.append(sample)
    for set_ in alike:
        if len(set_) > 1:
            names = tuple(sample.config for sample in set_)
            same_values = all(_have_same_values(set_[0], sample) for sample in set_[1:])
            what = "the same value for every seed" if same_values else "the same mean and sd"
            chance = chance_of_twin_configs(column, set_, columns)
            if not same_values and chance >= LIKELY_CHANCE:
                continue
            text = f"{', '.join(names)} have {what} in {column.where} ({_format_chance_of_that(chance)})"
            parts = {
                "configs": ", ".join(names),
                "what": "values" if same_values else "moments",
                "where": column.where,
                "chance": format_chance(chance),
            }
            place = FlagPlace((column.split,), column.metric, configs=names)
            yield RedFlag("ERROR" if chance < RARE_CHANCE else "WARN", "same_values", names, text, parts, place)


def _have_like_samples(a: Sample, b: Sample) -> bool:
    if a.n < 2 or b.n < 2:
        return a.n == b.n == 1 and _have_same_values(a, b)
    if _have_same_values(a, b):
        return True
    spread = max(a.sd or 0.0, b.sd or 0.0)
    if not spread or a.sd is None or b.sd is None:
        return a.mean == b.mean
    return abs(a.mean - b.mean) <= ALIKE * spread and abs(a.sd - b.sd) <= ALIKE * spread


def _have_same_values(a: Sample, b: Sample) -> bool:
    return a.by_seed.keys() == b.by_seed.keys() and all(
        math.isclose(a.by_seed[seed], b.by_seed[seed], rel_tol=EXACT_TOLERANCE) for seed in a.by_seed
    )


def _flag_same_seeds(found: Iterable[SeedTies], told: Collection[tuple[str, str, str]]) -> Iterator[RedFlag]:
    """`told`: places whose configs agree with others already, seed by seed."""
    for ties in found:
        sample = ties.sample
        if not ties.whole and (ties.bound or ties.chance >= LIKELY_CHANCE):
            continue  # not even worth a word
        if ties.whole and ties.chance >= RARE_CHANCE and (sample.config, sample.split, sample.metric) in told:
            continue
        where = "/".join(part for part in (sample.config, sample.split, sample.metric) if part)
        said = "all seeds are the same" if ties.whole else f"seeds {' and '.join(ties.seeds)} have the same value"
        shown = format_chance(ties.chance)
        why = "at a bound of the metric" if ties.bound else _format_chance_of_that(ties.chance)
        seeds = () if ties.whole else ties.seeds
        parts = {"where": where, "seeds": ", ".join(seeds), "chance": "" if ties.bound else shown}
        place = FlagPlace((sample.split,), sample.metric, seeds, (sample.config,))
        level: FlagLevel = "ERROR" if ties.chance < RARE_CHANCE else "WARN"
        yield RedFlag(level, "same_seeds", (sample.config,), f"{where}: {said} ({why})", parts, place)


def _format_chance_of_that(chance: float) -> str:
    return f"chance of that: {format_chance(chance)}"


def format_chance(chance: float) -> str:
    """`3e-07`, `0.02`, `below 1e-12`"""
    return "below 1e-12" if chance < 1e-12 else f"{chance:.1g}"


def _flag_same_rows(
    columns: Sequence[TieColumn], measured: Sequence[MeasuredCell], told: Sequence[Sequence[str]]
) -> Iterator[RedFlag]:
    """Runs whose results agree in every column. `told`: configs that are known to agree as a whole."""
    by_place = {(column.split, column.metric): column for column in columns}
    rows: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    cells: dict[tuple[str, str], list[str]] = {}
    for each in measured:
        own = (each.config, each.seed)
        known = {name: value for name, value in each.values.items() if value is not None and math.isfinite(value)}
        rows.setdefault(own, {}).update({(each.split, name): value for name, value in known.items()})
        cells.setdefault(own, []).append(each.cell)
    for _, group in group_by_key(rows, lambda own: tuple(sorted((at, f"{v:.12g}") for at, v in rows[own].items()))):
        configs = {config for config, _ in group}
        if len(group) < 2 or not rows[group[0]] or any(configs <= set(names) for names in told if len(configs) > 1):
            continue
        chance = math.comb(len(rows), 2) * math.prod(
            max(column.meeting(config) for config in configs) ** (len(group) - 1)
            for at, value in rows[group[0]].items()
            if (column := by_place.get(at)) is not None and not column.at_bound(value)
        )
        if chance < RARE_CHANCE:
            names = tuple(cell for own in group for cell in cells[own])
            shown = ", ".join("/".join(part for part in own if part) for own in group)
            text = f"{shown} have the same results in every column ({_format_chance_of_that(chance)})"
            yield RedFlag("ERROR", "same_row", names, text, {"runs": shown, "chance": format_chance(chance)})


def _flag_same_splits(group: Sequence[Sample], config: str, metric: str) -> Iterator[RedFlag]:
    for a, b in combinations(group, 2):
        if a.n and _have_same_values(a, b):
            text = f"{config}: {metric} is the same on {a.split} and {b.split}"
            parts = {"config": config, "metric": metric, "splits": f"{a.split}, {b.split}"}
            place = FlagPlace((a.split, b.split), metric, configs=(config,))
            yield RedFlag("WARN", "same_splits", (config,), text, parts, place)


def _flag_redone_cells(redone: Sequence[RedoneCell]) -> Iterator[RedFlag]:
    """By reason: who ran which seeds again after their results had been seen, how often, and what they were."""
    for why in dict.fromkeys(each.why for each in redone):
        meant = [each for each in redone if each.why == why]
        cells = tuple(each.cell for each in meant)
        shown = "; ".join(map(_format_all_values, meant[:MOST_CELLS_IN_MESSAGE])) + (
            " ..." if len(cells) > MOST_CELLS_IN_MESSAGE else ""
        )
        done = phrase("count.cell_was", n=len(cells))
        text = f"{done} run again after being DONE ({shown}): {why}"
        yield RedFlag("WARN", "redone", cells, text, {"count": str(len(cells)), "cells": shown, "why": why})


def _format_all_values(each: RedoneCell) -> str:
    """`eval/new/0: 1.2 -> 3.4 -> 2.2`: every result that it ever had."""
    if any(value is not None for value in each.values):
        return f"{each.cell}: " + " -> ".join("?" if value is None else f"{value:.4g}" for value in each.values)
    return f"{each.cell} x {len(each.values)}" if len(each.values) > 2 else each.cell


def _flag_recovered_cells(cells: Sequence[str]) -> Iterator[RedFlag]:
    if cells:
        shown = ", ".join(cells[:MOST_CELLS_IN_MESSAGE]) + (" ..." if len(cells) > MOST_CELLS_IN_MESSAGE else "")
        text = (
            f"{phrase('count.cell', n=len(cells))} diverged and ran again until DONE, by the same definition: {shown}"
        )
        yield RedFlag("WARN", "recovered", tuple(cells), text, {"count": str(len(cells)), "cells": shown})
