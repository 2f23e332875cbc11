"""Paths into a config (`model.layers[0].lr`, `features.*.weight`, `**.dropout`, `a["b.c"]`), and the parsed config
that they lead into.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

PathStep = str | int  # a key, or an index of a list
ConfigPlace = tuple[PathStep, ...]
ANY, DEEP = "*", "**"
MOST_NEAREST = 3
ONLY_WHAT_IS_THERE = "an edit changes what is there: add a new key to the config first"
MOST_KNOWN = 5000  # paths that are looked at for a hint
LONGEST_INDEX = 18  # digits: no list is that long
_PATH_PART = re.compile(
    r"""(?P<deep>\*\*)(?=[.\[]|$) | \[(?P<index>-?[0-9]+)\] | \[(?P<all>\*)\]
      | \[(?P<quoted>"(?:[^"\\]|\\.)*")\] | (?P<key>[^.\[\]]+)""",
    re.VERBOSE,
)
_PLAIN_KEY = re.compile(r"[^\s.\[\]*?@\"\\]+(?: +[^\s.\[\]*?@\"\\]+)*")


class PathError(ValueError):
    """A path that can't be read, or leads nowhere; the message says why."""


@dataclass(frozen=True, slots=True)
class PathPattern:
    text: str
    parts: tuple[PathStep, ...]  # "*" and "**" stand for themselves; a key may be a glob
    literal: frozenset[int] = frozenset()  # parts that were quoted: no glob

    @property
    def wild(self) -> bool:
        return any(self.globs(at) for at in range(len(self.parts)))

    def globs(self, at: int) -> bool:
        part = self.parts[at]
        return at not in self.literal and isinstance(part, str) and any(sign in part for sign in "*?")


def parse_config_path(text: str) -> PathPattern:
    parts: list[PathStep] = []
    literal: set[int] = set()
    at = 0
    while at < len(text):
        if parts and text[at] == ".":
            at += 1
        found = _PATH_PART.match(text, at)
        if not found or (parts and text[at - 1] != "." and found["index"] is found["all"] is found["quoted"] is None):
            raise PathError(f"{text!r} is no path: {_describe_unparsed_part(text, at)}")
        if found["quoted"]:
            literal.add(len(parts))
        parts.append(_parse_path_step(found, text))
        at = found.end()
    if not parts:
        raise PathError(f"{text!r} is no path: it is empty")
    return PathPattern(text, tuple(parts), frozenset(literal))


def _describe_unparsed_part(text: str, at: int) -> str:
    if at == len(text):
        return "it ends with a dot"
    return f"{text[at : at + 12]!r} at character {at + 1} is neither a key nor an index in brackets"


def _parse_path_step(found: re.Match[str], text: str) -> PathStep:
    if found["index"]:
        return int(found["index"][:LONGEST_INDEX])
    if found["quoted"]:
        try:
            return str(json.loads(found["quoted"]))
        except ValueError:
            raise PathError(f"{text!r} is no path: {found['quoted']} is no text as JSON writes it") from None
    return found["deep"] or found["all"] or found["key"]


def format_config_path(where: Sequence[PathStep]) -> str:
    """A path as people write it, which leads to this place and no other."""
    text = ""
    for step in where:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{json.dumps(step, ensure_ascii=False)}]"
    return text


def find_config_places(pattern: PathPattern, tree: Any) -> list[ConfigPlace]:
    """Every place that it means, in the order of the config. Raises where there is none."""
    found = list(dict.fromkeys(_iterate_matching_places(pattern, 0, tree, ())))
    if not found:
        raise PathError(_explain_no_match(pattern, tree))
    return found


def _iterate_matching_places(pattern: PathPattern, at: int, tree: Any, where: ConfigPlace) -> Iterator[ConfigPlace]:
    if at == len(pattern.parts):
        yield where
        return
    part = pattern.parts[at]
    if part == DEEP and at not in pattern.literal:
        if at + 1 == len(pattern.parts):
            yield from (where + below for below in iterate_leaves(tree) if below)
            return
        yield from _iterate_matching_places(pattern, at + 1, tree, where)
        for step, child in iterate_children(tree):
            yield from _iterate_matching_places(pattern, at, child, (*where, step))
        return
    for step, child in iterate_children(tree):
        if _step_matches_pattern(pattern, at, step, tree):
            yield from _iterate_matching_places(pattern, at + 1, child, (*where, step))


def _step_matches_pattern(pattern: PathPattern, at: int, step: PathStep, tree: Any) -> bool:
    part = pattern.parts[at]
    if isinstance(step, int) and isinstance(part, str):
        return part == ANY and pattern.globs(at)
    if isinstance(step, int):
        return part in (step, step - len(tree))
    if isinstance(part, int):
        return False
    return fnmatchcase(step, part) if pattern.globs(at) else step == part


