"""Decides which quantity a number in a text is: by its place and by its value. Doubt leaves it unbound."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from muster.app.documents.document_context import DocumentContext, TextSpan
from muster.app.documents.find_numbers import Number, Numeral, half_printed_step, numeral_prints_as, scale_value
from muster.app.documents.number_scope import NEVER_ENOUGH, NumberScope, resolve_in_cell, resolve_in_sentence
from muster.app.documents.result_names import Quantity, QuantityGroup, QuantityIndex

LEAST_DIGITS = 3
ONE_SEED = 1  # a mean over one seed is that seed's value: by the value alone it may be either
FORMER_STATE = "the text speaks of a former state"
OTHER_UNITS = (1e-6, 1e-3, 1e3, 1e6)


@dataclass(frozen=True, slots=True)
class BindingTarget:
    """What a number would be bound to."""

    group: QuantityGroup
    quantities: tuple[Quantity, ...]  # one for each numeral
    scale: int = 1  # 100: the text shows percent

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(each.key for each in self.quantities)


@dataclass(frozen=True, slots=True)
class BindingDecision:
    number: Number
    state: str  # bound | ambiguous | untraced | ignored
    target: BindingTarget | None = None
    by: str = ""  # place and value | place | value; place, if ambiguous: the text has another value for it elsewhere
    why: str = ""  # what keeps it from being bound
    candidates: tuple[BindingTarget, ...] = ()
    note: str = ""
    loose: bool = False  # by its value among several configs


def decide_bindings(context: DocumentContext, numbers: Iterable[Number] | None = None) -> list[BindingDecision]:
    """One decision for each number. Where several show the same quantity, they must not contradict each other."""
    chosen = context.numbers if numbers is None else numbers
    decisions = [decide_binding(number, scope_of_number(context, number), context.book) for number in chosen]
    claims: dict[tuple[str, ...], list[BindingDecision]] = {}
    beside: dict[tuple[tuple[str, ...], int], list[BindingDecision]] = {}
    for decision in decisions:
        if decision.target:
            claims.setdefault(decision.target.keys, []).append(decision)
            near = neighbourhood_of(context, decision.number.start)
            beside.setdefault((decision.target.keys, near), []).append(decision)
    contradicted = {
        decision.number.start for rivals in claims.values() for decision in _contradicting_decisions(rivals)
    }
    doubtful = {
        decision.number.start for rivals in beside.values() for decision in _former_values_beside_current(rivals)
    }
    doubtful |= {decision.number.start for decision in _loose_beside_unknown(context, decisions)}
    return list(_apply_doubts(decisions, contradicted, doubtful))


def _apply_doubts(
    decisions: Sequence[BindingDecision], contradicted: set[int], doubtful: set[int]
) -> Iterator[BindingDecision]:
    for decision in decisions:
        if decision.number.start in doubtful:
            yield _as_doubtful(decision)
        elif decision.number.start in contradicted:
            yield replace(_as_doubtful(decision), by="place")
        else:
            yield decision


def neighbourhood_of(context: DocumentContext, at: int) -> int:
    """The paragraph; of a cell the line."""
    place = context.layout.at(at)
    return place.start if place and not place.cell else -context.source.where(at)[0]


def _contradicting_decisions(rivals: Sequence[BindingDecision]) -> list[BindingDecision]:
    """By place alone: a second table like the first may be about something else, of which nothing is said."""
    placed = [each for each in rivals if each.by == "place"]
    if len(rivals) > len(placed):
        return placed
    return placed if _values_differ(placed) else []


def _former_values_beside_current(rivals: Sequence[BindingDecision]) -> list[BindingDecision]:
    """`from 0.999 to 1.117`: a paragraph with two values of a result tells of a change; only the current is bound."""
    if not _values_differ(rivals):
        return []
    return [each for each in rivals if not each.target or agreement_with_target(each.number, each.target) != "now"]


def _loose_beside_unknown(context: DocumentContext, decisions: Sequence[BindingDecision]) -> Iterator[BindingDecision]:
    """`ppo, cpo reach 4.372, 3.010`: where one of the numbers is no result, the other may be one by chance."""
    unknown = {_sentence_span_of(context, each.number) for each in decisions if each.state in ("untraced", "ambiguous")}
    for decision in decisions:
        if decision.loose and decision.target and _sentence_span_of(context, decision.number) in unknown:
            yield decision


def _sentence_span_of(context: DocumentContext, number: Number) -> TextSpan | None:
    place = context.layout.at(number.start)
    return context.sentence(number, place).span if place and not place.cell else None


def _values_differ(rivals: Sequence[BindingDecision]) -> bool:
    """Whether they show different values, as far as their digits go."""
    heads = [each.number.numerals[0] for each in rivals]
    return any(
        not (numeral_prints_as(one, two.value) or numeral_prints_as(two, one.value))
        for one in heads
        for two in heads[:1]
    )


def _as_doubtful(decision: BindingDecision) -> BindingDecision:
    candidates = (decision.target,) if decision.target else ()
    return BindingDecision(
        decision.number, "ambiguous", why="other numbers near it do not agree", candidates=candidates
    )


def scope_of_number(context: DocumentContext, number: Number) -> NumberScope:
    place = context.layout.at(number.start)
    if place is None:
        return NumberScope(ignored=True)
    return resolve_in_cell(context, number, place) if place.cell else resolve_in_sentence(context, number, place)


def decide_binding(number: Number, scope: NumberScope, book: QuantityIndex) -> BindingDecision:
    if scope.forbidden:
        return BindingDecision(number, "ignored" if scope.ignored else "untraced", why=scope.forbidden)
    allowed = [target for group in scope.groups for target in _targets_in_group(number, scope, group, book)]
    if scope.exact and allowed:
        return _decide_by_place(number, scope, allowed)
    if scope.ignored:
        return BindingDecision(number, "ignored")
    fits = [target for target in allowed if agreement_with_target(number, target, ONE_SEED)]
    if fits:
        others = [target for group in scope.rivals for target in _targets_in_group(number, scope, group, book)]
        rivals = [target for target in others if agreement_with_target(number, target, ONE_SEED)]
        return _decide_by_value(number, scope, fits if len(rivals) <= len(fits) else rivals)
    elsewhere = _targets_with_value(number, scope, book)
    if elsewhere:
        names = ", ".join(sorted(target.group.name for target in elsewhere)[:3])
        return BindingDecision(
            number, "untraced", why=f"it is the value of {names}, which the text near it does not allow"
        )
    return BindingDecision(number, "untraced", why="no result has this value, and its place does not tell which it is")


def agreement_with_target(number: Number, target: BindingTarget, but: int = 0) -> str:
    """now, earlier, or nothing. A mean and its spread must both agree. `but`: not with the value of so many seeds."""
    told = [
        _numeral_agreement(*each, target.scale, but) for each in zip(number.numerals, target.quantities, strict=True)
    ]
    if not all(told):
        return ""
    return "now" if all(each == "now" for each in told) else "earlier"


def _numeral_agreement(numeral: Numeral, quantity: Quantity, scale: int, but: int = 0) -> str:
    if math.isfinite(quantity.value) and numeral_prints_as(numeral, scale_value(quantity.value, scale)):
        return "now"
    earlier = [value for at, value in enumerate(quantity.earlier) if quantity.seeds_then(at) != but]
    before = (value for value in earlier if math.isfinite(value))
    return "earlier" if any(numeral_prints_as(numeral, scale_value(value, scale)) for value in before) else ""


def _targets_in_group(
    number: Number, scope: NumberScope, group: QuantityGroup, book: QuantityIndex
) -> Iterator[BindingTarget]:
    """What the number would be in this group: one target, or one for each way to read a percent sign."""
    stats = ("mean", "sd") if number.pair else (f"value/{scope.seed}",) if scope.seed else (scope.stat or "mean",)
    if number.pair and scope.seed:
        return  # one seed has no spread
    found = [group.stats[stat] for stat in stats if stat in group.stats]
    if len(found) < len(stats):
        return
    for scale in _possible_scales(number, scope, group, book):
        yield BindingTarget(group, tuple(found), scale)


def _possible_scales(number: Number, scope: NumberScope, group: QuantityGroup, book: QuantityIndex) -> tuple[int, ...]:
    rate = book.is_rate(group.metric)
    if scope.stat == "n":
        return (1,)
    if scope.percent:
        unscaled = (1,) if scope.metric else ()  # a metric that is percent by itself is named
        return (100, *unscaled) if rate is None else (100,) if rate else unscaled
    return (1, 100) if rate and scope.exact and abs(number.numerals[0].value) > 1.5 else (1,)


# -- by place


def _decide_by_place(number: Number, scope: NumberScope, targets: Sequence[BindingTarget]) -> BindingDecision:
    fits = [target for target in targets if agreement_with_target(number, target)]
    if len(fits) == 1 and not (scope.former and agreement_with_target(number, fits[0]) != "now"):
        return BindingDecision(number, "bound", fits[0], "place and value", note=scope.note)
    if len(targets) > 1:
        return BindingDecision(number, "ambiguous", why="it may be a percentage or not", candidates=tuple(targets))
    target = targets[0]
    doubt = _doubt_about_place(number, scope, target)
    if doubt:
        return BindingDecision(number, "ambiguous", why=doubt, candidates=(target,))
    return BindingDecision(number, "bound", target, "place", note=scope.note)


def _doubt_about_place(number: Number, scope: NumberScope, target: BindingTarget) -> str:
    """What speaks against a binding by place alone, where the value disagrees."""
    head = number.numerals[0]
    if scope.former:
        return FORMER_STATE
    if scope.stat == "n" and not 1 <= head.value <= target.quantities[0].n:
        return "it counts something else than seeds"
    if number.pair and scope.spread == "other":
        return "what follows ± is no standard deviation"
    if number.pair and not scope.spread and _numeral_agreement(head, target.quantities[0], target.scale):
        return "the mean agrees, what follows ± does not: it may be no standard deviation"
    if head.format.thousands and target.group.magnitude() * target.scale < 1000:
        return "its comma may be a decimal one"
    for numeral, quantity in zip(number.numerals, target.quantities, strict=True):
        shown = scale_value(quantity.value, target.scale)
        if shown and any(_shows_same_digits(numeral, shown * factor) for factor in OTHER_UNITS):
            return "it may be in another unit"
    return ""


def _shows_same_digits(numeral: Numeral, value: float) -> bool:
    return Number(0, 0, (numeral,)).digits > 1 and numeral_prints_as(numeral, value)


# -- by value


def _decide_by_value(number: Number, scope: NumberScope, fits: Sequence[BindingTarget]) -> BindingDecision:
    if len(fits) > 1:
        return BindingDecision(number, "ambiguous", why="several results have this value", candidates=tuple(fits))
    if number.pair and scope.spread == "other":
        return BindingDecision(
            number, "ambiguous", why="what follows ± is no standard deviation", candidates=tuple(fits)
        )
    if scope.former and agreement_with_target(number, fits[0]) != "now":
        return BindingDecision(number, "ambiguous", why=FORMER_STATE, candidates=tuple(fits))
    needed = LEAST_DIGITS if number.pair else scope.least
    if number.digits < needed:
        why = f"its {number.digits} digit{'s' * (number.digits != 1)} could be anything's"
        if needed == NEVER_ENOUGH:
            why = "the words near it are not all known"
        doubtful = number.digits > LEAST_DIGITS or (scope.metric and number.digits > 1)
        return BindingDecision(number, "ambiguous" if doubtful else "untraced", why=why, candidates=tuple(fits))
    return BindingDecision(number, "bound", fits[0], "value", note=scope.note, loose=scope.loose and not number.pair)


def _targets_with_value(number: Number, scope: NumberScope, book: QuantityIndex) -> list[BindingTarget]:
    """Results with this value, whatever the names near say."""
    if number.digits < LEAST_DIGITS:
        return []
    head = number.numerals[0]
    found: dict[tuple[str, str, str], BindingTarget] = {}
    for scale in (1, 100):
        middle, step = head.value / scale, half_printed_step(head.value, head.format) / scale
        for group in book.near("mean", middle - step, middle + step):
            for target in _targets_in_group(number, scope, group, book):
                if target.scale == scale and agreement_with_target(number, target):
                    found[group.identity] = target
    return list(found.values())
