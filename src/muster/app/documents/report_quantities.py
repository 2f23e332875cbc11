"""The numbers of a report that a text may hold, and what they were with fewer seeds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.documents.result_names import Quantity
from muster.app.facts.gather_facts import GatheredFacts, gather_report_facts
from muster.app.facts.report_analysis import all_result_columns, find_red_flags, sample_of_column
from muster.app.facts.report_facts import ReportFacts
from muster.stats.samples import Sample


def quantities_of_facts(facts: ReportFacts) -> Iterator[Quantity]:
    for column in all_result_columns(facts):
        for config in facts.configs:
            sample = sample_of_column(facts, config, column)
            if sample.n:
                yield from _quantities_of_sample(sample, len(facts.seeds))


def cells_by_quantity_key(facts: ReportFacts) -> dict[str, tuple[str, ...]]:
    """What each quantity is made of."""
    found = {}
    for quantity in quantities_of_facts(facts):
        found[quantity.key] = tuple(
            each.cell
            for each in facts.measured
            if (each.config, each.head) == (quantity.config, quantity.split)
            and quantity.metric in each.results
            and quantity.seed in ("", each.seed)
        )
    return found


def _quantities_of_sample(sample: Sample, declared: int) -> Iterator[Quantity]:
    key = "/".join(part for part in (sample.split, sample.metric, sample.config) if part)
    named = (sample.config, sample.split, sample.metric)
    counted = (sample.n, declared)
    before = list(_samples_with_fewer_seeds(sample))
    yield Quantity(f"{key}/mean", *named, "mean", "", sample.mean, *counted, tuple(each.mean for each in before))
    if sample.sd is not None:
        spreads = tuple(each.sd for each in before if each.sd is not None)
        yield Quantity(f"{key}/sd", *named, "sd", "", sample.sd, *counted, spreads)
    yield Quantity(f"{key}/n", *named, "n", "", float(sample.n), *counted)
    for seed, value in sample.by_seed.items():
        yield Quantity(f"{key}/value/{seed}", *named, "value", seed, value, *counted)


def _samples_with_fewer_seeds(sample: Sample) -> Iterator[Sample]:
    """The same with the first seeds only, as an earlier table had it."""
    items = list(sample.by_seed.items())
    for count in range(1, len(items)):
        yield Sample(sample.config, sample.split, sample.metric, dict(items[:count]))


@dataclass(frozen=True, slots=True)
class BindableNumbers:
    """The numbers that documents may be bound to."""

    root: Path
    quantities: tuple[Quantity, ...]
    partial: str | None  # "PARTIAL 16/40"
    documents: tuple[str, ...]  # that the campaign names
    found: GatheredFacts
    invalid: bool = False  # a red flag says that these numbers are no result


def _is_matrix_invalid(facts: ReportFacts) -> bool:
    return any(flag.voids for flag in find_red_flags(facts))


def gather_bindable_numbers(folder: Path) -> BindableNumbers:
    desk = CampaignHandle.open(folder)
    try:
        found = gather_report_facts(desk)
        return BindableNumbers(
            desk.root,
            tuple(quantities_of_facts(found.facts)),
            found.facts.mark or None,
            found.status.state.campaign.documents,
            found,
            _is_matrix_invalid(found.facts),
        )
    finally:
        desk.close()
