"""What so many seeds are good for, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from muster.app.facts.report_analysis import ReportAnalysis, all_result_columns
from muster.app.facts.report_facts import ResultColumn
from muster.app.report.estimates import format_of_column
from muster.app.report.evidence_chain import ReportStatement, statement_about_all_cells, statement_about_columns
from muster.stats.samples import seed_count_class
from muster.stats.seed_planning import detectable_difference
from muster.text.catalogue import Catalogue
from muster.text.number_format import format_declared_number, format_percent_number

_ALPHA, _POWER = 0.05, 0.8  # of the rule of thumb, one comparison


def statements_about_seeds(analysis: ReportAnalysis, w: Catalogue) -> Iterator[ReportStatement]:
    yield statement_of_seed_count(analysis, w)
    if (told := statement_of_undeclared_look(analysis, w)) is not None:
        yield told
    plan, following = analysis.facts.plan, analysis.next
    if plan is not None and following is not None and following.sd and following.detectable is not None:
        form = format_of_column(analysis, plan.primary)
        text = w(
            "seeds.detectable",
            n=following.fewest,
            sd=form.spread(following.sd),
            seen=form.spread(following.seen_sd or 0.0),
            ratio=f"{following.detectable / following.sd:.1f}",
            difference=form.spread(following.detectable),
            column=plan.primary.name,
            power=format_percent_number(plan.procedure.power),
        )
        yield statement_about_columns(analysis, text, analysis.facts.configs, [plan.primary])


def statement_of_seed_count(analysis: ReportAnalysis, w: Catalogue) -> ReportStatement:
    """By the fewest seeds that a config has on the primary metric, or on any where none is declared."""
    plan = analysis.facts.plan
    columns = [plan.primary] if plan else list(all_result_columns(analysis.facts))
    counts = count_seeds_of_configs(analysis, columns)
    fewest, most = min(counts, default=0), max(counts, default=0)
    names = w.several([column.name for column in columns[:1]])
    parts = []
    if fewest != most:
        key = "seeds.unequal" if plan else "seeds.unequal_no_plan"
        parts.append(w(key, low=fewest, high=most, column=names))
    parts.append(_describe_seed_count(counts, names, w, declared=plan is not None))
    text = w.sentences(*parts)
    return (
        statement_about_columns(analysis, text, analysis.facts.configs, columns)
        if plan
        else statement_about_all_cells(analysis, text)
    )


def statement_of_undeclared_look(analysis: ReportAnalysis, w: Catalogue) -> ReportStatement | None:
    """Where the procedure is applied to a number of seeds that was not declared for it."""
    plan = analysis.facts.plan
    if plan is None or is_at_declared_look(analysis) or analysis.decision.verdict in ("INVALID", "INCOMPLETE"):
        return None
    counts, declared = count_seeds_of_configs(analysis, [plan.primary]), plan.procedure.looks
    looks = w.several([str(look) for look in declared])
    text = w(
        "seeds.no_look",
        seeds=describe_seed_range(counts, w),
        looks=looks,
        last=declared[-1],
        alpha=format_declared_number(plan.procedure.alpha),
    )
    return statement_about_columns(analysis, text, analysis.facts.configs, [plan.primary])


def is_at_declared_look(analysis: ReportAnalysis) -> bool:
    """Every config has a number of seeds that was declared; nothing is looked at where there is none."""
    plan = analysis.facts.plan
    counts = count_seeds_of_configs(analysis, [plan.primary]) if plan else []
    return plan is None or not any(counts) or set(counts) <= set(plan.procedure.looks)


def count_seeds_of_configs(analysis: ReportAnalysis, columns: list[ResultColumn]) -> list[int]:
    return [analysis.sample(config, column).n for config in analysis.facts.configs or ("",) for column in columns]


def fewest_seeds_of_configs(analysis: ReportAnalysis) -> int:
    return min(_seed_counts_of_analysis(analysis), default=0)


def describe_all_seeds(analysis: ReportAnalysis, w: Catalogue) -> str:
    """`4 to 5 training seeds`"""
    return describe_seed_range(_seed_counts_of_analysis(analysis), w)


def _seed_counts_of_analysis(analysis: ReportAnalysis) -> list[int]:
    plan = analysis.facts.plan
    return count_seeds_of_configs(analysis, [plan.primary] if plan else list(all_result_columns(analysis.facts)))


def describe_seed_range(counts: Sequence[int], w: Catalogue) -> str:
    """`5 training seeds`, or `4 to 5 training seeds` where they differ."""
    fewest, most = min(counts, default=0), max(counts, default=0)
    return w.count("seed", most) if fewest == most else w("seeds.range", low=fewest, high=most)


def _describe_seed_count(counts: Sequence[int], column: str, w: Catalogue, *, declared: bool) -> str:
    """What the fewest are good for; where nothing is declared, a rule of thumb stands for the power."""
    n = min(counts, default=0)
    if not n:
        return w("seeds.none", column=column)
    key = seed_count_class(n)
    if key in ("five", "ten"):
        key = "declared" if declared else "thumb"
    return w(f"seeds.{key}", seeds=describe_seed_range(counts, w), sd=format_visible_sd(n))


def format_visible_sd(n: int) -> str:
    """The difference in sd that so many seeds show: 2 for five."""
    found = detectable_difference(n, 1.0, _ALPHA, _POWER)
    return "—" if found is None else f"{found:.1f}".removesuffix(".0")
