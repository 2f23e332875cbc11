"""Draws the case of a seed: shape, fault, length, poll period; the same seed draws the same case for ever."""

from __future__ import annotations

from random import Random

from muster.engine.judge.signal_history import Thresholds
from simulator.case import Case
from simulator.faults import FAULTS, disturb, settle
from simulator.shapes import SHAPES, log_uniform

HOUR = 3600.0
SHAPE_NAMES, FAULT_NAMES = tuple(SHAPES), tuple(FAULTS)
# (share, poll period, longest run in hours): a fast poll over a long run costs more than it tells
PERIODS = ((0.1, 5.0, 3.0), (0.2, 15.0, 6.0), (0.45, 30.0, 12.0), (1.0, 60.0, 12.0))


def floors_for(poll_s: float) -> Thresholds:
    return Thresholds(poll_s=poll_s, late_s=2.4 * poll_s)


def names_of(seed: int) -> tuple[str, str]:
    """The shape and the fault, without the cost of drawing the rest."""
    rng = Random(seed)
    return _names(rng)


def _names(rng: Random) -> tuple[str, str]:
    shape, fault = rng.choice(SHAPE_NAMES), rng.choice(FAULT_NAMES)
    return shape, "healthy" if rng.random() < 0.1 else fault


def draw(
    seed: int, shape: str | None = None, fault: str | None = None, poll_s: float | None = None
) -> tuple[Case, Random]:
    """A shape, fault or period that is given takes the place of the drawn one."""
    rng = Random(seed)
    drawn_shape, drawn_fault = _names(rng)
    shape, fault = shape or drawn_shape, fault or drawn_fault
    chance = rng.random()
    _, period, most = next(each for each in PERIODS if chance < each[0])
    length = log_uniform(rng, HOUR, most * HOUR)
    at = length * rng.uniform(0.03, 0.97) if rng.random() < 0.8 else log_uniform(rng, 5, 1200)
    case = Case(
        seed=seed,
        shape=shape,
        fault=fault,
        length=length,
        floors=floors_for(poll_s or period),
        style=SHAPES[shape](rng, length),
        at=at,
        proof_declared=rng.random() < 0.7,
        began=rng.uniform(100, 1e6),
    )
    FAULTS[fault](case, rng)
    if rng.random() < 0.2:
        disturb(case, rng)
    settle(case)
    return case, rng
