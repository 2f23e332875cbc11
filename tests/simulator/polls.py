"""When a simulated controller looks: every few seconds, a little late, and not at all while it is away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from simulator.case import Hole


def polls(poll_s: float, holes: Sequence[Hole], rng: Random) -> Iterator[tuple[float, tuple[Hole, ...]]]:
    """(time, the holes that ended just before it), for ever. The next poll counts from the last, as in the loop."""
    rand = rng.random
    waiting = list(reversed(holes))
    t = poll_s * rand()
    while True:
        passed: tuple[Hole, ...] = ()
        while waiting and t >= waiting[-1].start:
            passed += (waiting.pop(),)
            t = max(t, passed[-1].end + 0.2 * rand())
        yield t, passed
        chance = rand()
        # turns of the loop take milliseconds; now and then a machine is busy for a while
        t += poll_s + (0.02 + 0.1 * chance if chance < 0.97 else poll_s * 0.9 * rand())
