"""The analysis of a report's facts: samples with k of N declared seeds, red flags, the verdict of the declared
procedure, the cheapest next step. And the number format of a column of samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from muster.app.facts.report_facts import Measurement, ReportFacts, ResultColumn
from muster.stats.decision_procedure import ProcedureDecision, decide_by_procedure
from muster.stats.flags_of_provenance import CLEARING_CODES, flag_definitions, flag_losses, flag_making, flag_sources
from muster.stats.flags_of_values import flag_declaration, flag_values
from muster.stats.red_flags import MeasuredCell, RedFlag, find_deciding_columns, weigh_flags
from muster.stats.samples import Sample
from muster.stats.seed_planning import NextSeedStep, cheapest_next_step
from muster.text.number_format import ColumnFormat, _choose_number_format


def choose_column_format(samples: Iterable[Sample]) -> ColumnFormat:
    """By the smallest spread in the column, so that it keeps two digits."""
    known = [sample for sample in samples if sample.n]
    values = [abs(value) for sample in known for value in sample.values if math.isfinite(value)]
    spreads = [sample.sd for sample in known if sample.sd and math.isfinite(sample.sd)]
    return _choose_number_format(values, spreads)


@dataclass(frozen=True, slots=True)
class ReportAnalysis:
    facts: ReportFacts
    decision: ProcedureDecision
    flags: tuple[RedFlag, ...]
    next: NextSeedStep | None = None

    def sample(self, config: str, column: ResultColumn) -> Sample:
        return sample_of_column(self.facts, config, column)

    def samples(self, column: ResultColumn) -> list[Sample]:
        return [self.sample(config, column) for config in self.facts.configs]

    @property
    def mark(self) -> str:
        """What tables carry in their titles: how much of the matrix there is, and that it is no result."""
        return ", ".join(part for part in (self.facts.mark, "INVALID" if self.errors else "") if part)

    @property
    def errors(self) -> tuple[RedFlag, ...]:
        """Those that void the verdict."""
        return tuple(flag for flag in self.flags if flag.voids)

    def cells(self, config: str, column: ResultColumn) -> tuple[str, ...]:
        return tuple(each.cell for each in _measurements_of_column(self.facts, config, column))


def analyse_facts(facts: ReportFacts) -> ReportAnalysis:
    found = find_red_flags(facts)
    invalid = any(flag.voids for flag in found)
    plan = facts.plan
    if plan is None:
        verdict = "INVALID" if invalid else "INCOMPLETE" if facts.partial else "NOT_ENOUGH_EVIDENCE"
        because = "flags" if invalid else "missing" if facts.partial else "undeclared"
        return ReportAnalysis(facts, ProcedureDecision(verdict, because=because), found)  # type: ignore[arg-type]
    primary = [sample_of_column(facts, config, plan.primary) for config in facts.configs]
    cost = [sample_of_column(facts, config, plan.limit) for config in facts.configs] if plan.limit else []
    decision = decide_by_procedure(plan.procedure, primary, cost, invalid=invalid, incomplete=facts.partial)
    following = cheapest_next_step(plan.procedure, decision, primary, facts.price, facts.budget_left)
    return ReportAnalysis(facts, decision, found, following)


def find_red_flags(facts: ReportFacts) -> tuple[RedFlag, ...]:
    """All that are raised, weighed: whether they lie where something is decided, and whether a person accepted them."""
    samples = [
        sample_of_column(facts, config, column) for column in all_result_columns(facts) for config in facts.configs
    ]
    samples = [sample for sample in samples if sample.n]
    measured = [
        MeasuredCell(m.cell, m.config, m.seed, m.head, m.results, m.now, m.episodes, m.unread) for m in facts.measured
    ]
    raised = (
        *flag_values(samples, measured, facts.scales),
        *flag_making(facts.made),
        *flag_declaration(facts.declared, samples),
        *flag_definitions(facts.mixed, facts.outdated),
        *flag_sources(facts.sources),
        *flag_losses((*facts.lost, *facts.settled), facts.failures, _baseline_config(facts), facts.dropped),
    )
    return weigh_flags(
        raised, find_deciding_columns(_deciding_split_metrics(facts), measured, facts.made), facts.accepted_flags
    )


def _deciding_split_metrics(facts: ReportFacts) -> list[tuple[str, str]]:
    columns = (facts.plan.primary, facts.plan.limit) if facts.plan else ()
    return [(column.head, column.metric) for column in columns if column]


def clear_explained_losses(facts: ReportFacts) -> ReportFacts:
    """Missing cells whose loss a person has explained are missing still, and hold up no verdict."""
    accepted = [flag for flag in find_red_flags(facts) if flag.accepted and flag.code in CLEARING_CODES]
    return replace(facts, cleared=frozenset(cell for flag in accepted for cell in flag.cells))


def _baseline_config(facts: ReportFacts) -> str:
    return facts.plan.procedure.baseline if facts.plan else ""


def all_result_columns(facts: ReportFacts) -> tuple[ResultColumn, ...]:
    """Every result on every split, the main table's columns first."""
    found = dict.fromkeys(facts.columns)
    for each in facts.measured:
        found.update(dict.fromkeys(ResultColumn(each.head, metric) for metric in each.results))
    return tuple(found)


