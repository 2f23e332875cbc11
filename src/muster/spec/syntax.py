"""Text in, a document with positions out; or what keeps it from being YAML, in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.reader import ReaderError

from muster.domain.errors import Mistake
from muster.spec.document import Document, Items, Node, Scalar, Table, dotted, shorten
from muster.spec.scalars import read_plain
from muster.spec.trouble import plain_words

_DEEPEST = 40
_LARGEST = 200_000  # nodes, aliases written out: a small file can stand for a huge one
_STR = "tag:yaml.org,2002:str"


class _Stop(Exception):
    """Nothing sensible can be read after this."""

    def __init__(self, mistake: Mistake) -> None:
        super().__init__(mistake.message)
        self.mistake = mistake


def read_document(text: str) -> tuple[Document | None, list[Mistake]]:
    """The document (None where there is none to speak of) and the mistakes of its notation."""
    text = text.removeprefix("\ufeff")
    builder = _Builder(_events(text))
    try:
        root = builder.document()
    except _Stop as stop:
        return None, [*builder.mistakes, stop.mistake]
    except MarkedYAMLError as error:
        return None, [*builder.mistakes, plain_words(error, text)]
    except ReaderError as error:
        return None, [_unreadable(text, error)]
    except Exception:  # ruamel.yaml lets OverflowError, ValueError and others through for some texts
        return None, [Mistake("this is not YAML", 1, 1, "look for an escape such as \\U in double quotes")]
    if root is None:
        return None, [Mistake("the file is empty", 1, 1, "`muster init` writes a campaign to start from")]
    return Document(root, tuple(text.split("\n"))), builder.mistakes


def _events(text: str) -> Iterator[Any]:
    return iter(YAML(typ="safe", pure=True).parse(text))


def _unreadable(text: str, error: ReaderError) -> Mistake:
    before = text[: error.position]
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    code = ord(text[error.position]) if error.position < len(text) else 0
    return Mistake(f"a control character (U+{code:04X}) stands in the file", line, column, "delete it")


@dataclass
class _Builder:
    events: Iterator[Any]
    mistakes: list[Mistake] = field(default_factory=list)
    anchors: dict[str, tuple[Node, int]] = field(default_factory=dict)
    path: list[str | int] = field(default_factory=list)

    def document(self) -> Node | None:
        root: Node | None = None
        documents = 0
        for event in self.events:
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents > 1:
                    line, column = _place(event)
                    raise _Stop(Mistake("a second document begins here", line, column, "keep one, without `---`"))
            elif isinstance(event, ScalarEvent | SequenceStartEvent | MappingStartEvent | AliasEvent):
                root, _ = self.node(event)
        if isinstance(root, Scalar) and root.value is None:
            return None
        return root

    def node(self, event: Any) -> tuple[Node, int]:
        line, column = _place(event)
        if len(self.path) > _DEEPEST:
            raise _Stop(Mistake(f"nested more than {_DEEPEST} levels deep", line, column, "look for a missing bracket"))
        if isinstance(event, AliasEvent):
            return self.alias(event)
        if isinstance(event, ScalarEvent):
            node: Node = self.scalar(event)
            size = 1
        elif isinstance(event, SequenceStartEvent):
            self.refuse_tag(event)
            node, size = self.items(line, column)
        else:
            self.refuse_tag(event)
            node, size = self.table(line, column)
        _refuse_size(size, line, column)
        if event.anchor is not None:
            self.anchors[event.anchor] = (node, size)
        return node, size

    def alias(self, event: Any) -> tuple[Node, int]:
        if event.anchor in self.anchors:
            return self.anchors[event.anchor]
        line, column = _place(event)
        what = f"'*{event.anchor}' refers to '&{event.anchor}', which does not stand before it"
        raise _Stop(Mistake(what, line, column, f'for a text that begins with * write "*{event.anchor}" in quotes'))

    def scalar(self, event: Any) -> Scalar:
        line, column = _place(event)
        quoted = event.style is not None or event.tag == _STR
        if event.tag is not None and event.tag != _STR:
            self.refuse_tag(event)
        if any(character == "\0" or "\ud800" <= character <= "\udfff" for character in event.value):
            what = "a character that no file name, command or report can hold"
            self.mistakes.append(Mistake(what, line, column, "delete the escape", dotted(tuple(self.path))))
            return Scalar("?", "?", True, line, column)
        return Scalar(event.value if quoted else read_plain(event.value), event.value, quoted, line, column)

    def refuse_tag(self, event: Any) -> None:
        if event.tag is not None and not str(event.tag).startswith("tag:yaml.org,2002:"):
            line, column = _place(event)
            what = f"the tag '{event.tag}' means nothing here"
            hint = "remove it, or put the text in quotes if it begins with !"
            self.mistakes.append(Mistake(what, line, column, hint, dotted(tuple(self.path))))

    def items(self, line: int, column: int) -> tuple[Items, int]:
        found: list[Node] = []
        total = 1
        for event in self.events:
            if isinstance(event, SequenceEndEvent):
                break
            self.path.append(len(found))
            node, size = self.node(event)
            self.path.pop()
            found.append(node)
            total += size
            _refuse_size(total, line, column)
        return Items(tuple(found), line, column), total

    def table(self, line: int, column: int) -> tuple[Table, int]:
        entries: dict[str, tuple[Scalar, Node]] = {}
        merged: list[tuple[Scalar, Node]] = []
        total = 1
        for event in self.events:
            if isinstance(event, MappingEndEvent):
                break
            key, _ = self.node(event)
            self.path.append(key.text if isinstance(key, Scalar) else "?")
            value, size = self.node(next(self.events))
            total += size + 1
            _refuse_size(total, line, column)  # now, and not at its end: what is merged is held many times over
            if not isinstance(key, Scalar):
                self.complain(key, "a key must be text, not a list or mapping", "put the key in quotes")
            elif key.text == "<<" and not key.quoted:
                merged.extend(self.merge(value))
            elif key.text in entries:
                first = entries[key.text][0]
                self.complain(
                    key, f"the key {shorten(key.text)} is written twice, first on line {first.line}", "keep one"
                )
            else:
                entries[key.text] = (key, value)
            self.path.pop()
        for key, value in merged:
            entries.setdefault(key.text, (key, value))
        return Table(tuple(entries.values()), line, column), total

    def merge(self, value: Node) -> list[tuple[Scalar, Node]]:
        sources = value.items if isinstance(value, Items) else (value,)
        if not all(isinstance(source, Table) for source in sources):
            self.complain(value, "'<<' merges mappings only", "refer to a mapping: `<<: *name`")
        return [entry for source in sources if isinstance(source, Table) for entry in source.entries]

    def complain(self, node: Node, what: str, hint: str) -> None:
        self.mistakes.append(Mistake(what, node.line, node.column, hint, dotted(tuple(self.path))))


def _refuse_size(size: int, line: int, column: int) -> None:
    if size > _LARGEST:
        raise _Stop(Mistake(f"the file stands for more than {_LARGEST} values", line, column, "use fewer aliases"))


def _place(event: Any) -> tuple[int, int]:
    return event.start_mark.line + 1, event.start_mark.column + 1
