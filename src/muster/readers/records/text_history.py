"""Histories in text: CSV with a header (as Lightning writes it, with empty fields, too), and printed lines: objects,
`key=value`, `key: value`, tables of two columns, or the named groups of a regex.
"""

from __future__ import annotations

import ast
import math
import re
from array import array
from collections import Counter
from collections.abc import Iterator
from typing import Any

from muster.readers.discovery.folder_walk import (
    LOOKS_LIKE_TABLE,
    PRINTED_LOG_NAMES,
    TABLE_NAMES,
    WANDB_DEBUG,
    LogSource,
)
from muster.readers.records.history_parts import ColumnBatch, HistoryChain, LineHistory
from muster.readers.records.metric_reader import MetricColumn, ReaderState
from muster.readers.records.record_kinds import LogFile, LogSearch, RecordKind
from muster.readers.records.row_steps import (
    decode_json_value,
    finite_number_of,
    numbers_of_texts,
    numeric_leaves,
    parse_number,
)
from muster.readers.records.step_counter import (
    BAR_COUNTER,
    BRACKET_COUNTER,
    CounterColumn,
    GatheredColumns,
    rank_of_counter,
)
from muster.readers.records.table_rows import TableHeader


class CsvHistory(LineHistory):
    """The header may come again, or change on the way."""

    fits = "a header, and rows of numbers below it"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._header: TableHeader | None = None
        self._commas: Counter[str] = Counter()  # numbers with a decimal comma, by column

    def restart(self, *, knowing: bool = False) -> None:
        super().restart(knowing=knowing)
        self._header = None
        self._commas.clear()

    def state(self) -> ReaderState:
        header = [list(self._header.names), self._header.delimiter] if self._header else None
        return {**super().state(), "header": header, "commas": self._commas}

    def restore(self, state: ReaderState) -> None:
        super().restore(state)
        self._header = TableHeader(tuple(state["header"][0]), state["header"][1]) if state["header"] else None
        self._commas = Counter(state["commas"])

    def take(self, text: bytes) -> ColumnBatch | None:
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").rstrip(b"\r")
        while self._header is None and text:
            line, _, text = text.partition(b"\n")
            header = TableHeader.of_line(line)
            if header is not None and header.sound:
                self._header = header
            elif header is not None:
                self.unfit += 1
        if not text or self._header is None:
            return None
        return self._at_once(text, self._header) or self._slowly(text, self._header)

    def _at_once(self, text: bytes, header: TableHeader) -> ColumnBatch | None:
        """None where there is more to it than numbers between delimiters."""
        if b'"' in text or b"_" in text or b"\0" in text:
            return None
        delimiter = header.delimiter.encode()
        rows = [line.split(delimiter) for line in text.split(b"\n")]
        if set(map(len, rows)) != {len(header.names)}:
            return None
        found: dict[str, Any] = {}
        for name, texts in zip(header.names, zip(*rows, strict=True), strict=True):
            values = numbers_of_texts(texts)
            if values is None:
                numbers = [parse_number(each) for each in texts]
                if any(number is None and each.strip() for number, each in zip(numbers, texts, strict=True)):
                    return None
                found[name] = numbers
            else:
                found[name] = values
        found.pop("", None)
        return self._columns(found, len(rows)), len(rows)

    def _columns(self, found: dict[str, Any], count: int) -> dict[str, MetricColumn]:
        counters = {key: _without_nan(values) for key, values in found.items() if rank_of_counter(key) is not None}
        steps = self.steps.steps(count, counters)
        steps = steps if isinstance(steps, array) else array("d", steps)
        columns: dict[str, MetricColumn] = {}
        for name, values in found.items():
            if isinstance(values, array):
                columns[name] = (steps, values)
            elif there := [at for at, value in enumerate(values) if value is not None]:
                columns[name] = (
                    array("d", map(steps.__getitem__, there)),
                    array("d", map(values.__getitem__, there)),
                )
        return columns

    def _slowly(self, text: bytes, header: TableHeader) -> ColumnBatch:
        gathered = GatheredColumns()
        for line in text.split(b"\n"):
            told = line.rpartition(b"\0")[2]
            if not told.strip():
                continue
            fields = header.fields(told)
            if header.is_followed_by(fields):
                header = self._header = TableHeader(tuple(name.strip() for name in fields), header.delimiter)
            elif len(fields) < len(header.names):  # a piece of a cut row, or of a text with a newline in it
                self.unfit += 1
            else:
                numbers = [
                    (name, header.number(each)) for name, each in zip(header.names, fields, strict=False) if name
                ]
                self._commas.update(
                    name for name, each in zip(header.names, fields, strict=False) if header.has_decimal_comma(each)
                )
                self.steps.row([(name, number) for name, number in numbers if number is not None], gathered)
        return gathered.columns, gathered.count

    def skipped(self) -> Iterator[str]:
        yield from super().skipped()
        if count := sum(self._commas.values()):
            what = "number with a decimal comma is" if count == 1 else "numbers with a decimal comma are"
            yield f"{count} {what} left out: {', '.join(list(self._commas)[:3])}"


