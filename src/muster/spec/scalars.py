"""What an unquoted scalar means: YAML 1.2, core schema. And where a YAML 1.1 reader would see something else."""

from __future__ import annotations

import re

Value = str | int | float | bool | None

_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_WHOLE = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_ENDLESS = re.compile(r"([-+]?)\.(inf|Inf|INF)|\.(nan|NaN|NAN)")

_OLD_BOOL = re.compile(r"yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF")
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?([Tt ].*)?")
_SIXTY = re.compile(r"[-+]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?")
_UNDERSCORE = re.compile(r"[-+]?[0-9][0-9_]*_[0-9_]*(\.[0-9_]*)?")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")

_MOST_DIGITS = 400  # beyond that it is no number that anybody meant, and Python refuses to convert thousands of digits


def read_plain(text: str) -> Value:
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if len(text) > _MOST_DIGITS:
        return text
    if _WHOLE.fullmatch(text):
        return int(text, 0) if text.startswith(("0o", "0x")) else int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if match := _ENDLESS.fullmatch(text):
        return float("nan") if match.group(3) else float(match.group(1) + "inf")
    return text


def leading_zero(text: str) -> bool:
    """`010`: ten here, eight for a YAML 1.1 reader."""
    return bool(_LEADING_ZERO.fullmatch(text))


def other_reading(text: str) -> str | None:
    """What YAML 1.1 readers (PyYAML among them) make of an unquoted text, where that differs from the text itself."""
    if _OLD_BOOL.fullmatch(text):
        return "true" if text.lower() in ("yes", "on") else "false"
    if _DATE.fullmatch(text):
        return "a date"
    if _SIXTY.fullmatch(text):
        return "a number in base 60"
    if _UNDERSCORE.fullmatch(text):
        return f"the number {text.replace('_', '')}"
    return None


def without_underscores(text: str) -> str | None:
    """`120_000` -> `120000`; None if it is not such a number."""
    return text.replace("_", "") if _UNDERSCORE.fullmatch(text) else None
