"""What was declared: the procedure, the proxies and the notes, word for word where people wrote them."""

from __future__ import annotations

from collections.abc import Iterator

from muster.report.analysis import Analysis
from muster.report.coverage import heads_of
from muster.report.estimates import rule
from muster.report.facts import Plan
from muster.report.numbers import plain
from muster.report.resumed import is_whole, resumed_text
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
    yield from _histories(analysis, w)
    yield w("declared.scope")


def _histories(analysis: Analysis, w: Words) -> Iterator[str]:
    """What is missing of the logs: curves that nobody can draw, rows that a killed run did not write down."""
    for each in analysis.facts.uncurved:
        why = w(f"uncurved.{each.reason.why}", path=each.reason.path, name=each.reason.key)
        cells = "" if each.all else w("uncurved.cells", cells=w.some(each.cells))
        yield w("uncurved.told", metric=each.metric, cells=cells, why=why)
    for cell, resumed in analysis.facts.resumed:
        if not is_whole(resumed):
            yield w("declared.resumed", cell=cell, text=resumed_text(resumed, w.language))


def proxy_lines(analysis: Analysis, w: Words) -> Iterator[str]:
    proxies = {split: text for split, text in analysis.facts.proxies.items() if text}
    for split, text in proxies.items():
        yield w("declared.proxy", split=split, note=text)
    for split, note in analysis.facts.split_notes.items():
        yield w("declared.split_note", split=split, note=note)
    splits = splits_of(analysis)
    if not proxies and splits:
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
