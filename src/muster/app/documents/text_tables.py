"""Tables of a text: what the row and the column of each cell are called. Pipes, aligned columns, LaTeX's tabular."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_RULE = re.compile(r"[ \t]*[|+:=\-][|+:=\- \t]*\r?")
_DIVIDED = re.compile(r"(?<!\\)\|")
_ALIGNED = re.compile(r"\t+| {2,}")
_DIGIT = re.compile(r"[0-9]")
_MULTICOLUMN = re.compile(r"\\multicolumn\s*\{\s*([0-9]+)\s*\}\s*\{(?:[^{}]|\{[^{}]*\})*\}\s*\{(.*)\}\s*$", re.DOTALL)
_MULTIROW = re.compile(
    r"\\multirow\s*(?:\[[^\]]*\])?\s*\{[^{}]*\}\s*\{[^{}]*\}\s*(?:\[[^\]]*\])?\s*\{(.*)\}\s*$", re.DOTALL
)
_RULES = re.compile(r"\\(?:toprule|midrule|bottomrule|hline|specialrule|Xhline|thickhline)(?:\s*\{[^{}]*\})*")
_CMIDRULES = re.compile(r"\\(?:cmidrule|cline)(?:\s*\([^)]*\))?(?:\s*\{[^{}]*\})?")
_SPREAD = re.compile(r"\W*(?:s\.?d\.?|std(?:ev|dev|[. ]dev)?|standard deviation|标准差|σ)\W*", re.IGNORECASE)
_MEAN = re.compile(r"\b(?:mean|avg|average)\b|平均值?|均值", re.IGNORECASE)
_MARKUP = re.compile(r"[{}]|\\\\|\\tabularnewline|\\.|&", re.DOTALL)


# of a table that anybody reads: lines of titles, columns below one title, columns that name the row
MOST_TITLES, MOST_COLUMNS, MOST_NAMING = 20, 100, 20


@dataclass(frozen=True, slots=True)
class TextCell:
    start: int
    end: int
    text: str
    span: int = 1  # columns that it takes


@dataclass(frozen=True, slots=True)
class TextRow:
    cells: tuple[TextCell, ...]
    header: bool = False


@dataclass(frozen=True, slots=True)
class PlacedCell:
    """A cell with the names of its row and its column."""

    start: int
    end: int
    row: tuple[str, ...]
    column: tuple[str, ...]
    header: bool
    corner: str = ""  # the title of the first column, which may name the whole table


def place_table_cells(rows: Sequence[TextRow]) -> Iterator[PlacedCell]:
    """Every cell. Columns left of the first that holds numbers name the row; an empty name is the one above it."""
    titles = _titles_by_column(rows)
    naming = _count_naming_columns(rows, titles)
    above: dict[int, str] = {}
    section = ""
    for row in rows:
        if row.header:
            yield from (PlacedCell(cell.start, cell.end, (), (), True) for cell in row.cells)
            continue
        columns = _numbered_cells(row)
        if _is_section_row(row):
            section, above = row.cells[0].text, {}
        labels = [_label_of_row(number, cell, titles, above) for number, cell in columns if number < naming]
        names = tuple(filter(None, [*labels, section]))
        for number, cell in columns:
            title = tuple(titles.get(number, ()))
            yield PlacedCell(cell.start, cell.end, names, title, number < naming, " ".join(titles.get(0, ())))


def _titles_by_column(rows: Sequence[TextRow]) -> dict[int, list[str]]:
    titles: dict[int, list[str]] = {}
    for row in [row for row in rows if row.header][:MOST_TITLES]:
        for number, cell in _numbered_cells(row):
            if cell.text and cell.text not in titles.setdefault(number, []):
                titles[number].append(cell.text)
    for number in sorted(titles):
        left = titles.get(number - 1, [])
        if number > 1 and left and _SPREAD.fullmatch(" ".join(titles[number])):
            titles[number] = [*(_MEAN.sub("", title) for title in left), *titles[number]]  # of what stands left of it
    return titles


def _numbered_cells(row: TextRow) -> list[tuple[int, TextCell]]:
    """Cells with the number of their column; a header over several columns stands over each of them."""
    found, at = [], 0
    for cell in row.cells:
        found += [(at + more, cell) for more in range(min(cell.span, MOST_COLUMNS) if row.header else 1)]
        at += cell.span
    return found


def _count_naming_columns(rows: Sequence[TextRow], titles: dict[int, list[str]]) -> int:
    """How many columns name the row. The first does, if it has a title or holds words."""
    numeric = {at for row in rows if not row.header for at, cell in _numbered_cells(row) if _holds_number(cell.text)}
    first = next((at for at in sorted(numeric) if (at or not titles.get(0)) and not _is_seed_column(titles, at)), 1)
    return min(first, MOST_NAMING)


def _is_section_row(row: TextRow) -> bool:
    """A line within a table that names what follows."""
    first, *rest = row.cells
    if not first.text or any(cell.text for cell in rest) or _DIGIT.search(first.text):
        return False
    return first.span > 1 or (len(rest) > 1 and re.match(r"\*|_|\\(?:text(?:bf|it)|emph)", first.text) is not None)


def _label_of_row(number: int, cell: TextCell, titles: dict[int, list[str]], above: dict[int, str]) -> str:
    text = above[number] = cell.text or above.get(number, "")
    return f"seed {text}" if text and _is_seed_column(titles, number) else text


def _is_seed_column(titles: dict[int, list[str]], number: int) -> bool:
    return (
        re.fullmatch(r"\W*(?:random\s+)?(?:seed|(?:随机)?种子)\W*", " ".join(titles.get(number, ())), re.I) is not None
    )


def _holds_number(text: str) -> bool:
    """Whether a cell holds a value: digits that are not part of a word such as v2_full, nor a seed's."""
    text = re.sub(r"(?:seed|种子)\s*[=#:]?\s*[0-9]+", "", text, flags=re.I)
    return re.search(r"(?<![A-Za-z0-9_\-])[0-9]*\.?[0-9]+(?![A-Za-z_])", text) is not None


