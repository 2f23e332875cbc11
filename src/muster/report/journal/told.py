"""What the text of a journal itself tells of its runs: tables of evaluations, and commands in code blocks.

Older versions were written by hand, or their runs are gone: their words are all there is to compare with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from muster.report.documents.format import read as read_numeral
from muster.report.documents.tables import Row, pipe_rows
from muster.report.journal.facts import COUNTERS, STAGES, Command, Evaluation, Evaluations, Run
from muster.report.journal.flags import flags_of, read_command
from muster.report.journal.scan import Line
from muster.report.journal.sections import RECORD, heading, of_role, sections

_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_ITERATION = (*COUNTERS, "迭代", "轮次", "轮")
_STAGE = (*STAGES, "阶段")


def key_of(text: str) -> str:
    """A metric as the run calls it: `early_death₁₀₀` is `early_death_100`."""
    bare = re.sub(r"[*`\\]", "", text).strip()
    parted = re.sub(r"(?<=[A-Za-z0-9])(?=[₀-₉])(?<![₀-₉])", "_", bare)
    return parted.translate(_SUBSCRIPTS)


def told_run(lines: Sequence[Line], name: str, title: str = "") -> Run | None:
    """The first table by iteration and the first command of its record; of the part that `title` heads, if one does."""
    part = _part(lines, title)
    rows = next(_tables(part), None)
    argv = next(_commands(part), None)
    if rows is None and argv is None:
        return None
    named = title or next((found[1] for line in part[1:] if (found := heading(line))), name)
    command = Command(argv, f"{name}.md") if argv else None
    evaluations = Evaluations(f"{name}.md", rows) if rows else None
    return Run(name, named, "", command, evaluations)


def _part(lines: Sequence[Line], title: str) -> Sequence[Line]:
    parts = sections(lines)
    if title:
        own = next((each for each in parts if title in each.title), None)
        if own:
            return lines[own.first : own.end]
    record = next(of_role(parts, RECORD), None)
    return lines[record.first : record.end] if record else lines


def _tables(lines: Sequence[Line]) -> Iterator[list[Evaluation]]:
    for rows in tables(lines):
        found = evaluations_of(rows)
        if found:
            yield found


def tables(lines: Sequence[Line]) -> Iterator[list[Row]]:
    """Tables of pipes, generated ones too."""
    gathered: list[tuple[int, str]] = []
    for line in [*lines, None]:
        if line is not None and line.kind == "text" and line.text.lstrip().startswith("|"):
            gathered.append((line.start, line.text))
        elif gathered:
            if rows := pipe_rows(gathered):
                yield rows
            gathered = []


def titles_of(rows: Sequence[Row]) -> list[str]:
    return [key_of(cell.text) for cell in rows[0].cells] if rows and rows[0].header else []


def iteration_column(titles: Sequence[str]) -> int | None:
    return next((at for at, title in enumerate(titles) if title.lower() in _ITERATION), None)


def stage_column(titles: Sequence[str]) -> int | None:
    return next((at for at, title in enumerate(titles) if title.lower() in _STAGE), None)


def evaluations_of(rows: Sequence[Row]) -> list[Evaluation]:
    titles = titles_of(rows)
    at, stage = iteration_column(titles), stage_column(titles)
    if at is None:
        return []
    found = []
    for row in rows[1:]:
        texts = [cell.text.strip("* `") for cell in row.cells]
        if len(texts) != len(titles) or (place := value_of(texts[at])) is None:
            continue
        values = {
            titles[each]: value
            for each, text in enumerate(texts)
            if each not in (at, stage) and titles[each] and (value := value_of(text)) is not None
        }
        found.append(Evaluation(place, texts[stage] if stage is not None else "", values))
    return found if any(row.values for row in found) else []


def value_of(text: str) -> float | None:
    found = read_numeral(text)
    return found[0] if found else None


def _commands(lines: Sequence[Line]) -> Iterator[tuple[str, ...]]:
    gathered: list[str] = []
    inside = False
    for line in lines:
        if line.kind != "code":
            continue
        fence = line.text.strip(" \t>").startswith(("```", "~~~"))
        if fence and inside:
            argv = read_command("\n".join(gathered))
            if argv and len(argv) > 1 and (flags_of(argv) or re.search(r"\.(py|sh)$", argv[1])):
                yield argv
            gathered, inside = [], False
        elif fence:
            inside = True
        elif inside:
            gathered.append(line.text)
