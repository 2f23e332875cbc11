"""Bindings: which span of a text shows which quantity, kept beside the text and found again after edits elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import takewhile
from typing import Any

from muster.report.documents.bind import Decision, Target
from muster.report.documents.format import Format
from muster.report.documents.numbers import Number

SUFFIX = ".muster.json"
VERSION = 1
MOST_DIGITS = 400  # of a number: no float has more
AROUND = 48  # characters of context on either side
BEGIN, END = "\x02", "\x03"  # of the text
ENOUGH = 10  # of them on one side tell a place from another


class Damaged(ValueError):
    """A sidecar that can't be what Muster wrote; the message says why."""


@dataclass(frozen=True, slots=True)
class Part:
    """A numeral of a token, and what it shows."""

    key: str
    start: int  # within the token
    end: int
    format: Format
    scale: int = 1


@dataclass(frozen=True, slots=True)
class Binding:
    start: int
    token: str  # exactly as it stands there, with % and the mark
    parts: tuple[Part, ...]
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
class Lost:
    """A binding that can't be found again."""

    binding: Binding
    why: str


def digest(text: str) -> str:
    import hashlib

    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def binding_of(text: str, number: Number, target: Target, by: str, note: str = "") -> Binding:
    token = text[number.start : number.end] + number.tail
    parts = tuple(
        Part(quantity.key, numeral.start - number.start, numeral.end - number.start, numeral.format, target.scale)
        for numeral, quantity in zip(number.numerals, target.quantities, strict=True)
    )
    return placed_at(Binding(0, token, parts, len(number.mark), "", "", by, note), text, number.start)


def from_decision(text: str, decision: Decision) -> Binding:
    if decision.target is None:
        raise LookupError("not bound")
    return binding_of(text, decision.number, decision.target, decision.by, decision.note)


def placed_at(binding: Binding, text: str, start: int) -> Binding:
    """The same, at this place of this text."""
    before, after = _around(text, start, start + len(binding.token))
    return replace(binding, start=start, before=before, after=after)


def _around(text: str, start: int, end: int) -> tuple[str, str]:
    """What stands on either side. The text's own ends are a part of it: they tell places apart."""
    before, after = text[max(0, start - AROUND) : start], text[end : end + AROUND]
    return before if start >= AROUND else BEGIN + before, after if end + AROUND <= len(text) else after + END


# -- found again


def find_again(sidecar: Sidecar, text: str) -> tuple[list[Binding], list[Lost]]:
    """The bindings where they are in this text. A place that two could claim, or none, loses its binding."""
    found: list[Binding] = []
    lost: list[Lost] = []
    if sidecar.digest == digest(text):
        for binding in sidecar.bindings:
            there = text.startswith(binding.token, binding.start) and binding.start >= 0
            if there:
                found.append(binding)
            else:
                lost.append(Lost(binding, "it is not where it was"))
        return _apart(found, lost)
    for group in _twins(sidecar.bindings):
        places = _places(group[0], text)
        if len(places) == len(group) and (len(group) == 1 or len({each.keys for each in group}) == 1):
            found += [placed_at(binding, text, start) for binding, start in zip(group, places, strict=True)]
        else:
            why = "its place is gone" if not places else f"{len(places)} places look like its own"
            lost += [Lost(binding, why) for binding in group]
    return _apart(found, lost)


def _apart(found: list[Binding], lost: list[Lost]) -> tuple[list[Binding], list[Lost]]:
    """In order. Of those that claim the same characters none is believed."""
    found.sort(key=lambda binding: (binding.start, binding.end))
    rivals = {at for at in range(1, len(found)) if found[at].start < found[at - 1].end}
    rivals |= {at - 1 for at in rivals}
    lost += [Lost(found[at], "another binding claims its place") for at in sorted(rivals)]
    return [binding for at, binding in enumerate(found) if at not in rivals], lost


def _twins(bindings: Sequence[Binding]) -> Iterator[list[Binding]]:
    """Those that nothing near tells apart, in order: the same table twice in one text."""
    groups: dict[tuple[str, str, str], list[Binding]] = {}
    for binding in bindings:
        groups.setdefault((binding.token, binding.before, binding.after), []).append(binding)
    yield from groups.values()


