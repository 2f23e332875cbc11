"""What did it buy? The cost report as Markdown: the bottom line first, then what it rests on."""

from __future__ import annotations

import math
from collections.abc import Iterator

from muster.app.facts.record_facts import AbsentCells, FilterSet
from muster.app.money.cost_facts import (
    CostFacts,
    HoursAndMoney,
    JobCoverage,
    JobProduct,
    PersonNote,
    WastedAttempts,
    describe_hours,
    format_money,
    format_share,
)
from muster.app.money.cost_sections import claims_section, diagrams_section, fewest_seeds, supported_claim
from muster.text.catalogue import Catalogue, load_catalogue
from muster.text.escape_markup import escape_sentence
from muster.text.sentences import format_inline_code, format_moment, shorten_quote

MARKS = {"DONE": "✅", "": "—"}
MOST_CELLS = 400  # of a matrix that is shown cell by cell
MOST_OUTPUTS = 3
MOST_DOUBTS = 3


def cost_report_markdown(facts: CostFacts) -> str:
    say = load_catalogue("cost", facts.language)
    lines = [f"# {say('cost.title', campaign=escape_sentence(facts.campaign))}", "", *_cost_report_lead(facts, say)]
    went = "went_money" if facts.sums.price else "went"
    sections = (
        ("bottom", _cost_bottom_line),
        ("covered", _coverage_section),
        (went, _spending_section),
        ("made_of", _products_section),
        ("causes", _causes_section),
        ("claims", claims_section),
        ("pictures", diagrams_section),
        ("finish", _completion_section),
        ("evidence", _cost_evidence_section),
    )
    for name, write in sections:
        lines += ["", f"## {say(f'cost.{name}')}", "", *write(facts, say)]
    return "\n".join(lines).rstrip() + "\n"


def _cost_report_lead(facts: CostFacts, say: Catalogue) -> Iterator[str]:
    yield say("cost.made", at=format_moment(facts.at), folder=facts.folder, version=facts.version)


# -- the bottom line


def _cost_bottom_line(facts: CostFacts, say: Catalogue) -> Iterator[str]:
    key = "complete" if facts.done == facts.declared else "incomplete" if facts.done else "nothing"
    missing = facts.declared - facts.done
    jobs = say.list([f"`{cover.job}` {cover.done}/{cover.declared}" for cover in facts.covers])
    told = [say(f"bottom.{key}", done=facts.done, declared=facts.declared, missing=missing, jobs=jobs)]
    if facts.running:
        told.append(say("bottom.running", n=facts.running))
    yield say.sentences(*told)
    yield ""
    yield "- " + say.sentences(*_spent_sentences(facts, say))
    if facts.missing and facts.done:
        yield "- " + say("bottom.missing", cells=say.all_cells(facts.missing))
    for note, cells in facts.doubts[:MOST_DOUBTS]:
        yield "- " + say("bottom.doubt", cells=say.count("cell", len(cells)), note=escape_sentence(note))
    measured = fewest_seeds(facts)
    if facts.done and measured is not None:
        yield "- " + say("bottom.claim", claim=supported_claim(measured, say))
    elif facts.done and not any(made.results for made in facts.products):
        yield "- " + say("bottom.unmeasured")
    yield "- " + _next_step_sentence(facts, say)


def _spent_sentences(facts: CostFacts, say: Catalogue) -> Iterator[str]:
    sums = facts.sums
    hours = describe_hours(sums.total.hours, sums, say)
    if sums.total.money is None:
        yield say("bottom.spent_hours", hours=hours)
    else:
        yield say("bottom.spent", money=format_money(sums.total.money, sums), hours=hours)
    yield from _account_share_sentences(facts, say)
    if sums.paid is not None and sums.total.money is not None:
        paid = format_money(sums.paid, sums)
        more = sums.total.money - sums.paid
        if sums.unaccounted and sums.unaccounted >= 0.005:
            yield say("bottom.unaccounted", paid=paid, unaccounted=format_money(sums.unaccounted, sums))
        elif more >= 0.005:
            yield say("bottom.more_spent", paid=paid, more=format_money(more, sums))
        else:
            yield say("bottom.explained", paid=paid)


