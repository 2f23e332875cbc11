"""A plane with goals to reach, hazards to stay out of, and point robots whose dynamics nobody told them.

Each robot of a `World` has a plane of its own; they are stepped together because numpy likes wide arrays.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

DT = 0.1
GOAL_RADIUS = 0.12
GOAL_BONUS = 1.0
REACH = 1.0  # goals, hazards and starts lie in [-REACH, REACH]^2
ROOM = 0.2  # goals and starts lie this far from hazards, where that can be had


@dataclass(frozen=True)
class Physics:
    """What `shift` moves and the robot never sees. Level 0 is what it was trained in."""

    mass: float = 1.0
    drag: float = 0.8
    gain: float = 3.0
    noise: float = 0.06
    hazards: int = 7
    radius: float = 0.18


def shift(level: int) -> Physics:
    """Heavier, more slippery, weaker and noisier with every level, among more and larger hazards."""
    base = Physics()
    return Physics(
        mass=base.mass * (1 + 0.10 * level),
        drag=base.drag * 0.85**level,
        gain=base.gain * 0.95**level,
        noise=base.noise * (1 + 0.25 * level),
        hazards=base.hazards + level,
        radius=base.radius * (1 + 0.05 * level),
    )


class World:
    """`state` is (robots, 4): position and velocity. `hazards` is (robots, n, 3): centre and radius."""

    SAVED = ("state", "goal", "hazards", "score", "cost")

    def __init__(self, physics: Physics, robots: int, episode_length: int, rng: np.random.Generator) -> None:
        self.physics, self.robots, self.episode_length, self.rng = physics, robots, episode_length, rng
        self.reset()

    def reset(self) -> None:
        n, k = self.robots, self.physics.hazards
        centres = self.rng.uniform(-REACH, REACH, (n, k, 2))
        radii = self.physics.radius * self.rng.uniform(0.8, 1.2, (n, k, 1))
        self.hazards: Array = np.concatenate([centres, radii], axis=2).astype(np.float32)
        self.state: Array = np.zeros((n, 4), np.float32)
        self.state[:, :2] = self._free_spots()
        self.goal: Array = self._free_spots()
        self.score: Array = np.zeros(n, np.float32)
        self.cost: Array = np.zeros(n, np.float32)
        self.time = 0

    def step(self, action: Array) -> bool:
        """Move all robots by one step, add to their score and cost, and say whether the episode is over."""
        before = distance(self.state[:, :2], self.goal)
        self._move(np.clip(action, -1, 1))
        after = distance(self.state[:, :2], self.goal)
        reached = after < GOAL_RADIUS
        self.score += before - after + GOAL_BONUS * reached
        self.cost += inside(self.state[:, :2], self.hazards)
        # Drawn for all robots at every step: two policies then meet the same goals on the same test seed.
        self.goal = np.where(reached[:, None], self._free_spots(), self.goal)
        self.time += 1
        return self.time >= self.episode_length

    def _move(self, action: Array) -> None:
        p, here, velocity = self.physics, self.state[:, :2], self.state[:, 2:]
        # The thrusters are mounted askew and the ground is not level: both have to be learned from data.
        thrust = p.gain * action @ np.array([[0.8, 0.6], [-0.6, 0.8]], np.float32)
        slope = 0.6 * np.sin(3 * here[:, ::-1])
        speed = np.linalg.norm(velocity, axis=1, keepdims=True)
        force = thrust - p.drag * (1 + speed) * velocity
        # Heavy-tailed, as a slipping wheel is: no margin that lets a robot through covers every jolt.
        noise = p.noise * self.rng.standard_t(3, (self.robots, 2))
        velocity = velocity + DT * (force / p.mass + slope) + noise
        self.state = np.concatenate([here + DT * velocity, velocity], axis=1).astype(np.float32)

    def _free_spots(self) -> Array:
        """A spot for each robot, clear of its hazards; the clearest of eight tries where space is tight."""
        tries = self.rng.uniform(-REACH, REACH, (self.robots, 8, 2)).astype(np.float32)
        room = clearance(tries, self.hazards[:, None]).min(axis=2)
        best = np.minimum(room, ROOM).argmax(axis=1)
        spots: Array = tries[np.arange(self.robots), best]
        return spots


def square(a: Array, b: Array) -> Array:
    x, y = a[..., 0] - b[..., 0], a[..., 1] - b[..., 1]
    return x * x + y * y


def distance(a: Array, b: Array) -> Array:
    return np.sqrt(square(a, b))


def clearance(position: Array, hazards: Array) -> Array:
    """Distance from each position (..., 2) to the rim of each hazard (..., n, 3): negative inside."""
    return distance(position[..., None, :], hazards[..., :2]) - hazards[..., 2]


def inside(position: Array, hazards: Array) -> NDArray[np.bool_]:
    """Whether each position lies in any of its hazards. Asked millions of times, hence without the root."""
    near = square(position[..., None, :], hazards[..., :2]) < hazards[..., 2] ** 2
    return np.asarray(near.any(axis=-1))
