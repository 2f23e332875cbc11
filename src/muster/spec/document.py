"""A YAML text as a tree of nodes that know their place. Paths in it are tuples of keys and indexes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from muster.spec.scalars import Value

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Scalar:
    value: Value
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
class Document:
    root: Node
    lines: tuple[str, ...]

    def get(self, path: Path) -> Node | None:
        found = self._step(path)
        return found[1] if found else None

    def has(self, path: Path) -> bool:
        return self._step(path) is not None

    def keys(self, path: Path) -> list[Scalar]:
        """The keys of the mapping at a path; none if there is no mapping."""
        node = self.get(path)
        return [key for key, _ in node.entries] if isinstance(node, Table) else []

    def place(self, path: Path, *, key: bool = False) -> tuple[int, int]:
        """Line and column of a value, or of the key before it; of the nearest thing around it that exists."""
        for length in range(len(path), 0, -1):
            found = self._step(path[:length])
            if found is not None:
                name, node = found
                # where the value itself is missing, the key of what lacks it is the place to look at
                use_key = name is not None and (key or length < len(path) or _nothing(node))
                return (name.line, name.column) if use_key and name else (node.line, node.column)
        return (self.root.line, self.root.column)

    def place_of(self, path: Path, part: str) -> tuple[int, int]:
        """Where a part of a text stands, if it can be seen on the value's first line; else where the text begins."""
        line, column = self.place(path)
        if 0 < line <= len(self.lines):
            index = self.lines[line - 1].find(part, column - 1)
            if index >= 0:
                return line, index + 1
        return line, column

    def written(self, path: Path) -> Path:
        """The path with the indexes of the file itself."""
        parts: list[str | int] = []
        for length, part in enumerate(path):
            node = self.get(path[:length])
            numbered = isinstance(node, Items) and isinstance(part, int) and part < len(node.numbers)
            parts.append(node.numbers[part] if numbered and isinstance(node, Items) and isinstance(part, int) else part)
        return tuple(parts)

    def without(self, paths: Iterable[Path]) -> Document:
        """The same document less some parts; what stays keeps its line and column."""
        return replace(self, root=_without(self.root, {path for path in paths if path}))

    def _step(self, path: Path) -> tuple[Scalar | None, Node] | None:
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


def _nothing(node: Node) -> bool:
    return isinstance(node, Scalar) and node.value is None and not node.text


def _without(node: Node, paths: set[Path]) -> Node:
    if not paths or isinstance(node, Scalar):
        return node
    if isinstance(node, Table):
        kept = [
            (key, _without(value, _below(paths, key.text))) for key, value in node.entries if (key.text,) not in paths
        ]
        return replace(node, entries=tuple(kept))
    numbers = node.numbers or tuple(range(len(node.items)))
    kept_items = [
        (_without(item, _below(paths, index)), numbers[index])
        for index, item in enumerate(node.items)
        if (index,) not in paths
    ]
    return replace(node, items=tuple(item for item, _ in kept_items), numbers=tuple(number for _, number in kept_items))


def _below(paths: set[Path], part: str | int) -> set[Path]:
    return {path[1:] for path in paths if path[0] == part and len(path) > 1}


def plain(node: Node) -> object:
    """Dicts and lists with the scalars still as nodes: validators need to see how a value was written."""
    if isinstance(node, Table):
        return {key.text: plain(value) for key, value in node.entries}
    if isinstance(node, Items):
        return [plain(item) for item in node.items]
    return node


def describe(value: object) -> str:
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
    return f"text {shorten(value.text)}"


def shorten(text: str, most: int = 60) -> str:
    shown = text if len(text) <= most else text[: most - 1] + "…"
    return "'" + shown.replace("\n", "\\n") + "'"


def dotted(path: Path) -> str:
    return ".".join(str(part) for part in path)
