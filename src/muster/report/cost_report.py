"""What did it buy? The cost report as Markdown: the bottom line first, then what it rests on."""

from __future__ import annotations

import math
from collections.abc import Iterator

from muster.report.cost_claims import claims, least, supports
from muster.report.cost_facts import Amount, CostFacts, Cover, Loss, Noted, Product
from muster.report.cost_pictures import pictures
from muster.report.cost_words import CostWords
from muster.report.record import all_cells
from muster.report.record_facts import Absent, FilterSet
from muster.report.record_wording import code, moment, plain, short

MARKS = {"DONE": "✅", "": "—"}
MOST_CELLS = 400  # of a matrix that is shown cell by cell
OUTPUTS = 3
DOUBTS = 3


def cost_markdown(facts: CostFacts) -> str:
    say = CostWords(facts.language)
    lines = [f"# {say('cost.title', campaign=plain(facts.campaign))}", "", *_made(facts, say)]
    went = "went_money" if facts.sums.price else "went"
    sections = (
        ("bottom", _bottom), ("covered", _covered), (went, _went), ("made_of", _products), ("causes", _causes),
        ("claims", claims), ("pictures", pictures), ("finish", _finish), ("evidence", _evidence),
    )  # fmt: skip
    for name, write in sections:
        lines += ["", f"## {say(f'cost.{name}')}", "", *write(facts, say)]
    return "\n".join(lines).rstrip() + "\n"


def _made(facts: CostFacts, say: CostWords) -> Iterator[str]:
    yield say("cost.made", at=moment(facts.at), folder=facts.folder, version=facts.version)


# -- the bottom line


def _bottom(facts: CostFacts, say: CostWords) -> Iterator[str]:
    key = "complete" if facts.done == facts.declared else "incomplete" if facts.done else "nothing"
    missing = facts.declared - facts.done
    jobs = say.list([f"`{cover.job}` {cover.done}/{cover.declared}" for cover in facts.covers])
    told = [say(f"bottom.{key}", done=facts.done, declared=facts.declared, missing=missing, jobs=jobs)]
    if facts.running:
        told.append(say("bottom.running", n=facts.running))
    yield say.join(told)
    yield ""
    yield "- " + say.join(list(_spent(facts, say)))
    if facts.missing and facts.done:
        yield "- " + say("bottom.missing", cells=all_cells(facts.missing, say))
    for note, cells in facts.doubts[:DOUBTS]:
        yield "- " + say("bottom.doubt", cells=say.count("count.cell", len(cells)), note=plain(note))
    measured = least(facts)
    if facts.done and measured is not None:
        yield "- " + say("bottom.claim", claim=supports(measured, say))
    elif facts.done and not any(made.results for made in facts.products):
        yield "- " + say("bottom.unmeasured")
    yield "- " + _next(facts, say)


def _spent(facts: CostFacts, say: CostWords) -> Iterator[str]:
    sums = facts.sums
    hours = say.time(sums.total.hours, sums)
    if sums.total.money is None:
        yield say("bottom.spent_hours", hours=hours)
    else:
        yield say("bottom.spent", money=say.money(sums.total.money, sums), hours=hours)
    yield from _shares(facts, say)
    if sums.paid is not None and sums.total.money is not None:
        paid = say.money(sums.paid, sums)
        more = sums.total.money - sums.paid
        if sums.unaccounted and sums.unaccounted >= 0.005:
            yield say("bottom.unaccounted", paid=paid, unaccounted=say.money(sums.unaccounted, sums))
        elif more >= 0.005:
            yield say("bottom.more_spent", paid=paid, more=say.money(more, sums))
        else:
            yield say("bottom.explained", paid=paid)


def _shares(facts: CostFacts, say: CostWords) -> Iterator[str]:
    by = dict(facts.sums.accounts)
    total = facts.sums.total.hours
    if not total:
        return
    share = say.share(by["productive"].hours / total)
    if by["wasted"].hours:
        causes = say.list([f"{code(loss.cause)} ×{loss.attempts}" for loss in facts.losses], most=4)
        yield say("bottom.productive", share=share, wasted=say.share(by["wasted"].hours / total), causes=causes)
    elif by["productive"].hours:
        yield say("bottom.all_productive", share=share)
    if by["idle"].hours:
        yield say("bottom.idle", share=say.share(by["idle"].hours / total))


def _next(facts: CostFacts, say: CostWords) -> str:
    if not facts.completion:
        return say("bottom.next_none" if not facts.missing or facts.running else "bottom.given_up")
    cells = say.count("count.cell", len(facts.completion))
    if facts.complete_for is None:
        return say("bottom.next_unknown", cells=cells)
    key = "bottom.next_more" if facts.unknown_jobs else "bottom.next"
    return say(key, cells=cells, jobs=_unknown(facts, say), **_takes(facts.complete_for, facts, say))


def _unknown(facts: CostFacts, say: CostWords) -> str:
    return say.list([code(job) for job in facts.unknown_jobs])


