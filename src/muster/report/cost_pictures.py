"""Mermaid diagrams of the cost report: the pipeline, the gap in the matrix, where it went."""

from __future__ import annotations

from collections.abc import Iterator

from muster.report.cost_facts import CostFacts
from muster.report.cost_words import CostWords
from muster.report.escape import one_line
from muster.report.record_wording import grouped

BOXES = 12


def pictures(facts: CostFacts, say: CostWords) -> Iterator[str]:
    for number, (name, draw) in enumerate((("pipeline", _pipeline), ("gap", _gap), ("money", _pie))):
        lines = list(draw(facts, say))
        if not lines:
            continue
        yield from ([""] if number else [])
        yield f"### {say(f'picture.{name}')}"
        yield ""
        if name == "gap" and facts.done == facts.declared:
            yield say("picture.no_gap")
            continue
        yield from ("```mermaid", *lines, "```")


def _pipeline(facts: CostFacts, _: CostWords) -> Iterator[str]:
    ids = {cover.job: f"j{number}" for number, cover in enumerate(facts.covers)}
    yield "flowchart LR"
    for cover in facts.covers:
        mark = "✅" if cover.done == cover.declared else "❌"
        yield f'  {ids[cover.job]}["{_safe(cover.job)} {mark} {cover.done}/{cover.declared}"]'
    for cover in facts.covers:
        for need in cover.needs:
            if need in ids:
                yield f"  {ids[need]} --> {ids[cover.job]}"


def _gap(facts: CostFacts, say: CostWords) -> Iterator[str]:
    yield "flowchart LR"
    yield f'  all["{say("picture.declared", n=facts.declared)}"] --> done["✅ {say("picture.done", n=facts.done)}"]'
    if facts.running:
        yield f'  all --> running["▶ {say("picture.running", n=facts.running)}"]'
    groups = [group for each in facts.absent if each.why != "alive" for group in grouped(each.cells)]
    for number, group in enumerate(groups[:BOXES]):
        yield f'  all --> m{number}["❌ {say("picture.missing", cells=_safe(group))}"]'
    if len(groups) > BOXES:
        yield f'  all --> more["… +{len(groups) - BOXES}"]'


def _pie(facts: CostFacts, say: CostWords) -> Iterator[str]:
    sums = facts.sums
    parts = [(say(f"account.{name}"), each.hours if each.money is None else each.money) for name, each in sums.accounts]
    if sums.unaccounted:
        parts.append((say("account.unaccounted"), sums.unaccounted))
    shown = [(name, amount) for name, amount in parts if amount >= 0.005]
    if not shown:
        return
    yield f"pie showData title {sums.currency if sums.price else say('picture.in_hours')}"
    for name, amount in shown:
        yield f'  "{name}" : {amount:.2f}'


def _safe(text: str) -> str:
    """Inside a quoted label."""
    return one_line(text).replace('"', "'").replace("`", "'").replace("<", "#60;")
