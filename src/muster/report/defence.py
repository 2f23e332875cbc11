"""The defence notes: what a committee would ask, answered with the numbers there are and with their limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from muster.report.analysis import Analysis
from muster.report.decision_report import caution, path_of, title
from muster.report.declared import splits_of
from muster.report.defence_limits import can_not_claim, twice_the_money
from muster.report.defence_making import (
    could_be_the_same,
    how_chosen,
    is_it_reproducible,
    what_splits_measure,
    what_was_left_out,
)
from muster.report.defence_numbers import (
    how_many_compared,
    is_it_real,
    is_it_safe,
    one_seed,
    what_is_claimed,
    what_parts_do,
    why_so_many,
)
from muster.report.facts import Text
from muster.report.seeds_words import all_seeds
from muster.report.statement import Chain
from muster.report.words import Words

Answer = Callable[[Analysis, Chain, Words], Iterator[str]]


def defence_notes(analysis: Analysis, path: str = "") -> Text:
    """`path`: where the notes will lie, for the commands in them."""
    w, chain = Words(analysis.facts.language), Chain()
    parts = [title(analysis, "defence.title", w), w("defence.about"), *filter(None, [caution(analysis, w)])]
    for number, (question, answer) in enumerate(_questions(analysis, w), start=1):
        parts.append(f"## {number}. {question}")
        parts.append("\n".join(f"- {line}" for line in answer(analysis, chain, w)))
    parts += [f"## {w('section.evidence')}", chain.table(w, path or path_of(analysis, "defence"))]
    return Text("\n\n".join(parts) + "\n", chain.claims)


def _questions(analysis: Analysis, w: Words) -> Iterator[tuple[str, Answer]]:
    yield w("ask.claim"), what_is_claimed
    yield w("ask.real"), is_it_real
    yield w("ask.seeds", seeds=all_seeds(analysis, w)), why_so_many
    yield w("ask.seed"), one_seed
    yield w("ask.checkpoint"), how_chosen
    if splits := splits_of(analysis):
        yield w("ask.ood" if any("ood" in split.lower() for split in splits) else "ask.splits"), what_splits_measure
    yield w("ask.safety"), is_it_safe
    yield w("ask.left_out"), what_was_left_out
    yield w("ask.same_run"), could_be_the_same
    yield w("ask.many"), how_many_compared
    if analysis.facts.plan is not None and analysis.facts.plan.factors:
        yield w("ask.parts"), what_parts_do
    yield w("ask.reproduce"), is_it_reproducible
    yield w("ask.money"), twice_the_money
    yield w("ask.not"), can_not_claim
