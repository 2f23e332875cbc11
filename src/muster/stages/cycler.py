"""Hands out tail seeds: each as often as it is to be replayed, then the next, round and round."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from muster.stages.errors import GateError


class Cycler:
    """`seeds`: the entries of each source file, as the script read them.

    It keeps a place for each source, so that a stage that comes back goes on where it was left.
    """

    def __init__(self, seeds: Mapping[str, Sequence[Any]], replay: int = 1) -> None:
        empty = [name for name, found in seeds.items() if not found]
        if empty:
            raise GateError(f"no tail seed in {', '.join(empty)}: a stage can't draw from an empty file")
        if replay < 1:
            raise GateError(f"each seed is handed out at least once, found replay={replay}")
        self._seeds = {name: tuple(found) for name, found in seeds.items()}
        self._replay = replay
        self._drawn = dict.fromkeys(self._seeds, 0)

    def draw(self, source: str, count: int = 1) -> list[Any]:
        if count < 0:
            raise GateError(f"it can't hand out {count} seeds")
        seeds, at = self._of(source), self._drawn[source]
        self._drawn[source] = at + count
        return [seeds[(at + k) // self._replay % len(seeds)] for k in range(count)]

    def replays(self, source: str) -> dict[int, int]:
        """How often each entry was handed out, by its place in the file."""
        size, drawn = len(self._of(source)), self._drawn[source]
        rounds, rest = divmod(drawn, size * self._replay)
        return {at: rounds * self._replay + min(max(rest - at * self._replay, 0), self._replay) for at in range(size)}

    def _of(self, source: str) -> tuple[Any, ...]:
        if source not in self._seeds:
            raise GateError(f"no tail seeds were given for {source}; given: {', '.join(self._seeds) or 'none'}")
        return self._seeds[source]

    def drawn(self) -> dict[str, int]:
        return dict(self._drawn)

    def state(self) -> dict[str, int]:
        """For the checkpoint."""
        return dict(self._drawn)

    def load(self, state: Mapping[str, Hashable]) -> None:
        """Sources that the checkpoint does not know begin at their start."""
        for name, drawn in state.items():
            if name in self._drawn and isinstance(drawn, int) and drawn >= 0:
                self._drawn[name] = drawn
