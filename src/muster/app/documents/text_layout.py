"""The layout of a text: where a number stands (which cell of which table, which sentence below which headings), with
code, links and comments blanked out in place.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from muster.app.documents.text_tables import (
    TextRow,
    is_pipe_table,
    parse_aligned_table,
    parse_latex_table,
    parse_pipe_table,
    place_table_cells,
)

MARKDOWN, LATEX, PLAIN = "markdown", "latex", "plain"
_KINDS = {
    "md": MARKDOWN,
    "markdown": MARKDOWN,
    "mdx": MARKDOWN,
    "qmd": MARKDOWN,
    "rmd": MARKDOWN,
    "marp": MARKDOWN,
    "html": MARKDOWN,
    "tex": LATEX,
    "ltx": LATEX,
    "latex": LATEX,
}

# where the reader sees nothing, or nothing that is prose
_FENCES = re.compile(
    r"^[ \t>]*(?:[-*+][ \t]+)?(?P<fence>`{3,}+|~{3,}+)[^\n`]*\n.*?(?:^[ \t>]*(?P=fence)[`~]*[ \t]*\r?$|\Z)"
    r"|<!--.*?(?:-->|\Z)|<(?P<tag>style|script|pre|svg)\b.*?(?:</(?P=tag)>|\Z)",
    re.MULTILINE | re.DOTALL,
)
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n.*?^(?:---|\.\.\.)[ \t]*\r?$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:\A|\n[ \t]*\r?\n)((?:(?: {4,}|\t)[^\n]*\n?)+)")
_LIST = re.compile(r"[ \t]*(?:[-*+]|[0-9]+[.)])[ \t]")
_LINKS = (  # bounded, so that a text of nothing but brackets is read in time
    re.compile(r"!\[[^\]\n]{0,400}\]\([^)\n]{0,800}\)"),  # an image, with its size
    re.compile(r"(?<=\])\([^)\n]{0,800}\)"),  # where a link leads
    re.compile(r"^[ \t]*\[[^\]\n]+\]:[ \t]+\S[^\n]*", re.MULTILINE),
    re.compile(r"\[\^[^\]\n]{0,100}\]"),
    re.compile(r"<(?!/?code>)[A-Za-z/!?][^<>\n]*>"),
    re.compile(r"\{[.#:][^}\n]{0,400}\}"),  # classes and widths of what stands before
)
_URL = re.compile(
    r"\b(?:https?|ftp|file|ssh|s3|gs)://[^\s<>\"'`|)\]}，。；、）】]+|\b[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{0,64}\w",
    re.ASCII,
)
_STRUCK = re.compile(r"~~(?=\S)[^~\n]{1,400}~~|<(?P<tag>del|s|strike)>[^\n]{0,400}?</(?P=tag)>")
_CODE = re.compile(
    r"<code>[^<\n]*+(?:<(?!/?code>)[^<\n]*+)*</code>|(?<!`)(?P<ticks>`++)[^\n]{0,4000}?(?<!`)(?P=ticks)(?!`)"
)
_QUOTED = re.compile(r"^(?:[ \t]*>)+", re.MULTILINE)
# numbers that count the text's own parts
_COUNTERS = re.compile(
    r"^[ \t]*(?:[0-9]+[.)、]|[-*+•])(?=[ \t])|(?<=^#)#{0,5}[ \t]*[0-9]+(?:\.[0-9]+)*[.)、:：]?(?=[ \t]|[^\x00-\x7f])",
    re.MULTILINE,
)

_ARGUMENT = r"(?:\{(?:[^{}]++|\{(?:[^{}]++|\{[^{}]*+\})*\})*\})"
_OPTIONS = r"\[[^\]\n]{0,800}\]"  # bounded as the links are
_TABULAR_NAMES = r"(?:tabular[*xy]?|tabulary|longtable|array|tblr|tabu|supertabular|xltabular)"
_LATEX = (
    re.compile(r"(?:(?<=(?<!\\)\\\\)|(?<!\\))%[^\n]*"),
    re.compile(r"\A.*?\\begin\{document\}|\\end\{document\}.*\Z", re.DOTALL),
    re.compile(
        r"\\begin\{(?P<env>verbatim\*?|Verbatim|lstlisting|minted|comment|tikzpicture|filecontents\*?|algorithm(?:ic)?\*?"
        r"|thebibliography)\}.*?(?:\\end\{(?P=env)\}|\Z)",
        re.DOTALL,
    ),
    re.compile(r"\\(?:verb|lstinline)\*?([^\w\s*]).{0,800}?\1"),
    re.compile(
        r"\\(?:(?:eq|auto|c|C|page|v|name)?ref|label|[a-zA-Z]*cite[a-z]*\*?|url|input|include|includegraphics|bibliography"
        r"|bibliographystyle|[vh]space\*?|setlength|addtolength|resizebox\*?|scalebox|rotatebox|rule|definecolor|setcounter"
        r"|addtocounter|geometry|usepackage|documentclass|newcommand|renewcommand|def|addlinespace|cline|cmidrule|vskip"
        r"|hskip|arraystretch|tabcolsep|graphicspath|hypersetup|sisetup)(?![A-Za-z])"
        rf"(?:\s*\([^)\n]{{0,800}}\)|\s*{_OPTIONS}|\s*\{{[^{{}}\n]*\}})*"
    ),
    re.compile(r"\\(?:sout|st|xout)\{[^{}\n]*\}"),
    re.compile(rf"\\(?:textcolor|colorbox|cellcolor|rowcolor|color|href|fontsize)(?:{_OPTIONS})?\{{[^{{}}\n]*\}}"),
    re.compile(rf"(?<=\\begin)\{{{_TABULAR_NAMES}\}}(?:{_OPTIONS})?(?:\{{[^{{}}\n]*\}}(?=\{{))?{_ARGUMENT}"),
    re.compile(rf"(?<=\\\\)\*?{_OPTIONS}"),
    re.compile(r"(?<![0-9.])-?[0-9]{0,4}\.?[0-9]{1,4} ?\\(?:text|line|column|paper)(?:width|height)"),
)
_LATEX_BARE = (
    re.compile(
        rf"(?<=\\multicolumn)\{{[^{{}}\n]*\}}{_ARGUMENT}|(?<=\\multirow)(?:{_OPTIONS})?\{{[^{{}}\n]*\}}\{{[^{{}}\n]*\}}"
    ),
)
_NOT_NEWLINE = re.compile(r"[^\r\n]")


def kind_of_text(name: str, text: str) -> str:
    """By the file's name; by what is in it where the name does not tell."""
    known = _KINDS.get(name.rpartition(".")[2].lower())
    if known:
        return known
    return LATEX if re.search(r"\\documentclass|\\begin\{(?:document|tabular)", text) else PLAIN


