"""Values as a file may hold them: whatever somebody wrote there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

LARGEST = 10**12  # an iteration
LONGEST = 200  # letters of a name


def number(value: object) -> float:
    """NaN where it is none: infinite is drawn nowhere. A text such as `nan` stands for what JSON can't hold."""
    if value is None or isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return math.nan
    return found if abs(found) < 1e300 else math.nan


def whole(value: object) -> int | None:
    """An iteration."""
    found = number(value)
    if math.isnan(found) or found != math.floor(found) or not 0 <= found <= LARGEST:
        return None
    return int(found)


def name_of(value: object) -> str:
    """On one line."""
    if value is None or isinstance(value, dict | list):
        return ""
    return " ".join(str(value).split())[:LONGEST]


def mapping(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}
