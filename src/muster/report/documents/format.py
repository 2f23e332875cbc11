"""A numeral's own format: digits, sign, thousands, exponent. What is written in it looks like what stood there."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal

SEPARATORS = r"(?:,|\{,\}|\\,|\u2009|\u202f)"  # between groups of three
UNSIGNED = rf"(?:(?:[0-9]{{1,3}}(?:{SEPARATORS}[0-9]{{3}})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|(?<![A-Za-z0-9_.])\.[0-9]+)"
POWER = r"(?:[eE][+\-−]?[0-9]{1,3})"
_PARTS = re.compile(
    rf"(?P<sign>[+\-−])?(?P<whole>[0-9]{{1,3}}(?P<thousands>{SEPARATORS})[0-9]{{3}}(?:(?P=thousands)[0-9]{{3}})*|[0-9]*)"
    r"(?:\.(?P<part>[0-9]+))?(?:(?P<e>[eE])(?P<esign>[+\-−]?)(?P<power>[0-9]{1,3}))?"
)


@dataclass(frozen=True, slots=True)
class Format:
    decimals: int
    thousands: str = ""  # what stands between groups of three
    plus: bool = False  # +0.31
    minus: str = "-"
    bare: bool = False  # .741
    exponent: str = ""  # e or E
    power_digits: int = 0
    power_plus: bool = False


def read(token: str) -> tuple[float, Format] | None:
    """The value and the format; None where this format could not write what stands there."""
    parts = _PARTS.fullmatch(token)
    if parts is None or not (parts["whole"] or parts["part"]):
        return None
    sign, whole, fraction, e = (parts[name] or "" for name in ("sign", "whole", "part", "e"))
    thousands = parts["thousands"] or ""
    digits = whole.replace(thousands, "") if thousands else whole
    power = f"e{parts['esign'].replace('−', '-')}{parts['power']}" if e else ""
    value = float(f"{'-' if sign in '-−' and sign else ''}{digits or '0'}.{fraction or '0'}{power}")
    if not math.isfinite(value):
        return None
    minus = next((mark for mark in (sign, parts["esign"]) if mark and mark in "-−"), "-")
    style = Format(
        decimals=len(fraction),
        thousands=thousands,
        plus=sign == "+",
        minus=minus,
        bare=not whole,
        exponent=e,
        power_digits=len(parts["power"] or ""),
        power_plus=parts["esign"] == "+",
    )
    written = write(value, style)
    return (value, style) if written == (token.lstrip("-−") if value == 0 else token) else None


def write(value: float, style: Format) -> str:
    """The value in that format. Zero has no minus."""
    size = abs(value)
    if style.exponent:
        shown, _, power = f"{size:.{style.decimals}e}".partition("e")
        mark = style.minus if int(power) < 0 else "+" if style.power_plus else ""
        tail = f"{style.exponent}{mark}{abs(int(power)):0{style.power_digits}d}"
    else:
        shown, tail = f"{size:,.{style.decimals}f}", ""
        shown = shown.replace(",", style.thousands)
    if style.bare and shown.startswith("0."):
        shown = shown[1:]
    nothing = not any(digit in "123456789" for digit in shown)
    mark = style.minus if value < 0 and not nothing else "+" if style.plus else ""
    return mark + shown + tail


def scaled(value: float, scale: int) -> float:
    """Times 100 for percent, without the dust that binary fractions leave (0.285 is 28.5 %)."""
    return float(Decimal(repr(value)) * scale) if scale != 1 else value


def half_step(value: float, style: Format) -> float:
    """Half of the last printed digit: how far a value may be away that still prints like this."""
    power = 0
    if style.exponent and value:
        power = int(f"{abs(value):.{style.decimals}e}".partition("e")[2])
    return 0.5 * 10.0 ** (power - style.decimals) * (1 + 1e-9) + abs(value) * 1e-12


def significant(value: float, style: Format) -> int:
    """Digits that tell one number from another: 0.026 has two, 83.0 three, 3000 one."""
    shown = write(abs(value), Format(style.decimals, exponent=style.exponent, power_digits=1)).partition("e")[0]
    digits = shown.partition("E")[0].replace(".", "").lstrip("0")
    return len(digits if style.decimals else digits.rstrip("0"))