@dataclass(frozen=True)
class TextSource:
    text: str
    kind: str

    @cached_property
    def shown(self) -> str:
        """What names are read from: without comments, front matter, code blocks and where links lead."""
        text = " " + self.text[1:] if self.text.startswith("\ufeff") else self.text
        if self.kind == LATEX:
            for pattern in _LATEX:
                text = pattern.sub(_blank_match, text)
            return _URL.sub(_blank_match, text)
        if self.kind == MARKDOWN:
            text = _FRONT.sub(_blank_match, text)
            text = _STRUCK.sub(_blank_match, text)
            text = _FENCES.sub(_blank_match, text)
            text = _blank_indented_code(text)
            for pattern in _LINKS:
                text = pattern.sub(_blank_match, text)
        return _QUOTED.sub(_blank_match, _URL.sub(_blank_match, text))

    @cached_property
    def bare(self) -> str:
        """What numbers are read from: also without inline code, bullets and the numbers of headings."""
        text = self.shown
        if self.kind == LATEX:
            for pattern in _LATEX_BARE:
                text = pattern.sub(_blank_match, text)
            return text
        return _COUNTERS.sub(_blank_match, _CODE.sub(_blank_match, text))

    @cached_property
    def _lines(self) -> list[int]:
        return [0, *(found.end() for found in re.finditer("\n", self.text))]

    def where(self, at: int) -> tuple[int, int]:
        """Line and column, both from 1."""
        line = bisect_right(self._lines, at)
        return line, at - self._lines[line - 1] + 1


def _blank_match(found: re.Match[str]) -> str:
    return _NOT_NEWLINE.sub(" ", found[0])


def _blank_indented_code(text: str) -> str:
    """Four spaces after an empty line are code, unless they go on with a list."""
    done, in_list = 0, False

    def blank(found: re.Match[str]) -> str:
        nonlocal done, in_list
        in_list = _ends_in_list_item(text[done : found.start()], in_list)
        done = found.start()
        return found[0] if in_list or _LIST.match(found[1]) else _blank_match(found)

    return _INDENTED.sub(blank, text)


