"""What was declared: the procedure, the proxies and the notes, word for word where people wrote them."""

from __future__ import annotations

from collections.abc import Iterator

from muster.report.analysis import Analysis
from muster.report.coverage import heads_of
from muster.report.estimates import rule
from muster.report.facts import Plan
from muster.report.numbers import plain
from muster.report.words import Words


def declared_lines(analysis: Analysis, w: Words) -> Iterator[str]:
    facts, plan = analysis.facts, analysis.facts.plan
    if plan is None:
        yield w("declared.none")
    else:
        yield from _procedure(analysis, plan, w)
    yield from proxy_lines(analysis, w)
    for config, note in facts.notes.items():
        if note:
            yield w("declared.config_note", config=config, note=note)
    if plan is not None:
        yield from plan.notes
    yield w("declared.scope")


def proxy_lines(analysis: Analysis, w: Words) -> Iterator[str]:
    noted = {split: note for split, note in analysis.facts.proxies.items() if note}
    for split, note in noted.items():
        yield w("declared.proxy", split=split, note=note)
    splits = [split for split in splits_of(analysis) if split not in noted]
    if not noted and splits:
        yield w("declared.no_proxy", splits=w.several(splits))


def splits_of(analysis: Analysis) -> list[str]:
    """The heads that are splits and not jobs."""
    jobs = {each.job for each in analysis.facts.measured}
    return [head for head in heads_of(analysis.facts) if head and head not in jobs]


def checkpoint_words(plan: Plan, w: Words) -> str:
    if plan.checkpoint.startswith("best"):
        return w("declared.checkpoint.best", metric=plan.checkpoint.removeprefix("best by ").removeprefix("best"))
    return w("declared.checkpoint.last")


def _procedure(analysis: Analysis, plan: Plan, w: Words) -> Iterator[str]:
    procedure = plan.procedure
    direction = w("direction.higher" if procedure.higher else "direction.lower")
    yield w("declared.primary", column=plan.primary.name, direction=direction, baseline=procedure.baseline)
    yield w("declared.limit", rule=rule(analysis)) if rule(analysis) else w("declared.no_limit")
    known = procedure.delta is not None
    yield w("declared.delta", delta=plain(procedure.delta or 0.0)) if known else w("declared.no_delta")
    yield checkpoint_words(plan, w)
    looks = w.several([str(look) for look in procedure.looks])
    yield w(
        "declared.test",
        alpha=plain(procedure.alpha),
        looks=looks,
        last=procedure.looks[-1],
        power=plain(procedure.power),
    )
