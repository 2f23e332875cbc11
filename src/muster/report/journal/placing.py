"""Where generated blocks go: those that are there are refreshed in place, the others go below their run's heading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from muster.report.escape import markdown
from muster.report.journal.blocks import Block, Edit, apply, digest, find, render
from muster.report.journal.scan import Line, newline_of, scan
from muster.report.journal.sections import LEARNING, RECORD, Section, of_role, sections
from muster.report.journal.wording import Wording

KINDS = (
    "command", "differences", "training", "evaluation", "comparison", "gate", "stages", "warnings", "figures",
    "artifacts",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Filling:
    """The blocks of one run."""

    run: str
    title: str
    bodies: Mapping[str, str]  # by kind; those that have nothing to say are not in it


@dataclass(slots=True)
class Filled:
    text: str
    written: list[tuple[str, str]] = field(default_factory=list)  # kind and run: new
    refreshed: list[tuple[str, str]] = field(default_factory=list)
    same: list[tuple[str, str]] = field(default_factory=list)
    edited: list[Block] = field(default_factory=list)  # by hand, so they were left alone
    forced: list[Block] = field(default_factory=list)  # by hand, and overwritten all the same
    silent: list[Block] = field(default_factory=list)  # there is nothing to fill them with any more: left alone
    headed: bool = False  # a section for the record had to be made


def fill(text: str, fillings: Sequence[Filling], w: Wording, *, force: bool = False) -> Filled:
    """The text with the blocks in it. Outside of blocks nothing is removed, and only whole blocks are put in."""
    lines = scan(text)
    blocks = find(text, lines)
    told = Filled(text)
    edits: list[Edit] = []
    for each in map(_clean, fillings):
        edits += _edits(text, lines, blocks, each, w, told, force=force)
    newline = newline_of(text)
    told.text = apply(text, [Edit(each.start, each.end, each.text.replace("\n", newline)) for each in edits])
    return told


def _clean(filling: Filling) -> Filling:
    """What a text can't hold, or what would be read back as another line end, is out before it is hashed."""
    bodies = {kind: _plain(body) for kind, body in filling.bodies.items()}
    return replace(filling, title=_plain(filling.title), bodies=bodies)


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", " ").encode("utf-8", "replace").decode("utf-8")


def _edits(
    text: str,
    lines: Sequence[Line],
    blocks: Sequence[Block],
    filling: Filling,
    w: Wording,
    told: Filled,
    *,
    force: bool,
) -> Iterator[Edit]:
    there = {block.kind: block for block in blocks if block.run == filling.run}
    told.silent += [block for kind, block in there.items() if kind in KINDS and kind not in filling.bodies]
    for kind, block in there.items():
        if kind in filling.bodies:
            yield from _refreshed(block, filling.bodies[kind], told, force=force)
    missing = [kind for kind in KINDS if kind in filling.bodies and kind not in there]
    told.written += [(kind, filling.run) for kind in missing]
    if not missing:
        return
    if there:
        for kind in missing:
            yield _beside(kind, filling, there)
        return
    rendered = "\n\n".join(render(kind, filling.run, filling.bodies[kind]) for kind in missing)
    yield _below_heading(text, lines, filling.title, rendered, w, told)


def _refreshed(block: Block, body: str, told: Filled, *, force: bool) -> Iterator[Edit]:
    name = (block.kind, block.run)
    if block.edited:
        if not force:
            told.edited.append(block)
            return
        told.forced.append(block)
    elif digest(f"\n{body}\n") == block.sha:
        told.same.append(name)
        return
    else:
        told.refreshed.append(name)
    yield Edit(block.start, block.end, render(block.kind, block.run, body))


def _beside(kind: str, filling: Filling, there: Mapping[str, Block]) -> Edit:
    """Behind the one that comes before it, else before the one that comes behind."""
    rendered, at = render(kind, filling.run, filling.bodies[kind]), KINDS.index(kind)
    before = next((there[each] for each in reversed(KINDS[:at]) if each in there), None)
    if before:
        return Edit(before.end, before.end, f"\n\n{rendered}")
    first = min(there.values(), key=lambda block: block.start)
    return Edit(first.start, first.start, f"{rendered}\n\n")


def _below_heading(
    text: str, lines: Sequence[Line], title: str, rendered: str, w: Wording, told: Filled
) -> Edit:  # fmt: skip
    parts = sections(lines)
    record = next(of_role(parts, RECORD), None)
    if record is None:
        learning = next(of_role(parts, LEARNING), None)
        end = learning.first if learning else len(lines)
        head = "" if told.headed else f"## {w('section.record')}\n\n"  # one for all runs
        told.headed = True
        return _behind(text, lines, 0, end, f"{head}### {markdown(title)}\n\n{rendered}")
    own = _headed(parts, record, title)
    if own:
        return _behind(text, lines, own.first, own.end, rendered)
    marks = "#" * min(6, record.level + 1)
    return _behind(text, lines, record.first, record.end, f"{marks} {markdown(title)}\n\n{rendered}")


def _headed(parts: Sequence[Section], record: Section, title: str) -> Section | None:
    """A heading in the record that a person, or an earlier fill, made for the run."""
    within = [each for each in parts if record.first < each.first < record.end]
    return next((each for each in within if _names(each.title, title)), None)


def _names(heading: str, title: str) -> bool:
    bare, name = (each.replace("`", "").replace("\\", "").strip() for each in (heading, title))
    rest = bare.removeprefix(name)
    return bare == name or (bool(name) and rest != bare and not (rest[0].isalnum() or rest[0] in "_-./"))


def _behind(text: str, lines: Sequence[Line], first: int, end: int, new: str) -> Edit:
    """Behind the last line with anything in it, an empty line between."""
    filled = [line for line in lines[first:end] if line.text.strip()]
    if filled:
        at = filled[-1].end
        return Edit(at, at, f"\n\n{new}" + ("" if text[at:] else "\n"))
    at = lines[first].start if first < len(lines) else 0
    return Edit(at, at, f"{new}\n" + ("\n" if text[at:] else ""))
