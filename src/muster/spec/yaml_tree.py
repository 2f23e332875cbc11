"""A YAML text as a tree of nodes that know their place. Paths in it are tuples of keys and indexes.

Unquoted scalars are read by YAML 1.2, core schema; where a YAML 1.1 reader would see something else, that is known
too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

ScalarValue = str | int | float | bool | None

_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_WHOLE = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_ENDLESS = re.compile(r"([-+]?)\.(inf|Inf|INF)|\.(nan|NaN|NAN)")

_OLD_BOOL = re.compile(r"yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF")
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?([Tt ].*)?")
_SIXTY = re.compile(r"[-+]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?")
_UNDERSCORE = re.compile(r"[-+]?[0-9][0-9_]*_[0-9_]*(\.[0-9_]*)?")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")

_MOST_DIGITS = 400  # beyond that it is no number that anybody meant, and Python refuses to convert thousands of digits


def read_plain_scalar(text: str) -> ScalarValue:
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if len(text) > _MOST_DIGITS:
        return text
    if _WHOLE.fullmatch(text):
        return int(text, 0) if text.startswith(("0o", "0x")) else int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if match := _ENDLESS.fullmatch(text):
        return float("nan") if match.group(3) else float(match.group(1) + "inf")
    return text


def has_leading_zero(text: str) -> bool:
    """`010`: ten here, eight for a YAML 1.1 reader."""
    return bool(_LEADING_ZERO.fullmatch(text))


def yaml11_reading(text: str) -> str | None:
    """What YAML 1.1 readers (PyYAML among them) make of an unquoted text, where that differs from the text itself."""
    if _OLD_BOOL.fullmatch(text):
        return "true" if text.lower() in ("yes", "on") else "false"
    if _DATE.fullmatch(text):
        return "a date"
    if _SIXTY.fullmatch(text):
        return "a number in base 60"
    if _UNDERSCORE.fullmatch(text):
        return f"the number {text.replace('_', '')}"
    return None


def without_underscores(text: str) -> str | None:
    """`120_000` -> `120000`; None if it is not such a number."""
    return text.replace("_", "") if _UNDERSCORE.fullmatch(text) else None


NodePath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Scalar:
    value: ScalarValue
    text: str  # as written, quotes and escapes undone: `1e5`, `no`, `010`
    quoted: bool
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Items:
    items: tuple[Node, ...]
    line: int
    column: int
    numbers: tuple[int, ...] = ()  # places in the file, where some items were left out


@dataclass(frozen=True, slots=True)
class Table:
    entries: tuple[tuple[Scalar, Node], ...]
    line: int
    column: int

    def get(self, key: str) -> tuple[Scalar, Node] | None:
        return next((entry for entry in self.entries if entry[0].text == key), None)


Node = Scalar | Items | Table


@dataclass(frozen=True, slots=True)
class YamlDocument:
    root: Node
    lines: tuple[str, ...]

    def get(self, path: NodePath) -> Node | None:
        found = self._step(path)
        return found[1] if found else None

    def has(self, path: NodePath) -> bool:
        return self._step(path) is not None

    def keys(self, path: NodePath) -> list[Scalar]:
        """The keys of the mapping at a path; none if there is no mapping."""
        node = self.get(path)
        return [key for key, _ in node.entries] if isinstance(node, Table) else []

    def place(self, path: NodePath, *, key: bool = False) -> tuple[int, int]:
        """Line and column of a value, or of the key before it; of the nearest thing around it that exists."""
        for length in range(len(path), 0, -1):
            found = self._step(path[:length])
            if found is not None:
                name, node = found
                # where the value itself is missing, the key of what lacks it is the place to look at
                use_key = name is not None and (key or length < len(path) or _is_empty_scalar(node))
                return (name.line, name.column) if use_key and name else (node.line, node.column)
        return (self.root.line, self.root.column)

    def place_of(self, path: NodePath, part: str) -> tuple[int, int]:
        """Where a part of a text stands, if it can be seen on the value's first line; else where the text begins."""
        line, column = self.place(path)
        if 0 < line <= len(self.lines):
            index = self.lines[line - 1].find(part, column - 1)
            if index >= 0:
                return line, index + 1
        return line, column

    def written(self, path: NodePath) -> NodePath:
        """The path with the indexes of the file itself."""
        parts: list[str | int] = []
        for length, part in enumerate(path):
            node = self.get(path[:length])
            numbered = isinstance(node, Items) and isinstance(part, int) and part < len(node.numbers)
            parts.append(node.numbers[part] if numbered and isinstance(node, Items) and isinstance(part, int) else part)
        return tuple(parts)

    def without(self, paths: Iterable[NodePath]) -> YamlDocument:
        """The same document less some parts; what stays keeps its line and column."""
        return replace(self, root=_node_without(self.root, {path for path in paths if path}))

    def _step(self, path: NodePath) -> tuple[Scalar | None, Node] | None:
        key: Scalar | None = None
        node = self.root
        for part in path:
            if isinstance(node, Table) and isinstance(part, str):
                entry = node.get(part)
                if entry is None:
                    return None
                key, node = entry
            elif isinstance(node, Items) and isinstance(part, int) and part < len(node.items):
                key, node = None, node.items[part]
            else:
                return None
        return key, node


def _is_empty_scalar(node: Node) -> bool:
    return isinstance(node, Scalar) and node.value is None and not node.text


def _node_without(node: Node, paths: set[NodePath]) -> Node:
    if not paths or isinstance(node, Scalar):
        return node
    if isinstance(node, Table):
        kept = [
            (key, _node_without(value, _paths_below(paths, key.text)))
            for key, value in node.entries
            if (key.text,) not in paths
        ]
        return replace(node, entries=tuple(kept))
    numbers = node.numbers or tuple(range(len(node.items)))
    kept_items = [
        (_node_without(item, _paths_below(paths, index)), numbers[index])
        for index, item in enumerate(node.items)
        if (index,) not in paths
    ]
    return replace(node, items=tuple(item for item, _ in kept_items), numbers=tuple(number for _, number in kept_items))


def _paths_below(paths: set[NodePath], part: str | int) -> set[NodePath]:
    return {path[1:] for path in paths if path[0] == part and len(path) > 1}


def node_as_data(node: Node) -> object:
    """Dicts and lists with the scalars still as nodes: validators need to see how a value was written."""
    if isinstance(node, Table):
        return {key.text: node_as_data(value) for key, value in node.entries}
    if isinstance(node, Items):
        return [node_as_data(item) for item in node.items]
    return node


def describe_value(value: object) -> str:
    """What was found, in words: `text 'abc'`, `the number 1.5`, `a list`."""
    if isinstance(value, dict | Table):
        return "a mapping"
    if isinstance(value, list | Items):
        return "a list"
    if not isinstance(value, Scalar):
        return repr(value)
    if value.value is None:
        return "nothing"
    if isinstance(value.value, bool):
        return value.text
    if isinstance(value.value, int | float):
        return f"the number {value.text}"
    return f"text {shorten_text(value.text)}"


def shorten_text(text: str, most: int = 60) -> str:
    shown = text if len(text) <= most else text[: most - 1] + "…"
    return "'" + shown.replace("\n", "\\n") + "'"


def dotted_path(path: NodePath) -> str:
    return ".".join(str(part) for part in path)
