"""Generated blocks: found, checked for edits of a person, and put into a text without touching anything else.

<!-- muster:begin evaluation run=runs/v41 sha=0123456789abcdef -->
...
<!-- muster:end -->
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

from muster.report.journal.scan import Line, Unreadable

END = "<!-- muster:end -->"
_BEGIN = re.compile(
    r"[ \t]*<!--[ \t]*muster:begin[ \t]+(?P<kind>[a-z_]+)(?P<rest>(?:[ \t]+[a-z]+=\S*)*)[ \t]*-->[ \t]*"
)
_SAFE = "/._~+:,@="
_BYTES = "surrogateescape"  # the name of a folder may be no UTF-8


@dataclass(frozen=True, slots=True)
class Block:
    kind: str
    run: str
    sha: str  # of what was generated; "": nothing was yet
    line: int
    start: int  # of the first marker
    end: int  # behind the last marker
    body: str  # between the lines of the markers

    @property
    def edited(self) -> bool:
        """Somebody changed it by hand. A place that a person made for a block, and nothing in it, is no edit."""
        return digest(self.body) != self.sha if self.sha else bool(self.body.strip())


@dataclass(frozen=True, slots=True)
class Edit:
    start: int
    end: int
    text: str


def digest(body: str) -> str:
    """Line ends and spaces at their ends do not count: editors and git change them unasked."""
    plain = "\n".join(line.rstrip() for line in body.replace("\r\n", "\n").split("\n")).strip("\n")
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def find(text: str, lines: Sequence[Line]) -> list[Block]:
    """In order. Raises Unreadable where a marker says nothing, or a run has two blocks of a kind."""
    found: list[Block] = []
    seen: dict[tuple[str, str], int] = {}
    begin: Line | None = None
    for line in lines:
        if line.kind == "begin":
            begin = line
        elif line.kind == "end" and begin is not None:
            block = _block(text, begin, line)
            if (block.kind, block.run) in seen:
                first = seen[block.kind, block.run]
                raise Unreadable(f"{block.kind} of {block.run} stands here again, after line {first}", begin.number)
            seen[block.kind, block.run] = begin.number
            found.append(block)
    return found


def _block(text: str, begin: Line, end: Line) -> Block:
    marker = _BEGIN.fullmatch(begin.text)
    if marker is None:
        raise Unreadable("a marker of Muster's is damaged: muster:begin KIND run=NAME sha=HASH", begin.number)
    told = dict(part.split("=", 1) for part in marker["rest"].split())
    body = text[text.index("\n", begin.end) + 1 : end.start]
    run = unquote(told.get("run", ""), errors=_BYTES)
    return Block(marker["kind"], run, told.get("sha", ""), begin.number, begin.start, end.end, body)


def render(kind: str, run: str, body: str) -> str:
    """With plain newlines. An empty line on either side of the body: some readers of Markdown need it."""
    padded = f"\n{body.strip(chr(10))}\n"
    named = quote(run, safe=_SAFE, errors=_BYTES)
    return f"<!-- muster:begin {kind} run={named} sha={digest(padded)} -->\n{padded}\n{END}"


def apply(text: str, edits: Sequence[Edit]) -> str:
    """All at once. They do not touch each other; several at one place go in as they come."""
    parts, at = [], 0
    for edit in sorted(edits, key=lambda each: (each.start, each.end)):
        if edit.start < at:
            raise AssertionError("two edits overlap")
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])
