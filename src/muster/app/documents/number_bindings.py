"""Bindings: which span of a text shows which quantity. They are kept beside the text, found again after it was
edited, and updated so that no other byte changes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import takewhile
from typing import Any

from muster.app.documents.bind_numbers import BindingDecision, BindingTarget
from muster.app.documents.find_numbers import Number, NumeralFormat, scale_value, write_numeral
from muster.app.documents.result_names import Quantity

SIDECAR_VERSION = 1
MOST_DIGITS = 400  # of a number: no float has more
CONTEXT_LENGTH = 48  # characters of context on either side
BEGIN, END = "\x02", "\x03"  # of the text
ENOUGH_CONTEXT = 10  # of them on one side tell a place from another


class DamagedSidecar(ValueError):
    """A sidecar that can't be what Muster wrote; the message says why."""


@dataclass(frozen=True, slots=True)
class BoundNumeral:
    """A numeral of a token, and what it shows."""

    key: str
    start: int  # within the token
    end: int
    format: NumeralFormat
    scale: int = 1


@dataclass(frozen=True, slots=True)
class Binding:
    start: int
    token: str  # exactly as it stands there, with % and the mark
    parts: tuple[BoundNumeral, ...]
    mark: int  # length of the mark PARTIAL at the token's end
    before: str
    after: str
    by: str  # place and value | place | value | chosen
    note: str = ""
    line: int = 0  # where it was last seen, for people

    @property
    def end(self) -> int:
        return self.start + len(self.token)

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(part.key for part in self.parts)


