"""Paths into a config: `model.layers[0].lr`, `features.*.weight`, `**.dropout`, `a["b.c"]`."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

Step = str | int  # a key, or an index of a list
Where = tuple[Step, ...]
ANY, DEEP = "*", "**"
NEAREST = 3
ONLY_WHAT_IS_THERE = "an edit changes what is there: add a new key to the config first"
MOST_KNOWN = 5000  # paths that are looked at for a hint
LONGEST_INDEX = 18  # digits: no list is that long
_PART = re.compile(
    r"""(?P<deep>\*\*)(?=[.\[]|$) | \[(?P<index>-?[0-9]+)\] | \[(?P<all>\*)\]
      | \[(?P<quoted>"(?:[^"\\]|\\.)*")\] | (?P<key>[^.\[\]]+)""",
    re.VERBOSE,
)
_PLAIN = re.compile(r"[^\s.\[\]*?@\"\\]+(?: +[^\s.\[\]*?@\"\\]+)*")


class PathError(ValueError):
    """A path that can't be read, or leads nowhere; the message says why."""


@dataclass(frozen=True, slots=True)
class Pattern:
    text: str
    parts: tuple[Step, ...]  # "*" and "**" stand for themselves; a key may be a glob
    literal: frozenset[int] = frozenset()  # parts that were quoted: no glob

    @property
    def wild(self) -> bool:
        return any(self.globs(at) for at in range(len(self.parts)))

    def globs(self, at: int) -> bool:
        part = self.parts[at]
        return at not in self.literal and isinstance(part, str) and any(sign in part for sign in "*?")


def parse_path(text: str) -> Pattern:
    parts: list[Step] = []
    literal: set[int] = set()
    at = 0
    while at < len(text):
        if parts and text[at] == ".":
            at += 1
        found = _PART.match(text, at)
        if not found or (parts and text[at - 1] != "." and found["index"] is found["all"] is found["quoted"] is None):
            raise PathError(f"{text!r} is no path: {_seen(text, at)}")
        if found["quoted"]:
            literal.add(len(parts))
        parts.append(_step(found, text))
        at = found.end()
    if not parts:
        raise PathError(f"{text!r} is no path: it is empty")
    return Pattern(text, tuple(parts), frozenset(literal))


def _seen(text: str, at: int) -> str:
    if at == len(text):
        return "it ends with a dot"
    return f"{text[at : at + 12]!r} at character {at + 1} is neither a key nor an index in brackets"


def _step(found: re.Match[str], text: str) -> Step:
    if found["index"]:
        return int(found["index"][:LONGEST_INDEX])
    if found["quoted"]:
        try:
            return str(json.loads(found["quoted"]))
        except ValueError:
            raise PathError(f"{text!r} is no path: {found['quoted']} is no text as JSON writes it") from None
    return found["deep"] or found["all"] or found["key"]


def told(where: Sequence[Step]) -> str:
    """A path as people write it, which leads to this place and no other."""
    text = ""
    for step in where:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{json.dumps(step, ensure_ascii=False)}]"
    return text


def find(pattern: Pattern, tree: Any) -> list[Where]:
    """Every place that it means, in the order of the config. Raises where there is none."""
    found = list(dict.fromkeys(_places(pattern, 0, tree, ())))
    if not found:
        raise PathError(_nothing(pattern, tree))
    return found


def _places(pattern: Pattern, at: int, tree: Any, where: Where) -> Iterator[Where]:
    if at == len(pattern.parts):
        yield where
        return
    part = pattern.parts[at]
    if part == DEEP and at not in pattern.literal:
        if at + 1 == len(pattern.parts):
            yield from (where + below for below in leaves(tree) if below)
            return
        yield from _places(pattern, at + 1, tree, where)
        for step, child in children(tree):
            yield from _places(pattern, at, child, (*where, step))
        return
    for step, child in children(tree):
        if _fits(pattern, at, step, tree):
            yield from _places(pattern, at + 1, child, (*where, step))


def _fits(pattern: Pattern, at: int, step: Step, tree: Any) -> bool:
    part = pattern.parts[at]
    if isinstance(step, int) and isinstance(part, str):
        return part == ANY and pattern.globs(at)
    if isinstance(step, int):
        return part in (step, step - len(tree))
    if isinstance(part, int):
        return False
    return fnmatchcase(step, part) if pattern.globs(at) else step == part


def children(tree: Any) -> Iterator[tuple[Step, Any]]:
    if isinstance(tree, Mapping):
        yield from tree.items()
    elif isinstance(tree, list):
        yield from enumerate(tree)


def leaves(tree: Any, where: Where = ()) -> Iterator[Where]:
    """Every place that holds a value and nothing below it."""
    empty = True
    for step, child in children(tree):
        empty = False
        yield from leaves(child, (*where, step))
    if empty:
        yield where


def _nothing(pattern: Pattern, tree: Any) -> str:
    """Where it stops to lead anywhere, and what lies near."""
    stop = _scalar_on_the_way(pattern, tree)
    if stop:
        return f"{pattern.text} leads nowhere: {stop} is a single value, there is nothing below it"
    near = nearest(pattern.text, tree)
    hint = f"; the nearest: {', '.join(near)}" if near else ""
    return f"{pattern.text} matches nothing in the config{hint}; {ONLY_WHAT_IS_THERE}"


def _scalar_on_the_way(pattern: Pattern, tree: Any) -> str:
    for count in range(len(pattern.parts) - 1, 0, -1):
        head = Pattern(pattern.text, pattern.parts[:count], pattern.literal)
        places = list(_places(head, 0, tree, ()))
        if places:
            scalar = [where for where in places if not isinstance(at_place(tree, where), dict | list)]
            return told(scalar[0]) if len(scalar) == len(places) else ""
    return ""


def nearest(text: str, tree: Any) -> list[str]:
    """Existing paths that look like it: those that end with the same name, else those that are spelt alike. Case does
    not count."""
    known = list(dict.fromkeys(told(where) for where in leaves(tree)))[:MOST_KNOWN]
    asked, small = text.lower(), {each: each.lower() for each in known}
    ends = {each: re.split(r"[.\[]", small[each])[-1] for each in known}
    last = re.split(r"[.\[]", asked)[-1]
    same = [each for each in known if ends[each] == last]
    if same:
        return sorted(same, key=lambda each: -difflib.SequenceMatcher(None, asked, small[each]).ratio())[:NEAREST]
    close = difflib.get_close_matches(asked, small.values(), NEAREST, 0.6)
    alike = difflib.get_close_matches(last, ends.values(), 1, 0.6)
    by_path = [each for one in close for each in known if small[each] == one]
    return list(dict.fromkeys([*by_path, *(each for each in known if ends[each] in alike)]))[:NEAREST]


def at_place(tree: Any, where: Where) -> Any:
    for step in where:
        tree = tree[step]
    return tree
