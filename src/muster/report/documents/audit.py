"""Which numbers of a text agree with the results, which disagree, and which can't be traced."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from muster.report.documents.bind import Decision, decide_all, scope_of
from muster.report.documents.context import Context
from muster.report.documents.format import read as read_numeral
from muster.report.documents.format import scaled
from muster.report.documents.numbers import Number, Numeral, prints_as
from muster.report.documents.quantity import Quantity
from muster.report.documents.sidecar import Binding, Lost, Part, binding_of, in_place_of
from muster.report.documents.update import Refused, token_now

STATES = ("agrees", "stale", "disagrees", "untraced")


@dataclass(frozen=True, slots=True)
class Finding:
    start: int
    text: str
    state: str  # agrees | stale | disagrees | untraced
    keys: tuple[str, ...] = ()
    should: str = ""  # what it would be now
    because: str = ""
    bound: bool = False
    candidates: tuple[str, ...] = ()


def audit(context: Context, bindings: Sequence[Binding], lost: Sequence[Lost] = ()) -> list[Finding]:
    """Every number that could stem from results, in order. Bindings are in order, too.

    `lost`: bindings that were not found again. A number that stands in the place of one was changed by hand."""
    found = [of_binding(binding, context.book.by_key, bound=True) for binding in bindings]
    changed = _changed_by_hand(context, bindings, lost)
    found += [_of_changed(context, number, binding) for number, binding in changed]
    taken = {number.start for number, _ in changed}
    rest = [number for number in unbound(context, bindings) if number.start not in taken]
    for decision in decide_all(context, rest):
        told = _of_decision(context, decision)
        if told:
            found.append(told)
    return sorted(found, key=lambda finding: finding.start)


def unbound(context: Context, bindings: Sequence[Binding]) -> Iterator[Number]:
    """Numbers that no binding touches."""
    starts = [binding.start for binding in bindings]
    for number in context.numbers:
        at = bisect_left(starts, number.end)
        if at == 0 or bindings[at - 1].end <= number.start:
            yield number


def _changed_by_hand(
    context: Context, bindings: Sequence[Binding], lost: Sequence[Lost]
) -> list[tuple[Number, Binding]]:
    """Numbers with what used to stand around a bound one on both sides."""
    free = list(unbound(context, bindings))
    found = []
    for each in lost:
        there = [number for number in free if in_place_of(each.binding, context.source.text, number.start, number.end)]
        if len(there) == 1 and len(there[0].numerals) == len(each.binding.parts):
            found.append((there[0], each.binding))
    return found


def _of_changed(context: Context, number: Number, binding: Binding) -> Finding:
    """As it would be if it still were bound."""
    parts = tuple(
        replace(part, start=numeral.start - number.start, end=numeral.end - number.start, format=numeral.format)
        for part, numeral in zip(binding.parts, number.numerals, strict=True)
    )
    token = context.source.text[number.start : number.end]
    now = replace(binding, start=number.start, token=token, parts=parts, mark=len(number.mark))
    told = of_binding(now, context.book.by_key, bound=True)
    if told.state == "agrees":
        return told
    return replace(told, because=f"it was bound as {binding.token} and has been changed by hand")


def _of_decision(context: Context, decision: Decision) -> Finding | None:
    number = decision.number
    text = context.source.text[number.start : number.end]
    if decision.state == "ignored" or (decision.state != "bound" and number.plain_integer):
        return None
    target = decision.target or (decision.candidates[0] if decision.by == "place" else None)
    if target:
        binding = binding_of(context.source.text, number, target, decision.by, decision.note)
        return of_binding(binding, context.book.by_key, bound=False)
    candidates = tuple(target.group.name for target in decision.candidates)
    return Finding(number.start, text, "untraced", because=_why(decision), candidates=candidates)


def _why(decision: Decision) -> str:
    names = ", ".join(target.group.name for target in decision.candidates)
    return f"{decision.why}: {names}" if names else decision.why


def of_binding(binding: Binding, known: Mapping[str, Quantity], *, bound: bool) -> Finding:
    try:
        token, _ = token_now(binding, known, None)
    except Refused as refused:
        return Finding(binding.start, binding.token, "untraced", binding.keys, because=str(refused), bound=bound)
    body = binding.token[: len(binding.token) - binding.mark]
    then = seeds_then(binding, known)
    state, because = "disagrees", f"bound by {binding.by}" if bound else f"its {binding.by} tells which it is"
    if all(_now(binding, part, known[part.key]) for part in binding.parts):
        state, because = "agrees", binding.note
    elif then:
        of = known[binding.parts[0].key].n
        state, because = "stale", f"that is the value with {then} of {of} seeds"
    should = "" if state == "agrees" else token
    return Finding(binding.start, body, state, binding.keys, should, because, bound)


def _numeral(binding: Binding, part: Part) -> Numeral | None:
    read = read_numeral(binding.token[part.start : part.end])
    return Numeral(part.start, part.end, *read) if read else None


def _now(binding: Binding, part: Part, quantity: Quantity) -> bool:
    numeral = _numeral(binding, part)
    return numeral is not None and prints_as(numeral, scaled(quantity.value, part.scale))


def seeds_then(binding: Binding, known: Mapping[str, Quantity]) -> int:
    """The number of seeds with which the text would have been right; 0: none."""
    told: list[set[int]] = []
    for part in binding.parts:
        quantity, numeral = known[part.key], _numeral(binding, part)
        values = enumerate(quantity.earlier)
        fits = {
            quantity.seeds_then(at) for at, value in values if numeral and prints_as(numeral, scaled(value, part.scale))
        }
        told.append(fits | ({quantity.k} if _now(binding, part, quantity) else set()))
    common = set.intersection(*told)
    return max(common, default=0)


def still_standing(context: Context, bindings: Sequence[Binding]) -> tuple[list[Binding], list[Lost]]:
    """Bindings of a text that was edited: lost where the names near it now speak of something else."""
    numbers = {number.start: number for number in context.numbers}
    kept: list[Binding] = []
    lost: list[Lost] = []
    for binding in bindings:
        why = _contradicted(context, binding, numbers.get(binding.start))
        if why:
            lost.append(Lost(binding, why))
        else:
            kept.append(binding)
    return kept, lost


def _contradicted(context: Context, binding: Binding, number: Number | None) -> str:
    if number is None or number.end != binding.end or len(number.numerals) != len(binding.parts):
        return "no number stands there any more"
    quantity = context.book.by_key.get(binding.parts[0].key)
    if binding.by == "chosen" or quantity is None:
        return ""
    scope = scope_of(context, number)
    if scope.forbidden:
        return f"its place has changed: {scope.forbidden}"
    if all(group.identity != (quantity.config, quantity.split, quantity.metric) for group in scope.groups):
        named = ", ".join(sorted(group.name for group in scope.groups)[:3])
        return f"the text near it now speaks of {named or 'something else'}"
    return ""
