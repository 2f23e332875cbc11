"""The lineage of a loop as SVG (a column for each round, a row for each line of descent) and as a Mermaid diagram,
for texts that are read where no file can be opened.

The SVG is written without matplotlib: it is made in every round, its words can be searched, and a name may have any
letters. Lengths in pixels.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from muster.app.facts.drawing.figure_context import shorten_drawn_name
from muster.app.facts.drawing.figure_style import BLUE, QUIET_COLOUR, pale_colour
from muster.app.loop.loop_facts import LoopFacts, LoopVariant
from muster.app.loop.loop_wording import LoopWords
from muster.text.escape_markup import as_one_safe_line

MOST_LABELLED = 40  # variants up to which the arrows have words
MOST_DRAWN_VARIANTS = 200  # variants that a renderer takes
LONGEST_ARROW_LABEL = 44  # characters beside an arrow
_MERMAID_SPECIAL = re.compile(r'[#"<>&`\\|\[\]{}]')


def lineage_as_mermaid(facts: LoopFacts, say: LoopWords) -> Iterator[str]:
    if len(facts.variants) > MOST_DRAWN_VARIANTS:
        yield say("loop.lineage_large", n=len(facts.variants))
        return
    ids = {each.name: f"v{at}" for at, each in enumerate(facts.variants)}
    yield "```mermaid"
    yield "flowchart LR"
    for each in facts.variants:
        yield (
            "  "
            f'{ids[each.name]}["{escape_mermaid_text(each.name)}<br/>'
            f'{escape_mermaid_text(score_label(facts, each, say))}"]'
        )
    for each in facts.variants:
        parent = ids.get(each.variant.parent or "")
        if parent:
            reason = _shorten_arrow_label(say.in_picture(each.variant.reason)) if len(ids) <= MOST_LABELLED else ""
            words = f'|"{escape_mermaid_text(reason)}"|' if reason else ""
            yield f"  {parent} -->{words} {ids[each.name]}"
    if facts.best:
        yield f"  style {ids[facts.best.name]} stroke-width:4px"
    for each in facts.variants:
        if is_score_missing(facts, each):
            yield f"  style {ids[each.name]} stroke-dasharray:5 5"
    yield "```"


def score_label(facts: LoopFacts, of: LoopVariant, say: LoopWords) -> str:
    """What stands below its name: the score, or why there is none."""
    if of.values:
        mark = "" if not of.gain else "▲ " if of.gain > 0 else "▼ "
        return f"{mark}{say.short(of)}"
    if of.state == "waiting":
        return say("loop.not_yet")
    bad = dict.fromkeys(run.verdict for run in of.runs if run.trouble)
    if bad:
        return say("loop.told", head=say("loop.without"), text=", ".join(bad))
    return say("loop.without") if facts.by else say("loop.unranked")


def is_score_missing(facts: LoopFacts, of: LoopVariant) -> bool:
    """It should have a score some day, and has none."""
    return of.state in ("waiting", "failed") or (of.state == "unscored" and bool(facts.by))


def _shorten_arrow_label(text: str) -> str:
    """Between two words, where there are any."""
    if len(text) <= LONGEST_ARROW_LABEL:
        return text
    head, _, _ = text[:LONGEST_ARROW_LABEL].rpartition(" ")
    return (head if len(head) > LONGEST_ARROW_LABEL // 2 else text[: LONGEST_ARROW_LABEL - 1]).rstrip(" ,;:") + "…"


def escape_mermaid_text(text: str) -> str:
    """Inside a quoted label: as Mermaid writes characters by their number."""
    return _MERMAID_SPECIAL.sub(lambda found: f"#{ord(found[0])};", as_one_safe_line(text))


BOX, WIDEST, HIGH = 236, 340, 62  # of a variant: as wide as the longest name asks for
BOX_PADDING = 20  # of a box, that no letter may use
GAP, ROW = 58, 76  # between columns; from row to row
EDGE, HEAD = 20, 92  # around all; what lies above the first row
HEADLINE, NAME, TEXT, SMALL = 18, 14, 13, 12  # font sizes
BROAD, NARROW = "WMmw@%&—…", "fijlrtI .,:;'|!()[]/-"  # letters, by how much room they take
BETTER, WORSE = "#00664A", "#8A4B00"  # dark enough for words
SVG_FONT = "system-ui, 'Segoe UI', 'Helvetica Neue', 'DejaVu Sans', 'Noto Sans CJK SC', 'Microsoft YaHei', sans-serif"


@dataclass(frozen=True, slots=True)
class VariantBox:
    of: LoopVariant
    column: int
    row: int
    wide: int = BOX

    @property
    def x(self) -> int:
        return _column_left(self.column, self.wide)

    @property
    def y(self) -> int:
        return HEAD + self.row * ROW

    @property
    def middle(self) -> int:
        return self.y + HIGH // 2


def lineage_as_svg(facts: LoopFacts) -> bytes:
    say = LoopWords(facts)
    spots = place_variants(facts)
    columns = max((spot.column for spot in spots.values()), default=0) + 1
    rows = max((spot.row for spot in spots.values()), default=0) + 1
    wide = _box_width(facts)
    title, mark = say("loop.picture", campaign=facts.campaign), say.unfinished(facts)
    title = say("marked", title=title, mark=mark) if mark else title
    note = say("loop.lineage_note")
    above = max(_estimate_text_width(title, HEADLINE, bold=True), _estimate_text_width(note, SMALL))
    width = max(_column_left(columns, wide) - GAP, EDGE + int(above) + 8) + EDGE
    height = HEAD + rows * ROW - (ROW - HIGH) + EDGE
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" font-family={quoteattr(SVG_FONT)}>',
        f"<title>{_escape_svg_text(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        _svg_text_element(EDGE, 30, title, HEADLINE, bold=True),
        _svg_text_element(EDGE, 50, note, SMALL, QUIET_COLOUR),
        *(_column_header(number, facts, say, wide) for number in range(1, facts.round + 1)),
        *(
            _descent_path(spots[spot.of.variant.parent], spot)
            for spot in spots.values()
            if spot.of.variant.parent in spots
        ),
        *(line for spot in spots.values() for line in _variant_box_lines(spot, facts, say)),
        "</svg>",
    ]
    return ("\n".join(lines) + "\n").encode()


def place_variants(facts: LoopFacts) -> dict[str, VariantBox]:
    """The first child goes on in its parent's row, each other one has a row of its own below: no line crosses a box."""
    children: dict[str | None, list[LoopVariant]] = {}
    known = {each.name for each in facts.variants}
    for each in facts.variants:
        parent = each.variant.parent if each.variant.parent in known else None
        children.setdefault(parent, []).append(each)
    found: dict[str, VariantBox] = {}
    row, wide = 0, _box_width(facts)
    left = [(root, -1) for root in reversed(children.get(None, []))]
    while left:
        of, at = left.pop()
        if at < 0:
            at, row = row, row + 1
        found[of.name] = VariantBox(of, max(0, of.variant.round - 1), at, wide)
        mine = children.get(of.name, [])
        left += [(child, -1) for child in reversed(mine[1:])]
        left += [(child, at) for child in mine[:1]]
    return found


