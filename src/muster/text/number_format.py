"""How numbers are written: as many digits as the spread allows, and the same number of decimals down a column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_SPREAD_DIGITS = 2  # of the sd: more of them are noise
_MOST_DIGITS = 6  # of the largest value, however small a spread is
_DIGITS_WITHOUT_SPREAD = 4
_MOST_DECIMALS = 6
_LARGE = 1e7
_P_DIGITS = 3
_ALL_DIGITS = 17  # of a float


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """Of one column."""

    decimals: int
    scientific: bool = False  # where plain digits would be mostly zeros

    def __call__(self, value: float) -> str:
        if not math.isfinite(value):
            return str(value)
        shown = f"{value:.{self.decimals}{'e' if self.scientific else 'f'}}"
        return shown.lstrip("-") if float(shown) == 0 else shown

    def spread(self, sd: float) -> str:
        """Never 0 for a spread that there is."""
        shown = self(sd)
        return f"{sd:.1e}" if sd > 0 and float(shown) == 0 else shown

    def signed(self, value: float) -> str:
        shown = self(value)
        return shown if shown.startswith("-") or not math.isfinite(value) or not float(shown) else f"+{shown}"

    def interval(self, bounds: tuple[float, float]) -> str:
        return f"[{self(bounds[0])}, {self(bounds[1])}]"


def _choose_number_format(values: Sequence[float], spreads: Sequence[float]) -> ColumnFormat:
    largest = max([*values, *spreads], default=0.0)
    if not largest:
        return ColumnFormat(0)
    if spreads:
        decimals = min(_decimals_for_digits(min(spreads), _SPREAD_DIGITS), _decimals_for_digits(largest, _MOST_DIGITS))
    elif all(value.is_integer() for value in values):
        decimals = 0
    else:
        decimals = _decimals_for_digits(largest, _DIGITS_WITHOUT_SPREAD)
    if decimals > _MOST_DECIMALS or largest >= _LARGE:
        return ColumnFormat(max(1, min(_MOST_DIGITS, decimals + _decimal_exponent(largest))), scientific=True)
    return ColumnFormat(max(0, decimals))


def _decimals_for_digits(value: float, digits: int) -> int:
    return digits - 1 - _decimal_exponent(value)


def _decimal_exponent(value: float) -> int:
    return math.floor(math.log10(value))


def format_p_value(p: float | None, *beside: float | None) -> str:
    """Three digits, and more where it would read like one `beside` it that it is not: its threshold above all."""
    if p is None:
        return "—"
    others = [other for other in beside if other is not None and other != p]
    for digits in range(_P_DIGITS, _ALL_DIGITS):
        if all(_format_p_with_digits(p, digits) != _format_p_with_digits(other, digits) for other in others):
            return _format_p_with_digits(p, digits)
    return repr(p)


def _format_p_with_digits(p: float, digits: int) -> str:
    return "<0.0001" if p < 0.0001 and digits == _P_DIGITS else f"{p:.{digits}g}"


def format_declared_number(value: float) -> str:
    """A declared number, as it was declared: 25, 0.3."""
    return f"{value:.12g}"


def format_percent_number(share: float) -> str:
    return f"{100 * share:.4g}"


def format_share(value: float) -> str:
    return f"{value:.3f}"


def format_money_amount(amount: float, currency: str) -> str:
    return f"{amount:.2f} {currency}".rstrip()


def format_file_size(count: float, kilo: str = "KB") -> str:
    """`312 B`, `4.0 KB`, `1.2 GB`."""
    for unit in ("B", kilo, "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
