"""Generated blocks in a journal: found, checked for edits of a person, and refreshed or inserted without touching
anything else.

    <!-- muster:begin evaluation run=runs/v41 sha=0123456789abcdef -->
    ...
    <!-- muster:end -->

New blocks go below the heading of their run.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import quote, unquote

from muster.app.journal.journal_text import (
    LEARNING,
    RECORD,
    JournalLine,
    JournalSection,
    UnreadableJournal,
    find_sections,
    newline_in_text,
    scan_journal_lines,
    sections_of_role,
)
from muster.text.catalogue import Catalogue
from muster.text.escape_markup import escape_markdown

END_MARKER = "<!-- muster:end -->"
_BEGIN_MARKER = re.compile(
    r"[ \t]*<!--[ \t]*muster:begin[ \t]+(?P<kind>[a-z_]+)(?P<rest>(?:[ \t]+[a-z]+=\S*)*)[ \t]*-->[ \t]*"
)
_SAFE = "/._~+:,@="
_BYTES = "surrogateescape"  # the name of a folder may be no UTF-8


@dataclass(frozen=True, slots=True)
class GeneratedBlock:
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
        return digest_of_block(self.body) != self.sha if self.sha else bool(self.body.strip())


@dataclass(frozen=True, slots=True)
class BlockEdit:
    start: int
    end: int
    text: str


def digest_of_block(body: str) -> str:
    """Line ends and spaces at their ends do not count: editors and git change them unasked."""
    plain = "\n".join(line.rstrip() for line in body.replace("\r\n", "\n").split("\n")).strip("\n")
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def find_generated_blocks(text: str, lines: Sequence[JournalLine]) -> list[GeneratedBlock]:
    """In order. Raises Unreadable where a marker says nothing, or a run has two blocks of a kind."""
    found: list[GeneratedBlock] = []
    seen: dict[tuple[str, str], int] = {}
    begin: JournalLine | None = None
    for line in lines:
        if line.kind == "begin":
            begin = line
        elif line.kind == "end" and begin is not None:
            block = _parse_generated_block(text, begin, line)
            if (block.kind, block.run) in seen:
                first = seen[block.kind, block.run]
                raise UnreadableJournal(
                    f"{block.kind} of {block.run} stands here again, after line {first}", begin.number
                )
            seen[block.kind, block.run] = begin.number
            found.append(block)
    return found


def _parse_generated_block(text: str, begin: JournalLine, end: JournalLine) -> GeneratedBlock:
    marker = _BEGIN_MARKER.fullmatch(begin.text)
    if marker is None:
        raise UnreadableJournal("a marker of Muster's is damaged: muster:begin KIND run=NAME sha=HASH", begin.number)
    told = dict(part.split("=", 1) for part in marker["rest"].split())
    body = text[text.index("\n", begin.end) + 1 : end.start]
    run = unquote(told.get("run", ""), errors=_BYTES)
    return GeneratedBlock(marker["kind"], run, told.get("sha", ""), begin.number, begin.start, end.end, body)


def render_generated_block(kind: str, run: str, body: str) -> str:
    """With plain newlines. An empty line on either side of the body: some readers of Markdown need it."""
    padded = f"\n{body.strip(chr(10))}\n"
    named = quote(run, safe=_SAFE, errors=_BYTES)
    return f"<!-- muster:begin {kind} run={named} sha={digest_of_block(padded)} -->\n{padded}\n{END_MARKER}"


def apply_block_edits(text: str, edits: Sequence[BlockEdit]) -> str:
    """All at once. They do not touch each other; several at one place go in as they come."""
    parts, at = [], 0
    for edit in sorted(edits, key=lambda each: (each.start, each.end)):
        if edit.start < at:
            raise AssertionError("two edits overlap")
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


BLOCK_KINDS = (
    "command",
    "differences",
    "training",
    "evaluation",
    "comparison",
    "gate",
    "stages",
    "warnings",
    "figures",
    "artifacts",
)


@dataclass(frozen=True, slots=True)
class RunBlocks:
    """The blocks of one run."""

    run: str
    title: str
    bodies: Mapping[str, str]  # by kind; those that have nothing to say are not in it


@dataclass(slots=True)
class FilledText:
    text: str
    written: list[tuple[str, str]] = field(default_factory=list)  # kind and run: new
    refreshed: list[tuple[str, str]] = field(default_factory=list)
    same: list[tuple[str, str]] = field(default_factory=list)
    edited: list[GeneratedBlock] = field(default_factory=list)  # by hand, so they were left alone
    forced: list[GeneratedBlock] = field(default_factory=list)  # by hand, and overwritten all the same
    silent: list[GeneratedBlock] = field(
        default_factory=list
    )  # there is nothing to fill them with any more: left alone
    headed: bool = False  # a section for the record had to be made


def fill_run_blocks(text: str, fillings: Sequence[RunBlocks], w: Catalogue, *, force: bool = False) -> FilledText:
    """The text with the blocks in it. Outside of blocks nothing is removed, and only whole blocks are put in."""
    lines = scan_journal_lines(text)
    blocks = find_generated_blocks(text, lines)
    told = FilledText(text)
    edits: list[BlockEdit] = []
    for each in map(_clean_run_blocks, fillings):
        edits += _edits_for_run(text, lines, blocks, each, w, told, force=force)
    newline = newline_in_text(text)
    told.text = apply_block_edits(
        text, [BlockEdit(each.start, each.end, each.text.replace("\n", newline)) for each in edits]
    )
    return told


def _clean_run_blocks(filling: RunBlocks) -> RunBlocks:
    """What a text can't hold, or what would be read back as another line end, is out before it is hashed."""
    bodies = {kind: _with_plain_newlines(body) for kind, body in filling.bodies.items()}
    return replace(filling, title=_with_plain_newlines(filling.title), bodies=bodies)


