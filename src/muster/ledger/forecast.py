"""What is still to come: from the durations of sibling cells, and from the step rate of those that run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Student's t, 90 % two-sided, by degrees of freedom
_T = (6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771, 1.761, 1.753)
_T_MANY = 1.7
ONE_SIBLING = (0.5, 2.0)  # of a single duration nobody knows how much others differ from it
UNSURE = 0.25  # of a step rate, where no sibling has finished


@dataclass(frozen=True, slots=True)
class Interval:
    low: float
    mid: float
    high: float

    def __add__(self, other: Interval) -> Interval:
        """Spreads that have nothing to do with each other add up in squares."""
        mid = self.mid + other.mid
        down = math.hypot(self.mid - self.low, other.mid - other.low)
        up = math.hypot(self.high - self.mid, other.high - other.mid)
        return Interval(mid - down, mid, mid + up)

    def __mul__(self, factor: float) -> Interval:
        return Interval(self.low * factor, self.mid * factor, self.high * factor)


NOTHING = Interval(0.0, 0.0, 0.0)


def middle(values: Sequence[float]) -> float:
    """The median. The module `statistics` would cost `muster status` more than all the rest of the ledger."""
    ordered = sorted(values)
    half, odd = divmod(len(ordered), 2)
    return ordered[half] if odd else (ordered[half - 1] + ordered[half]) / 2


def _sd(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


@dataclass(frozen=True, slots=True)
class Pace:
    """How a running attempt gets on."""

    elapsed_s: float
    step: float | None = None
    target: float | None = None
    speed: float | None = None  # steps a second


def rest_s(pace: Pace, usual_s: float | None = None, longest_s: float | None = None) -> float | None:
    """How long it will still run, by its own step rate, else by its siblings; None: nothing tells."""
    if pace.step is not None and pace.target is not None and pace.speed:
        return max(0.0, (pace.target - pace.step) / pace.speed)
    for guess in (usual_s, longest_s):
        if guess is not None and guess > pace.elapsed_s:
            return guess - pace.elapsed_s
    return None  # it takes longer than every sibling did


def of_cells(siblings: Sequence[float], count: int) -> Interval | None:
    """How long `count` more cells take together: nine times in ten between low and high. None: none has finished."""
    if not siblings:
        return None
    mid = middle(siblings) * count
    if len(siblings) == 1:
        return Interval(mid * ONE_SIBLING[0], mid, mid * ONE_SIBLING[1])
    freedom = len(siblings) - 1
    t = _T[freedom - 1] if freedom <= len(_T) else _T_MANY
    # each of them differs from the mean, and so does the mean that we know
    spread = t * _sd(siblings) * math.sqrt(count + count * count / len(siblings))
    return Interval(max(min(siblings) * count, mid - spread), mid, mid + spread)


def of_running(rest: float, siblings: Sequence[float]) -> Interval:
    relative = UNSURE
    if len(siblings) > 1:
        relative = min(1.0, _sd(siblings) / max(middle(siblings), 1e-9))
    return Interval(rest * (1 - relative), rest, rest * (1 + relative))


def full_length(paces: Sequence[Pace]) -> list[float]:
    """How long running siblings will have taken, where none has finished yet."""
    return [
        pace.elapsed_s + (pace.target - pace.step) / pace.speed
        for pace in paces
        if pace.step is not None and pace.target is not None and pace.speed
    ]


@dataclass(frozen=True, slots=True)
class Ahead:
    """What is left to run, in billed seconds (units x time) and in slot seconds."""

    billed: Interval
    longest_s: float  # of the runs at work
    unknown: tuple[str, ...] = ()  # jobs of which nobody knows how long a cell takes
    cells: int = 0


def ahead(
    left: Mapping[str, int],
    known: Mapping[str, Sequence[float]],
    running: Sequence[tuple[str, float | None]],
    units: Mapping[str, float],
) -> Ahead:
    """`left`: cells to start, by job; `known`: durations; `running`: (job, rest); `units`: what a cell pays for."""
    total, unknown = NOTHING, set()
    for job, count in left.items():
        more = of_cells(known.get(job, ()), count)
        if more is None:
            unknown.add(job)
        else:
            total += more * units[job]
    for job, rest in running:
        if rest is None:
            unknown.add(job)
        else:
            total += of_running(rest, known.get(job, ())) * units[job]
    longest = max((rest for _, rest in running if rest is not None), default=0.0)
    return Ahead(total, longest, tuple(sorted(unknown)), sum(left.values()) + len(running))
