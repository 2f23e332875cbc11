"""What so many seeds are good for, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from muster.report.analysis import Analysis, all_columns
from muster.report.estimates import format_of
from muster.report.facts import Column
from muster.report.numbers import percent, plain
from muster.report.statement import Statement, about, about_all
from muster.report.words import Words
from muster.stats.power import detectable
from muster.stats.sample import standing_of

_ALPHA, _POWER = 0.05, 0.8  # of the rule of thumb, one comparison


def seeds_statements(analysis: Analysis, w: Words) -> Iterator[Statement]:
    yield n_statement(analysis, w)
    if (told := no_look_statement(analysis, w)) is not None:
        yield told
    plan, following = analysis.facts.plan, analysis.next
    if plan is not None and following is not None and following.sd and following.detectable is not None:
        form = format_of(analysis, plan.primary)
        text = w(
            "seeds.detectable",
            n=following.fewest,
            sd=form.spread(following.sd),
            seen=form.spread(following.seen_sd or 0.0),
            ratio=f"{following.detectable / following.sd:.1f}",
            difference=form.spread(following.detectable),
            column=plan.primary.name,
            power=percent(plan.procedure.power),
        )
        yield about(analysis, text, analysis.facts.configs, [plan.primary])


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
    parts.append(_n_words(counts, names, w, declared=plan is not None))
    text = w.sentences(*parts)
    return about(analysis, text, analysis.facts.configs, columns) if plan else about_all(analysis, text)


def no_look_statement(analysis: Analysis, w: Words) -> Statement | None:
    """Where the procedure is applied to a number of seeds that was not declared for it."""
    plan = analysis.facts.plan
    if plan is None or at_a_look(analysis) or analysis.decision.verdict in ("INVALID", "INCOMPLETE"):
        return None
    counts, declared = seed_counts(analysis, [plan.primary]), plan.procedure.looks
    looks = w.several([str(look) for look in declared])
    text = w(
        "seeds.no_look", seeds=seeds_range(counts, w), looks=looks, last=declared[-1], alpha=plain(plan.procedure.alpha)
    )
    return about(analysis, text, analysis.facts.configs, [plan.primary])


def at_a_look(analysis: Analysis) -> bool:
    """Every config has a number of seeds that was declared; nothing is looked at where there is none."""
    plan = analysis.facts.plan
    counts = seed_counts(analysis, [plan.primary]) if plan else []
    return plan is None or not any(counts) or set(counts) <= set(plan.procedure.looks)


def seed_counts(analysis: Analysis, columns: list[Column]) -> list[int]:
    return [analysis.sample(config, column).n for config in analysis.facts.configs or ("",) for column in columns]


def fewest_seeds(analysis: Analysis) -> int:
    return min(_counts(analysis), default=0)


def all_seeds(analysis: Analysis, w: Words) -> str:
    """`4 to 5 training seeds`"""
    return seeds_range(_counts(analysis), w)


def _counts(analysis: Analysis) -> list[int]:
    plan = analysis.facts.plan
    return seed_counts(analysis, [plan.primary] if plan else list(all_columns(analysis.facts)))


def seeds_range(counts: Sequence[int], w: Words) -> str:
    """`5 training seeds`, or `4 to 5 training seeds` where they differ."""
    fewest, most = min(counts, default=0), max(counts, default=0)
    return w.count("seed", most) if fewest == most else w("seeds.range", low=fewest, high=most)


def _n_words(counts: Sequence[int], column: str, w: Words, *, declared: bool) -> str:
    """What the fewest are good for; where nothing is declared, a rule of thumb stands for the power."""
    n = min(counts, default=0)
    if not n:
        return w("seeds.none", column=column)
    key = standing_of(n)
    if key in ("five", "ten"):
        key = "declared" if declared else "thumb"
    return w(f"seeds.{key}", seeds=seeds_range(counts, w), sd=visible_sd(n))


def visible_sd(n: int) -> str:
    """The difference in sd that so many seeds show: 2 for five."""
    found = detectable(n, 1.0, _ALPHA, _POWER)
    return "—" if found is None else f"{found:.1f}".removesuffix(".0")
