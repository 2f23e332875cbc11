"""The lineage of a loop as an SVG: a column for each round, a row for each line of descent. Written without matplotlib:
it is made in every round, its words can be searched, and a name may have any letters. Lengths in pixels."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from muster.report.escape import one_line
from muster.report.figures.names import shorten
from muster.report.figures.palette import BLUE, QUIET, pale
from muster.report.loop_facts import LoopFacts, LoopVariant
from muster.report.loop_mermaid import lacking, score
from muster.report.loop_say import Say

BOX, WIDEST, HIGH = 236, 340, 62  # of a variant: as wide as the longest name asks for
INSIDE = 20  # of a box, that no letter may use
GAP, ROW = 58, 76  # between columns; from row to row
EDGE, HEAD = 20, 92  # around all; what lies above the first row
HEADLINE, NAME, TEXT, SMALL = 18, 14, 13, 12  # font sizes
BROAD, NARROW = "WMmw@%&—…", "fijlrtI .,:;'|!()[]/-"  # letters, by how much room they take
BETTER, WORSE = "#00664A", "#8A4B00"  # dark enough for words
FONT = "system-ui, 'Segoe UI', 'Helvetica Neue', 'DejaVu Sans', 'Noto Sans CJK SC', 'Microsoft YaHei', sans-serif"


@dataclass(frozen=True, slots=True)
class Spot:
    of: LoopVariant
    column: int
    row: int
    wide: int = BOX

    @property
    def x(self) -> int:
        return _left(self.column, self.wide)

    @property
    def y(self) -> int:
        return HEAD + self.row * ROW

    @property
    def middle(self) -> int:
        return self.y + HIGH // 2


def lineage_svg(facts: LoopFacts) -> bytes:
    say = Say(facts)
    spots = placed(facts)
    columns = max((spot.column for spot in spots.values()), default=0) + 1
    rows = max((spot.row for spot in spots.values()), default=0) + 1
    wide = _box_width(facts)
    title, mark = say("loop.picture", campaign=facts.campaign), say.unfinished(facts)
    title = say("marked", title=title, mark=mark) if mark else title
    note = say("loop.lineage_note")
    above = max(_width(title, HEADLINE, bold=True), _width(note, SMALL))
    width = max(_left(columns, wide) - GAP, EDGE + int(above) + 8) + EDGE
    height = HEAD + rows * ROW - (ROW - HIGH) + EDGE
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" font-family={quoteattr(FONT)}>',
        f"<title>{_clean(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        _words(EDGE, 30, title, HEADLINE, bold=True),
        _words(EDGE, 50, note, SMALL, QUIET),
        *(_column(number, facts, say, wide) for number in range(1, facts.round + 1)),
        *(_edge(spots[spot.of.variant.parent], spot) for spot in spots.values() if spot.of.variant.parent in spots),
        *(line for spot in spots.values() for line in _box(spot, facts, say)),
        "</svg>",
    ]
    return ("\n".join(lines) + "\n").encode()


def placed(facts: LoopFacts) -> dict[str, Spot]:
    """The first child goes on in its parent's row, each other one has a row of its own below: no line crosses a box."""
    children: dict[str | None, list[LoopVariant]] = {}
    known = {each.name for each in facts.variants}
    for each in facts.variants:
        parent = each.variant.parent if each.variant.parent in known else None
        children.setdefault(parent, []).append(each)
    found: dict[str, Spot] = {}
    row, wide = 0, _box_width(facts)
    left = [(root, -1) for root in reversed(children.get(None, []))]
    while left:
        of, at = left.pop()
        if at < 0:
            at, row = row, row + 1
        found[of.name] = Spot(of, max(0, of.variant.round - 1), at, wide)
        mine = children.get(of.name, [])
        left += [(child, -1) for child in reversed(mine[1:])]
        left += [(child, at) for child in mine[:1]]
    return found


def _column(number: int, facts: LoopFacts, say: Say, wide: int) -> str:
    count = say.count("loop_variant", len(facts.of_round(number)))
    text = say("loop.column", round=number, variants=count)
    return _words(_left(number - 1, wide), HEAD - 14, _cut(text, TEXT, wide + INSIDE), TEXT, bold=True)


