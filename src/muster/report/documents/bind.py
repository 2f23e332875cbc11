"""Decides which quantity a number in a text is: by its place and by its value. Doubt leaves it unbound."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from muster.report.documents.context import Context
from muster.report.documents.format import half_step, scaled
from muster.report.documents.numbers import Number, Numeral, prints_as
from muster.report.documents.quantity import Book, Group, Quantity
from muster.report.documents.scope import NEVER, Scope
from muster.report.documents.scope_cell import in_cell
from muster.report.documents.scope_prose import in_prose
from muster.report.documents.sentences import Span

LEAST_DIGITS = 3
ONE_SEED = 1  # a mean over one seed is that seed's value: by the value alone it may be either
FORMER = "the text speaks of a former state"
OTHER_UNITS = (1e-6, 1e-3, 1e3, 1e6)


@dataclass(frozen=True, slots=True)
class Target:
    """What a number would be bound to."""

    group: Group
    quantities: tuple[Quantity, ...]  # one for each numeral
    scale: int = 1  # 100: the text shows percent

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(each.key for each in self.quantities)


@dataclass(frozen=True, slots=True)
class Decision:
    number: Number
    state: str  # bound | ambiguous | untraced | ignored
    target: Target | None = None
    by: str = ""  # place and value | place | value; place, if ambiguous: the text has another value for it elsewhere
    why: str = ""  # what keeps it from being bound
    candidates: tuple[Target, ...] = ()
    note: str = ""
    loose: bool = False  # by its value among several configs


def decide_all(context: Context, numbers: Iterable[Number] | None = None) -> list[Decision]:
    """One decision for each number. Where several show the same quantity, they must not contradict each other."""
    chosen = context.numbers if numbers is None else numbers
    decisions = [decide(number, scope_of(context, number), context.book) for number in chosen]
    claims: dict[tuple[str, ...], list[Decision]] = {}
    beside: dict[tuple[tuple[str, ...], int], list[Decision]] = {}
    for decision in decisions:
        if decision.target:
            claims.setdefault(decision.target.keys, []).append(decision)
            near = neighbourhood(context, decision.number.start)
            beside.setdefault((decision.target.keys, near), []).append(decision)
    contradicted = {decision.number.start for rivals in claims.values() for decision in _contradicting(rivals)}
    doubtful = {decision.number.start for rivals in beside.values() for decision in _before_and_after(rivals)}
    doubtful |= {decision.number.start for decision in _among_strangers(context, decisions)}
    return list(_with_doubts(decisions, contradicted, doubtful))


def _with_doubts(decisions: Sequence[Decision], contradicted: set[int], doubtful: set[int]) -> Iterator[Decision]:
    for decision in decisions:
        if decision.number.start in doubtful:
            yield _doubted(decision)
        elif decision.number.start in contradicted:
            yield replace(_doubted(decision), by="place")
        else:
            yield decision


def neighbourhood(context: Context, at: int) -> int:
    """The paragraph; of a cell the line."""
    place = context.layout.at(at)
    return place.start if place and not place.cell else -context.source.where(at)[0]


def _contradicting(rivals: Sequence[Decision]) -> list[Decision]:
    """By place alone: a second table like the first may be about something else, of which nothing is said."""
    placed = [each for each in rivals if each.by == "place"]
    if len(rivals) > len(placed):
        return placed
    return placed if _differ(placed) else []


def _before_and_after(rivals: Sequence[Decision]) -> list[Decision]:
    """`from 0.999 to 1.117`: a paragraph with two values of a result tells of a change; only the current is bound."""
    if not _differ(rivals):
        return []
    return [each for each in rivals if not each.target or agreement(each.number, each.target) != "now"]


def _among_strangers(context: Context, decisions: Sequence[Decision]) -> Iterator[Decision]:
    """`ppo, cpo reach 4.372, 3.010`: where one of the numbers is no result, the other may be one by chance."""
    unknown = {_sentence(context, each.number) for each in decisions if each.state in ("untraced", "ambiguous")}
    for decision in decisions:
        if decision.loose and decision.target and _sentence(context, decision.number) in unknown:
            yield decision


def _sentence(context: Context, number: Number) -> Span | None:
    place = context.layout.at(number.start)
    return context.sentence(number, place).span if place and not place.cell else None


def _differ(rivals: Sequence[Decision]) -> bool:
    """Whether they show different values, as far as their digits go."""
    heads = [each.number.numerals[0] for each in rivals]
    return any(not (prints_as(one, two.value) or prints_as(two, one.value)) for one in heads for two in heads[:1])


def _doubted(decision: Decision) -> Decision:
    candidates = (decision.target,) if decision.target else ()
    return Decision(decision.number, "ambiguous", why="other numbers near it do not agree", candidates=candidates)


def scope_of(context: Context, number: Number) -> Scope:
    place = context.layout.at(number.start)
    if place is None:
        return Scope(ignored=True)
    return in_cell(context, number, place) if place.cell else in_prose(context, number, place)


def decide(number: Number, scope: Scope, book: Book) -> Decision:
    if scope.forbidden:
        return Decision(number, "ignored" if scope.ignored else "untraced", why=scope.forbidden)
    allowed = [target for group in scope.groups for target in _targets(number, scope, group, book)]
    if scope.exact and allowed:
        return _by_place(number, scope, allowed)
    if scope.ignored:
        return Decision(number, "ignored")
    fits = [target for target in allowed if agreement(number, target, ONE_SEED)]
    if fits:
        others = [target for group in scope.rivals for target in _targets(number, scope, group, book)]
        rivals = [target for target in others if agreement(number, target, ONE_SEED)]
        return _by_value(number, scope, fits if len(rivals) <= len(fits) else rivals)
    elsewhere = _anywhere(number, scope, book)
    if elsewhere:
        names = ", ".join(sorted(target.group.name for target in elsewhere)[:3])
        return Decision(number, "untraced", why=f"it is the value of {names}, which the text near it does not allow")
    return Decision(number, "untraced", why="no result has this value, and its place does not tell which it is")


def agreement(number: Number, target: Target, but: int = 0) -> str:
    """now, earlier, or nothing. A mean and its spread must both agree. `but`: not with the value of so many seeds."""
    told = [_agrees(*each, target.scale, but) for each in zip(number.numerals, target.quantities, strict=True)]
    if not all(told):
        return ""
    return "now" if all(each == "now" for each in told) else "earlier"


def _agrees(numeral: Numeral, quantity: Quantity, scale: int, but: int = 0) -> str:
    if math.isfinite(quantity.value) and prints_as(numeral, scaled(quantity.value, scale)):
        return "now"
    earlier = [value for at, value in enumerate(quantity.earlier) if quantity.seeds_then(at) != but]
    before = (value for value in earlier if math.isfinite(value))
    return "earlier" if any(prints_as(numeral, scaled(value, scale)) for value in before) else ""


def _targets(number: Number, scope: Scope, group: Group, book: Book) -> Iterator[Target]:
    """What the number would be in this group: one target, or one for each way to read a percent sign."""
    stats = ("mean", "sd") if number.pair else (f"value/{scope.seed}",) if scope.seed else (scope.stat or "mean",)
    if number.pair and scope.seed:
        return  # one seed has no spread
    found = [group.stats[stat] for stat in stats if stat in group.stats]
    if len(found) < len(stats):
        return
    for scale in _scales(number, scope, group, book):
        yield Target(group, tuple(found), scale)


def _scales(number: Number, scope: Scope, group: Group, book: Book) -> tuple[int, ...]:
    rate = book.is_rate(group.metric)
    if scope.stat == "n":
        return (1,)
    if scope.percent:
        unscaled = (1,) if scope.metric else ()  # a metric that is percent by itself is named
        return (100, *unscaled) if rate is None else (100,) if rate else unscaled
    return (1, 100) if rate and scope.exact and abs(number.numerals[0].value) > 1.5 else (1,)


# -- by place


def _by_place(number: Number, scope: Scope, targets: Sequence[Target]) -> Decision:
    fits = [target for target in targets if agreement(number, target)]
    if len(fits) == 1 and not (scope.former and agreement(number, fits[0]) != "now"):
        return Decision(number, "bound", fits[0], "place and value", note=scope.note)
    if len(targets) > 1:
        return Decision(number, "ambiguous", why="it may be a percentage or not", candidates=tuple(targets))
    target = targets[0]
    doubt = _doubt(number, scope, target)
    if doubt:
        return Decision(number, "ambiguous", why=doubt, candidates=(target,))
    return Decision(number, "bound", target, "place", note=scope.note)


def _doubt(number: Number, scope: Scope, target: Target) -> str:
    """What speaks against a binding by place alone, where the value disagrees."""
    head = number.numerals[0]
    if scope.former:
        return FORMER
    if scope.stat == "n" and not 1 <= head.value <= target.quantities[0].n:
        return "it counts something else than seeds"
    if number.pair and scope.spread == "other":
        return "what follows ± is no standard deviation"
    if number.pair and not scope.spread and _agrees(head, target.quantities[0], target.scale):
        return "the mean agrees, what follows ± does not: it may be no standard deviation"
    if head.format.thousands and target.group.magnitude() * target.scale < 1000:
        return "its comma may be a decimal one"
    for numeral, quantity in zip(number.numerals, target.quantities, strict=True):
        shown = scaled(quantity.value, target.scale)
        if shown and any(_same_digits(numeral, shown * factor) for factor in OTHER_UNITS):
            return "it may be in another unit"
    return ""


def _same_digits(numeral: Numeral, value: float) -> bool:
    return Number(0, 0, (numeral,)).digits > 1 and prints_as(numeral, value)


# -- by value


def _by_value(number: Number, scope: Scope, fits: Sequence[Target]) -> Decision:
    if len(fits) > 1:
        return Decision(number, "ambiguous", why="several results have this value", candidates=tuple(fits))
    if number.pair and scope.spread == "other":
        return Decision(number, "ambiguous", why="what follows ± is no standard deviation", candidates=tuple(fits))
    if scope.former and agreement(number, fits[0]) != "now":
        return Decision(number, "ambiguous", why=FORMER, candidates=tuple(fits))
    needed = LEAST_DIGITS if number.pair else scope.least
    if number.digits < needed:
        why = f"its {number.digits} digit{'s' * (number.digits != 1)} could be anything's"
        if needed == NEVER:
            why = "the words near it are not all known"
        doubtful = number.digits > LEAST_DIGITS or (scope.metric and number.digits > 1)
        return Decision(number, "ambiguous" if doubtful else "untraced", why=why, candidates=tuple(fits))
    return Decision(number, "bound", fits[0], "value", note=scope.note, loose=scope.loose and not number.pair)


def _anywhere(number: Number, scope: Scope, book: Book) -> list[Target]:
    """Results with this value, whatever the names near say."""
    if number.digits < LEAST_DIGITS:
        return []
    head = number.numerals[0]
    found: dict[tuple[str, str, str], Target] = {}
    for scale in (1, 100):
        middle, step = head.value / scale, half_step(head.value, head.format) / scale
        for group in book.near("mean", middle - step, middle + step):
            for target in _targets(number, scope, group, book):
                if target.scale == scale and agreement(number, target):
                    found[group.identity] = target
    return list(found.values())