def _ends_in_list_item(above: str, before: bool) -> bool:
    """`before`: whether what stands above that does."""
    for line in reversed(above.splitlines()):
        if _LIST.match(line):
            return True
        if line.strip() and not line.startswith((" ", "\t")):
            return False
    return before


_HEADING = re.compile(r"[ \t]*(#{1,6})[ \t]+(.*)")
_UNDERLINE = re.compile(r"[ \t]*(?:-{3,}|={3,}|~{3,})[ \t]*")
_BREAK = re.compile(r"[ \t]*(?:-{2,}|(?:\*[ \t]*){3,}|_{3,}|={3,})[ \t]*")
_ITEM = re.compile(r"([ \t]*)(?:[-*+•]|[0-9]+[.)、])[ \t]+")
_TITLE = re.compile(
    r"[ \t]*(?:Table|Tab\.|表)\s*+[0-9A-Z一二三四五六七八九十]*+\s*+[.:：]|.*[:：]\s*+(?:\*\*\s*+)?$|\s*\*\*.*\*\*\s*$",
    re.I,
)
_TABULAR_BEGIN = re.compile(r"\\begin\{(tabular[*xy]?|tabulary|longtable|array|tblr|tabu|supertabular|xltabular)\}")
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
class TextPlace:
    """A cell, or a paragraph, a list item or a heading."""

    start: int
    end: int
    cell: bool = False
    title: bool = False  # a cell that names its row or column
    row: tuple[str, ...] = ()
    column: tuple[str, ...] = ()
    above: tuple[str, ...] = ()  # what it stands under, the nearest first


@dataclass(slots=True)
class _PlaceReader:
    """Goes through lines and keeps what the next one stands under."""

    kind: str
    places: list[TextPlace] = field(default_factory=list)
    headings: list[tuple[int, str]] = field(default_factory=list)
    items: list[tuple[int, str]] = field(default_factory=list)  # indent and text of open list items
    open: list[str] = field(default_factory=list)  # lines of the paragraph that is being read
    start: int = 0  # its place
    end: int = 0
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
        self.last = "\n".join(self.open)
        if self.item:
            while self.items and self.items[-1][0] >= self.indent:
                self.items.pop()
        self.places.append(TextPlace(self.start, self.end, above=self.above()))
        if self.item:
            self.items.append((self.indent, self.last))
        self.open, self.item = [], False

    def add(self, start: int, line: str) -> None:
        if not self.open:
            self.start = start
        self.open.append(line)
        self.end = start + len(line)

    def head(self, level: int, start: int, line: str, text: str) -> None:
        self.close()
        self.items.clear()
        while self.headings and self.headings[-1][0] >= level:
            self.headings.pop()
        self.places.append(TextPlace(start, start + len(line), above=self.above()))
        self.headings.append((level, text))
        self.last = ""

    def table(self, rows: Sequence[TextRow], title: str) -> None:
        for cell in place_table_cells(rows):
            above = (*filter(None, (cell.corner, title)), *self.above())
            self.places.append(TextPlace(cell.start, cell.end, True, cell.header, cell.row, cell.column, above))
        self.last = ""

    def begin_item(self, indent: int) -> None:
        self.close()
        self.item, self.indent = True, indent


def find_places(source: TextSource) -> list[TextPlace]:
    """In order, without gaps that could hold a number of the text."""
    found = _places_in_latex(source) if source.kind == LATEX else _places_in_lines(source)
    return sorted(found, key=lambda place: place.start)


class TextLayout:
    def __init__(self, source: TextSource) -> None:
        self.places = find_places(source)
        self._starts = [place.start for place in self.places]

    def at(self, position: int) -> TextPlace | None:
        number = bisect_right(self._starts, position) - 1
        place = self.places[number] if number >= 0 else None
        return place if place and position < place.end else None


def _split_with_offsets(text: str) -> Iterator[tuple[int, str]]:
    """Lines without their ends, with their offsets."""
    at = 0
    for line in text.split("\n"):
        yield at, line.removesuffix("\r")
        at += len(line) + 1


def _places_in_lines(source: TextSource) -> list[TextPlace]:
    lines = list(_split_with_offsets(source.shown))
    reader = _PlaceReader(source.kind)
    at, quoted = 0, False
    while at < len(lines):
        start, line = lines[at]
        if _is_quoted_line(source.text, start) != quoted:
            quoted = not quoted
            reader.close()
        taken = _read_table_at(reader, lines, at)
        if taken:
            at += taken
            continue
        _read_place_line(reader, start, line)
        at += 1
    reader.close()
    return reader.places


