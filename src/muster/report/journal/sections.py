"""The parts of a journal by what they are for, in either language."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from muster.report.escape import has_chinese
from muster.report.journal.scan import Line

START, OBSERVATIONS, PLAN, FINDINGS, RECORD, LEARNING = (
    "start",
    "observations",
    "plan",
    "findings",
    "record",
    "learning",
)
DEEPEST = 6  # level of a heading
ORDER = (START, OBSERVATIONS, PLAN, FINDINGS, RECORD, LEARNING)
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
class Section:
    role: str  # "" where it is none of those known
    title: str
    level: int
    first: int  # its heading, as an index of lines
    end: int  # behind its last line


def sections(lines: Sequence[Line]) -> list[Section]:
    """In order; those within others too."""
    heads = [(at, *told) for at, line in enumerate(lines) if (told := heading(line))]
    found: list[Section] = []
    next_ = [len(lines)] * DEEPEST  # the heading of each level that comes next
    for at, level, title in reversed(heads):
        found.append(Section(role_of(title), title, level, at, min(next_[:level])))
        next_[level - 1] = at
    return found[::-1]


def heading(line: Line) -> tuple[int, str] | None:
    if line.kind != "text" or line.inside:
        return None
    found = _HEADING.fullmatch(line.text)
    return (len(found[1]), _CLOSING.sub("", found[2].rstrip(" \t")).rstrip(" \t")) if found else None


def role_of(title: str) -> str:
    bare = re.sub(r"[*_`]|^[0-9一二三四五六七八九十]+[.、)）]\s*", "", title).strip()
    return next((role for role, pattern in _ROLES if pattern.match(bare)), "")


def of_role(found: Sequence[Section], role: str) -> Iterator[Section]:
    """Not those within another of the same role."""
    end = 0
    for section in found:
        if section.role == role and section.first >= end:
            yield section
            end = section.end


def language_of(lines: Sequence[Line]) -> str | None:
    """That of its headings, where they tell; else of its text. None: there is none."""
    known = [section.title for section in sections(lines) if section.role]
    if known:
        return "zh" if any(map(has_chinese, known)) else "en"
    shown = [line.text for line in lines if line.kind == "text"]
    if not any(map(str.strip, shown)):
        return None
    return "zh" if any(map(has_chinese, shown)) else "en"
