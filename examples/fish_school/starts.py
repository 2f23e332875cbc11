"""Starts of episodes. A start is drawn from its seed, its type and the number of fish, and from nothing else."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

SCHOOL = 0.35  # radius of the school at the start
FISH_PER_HUNTER = 10
AMBUSH = 0.18  # the share of hunters that lie in wait at arm's length of a fish
AMBUSH_RANGE = (0.03, 0.09)
NE_QUICKNESS = 1.3


@dataclass(frozen=True)
class Start:
    fish: Array  # (N, 2)
    fish_velocity: Array
    hunters: Array  # (P, 2)
    hunter_velocity: Array
    quickness: Array  # (P,)


def hunters_for(fish: int) -> int:
    return max(1, (fish + FISH_PER_HUNTER // 2) // FISH_PER_HUNTER)


def start(seed: int, fish: int, kind: str = "open") -> Start:
    """`open` and `main`: hunters anywhere, some in ambush. `ne`: all of them from the north-east, and quick.

    The starts of type `main` in a seed file are open ones that proved hard: see make_seeds.py.
    """
    rng = np.random.default_rng([seed, fish])
    count = hunters_for(fish)
    centre = rng.uniform(-0.5, 0.5, 2)
    school = centre + SCHOOL * _disc(rng, fish)
    hunters, quickness = rng.uniform(-1, 1, (count, 2)), np.ones(count)
    if kind == "ne":
        hunters, quickness = rng.uniform(0.6, 1, (count, 2)), np.full(count, NE_QUICKNESS)
        school = np.array([0.45, 0.45]) + SCHOOL * _disc(rng, fish)
    ambush = rng.random(count) < AMBUSH
    prey = rng.integers(fish, size=count)
    angle, range_ = rng.uniform(0, 2 * np.pi, count), rng.uniform(*AMBUSH_RANGE, count)
    waiting = school[prey] + range_[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    hunters = np.where(ambush[:, None], waiting, hunters)
    velocity = rng.normal(0, 0.008, (fish, 2))
    return Start(
        fish=np.clip(school, -1, 1).astype(np.float32),
        fish_velocity=velocity.astype(np.float32),
        hunters=np.clip(hunters, -1, 1).astype(np.float32),
        hunter_velocity=np.zeros((count, 2), np.float32),
        quickness=quickness.astype(np.float32),
    )


def starts(seeds: Iterable[int], fish: int, kind: str = "open") -> list[Start]:
    return [start(seed, fish, kind) for seed in seeds]


def _disc(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    radius, angle = np.sqrt(rng.random(count)), rng.uniform(0, 2 * np.pi, count)
    return radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
