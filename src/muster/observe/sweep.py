"""One pass over a jsonl file for all who ask for its rows: a log may have gigabytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from muster.observe.steps import decode_row
from muster.ports.regular_files import open_log

LONGEST_LINE = 16 << 20


class Taker(Protocol):
    needles: Sequence[bytes]  # what a line must hold, all of them, to be worth decoding for this one; empty: any line

    def take_row(self, row: Mapping[str, Any]) -> None: ...


def sweep(path: str, takers: Sequence[Taker]) -> None:
    """Line by line; half a line and what is no JSON object is passed over. Raises OSError."""
    asked = [taker.needles for taker in takers]
    takes = [taker.take_row for taker in takers]
    every = not all(asked)
    with open_log(path) as file:
        while line := file.readline(LONGEST_LINE):
            if (every or _worth(line, asked)) and isinstance(row := decode_row(line), dict):
                for take in takes:
                    take(row)


def _worth(line: bytes, asked: Sequence[Sequence[bytes]]) -> bool:
    for needles in asked:  # loops: this runs for every line, and any() over all() takes three times as long
        for needle in needles:
            if needle not in line:
                break
        else:
            return True
    return False