def _without_nan(values: Any) -> CounterColumn:
    if isinstance(values, array) and not any(map(math.isnan, values)):
        return values
    return [None if value is None or math.isnan(value) else value for value in values]


_LONGEST = 8 << 10  # of a line: a regex may take quadratic time
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d+)"
_NUMBER = (
    rf"[-+]?(?:{_DIGITS}\.?\d*|\.\d+)(?:[eE][-+]?\d+)?[KMB]?(?![\w:]|[.,]\w|\sdays?\b)|[-+]?(?:nan|inf(?:inity)?)(?!\w)"
)
KEY_VALUE_PAIRS = re.compile(
    rf"(?<![\w./@:-])['\"]?([A-Za-z_][\w./@-]*)['\"]?(\s?[=:]\s{{0,8}})['\"]?({_NUMBER})", re.I
)
_WORD_VALUE_PAIRS = re.compile(
    r"(?<![\w./@:-])([A-Za-z_][\w./@-]*)(\s{1,8})([-+]?\d+\.\d+(?:e[-+]?\d+)?)(?![\w:.])", re.I
)
_CODE_FILES = re.compile(r"\.(?:py|cpp|cc|c|h|cu|rs|go|sh|yaml|json)\Z")  # train.py:123 is a place in the code
_WORDS_BEFORE = re.compile(r"(?<![\w'.-])((?:[A-Za-z_][\w']{0,40} ){1,4})\Z")
_LEVELS = re.compile(r"(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|TRACE) ")
_SPLIT = re.compile(r"(?:^|[\s\[(|])(train(?:ing)?|val(?:id|idation)?|eval(?:uation)?|test)(?:[\])]|:(?=\s)| \|)", re.I)
_NAMED_STEP = re.compile(
    r"(?<![\w.])(step|iteration|iter|epoch|update)s?\s{1,4}(\d{1,15})(?:\s?/\s?\d+)?(?![\w.])", re.I
)
_BARS = re.compile(r"\|\s*(\d+)/(\d+)\s\[|^\s*(\d+)/(\d+)\s{1,4}[\[\u2501]|\]?\[\s{0,9}(\d+)\s?/\s?(\d+)\]")
_BRACKETS = re.compile(r"^\s*\[(\d{1,15})\]\s|^\s*(\d{1,15}):\s+\w")
_MOST_TABLE_ROWS = 1000
_PYTHON_NAMES = re.compile(r"(?<=[\s:,\[({-])(nan|inf)(?=[\s,\]})])")
PrintedPair = tuple[str, float]