def sample_of_column(facts: ReportFacts, config: str, column: ResultColumn) -> Sample:
    found = _measurements_of_column(facts, config, column)
    episodes = {each.episodes for each in found if each.episodes > 1}  # of a file that is gone nobody knows them
    return Sample(
        config,
        column.head,
        column.metric,
        {each.seed: each.results[column.metric] for each in found},
        episodes.pop() if len(episodes) == 1 else 1,
    )


def _measurements_of_column(facts: ReportFacts, config: str, column: ResultColumn) -> Sequence[Measurement]:
    return [
        each
        for each in facts.measured
        if each.config == config and each.head == column.head and column.metric in each.results
    ]


def configs_of_column(facts: ReportFacts, column: ResultColumn) -> tuple[str, ...]:
    """The rows of a column: the configs, or one without a name where its job has no such axis."""
    configs = {each.config for each in facts.measured if each.head == column.head}
    return ("",) if not facts.configs or configs == {""} else facts.configs


def declared_seeds_of_config(facts: ReportFacts, config: str, head: str) -> tuple[str, ...]:
    seeds = {each.seed for each in facts.measured if each.head == head}
    if not facts.seeds or seeds == {""}:  # no such axis
        return ("",)
    lost = {(each.config, each.seed, each.head) for each in facts.lost}
    return tuple(
        seed
        for seed in facts.seeds
        if (config, seed, head) in lost or (seed not in facts.gone_seeds and (config, seed, head) not in facts.excluded)
    )


def format_seed_coverage(facts: ReportFacts, sample: Sample) -> str:
    """k/N"""
    return f"{sample.n}/{max(sample.n, len(declared_seeds_of_config(facts, sample.config, sample.split)))}"


def values_in_seed_order(facts: ReportFacts, sample: Sample) -> tuple[float, ...]:
    """The values in the order in which the seeds were declared."""
    rank = {seed: index for index, seed in enumerate(facts.seeds)}
    ordered = sorted(sample.by_seed, key=lambda seed: rank.get(seed, len(rank)))
    return tuple(sample.by_seed[seed] for seed in ordered)


def column_heads(facts: ReportFacts) -> tuple[str, ...]:
    """The splits and jobs that carry results for each config and seed."""
    heads = dict.fromkeys(column.head for column in all_result_columns(facts))
    return tuple(head for head in heads if configs_of_column(facts, ResultColumn(head, "")) == (facts.configs or ("",)))


def measured_points(facts: ReportFacts) -> frozenset[tuple[str, str, str]]:
    return frozenset((each.config, each.seed, each.head) for each in facts.measured)


def incomplete_seeds(facts: ReportFacts) -> tuple[tuple[str, str], ...]:
    """Each (config, seed) that lacks a result somewhere."""
    there = measured_points(facts)
    return tuple(
        (config, seed)
        for config in facts.configs or ("",)
        for seed in facts.seeds or ("",)
        if any(
            seed in declared_seeds_of_config(facts, config, head) and (config, seed, head) not in there
            for head in column_heads(facts)
        )
    )