def _account_share_sentences(facts: CostFacts, say: Catalogue) -> Iterator[str]:
    by = dict(facts.sums.accounts)
    total = facts.sums.total.hours
    if not total:
        return
    share = format_share(by["productive"].hours / total)
    if by["wasted"].hours:
        causes = say.list([f"{format_inline_code(loss.cause)} ×{loss.attempts}" for loss in facts.losses], most=4)
        yield say("bottom.productive", share=share, wasted=format_share(by["wasted"].hours / total), causes=causes)
    elif by["productive"].hours:
        yield say("bottom.all_productive", share=share)
    if by["idle"].hours:
        yield say("bottom.idle", share=format_share(by["idle"].hours / total))


def _next_step_sentence(facts: CostFacts, say: Catalogue) -> str:
    if not facts.completion:
        return say("bottom.next_none" if not facts.missing or facts.running else "bottom.given_up")
    cells = say.count("cell", len(facts.completion))
    if facts.complete_for is None:
        return say("bottom.next_unknown", cells=cells)
    key = "bottom.next_more" if facts.unknown_jobs else "bottom.next"
    return say(
        key, cells=cells, jobs=_list_unknown_jobs(facts, say), **_effort_in_words(facts.complete_for, facts, say)
    )


def _list_unknown_jobs(facts: CostFacts, say: Catalogue) -> str:
    return say.list([format_inline_code(job) for job in facts.unknown_jobs])


def _effort_in_words(amount: HoursAndMoney, facts: CostFacts, say: Catalogue) -> dict[str, str]:
    money = say("made.money", money=format_money(amount.money, facts.sums)) if amount.money is not None else ""
    return {"hours": describe_hours(amount.hours, facts.sums, say, gpu=True), "money": money}


# -- coverage


def _coverage_section(facts: CostFacts, say: Catalogue) -> Iterator[str]:
    for number, cover in enumerate(facts.covers):
        if number:
            yield ""
        if not cover.axes:
            yield say("cover.once", job=cover.job, state=coverage_mark(cover.rows[0][1][0]))
            continue
        yield f"**{say('cover.job', job=cover.job, done=cover.done, declared=cover.declared)}**"
        yield ""
        yield from _coverage_matrix(cover, say)
    yield ""
    yield say("cover.legend")


def _coverage_matrix(cover: JobCoverage, say: Catalogue) -> Iterator[str]:
    others = [escape_sentence(axis) for axis in cover.axes if axis != cover.across]
    corner = f"{' / '.join(others)} \\ {escape_sentence(cover.across)}" if others else escape_sentence(cover.across)
    if len(cover.rows) * len(cover.columns) > MOST_CELLS:
        yield f"| {' / '.join(others) or cover.job} | {say('cover.rows')} |"
        yield "|---|---|"
        for name, states in cover.rows:
            count = say("cover.count", k=states.count("DONE"), n=sum(map(bool, states)))
            yield f"| {escape_sentence(name) or cover.job} | {count} |"
        return
    yield f"| {corner} | {' | '.join(escape_sentence(column) for column in cover.columns)} |"
    yield "|---" * (len(cover.columns) + 1) + "|"
    for name, states in cover.rows:
        yield f"| {escape_sentence(name) or cover.job} | {' | '.join(map(coverage_mark, states))} |"


def coverage_mark(state: str) -> str:
    if state in MARKS:
        return MARKS[state]
    return f"▶ {state}" if state in ("RUNNING", "QUIET") else f"❌ {state}"


# -- hours and money


def _spending_section(facts: CostFacts, say: Catalogue) -> Iterator[str]:
    sums = facts.sums
    head = [say("went.account"), say("went.hours"), say("went.share"), say("went.meaning")]
    if sums.price:
        head.insert(2, sums.currency)
    yield f"| {' | '.join(head)} |"
    yield "|---|" + "---:|" * (len(head) - 2) + "---|"
    for name, amount in (*sums.accounts, ("total", sums.total)):
        if name in ("productive", "wasted", "total") or amount.hours or amount.money:
            share = format_share(amount.hours / sums.total.hours) if sums.total.hours else ""
            row = [
                say(f"account.{name}"),
                say.span(amount.hours * 3600),
                share,
                "" if name == "total" else say(f"meaning.{name}"),
            ]
            if sums.price:
                row.insert(2, f"{amount.money or 0.0:.2f}")
            yield f"| {' | '.join(row)} |"
    yield ""
    for line in _money_notes(facts, say):
        yield f"- {line}"


