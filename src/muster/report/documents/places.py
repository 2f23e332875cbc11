"""Where in a text a number stands: which cell of which table, or which sentence below which headings."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from muster.report.documents.source import LATEX, MARKDOWN, PLAIN, Source
from muster.report.documents.tables import Row, aligned_rows, is_pipe_table, latex_rows, pipe_rows, placed

_HEADING = re.compile(r"[ \t]*(#{1,6})[ \t]+(.*)")
_UNDERLINE = re.compile(r"[ \t]*(?:-{3,}|={3,}|~{3,})[ \t]*")
_BREAK = re.compile(r"[ \t]*(?:-{2,}|(?:\*[ \t]*){3,}|_{3,}|={3,})[ \t]*")
_ITEM = re.compile(r"([ \t]*)(?:[-*+•]|[0-9]+[.)、])[ \t]+")
_TITLE = re.compile(
    r"[ \t]*(?:Table|Tab\.|表)\s*+[0-9A-Z一二三四五六七八九十]*+\s*+[.:：]|.*[:：]\s*+(?:\*\*\s*+)?$|\s*\*\*.*\*\*\s*$",
    re.I,
)
_TABULAR = re.compile(r"\\begin\{(tabular[*xy]?|tabulary|longtable|array|tblr|tabu|supertabular|xltabular)\}")
_SECTION = re.compile(
    r"\\(?P<level>(?:sub)*section|chapter|(?:sub)?paragraph|frametitle)\*?(?:\[[^\]]{0,400}\])?\{(?P<title>[^{}]*(?:\{[^{}]*\}[^{}]*)*)\}"
    r"|\\begin\{frame\}(?:\[[^\]]{0,400}\])?\{(?P<frame>[^{}]*)\}"
)
_CAPTION = re.compile(r"\\caption\*?(?:\[[^\]]{0,800}\])?\{((?:[^{}]++|\{(?:[^{}]++|\{[^{}]*+\})*\})*)\}")
_FLOAT = re.compile(
    r"\\begin\{(?P<env>table|figure|sidewaystable|wraptable)(?P<star>\*?)\}.*?\\end\{(?P=env)(?P=star)\}", re.DOTALL
)
MOST_ABOVE = 20  # open list items, one within the other
_LEVELS = {"chapter": 0, "section": 1, "subsection": 2, "subsubsection": 3, "paragraph": 4, "subparagraph": 5}


@dataclass(frozen=True, slots=True)
class Place:
    """A cell, or a paragraph, a list item or a heading."""

    start: int
    end: int
    cell: bool = False
    title: bool = False  # a cell that names its row or column
    row: tuple[str, ...] = ()
    column: tuple[str, ...] = ()
    above: tuple[str, ...] = ()  # what it stands under, the nearest first


@dataclass(slots=True)
class _Reader:
    """Goes through lines and keeps what the next one stands under."""

    kind: str
    places: list[Place] = field(default_factory=list)
    headings: list[tuple[int, str]] = field(default_factory=list)
    items: list[tuple[int, str]] = field(default_factory=list)  # indent and text of open list items
    open: list[tuple[int, str]] = field(default_factory=list)  # lines of the paragraph that is being read
    indent: int = 0
    item: bool = False
    last: str = ""  # the paragraph before, which may be a table's title
    no_pipes: int = 0  # before this line no table of pipes begins: it was looked for already
    no_columns: int = 0  # nor one of aligned columns

    def above(self) -> tuple[str, ...]:
        return (
            *(text for _, text in reversed(self.items[-MOST_ABOVE:])),
            *(text for _, text in reversed(self.headings)),
        )

    def close(self) -> None:
        """Ends the open paragraph or item."""
        if not self.open:
            return
        start = self.open[0][0]
        end = self.open[-1][0] + len(self.open[-1][1])
        self.last = "\n".join(line for _, line in self.open)
        if self.item:
            while self.items and self.items[-1][0] >= self.indent:
                self.items.pop()
        self.places.append(Place(start, end, above=self.above()))
        if self.item:
            self.items.append((self.indent, self.last))
        self.open, self.item = [], False

    def head(self, level: int, start: int, line: str, text: str) -> None:
        self.close()
        self.items.clear()
        while self.headings and self.headings[-1][0] >= level:
            self.headings.pop()
        self.places.append(Place(start, start + len(line), above=self.above()))
        self.headings.append((level, text))
        self.last = ""

    def table(self, rows: Sequence[Row], title: str) -> None:
        for cell in placed(rows):
            above = (*filter(None, (cell.corner, title)), *self.above())
            self.places.append(Place(cell.start, cell.end, True, cell.header, cell.row, cell.column, above))
        self.last = ""

    def begin_item(self, indent: int) -> None:
        self.close()
        self.item, self.indent = True, indent


def places(source: Source) -> list[Place]:
    """In order, without gaps that could hold a number of the text."""
    found = _latex(source) if source.kind == LATEX else _lines(source)
    return sorted(found, key=lambda place: place.start)


class Layout:
    def __init__(self, source: Source) -> None:
        self.places = places(source)
        self._starts = [place.start for place in self.places]

    def at(self, position: int) -> Place | None:
        number = bisect_right(self._starts, position) - 1
        place = self.places[number] if number >= 0 else None
        return place if place and position < place.end else None


def _split(text: str) -> list[tuple[int, str]]:
    """Lines without their ends, with their offsets."""
    found, at = [], 0
    for line in text.split("\n"):
        found.append((at, line.removesuffix("\r")))
        at += len(line) + 1
    return found


def _lines(source: Source) -> list[Place]:
    lines = _split(source.shown)
    reader = _Reader(source.kind)
    at, quoted = 0, False
    while at < len(lines):
        start, line = lines[at]
        if _is_quote(source.text, start) != quoted:
            quoted = not quoted
            reader.close()
        taken = _table(reader, lines, at)
        if taken:
            at += taken
            continue
        _line(reader, start, line)
        at += 1
    reader.close()
    return reader.places


def _is_quote(text: str, start: int) -> bool:
    """`>` is blanked in what is shown."""
    end = text.find("\n", start)
    return text[start : len(text) if end < 0 else end].lstrip().startswith(">")


def _line(reader: _Reader, start: int, line: str) -> None:
    if not line.strip():
        reader.close()
    elif reader.kind == MARKDOWN and (found := _HEADING.match(line)):
        reader.head(len(found[1]), start, line, found[2])
    elif _UNDERLINE.fullmatch(line) and len(reader.open) == 1 and not reader.item:
        (above, text) = reader.open.pop()
        reader.head(2 - ("=" in line), above, text, text)
    elif _BREAK.fullmatch(line):  # the next slide
        reader.close()
        reader.headings.clear()
        reader.items.clear()
        reader.last = ""
    else:
        found = _ITEM.match(line)
        indent = len(line) - len(line.lstrip())
        if found:
            reader.begin_item(len(found[1].expandtabs(4)))
        elif not reader.open and reader.items and not indent:
            reader.items.clear()  # a paragraph below a list
        elif not reader.open:
            while reader.items and reader.items[-1][0] >= indent:
                reader.items.pop()
        reader.open.append((start, line))


def _table(reader: _Reader, lines: Sequence[tuple[int, str]], at: int) -> int:
    """Reads the table that begins here, if one does: how many lines it has."""
    texts = [line for _, line in lines[at : at + 3]]
    rows, end = None, at
    if is_pipe_table(texts):
        if at < reader.no_pipes:
            return 0
        while end < len(lines) and ("|" in lines[end][1] or lines[end][1].lstrip().startswith("+")):
            end += 1
        rows = pipe_rows(lines[at:end])
        if not rows:  # nor are its last lines one
            reader.no_pipes = end
    elif _may_be_aligned(reader, texts[0], at):
        rows, end = aligned_rows(lines, at)
        if not rows:
            reader.no_columns = end
    if not rows:
        return 0
    reader.close()
    title = reader.last if _TITLE.match(reader.last) and "\n" not in reader.last else ""
    reader.table(rows, title)
    return end - at


def _may_be_aligned(reader: _Reader, line: str, at: int) -> bool:
    if reader.kind != PLAIN or reader.open or at < reader.no_columns:
        return False
    return re.search(r"\S(?:\t| {2,})\S", line) is not None


# -- LaTeX


def _latex(source: Source) -> list[Place]:
    """Paragraphs between blank lines, items and sections; tables as blocks of their own."""
    text = source.shown
    tables = list(_tables(text, source.text))
    captions = list(_captions(text))
    reader = _Reader(LATEX)
    done = 0
    for start, end, body in tables:
        if start < done:
            continue  # one within another
        _prose(reader, text, done, start)
        reader.close()
        title = next((caption for begin, close, caption in captions if begin <= start < close), "")
        reader.table(latex_rows(body, text[body:end]), title)
        done = end
    _prose(reader, text, done, len(text))
    reader.close()
    return reader.places


def _tables(text: str, raw: str) -> Iterator[tuple[int, int, int]]:
    """Start, end and start of the body. The columns' specification is blanked in `text`, so it is found in `raw`."""
    open_ended: set[str] = set()
    for found in _TABULAR.finditer(raw):
        if text[found.start() : found.start() + 6] != "\\begin" or found[1] in open_ended:
            continue  # in a comment, or without an end
        end = text.find(f"\\end{{{found[1]}}}", found.end())
        if end > 0:
            yield found.start(), end, found.end()
        else:
            open_ended.add(found[1])


def _captions(text: str) -> Iterator[tuple[int, int, str]]:
    for found in _FLOAT.finditer(text):
        caption = _CAPTION.search(found[0])
        if caption:
            yield found.start(), found.end(), caption[1]


def _prose(reader: _Reader, text: str, start: int, end: int) -> None:
    for offset, line in _split(text[start:end]):
        at = start + offset
        if not line.strip():
            reader.close()
            reader.items.clear()
        elif found := _SECTION.search(line):
            title = found["title"] or found["frame"] or ""
            reader.head(_LEVELS.get(found["level"] or "", 1), at, line, title)
        elif re.match(r"\s*\\item(?![A-Za-z])", line):
            reader.begin_item(len(line) - len(line.lstrip()))
            reader.open.append((at, line))
        elif re.match(r"\s*\\(?:begin|end)\{", line):
            reader.close()
            reader.open.append((at, line))
            reader.close()
            if re.match(r"\s*\\end\{(?:itemize|enumerate|description|frame)\}", line):
                reader.items.clear()
        else:
            if re.match(r"\s*\\caption", line):
                reader.close()
            reader.open.append((at, line))