def _column_header(number: int, facts: LoopFacts, say: LoopWords, wide: int) -> str:
    count = say.count("loop_variant", len(facts.of_round(number)))
    text = say("loop.column", round=number, variants=count)
    return _svg_text_element(
        _column_left(number - 1, wide), HEAD - 14, _cut_text_at_word(text, TEXT, wide + BOX_PADDING), TEXT, bold=True
    )


def _descent_path(parent: VariantBox, child: VariantBox) -> str:
    start, end = parent.x + parent.wide, child.x
    bend = start + GAP // 2
    path = f"M{start} {parent.middle}H{bend}V{child.middle}H{end - 2}"
    tip = f"M{end - 8} {child.middle - 4}L{end - 1} {child.middle}L{end - 8} {child.middle + 4}"
    return f'<path d="{path}{tip}" fill="none" stroke="{QUIET_COLOUR}" stroke-width="1.4"/>'


def _variant_box_lines(spot: VariantBox, facts: LoopFacts, say: LoopWords) -> Iterator[str]:
    of, best = spot.of, facts.best
    is_best = best is not None and best.name == of.name
    edge, wide, fill = (BLUE, 3.5, pale_colour(pale_colour(BLUE))) if is_best else (QUIET_COLOUR, 1.2, "white")
    dashes = ' stroke-dasharray="6 4"' if is_score_missing(facts, of) else ""
    yield f"<g><title>{_escape_svg_text(_variant_tooltip(of))}</title>"
    yield (
        f'<rect x="{spot.x}" y="{spot.y}" width="{spot.wide}" height="{HIGH}" rx="7" fill="{fill}" stroke="{edge}" '
        f'stroke-width="{wide}"{dashes}/>'
    )
    room = spot.wide - BOX_PADDING
    yield _svg_text_element(
        spot.x + 10, spot.y + 20, _shorten_to_width(of.name, NAME, room, bold=True), NAME, bold=True
    )
    yield _svg_text_element(
        spot.x + 10, spot.y + 38, _shorten_to_width(score_label(facts, of, say), TEXT, room), TEXT, _score_tint(of)
    )
    reason = say.in_picture(of.variant.reason) or (say("loop.base") if of.variant.parent is None else of.variant.by)
    yield _svg_text_element(spot.x + 10, spot.y + 54, _cut_text_at_word(reason, SMALL, room), SMALL, QUIET_COLOUR)
    yield "</g>"