def _takes(amount: Amount, facts: CostFacts, say: CostWords) -> dict[str, str]:
    money = say("made.money", money=say.money(amount.money, facts.sums)) if amount.money is not None else ""
    return {"hours": say.time(amount.hours, facts.sums, gpu=True), "money": money}


# -- coverage


def _covered(facts: CostFacts, say: CostWords) -> Iterator[str]:
    for number, cover in enumerate(facts.covers):
        if number:
            yield ""
        if not cover.axes:
            yield say("cover.once", job=cover.job, state=mark(cover.rows[0][1][0]))
            continue
        yield f"**{say('cover.job', job=cover.job, done=cover.done, declared=cover.declared)}**"
        yield ""
        yield from _matrix(cover, say)
    yield ""
    yield say("cover.legend")


def _matrix(cover: Cover, say: CostWords) -> Iterator[str]:
    others = [plain(axis) for axis in cover.axes if axis != cover.across]
    corner = f"{' / '.join(others)} \\ {plain(cover.across)}" if others else plain(cover.across)
    if len(cover.rows) * len(cover.columns) > MOST_CELLS:
        yield f"| {' / '.join(others) or cover.job} | {say('cover.rows')} |"
        yield "|---|---|"
        for name, states in cover.rows:
            count = say("cover.count", k=states.count("DONE"), n=sum(map(bool, states)))
            yield f"| {plain(name) or cover.job} | {count} |"
        return
    yield f"| {corner} | {' | '.join(plain(column) for column in cover.columns)} |"
    yield "|---" * (len(cover.columns) + 1) + "|"
    for name, states in cover.rows:
        yield f"| {plain(name) or cover.job} | {' | '.join(map(mark, states))} |"


def mark(state: str) -> str:
    if state in MARKS:
        return MARKS[state]
    return f"▶ {state}" if state in ("RUNNING", "QUIET") else f"❌ {state}"


# -- hours and money


def _went(facts: CostFacts, say: CostWords) -> Iterator[str]:
    sums = facts.sums
    head = [say("went.account"), say("went.hours"), say("went.share"), say("went.meaning")]
    if sums.price:
        head.insert(2, sums.currency)
    yield f"| {' | '.join(head)} |"
    yield "|---|" + "---:|" * (len(head) - 2) + "---|"
    for name, amount in (*sums.accounts, ("total", sums.total)):
        if name in ("productive", "wasted", "total") or amount.hours or amount.money:
            share = say.share(amount.hours / sums.total.hours) if sums.total.hours else ""
            row = [
                say(f"account.{name}"),
                say.span(amount.hours),
                share,
                "" if name == "total" else say(f"meaning.{name}"),
            ]
            if sums.price:
                row.insert(2, f"{amount.money or 0.0:.2f}")
            yield f"| {' | '.join(row)} |"
    yield ""
    for line in _about_money(facts, say):
        yield f"- {line}"


def _about_money(facts: CostFacts, say: CostWords) -> Iterator[str]:
    sums = facts.sums
    if not sums.price:
        yield say("went.no_price")
    else:
        since = say("went.since", at=moment(sums.since)) if sums.since else say("went.first_start")
        yield say(f"went.price_{sums.unit}", price=say.money(sums.price, sums), since=since)
    if sums.adopted:
        yield say("went.adopted", n=sums.adopted, hours=say.time(sums.adopted_hours, sums, gpu=True))
    if sums.paid is not None and sums.total.money is not None:
        key = "unaccounted" if sums.unaccounted and sums.unaccounted >= 0.005 else "paid"
        parts = {"paid": sums.paid, "spent": sums.total.money, "unaccounted": sums.unaccounted or 0.0}
        yield say(f"went.{key}", **{name: say.money(amount, sums) for name, amount in parts.items()})
    if sums.per == "machine" and sums.gpu_hours:
        yield say("went.gpu_hours", hours=say.span(sums.gpu_hours))
    if sums.free_hours and sums.free_hours >= 0.01:
        yield say("went.free", hours=say.span(sums.free_hours))
    if sums.forecast and facts.completion:
        low, mid, high = (say.money(each, sums) for each in sums.forecast)
        without = say("went.without", jobs=_unknown(facts, say)) if facts.unknown_jobs else ""
        yield say("went.forecast", low=low, mid=mid, high=high, without=without)
    if sums.budget is not None and sums.total.money is not None:
        left = sums.budget - sums.total.money
        key, amount = ("budget", "left") if left >= 0 else ("over", "over")
        yield say(f"went.{key}", budget=say.money(sums.budget, sums), **{amount: say.money(abs(left), sums)})


# -- products


def _products(facts: CostFacts, say: CostWords) -> Iterator[str]:
    if not facts.products:
        yield say("made.none")
    for made in facts.products:
        steps = say("made.steps", n=f"{made.steps:,}") if made.steps else ""
        cells = say.count("count.cell", made.cells)
        yield "- " + say("made.job", job=made.job, cells=cells, steps=steps, **_takes(made.spent, facts, say))
        yield from (f"  - {line}" for line in _of_product(made, say))


