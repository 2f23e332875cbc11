"""New numbers in an old text: each in its own format, nothing else touched, and the proof of that on bytes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from muster.report.documents.format import scaled, write
from muster.report.documents.quantity import Quantity
from muster.report.documents.sidecar import Binding, Part, placed_at

Span = tuple[int, int]


class Refused(ValueError):
    """The text can't be updated; the message says why."""


@dataclass(frozen=True, slots=True)
class Change:
    at: int  # in the old text
    old: str
    new: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Update:
    text: str
    bindings: tuple[Binding, ...]  # as they are in the new text
    changes: tuple[Change, ...]
    old_spans: tuple[Span, ...]  # what might change: numerals and marks
    new_spans: tuple[Span, ...]


def update(text: str, bindings: Sequence[Binding], known: Mapping[str, Quantity], partial: str | None) -> Update:
    """`partial`: the mark that every number gets, PARTIAL 16/40. Bindings are in order and do not overlap."""
    pieces: list[str] = []
    moved: list[tuple[Binding, int]] = []
    changes: list[Change] = []
    old_spans: list[Span] = []
    new_spans: list[Span] = []
    done = length = 0
    for binding in bindings:
        token, parts = token_now(binding, known, partial)
        pieces += [text[done : binding.start], token]
        start = length + binding.start - done
        moved.append((replace(binding, token=token, parts=parts, mark=len(_mark(partial))), start))
        old_spans += _spans(binding, binding.start)
        new_spans += _spans(moved[-1][0], start)
        if token != binding.token:
            changes.append(Change(binding.start, binding.token, token, binding.keys))
        done, length = binding.end, start + len(token)
    new = "".join([*pieces, text[done:]])
    placed = tuple(placed_at(binding, new, start) for binding, start in moved)
    return Update(new, placed, tuple(changes), tuple(old_spans), tuple(new_spans))


def token_now(binding: Binding, known: Mapping[str, Quantity], partial: str | None) -> tuple[str, tuple[Part, ...]]:
    """What should stand there."""
    body = binding.token[: len(binding.token) - binding.mark]
    pieces: list[str] = []
    parts: list[Part] = []
    done = length = 0
    for part in binding.parts:
        quantity = known.get(part.key)
        if quantity is None:
            raise Refused(f"{part.key} is no result any more")
        if not math.isfinite(quantity.value):
            raise Refused(f"{part.key} is {quantity.value}")
        shown = write(scaled(quantity.value, part.scale), part.format)
        pieces += [body[done : part.start], shown]
        start = length + part.start - done
        parts.append(replace(part, start=start, end=start + len(shown)))
        done, length = part.end, start + len(shown)
    return "".join([*pieces, body[done:], _mark(partial)]), tuple(parts)


def _mark(partial: str | None) -> str:
    return f" ({partial})" if partial else ""


def _spans(binding: Binding, start: int) -> Iterator[Span]:
    """The numerals, and what stands behind the token or might: the mark."""
    yield from ((start + part.start, start + part.end) for part in binding.parts)
    end = start + len(binding.token)
    yield end - binding.mark, end


def prove(old: bytes, new: bytes, done: Update, text: str, encoding: str) -> None:
    """Raises unless the bytes outside the bound numerals are the same, one for one."""
    before = list(_outside(old, text, done.old_spans, encoding))
    after = list(_outside(new, done.text, done.new_spans, encoding))
    if len(done.old_spans) != len(done.new_spans) or before != after:
        raise Refused("something besides the bound numbers would change: this is a mistake in Muster; please report it")


def _outside(data: bytes, text: str, spans: Sequence[Span], encoding: str) -> Iterator[bytes]:
    """What lies between the spans, cut from the bytes themselves."""
    at = done = 0
    for start, end in spans:
        first = at + len(text[done:start].encode(encoding))
        yield data[at:first]
        at = first + len(text[start:end].encode(encoding))
        done = end
    yield data[at:]


def difference(old: str, new: str, name: str, around: int = 2) -> list[str]:
    """A unified diff. Numbers hold no line ends, so lines keep their places and only they are compared."""
    before, after = old.split("\n"), new.split("\n")
    changed = [at for at, (left, right) in enumerate(zip(before, after, strict=True)) if left != right]
    if not changed:
        return []
    lines = [f"--- {name}", f"+++ {name}"]
    for first, last in _hunks(changed, around, len(before)):
        lines.append(f"@@ -{first + 1},{last - first} +{first + 1},{last - first} @@")
        lines += _hunk(before[first:last], after[first:last])
    return [line.removesuffix("\r") for line in lines]


def _hunk(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
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


def _hunks(changed: Sequence[int], around: int, count: int) -> Iterator[Span]:
    first, last = max(0, changed[0] - around), min(count, changed[0] + around + 1)
    for at in changed[1:]:
        if at - around > last:
            yield first, last
            first = at - around
        last = min(count, at + around + 1)
    yield first, last