def _with_plain_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", " ").encode("utf-8", "replace").decode("utf-8")


def _edits_for_run(
    text: str,
    lines: Sequence[JournalLine],
    blocks: Sequence[GeneratedBlock],
    filling: RunBlocks,
    w: Catalogue,
    told: FilledText,
    *,
    force: bool,
) -> Iterator[BlockEdit]:
    there = {block.kind: block for block in blocks if block.run == filling.run}
    told.silent += [block for kind, block in there.items() if kind in BLOCK_KINDS and kind not in filling.bodies]
    for kind, block in there.items():
        if kind in filling.bodies:
            yield from _refresh_block(block, filling.bodies[kind], told, force=force)
    missing = [kind for kind in BLOCK_KINDS if kind in filling.bodies and kind not in there]
    told.written += [(kind, filling.run) for kind in missing]
    if not missing:
        return
    if there:
        for kind in missing:
            yield _insert_beside_blocks(kind, filling, there)
        return
    rendered = "\n\n".join(render_generated_block(kind, filling.run, filling.bodies[kind]) for kind in missing)
    yield _insert_below_heading(text, lines, filling.title, rendered, w, told)


def _refresh_block(block: GeneratedBlock, body: str, told: FilledText, *, force: bool) -> Iterator[BlockEdit]:
    name = (block.kind, block.run)
    if block.edited:
        if not force:
            told.edited.append(block)
            return
        told.forced.append(block)
    elif digest_of_block(f"\n{body}\n") == block.sha:
        told.same.append(name)
        return
    else:
        told.refreshed.append(name)
    yield BlockEdit(block.start, block.end, render_generated_block(block.kind, block.run, body))


def _insert_beside_blocks(kind: str, filling: RunBlocks, there: Mapping[str, GeneratedBlock]) -> BlockEdit:
    """Behind the one that comes before it, else before the one that comes behind."""
    rendered, at = render_generated_block(kind, filling.run, filling.bodies[kind]), BLOCK_KINDS.index(kind)
    before = next((there[each] for each in reversed(BLOCK_KINDS[:at]) if each in there), None)
    if before:
        return BlockEdit(before.end, before.end, f"\n\n{rendered}")
    first = min(there.values(), key=lambda block: block.start)
    return BlockEdit(first.start, first.start, f"{rendered}\n\n")


def _insert_below_heading(
    text: str, lines: Sequence[JournalLine], title: str, rendered: str, w: Catalogue, told: FilledText
) -> BlockEdit:
    parts = find_sections(lines)
    record = next(sections_of_role(parts, RECORD), None)
    if record is None:
        learning = next(sections_of_role(parts, LEARNING), None)
        end = learning.first if learning else len(lines)
        head = "" if told.headed else f"## {w('section.record')}\n\n"  # one for all runs
        told.headed = True
        return _insert_behind_last_line(text, lines, 0, end, f"{head}### {escape_markdown(title)}\n\n{rendered}")
    own = _section_headed_by(parts, record, title)
    if own:
        return _insert_behind_last_line(text, lines, own.first, own.end, rendered)
    marks = "#" * min(6, record.level + 1)
    return _insert_behind_last_line(
        text, lines, record.first, record.end, f"{marks} {escape_markdown(title)}\n\n{rendered}"
    )


def _section_headed_by(parts: Sequence[JournalSection], record: JournalSection, title: str) -> JournalSection | None:
    """A heading in the record that a person, or an earlier fill, made for the run."""
    within = [each for each in parts if record.first < each.first < record.end]
    return next((each for each in within if _heading_names_run(each.title, title)), None)


def _heading_names_run(heading: str, title: str) -> bool:
    bare, name = (each.replace("`", "").replace("\\", "").strip() for each in (heading, title))
    rest = bare.removeprefix(name)
    return bare == name or (bool(name) and rest != bare and not (rest[0].isalnum() or rest[0] in "_-./"))


def _insert_behind_last_line(text: str, lines: Sequence[JournalLine], first: int, end: int, new: str) -> BlockEdit:
    """Behind the last line with anything in it, an empty line between."""
    filled = [line for line in lines[first:end] if line.text.strip()]
    if filled:
        at = filled[-1].end
        return BlockEdit(at, at, f"\n\n{new}" + ("" if text[at:] else "\n"))
    at = lines[first].start if first < len(lines) else 0
    return BlockEdit(at, at, f"{new}\n" + ("\n" if text[at:] else ""))
