"""`muster docs audit`: numbers that agree with the results, disagree, or can't be traced; stale neighbours of a
changed number; a ± that does not say whether it is sd, standard error or interval.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from muster.app.documents.bind_numbers import BindingDecision, decide_bindings, neighbourhood_of, scope_of_number
from muster.app.documents.document_context import DocumentContext
from muster.app.documents.find_numbers import Number, Numeral, numeral_prints_as, read_numeral, scale_value
from muster.app.documents.number_bindings import (
    Binding,
    BoundNumeral,
    LostBinding,
    UpdateRefused,
    current_token,
    make_binding,
    stands_in_place_of,
)
from muster.app.documents.result_names import Quantity

NUMBER_STATES = ("agrees", "stale", "disagrees", "untraced")


@dataclass(frozen=True, slots=True)
class NumberFinding:
    start: int
    text: str
    state: str  # agrees | stale | disagrees | untraced
    keys: tuple[str, ...] = ()
    should: str = ""  # what it would be now
    because: str = ""
    bound: bool = False
    candidates: tuple[str, ...] = ()


def audit_numbers_of_text(
    context: DocumentContext, bindings: Sequence[Binding], lost: Sequence[LostBinding] = ()
) -> list[NumberFinding]:
    """Every number that could stem from results, in order. Bindings are in order, too.

    `lost`: bindings that were not found again. A number that stands in the place of one was changed by hand."""
    found = [finding_of_binding(binding, context.book.by_key, bound=True) for binding in bindings]
    changed = _numbers_changed_by_hand(context, bindings, lost)
    found += [_finding_of_changed(context, number, binding) for number, binding in changed]
    taken = {number.start for number, _ in changed}
    rest = [number for number in unbound_numbers(context, bindings) if number.start not in taken]
    for decision in decide_bindings(context, rest):
        told = _finding_of_decision(context, decision)
        if told:
            found.append(told)
    return sorted(found, key=lambda finding: finding.start)


def unbound_numbers(context: DocumentContext, bindings: Sequence[Binding]) -> Iterator[Number]:
    """Numbers that no binding touches."""
    starts = [binding.start for binding in bindings]
    for number in context.numbers:
        at = bisect_left(starts, number.end)
        if at == 0 or bindings[at - 1].end <= number.start:
            yield number


def _numbers_changed_by_hand(
    context: DocumentContext, bindings: Sequence[Binding], lost: Sequence[LostBinding]
) -> list[tuple[Number, Binding]]:
    """Numbers with what used to stand around a bound one on both sides."""
    free = list(unbound_numbers(context, bindings))
    found = []
    for each in lost:
        there = [
            number for number in free if stands_in_place_of(each.binding, context.source.text, number.start, number.end)
        ]
        if len(there) == 1 and len(there[0].numerals) == len(each.binding.parts):
            found.append((there[0], each.binding))
    return found


def _finding_of_changed(context: DocumentContext, number: Number, binding: Binding) -> NumberFinding:
    """As it would be if it still were bound."""
    parts = tuple(
        replace(part, start=numeral.start - number.start, end=numeral.end - number.start, format=numeral.format)
        for part, numeral in zip(binding.parts, number.numerals, strict=True)
    )
    token = context.source.text[number.start : number.end]
    now = replace(binding, start=number.start, token=token, parts=parts, mark=len(number.mark))
    told = finding_of_binding(now, context.book.by_key, bound=True)
    if told.state == "agrees":
        return told
    return replace(told, because=f"it was bound as {binding.token} and has been changed by hand")


def _finding_of_decision(context: DocumentContext, decision: BindingDecision) -> NumberFinding | None:
    number = decision.number
    text = context.source.text[number.start : number.end]
    if decision.state == "ignored" or (decision.state != "bound" and number.plain_integer):
        return None
    target = decision.target or (decision.candidates[0] if decision.by == "place" else None)
    if target:
        binding = make_binding(context.source.text, number, target, decision.by, decision.note)
        return finding_of_binding(binding, context.book.by_key, bound=False)
    candidates = tuple(target.group.name for target in decision.candidates)
    return NumberFinding(number.start, text, "untraced", because=_reason_of_decision(decision), candidates=candidates)


def _reason_of_decision(decision: BindingDecision) -> str:
    names = ", ".join(target.group.name for target in decision.candidates)
    return f"{decision.why}: {names}" if names else decision.why


def finding_of_binding(binding: Binding, known: Mapping[str, Quantity], *, bound: bool) -> NumberFinding:
    try:
        token, _ = current_token(binding, known, None)
    except UpdateRefused as refused:
        return NumberFinding(binding.start, binding.token, "untraced", binding.keys, because=str(refused), bound=bound)
    body = binding.token[: len(binding.token) - binding.mark]
    then = seeds_it_agreed_with(binding, known)
    state, because = "disagrees", f"bound by {binding.by}" if bound else f"its {binding.by} tells which it is"
    if all(_shows_current_value(binding, part, known[part.key]) for part in binding.parts):
        state, because = "agrees", binding.note
    elif then:
        of = known[binding.parts[0].key].n
        state, because = "stale", f"that is the value with {then} of {of} seeds"
    should = "" if state == "agrees" else token
    return NumberFinding(binding.start, body, state, binding.keys, should, because, bound)


def _numeral_of_part(binding: Binding, part: BoundNumeral) -> Numeral | None:
    read = read_numeral(binding.token[part.start : part.end])
    return Numeral(part.start, part.end, *read) if read else None


def _shows_current_value(binding: Binding, part: BoundNumeral, quantity: Quantity) -> bool:
    numeral = _numeral_of_part(binding, part)
    return numeral is not None and numeral_prints_as(numeral, scale_value(quantity.value, part.scale))


def seeds_it_agreed_with(binding: Binding, known: Mapping[str, Quantity]) -> int:
    """The number of seeds with which the text would have been right; 0: none."""
    told: list[set[int]] = []
    for part in binding.parts:
        quantity, numeral = known[part.key], _numeral_of_part(binding, part)
        values = enumerate(quantity.earlier)
        fits = {
            quantity.seeds_then(at)
            for at, value in values
            if numeral and numeral_prints_as(numeral, scale_value(value, part.scale))
        }
        told.append(fits | ({quantity.k} if _shows_current_value(binding, part, quantity) else set()))
    common = set.intersection(*told)
    return max(common, default=0)


def bindings_still_standing(
    context: DocumentContext, bindings: Sequence[Binding]
) -> tuple[list[Binding], list[LostBinding]]:
    """Bindings of a text that was edited: lost where the names near it now speak of something else."""
    numbers = {number.start: number for number in context.numbers}
    kept: list[Binding] = []
    lost: list[LostBinding] = []
    for binding in bindings:
        why = _contradiction_of_binding(context, binding, numbers.get(binding.start))
        if why:
            lost.append(LostBinding(binding, why))
        else:
            kept.append(binding)
    return kept, lost


def _contradiction_of_binding(context: DocumentContext, binding: Binding, number: Number | None) -> str:
    if number is None or number.end != binding.end or len(number.numerals) != len(binding.parts):
        return "no number stands there any more"
    quantity = context.book.by_key.get(binding.parts[0].key)
    if binding.by == "chosen" or quantity is None:
        return ""
    scope = scope_of_number(context, number)
    if scope.forbidden:
        return f"its place has changed: {scope.forbidden}"
    if all(group.identity != (quantity.config, quantity.split, quantity.metric) for group in scope.groups):
        named = ", ".join(sorted(group.name for group in scope.groups)[:3])
        return f"the text near it now speaks of {named or 'something else'}"
    return ""


UNBOUND_NEIGHBOUR = "it stands beside a number that changes, and is not bound"
_COUNT_WORDS = {
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "一": 1,
    "二": 2,
    "两": 2,
    "三": 3,
    "四": 4,
    "五": 5,
}
_SEED_COUNT = re.compile(
    r"(?P<count>(?<![0-9.])[0-9]{1,3}|\b(?:one|two|three|four|five)\b|[一二两三四五])"
    r"(?:[ -]|个)?(?:random |随机)?(?:seeds?\b|种子)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class StaleNeighbour:
    start: int
    text: str
    why: str


def find_stale_neighbours(
    context: DocumentContext, bindings: Sequence[Binding], changed: Sequence[int]
) -> list[StaleNeighbour]:
    """`changed`: where the numbers stand that change. In order."""
    near = {neighbourhood_of(context, at) for at in changed}
    found = list(_unbound_neighbours(context, bindings, near)) if near else []
    return sorted([*found, *_stale_seed_counts(context, bindings)], key=lambda each: each.start)


def _unbound_neighbours(
    context: DocumentContext, bindings: Sequence[Binding], near: set[int]
) -> Iterator[StaleNeighbour]:
    """Of a row all that are no integers; of a paragraph those that may be results, or are made from them."""
    for decision in decide_bindings(context, unbound_numbers(context, bindings)):
        number = decision.number
        place = context.layout.at(number.start)
        told = decision.state != "ignored" or (place is not None and place.cell and not place.title)
        if told and not number.plain_integer and neighbourhood_of(context, number.start) in near:
            yield StaleNeighbour(number.start, context.source.text[number.start : number.end], UNBOUND_NEIGHBOUR)


def _stale_seed_counts(context: DocumentContext, bindings: Sequence[Binding]) -> Iterator[StaleNeighbour]:
    """`over two seeds`, where the numbers are those of five."""
    known = context.book.by_key
    seeds = {known[key].k for binding in bindings for key in binding.keys if key in known}
    for found in _SEED_COUNT.finditer(context.source.shown) if seeds else ():
        word = found["count"].lower()
        if _COUNT_WORDS.get(word, int(word) if word.isdigit() else 0) not in seeds:
            many = ", ".join(str(each) for each in sorted(seeds))
            yield StaleNeighbour(found.start(), found[0], f"the bound numbers are those of {many} seeds")


# anywhere in the text: a caption, a heading, a footnote or a sentence may say it for all of them
_LABELS = re.compile(
    r"(?<![A-Za-z])(?:(?i:s\.d\.|sd|stdd?ev|std(?:\.?[ ~-]?dev)?|stderr|s\.e\.m?\.?|sem|iqr|sigma)|SE|CI)s?(?![A-Za-z])"
    r"|(?i:standard[\s~-]+(?:deviation|error)|confidence[\s~-]+(?:interval|bound|region|band)|half[\s~-]?width|variance)"
    r"|(?i:\d\d\s*\\?[%％]\s*(?:interval|band|区间))|σ|标准差|标准误|方差|置信|四分位|半宽"
)


@dataclass(frozen=True, slots=True)
class UnlabelledSpreads:
    """Means and spreads of a text that nowhere says what the spread is."""

    start: int  # of the first
    end: int
    count: int


def find_unlabelled_spreads(shown: str, numbers: Sequence[Number]) -> UnlabelledSpreads | None:
    """`shown`: what readers see of the text. One for the whole of it, however many numbers there are."""
    spreads = [number for number in numbers if number.pair]
    if not spreads or _LABELS.search(shown):
        return None
    return UnlabelledSpreads(spreads[0].start, spreads[0].end, len(spreads))