def _money_notes(facts: CostFacts, say: Catalogue) -> Iterator[str]:
    sums = facts.sums
    if not sums.price:
        yield say("went.no_price")
    else:
        since = say("went.since", at=format_moment(sums.since)) if sums.since else say("went.first_start")
        yield say(f"went.price_{sums.unit}", price=format_money(sums.price, sums), since=since)
    if sums.adopted:
        yield say("went.adopted", n=sums.adopted, hours=describe_hours(sums.adopted_hours, sums, say, gpu=True))
    if sums.paid is not None and sums.total.money is not None:
        key = "unaccounted" if sums.unaccounted and sums.unaccounted >= 0.005 else "paid"
        parts = {"paid": sums.paid, "spent": sums.total.money, "unaccounted": sums.unaccounted or 0.0}
        yield say(f"went.{key}", **{name: format_money(amount, sums) for name, amount in parts.items()})
    if sums.per == "machine" and sums.gpu_hours:
        yield say("went.gpu_hours", hours=say.span(sums.gpu_hours * 3600))
    if sums.free_hours and sums.free_hours >= 0.01:
        yield say("went.free", hours=say.span(sums.free_hours * 3600))
    if sums.forecast and facts.completion:
        low, mid, high = (format_money(each, sums) for each in sums.forecast)
        without = say("went.without", jobs=_list_unknown_jobs(facts, say)) if facts.unknown_jobs else ""
        yield say("went.forecast", low=low, mid=mid, high=high, without=without)
    if sums.budget is not None and sums.total.money is not None:
        left = sums.budget - sums.total.money
        key, amount = ("budget", "left") if left >= 0 else ("over", "over")
        yield say(f"went.{key}", budget=format_money(sums.budget, sums), **{amount: format_money(abs(left), sums)})


# -- products


def _products_section(facts: CostFacts, say: Catalogue) -> Iterator[str]:
    if not facts.products:
        yield say("made.none")
    for made in facts.products:
        steps = say("made.steps", n=f"{made.steps:,}") if made.steps else ""
        cells = say.count("cell", made.cells)
        yield "- " + say("made.job", job=made.job, cells=cells, steps=steps, **_effort_in_words(made.spent, facts, say))
        yield from (f"  - {line}" for line in _product_lines(made, say))


def _product_lines(made: JobProduct, say: Catalogue) -> Iterator[str]:
    short_, long = say.span(made.shortest_h * 3600), say.span(made.longest_h * 3600)
    yield say("made.each", length=short_ if short_ == long else say("made.between", short=short_, long=long))
    if made.checkpoints is None:
        yield say("made.no_checkpoints")
    else:
        key = "made.fewer" if made.checkpoints < made.cells else "made.checkpoints"
        yield say(key, files=say.count("checkpoint_file", made.checkpoints), pattern=made.pattern)
    yield say("made.results", names=say.list(made.results)) if made.results else say("made.no_results")
    if made.adopted:
        yield say("made.adopted", n=made.adopted)
    if made.outputs:
        yield say("made.output", paths=say.list([f"`{path}`" for path in made.outputs], most=MOST_OUTPUTS))


# -- root causes


def _causes_section(facts: CostFacts, say: Catalogue) -> Iterator[str]:
    parts = [
        ("filters", [_filter_cause_lines(each, say) for each in facts.filters if each.left_out]),
        ("losses", [_loss_lines(each, facts, say) for each in facts.losses]),
        ("absent", [[_absent_cells_line(each, say)] for each in facts.absent]),
        ("notes", [_person_note_lines(each, say) for each in facts.notes]),
    ]
    told = False
    for name, found in parts:
        if found:
            yield from ([""] if told else [])
            yield f"### {say(f'cause.{name}')}"
            yield ""
            for first, *more in found:
                yield f"- {first}"
                yield from (f"  - {line}" for line in more)
            told = True
    if not told:
        yield say("cause.none")
        return
    yield ""
    attempts = say.count("attempt", len(facts.retries))
    retried = say("cause.retries", attempts=attempts, cells=say.cells(facts.retries)) if facts.retries else ""
    yield retried or say("cause.no_retries")


