"""How much memory a JSON text may take when it is parsed: `[{},{},...]` takes forty times its own size."""

from __future__ import annotations

import json
from typing import Any

SMALL = 1 << 20  # bytes of text: whatever it holds, it takes no more than some 40 MB
VALUE = 100  # bytes that a comma, a colon or an opening bracket may cost; measured: 60 to 95 at most
MOST = 192 << 20  # bytes of memory
HONEST = 14  # times its own size: what the rows of a log take


class TooManyValues(ValueError):
    """It would take too much memory."""


def check_values(data: bytes, most: int = MOST, times: int = 0) -> None:
    """Raises TooManyValues where parsing may take more than `most` bytes and more than `times` the size of the text."""
    if len(data) <= SMALL:
        return
    values = data.count(b",") + data.count(b":") + data.count(b"[") + data.count(b"{")
    if _text_bytes(data) + VALUE * values > max(most, times * len(data)):
        raise TooManyValues(f"it holds too many values for its size: up to {values}")


def _text_bytes(data: bytes) -> int:
    """Of the text and of one long text in it: one letter beyond the others makes all of them as wide as itself."""
    if data.isascii():
        return 2 * len(data)
    return (8 if any(bytes((first,)) in data for first in range(0xF0, 0xF5)) else 4) * len(data)


def loads_bounded(data: bytes, most: int = MOST) -> Any:
    """As json.loads. Raises ValueError, also for what is nested too deep or would take too much memory."""
    check_values(data, most)
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
