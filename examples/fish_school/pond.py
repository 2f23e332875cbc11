"""Many ponds at once: a school of fish and the predators that hunt it, in a box from -1 to 1.

Nothing here is random: chance comes in with the starts and with the policy's own noise, so that a start
names an episode, and the same fish in the same pond always meet the same end.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from starts import Start

Array = NDArray[np.float32]

FISH_SPEED = 0.025  # a step's length at full stroke
FISH_AGILITY = 0.1  # how much of it one stroke adds; the water takes the same share away
HUNTER_SPEED = 0.022  # slower than a frightened fish, but it never tires of turning
HUNTER_TURN = 0.5  # how much of its course it changes in a step
CATCH = 0.045
REST = 40  # steps that a hunter swallows its catch and is slow
REST_SPEED = 0.25
CROWD_RANGE = 0.22
CROWD_HALF = 40.0  # so many fish around a hunter take half of its speed: they confuse it, which is why fish school
EFFORT = 0.001  # what a full stroke costs
FEATURES = 19
HUNTERS = slice(13, 15)  # those that tell where hunters are, near ones louder


@dataclass
class Pond:
    """The state of E ponds of N fish and P hunters; plain arrays that a step changes in place."""

    fish: Array  # (E, N, 2)
    fish_velocity: Array
    alive: NDArray[np.bool_]  # (E, N)
    hunters: Array  # (E, P, 2)
    hunter_velocity: Array
    quickness: Array  # (E, P): of the start, times that of the gate's phase
    resting: NDArray[np.int32]  # (E, P): steps left
    age: NDArray[np.int32]  # (E,): steps since the start
    death: NDArray[np.int32]  # (E, N): the step a fish died at, counted from 1; 0 while it lives

    @property
    def size(self) -> int:
        return len(self.fish)


def ponds(starts: list[Start], quickness: float = 1.0) -> Pond:
    fish = np.stack([start.fish for start in starts])
    hunters = np.stack([start.hunters for start in starts])
    e, n, p = len(starts), fish.shape[1], hunters.shape[1]
    return Pond(
        fish=fish,
        fish_velocity=np.stack([start.fish_velocity for start in starts]),
        alive=np.ones((e, n), bool),
        hunters=hunters,
        hunter_velocity=np.stack([start.hunter_velocity for start in starts]),
        quickness=np.stack([start.quickness for start in starts]) * np.float32(quickness),
        resting=np.zeros((e, p), np.int32),
        age=np.zeros(e, np.int32),
        death=np.zeros((e, n), np.int32),
    )


def restart(pond: Pond, index: int, start: Start, quickness: float = 1.0) -> None:
    """Put a new school into one pond."""
    fresh = ponds([start], quickness)
    for name in Pond.__dataclass_fields__:
        getattr(pond, name)[index] = getattr(fresh, name)[0]


def step(pond: Pond, action: Array) -> NDArray[np.bool_]:
    """Fish move, then hunters, then hunters catch. Returns who died, (E, N)."""
    _swim(pond, action)
    gap = pond.hunters[:, :, None] - pond.fish[:, None]  # (E, P, N, 2): from each fish to each hunter
    _hunt(pond, gap, _distances(gap, pond.alive))
    reach = _distances(pond.hunters[:, :, None] - pond.fish[:, None], pond.alive)
    return _catch(pond, reach)


def observe(pond: Pond) -> Array:
    """What each fish knows, (E, N, FEATURES): itself, walls, the nearest hunter, all hunters, the school."""
    x = pond.hunters[:, None, :, 0] - pond.fish[:, :, None, 0]  # (E, N, P); apart, as numpy is slow on pairs
    y = pond.hunters[:, None, :, 1] - pond.fish[:, :, None, 1]
    distance = np.sqrt(x * x + y * y) + np.float32(1e-6)
    near = distance.argmin(axis=2)[..., None]
    closest = np.take_along_axis(distance, near, axis=2)[..., 0]
    fear = np.exp(-4 * distance) / distance
    each = np.arange(pond.size)[:, None]
    seen = np.empty((*closest.shape, FEATURES), np.float32)
    seen[..., 0:2] = pond.fish
    seen[..., 2:4] = pond.fish**5  # felt close to a wall only
    seen[..., 4:6] = pond.fish_velocity / FISH_SPEED
    seen[..., 6] = np.take_along_axis(x, near, axis=2)[..., 0] / closest
    seen[..., 7] = np.take_along_axis(y, near, axis=2)[..., 0] / closest
    seen[..., 8] = np.exp(-4 * closest)
    seen[..., 9] = np.exp(-16 * closest)
    seen[..., 10:12] = pond.hunter_velocity[each, near[..., 0]] / HUNTER_SPEED
    seen[..., 12] = pond.resting[each, near[..., 0]] > 0
    seen[..., 13] = (x * fear).sum(axis=2)
    seen[..., 14] = (y * fear).sum(axis=2)
    share = (pond.alive / np.maximum(pond.alive.sum(axis=1), 1)[:, None]).astype(np.float32)[:, None]
    seen[..., 15:17] = share @ pond.fish - pond.fish
    seen[..., 17:19] = share @ pond.fish_velocity / FISH_SPEED
    return seen


def reward(action: Array, died: NDArray[np.bool_], penalty: float) -> Array:
    """A death costs the gate's penalty, a stroke its effort; life is its own reward."""
    stroke = np.minimum(1, action[..., 0] ** 2 + action[..., 1] ** 2)
    cost: Array = -EFFORT * stroke - np.float32(penalty) * died
    return cost


