"""What so many seeds are good for, in words."""

from __future__ import annotations

from collections.abc import Iterator

from muster.report.analysis import Analysis, all_columns
from muster.report.estimates import format_of
from muster.report.facts import Column
from muster.report.numbers import percent
from muster.report.statement import Statement, about, about_all
from muster.report.words import Words
from muster.stats.power import detectable
from muster.stats.sample import standing_of

_ALPHA, _POWER = 0.05, 0.8  # of the rule of thumb, one comparison


def seeds_statements(analysis: Analysis, w: Words) -> Iterator[Statement]:
    yield n_statement(analysis, w)
    plan, following = analysis.facts.plan, analysis.next
    if plan is not None and following is not None and following.sd and following.detectable is not None:
        form = format_of(analysis, plan.primary)
        text = w(
            "seeds.detectable",
            sd=form.spread(following.sd),
            difference=form.spread(following.detectable),
            column=plan.primary.name,
            power=percent(plan.procedure.power),
        )
        yield about(analysis, text, following.configs, [plan.primary])


def n_statement(analysis: Analysis, w: Words) -> Statement:
    """By the fewest seeds that a config has on the primary metric, or on any where none is declared."""
    plan = analysis.facts.plan
    columns = [plan.primary] if plan else list(all_columns(analysis.facts))
    counts = seed_counts(analysis, columns)
    fewest, most = min(counts, default=0), max(counts, default=0)
    names = w.several([column.name for column in columns[:1]])
    parts = []
    if fewest != most:
        key = "seeds.unequal" if plan else "seeds.unequal_no_plan"
        parts.append(w(key, low=fewest, high=most, column=names))
    parts.append(_n_words(fewest, names, w))
    text = w.sentences(*parts)
    return about(analysis, text, analysis.facts.configs, columns) if plan else about_all(analysis, text)


def seed_counts(analysis: Analysis, columns: list[Column]) -> list[int]:
    return [analysis.sample(config, column).n for config in analysis.facts.configs or ("",) for column in columns]


def fewest_seeds(analysis: Analysis) -> int:
    plan = analysis.facts.plan
    columns = [plan.primary] if plan else list(all_columns(analysis.facts))
    return min(seed_counts(analysis, columns), default=0)


def _n_words(n: int, column: str, w: Words) -> str:
    if not n:
        return w("seeds.none", column=column)
    return w(f"seeds.{standing_of(n)}", seeds=w.count("seed", n), sd=visible_sd(n))


def visible_sd(n: int) -> str:
    """The difference in sd that so many seeds show: 2 for five."""
    found = detectable(n, 1.0, _ALPHA, _POWER)
    return "—" if found is None else f"{found:.1f}".removesuffix(".0")