class PrintedHistory(LineHistory):
    breaks = (b"\n", b"\r")
    fits = "objects, `key=value`, `key: value`, `key 0.5` beside a step, tables of two columns"

    def __init__(self, path: str, pattern: re.Pattern[str] | None = None) -> None:
        super().__init__(path)
        self._pattern = pattern
        self._ambiguous = 0  # lines in which a key comes twice
        self._table: list[PrintedPair] = []  # rows of a table that has not ended
        self._group = ""  # of its rows: `rollout/`
        self._bar = (
            0.0,
            0.0,
            0.0,
        )  # of a progress bar: its length, where it was, what was counted before it began again

    def restart(self, *, knowing: bool = False) -> None:
        super().restart(knowing=knowing)
        self._ambiguous, self._table, self._group, self._bar = 0, [], "", (0.0, 0.0, 0.0)

    def state(self) -> ReaderState:
        own = {"ambiguous": self._ambiguous, "group": self._group}
        return {**super().state(), **own, "table": self._table, "bar": self._bar}

    def restore(self, state: ReaderState) -> None:
        super().restore(state)
        self._ambiguous, self._group = int(state["ambiguous"]), state["group"]
        self._table = [(key, value) for key, value in state["table"]]
        self._bar = tuple(state["bar"])

    def take(self, text: bytes) -> ColumnBatch:
        gathered = GatheredColumns()
        for line in text.replace(b"\r", b"\n").split(b"\n"):
            if not line.strip():
                continue
            told = line[-_LONGEST:].decode("utf-8", "replace")
            if self._pattern:
                if values := self._groups(told):
                    self.steps.row(values, gathered)
            elif not self._take_table(told, gathered):
                self._take_line(line, told, gathered)
        return gathered.columns, gathered.count

    def _take_line(self, line: bytes, told: str, gathered: GatheredColumns) -> None:
        row = _printed_object(line, told) if "{" in told else None
        at: list[PrintedPair] = []
        if row is None:
            at = [*_named_steps(told), *self._nameless_steps(told)]
            values, ambiguous = _pairs_of_line(told, stepped=bool(at))
            self._ambiguous += ambiguous
        else:
            values = list(numeric_leaves(row))
        if at and not values:  # a heading: "Learning iteration 3/1500"
            values = [each for each in at if each[0] not in (BAR_COUNTER, BRACKET_COUNTER)]
        elif len(values) == 1 and not at and self._counts_otherwise(values[0][0]):
            gathered.add(values[0][0], self.steps.last or 0.0, values[0][1])
            return
        if values:
            self.steps.row(values, gathered, at)

    def _counts_otherwise(self, key: str) -> bool:
        """A counter in a line of its own, as below a block that began with another one: it counts nothing above it."""
        return rank_of_counter(key) is not None and self.steps.key not in (None, key)

    def _nameless_steps(self, told: str) -> Iterator[PrintedPair]:
        if "/" in told and (bar := _BARS.search(told)):
            now, length = (float(each) for each in bar.groups() if each is not None)
            known, before, base = self._bar
            if known in (0.0, length):  # others are those of a validation
                base += length if now < before else 0.0
                self._bar = (length, now, base)
                yield BAR_COUNTER, base + now
        elif bracket := _BRACKETS.match(told):
            yield BRACKET_COUNTER, float(bracket[1] or bracket[2])

    def _take_table(self, told: str, gathered: GatheredColumns) -> bool:
        """Lines of `| key | value |` are one row, which ends where another line comes."""
        if not self._table and "|" not in told:
            return False
        line = told.strip()
        cells = [cell.strip() for cell in line.split("|", 4)]
        if len(cells) == 4 and cells[1] and not cells[0] and not cells[3]:
            key, text = cells[1:3]
            value = _printed_number(text)
            if value is not None and len(self._table) < _MOST_TABLE_ROWS:
                self._table.append((f"{self._group}{key}", value))
            elif not text:
                self._group = key if key.endswith("/") else ""
            return True
        if self._table:
            self.steps.row(self._table, gathered)
            self._table, self._group = [], ""
        return False

    def _groups(self, line: str) -> list[PrintedPair]:
        found = self._pattern.search(line) if self._pattern else None
        groups = found.groupdict() if found else {}
        return [(key, value) for key, text in groups.items() if text and (value := _printed_number(text)) is not None]

    def skipped(self) -> Iterator[str]:
        yield from super().skipped()
        if self._ambiguous:
            what = "line names" if self._ambiguous == 1 else "lines name"
            yield f"{self._ambiguous} {what} a key twice: those values are left out"


def _printed_object(line: bytes, told: str) -> dict[str, Any] | None:
    """A line, or the end of one, that is an object of JSON or a dictionary as Python prints it."""
    if line.lstrip().startswith(b"{") and isinstance(row := decode_json_value(line.strip()), dict):
        return row
    begin, end = told.find("{"), told.rfind("}")
    if begin < 0 or end < begin or len(line) > _LONGEST:
        return None
    text = told[begin : end + 1]
    row = decode_json_value(text.encode())
    if row is None and "\\" not in text:
        try:
            row = ast.literal_eval(_PYTHON_NAMES.sub(lambda name: "0j" if name[1] == "nan" else "1e999", text))
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError, Warning):
            return None
        row = _with_nan(row)
    return row if isinstance(row, dict) and all(type(key) is str for key in row) else None


def _with_nan(value: Any) -> Any:
    """A complex number stands for NaN, which is no literal of Python."""
    if isinstance(value, dict):
        return {key: _with_nan(inner) for key, inner in value.items()}
    return math.nan if isinstance(value, complex) else value


