"""Python's exceptions in the end of a log, in order: plain, in rich's boxes, by loguru, in groups, of many workers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Literal

from muster.engine.judge.log_notices import TRACEBACK_HEAD, read_step_count, split_worker_labels

TracebackRole = Literal["", "logged", "ignored", "thread", "child", "group"]


@dataclass(frozen=True, slots=True)
class RaisedException:
    """One exception as its traceback tells it. Rows count in the list of lines it was read from."""

    type: str  # OutOfMemoryError
    full: str  # torch.OutOfMemoryError
    message: str
    at: str  # the innermost place in the user's own code: train.py:123; empty where there is none
    raised_at: str  # the innermost place of all
    code: str  # the source line there
    rows: tuple[int, ...]  # of the traceback, as far as the exception's own line
    last: int  # row where its message ends
    lane: str = ""  # label of the worker: [rank0]:
    role: TracebackRole = ""  # how it was printed; empty: as Python prints one that nobody caught
    link: Literal["", "cause", "context"] = ""  # how it follows from the one before it
    top: bool = False  # the traceback starts where the program starts, so nobody caught it further up

    @property
    def place(self) -> str:
        return self.at or self.raised_at

    @property
    def told(self) -> str:
        return f"{self.full}: {self.message}" if self.message else self.full


_FILES = ('File "', '> File "')  # loguru marks where it caught
_FRAME = re.compile(r'File "([^"]+)", line (\d+)(?:, in (.*))?')
_BOXED = re.compile(r"([^\s:❱│|][^:]*):(\d+) in (\S.*)")
_POINTED = re.compile(r"^(?:❱|\\u2771) *\d*[ │|]*")
_NAMED = re.compile(r"((?:[^\W\d]\w*\.)*[^\W\d]\w*(?:\.<locals>\.\w+)*)(\([\w.]+\))?(?:$|:$|: (.*))")
_SURE_NAME = re.compile(
    r"(?:Error|Exception|Exit|Interrupt|Warning|Timeout|Expired|Failure|Failed|Fault|Aborted|Empty|Group|Traceback)$"
    r"|^Stop(?:Async)?Iteration$"
)
_SECTION = re.compile(r"\+[-+]+ \d+ -+")
_CHAINS: tuple[tuple[str, Literal["cause", "context"]], ...] = (
    ("The above exception was the direct cause of", "cause"),
    ("During handling of the above exception", "context"),
)
_ROLES: tuple[tuple[re.Pattern[str], TracebackRole], ...] = (
    (re.compile(r"Exception ignored |--- Logging error ---|Error in (?:atexit|sys\.excepthook)"), "ignored"),
    (
        re.compile(r"Exception in (?:thread|callback)|Thread [\w-]+:$|(?:Task|Future) exception was never retrieved"),
        "thread",
    ),
    (re.compile(r"Process [\w.:-]+:$"), "child"),
    (re.compile(r"(?:.*\W)?(?:ERROR|CRITICAL|FATAL|EXCEPTION)\W"), "logged"),
)
_LIBRARY = re.compile(
    r"site-packages|dist-packages|[/\\]lib(?:64)?[/\\]python\d|python\d+\.zip|[/\\]s?bin[/\\][^/\\.]+$"
    r"|^<(?!string>|stdin>|ipython|module)"
)
_STARTS = ("<module>", "_run_module_as_main", "_run_module_code", "_bootstrap")
# Lines that are not indented and still belong to what an exception says.
_MORE = re.compile(
    r"CUDA kernel errors might|For debugging consider|Compile with `|Search for `|Device-side assert"
    r"|Exception raised from|frame #|tensor\(|\[?nan\b|Available devices|BufferAssignment"
    r"|The error occurred while tracing|This Tracer was|See https?://"
    r"|[=-]{20,}$|\S+ FAILED$|Failures:$|Root Cause \(|\[\d+\]:$"  # torchrun's report
)
_FIELD = re.compile(r"[\w.]+$")  # pydantic names each field on a line of its own


def read_tracebacks(lines: Sequence[str]) -> tuple[RaisedException, ...]:
    """All exceptions with a traceback in `lines`, in the order in which they were printed."""
    lanes: dict[str, _WorkerLane] = {}
    for row, label, body in split_worker_labels(lines):
        lane = lanes.get(label)
        if lane is None:
            lane = lanes[label] = _WorkerLane(label)
        lane.feed(row, body)
    return tuple(sorted((raised for lane in lanes.values() for raised in lane.found), key=lambda r: r.rows[-1]))


@dataclass(slots=True)
class _TracebackBlock:
    """A traceback that is being read."""

    role: TracebackRole
    link: Literal["", "cause", "context"]
    indent: int = 0
    cut: bool = False  # its head is missing
    boxed: bool = False
    top: bool = False
    frames: list[tuple[str, str, str]] = field(default_factory=list)  # (path, line, function)
    code: list[str] = field(default_factory=list)  # one per frame
    rows: list[int] = field(default_factory=list)
    waiting: int = 1  # exceptions to come: tracebacks of several processes may be mixed
    mixed: bool = False
    fresh: bool = False  # the line before was part of it
    foreign: int = 0


class _WorkerLane:
    """The lines of one worker, fed one by one."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.found: list[RaisedException] = []
        self.block: _TracebackBlock | None = None
        self.before = ""  # the last line that was not empty
        self.link: Literal["", "cause", "context"] = ""
        self.grouped = False
        self.wrapped = ""  # a path that goes on in the next line of a box
        self.open_message = False
        self.boxed = False  # the last traceback stood in a box

    def feed(self, row: int, body: str) -> None:
        if self.grouped or "Exception Group Traceback" in body:
            body = self._ungroup(row, body)
        text = body.strip()
        if not text:
            self.open_message = False
            return
        if TRACEBACK_HEAD in text:
            self._head(row, body)
        elif self.block is not None and self.block.boxed and text[0] in "│|╰+╭":
            self._box(row, text)
        elif text.startswith(_FILES) and (frame := _FRAME.fullmatch(text.lstrip("> "))):
            self._frame(row, frame[1], frame[2], frame[3] or "")
        elif self.block is not None:
            self._in_block(row, body, text)
        else:
            self._after(row, body, text)
        self.before = text

    def _head(self, row: int, body: str) -> None:
        prefix = body.partition(TRACEBACK_HEAD)[0]
        if self.block is not None and not self.block.cut and not self.block.foreign:
            self.block.waiting += 1
            self.block.mixed = self.block.waiting > 1
            self.block.rows.append(row)
            return
        role = "logged" if '"' in prefix or _ROLES[-1][0].match(prefix) else self._role()
        self.block = _TracebackBlock(
            role, self.link, boxed=any(c in prefix for c in "╭─") or "+--" in prefix, rows=[row]
        )
        self.block.indent = len(prefix) if not prefix.strip() else 0
        self.block.top = self._inside_another(prefix)
        self.link, self.open_message, self.wrapped = "", False, ""

    def _role(self) -> TracebackRole:
        if self.grouped:
            return "group"
        return next((role for pattern, role in _ROLES if pattern.match(self.before)), "")

    def _inside_another(self, prefix: str) -> bool:
        """A traceback that stands in the message of another one, or that hydra has shortened."""
        if self.before.startswith("Error executing job with overrides"):
            return True
        nested = "Original" in prefix or self.before.startswith("-- Process ") or self.before == '"""'
        return nested and bool(self.found) and self.found[-1].top

    def _frame(self, row: int, path: str, line: str, function: str) -> None:
        if self.block is None:
            nested = self.open_message and bool(self.found) and self.found[-1].top  # ray: frames in a message
            self.block = _TracebackBlock(self._role(), self.link, cut=True, top=nested)
            self.link = ""
        self.block.frames.append((path, line, function.strip()))
        self.block.code.append("")
        self.block.rows.append(row)
        self.block.fresh = True

    def _box(self, row: int, text: str) -> None:
        assert self.block is not None
        inside = text.strip("│|").strip()
        joined = (self.wrapped + inside, f"{self.wrapped} {inside}")  # broken within a word, or between two
        frame = next((match for each in joined if (match := _BOXED.fullmatch(each.strip()))), None)
        path_goes_on = inside.startswith(("/", "~")) or (self.wrapped and inside and " " not in inside)
        self.wrapped = joined[0] if path_goes_on and frame is None else ""
        if frame is not None:
            self._frame(row, frame[1], frame[2], frame[3])
        elif inside.startswith(("❱", "\\u2771")) and self.block.code:
            self.block.code[-1] = _POINTED.sub("", inside)
        self.block.fresh = True

    def _in_block(self, row: int, body: str, text: str) -> None:
        block = self.block
        assert block is not None
        deep = len(body) - len(body.lstrip()) > block.indent
        named = None if deep and not block.boxed else _NAMED.match(text)
        if named and _names_exception(named[1], block.fresh and not block.cut):
            self._close(row, named)
        elif deep:
            if block.code and not block.code[-1] and text.strip("^~ "):
                block.code[-1] = text
            block.rows.append(row)
            block.fresh = True
        elif block.cut and block.frames:
            self.block = None  # a stack that was printed without an exception
            self._after(row, body, text)
        else:
            block.fresh = False
            block.foreign += 1
            if block.foreign > 40:
                self.block = None

    def _close(self, row: int, named: re.Match[str]) -> None:
        block = self.block
        assert block is not None
        block.rows.append(row)
        at, code = _innermost_frame(block, users=True)
        raised_at, raising = _innermost_frame(block, users=False)
        full = named[1] + (named[2] or "")
        self.found.append(
            RaisedException(
                type=named[1].rpartition(".")[2],
                full=full,
                message=(named[3] or "").strip(),
                at=at,
                raised_at=raised_at,
                code=code or raising,
                rows=tuple(block.rows),
                last=row,
                lane=self.label,
                role=block.role,
                link=block.link,
                top=block.top or _starts_at_program_start(block, named[1]),
            )
        )
        self.open_message, self.boxed = True, block.boxed
        block.waiting -= 1
        block.fresh = False
        if block.waiting <= 0:
            self.block = None

    def _after(self, row: int, body: str, text: str) -> None:
        """A line outside any traceback: how the next one follows, or more of what the last one said."""
        if chain := next((link for words, link in _CHAINS if text.startswith(words)), None):
            self.link = chain
        elif self.open_message and self.found:
            last = self.found[-1]
            if row - last.rows[-1] <= 60 and self._goes_on(last, body, text):
                self.found[-1] = replace(last, message=(last.message + "\n" + text).strip()[:4000], last=row)
            else:
                self.open_message = False

    def _goes_on(self, last: RaisedException, body: str, text: str) -> bool:
        if read_step_count(body) is not None:
            return False
        if body[0] in " \t" or last.message.endswith(":") or _MORE.match(text):
            return True
        if last.type == "ValidationError":
            return _FIELD.match(text) is not None
        if not last.message:  # ImportError: and the text below
            return self.before.endswith(":")
        return self.boxed and len(self.before) >= 60  # rich breaks long messages at the width of its box

    def _ungroup(self, row: int, body: str) -> str:
        """A line of an exception group without its margin."""
        text = body.strip()
        if "Exception Group Traceback" in text:
            self.grouped = True
            return text.replace("Exception Group Traceback", "Traceback").lstrip("+| ")
        if text.startswith("| ") or text == "|":
            return body.lstrip()[2:]
        if _SECTION.fullmatch(text):
            self.block = _TracebackBlock(
                "group", "", top=bool(self.found) and self.found[-1].top, rows=[row], fresh=True, waiting=0
            )
            return ""
        if text and not text.startswith("+-"):
            self.grouped = False
            return body
        return ""


def _names_exception(name: str, fresh: bool) -> bool:
    """Whether a line that starts with `name:` names an exception; right after frames a good deal may."""
    last = name.rpartition(".")[2]
    if _SURE_NAME.search(last):
        return True
    if "." in name:
        return fresh or last[:1].isupper()
    return fresh and last[:1].isupper() and not last.isupper()


def _innermost_frame(block: _TracebackBlock, users: bool) -> tuple[str, str]:
    for (path, line, _), code in zip(reversed(block.frames), reversed(block.code), strict=True):
        if not users or not _LIBRARY.search(path):
            return f"{PurePath(path).name or path}:{line}", code
    return "", ""


def _starts_at_program_start(block: _TracebackBlock, name: str) -> bool:
    if not block.frames or block.foreign:
        return False
    path, _, function = block.frames[0]
    if block.mixed and any(block.frames.count(frame) < 2 for frame in set(block.frames[:40])):
        return False  # not the same traceback twice: nobody knows whose frames are whose
    if block.cut:  # a file that can't be parsed is reported without a head
        return len(block.frames) == 1 and not function and name in ("SyntaxError", "IndentationError", "TabError")
    return function in _STARTS or "runpy" in path
