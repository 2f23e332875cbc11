"""Reads a journal's text: code, comments and generated blocks apart from what a person wrote; sections by their role
in either language; the evaluations and commands that it holds.

Older versions were written by hand, or their runs are gone: their words are all there is to compare with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from muster.app.documents.find_numbers import read_numeral
from muster.app.documents.text_tables import TextRow, parse_pipe_table
from muster.app.journal.recorded_run import (
    ITERATION_KEYS,
    STAGE_KEYS,
    Evaluation,
    EvaluationRows,
    RecordedRun,
    RunCommand,
    parse_command_flags,
    split_command_text,
)
from muster.text.escape_markup import contains_chinese

_FENCE = re.compile(r"[ \t>]*(?:(?:[-*+]|[0-9]{1,3}[.)])[ \t]+)?(?P<fence>`{3,}|~{3,})(?P<info>[^\r\n]*)")
_MARKER = re.compile(r"[ \t]*<!--[ \t]*muster:(?P<what>\w+)(?P<rest>[^\r\n]*?)-->[ \t]*")
_STRANGE = re.compile(r"[ \t]*<!--[ \t]*muster:")
_CODE = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)")


class UnreadableJournal(Exception):
    """A text that can't be worked on; the message says why, and `line` where."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message, self.line = message, line


@dataclass(frozen=True, slots=True)
class JournalLine:
    number: int  # from 1
    start: int
    end: int  # without its line end
    text: str
    kind: str  # text | code | comment | begin | end
    inside: bool = False  # of a generated block


def newline_in_text(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def scan_journal_lines(text: str) -> list[JournalLine]:
    """Raises Unreadable where a fence, a comment or a block is never closed: nothing behind it could be told apart."""
    found: list[JournalLine] = []
    fence, comment, block = _OpenFence(), 0, 0
    for number, (start, shown) in enumerate(_lines_with_starts(text), 1):
        kind = "text"
        if fence.mark:
            kind, closed = "code", fence.closed_by(shown)
            fence = _OpenFence() if closed else fence
        elif comment:
            kind = "comment"
            comment = 0 if "-->" in shown else comment
        elif marker := _MARKER.fullmatch(shown):
            kind = _checked_marker(marker["what"], block, number)
            block = number if kind == "begin" else 0
        elif _STRANGE.match(shown):
            raise UnreadableJournal("a marker of Muster's is damaged", number)
        elif fence.opened_by(shown, number):
            kind = "code"
        elif _opens_html_comment(shown):
            kind, comment = "comment" if shown.lstrip().startswith("<!--") else "text", number
        elif shown.lstrip().startswith("<!--"):
            kind = "comment"
        found.append(JournalLine(number, start, start + len(shown), shown, kind, bool(block) and kind != "begin"))
    for open_, what in ((fence.line, "code block"), (comment, "comment"), (block, "generated block")):
        if open_:
            raise UnreadableJournal(f"a {what} begins here and is never closed", open_)
    return found


class _OpenFence:
    """A fence that waits for its end."""

    def __init__(self) -> None:
        self.mark, self.line = "", 0

    def opened_by(self, shown: str, number: int) -> bool:
        found = _FENCE.fullmatch(shown)
        if found is None or (found["fence"][0] == "`" and "`" in found["info"]):
            return False
        self.mark, self.line = found["fence"], number
        return True

    def closed_by(self, shown: str) -> bool:
        body = shown.strip(" \t>")
        return len(body) >= len(self.mark) and set(body) == {self.mark[0]}


def _checked_marker(what: str, block: int, number: int) -> str:
    if what not in ("begin", "end"):
        raise UnreadableJournal(f"there is no marker muster:{what}", number)
    if what == "begin" and block:
        raise UnreadableJournal(f"a generated block begins inside that of line {block}", number)
    if what == "end" and not block:
        raise UnreadableJournal("a generated block ends here that never began", number)
    return what


def strip_comments(text: str) -> str:
    """Without comments; the beginning of one that does not end here is made harmless."""
    bare = _CODE.sub(lambda found: found[0].replace("<!--", "\0"), text)
    bare = re.sub(r"<!--.*?-->", "", bare, flags=re.DOTALL)
    return bare.replace("<!--", "\\<!--").replace("\0", "<!--")


def _opens_html_comment(shown: str) -> bool:
    bare = _CODE.sub("", shown.replace("\\<", "  "))
    return bare.rfind("<!--") > bare.rfind("-->")


def _lines_with_starts(text: str) -> Sequence[tuple[int, str]]:
    found, at = [], 0
    for line in text.split("\n"):
        found.append((at, line.removesuffix("\r")))
        at += len(line) + 1
    if found[0][1].startswith("\ufeff"):
        found[0] = (1, found[0][1][1:])
    if len(found) > 1 and not found[-1][1]:
        found.pop()
    return found


START, OBSERVATIONS, PLAN, FINDINGS, RECORD, LEARNING = (
    "start",
    "observations",
    "plan",
    "findings",
    "record",
    "learning",
)
DEEPEST = 6  # level of a heading
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]++(.*)")
_CLOSING = re.compile(r"(?<=[ \t])#+$")
_ROLES = (  # the longer name first: 观察记录 begins with 观察
    (FINDINGS, re.compile(r"观察记录|结果记录|findings?\b|results?\b", re.I)),
    (RECORD, re.compile(r"实验记录|运行记录|records?\b|experiments?( records?)?$|runs?$", re.I)),
    (PLAN, re.compile(r"实验计划|计划|(experiment(al)? )?plans?\b", re.I)),
    (OBSERVATIONS, re.compile(r"观察|observations?\b", re.I)),
    (LEARNING, re.compile(r"learnings?\b|lessons?\b|next\b|下一步|经验|学习|总结与下一步", re.I)),
    (START, re.compile(r"启动|start\b", re.I)),
)