# -- pipes and aligned columns


def parse_pipe_table(lines: Sequence[tuple[int, str]]) -> list[TextRow] | None:
    """Rows of `| a | b |`; above the first rule stand the titles. None: no table."""
    rules = {at for at, (_, line) in enumerate(lines) if _RULE.fullmatch(line)}
    first = min((at for at in rules if at > 0 and "|" in lines[at - 1][1]), default=None)
    if first is None:
        return None
    return [
        TextRow(tuple(_pipe_cells(start, line)), at < first)
        for at, (start, line) in enumerate(lines)
        if at not in rules and "|" in line
    ]


def is_pipe_table(lines: Sequence[str]) -> bool:
    """Whether the first lines begin a table: titles and a rule, or (reStructuredText) a rule, titles, a rule."""
    if len(lines) > 1 and "|" in lines[0] and _RULE.fullmatch(lines[1]) and re.search(r"-|=", lines[1]):
        return "|" in lines[1] or "+" in lines[1]
    return len(lines) > 2 and lines[0].lstrip().startswith("+-") and "|" in lines[1]


def _pipe_cells(start: int, line: str) -> Iterator[TextCell]:
    body = line.rstrip()
    shift = len(body) - len(body.lstrip())
    at = shift + 1 if body[shift : shift + 1] == "|" else shift
    ends = [found.start() for found in _DIVIDED.finditer(body, at)]
    if not body.endswith("|") or body.endswith("\\|"):
        ends.append(len(body))
    for end in ends:
        yield _trim_cell(start + at, body[at:end])
        at = end + 1


def parse_aligned_table(lines: Sequence[tuple[int, str]], at: int) -> tuple[list[TextRow], int]:
    """Columns that two spaces or a tab keep apart. The first line names them; it holds no numbers.

    The rows from this line on, and where they end. No rows: no table; before the line that is named none begins.
    """
    rows: list[tuple[TextCell, ...]] = []
    while at < len(lines) and lines[at][1].strip():
        start, line = lines[at]
        if not re.fullmatch(r"[\s=\-+]*", line):
            row = tuple(_aligned_cells(start, line))
            if not rows and (len(row) < 2 or any(_holds_number(cell.text) for cell in row)):
                return [], at + 1
            if rows and len(row) != len(rows[0]):
                return [], at
            rows.append(row)
        at += 1
    return [TextRow(row, number == 0) for number, row in enumerate(rows)] if len(rows) > 1 else [], at


def _aligned_cells(start: int, line: str) -> Iterator[TextCell]:
    at = len(line) - len(line.lstrip(" "))
    body = line.rstrip()
    for gap in [*_ALIGNED.finditer(body, at), None]:
        end = gap.start() if gap else len(body)
        yield _trim_cell(start + at, body[at:end])
        at = gap.end() if gap else end


def _trim_cell(start: int, text: str) -> TextCell:
    lead = len(text) - len(text.lstrip())
    kept = text.strip()
    return TextCell(start + lead, start + lead + len(kept), kept)


# -- LaTeX


def parse_latex_table(start: int, body: str) -> list[TextRow]:
    """The body of a tabular. Titles are what stands above the first rule below the first row."""
    found: list[tuple[tuple[TextCell, ...], bool]] = []  # with whether a rule stands above
    for cells in _split_latex_cells(start, body):
        ruled = _RULES.search(cells[0].text) is not None
        kept = tuple(_clean_latex_cell(cell) for cell in cells)
        if len(kept) > 1 or kept[0].text:
            found.append((kept, ruled))
    below = next((at for at, (_, ruled) in enumerate(found) if ruled and at), 1)
    return [TextRow(cells, at < below) for at, (cells, _) in enumerate(found)]


def _split_latex_cells(start: int, body: str) -> Iterator[list[TextCell]]:
    row: list[TextCell] = []
    depth = at = 0
    for found in _MARKUP.finditer(body):
        mark = found[0]
        depth += (mark == "{") - (mark == "}")
        ends = mark in ("\\\\", "\\tabularnewline")
        if depth > 0 or not (ends or mark == "&"):
            continue
        row.append(TextCell(start + at, start + found.start(), body[at : found.start()]))
        at = found.end()
        if ends:
            yield row
            row = []
    row.append(TextCell(start + at, start + len(body), body[at:]))
    yield row


def _clean_latex_cell(cell: TextCell) -> TextCell:
    text = _CMIDRULES.sub(" ", _RULES.sub(" ", cell.text)).strip()
    span = 1
    if wide := _MULTICOLUMN.match(text):
        span, text = max(1, int(wide[1][:9])), wide[2].strip()
    if tall := _MULTIROW.match(text):
        text = tall[1].strip()
    return TextCell(cell.start, cell.end, text, span)
