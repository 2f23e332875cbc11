"""One pass over a jsonl file for all who ask for its rows: a log may have gigabytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from muster.observe.steps import decode_row

LONGEST_LINE = 16 << 20


class Taker(Protocol):
    def wants(self, line: bytes) -> bool:
        """Before anything is decoded: False where nothing in it can be for us."""
        ...

    def take_row(self, row: Mapping[str, Any]) -> None: ...


def sweep(path: str, takers: Sequence[Taker]) -> None:
    """Line by line; half a line and what is no JSON object is passed over. Raises OSError."""
    with open(path, "rb") as file:
        while line := file.readline(LONGEST_LINE):
            asking = [taker for taker in takers if taker.wants(line)]
            if asking and isinstance(row := decode_row(line), dict):
                for taker in asking:
                    taker.take_row(row)