def _score_tint(of: LoopVariant) -> str:
    if not of.values:
        return QUIET_COLOUR
    return "black" if not of.gain else BETTER if of.gain > 0 else WORSE


def _variant_tooltip(of: LoopVariant) -> str:
    """In full, when the pointer rests on it."""
    variant = of.variant
    made = f" <- {variant.parent}: {variant.reason} ({', '.join(variant.edits)})" if variant.parent else ""
    return as_one_safe_line(f"{variant.name}{made}; {of.config}")


def _svg_text_element(x: int, y: int, text: str, size: int, tint: str = "black", *, bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{tint}"{weight}>{_escape_svg_text(text)}</text>'


def _escape_svg_text(text: str) -> str:
    """XML knows no control characters."""
    return escape("".join(each if each.isprintable() else " " for each in text))


def _column_left(column: int, wide: int) -> int:
    return EDGE + column * (wide + GAP)


def _box_width(facts: LoopFacts) -> int:
    longest = max(
        (_estimate_text_width(as_one_safe_line(each.name), NAME, bold=True) for each in facts.variants), default=0.0
    )
    return min(WIDEST, max(BOX, int(longest) + BOX_PADDING + 1))


def _estimate_text_width(text: str, size: int, *, bold: bool = False) -> float:
    """About: the reader's font is not known here. As wide as the widest of the usual ones."""
    return sum(map(_letter_width, text)) * size * (1.1 if bold else 1.0)


def _letter_width(letter: str) -> float:
    """Of the font size."""
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.02
    if letter in BROAD:
        return 1.0
    if letter in NARROW:
        return 0.42
    return 0.77 if letter.isupper() or not letter.isascii() else 0.64


def _shorten_to_width(text: str, size: int, room: int, *, bold: bool = False) -> str:
    """Its beginning and its end: names differ there."""
    longest = len(text)
    while longest > 8 and _estimate_text_width(shorten_drawn_name(text, longest), size, bold=bold) > room:
        longest -= 1
    return shorten_drawn_name(text, longest)


def _cut_text_at_word(text: str, size: int, room: int) -> str:
    """Between two words, where there are any."""
    if _estimate_text_width(text, size) <= room:
        return text
    while text and _estimate_text_width(text + "…", size) > room:
        text = text[:-1]
    head, _, _ = text.rpartition(" ")
    return (head if 2 * len(head) > len(text) else text).rstrip(" ,;:，；：") + "…"
