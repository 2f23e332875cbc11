"""YAML with the place of every value: comments, order and the form of everything else survive an edit."""

from __future__ import annotations

import json
import math
import re
import warnings
from typing import Any

from muster.rounds.config import DEEPEST, MOST_VALUES, Config, UnreadableConfig
from muster.rounds.paths import Where

TAG = "tag:yaml.org,2002:"
MERGE, TIME, TEXT = f"{TAG}merge", f"{TAG}timestamp", f"{TAG}str"
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.]+(Z|[+-][0-9:]+)?)?")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
_OLD_BOOL = re.compile(
    r"(?:&\S+\s+)?(yes|Yes|YES|on|On|ON|no|No|NO|off|Off|OFF)"
)  # as PyYAML has them: y and n are texts


def read_yaml(text: str) -> Config:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    reader: Any = YAML(typ="safe", pure=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about anchors that are used again and numbers of YAML 1.1
            node = reader.compose(text)
            config = Config(text, "yaml")
            if node is not None:
                config.tree = _Reader(config, reader.constructor).value(node, ())
    except UnreadableConfig:
        raise
    except (YAMLError, ValueError, RecursionError, AssertionError) as error:
        raise UnreadableConfig(_why(error)) from None
    return config


def _why(error: Exception) -> str:
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if problem == "but found another document":
        problem = "a second document begins here (---), and an edit would not know which is meant; keep one in a file"
    if isinstance(error, RecursionError):
        problem = "it is nested too deeply"
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return f"it is no YAML: {place}{problem or error}"


class _Reader:
    """Makes values of nodes, and remembers their places. Keys are what is written: `1: x` has the key "1"."""

    def __init__(self, config: Config, constructor: Any) -> None:
        self.config = config
        self.constructor = constructor
        self.seen: dict[int, Where] = {}  # nodes with an anchor come by several times
        self.open: set[int] = set()
        self.count = 0

    def value(self, node: Any, where: Where, *, own: bool = True) -> Any:
        """`own`: it stands here, and does not come from a merge or an alias."""
        self.count += 1
        if self.count > MOST_VALUES:
            raise UnreadableConfig(f"it is too large: more than {MOST_VALUES} values, its aliases written out")
        if len(where) > DEEPEST:
            raise _wrong(node, "it is nested too deeply")
        if id(node) in self.open:
            raise _wrong(node, f"&{node.anchor} contains itself")
        if own and id(node) in self.seen:
            self.config.shared[where] = f"is an alias (*{node.anchor})"
            self.config.shared[self.seen[id(node)]] = f"has the anchor &{node.anchor}, which is used elsewhere"
            own = False
        if own:
            self.seen[id(node)] = where
            self.config.spans[where] = (node.start_mark.index, self._end(node))
        self.open.add(id(node))
        value = self._made(node, where, own)
        self.open.discard(id(node))
        return value

    def _made(self, node: Any, where: Where, own: bool) -> Any:
        if node.id == "mapping":
            return self._mapping(node, where, own)
        if node.id == "sequence":
            return [self.value(each, (*where, at), own=own) for at, each in enumerate(node.value)]
        if node.tag == TIME:
            return node.value
        if not node.tag.startswith(TAG):
            raise _wrong(node, f"the tag {node.tag} is known only to the program that it is for")
        if node.tag == TEXT and (old := _OLD_BOOL.fullmatch(self._source(node))):
            return self._old_bool(old[1], where)
        try:
            return self.constructor.construct_object(node)
        except (ValueError, ArithmeticError):
            raise _wrong(node, f"{node.value[:20]!r} is no {node.tag.removeprefix(TAG)}") from None

    def _old_bool(self, word: str, where: Where) -> bool:
        """A text in YAML 1.2, but most trainers read with PyYAML: what looks like a switch is one for them."""
        value = word.lower() in ("yes", "on")
        self.config.notes[where] = f"{word} is read as {str(value).lower()} by YAML 1.1 readers such as PyYAML"
        return value

    def _source(self, node: Any) -> str:
        """As it is written, with quotes, tag and anchor."""
        return self.config.text[node.start_mark.index : node.end_mark.index]

    def _mapping(self, node: Any, where: Where, own: bool) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, value in node.value:
            if key.id != "scalar":
                raise _wrong(key, "a key that is a list or a mapping; no path leads there")
            if key.tag == MERGE:
                for name, each in self._merged(value, where).items():
                    merged.setdefault(name, each)
                continue
            if key.value in found:
                raise _wrong(key, f"the key {key.value!r} is there twice")
            found[key.value] = self.value(value, (*where, key.value), own=own)
            self._place_of_nothing(key, (*where, key.value))
        for name in merged.keys() - found.keys():
            self.config.shared.setdefault((*where, name), "comes from a merge (<<)")
        return {**{name: each for name, each in merged.items() if name not in found}, **found}

    def _merged(self, node: Any, where: Where) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for each in node.value if node.id == "sequence" else [node]:
            if each.id != "mapping":
                raise _wrong(each, "only mappings can be merged (<<)")
            if id(each) in self.seen:
                self.config.shared[self.seen[id(each)]] = f"has the anchor &{each.anchor}, which is used elsewhere"
            for name, value in self.value(each, where, own=False).items():
                found.setdefault(name, value)
        return found

    def _place_of_nothing(self, key: Any, where: Where) -> None:
        """`key:` with nothing behind it has its place behind the colon, not where the next key begins."""
        start, end = self.config.spans.get(where, (0, 1))
        colon = re.compile(r"[ \t\r\n]*:").match(self.config.text, key.end_mark.index)
        if start == end and colon:
            self.config.spans[where] = (colon.end(), colon.end())

    def _end(self, node: Any) -> int:
        """Behind its last character: what a block ends with may be a comment about what comes next."""
        if node.id != "scalar" and not node.flow_style and node.value:
            last = node.value[-1]
            return self._end(last[1] if isinstance(last, tuple) else last)
        start, end = int(node.start_mark.index), int(node.end_mark.index)
        return start + len(self.config.text[start:end].rstrip(" \t\r\n"))


def _wrong(node: Any, why: str) -> UnreadableConfig:
    mark = node.start_mark
    return UnreadableConfig(f"it is no YAML: line {mark.line + 1}, column {mark.column + 1}: {why}")


def written(config: Config, where: Where, value: Any) -> str:
    """A value as it stands at that place."""
    start, end = config.spans[where]
    before = config.text[start:end]
    if isinstance(value, str):
        text = _text(value, before)
    elif isinstance(value, float):
        text = _float(value)
    else:
        text = _flow(value)
    if not before:  # `key:` and nothing behind it
        return f" {text}"
    own_line = not config.text[config.text.rfind("\n", 0, start) + 1 : start].strip()
    return f"  {text}" if own_line and before.startswith("-") and isinstance(value, list | dict) else text


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(str(key))}: {_flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _float(value) if isinstance(value, float) else _quoted(value)


def _quoted(value: Any) -> str:
    """As JSON, but for characters that YAML wants escaped in its own way."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else "".join(map(_escaped, text))


def _escaped(character: str) -> str:
    return character if character.isprintable() else f"\\U{ord(character):08x}"


def _float(value: float) -> str:
    """With a point and a signed exponent: older readers of YAML take 1e-05 for a text."""
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    text = repr(value)
    return re.sub(r"^(-?[0-9]+)e", r"\1.0e", text) if "e" in text else text


def _text(value: str, before: str) -> str:
    """Plain where the old one was plain and nobody would take it for something else."""
    if before[:1] == "'" and value.isprintable():
        doubled = value.replace("'", "''")
        return f"'{doubled}'"
    plain = re.fullmatch(r"[A-Za-z_/][A-Za-z0-9_./-]*", value) and value.lower() not in _WORDS
    if before[:1] != '"' and (plain or (_DATE.fullmatch(before) and _DATE.fullmatch(value))):
        return value
    return _quoted(value)
