"""Texts that were made to take long: as many numbers and blanks in a line as there may be. Found by tests/fuzz."""

from __future__ import annotations

import time

import pytest
from document_world import STORY, quantities

from muster.app.documents.find_numbers import scan_numbers
from muster.app.documents.result_names import NameReader, QuantityIndex

MOST_S = 4  # of processor time; each took more than ten times as long


@pytest.mark.parametrize("piece", ["1.5 ", "$1.5$ ", "\\num{1.5} ", "1.5 \\(2.5\\) "])
def test_a_line_of_many_numbers(piece: str) -> None:
    began = time.process_time()
    assert len(scan_numbers(piece * (100_000 // len(piece)))) > 100
    assert time.process_time() - began < MOST_S


def test_formulas_are_told_from_text_in_a_line_of_any_length() -> None:
    text = "$1.5$ and " * 2000 + "2.5 and $3.5$"
    by_text = {text[number.start : number.end]: number.tail for number in scan_numbers(text)}
    assert by_text == {"1.5": "$", "2.5": "", "3.5": "$"}


@pytest.mark.parametrize("text", ["0" * 60_000, "1" + " " * 60_000, "seed" + " " * 60_000, "9" * 5000 + " seeds"])
def test_names_in_a_run_of_digits_or_blanks(text: str) -> None:
    began = time.process_time()
    NameReader(QuantityIndex(quantities(STORY))).read(text)
    assert time.process_time() - began < MOST_S
