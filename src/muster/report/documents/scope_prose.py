"""The scope of a number in a sentence, a list item or a heading: the words around it say what it is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from muster.report.documents import aliases
from muster.report.documents.context import LONGEST, Context
from muster.report.documents.names import Names
from muster.report.documents.numbers import Number
from muster.report.documents.places import Place
from muster.report.documents.scope import (
    FIELDS,
    NEVER,
    Scope,
    best_note,
    first,
    is_former,
    seeds_only,
    spread_of,
    stat_of,
    sure,
)
from muster.report.documents.sentences import Sentence, Span

LEAST_DIGITS = 3  # where config and metric are named
LEAST_ALONE = 4  # hyperparameters have fewer
_ASSIGNED = re.compile(r"([^\s=≈:：,，;；()（）|]+)\s*[=≈]\s*$")
_IN_ORDER = re.compile(r"\brespectively\b|分别|依次", re.IGNORECASE)
_BEHIND = re.compile(r"\s?[(（]([^()（）]{1,60})[)）]")
_OPENED = re.compile(r"[(（]\s*$")
_QUOTES = (('"', '"'), ("“", "”"), ("「", "」"), ("『", "』"), ("``", "''"))


def in_prose(context: Context, number: Number, place: Place) -> Scope:
    sentence = context.sentence(number, place)
    if not sentence.clauses:
        return Scope(forbidden="its sentence is too long to be read", ignored=number.plain_integer)
    clause = next(each for each in sentence.clauses if number.start < each[1])
    before, after = context.beside(number, clause)
    here, whole = context.read(clause), context.read(sentence.span)
    above = [context.vocabulary.read(text) for text in place.above]
    own = {kind: _trusted(context, sentence, clause, here, kind) for kind in FIELDS}
    fields = {kind: own[kind] or getattr(whole, kind) or first(above, kind) for kind in FIELDS}
    beside = _in_brackets(context, before, after)
    if beside:
        fields["all_configs"] = beside
    groups = tuple(context.book.select(*(fields[kind] for kind in FIELDS)))
    certain = {kind: own[kind] or _certain(context, sentence, kind, whole, above) for kind in FIELDS}
    certain["all_configs"] = beside or certain["all_configs"]
    counted = context.is_count(number, place.start)
    seeds = here.seeds or (whole.seeds if len(whole.seeds) > 1 else frozenset())
    foreign = "" if counted else _foreign(context, before, after, here)
    forbidden = foreign
    if not counted:
        forbidden = foreign or _forbids(before, here, whole) or seeds_only(seeds, whole.counts, groups)
    if not forbidden and _is_quoted(context.source.shown, place.start, number.start):
        forbidden = "it stands in a quotation"
    exact = not forbidden and len(groups) == 1 and _tells(context, sentence, clause, here, whole, certain)
    return Scope(
        groups=groups,
        rivals=tuple(context.book.select(*(certain[kind] for kind in FIELDS))),
        exact=exact and (counted or not number.plain_integer),
        forbidden=forbidden,
        ignored=bool(foreign) or (number.plain_integer and not counted),
        least=_least(context, (sentence.span[0], number.start), before, here, whole, certain["all_configs"]),
        stat="n" if counted else stat_of(before.stats),
        seed=next(iter(seeds), "") if len(seeds) == 1 and not counted else "",
        metric=bool(fields["metrics"]),
        percent=number.percent,
        spread=spread_of([context.blanked(sentence.span)], whole.stats),
        former=is_former([context.blanked(sentence.span), *place.above[:1]])
        or aliases.FROM.search(before.text) is not None,
        loose=len(certain["all_configs"]) != 1,
        note=best_note((here,), groups),
    )


def _trusted(context: Context, sentence: Sentence, clause: Span, here: Names, kind: str) -> frozenset[str]:
    """Names of the number's own clause, unless they go on from one before: `v2_baseline, v2_u_only share 1.684`."""
    own: frozenset[str] = getattr(here, kind)
    for before in sentence.clauses[: sentence.clauses.index(clause)] if own else ():
        if getattr(context.read(before), kind) and not context.measured(before):
            return frozenset()
    return own


