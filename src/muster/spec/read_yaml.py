"""Reads YAML into a document with positions, or says in plain words what keeps it from being YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
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

from muster.model.errors import Mistake
from muster.spec.yaml_tree import (
    Items,
    Node,
    Scalar,
    Table,
    YamlDocument,
    dotted_path,
    read_plain_scalar,
    shorten_text,
)

_PLACEHOLDER = re.compile(r"\{[a-z_.]+\}")
_NOTATION = "this is not YAML: "


def explain_yaml_error(error: MarkedYAMLError, text: str) -> Mistake:
    problem = str(error.problem or "")
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    rows = text.split("\n")
    row = rows[line - 1] if line <= len(rows) else ""
    indent = row[: len(row) - len(row.lstrip(" \t"))]
    if "\t" in indent:
        return Mistake("a tab is used for indentation", line, indent.index("\t") + 1, "use spaces")
    if "unexpected end of stream" in problem and error.context_mark:
        mark = error.context_mark
        what = "a quote is opened here and never closed"
        return Mistake(_NOTATION + what, mark.line + 1, mark.column + 1, "close it on the same line")
    what, hint = _explain_yaml_problem(problem, row, str(error.context or ""))
    return Mistake(_NOTATION + what, line, column, hint)


def _explain_yaml_problem(problem: str, row: str, context: str) -> tuple[str, str]:
    if "mapping values are not allowed" in problem:
        return _explain_colon(row)
    if "cannot start any token" in problem:
        character = problem.split("'")[1] if problem.count("'") >= 2 else "this"
        return f"a value may not begin with {character}", "put the value in quotes"
    if "flow sequence" in context or "flow mapping" in context:
        kind = ("list", "[", "]") if "flow sequence" in context else ("mapping", "{", "}")
        return f"a {kind[0]} that begins with {kind[1]} is not closed or lacks a comma", _brace_hint(row, kind[2])
    if "unknown escape" in problem:
        return "a backslash in double quotes begins an escape that YAML does not know", "use single quotes"
    if "sequence entries are not allowed" in problem:
        return "a list item may not begin on the line of its key", "begin the list on the next line"
    if "<block end>" in problem and "<scalar>" in problem:
        return "there is text after the end of a value", _brace_hint(row, None)
    if "<block end>" in problem:
        return "this line fits neither the lines above it nor their indentation", "indent it like its siblings"
    if "<document start>" in problem:
        return "something follows after the end of the document", "look for a bracket too many"
    return problem or "it can't be read", "quotes around the value often help"


def _explain_colon(row: str) -> tuple[str, str]:
    if row.count(": ") + row.rstrip().endswith(":") > 1:
        return "a value contains ': ', which begins a new key", "put the whole value in quotes"
    return "a key stands where none can be", "check the indentation, and the space after ':' on the line above"


def _brace_hint(row: str, closing: str | None) -> str:
    if closing and _PLACEHOLDER.search(row):
        return "inside { } and [ ] a text with placeholders must be in quotes"
    if ": {" in row or "[{" in row or "- {" in row:
        return 'a value that begins with a placeholder must be in quotes: "{out}/file"'
    if ': "' in row or ": '" in row:
        return "put the whole value in one pair of quotes"
    return f"close it with {closing}" if closing else "put the whole value in quotes"


_DEEPEST = 40
_LARGEST = 200_000  # nodes, aliases written out: a small file can stand for a huge one
_STR = "tag:yaml.org,2002:str"


class _ParseStop(Exception):
    """Nothing sensible can be read after this."""

    def __init__(self, mistake: Mistake) -> None:
        super().__init__(mistake.message)
        self.mistake = mistake


def read_yaml_document(text: str) -> tuple[YamlDocument | None, list[Mistake]]:
    """The document (None where there is none to speak of) and the mistakes of its notation."""
    text = text.removeprefix("\ufeff")
    builder = _Builder(_yaml_events(text))
    try:
        root = builder.document()
    except _ParseStop as stop:
        return None, [*builder.mistakes, stop.mistake]
    except MarkedYAMLError as error:
        return None, [*builder.mistakes, explain_yaml_error(error, text)]
    except ReaderError as error:
        return None, [_unreadable_character(text, error)]
    except Exception:  # ruamel.yaml lets OverflowError, ValueError and others through for some texts
        return None, [Mistake("this is not YAML", 1, 1, "look for an escape such as \\U in double quotes")]
    if root is None:
        return None, [Mistake("the file is empty", 1, 1, "`muster init` writes a campaign to start from")]
    return YamlDocument(root, tuple(text.split("\n"))), builder.mistakes


def _yaml_events(text: str) -> Iterator[Any]:
    return iter(YAML(typ="safe", pure=True).parse(text))


def _unreadable_character(text: str, error: ReaderError) -> Mistake:
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
                    line, column = _event_place(event)
                    raise _ParseStop(Mistake("a second document begins here", line, column, "keep one, without `---`"))
            elif isinstance(event, ScalarEvent | SequenceStartEvent | MappingStartEvent | AliasEvent):
                root, _ = self.node(event)
        if isinstance(root, Scalar) and root.value is None:
            return None
        return root

    def node(self, event: Any) -> tuple[Node, int]:
        line, column = _event_place(event)
        if len(self.path) > _DEEPEST:
            raise _ParseStop(
                Mistake(f"nested more than {_DEEPEST} levels deep", line, column, "look for a missing bracket")
            )
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
        line, column = _event_place(event)
        what = f"'*{event.anchor}' refers to '&{event.anchor}', which does not stand before it"
        raise _ParseStop(
            Mistake(what, line, column, f'for a text that begins with * write "*{event.anchor}" in quotes')
        )

    def scalar(self, event: Any) -> Scalar:
        line, column = _event_place(event)
        quoted = event.style is not None or event.tag == _STR
        if event.tag is not None and event.tag != _STR:
            self.refuse_tag(event)
        if any(character == "\0" or "\ud800" <= character <= "\udfff" for character in event.value):
            what = "a character that no file name, command or report can hold"
            self.mistakes.append(Mistake(what, line, column, "delete the escape", dotted_path(tuple(self.path))))
            return Scalar("?", "?", True, line, column)
        return Scalar(event.value if quoted else read_plain_scalar(event.value), event.value, quoted, line, column)

    def refuse_tag(self, event: Any) -> None:
        if event.tag is not None and not str(event.tag).startswith("tag:yaml.org,2002:"):
            line, column = _event_place(event)
            what = f"the tag '{event.tag}' means nothing here"
            hint = "remove it, or put the text in quotes if it begins with !"
            self.mistakes.append(Mistake(what, line, column, hint, dotted_path(tuple(self.path))))

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
                    key, f"the key {shorten_text(key.text)} is written twice, first on line {first.line}", "keep one"
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
        self.mistakes.append(Mistake(what, node.line, node.column, hint, dotted_path(tuple(self.path))))


def _refuse_size(size: int, line: int, column: int) -> None:
    if size > _LARGEST:
        raise _ParseStop(Mistake(f"the file stands for more than {_LARGEST} values", line, column, "use fewer aliases"))


def _event_place(event: Any) -> tuple[int, int]:
    return event.start_mark.line + 1, event.start_mark.column + 1


def locate_mistakes(mistakes: Sequence[Mistake], text: str) -> tuple[Mistake, ...]:
    """Line and column for mistakes that know only their path in the file."""

    document, _ = read_yaml_document(text)
    if document is None:
        return tuple(mistakes)
    placed = []
    for mistake in mistakes:
        if not mistake.line and mistake.path:
            line, column = document.place(_split_mistake_path(document, mistake.path))
            placed.append(replace(mistake, line=line, column=column))
        else:
            placed.append(mistake)
    return tuple(placed)


def _split_mistake_path(document: YamlDocument, dotted: str) -> tuple[str | int, ...]:
    """`finish.run.0`: in a list a part is an index, in a mapping a name."""
    from muster.spec.yaml_tree import Items

    found: tuple[str | int, ...] = ()
    parts = dotted.split(".")
    while parts:
        listed = isinstance(document.get(found), Items) and parts[0].isdecimal()
        length = _length_of_dotted_name(document, found, parts)
        found = (*found, int(parts[0]) if listed else ".".join(parts[:length]))
        parts = parts[length:]
    return found


def _length_of_dotted_name(document: YamlDocument, found: tuple[str | int, ...], parts: Sequence[str]) -> int:
    """How many parts are one name: a name may have dots in it."""
    return next((n for n in range(1, len(parts) + 1) if document.has((*found, ".".join(parts[:n])))), 1)
