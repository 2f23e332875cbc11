"""Settings that differ by stage, as command lines write them: `ne:0.13,main:0.10`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from muster.stages.errors import clipped
from muster.stages.notation import Piece, Reader

T = TypeVar("T", int, int | float)
EXAMPLE = "ne:0.13,main:0.10 (stage:value)"


def parse_numbers(text: str) -> dict[str, int | float]:
    return _parse(text, Reader.number)


def parse_counts(text: str, of: str = "evaluations", least: int = 0) -> dict[str, int]:
    return _parse(text, lambda reader, piece: reader.count(piece, of, least))


def text_of(values: Mapping[str, int | float]) -> str:
    return ",".join(f"{stage}:{value}" for stage, value in values.items())


def _parse(text: str, read: Callable[[Reader, Piece], T | None]) -> dict[str, T]:
    reader = Reader("override", text)
    found: dict[str, T] = {}
    for piece in reader.parts(",", EXAMPLE):
        pair = reader.pair(piece, "STAGE:VALUE")
        if pair is None:
            continue
        stage, value = pair[0].text, read(reader, pair[1])
        if stage in found:
            reader.wrong(f"the stage '{clipped(stage)}' is there twice", piece.at, "keep one of them")
        elif value is not None:
            found[stage] = value
    reader.done()
    return found
