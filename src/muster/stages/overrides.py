"""Settings that differ by stage, as command lines write them: `ne:0.13,main:0.10`."""

from __future__ import annotations

from collections.abc import Mapping

from muster.stages.errors import clipped
from muster.stages.notation import Reader

EXAMPLE = "ne:0.13,main:0.10 (stage:value)"


def parse_numbers(text: str, name: str = "override") -> dict[str, int | float]:
    return _parse(text, name, whole=False)


def parse_counts(text: str, name: str = "override") -> dict[str, int]:
    return {stage: int(value) for stage, value in _parse(text, name, whole=True).items()}


def text_of(values: Mapping[str, int | float]) -> str:
    return ",".join(f"{stage}:{value}" for stage, value in values.items())


def _parse(text: str, name: str, *, whole: bool) -> dict[str, int | float]:
    reader = Reader(name, text)
    found: dict[str, int | float] = {}
    for piece in reader.parts(",", EXAMPLE):
        pair = reader.pair(piece, "STAGE:VALUE")
        if pair is None:
            continue
        stage, value = pair[0].text, reader.count(pair[1], "evaluations", 0) if whole else reader.number(pair[1])
        if stage in found:
            reader.wrong(f"the stage '{clipped(stage)}' is there twice", piece.at, "keep one of them")
        elif value is not None:
            found[stage] = value
    reader.done()
    return found
