"""What may be claimed from what is there, by the number of seeds, and what may not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from muster.report.cost_facts import CostFacts, Cover
from muster.report.cost_words import CostWords
from muster.report.record_wording import plain

ENOUGH = 5  # seeds from which on configs may be compared
ROWS = 40


@dataclass(frozen=True, slots=True)
class Least:
    """The row with the fewest seeds: no comparison is better than that."""

    job: str
    k: int
    n: int


def least(facts: CostFacts) -> Least | None:
    """Of the jobs that measure something; None: none does."""
    found = [_least(cover) for cover in _seeded(facts) if cover.measures]
    return min(found, key=lambda each: (each.k, -each.n), default=None)


def supports(found: Least, say: CostWords) -> str:
    return f"{say(_key(found.k))}{say('claim.where', job=found.job, k=found.k, n=found.n)}"


def claims(facts: CostFacts, say: CostWords) -> Iterator[str]:
    seeded = [cover for cover in _seeded(facts) if cover.measures] or _seeded(facts)
    if seeded:
        yield say("claim.by")
        yield ""
        yield from _table(seeded, say)
    else:
        yield say("claim.none")
    for name, sentences in (("may", list(_may(facts, say))), ("may_not", list(_may_not(facts, say)))):
        if sentences:
            yield ""
            yield f"**{say(f'claim.{name}')}**"
            yield ""
            yield from (f"- {each}" for each in sentences)


def _seeded(facts: CostFacts) -> list[Cover]:
    return [cover for cover in facts.covers if cover.across == "seed"]


def _measured(facts: CostFacts) -> list[Cover]:
    seeded = _seeded(facts)
    return [cover for cover in seeded if cover.measures] or seeded[:1]


def _least(cover: Cover) -> Least:
    counts = [(states.count("DONE"), sum(map(bool, states))) for _, states in cover.rows]
    k, n = min(counts, key=lambda each: (each[0], -each[1]))
    return Least(cover.job, k, n)


def _key(k: int) -> str:
    return f"n.{next(limit for limit in (10, 5, 3, 2, 1, 0) if k >= limit)}"


def _table(covers: list[Cover], say: CostWords) -> Iterator[str]:
    yield f"| {say('claim.job')} | {say('claim.row')} | {say('claim.seeds')} | {say('claim.supports')} |"
    yield "|---|---|---|---|"
    rows = [(cover, name, states) for cover in covers for name, states in cover.rows]
    for cover, name, states in rows[:ROWS]:
        k, n = states.count("DONE"), sum(map(bool, states))
        there = say("claim.k", k=k, n=n, seeds=say.list(cover.seeds_of(states))) if k else f"0/{n}"
        yield f"| {cover.job} | {plain(name) or '—'} | {there} | {say(_key(k))} |"
    if len(rows) > ROWS:
        yield f"| … | … | … | {say('claim.more', n=len(rows) - ROWS)} |"


def _may(facts: CostFacts, say: CostWords) -> Iterator[str]:
    for made in facts.products:
        proof = say("claim.proven") if made.proved else ""
        yield say("may.done", job=made.job, cells=say.count("count.cell", made.cells), proof=proof)
    for cover in _seeded(facts):
        found = _least(cover)
        if cover.measures and found.k:
            seeds = say.count("count.seed", found.k)
            yield say("may.results", job=cover.job, n=seeds, supports=say(_key(found.k)))


def _may_not(facts: CostFacts, say: CostWords) -> Iterator[str]:
    if facts.done < facts.declared:
        yield say("may_not.complete", k=facts.done, n=facts.declared)
    for cover in facts.covers:
        if not cover.done:
            yield say("may_not.nothing", job=cover.job)
    for cover in _measured(facts):
        yield from _comparing(cover, say)
    if facts.done and not any(made.results for made in facts.products):
        yield say("may_not.unmeasured")
    for note, cells in facts.doubts:
        yield say("may_not.doubt", cells=say.cells(cells), note=plain(note))
    if facts.outdated:
        yield say("may_not.outdated", cells=say.cells(facts.outdated))
    for split, text in facts.proxies.items():
        yield say("may_not.proxy", split=split, note=plain(text.rstrip(".。 ")))
    if facts.sums.unaccounted and facts.sums.unaccounted >= 0.005:
        yield say("may_not.bill", unaccounted=say.money(facts.sums.unaccounted, facts.sums))


def _comparing(cover: Cover, say: CostWords) -> Iterator[str]:
    if len(cover.rows) < 2 or not cover.done:
        return
    found = _least(cover)
    if found.k < ENOUGH:
        yield say("may_not.compare", job=cover.job, n=found.k, of=found.n)
    there = [set(cover.seeds_of(states)) for _, states in cover.rows]
    common = [column for column in cover.columns if all(column in seeds for seeds in there)]
    if any(seeds != there[0] for seeds in there):
        seeds = say.list(common)
        yield say("may_not.common", job=cover.job, seeds=seeds) if common else say("may_not.no_common", job=cover.job)