def _certain(context: Context, sentence: Sentence, kind: str, whole: Names, above: Sequence[Names]) -> frozenset[str]:
    """Names from elsewhere may be about something else: `Compared with v2_full, the score is 1.7`.

    They count if their clauses are understood word for word."""
    named: frozenset[str] = getattr(whole, kind)
    if not named:
        return sure(above) if kind == "all_configs" else first(above, kind)
    clauses = [context.read(clause) for clause in sentence.clauses]
    return named if all(each.understood for each in clauses if getattr(each, kind)) else frozenset()


def _in_brackets(context: Context, before: Names, after: str) -> frozenset[str]:
    """The config of `0.999 (v2_full)` and of `v2_full (0.999)`."""
    inside = _BEHIND.match(after)
    named = context.vocabulary.read(inside[1]) if inside else before if _OPENED.search(before.text) else None
    return named.configs if named and len(named.all_configs) == 1 and not named.strange else frozenset()


def _least(context: Context, lead: Span, before: Names, here: Names, whole: Names, configs: frozenset[str]) -> int:
    """How many digits make a value tell which result it is. Words that are not known may say that it is none.

    `lead`: all of the sentence that stands before it."""
    if not here.metrics and before.open_end:
        return NEVER
    if whole.all_configs and whole.metrics and (here.all_configs or here.metrics):
        return LEAST_DIGITS if len(configs) == 1 else LEAST_ALONE  # of several, or of none for certain
    if not (whole.any or here.understood) or not context.read(lead).understood:
        return NEVER
    return LEAST_DIGITS if before.metrics else LEAST_ALONE


def _foreign(context: Context, before: Names, after: str, here: Names) -> str:
    """Why it is none of the campaign's results at all."""
    if found := aliases.COUNTER.search(before.text):
        return f"it counts: {found[0].strip()}"
    if before.last == "foreign" or (before.foreign and not here.all_configs):
        return f"{before.foreign} is no result"
    if (assigned := _ASSIGNED.search(before.text)) and not _is_ours(context.vocabulary.read(assigned[1])):
        return f"{assigned[1]} is no result"
    if aliases.LIMIT.search(before.text) or aliases.LIMIT_BEHIND.match(after):
        return "others are held against it"
    unit = aliases.UNITS.match(after)
    if unit and unit["unit"].lower() not in context.vocabulary.words_of_metrics:
        return f"it is followed by {unit['unit']!r}"
    return ""


def _is_ours(names: Names) -> bool:
    return bool(names.metrics or names.all_configs or names.splits or names.stats)


def _forbids(before: Names, here: Names, whole: Names) -> str:
    if here.longer:
        return "a name that is not known: a config's with something behind or before it"
    if before.derived or (before.change and not aliases.LEVEL.search(before.text)):
        return f"a difference or another statistic ({before.derived or before.change})"
    if (here.superlative or whole.superlative) and not whole.all_configs:
        return "it is about whichever config is best or worst"
    return ""


def _is_quoted(text: str, start: int, at: int) -> bool:
    """Somebody's words are not ours to change."""
    before = text[max(start, at - LONGEST) : at]
    for opens, closes in _QUOTES:
        if opens == closes:
            if before.count(opens) % 2:
                return True
        elif before.rfind(opens) > before.rfind(closes):
            return True
    return False


def _tells(
    context: Context, sentence: Sentence, clause: Span, here: Names, whole: Names, certain: Mapping[str, frozenset[str]]
) -> bool:
    """Whether this place can mean one quantity only, whatever the value is: every word near is understood."""
    if not here.understood or here.superlative or _IN_ORDER.search(context.blanked(sentence.span)):
        return False
    if len(context.measured(clause)) != 1 or not certain["metrics"]:
        return False
    if here.weak or (not here.configs and whole.weak):
        return False  # full may be just a word
    if len(whole.configs) > 1:
        return len(here.configs) == 1 and _parallel(context, sentence)
    return len(certain["all_configs"]) == 1


def _parallel(context: Context, sentence: Sentence) -> bool:
    """Each clause has one config and one number, or neither."""
    for clause in sentence.clauses:
        configs = len(context.read(clause).all_configs)
        if configs != len(context.measured(clause)) or configs > 1:
            return False
    return True