@dataclass(frozen=True, slots=True)
class Sidecar:
    file: str  # name of the text
    digest: str  # of the text as it was last seen
    bindings: tuple[Binding, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class LostBinding:
    """A binding that can't be found again."""

    binding: Binding
    why: str


def digest_of_text(text: str) -> str:
    import hashlib

    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def make_binding(text: str, number: Number, target: BindingTarget, by: str, note: str = "") -> Binding:
    token = text[number.start : number.end] + number.tail
    parts = tuple(
        BoundNumeral(
            quantity.key, numeral.start - number.start, numeral.end - number.start, numeral.format, target.scale
        )
        for numeral, quantity in zip(number.numerals, target.quantities, strict=True)
    )
    return place_binding_at(Binding(0, token, parts, len(number.mark), "", "", by, note), text, number.start)


def binding_from_decision(text: str, decision: BindingDecision) -> Binding:
    if decision.target is None:
        raise LookupError("not bound")
    return make_binding(text, decision.number, decision.target, decision.by, decision.note)


def place_binding_at(binding: Binding, text: str, start: int) -> Binding:
    """The same, at this place of this text."""
    before, after = _context_around(text, start, start + len(binding.token))
    return replace(binding, start=start, before=before, after=after)


def _context_around(text: str, start: int, end: int) -> tuple[str, str]:
    """What stands on either side. The text's own ends are a part of it: they tell places apart."""
    before, after = text[max(0, start - CONTEXT_LENGTH) : start], text[end : end + CONTEXT_LENGTH]
    return before if start >= CONTEXT_LENGTH else BEGIN + before, after if end + CONTEXT_LENGTH <= len(
        text
    ) else after + END


# -- found again


def find_bindings_again(sidecar: Sidecar, text: str) -> tuple[list[Binding], list[LostBinding]]:
    """The bindings where they are in this text. A place that two could claim, or none, loses its binding."""
    found: list[Binding] = []
    lost: list[LostBinding] = []
    if sidecar.digest == digest_of_text(text):
        for binding in sidecar.bindings:
            there = text.startswith(binding.token, binding.start) and binding.start >= 0
            if there:
                found.append(binding)
            else:
                lost.append(LostBinding(binding, "it is not where it was"))
        return _drop_overlapping(found, lost)
    for group in _group_indistinguishable(sidecar.bindings):
        places = _best_places_for(group[0], text)
        if len(places) == len(group) and (len(group) == 1 or len({each.keys for each in group}) == 1):
            found += [place_binding_at(binding, text, start) for binding, start in zip(group, places, strict=True)]
        else:
            why = "its place is gone" if not places else f"{len(places)} places look like its own"
            lost += [LostBinding(binding, why) for binding in group]
    return _drop_overlapping(found, lost)


def _drop_overlapping(found: list[Binding], lost: list[LostBinding]) -> tuple[list[Binding], list[LostBinding]]:
    """In order. Of those that claim the same characters none is believed."""
    found.sort(key=lambda binding: (binding.start, binding.end))
    rivals = {at for at in range(1, len(found)) if found[at].start < found[at - 1].end}
    rivals |= {at - 1 for at in rivals}
    lost += [LostBinding(found[at], "another binding claims its place") for at in sorted(rivals)]
    return [binding for at, binding in enumerate(found) if at not in rivals], lost


def _group_indistinguishable(bindings: Sequence[Binding]) -> Iterator[list[Binding]]:
    """Those that nothing near tells apart, in order: the same table twice in one text."""
    groups: dict[tuple[str, str, str], list[Binding]] = {}
    for binding in bindings:
        groups.setdefault((binding.token, binding.before, binding.after), []).append(binding)
    yield from groups.values()


def _best_places_for(binding: Binding, text: str) -> list[int]:
    """The best places: those with most of the context around the same token."""
    best, found = 0, []
    for start in _occurrences_of_token(binding.token, text):
        left, right = _context_around(text, start, start + len(binding.token))
        before, after = (
            _common_start_length(reversed(binding.before), reversed(left)),
            _common_start_length(binding.after, right),
        )
        if not _has_enough_context(binding, before, after):
            continue
        score = before + after
        if score > best:
            best, found = score, [start]
        elif score == best:
            found.append(start)
    return found


def stands_in_place_of(binding: Binding, text: str, start: int, end: int) -> bool:
    """Whether what stands there has the neighbours of the binding on both sides."""
    left, right = _context_around(text, start, end)
    before, after = (
        _common_start_length(reversed(binding.before), reversed(left)),
        _common_start_length(binding.after, right),
    )
    return _has_enough_context(binding, before, after)


def _has_enough_context(binding: Binding, before: int, after: int) -> bool:
    """Its neighbours on both sides are the same, and on one side enough of them."""
    whole = before == len(binding.before), after == len(binding.after)
    if not ((before or whole[0]) and (after or whole[1])):
        return False
    return whole[0] or whole[1] or max(before, after) >= ENOUGH_CONTEXT


def _occurrences_of_token(token: str, text: str) -> Iterator[int]:
    at = text.find(token)
    while at >= 0:
        yield at
        at = text.find(token, at + 1)


def _common_start_length(mine: Iterable[str], there: Iterable[str]) -> int:
    """How many characters are the same from the first on."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(mine, there, strict=False)))


# -- as a file


def sidecar_as_bytes(sidecar: Sidecar) -> bytes:
    """One line for each binding, so that a version control shows what changed."""
    head = {"version": SIDECAR_VERSION, "file": sidecar.file, "text": sidecar.digest}
    lines = ",\n".join(json.dumps(_binding_as_json(binding), ensure_ascii=False) for binding in sidecar.bindings)
    text = f'{json.dumps(head, ensure_ascii=False)[:-1]}, "bindings": [\n{lines}\n]}}\n'
    return text.encode("utf-8", "surrogatepass")


def parse_sidecar(data: bytes) -> Sidecar:
    try:
        value = json.loads(data.decode("utf-8", "surrogatepass"))
        if not isinstance(value, dict) or value.get("version") != SIDECAR_VERSION:
            raise DamagedSidecar("it is of another version" if isinstance(value, dict) else "it holds no object")
        return Sidecar(str(value["file"]), str(value["text"]), tuple(map(_parse_binding, value["bindings"])))
    except DamagedSidecar:
        raise
    except (ValueError, OverflowError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedSidecar(f"{type(error).__name__}: {error}") from None


def _binding_as_json(binding: Binding) -> dict[str, Any]:
    return {
        "keys": list(binding.keys),
        "line": binding.line,
        "span": [binding.start, binding.end],
        "token": binding.token,
        "mark": binding.mark,
        "before": binding.before,
        "after": binding.after,
        "by": binding.by,
        "note": binding.note,
        "parts": [
            {
                "key": part.key,
                "span": [part.start, part.end],
                "scale": part.scale,
                "format": _numeral_format_as_json(part.format),
            }
            for part in binding.parts
        ],
    }


def _numeral_format_as_json(style: NumeralFormat) -> dict[str, Any]:
    """Without what is usual."""
    usual = NumeralFormat(-1)
    names = (each.name for each in fields(NumeralFormat))
    return {name: getattr(style, name) for name in names if getattr(style, name) != getattr(usual, name)}


def _parse_binding(value: Mapping[str, Any]) -> Binding:
    token = str(value["token"])
    parts = tuple(map(_parse_bound_numeral, value["parts"]))
    mark = int(value["mark"])
    at = 0
    for part in parts:
        if not at <= part.start < part.end <= len(token) - mark or part.scale not in (1, 100):
            raise DamagedSidecar("a binding's parts do not fit its text")
        at = part.end
    if not parts or not 0 <= mark < len(token):
        raise DamagedSidecar("a binding without parts")
    before, after, by, note = (str(value[name]) for name in ("before", "after", "by", "note"))
    return Binding(int(value["span"][0]), token, parts, mark, before, after, by, note, int(value["line"]))


def _parse_bound_numeral(value: Mapping[str, Any]) -> BoundNumeral:
    start, end = map(int, value["span"])
    style = NumeralFormat(**value["format"])
    for digits in (style.decimals, style.power_digits):
        if type(digits) is not int or digits > MOST_DIGITS:
            raise DamagedSidecar("a format that no number has")
    return BoundNumeral(str(value["key"]), start, end, style, int(value["scale"]))


ChangedSpan = tuple[int, int]


class UpdateRefused(ValueError):
    """The text can't be updated; the message says why."""


@dataclass(frozen=True, slots=True)
class NumberChange:
    at: int  # in the old text
    old: str
    new: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TextUpdate:
    text: str
    bindings: tuple[Binding, ...]  # as they are in the new text
    changes: tuple[NumberChange, ...]
    old_spans: tuple[ChangedSpan, ...]  # what might change: numerals and marks
    new_spans: tuple[ChangedSpan, ...]


def update_text(
    text: str, bindings: Sequence[Binding], known: Mapping[str, Quantity], partial: str | None
) -> TextUpdate:
    """`partial`: the mark that every number gets, PARTIAL 16/40. Bindings are in order and do not overlap."""
    pieces: list[str] = []
    moved: list[tuple[Binding, int]] = []
    changes: list[NumberChange] = []
    old_spans: list[ChangedSpan] = []
    new_spans: list[ChangedSpan] = []
    done = length = 0
    for binding in bindings:
        token, parts = current_token(binding, known, partial)
        pieces += [text[done : binding.start], token]
        start = length + binding.start - done
        moved.append((replace(binding, token=token, parts=parts, mark=len(_mark_as_text(partial))), start))
        old_spans += _spans_that_may_change(binding, binding.start)
        new_spans += _spans_that_may_change(moved[-1][0], start)
        if token != binding.token:
            changes.append(NumberChange(binding.start, binding.token, token, binding.keys))
        done, length = binding.end, start + len(token)
    new = "".join([*pieces, text[done:]])
    placed = tuple(place_binding_at(binding, new, start) for binding, start in moved)
    return TextUpdate(new, placed, tuple(changes), tuple(old_spans), tuple(new_spans))


def current_token(
    binding: Binding, known: Mapping[str, Quantity], partial: str | None
) -> tuple[str, tuple[BoundNumeral, ...]]:
    """What should stand there."""
    body = binding.token[: len(binding.token) - binding.mark]
    pieces: list[str] = []
    parts: list[BoundNumeral] = []
    done = length = 0
    for part in binding.parts:
        quantity = known.get(part.key)
        if quantity is None:
            raise UpdateRefused(f"{part.key} is no result any more")
        if not math.isfinite(quantity.value):
            raise UpdateRefused(f"{part.key} is {quantity.value}")
        shown = write_numeral(scale_value(quantity.value, part.scale), part.format)
        pieces += [body[done : part.start], shown]
        start = length + part.start - done
        parts.append(replace(part, start=start, end=start + len(shown)))
        done, length = part.end, start + len(shown)
    return "".join([*pieces, body[done:], _mark_as_text(partial)]), tuple(parts)


def _mark_as_text(partial: str | None) -> str:
    return f" ({partial})" if partial else ""


def _spans_that_may_change(binding: Binding, start: int) -> Iterator[ChangedSpan]:
    """The numerals, and what stands behind the token or might: the mark."""
    yield from ((start + part.start, start + part.end) for part in binding.parts)
    end = start + len(binding.token)
    yield end - binding.mark, end


def prove_nothing_else_changed(old: bytes, new: bytes, done: TextUpdate, text: str, encoding: str) -> None:
    """Raises unless the bytes outside the bound numerals are the same, one for one."""
    before = list(_bytes_outside_spans(old, text, done.old_spans, encoding))
    after = list(_bytes_outside_spans(new, done.text, done.new_spans, encoding))
    if len(done.old_spans) != len(done.new_spans) or before != after:
        raise UpdateRefused(
            "something besides the bound numbers would change: this is a mistake in Muster; please report it"
        )


def _bytes_outside_spans(data: bytes, text: str, spans: Sequence[ChangedSpan], encoding: str) -> Iterator[bytes]:
    """What lies between the spans, cut from the bytes themselves."""
    at = done = 0
    for start, end in spans:
        first = at + len(text[done:start].encode(encoding))
        yield data[at:first]
        at = first + len(text[start:end].encode(encoding))
        done = end
    yield data[at:]


def unified_text_diff(old: str, new: str, name: str, around: int = 2) -> list[str]:
    """A unified diff. Numbers hold no line ends, so lines keep their places and only they are compared."""
    before, after = old.split("\n"), new.split("\n")
    changed = [at for at, (left, right) in enumerate(zip(before, after, strict=True)) if left != right]
    if not changed:
        return []
    lines = [f"--- {name}", f"+++ {name}"]
    for first, last in _ranges_of_hunks(changed, around, len(before)):
        lines.append(f"@@ -{first + 1},{last - first} +{first + 1},{last - first} @@")
        lines += _lines_of_hunk(before[first:last], after[first:last])
    return [line.removesuffix("\r") for line in lines]


def _lines_of_hunk(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Neighbouring lines that change stand together: the old ones, then the new ones."""
    waiting: list[str] = []
    for old, new in zip(before, after, strict=True):
        if old == new:
            yield from waiting
            waiting = []
            yield f" {old}"
        else:
            yield f"-{old}"
            waiting.append(f"+{new}")
    yield from waiting


def _ranges_of_hunks(changed: Sequence[int], around: int, count: int) -> Iterator[ChangedSpan]:
    first, last = max(0, changed[0] - around), min(count, changed[0] + around + 1)
    for at in changed[1:]:
        if at - around > last:
            yield first, last
            first = at - around
        last = min(count, at + around + 1)
    yield first, last