def key_value_pairs(line: str) -> list[PrintedPair]:
    """What a printed line says; a key that comes twice and can't be told apart is left out."""
    return _pairs_of_line(line, stepped=bool(_named_steps(line)))[0]


def _pairs_of_line(line: str, *, stepped: bool) -> tuple[list[PrintedPair], bool]:
    """The pairs, and whether some were left out. `stepped`: the line says its step in another way."""
    found = []
    if "=" in line or ":" in line:
        found = [match for match in KEY_VALUE_PAIRS.finditer(line) if not _is_code_file(match[1])]
    if stepped:
        known = {match.start(1) for match in found}
        found += [match for match in _WORD_VALUE_PAIRS.finditer(line) if match.start(1) not in known]
    told = [(match, value) for match in found if (value := _printed_number(match[3])) is not None]
    if not told:
        return [], False
    first = min((match.start(1) for match, _ in told if rank_of_counter(match[1]) is None), default=0)
    split = _SPLIT.search(line, 0, first)
    names = [_name_of_pair(line, match, split[1] if split else "") for match, _ in told]
    if len(set(names)) == len(names):
        return [(name, value) for name, (_, value) in zip(names, told, strict=True)], False
    twice = {name for name, count in Counter(names).items() if count > 1}
    names = [
        f"{_words_before(line, match)}{match[1]}" if name in twice else name
        for name, (match, _) in zip(names, told, strict=True)
    ]
    values: dict[str, set[str]] = {}
    for name, (match, _) in zip(names, told, strict=True):
        values.setdefault(name, set()).add(match[3])
    twice = {name for name, each in values.items() if len(each) > 1}
    pairs = dict.fromkeys((name, value) for name, (_, value) in zip(names, told, strict=True) if name not in twice)
    return list(pairs), bool(twice)


def _is_code_file(key: str) -> bool:
    return "." in key and _CODE_FILES.search(key) is not None


def _name_of_pair(line: str, match: re.Match[str], split: str) -> str:
    """`Value function loss: 0.5` is no `loss`; after `=` and blanks a name has one word."""
    key = match[1]
    if rank_of_counter(key) is not None:
        return key
    name = key if "=" in match[2] else f"{_words_before(line, match)}{key}"
    return f"{split} {name}" if split and split.lower() not in name.lower() else name


def _words_before(line: str, match: re.Match[str]) -> str:
    begin = match.start(1)
    nearest = line[line.rfind(" ", 0, max(0, begin - 1)) + 1 : begin].rpartition("\t")[2]
    if not nearest.endswith(" ") or not nearest[:-1].replace("_", "").replace("'", "").isalnum():
        return ""  # sooner told than by the pattern
    words = _WORDS_BEFORE.search(line, max(0, begin - 200), begin)
    return _LEVELS.sub("", words[1]) if words else ""


def _named_steps(line: str) -> list[PrintedPair]:
    found = _NAMED_STEP.search(line)
    return [(found[1], float(found[2]))] if found else []


def _printed_number(text: str) -> float | None:
    """Also `2K` and `1,000`, as LeRobot and others print them."""
    found = parse_number(text.encode())
    return finite_number_of(text.rstrip(",")) if found is None else found


def _accepts_table(file: LogFile) -> str:
    if TABLE_NAMES.match(file.name):
        return "a table with a known name"
    if file.ending in (".csv", ".tsv"):
        return "a table" if file.named else LOOKS_LIKE_TABLE if file.counts_in_table() else ""
    maybe = file.named or PRINTED_LOG_NAMES.match(file.name)  # Keras' CSVLogger is shown with `training.log`
    return LOOKS_LIKE_TABLE if maybe and file.counts_in_table() else ""


def _find_printed(search: LogSearch) -> Iterator[LogSource]:
    for path in search.around.files:
        name = LogFile(path).name
        if PRINTED_LOG_NAMES.match(name) and not WANDB_DEBUG.match(name) and not search.is_of_wandb(path):
            yield PRINTED.source(path, search.run_of(path), "nothing else holds its numbers")


CSV = RecordKind("csv", lambda path: HistoryChain.of_file(path, "csv", CsvHistory), _accepts_table)
PRINTED = RecordKind(
    "stdout", lambda path: HistoryChain.of_file(path, "stdout", PrintedHistory), find=_find_printed, last_resort=True
)
