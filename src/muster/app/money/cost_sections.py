"""Sections of the cost report: what so many seeds allow to claim, and Mermaid diagrams of the pipeline, the gaps in
the matrix and where the money went.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from muster.app.money.cost_facts import CostFacts, JobCoverage, format_money
from muster.text.catalogue import Catalogue
from muster.text.escape_markup import as_one_safe_line, escape_sentence
from muster.text.sentences import group_cell_names

SEEDS_TO_COMPARE = 5  # seeds from which on configs may be compared
MOST_CLAIM_ROWS = 40


@dataclass(frozen=True, slots=True)
class FewestSeeds:
    """The row with the fewest seeds: no comparison is better than that."""

    job: str
    k: int
    n: int


def fewest_seeds(facts: CostFacts) -> FewestSeeds | None:
    """Of the jobs that measure something; None: none does."""
    found = [_fewest_seeds_of_job(cover) for cover in _seeded_coverage(facts) if cover.measures]
    return min(found, key=lambda each: (each.k, -each.n), default=None)


def supported_claim(found: FewestSeeds, say: Catalogue) -> str:
    return f"{say(_support_key(found.k))}{say('claim.where', job=found.job, k=found.k, n=found.n)}"


def claims_section(facts: CostFacts, say: Catalogue) -> Iterator[str]:
    seeded = [cover for cover in _seeded_coverage(facts) if cover.measures] or _seeded_coverage(facts)
    if seeded:
        yield say("claim.by")
        yield ""
        yield from _seed_support_table(seeded, say)
    else:
        yield say("claim.none")
    for name, sentences in (
        ("may", list(_allowed_claims(facts, say))),
        ("may_not", list(_forbidden_claims(facts, say))),
    ):
        if sentences:
            yield ""
            yield f"**{say(f'claim.{name}')}**"
            yield ""
            yield from (f"- {each}" for each in sentences)


def _seeded_coverage(facts: CostFacts) -> list[JobCoverage]:
    return [cover for cover in facts.covers if cover.across == "seed"]


def _measured_coverage(facts: CostFacts) -> list[JobCoverage]:
    seeded = _seeded_coverage(facts)
    return [cover for cover in seeded if cover.measures] or seeded[:1]


def _fewest_seeds_of_job(cover: JobCoverage) -> FewestSeeds:
    counts = [(states.count("DONE"), sum(map(bool, states))) for _, states in cover.rows]
    k, n = min(counts, key=lambda each: (each[0], -each[1]))
    return FewestSeeds(cover.job, k, n)


def _support_key(k: int) -> str:
    return f"n.{next(limit for limit in (10, 5, 3, 2, 1, 0) if k >= limit)}"


def _seed_support_table(covers: list[JobCoverage], say: Catalogue) -> Iterator[str]:
    yield f"| {say('claim.job')} | {say('claim.row')} | {say('claim.seeds')} | {say('claim.supports')} |"
    yield "|---|---|---|---|"
    rows = [(cover, name, states) for cover in covers for name, states in cover.rows]
    for cover, name, states in rows[:MOST_CLAIM_ROWS]:
        k, n = states.count("DONE"), sum(map(bool, states))
        there = say("claim.k", k=k, n=n, seeds=say.list(cover.seeds_of(states))) if k else f"0/{n}"
        yield f"| {cover.job} | {escape_sentence(name) or '—'} | {there} | {say(_support_key(k))} |"
    if len(rows) > MOST_CLAIM_ROWS:
        yield f"| … | … | … | {say('claim.more', n=len(rows) - MOST_CLAIM_ROWS)} |"


def _allowed_claims(facts: CostFacts, say: Catalogue) -> Iterator[str]:
    for made in facts.products:
        proof = say("claim.proven") if made.proved else ""
        yield say("may.done", job=made.job, cells=say.count("cell", made.cells), proof=proof)
    for cover in _seeded_coverage(facts):
        found = _fewest_seeds_of_job(cover)
        if cover.measures and found.k:
            seeds = say.count("seed", found.k)
            yield say("may.results", job=cover.job, n=seeds, supports=say(_support_key(found.k)))


def _forbidden_claims(facts: CostFacts, say: Catalogue) -> Iterator[str]:
    if facts.done < facts.declared:
        yield say("may_not.complete", k=facts.done, n=facts.declared)
    for cover in facts.covers:
        if not cover.done:
            yield say("may_not.nothing", job=cover.job)
    for cover in _measured_coverage(facts):
        yield from _comparison_limits(cover, say)
    if facts.done and not any(made.results for made in facts.products):
        yield say("may_not.unmeasured")
    for note, cells in facts.doubts:
        yield say("may_not.doubt", cells=say.cells(cells), note=escape_sentence(note))
    if facts.outdated:
        yield say("may_not.outdated", cells=say.cells(facts.outdated))
    for split, text in facts.proxies.items():
        yield say("may_not.proxy", split=split, note=escape_sentence(text.rstrip(".。 ")))
    if facts.sums.unaccounted and facts.sums.unaccounted >= 0.005:
        yield say("may_not.bill", unaccounted=format_money(facts.sums.unaccounted, facts.sums))


def _comparison_limits(cover: JobCoverage, say: Catalogue) -> Iterator[str]:
    if len(cover.rows) < 2 or not cover.done:
        return
    found = _fewest_seeds_of_job(cover)
    if found.k < SEEDS_TO_COMPARE:
        yield say("may_not.compare", job=cover.job, n=found.k, of=found.n)
    there = [set(cover.seeds_of(states)) for _, states in cover.rows]
    common = [column for column in cover.columns if all(column in seeds for seeds in there)]
    if any(seeds != there[0] for seeds in there):
        seeds = say.list(common)
        yield say("may_not.common", job=cover.job, seeds=seeds) if common else say("may_not.no_common", job=cover.job)


MOST_BOXES = 12


def diagrams_section(facts: CostFacts, say: Catalogue) -> Iterator[str]:
    for number, (name, draw) in enumerate(
        (("pipeline", _pipeline_diagram), ("gap", _missing_cells_diagram), ("money", _spending_pie))
    ):
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


def _pipeline_diagram(facts: CostFacts, _: Catalogue) -> Iterator[str]:
    ids = {cover.job: f"j{number}" for number, cover in enumerate(facts.covers)}
    yield "flowchart LR"
    for cover in facts.covers:
        mark = "✅" if cover.done == cover.declared else "❌"
        yield f'  {ids[cover.job]}["{_mermaid_label_text(cover.job)} {mark} {cover.done}/{cover.declared}"]'
    for cover in facts.covers:
        for need in cover.needs:
            if need in ids:
                yield f"  {ids[need]} --> {ids[cover.job]}"


def _missing_cells_diagram(facts: CostFacts, say: Catalogue) -> Iterator[str]:
    yield "flowchart LR"
    yield f'  all["{say("picture.declared", n=facts.declared)}"] --> done["✅ {say("picture.done", n=facts.done)}"]'
    if facts.running:
        yield f'  all --> running["▶ {say("picture.running", n=facts.running)}"]'
    groups = [group for each in facts.absent if each.why != "alive" for group in group_cell_names(each.cells)]
    for number, group in enumerate(groups[:MOST_BOXES]):
        yield f'  all --> m{number}["❌ {say("picture.missing", cells=_mermaid_label_text(group))}"]'
    if len(groups) > MOST_BOXES:
        yield f'  all --> more["… +{len(groups) - MOST_BOXES}"]'


def _spending_pie(facts: CostFacts, say: Catalogue) -> Iterator[str]:
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


def _mermaid_label_text(text: str) -> str:
    """Inside a quoted label."""
    return as_one_safe_line(text).replace('"', "'").replace("`", "'").replace("<", "#60;")