def _filter_cause_lines(each: FilterSet, say: Catalogue) -> list[str]:
    count = say.count("cell", len(each.left_out))
    return [
        say(
            "cause.filter",
            at=format_moment(each.at),
            who=escape_sentence(each.who),
            only=each.only,
            count=count,
            cells=say.cells(each.left_out),
        )
    ]


def _loss_lines(loss: WastedAttempts, facts: CostFacts, say: Catalogue) -> list[str]:
    attempts, how = say.count("attempt", loss.attempts), say(f"how.{loss.how}")
    told = [
        say(
            "cause.loss",
            cause=format_inline_code(loss.cause),
            how=how,
            attempts=attempts,
            cells=say.cells(loss.cells),
            **_effort_in_words(loss.spent, facts, say),
        )
    ]
    if loss.reason and loss.how != "superseded":
        told.append(say("cause.said", reason=escape_sentence(shorten_quote(loss.reason))))
    told += [say("cause.line", text=format_inline_code(shorten_quote(line))) for line in loss.lines]
    if loss.log:
        told.append(say("cause.log", path=loss.log))
    if loss.advice:
        told.append(say("cause.advice", text=escape_sentence(loss.advice)))
    return told


def _absent_cells_line(each: AbsentCells, say: Catalogue) -> str:
    parts = {name: escape_sentence(shorten_quote(text)) for name, text in each.parts.items()} | {"state": each.state}
    if "at" in parts:
        parts["at"] = format_moment(each.parts["at"])
    if "needs" in parts:
        parts["needs"] = say.cells(each.parts["needs"].split(","))
    return say("cause.why", cells=say.all_cells(each.cells), why=say(f"absent.{each.why}", **parts))


def _person_note_lines(note: PersonNote, say: Catalogue) -> list[str]:
    about = say("cause.about", cell=note.cell) if note.cell else ""
    told = [
        say(
            "cause.note",
            at=format_moment(note.at),
            who=escape_sentence(note.who),
            cell=about,
            text=escape_sentence(note.text),
        )
    ]
    if note.file:
        line = (
            say("cause.stands", text=format_inline_code(shorten_quote(note.line.strip()))) if note.line.strip() else ""
        )
        told.append(say("cause.evidence", file=note.file, line=line))
    return told


# -- completion


def _completion_section(facts: CostFacts, say: Catalogue) -> Iterator[str]:
    if not facts.completion:
        key = "finish.now" if facts.running else "finish.none" if not facts.missing else "finish.given_up"
        yield say(key)
        return
    count = say.count("cell", len(facts.completion))
    yield "- " + say("finish.cells", count=count, cells=say.all_cells(facts.completion))
    if facts.complete_for is None:
        yield "- " + say("finish.unknown", jobs=_list_unknown_jobs(facts, say))
    else:
        yield "- " + say("finish.takes", **_effort_in_words(facts.complete_for, facts, say))
        if facts.unknown_jobs:
            yield "- " + say("finish.more", jobs=_list_unknown_jobs(facts, say))
        yield from (f"- {line}" for line in _budget_fit_lines(facts, facts.complete_for, say))
    if facts.fixes:
        yield "- " + say("finish.commands")
        yield from (f"  {number}. {format_inline_code(fix.command)}" for number, fix in enumerate(facts.fixes, 1))
    elif facts.running:
        yield "- " + say("finish.now")
    yield "- " + say("finish.then")


def _budget_fit_lines(facts: CostFacts, amount: HoursAndMoney, say: Catalogue) -> Iterator[str]:
    sums = facts.sums
    if sums.budget is None or sums.total.money is None or amount.money is None:
        return
    left = sums.budget - sums.total.money
    over = amount.money - left
    needed = max(sums.total.money + amount.money, sums.forecast[2] if sums.forecast else 0.0)
    parts = {"left": max(0.0, left), "over": over, "needed": math.ceil(needed * 100) / 100}
    key = "fits" if over <= 0 else "over" if left > 0 else "spent"
    yield say(f"finish.{key}", **{name: format_money(each, sums) for name, each in parts.items()})


def _cost_evidence_section(facts: CostFacts, say: Catalogue) -> Iterator[str]:
    for place in facts.places:
        of = format_inline_code(place.of) if place.of else ""
        yield f"- {say(f'place.{place.what}', of=of)}{say('colon')}`{place.path}`"