def _is_quoted_line(text: str, start: int) -> bool:
    """`>` is blanked in what is shown."""
    end = text.find("\n", start)
    return text[start : len(text) if end < 0 else end].lstrip().startswith(">")


def _read_place_line(reader: _PlaceReader, start: int, line: str) -> None:
    if not line.strip():
        reader.close()
    elif reader.kind == MARKDOWN and (found := _HEADING.match(line)):
        reader.head(len(found[1]), start, line, found[2])
    elif _UNDERLINE.fullmatch(line) and len(reader.open) == 1 and not reader.item:
        text = reader.open.pop()
        reader.head(2 - ("=" in line), reader.start, text, text)
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
        reader.add(start, line)


def _read_table_at(reader: _PlaceReader, lines: Sequence[tuple[int, str]], at: int) -> int:
    """Reads the table that begins here, if one does: how many lines it has."""
    texts = [line for _, line in lines[at : at + 3]]
    rows, end = None, at
    if is_pipe_table(texts):
        if at < reader.no_pipes:
            return 0
        while end < len(lines) and ("|" in lines[end][1] or lines[end][1].lstrip().startswith("+")):
            end += 1
        rows = parse_pipe_table(lines[at:end])
        if not rows:  # nor are its last lines one
            reader.no_pipes = end
    elif _may_be_aligned(reader, texts[0], at):
        rows, end = parse_aligned_table(lines, at)
        if not rows:
            reader.no_columns = end
    if not rows:
        return 0
    reader.close()
    title = reader.last if _TITLE.match(reader.last) and "\n" not in reader.last else ""
    reader.table(rows, title)
    return end - at


def _may_be_aligned(reader: _PlaceReader, line: str, at: int) -> bool:
    if reader.kind != PLAIN or reader.open or at < reader.no_columns:
        return False
    return re.search(r"\S(?:\t| {2,})\S", line) is not None


# -- LaTeX


def _places_in_latex(source: TextSource) -> list[TextPlace]:
    """Paragraphs between blank lines, items and sections; tables as blocks of their own."""
    text = source.shown
    tables = list(_latex_tables(text, source.text))
    captions = list(_latex_captions(text))
    reader = _PlaceReader(LATEX)
    done = 0
    for start, end, body in tables:
        if start < done:
            continue  # one within another
        _read_latex_prose(reader, text, done, start)
        reader.close()
        title = next((caption for begin, close, caption in captions if begin <= start < close), "")
        reader.table(parse_latex_table(body, text[body:end]), title)
        done = end
    _read_latex_prose(reader, text, done, len(text))
    reader.close()
    return reader.places


def _latex_tables(text: str, raw: str) -> Iterator[tuple[int, int, int]]:
    """Start, end and start of the body. The columns' specification is blanked in `text`, so it is found in `raw`."""
    open_ended: set[str] = set()
    for found in _TABULAR_BEGIN.finditer(raw):
        if text[found.start() : found.start() + 6] != "\\begin" or found[1] in open_ended:
            continue  # in a comment, or without an end
        end = text.find(f"\\end{{{found[1]}}}", found.end())
        if end > 0:
            yield found.start(), end, found.end()
        else:
            open_ended.add(found[1])


def _latex_captions(text: str) -> Iterator[tuple[int, int, str]]:
    for found in _FLOAT.finditer(text):
        caption = _CAPTION.search(found[0])
        if caption:
            yield found.start(), found.end(), caption[1]


def _read_latex_prose(reader: _PlaceReader, text: str, start: int, end: int) -> None:
    for offset, line in _split_with_offsets(text[start:end]):
        at = start + offset
        if not line.strip():
            reader.close()
            reader.items.clear()
        elif found := _SECTION.search(line):
            title = found["title"] or found["frame"] or ""
            reader.head(_LEVELS.get(found["level"] or "", 1), at, line, title)
        elif re.match(r"\s*\\item(?![A-Za-z])", line):
            reader.begin_item(len(line) - len(line.lstrip()))
            reader.add(at, line)
        elif re.match(r"\s*\\(?:begin|end)\{", line):
            reader.close()
            reader.add(at, line)
            reader.close()
            if re.match(r"\s*\\end\{(?:itemize|enumerate|description|frame)\}", line):
                reader.items.clear()
        else:
            if re.match(r"\s*\\caption", line):
                reader.close()
            reader.add(at, line)