@dataclass(frozen=True, slots=True)
class JournalSection:
    role: str  # "" where it is none of those known
    title: str
    level: int
    first: int  # its heading, as an index of lines
    end: int  # behind its last line


def find_sections(lines: Sequence[JournalLine]) -> list[JournalSection]:
    """In order; those within others too."""
    heads = [(at, *told) for at, line in enumerate(lines) if (told := parse_heading(line))]
    found: list[JournalSection] = []
    next_ = [len(lines)] * DEEPEST  # the heading of each level that comes next
    for at, level, title in reversed(heads):
        found.append(JournalSection(role_of_heading(title), title, level, at, min(next_[:level])))
        next_[level - 1] = at
    return found[::-1]


def parse_heading(line: JournalLine) -> tuple[int, str] | None:
    if line.kind != "text" or line.inside:
        return None
    found = _HEADING.fullmatch(line.text)
    return (len(found[1]), _CLOSING.sub("", found[2].rstrip(" \t")).rstrip(" \t")) if found else None


def role_of_heading(title: str) -> str:
    bare = re.sub(r"[*_`]|^[0-9一二三四五六七八九十]+[.、)）]\s*", "", title).strip()
    return next((role for role, pattern in _ROLES if pattern.match(bare)), "")


def sections_of_role(found: Sequence[JournalSection], role: str) -> Iterator[JournalSection]:
    """Not those within another of the same role."""
    end = 0
    for section in found:
        if section.role == role and section.first >= end:
            yield section
            end = section.end


def language_of_journal(lines: Sequence[JournalLine]) -> str | None:
    """That of its headings, where they tell; else of its text. None: there is none."""
    known = [section.title for section in find_sections(lines) if section.role]
    if known:
        return "zh" if any(map(contains_chinese, known)) else "en"
    shown = [line.text for line in lines if line.kind == "text"]
    if not any(map(str.strip, shown)):
        return None
    return "zh" if any(map(contains_chinese, shown)) else "en"


_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_ITERATION = (*ITERATION_KEYS, "迭代", "轮次", "轮")
_STAGE = (*STAGE_KEYS, "阶段")