def _edge(parent: Spot, child: Spot) -> str:
    start, end = parent.x + parent.wide, child.x
    bend = start + GAP // 2
    path = f"M{start} {parent.middle}H{bend}V{child.middle}H{end - 2}"
    tip = f"M{end - 8} {child.middle - 4}L{end - 1} {child.middle}L{end - 8} {child.middle + 4}"
    return f'<path d="{path}{tip}" fill="none" stroke="{QUIET}" stroke-width="1.4"/>'


def _box(spot: Spot, facts: LoopFacts, say: Say) -> Iterator[str]:
    of, best = spot.of, facts.best
    is_best = best is not None and best.name == of.name
    edge, wide, fill = (BLUE, 3.5, pale(pale(BLUE))) if is_best else (QUIET, 1.2, "white")
    dashes = ' stroke-dasharray="6 4"' if lacking(facts, of) else ""
    yield f"<g><title>{_clean(_told(of))}</title>"
    yield (
        f'<rect x="{spot.x}" y="{spot.y}" width="{spot.wide}" height="{HIGH}" rx="7" fill="{fill}" stroke="{edge}" '
        f'stroke-width="{wide}"{dashes}/>'
    )
    room = spot.wide - INSIDE
    yield _words(spot.x + 10, spot.y + 20, _fitted(of.name, NAME, room, bold=True), NAME, bold=True)
    yield _words(spot.x + 10, spot.y + 38, _fitted(score(facts, of, say), TEXT, room), TEXT, _tint(of))
    reason = say.in_picture(of.variant.reason) or (say("loop.base") if of.variant.parent is None else of.variant.by)
    yield _words(spot.x + 10, spot.y + 54, _cut(reason, SMALL, room), SMALL, QUIET)
    yield "</g>"


def _tint(of: LoopVariant) -> str:
    if not of.values:
        return QUIET
    return "black" if not of.gain else BETTER if of.gain > 0 else WORSE


def _told(of: LoopVariant) -> str:
    """In full, when the pointer rests on it."""
    variant = of.variant
    made = f" <- {variant.parent}: {variant.reason} ({', '.join(variant.edits)})" if variant.parent else ""
    return one_line(f"{variant.name}{made}; {of.config}")


def _words(x: int, y: int, text: str, size: int, tint: str = "black", *, bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{tint}"{weight}>{_clean(text)}</text>'


def _clean(text: str) -> str:
    """XML knows no control characters."""
    return escape("".join(each if each.isprintable() else " " for each in text))


def _left(column: int, wide: int) -> int:
    return EDGE + column * (wide + GAP)


def _box_width(facts: LoopFacts) -> int:
    longest = max((_width(one_line(each.name), NAME, bold=True) for each in facts.variants), default=0.0)
    return min(WIDEST, max(BOX, int(longest) + INSIDE + 1))


def _width(text: str, size: int, *, bold: bool = False) -> float:
    """About: the reader's font is not known here. As wide as the widest of the usual ones."""
    return sum(map(_share, text)) * size * (1.1 if bold else 1.0)


def _share(letter: str) -> float:
    """Of the font size."""
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.02
    if letter in BROAD:
        return 1.0
    if letter in NARROW:
        return 0.42
    return 0.77 if letter.isupper() or not letter.isascii() else 0.64


def _fitted(text: str, size: int, room: int, *, bold: bool = False) -> str:
    """Its beginning and its end: names differ there."""
    longest = len(text)
    while longest > 8 and _width(shorten(text, longest), size, bold=bold) > room:
        longest -= 1
    return shorten(text, longest)


def _cut(text: str, size: int, room: int) -> str:
    """Between two words, where there are any."""
    if _width(text, size) <= room:
        return text
    while text and _width(text + "…", size) > room:
        text = text[:-1]
    head, _, _ = text.rpartition(" ")
    return (head if 2 * len(head) > len(text) else text).rstrip(" ,;:，；：") + "…"