def _of_product(made: Product, say: CostWords) -> Iterator[str]:
    short_, long = say.span(made.shortest_h), say.span(made.longest_h)
    yield say("made.each", length=short_ if short_ == long else say("made.between", short=short_, long=long))
    if made.checkpoints is None:
        yield say("made.no_checkpoints")
    else:
        key = "made.fewer" if made.checkpoints < made.cells else "made.checkpoints"
        yield say(key, files=say.count("count.checkpoint_file", made.checkpoints), pattern=made.pattern)
    yield say("made.results", names=say.list(made.results)) if made.results else say("made.no_results")
    if made.adopted:
        yield say("made.adopted", n=made.adopted)
    if made.outputs:
        yield say("made.output", paths=say.list([f"`{path}`" for path in made.outputs], most=OUTPUTS))


# -- root causes


def _causes(facts: CostFacts, say: CostWords) -> Iterator[str]:
    parts = [
        ("filters", [_filter(each, say) for each in facts.filters if each.left_out]),
        ("losses", [_loss(each, facts, say) for each in facts.losses]),
        ("absent", [[_absent(each, say)] for each in facts.absent]),
        ("notes", [_note(each, say) for each in facts.notes]),
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
    attempts = say.count("count.attempt", len(facts.retries))
    retried = say("cause.retries", attempts=attempts, cells=say.cells(facts.retries)) if facts.retries else ""
    yield retried or say("cause.no_retries")


def _filter(each: FilterSet, say: CostWords) -> list[str]:
    count = say.count("count.cell", len(each.left_out))
    return [say("cause.filter", at=moment(each.at), who=each.who, only=each.only, count=count,
                cells=say.cells(each.left_out))]  # fmt: skip


def _loss(loss: Loss, facts: CostFacts, say: CostWords) -> list[str]:
    attempts, how = say.count("count.attempt", loss.attempts), say(f"how.{loss.how}")
    told = [say("cause.loss", cause=code(loss.cause), how=how, attempts=attempts, cells=say.cells(loss.cells),
                **_takes(loss.spent, facts, say))]  # fmt: skip
    if loss.reason and loss.how != "superseded":
        told.append(say("cause.said", reason=plain(short(loss.reason))))
    told += [say("cause.line", text=code(short(line))) for line in loss.lines]
    if loss.log:
        told.append(say("cause.log", path=loss.log))
    if loss.advice:
        told.append(say("cause.advice", text=plain(loss.advice)))
    return told


def _absent(each: Absent, say: CostWords) -> str:
    parts = {name: plain(short(text)) for name, text in each.parts.items()} | {"state": each.state}
    if "at" in parts:
        parts["at"] = moment(each.parts["at"])
    if "needs" in parts:
        parts["needs"] = say.cells(each.parts["needs"].split(","))
    return say("cause.why", cells=all_cells(each.cells, say), why=say(f"absent.{each.why}", **parts))


def _note(note: Noted, say: CostWords) -> list[str]:
    about = say("cause.about", cell=note.cell) if note.cell else ""
    told = [say("cause.note", at=moment(note.at), who=note.who, cell=about, text=plain(note.text))]
    if note.file:
        line = say("cause.stands", text=code(short(note.line.strip()))) if note.line.strip() else ""
        told.append(say("cause.evidence", file=note.file, line=line))
    return told


# -- completion


def _finish(facts: CostFacts, say: CostWords) -> Iterator[str]:
    if not facts.completion:
        key = "finish.now" if facts.running else "finish.none" if not facts.missing else "finish.given_up"
        yield say(key)
        return
    count = say.count("count.cell", len(facts.completion))
    yield "- " + say("finish.cells", count=count, cells=all_cells(facts.completion, say))
    if facts.complete_for is None:
        yield "- " + say("finish.unknown", jobs=_unknown(facts, say))
    else:
        yield "- " + say("finish.takes", **_takes(facts.complete_for, facts, say))
        if facts.unknown_jobs:
            yield "- " + say("finish.more", jobs=_unknown(facts, say))
        yield from (f"- {line}" for line in _fits(facts, facts.complete_for, say))
    if facts.fixes:
        yield "- " + say("finish.commands")
        yield from (f"  {number}. {code(fix.command)}" for number, fix in enumerate(facts.fixes, 1))
    elif facts.running:
        yield "- " + say("finish.now")
    yield "- " + say("finish.then")


def _fits(facts: CostFacts, amount: Amount, say: CostWords) -> Iterator[str]:
    sums = facts.sums
    if sums.budget is None or sums.total.money is None or amount.money is None:
        return
    left = sums.budget - sums.total.money
    over = amount.money - left
    needed = max(sums.total.money + amount.money, sums.forecast[2] if sums.forecast else 0.0)
    parts = {"left": max(0.0, left), "over": over, "needed": math.ceil(needed * 100) / 100}
    key = "fits" if over <= 0 else "over" if left > 0 else "spent"
    yield say(f"finish.{key}", **{name: say.money(each, sums) for name, each in parts.items()})


def _evidence(facts: CostFacts, say: CostWords) -> Iterator[str]:
    for place in facts.places:
        of = code(place.of) if place.of else ""
        yield f"- {say(f'place.{place.what}', of=of)}{say('colon')}`{place.path}`"