def metric_key_of(text: str) -> str:
    """A metric as the run calls it: `early_death₁₀₀` is `early_death_100`."""
    bare = re.sub(r"[*`\\]", "", text).strip()
    parted = re.sub(r"(?<=[A-Za-z0-9])(?=[₀-₉])(?<![₀-₉])", "_", bare)
    return parted.translate(_SUBSCRIPTS)


def run_from_journal_text(lines: Sequence[JournalLine], name: str, title: str = "") -> RecordedRun | None:
    """The first table by iteration and the first command of its record; of the part that `title` heads, if one does."""
    part = _part_about_run(lines, title)
    rows = next(_evaluations_in_tables(part), None)
    argv = next(_commands_in_code_blocks(part), None)
    if rows is None and argv is None:
        return None
    named = title or next((found[1] for line in part[1:] if (found := parse_heading(line))), name)
    command = RunCommand(argv, f"{name}.md") if argv else None
    evaluations = EvaluationRows(f"{name}.md", rows) if rows else None
    return RecordedRun(name, named, "", command, evaluations)


def _part_about_run(lines: Sequence[JournalLine], title: str) -> Sequence[JournalLine]:
    parts = find_sections(lines)
    if title:
        own = next((each for each in parts if title in each.title), None)
        if own:
            return lines[own.first : own.end]
    record = next(sections_of_role(parts, RECORD), None)
    return lines[record.first : record.end] if record else lines


def _evaluations_in_tables(lines: Sequence[JournalLine]) -> Iterator[list[Evaluation]]:
    for rows in pipe_tables_in(lines):
        found = evaluations_in_table(rows)
        if found:
            yield found


def pipe_tables_in(lines: Sequence[JournalLine]) -> Iterator[list[TextRow]]:
    """Tables of pipes, generated ones too."""
    gathered: list[tuple[int, str]] = []
    for line in [*lines, None]:
        if line is not None and line.kind == "text" and line.text.lstrip().startswith("|"):
            gathered.append((line.start, line.text))
        elif gathered:
            if rows := parse_pipe_table(gathered):
                yield rows
            gathered = []


def titles_of_table(rows: Sequence[TextRow]) -> list[str]:
    return [metric_key_of(cell.text) for cell in rows[0].cells] if rows and rows[0].header else []


def find_iteration_column(titles: Sequence[str]) -> int | None:
    return next((at for at, title in enumerate(titles) if title.lower() in _ITERATION), None)


def find_stage_column(titles: Sequence[str]) -> int | None:
    return next((at for at, title in enumerate(titles) if title.lower() in _STAGE), None)


def evaluations_in_table(rows: Sequence[TextRow]) -> list[Evaluation]:
    titles = titles_of_table(rows)
    at, stage = find_iteration_column(titles), find_stage_column(titles)
    if at is None:
        return []
    found = []
    for row in rows[1:]:
        texts = [cell.text.strip("* `") for cell in row.cells]
        if len(texts) != len(titles) or (place := value_in_cell(texts[at])) is None:
            continue
        values = {
            titles[each]: value
            for each, text in enumerate(texts)
            if each not in (at, stage) and titles[each] and (value := value_in_cell(text)) is not None
        }
        found.append(Evaluation(place, texts[stage] if stage is not None else "", values))
    return found if any(row.values for row in found) else []


def value_in_cell(text: str) -> float | None:
    found = read_numeral(text)
    return found[0] if found else None


def _commands_in_code_blocks(lines: Sequence[JournalLine]) -> Iterator[tuple[str, ...]]:
    gathered: list[str] = []
    inside = False
    for line in lines:
        if line.kind != "code":
            continue
        fence = line.text.strip(" \t>").startswith(("```", "~~~"))
        if fence and inside:
            argv = split_command_text("\n".join(gathered))
            if argv and len(argv) > 1 and (parse_command_flags(argv) or re.search(r"\.(py|sh)$", argv[1])):
                yield argv
            gathered, inside = [], False
        elif fence:
            inside = True
        elif inside:
            gathered.append(line.text)
