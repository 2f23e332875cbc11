"""The facts worked out: samples, red flags, the verdict of the declared procedure, the cheapest next step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from muster.report.facts import Column, Facts, Measurement
from muster.stats import flags, flags_making
from muster.stats.decision import Decision, decide
from muster.stats.flag_weight import deciding_of, weighed
from muster.stats.flags import Flag, Measured
from muster.stats.flags_rows import CLEARING, of_definitions, of_losses, of_sources
from muster.stats.more_seeds import NextStep, next_step
from muster.stats.sample import Sample


@dataclass(frozen=True, slots=True)
class Analysis:
    facts: Facts
    decision: Decision
    flags: tuple[Flag, ...]
    next: NextStep | None = None

    def sample(self, config: str, column: Column) -> Sample:
        return sample_of(self.facts, config, column)

    def samples(self, column: Column) -> list[Sample]:
        return [self.sample(config, column) for config in self.facts.configs]

    @property
    def mark(self) -> str:
        """What tables carry in their titles: how much of the matrix there is, and that it is no result."""
        return ", ".join(part for part in (self.facts.mark, "INVALID" if self.errors else "") if part)

    @property
    def errors(self) -> tuple[Flag, ...]:
        """Those that void the verdict."""
        return tuple(flag for flag in self.flags if flag.voids)

    def cells(self, config: str, column: Column) -> tuple[str, ...]:
        return tuple(each.cell for each in _of(self.facts, config, column))


def analyse(facts: Facts) -> Analysis:
    found = find_flags(facts)
    invalid = any(flag.voids for flag in found)
    plan = facts.plan
    if plan is None:
        verdict = "INVALID" if invalid else "INCOMPLETE" if facts.partial else "NOT_ENOUGH_EVIDENCE"
        because = "flags" if invalid else "missing" if facts.partial else "undeclared"
        return Analysis(facts, Decision(verdict, because=because), found)  # type: ignore[arg-type]
    primary = [sample_of(facts, config, plan.primary) for config in facts.configs]
    cost = [sample_of(facts, config, plan.limit) for config in facts.configs] if plan.limit else []
    decision = decide(plan.procedure, primary, cost, invalid=invalid, incomplete=facts.partial)
    following = next_step(plan.procedure, decision, primary, facts.price, facts.budget_left)
    return Analysis(facts, decision, found, following)


def find_flags(facts: Facts) -> tuple[Flag, ...]:
    """All that are raised, weighed: whether they lie where something is decided, and whether a person accepted them."""
    samples = [sample_of(facts, config, column) for column in all_columns(facts) for config in facts.configs]
    samples = [sample for sample in samples if sample.n]
    measured = [
        Measured(m.cell, m.config, m.seed, m.head, m.results, m.now, m.episodes, m.unread) for m in facts.measured
    ]
    raised = (
        *flags.of_values(samples, measured, facts.scales),
        *flags_making.of_making(facts.made),
        *flags.of_declaration(facts.declared, samples),
        *of_definitions(facts.mixed, facts.outdated),
        *of_sources(facts.sources),
        *of_losses((*facts.lost, *facts.settled), facts.failures, _baseline(facts), facts.dropped),
    )
    return weighed(raised, deciding_of(_deciding_columns(facts), measured, facts.made), facts.accepted_flags)


def _deciding_columns(facts: Facts) -> list[tuple[str, str]]:
    columns = (facts.plan.primary, facts.plan.limit) if facts.plan else ()
    return [(column.head, column.metric) for column in columns if column]


def with_cleared(facts: Facts) -> Facts:
    """Missing cells whose loss a person has explained are missing still, and hold up no verdict."""
    accepted = [flag for flag in find_flags(facts) if flag.accepted and flag.code in CLEARING]
    return replace(facts, cleared=frozenset(cell for flag in accepted for cell in flag.cells))


def _baseline(facts: Facts) -> str:
    return facts.plan.procedure.baseline if facts.plan else ""


def all_columns(facts: Facts) -> tuple[Column, ...]:
    """Every result on every split, the main table's columns first."""
    found = dict.fromkeys(facts.columns)
    for each in facts.measured:
        found.update(dict.fromkeys(Column(each.head, metric) for metric in each.results))
    return tuple(found)


def sample_of(facts: Facts, config: str, column: Column) -> Sample:
    found = _of(facts, config, column)
    episodes = {each.episodes for each in found if each.episodes > 1}  # of a file that is gone nobody knows them
    return Sample(
        config,
        column.head,
        column.metric,
        {each.seed: each.results[column.metric] for each in found},
        episodes.pop() if len(episodes) == 1 else 1,
    )


def _of(facts: Facts, config: str, column: Column) -> Sequence[Measurement]:
    return [
        each
        for each in facts.measured
        if each.config == config and each.head == column.head and column.metric in each.results
    ]
