"""As many digits as the spread allows, and the same number of decimals down a column."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.app.facts.report_analysis import choose_column_format
from muster.stats.samples import Sample
from muster.text.number_format import (
    ColumnFormat,
    format_declared_number,
    format_money_amount,
    format_p_value,
    format_percent_number,
)


def sample(*values: float) -> Sample:
    return Sample("a", "ood", "score", {str(seed): value for seed, value in enumerate(values)})


@pytest.mark.parametrize(
    ("values", "decimals"),
    [
        ([(1.16, 2.208)], 2),  # sd 0.741
        ([(80.5, 85.5)], 1),  # sd 3.5
        ([(1200.0, 2300.0, 1700.0)], 0),
        ([(1.0, 1.1, 0.9), (10.0, 30.0, 20.0)], 2),  # the smaller spread decides for the column
        ([(3.0,)], 0),
        ([(3.25,)], 3),  # no spread: four digits
        ([(0.0, 0.0)], 0),
        ([()], 0),
    ],
)
def test_two_digits_of_the_spread(values: list[tuple[float, ...]], decimals: int) -> None:
    assert choose_column_format([sample(*each) for each in values]) == ColumnFormat(decimals)


def test_where_digits_would_be_mostly_zeros() -> None:
    assert choose_column_format([sample(1e-9, 2.2e-9)])(1.5e-9) == "1.50e-09"
    assert choose_column_format([sample(1e9, 2.2e9)])(1.5e9) == "1.50e+09"


def test_a_spread_that_there_is_never_reads_as_none() -> None:
    form = choose_column_format([sample(1000.0, 1000.0000001)])
    assert float(form.spread(7e-8)) == 7e-8
    assert form.spread(0.0) == form(0.0)


def test_signs() -> None:
    form = ColumnFormat(2)
    assert [form(-0.001), form.signed(0.5), form.signed(-0.5), form.signed(0.0)] == ["0.00", "+0.50", "-0.50", "0.00"]
    assert form.interval((-1.0, 0.126)) == "[-1.00, 0.13]"
    assert [form(math.nan), form.signed(math.inf)] == ["nan", "inf"]


def test_p_values_can_be_held_against_their_threshold() -> None:
    assert [format_p_value(each) for each in (0.00627, 0.00625, 2 / 252, 3e-7, 1.0, None)] == [
        "0.00627",
        "0.00625",
        "0.00794",
        "<0.0001",
        "1",
        "—",
    ]


def test_a_p_never_reads_like_a_threshold_that_it_is_not() -> None:
    assert (format_p_value(0.02502, 0.025), format_p_value(0.025, 0.02502)) == ("0.02502", "0.025")
    assert (format_p_value(0.0083334, 0.025 / 3), format_p_value(0.025 / 3, 0.0083334)) == ("0.0083334", "0.0083333")
    assert (format_p_value(0.025, 0.025), format_p_value(0.025, None), format_p_value(None, 0.025)) == (
        "0.025",
        "0.025",
        "—",
    )
    assert (format_p_value(3e-7, 0.025), format_p_value(3e-7, 8e-5)) == ("<0.0001", "3e-07")
    just_above = math.nextafter(0.025, 1.0)
    assert format_p_value(just_above, 0.025) != format_p_value(0.025, just_above)


@given(st.floats(1e-9, 1.0), st.floats(-1e-3, 1e-3), st.floats(-1e-3, 1e-3))
def test_ps_are_shown_in_their_order(threshold: float, up: float, down: float) -> None:
    ps = [min(1.0, threshold * (1 + by)) for by in (up, down)]
    shown = format_p_value(threshold, *ps)
    for p in (p for p in ps if p != threshold):
        mine = format_p_value(p, threshold)
        assert mine != shown
        if "<" not in mine + shown:
            assert (float(mine) <= float(shown)) == (p <= threshold)


def test_declared_numbers_read_as_they_were_written() -> None:
    assert [
        format_declared_number(25.0),
        format_declared_number(0.3),
        format_percent_number(0.95),
        format_percent_number(1 - 0.1 / 3),
    ] == ["25", "0.3", "95", "96.67"]
    assert [format_money_amount(10.11, "CNY"), format_money_amount(3, "")] == ["10.11 CNY", "3.00"]


finite = st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: round(value, 6))


@given(st.lists(st.lists(finite, min_size=1, max_size=6), min_size=1, max_size=4))
def test_what_is_shown_is_the_number_at_the_precision_shown(groups: list[list[float]]) -> None:
    samples = [sample(*each) for each in groups]
    form = choose_column_format(samples)
    for each in samples:
        for value in (each.mean, *each.values):
            assert shows(form(value), value)
        if each.sd:
            assert shows(form.spread(each.sd), each.sd)
            assert float(form.spread(each.sd)) > 0


def shows(shown: str, value: float) -> bool:
    """Within half a unit of the last digit that is written."""
    digits, _, exponent = shown.partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
    return abs(float(shown) - value) <= 0.5 * unit * (1 + 1e-9) + 1e-12 * abs(value)
