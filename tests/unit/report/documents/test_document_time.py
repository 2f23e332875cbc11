"""Texts whose reading once took time that grew with the square of their length, or memory beyond all bounds."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import pytest
from document_world import STORY, quantities

from muster.app.documents.bind_numbers import decide_bindings
from muster.app.documents.document_context import DocumentContext
from muster.app.documents.find_numbers import scan_numbers
from muster.app.documents.result_names import NameReader, QuantityIndex
from muster.app.documents.text_layout import LATEX, MARKDOWN, PLAIN, TextSource, find_places
from muster.app.journal.journal_text import find_sections, scan_journal_lines
from muster.app.journal.number_audit import find_written_numbers

BOOK = QuantityIndex(quantities(STORY))
VOCABULARY = NameReader(BOOK)


def decided(kind: str) -> Callable[[str], object]:
    return lambda text: decide_bindings(DocumentContext(TextSource(text, kind), BOOK, VOCABULARY))


def journal(text: str) -> object:
    lines = scan_journal_lines(text)
    return find_sections(lines), find_written_numbers(text, lines)


SHAPES: dict[str, tuple[Callable[[str], object], str, str, str]] = {  # what reads it, beginning, piece, end
    "rules": (decided(MARKDOWN), "", "|---|\n", ""),
    "titles without a rule": (decided(MARKDOWN), "", "+-\n|\n", ""),
    "columns of rules": (decided(PLAIN), "", "a  b\n--\n", "x\n"),
    "columns of numbers": (decided(PLAIN), "", "a  1\n--\n", ""),
    "equal columns": (decided(PLAIN), "", "=  =\n--\n", ""),
    "wide rows": (decided(MARKDOWN), "| a " * 2000 + "\n" + "|---" * 2000 + "\n", "| a ", ""),
    "many titles": (decided(MARKDOWN), "".join(f"| a{at} | b |\n" for at in range(1000)) + "|---|\n", "| a | 1.5 |\n", ""),
    "tildes": (decided(MARKDOWN), "", "~", ""),
    "code": (decided(MARKDOWN), "", "<code>", ""),
    "indented": (decided(MARKDOWN), "", "\n\n    a\n", ""),
    "items": (decided(MARKDOWN), "".join("  " * at + "- a\n" for at in range(200)), "  " * 200 + "- a\n", ""),
    "under a long heading": (decided(MARKDOWN), "# " + "a b " * 10_000 + "\n", "b\n\n1.5\n\n", ""),
    "options": (decided(LATEX), "", "\\cite [", ""),
    "brackets": (decided(LATEX), "", "\\ref ( ", ""),
    "sizes": (decided(LATEX), "", "\\\\[", ""),
    "sections": (decided(LATEX), "", "\\section[", ""),
    "headings": (journal, "", "# a\n", ""),
    "a heading of blanks": (journal, "# ", " ", "x\n"),
    "names": (journal, "## Learning\n\n", "sha256.", ""),
    "compared": (journal, "## Learning\n\n", "< ", "1.5"),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_they_take_time_in_proportion(shape: str) -> None:
    """Sixteenfold would be quadratic. By processor time, the best of some: the machine is shared."""
    short, long = (_cost(shape, size) for size in (10_000, 40_000))
    if long > 0.3 and long > 9 * short:
        short, long = (min(_cost(shape, size) for _ in range(3)) for size in (10_000, 40_000))
        assert long < 9 * short
    assert long < 5


def _cost(shape: str, size: int) -> float:
    read, begin, piece, end = SHAPES[shape]
    text = begin + piece * (size // len(piece)) + end
    began = time.process_time()
    read(text)
    return time.process_time() - began


@pytest.mark.parametrize("wide", ["99999999", "9" * 5000])
def test_a_cell_over_more_columns_than_there_are_takes_no_memory(wide: str) -> None:
    text = f"\\begin{{tabular}}{{l}}\n\\multicolumn{{{wide}}}{{c}}{{a}} \\\\ \\hline\n1 & 2 \\\\\n\\end{{tabular}}\n"
    tracemalloc.start()
    decided(LATEX)(text)
    assert tracemalloc.get_traced_memory()[1] < 20 << 20
    tracemalloc.stop()


def test_a_long_word_is_one() -> None:
    """A pattern that tried each of its letters anew once took 120 bytes for each."""
    text = "a" * 100_000 + "-1 b-c--d 1.684"
    assert [number.start for number in DocumentContext(TextSource(text, MARKDOWN), BOOK, VOCABULARY).numbers] == [
        len(text) - 5
    ]


def test_the_same_text_again_is_read_as_fast() -> None:
    """What was kept by the text itself was compared with the equal one for each number: 22 s for 1 MB."""
    text = "v $1.64$\n" * 20_000
    costs = []
    for again in (text, "".join(list(text))):
        began = time.process_time()
        scan_numbers(again)
        costs.append(time.process_time() - began)
    assert costs[1] < 4 * costs[0] + 0.5


def test_a_paragraph_of_very_short_lines_takes_little_memory() -> None:
    """Each line was kept twice, with its place: 438 MB for 4 MB."""
    text = ".\n" * 100_000
    tracemalloc.start()
    assert len(find_places(TextSource(text, LATEX))) == 1
    assert tracemalloc.get_traced_memory()[1] < 60 * len(text)
    tracemalloc.stop()


def test_very_short_sentences_take_little_memory() -> None:
    """The spans of all of a paragraph's were kept: 397 MB for 4 MB."""
    text = "1.684" + "!" * 100_000 + "1.684"
    context = DocumentContext(TextSource(text, MARKDOWN), BOOK, VOCABULARY)
    first, last = context.numbers
    (place,) = context.layout.places
    tracemalloc.start()
    assert context.sentence(last, place).span == (len(text) - 5, len(text))
    assert context.sentence(first, place).span == (0, 6)
    assert tracemalloc.get_traced_memory()[1] < 30 * len(text)
    tracemalloc.stop()