def iterate_children(tree: Any) -> Iterator[tuple[PathStep, Any]]:
    if isinstance(tree, Mapping):
        yield from tree.items()
    elif isinstance(tree, list):
        yield from enumerate(tree)


def iterate_leaves(tree: Any, where: ConfigPlace = ()) -> Iterator[ConfigPlace]:
    """Every place that holds a value and nothing below it."""
    empty = True
    for step, child in iterate_children(tree):
        empty = False
        yield from iterate_leaves(child, (*where, step))
    if empty:
        yield where


def _explain_no_match(pattern: PathPattern, tree: Any) -> str:
    """Where it stops to lead anywhere, and what lies near."""
    stop = _find_scalar_on_path(pattern, tree)
    if stop:
        return f"{pattern.text} leads nowhere: {stop} is a single value, there is nothing below it"
    near = nearest_paths(pattern.text, tree)
    hint = f"; the nearest: {', '.join(near)}" if near else ""
    return f"{pattern.text} matches nothing in the config{hint}; {ONLY_WHAT_IS_THERE}"


def _find_scalar_on_path(pattern: PathPattern, tree: Any) -> str:
    for count in range(len(pattern.parts) - 1, 0, -1):
        head = PathPattern(pattern.text, pattern.parts[:count], pattern.literal)
        places = list(_iterate_matching_places(head, 0, tree, ()))
        if places:
            scalar = [where for where in places if not isinstance(value_at_place(tree, where), dict | list)]
            return format_config_path(scalar[0]) if len(scalar) == len(places) else ""
    return ""


def nearest_paths(text: str, tree: Any) -> list[str]:
    """Existing paths that look like it: those that end with the same name, else those that are spelt alike. Case does
    not count."""
    known = list(dict.fromkeys(format_config_path(where) for where in iterate_leaves(tree)))[:MOST_KNOWN]
    asked, small = text.lower(), {each: each.lower() for each in known}
    ends = {each: re.split(r"[.\[]", small[each])[-1] for each in known}
    last = re.split(r"[.\[]", asked)[-1]
    same = [each for each in known if ends[each] == last]
    if same:
        return sorted(same, key=lambda each: -difflib.SequenceMatcher(None, asked, small[each]).ratio())[:MOST_NEAREST]
    close = difflib.get_close_matches(asked, small.values(), MOST_NEAREST, 0.6)
    alike = difflib.get_close_matches(last, ends.values(), 1, 0.6)
    by_path = [each for one in close for each in known if small[each] == one]
    return list(dict.fromkeys([*by_path, *(each for each in known if ends[each] in alike)]))[:MOST_NEAREST]


def value_at_place(tree: Any, where: ConfigPlace) -> Any:
    for step in where:
        tree = tree[step]
    return tree


CONFIG_KINDS = {"json": "json", "yaml": "yaml", "yml": "yaml", "toml": "toml"}
DEEPEST_CONFIG = 90  # lists and mappings within each other; what copies, compares and writes them goes down as deep
MOST_VALUES = 200_000  # aliases of aliases make millions of a few lines


class UnreadableConfig(ValueError):
    """A text that is no config of its kind; the message says where."""


@dataclass(slots=True)
class ParsedConfig:
    text: str
    kind: str  # json | yaml | toml
    tree: Any = None
    spans: dict[ConfigPlace, tuple[int, int]] = field(default_factory=dict)
    shared: dict[ConfigPlace, str] = field(default_factory=dict)  # values that stand elsewhere: aliases, merged keys
    notes: dict[ConfigPlace, str] = field(default_factory=dict)  # values that other readers take for something else

    def elsewhere(self, where: ConfigPlace) -> str:
        """Why a change there would change other values, too."""
        return next((self.shared[where[:end]] for end in range(len(where), 0, -1) if where[:end] in self.shared), "")


def is_nested_too_deep(tree: Any) -> bool:
    inside = [tree]
    for _ in range(DEEPEST_CONFIG + 1):
        inside = [
            child
            for each in inside
            if isinstance(each, dict | list)
            for child in (each.values() if isinstance(each, dict) else each)
        ]
        if not inside:
            return False
    return any(isinstance(each, dict | list) for each in inside)


def config_kind_of_file(name: str) -> str:
    """By the file's ending. Raises for others."""
    ending = name.rpartition(".")[2].lower()
    if "." not in name or ending not in CONFIG_KINDS:
        raise UnreadableConfig(f"{name} is none of .json, .yaml, .yml and .toml")
    return CONFIG_KINDS[ending]
