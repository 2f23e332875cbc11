"""Which seeds were declared for a config and which are there: the k and the N of every table."""

from __future__ import annotations

from muster.report.analysis import all_columns
from muster.report.facts import Column, Facts
from muster.stats.sample import Sample


def configs_of(facts: Facts, column: Column) -> tuple[str, ...]:
    """The rows of a column: the configs, or one without a name where its job has no such axis."""
    configs = {each.config for each in facts.measured if each.head == column.head}
    return ("",) if not facts.configs or configs == {""} else facts.configs


def declared_seeds(facts: Facts, config: str, head: str) -> tuple[str, ...]:
    seeds = {each.seed for each in facts.measured if each.head == head}
    if not facts.seeds or seeds == {""}:  # no such axis
        return ("",)
    lost = {(each.config, each.seed, each.head) for each in facts.lost}
    return tuple(
        seed
        for seed in facts.seeds
        if (config, seed, head) in lost or (seed not in facts.gone_seeds and (config, seed, head) not in facts.excluded)
    )


def seeds_there(facts: Facts, sample: Sample) -> str:
    """k/N"""
    return f"{sample.n}/{max(sample.n, len(declared_seeds(facts, sample.config, sample.split)))}"


def in_order(facts: Facts, sample: Sample) -> tuple[float, ...]:
    """The values in the order in which the seeds were declared."""
    rank = {seed: index for index, seed in enumerate(facts.seeds)}
    ordered = sorted(sample.by_seed, key=lambda seed: rank.get(seed, len(rank)))
    return tuple(sample.by_seed[seed] for seed in ordered)


def heads_of(facts: Facts) -> tuple[str, ...]:
    """The splits and jobs that carry results for each config and seed."""
    heads = dict.fromkeys(column.head for column in all_columns(facts))
    return tuple(head for head in heads if configs_of(facts, Column(head, "")) == (facts.configs or ("",)))


def done(facts: Facts) -> frozenset[tuple[str, str, str]]:
    return frozenset((each.config, each.seed, each.head) for each in facts.measured)


def open_seeds(facts: Facts) -> tuple[tuple[str, str], ...]:
    """Each (config, seed) that lacks a result somewhere."""
    there = done(facts)
    return tuple(
        (config, seed)
        for config in facts.configs or ("",)
        for seed in facts.seeds or ("",)
        if any(
            seed in declared_seeds(facts, config, head) and (config, seed, head) not in there
            for head in heads_of(facts)
        )
    )
