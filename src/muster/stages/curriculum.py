"""A curriculum: a value (15 fish, then 20, ...) and for how many iterations it holds. Iterations count from 1."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from muster.stages.forms import Form, entries
from muster.stages.notation import Reader

NAME = "curriculum"
EXAMPLE = "15:9,20:10 (value:iterations)"


class Lesson(NamedTuple):
    value: int | float
    iterations: int


class Curriculum(NamedTuple):
    lessons: tuple[Lesson, ...]

    @classmethod
    def parse(cls, text: str) -> Curriculum:
        """`15:9,20:10`: value 15 for 9 iterations, then 20 for 10."""
        reader = Reader(NAME, text)
        found = []
        for piece in reader.parts(",", EXAMPLE):
            pair = reader.pair(piece, "VALUE:ITERATIONS")
            if pair is None:
                continue
            value, iterations = reader.number(pair[0]), reader.count(pair[1], "iterations")
            if value is not None and iterations is not None:
                found.append(Lesson(value, iterations))
        reader.done()
        return cls(tuple(found))

    @classmethod
    def of(cls, written: str | Sequence[Mapping[str, Any]]) -> Curriculum:
        """As in YAML: the notation, or a list of `{value: 15, iterations: 9}`."""
        if isinstance(written, str):
            return cls.parse(written)
        form = Form(NAME)
        found = []
        for name, entry in entries(form, written, "{value: 15, iterations: 9}"):
            form.known(name, entry, ("value", "iterations"))
            value, iterations = form.number(name, entry, "value"), form.count(name, entry, "iterations")
            if value is not None and iterations is not None:
                found.append(Lesson(value, iterations))
        form.done()
        return cls(tuple(found))

    @property
    def total(self) -> int:
        return sum(each.iterations for each in self.lessons)

    @property
    def ends(self) -> list[int]:
        """The last iteration of each."""
        return list(accumulate(each.iterations for each in self.lessons))

    def value_at(self, iteration: int) -> int | float:
        """Beyond the end: the last value."""
        if iteration < 1:
            raise ValueError(f"iterations count from 1, found {iteration}")
        return self.lessons[min(bisect_left(self.ends, iteration), len(self.lessons) - 1)].value

    def text(self) -> str:
        return ",".join(f"{each.value}:{each.iterations}" for each in self.lessons)

    def mappings(self) -> list[dict[str, int | float]]:
        return [{"value": each.value, "iterations": each.iterations} for each in self.lessons]
