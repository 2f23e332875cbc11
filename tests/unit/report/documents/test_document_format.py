"""Numbers with their spans and formats: what is read is written back, and nothing else is a number."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.app.documents.find_numbers import (
    NumeralFormat,
    half_printed_step,
    read_numeral,
    scale_value,
    scan_numbers,
    significant_digits,
    write_numeral,
)
from muster.app.documents.text_layout import TextSource

FORMATS = st.builds(
    NumeralFormat,
    decimals=st.integers(0, 6),
    thousands=st.sampled_from(["", ",", "{,}", "\\,", "\u2009"]),
    plus=st.booleans(),
    minus=st.sampled_from("-−"),
    bare=st.booleans(),
)
SCIENTIFIC = st.builds(
    NumeralFormat,
    decimals=st.integers(0, 4),
    exponent=st.sampled_from("eE"),
    power_digits=st.integers(1, 3),
    power_plus=st.booleans(),
)
VALUES = st.floats(-1e9, 1e9, allow_nan=False).map(lambda value: round(value, 5))


@settings(deadline=None)
@given(VALUES, FORMATS | SCIENTIFIC)
def test_a_numeral_is_read_and_written_in_its_own_format(value: float, style: NumeralFormat) -> None:
    token = write_numeral(value, style)
    known = read_numeral(token)
    if known is None:
        assert style.bare  # `.` alone, or a bare 0: no numeral that people write
        return
    assert write_numeral(*known) == token.lstrip("-−") if known[0] == 0 else write_numeral(*known) == token
    assert abs(known[0] - value) <= half_printed_step(known[0], known[1])


@settings(deadline=None)
@given(VALUES, VALUES, FORMATS)
def test_another_value_keeps_the_format(old: float, new: float, style: NumeralFormat) -> None:
    known = read_numeral(write_numeral(old, style))
    if known is None:
        return
    shown = write_numeral(new, known[1])
    assert ("." in shown) == (style.decimals > 0)
    assert shown.partition(".")[2].isdigit() == (style.decimals > 0)
    assert len(shown.partition(".")[2]) == style.decimals
    assert shown.startswith("+") <= known[1].plus


@pytest.mark.parametrize(
    ("token", "new", "expected"),
    [
        ("1.684", 2.0, "2.000"), ("83.0", 7.25, "7.2"), ("83", 7.6, "8"), (".741", 0.5, ".500"), (".741", 1.5, "1.500"),
        ("12,345", 999.0, "999"), ("12,345", 1234567.8, "1,234,568"), ("12{,}345", 67890.0, "67{,}890"),
        ("12\\,345.6", 1000.04, "1\\,000.0"), ("+0.31", 0.5, "+0.50"), ("+0.31", -0.5, "-0.50"), ("−0.31", -0.5, "−0.50"),
        ("-0.31", 0.001, "0.00"), ("0.00", -0.001, "0.00"), ("1.2e-3", 0.0456, "4.6e-2"), ("1.20E+03", 45.6, "4.56E+01"),
        ("1e5", 99999.0, "1e5"), ("999", 1234.0, "1234"),
    ],
)  # fmt: skip
def test_formats(token: str, new: float, expected: str) -> None:
    known = read_numeral(token)
    assert known is not None
    assert write_numeral(new, known[1]) == expected


@pytest.mark.parametrize("token", ["", ".", "007", "1,23", "1e999", "1..2", "--1", "1,2345", "e5", "0x10", "9" * 400])
def test_what_could_not_be_written_back_is_no_numeral(token: str) -> None:
    assert read_numeral(token) is None


def test_percent_leaves_no_dust() -> None:
    assert scale_value(0.285, 100) == 28.5
    assert scale_value(0.07, 100) == 7.0
    assert scale_value(1.1, 1) == 1.1


@pytest.mark.parametrize(
    ("token", "digits"), [("0.026", 2), ("83.0", 3), ("3000", 1), ("0.000", 0), ("1.684", 4), ("1.2e-3", 2)]
)
def test_significant_digits(token: str, digits: int) -> None:
    known = read_numeral(token)
    assert known is not None
    assert significant_digits(*known) == digits


def found(text: str, kind: str = "markdown") -> list[str]:
    return [text[number.start : number.end] for number in scan_numbers(TextSource(text, kind).bare)]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1.684±0.741", ["1.684±0.741"]), ("1.684 ± 0.741", ["1.684 ± 0.741"]), ("**1.684**±0.741", ["1.684**±0.741"]),
        ("1.68+-0.74", ["1.68+-0.74"]), ("1.68 +/- 0.74", ["1.68 +/- 0.74"]), ("$1.68_{\\pm 0.74}$", ["1.68_{\\pm 0.74"]),
        ("\\textbf{1.68} $\\pm$ 0.74", ["1.68} $\\pm$ 0.74"]), ("1.68\\,$\\pm$\\,0.74", ["1.68\\,$\\pm$\\,0.74"]),
        ("83.1%", ["83.1%"]), ("83 \\%", ["83 \\%"]), ("83.1 ± 2.0 %", ["83.1 ± 2.0 %"]), ("８3％", []), ("3％", ["3％"]),
        ("12,345", ["12,345"]), ("12\\,345", ["12\\,345"]), ("_1.684_", ["1.684"]), ("-0.31 and −0.2", ["-0.31", "−0.2"]),
        ("得分2.203分", ["2.203"]), ("1.684 (PARTIAL 16/40)", ["1.684 (PARTIAL 16/40)"]), ("1.5. Then", ["1.5"]),
        ("1.2e-3", ["1.2e-3"]), ("14.5ms", ["14.5"]), ("|1.5|2.5|", ["1.5", "2.5"]),
        ("1.5 ± 0.2 ± 0.1", []), ("2026-02-22 17:23:01", []), ("v2_full seed2", []), ("17/20", []), ("0–4", []), ("1.6–1.7.", []),
        ("0,1,3,4", []), ("1,68", []), ("1.2.3", []), ("4×5", []), ("256x256", []), ("120k", []), ("10^{-3}", []),
        ("<0.05", []), ("≤ 25", []), ("$\\leq 25$", []), ("mAP@0.5", []), ("#16.5", []), ("[12]", []), ("[1.2, 3.4]", []),
        ("runs/20260222-02/a1.5", []), ("得分-0.31", []), ("$-$0.31", []), ("1.684(741)", []), ("$200 a run", []), ("¥200", []),
        ("2026年2月", []), ("1.2×10^3", []), ("x_0.5", []), ("https://a.b/1.5", []), ("`1.5`", []), ("``a ` 1.5``", []),
        ("```\n1.5\n```", []), ("~~~\n1.5", []), ("<!-- 1.5 -->", []), ("---\na: 1.5\n---\n2.5", ["2.5"]), ("1. one\n2. two", []),
        ("## 2.1 Title", []), ("![w:1.5](a)", []), ("[a](1.5)", []), ("<img width=1.5>", []), ("\n\n    code 1.5", []),
        ("- a\n\n    more 1.5", ["1.5"]), ("> 1.5", ["1.5"]), ("\ufeff1.5", ["1.5"]), ("---\r\na: 1.5\r\n---\r\n2.5\r\n", ["2.5"]),
    ],
)  # fmt: skip
def test_numbers_of_a_text(text: str, numbers: list[str]) -> None:
    assert found(text) == numbers


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("a 1.5 % 2.5\n3.5", ["1.5", "3.5"]), ("1.5\\% of", ["1.5\\%"]), ("x \\\\% 1.5", []), ("\\begin{verbatim}1.5\\end{verbatim}2.5", ["2.5"]),
        ("\\vspace{1.5cm} \\ref{a1.5} \\cite{x1.5} 2.5", ["2.5"]), ("\\verb|1.5| 2.5", ["2.5"]), ("\\\\[1.5pt] 2.5", ["2.5"]),
        ("1.5\\begin{document}2.5\\end{document}3.5", ["2.5"]), ("0.9\\textwidth", []), ("\\textcolor{red!1.5}{2.5}", ["2.5"]),
        ("\\begin{tabular}{p{1.5cm}r}2.5\\end{tabular}", ["2.5"]), ("\\multicolumn{2}{p{1.5cm}}{2.5}", ["2.5"]),
    ],
)  # fmt: skip
def test_numbers_of_latex(text: str, numbers: list[str]) -> None:
    assert found(text, "latex") == numbers


@settings(deadline=None)
@given(st.text(alphabet="0123456789.,±%-+eE −|*`$\\{}()[]_a\n", max_size=60))
def test_any_text_is_read(text: str) -> None:
    for kind in ("markdown", "latex", "plain"):
        source = TextSource(text, kind)
        assert len(source.shown) == len(source.bare) == len(text)
        for number in scan_numbers(source.bare):
            assert 0 <= number.start < number.end <= len(text)
            for numeral in number.numerals:
                assert read_numeral(text[numeral.start : numeral.end]) == (numeral.value, numeral.format)
                assert math.isfinite(numeral.value)
