"""The numbers of a report that a text may hold, and what they were with fewer seeds."""

from __future__ import annotations

from collections.abc import Iterator

from muster.report.analysis import all_columns, sample_of
from muster.report.documents.quantity import Quantity
from muster.report.facts import Facts
from muster.stats.sample import Sample


def quantities_of(facts: Facts) -> Iterator[Quantity]:
    for column in all_columns(facts):
        for config in facts.configs:
            sample = sample_of(facts, config, column)
            if sample.n:
                yield from _of(sample, len(facts.seeds))


def cells_by_key(facts: Facts) -> dict[str, tuple[str, ...]]:
    """What each quantity is made of."""
    found = {}
    for quantity in quantities_of(facts):
        found[quantity.key] = tuple(
            each.cell
            for each in facts.measured
            if (each.config, each.head) == (quantity.config, quantity.split)
            and quantity.metric in each.results
            and quantity.seed in ("", each.seed)
        )
    return found


def _of(sample: Sample, declared: int) -> Iterator[Quantity]:
    key = "/".join(part for part in (sample.split, sample.metric, sample.config) if part)
    named = (sample.config, sample.split, sample.metric)
    counted = (sample.n, declared)
    before = list(_before(sample))
    yield Quantity(f"{key}/mean", *named, "mean", "", sample.mean, *counted, tuple(each.mean for each in before))
    if sample.sd is not None:
        spreads = tuple(each.sd for each in before if each.sd is not None)
        yield Quantity(f"{key}/sd", *named, "sd", "", sample.sd, *counted, spreads)
    yield Quantity(f"{key}/n", *named, "n", "", float(sample.n), *counted)
    for seed, value in sample.by_seed.items():
        yield Quantity(f"{key}/value/{seed}", *named, "value", seed, value, *counted)


def _before(sample: Sample) -> Iterator[Sample]:
    """The same with the first seeds only, as an earlier table had it."""
    items = list(sample.by_seed.items())
    for count in range(1, len(items)):
        yield Sample(sample.config, sample.split, sample.metric, dict(items[:count]))