def _places(binding: Binding, text: str) -> list[int]:
    """The best places: those with most of the context around the same token."""
    best, found = 0, []
    for start in _occurrences(binding.token, text):
        left, right = _around(text, start, start + len(binding.token))
        before, after = _alike(reversed(binding.before), reversed(left)), _alike(binding.after, right)
        if not _enough(binding, before, after):
            continue
        score = before + after
        if score > best:
            best, found = score, [start]
        elif score == best:
            found.append(start)
    return found


def in_place_of(binding: Binding, text: str, start: int, end: int) -> bool:
    """Whether what stands there has the neighbours of the binding on both sides."""
    left, right = _around(text, start, end)
    before, after = _alike(reversed(binding.before), reversed(left)), _alike(binding.after, right)
    return _enough(binding, before, after)


def _enough(binding: Binding, before: int, after: int) -> bool:
    """Its neighbours on both sides are the same, and on one side enough of them."""
    whole = before == len(binding.before), after == len(binding.after)
    if not ((before or whole[0]) and (after or whole[1])):
        return False
    return whole[0] or whole[1] or max(before, after) >= ENOUGH


def _occurrences(token: str, text: str) -> Iterator[int]:
    at = text.find(token)
    while at >= 0:
        yield at
        at = text.find(token, at + 1)


def _alike(mine: Iterable[str], there: Iterable[str]) -> int:
    """How many characters are the same from the first on."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(mine, there, strict=False)))


# -- as a file


def write(sidecar: Sidecar) -> bytes:
    """One line for each binding, so that a version control shows what changed."""
    head = {"version": VERSION, "file": sidecar.file, "text": sidecar.digest}
    lines = ",\n".join(json.dumps(_as_json(binding), ensure_ascii=False) for binding in sidecar.bindings)
    text = f'{json.dumps(head, ensure_ascii=False)[:-1]}, "bindings": [\n{lines}\n]}}\n'
    return text.encode("utf-8", "surrogatepass")


def read(data: bytes) -> Sidecar:
    try:
        value = json.loads(data.decode("utf-8", "surrogatepass"))
        if not isinstance(value, dict) or value.get("version") != VERSION:
            raise Damaged("it is of another version" if isinstance(value, dict) else "it holds no object")
        return Sidecar(str(value["file"]), str(value["text"]), tuple(map(_binding, value["bindings"])))
    except Damaged:
        raise
    except (ValueError, OverflowError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Damaged(f"{type(error).__name__}: {error}") from None


def _as_json(binding: Binding) -> dict[str, Any]:
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
            {"key": part.key, "span": [part.start, part.end], "scale": part.scale, "format": _format(part.format)}
            for part in binding.parts
        ],
    }


def _format(style: Format) -> dict[str, Any]:
    """Without what is usual."""
    usual = Format(-1)
    names = (each.name for each in fields(Format))
    return {name: getattr(style, name) for name in names if getattr(style, name) != getattr(usual, name)}


def _binding(value: Mapping[str, Any]) -> Binding:
    token = str(value["token"])
    parts = tuple(map(_part, value["parts"]))
    mark = int(value["mark"])
    at = 0
    for part in parts:
        if not at <= part.start < part.end <= len(token) - mark or part.scale not in (1, 100):
            raise Damaged("a binding's parts do not fit its text")
        at = part.end
    if not parts or not 0 <= mark < len(token):
        raise Damaged("a binding without parts")
    before, after, by, note = (str(value[name]) for name in ("before", "after", "by", "note"))
    return Binding(int(value["span"][0]), token, parts, mark, before, after, by, note, int(value["line"]))


def _part(value: Mapping[str, Any]) -> Part:
    start, end = map(int, value["span"])
    style = Format(**value["format"])
    for digits in (style.decimals, style.power_digits):
        if type(digits) is not int or digits > MOST_DIGITS:
            raise Damaged("a format that no number has")
    return Part(str(value["key"]), start, end, style, int(value["scale"]))
