"""The end of a log as lines that can be read: no colours, a line per redraw of a bar, each worker's lines apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from muster.domain.terminal_text import blanked, without_sequences

HEAD = "Traceback (most recent call last)"

_MOST_TEXT = 128 * 1024
_MOST_LINES = 4000
_MOST_WIDTH = 4000
_NEAR = 300  # lines looked at for steps

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_STAMP = re.compile(
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?(?: std(?:err|out) [FP])?:? ?"
)
_LABEL = re.compile(
    r"\[(?:rank|default|node|worker|gpu)?[ -]?\d{1,6}\]: ?"  # torch, torchrun --tee, pdsh
    r"|\[\d{1,4},\d{1,6}\]<std(?:err|out)>: ?"  # mpirun --tag-output
    r"|\([^()]{0,80}pid=\d+[^()]{0,80}\) ?"  # ray
    r"|\d{1,4}: "  # srun --label
)
_COUNTER = re.compile(r"\b(?:step|epoch|iter|iteration|update|batch)s?\b[\s:=#\[(/]{0,4}(\d+)", re.IGNORECASE)
_BAR = re.compile(r"\d%\|[^|]{0,400}\| *(\d+)/(\d+)")
_LOSS = re.compile(r"['\"]?\bloss\b['\"]?\s{0,3}[:=]\s{0,3}-?\d", re.IGNORECASE)


def clean_lines(text: str) -> list[str]:
    """The lines of `text`, without escapes and control characters; a redraw of a progress bar is a line of its own."""
    text = without_sequences(text[-_MOST_TEXT:])
    text = _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    lines = []
    for line in text.split("\n")[-_MOST_LINES:]:
        if HEAD in line and "\\n" in line:  # a traceback inside a line of JSON
            lines += [part[:_MOST_WIDTH] for part in line.replace('\\"', '"').split("\\n")]
        else:
            lines.append(line[:_MOST_WIDTH])
    return lines


def shown(line: str, width: int = 300) -> str:
    """A line fit to be shown: printable characters alone, not too long."""
    line = blanked(line[: width * 4]).rstrip()
    return line if len(line) <= width else line[: width - 3] + "..."


def by_worker(lines: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """(row, label of the worker, the rest) of each line. The label is empty where the line has none."""
    own = _own_labels(lines)
    for row, line in enumerate(lines):
        label, body = unlabel(line)
        if own and not label:
            label = next((prefix for prefix in own if body.startswith(prefix)), "")
            body = body[len(label) :]
        yield row, label.strip(), body


def unlabel(line: str) -> tuple[str, str]:
    """A line without its time stamp and the label of its worker, and that label."""
    if not line or line[0] not in "[(0123456789":
        return "", line
    if stamp := _STAMP.match(line):
        line = line[stamp.end() :]
    if label := _LABEL.match(line):
        return label[0], line[label.end() :]
    return "", line


def is_worker(label: str) -> bool:
    """One of several, by the form of its label."""
    return _LABEL.match(label + " ") is not None


def _own_labels(lines: Sequence[str]) -> list[str]:
    """Labels that nobody told us about: what stands before `Traceback` and before the line after it, too."""
    found = []
    for row, line in enumerate(lines[:-1]):
        if HEAD not in line:
            continue
        prefix = unlabel(line)[1].partition(HEAD)[0]
        if prefix.strip(" \t│|╭─+-") and unlabel(lines[row + 1])[1].startswith(prefix):
            found.append(prefix)
    return found[:16]


def count_in(line: str) -> tuple[str, int] | None:
    """(what is counted, how far) where a line tells of steps done: a bar, `step 120`, `epoch=3`."""
    if bar := _BAR.search(line):
        return f"/{bar[2]}", int(bar[1][:18])
    if (counter := _COUNTER.search(line)) and not line.startswith((" ", "\t")):
        return counter[0][: -len(counter[1])].strip(" :=#[(/").lower(), int(counter[1][:18])
    return None


def tells_progress(lines: Sequence[str], before: Sequence[str]) -> bool:
    """Steps were done in `lines` that `before` did not show yet.

    A bar that is drawn once more is none, whatever it shows: it skips draws, and catches up when it is closed.
    """
    reached: dict[str, int] = {}
    for line in before[-_NEAR:]:
        if (told := count_in(line)) and not told[0].startswith("/"):
            reached[told[0]] = max(told[1], reached.get(told[0], -1))
    return any(_advances(line, reached) for line in lines[:_NEAR])


def _advances(line: str, reached: dict[str, int]) -> bool:
    told = count_in(line)
    if told is None:
        return _LOSS.search(line) is not None
    what, far = told
    known = reached.get(what)
    reached[what] = max(far, -1 if known is None else known)
    if known is not None:
        return far > known
    return not what.startswith("/") and _LOSS.search(line) is not None