def _swim(pond: Pond, action: Array) -> None:
    stroke = action * _brake(action, 1.0)[..., None]
    velocity = pond.fish_velocity + FISH_AGILITY * (FISH_SPEED * stroke - pond.fish_velocity)
    pond.fish, pond.fish_velocity = _walled(pond.fish + velocity, velocity)
    pond.age += 1


def _hunt(pond: Pond, gap: Array, distance: Array) -> None:
    """Each hunter turns to the nearest living fish; a crowd around it and a full mouth make it slow."""
    target = distance.argmin(axis=2)
    each, hunter = np.ogrid[: pond.size, : target.shape[1]]
    away = distance[each, hunter, target]
    sees = np.isfinite(away)
    heading = -gap[each, hunter, target] / np.where(sees, away + np.float32(1e-6), 1)[..., None]
    crowd = (distance < CROWD_RANGE).sum(axis=2) - 1
    speed = HUNTER_SPEED * pond.quickness * CROWD_HALF / (CROWD_HALF + np.maximum(crowd, 0))
    speed = np.where(pond.resting > 0, REST_SPEED * speed, speed) * sees
    wanted = heading * speed[..., None]
    velocity = pond.hunter_velocity + HUNTER_TURN * (wanted - pond.hunter_velocity)
    pond.hunters, pond.hunter_velocity = _walled(pond.hunters + velocity, velocity)


def _catch(pond: Pond, reach: Array) -> NDArray[np.bool_]:
    """A hunter that does not rest takes the nearest fish within reach; two hunters may snap at the same one."""
    target = reach.argmin(axis=2)
    each, hunter = np.ogrid[: pond.size, : target.shape[1]]
    caught = (reach[each, hunter, target] < CATCH) & (pond.resting == 0)
    pond.resting = np.where(caught, REST, np.maximum(pond.resting - 1, 0)).astype(np.int32)
    died = np.zeros_like(pond.alive)
    pond_index, hunter_index = np.nonzero(caught)
    died[pond_index, target[pond_index, hunter_index]] = True
    pond.alive &= ~died
    pond.death += died * pond.age[:, None]
    return died


def _distances(gap: Array, alive: NDArray[np.bool_]) -> Array:
    """(E, P, N); the dead are out of reach."""
    return np.where(alive[:, None], np.sqrt(gap[..., 0] ** 2 + gap[..., 1] ** 2), np.float32(np.inf))


def _brake(velocity: Array, limit: float) -> Array:
    speed = np.sqrt(velocity[..., 0] ** 2 + velocity[..., 1] ** 2)
    return np.minimum(1, limit / np.maximum(speed, np.float32(1e-9))).astype(np.float32)


def _walled(position: Array, velocity: Array) -> tuple[Array, Array]:
    """Nobody leaves the box, and who runs into a wall loses its speed towards it."""
    inside = np.clip(position, -1, 1)
    return inside.astype(np.float32), np.where(inside == position, velocity, 0).astype(np.float32)
