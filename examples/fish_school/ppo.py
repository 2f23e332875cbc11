"""One iteration of PPO: an episode in every pond, then some epochs over a sample of what the fish lived through."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from nets import Adam, Array, Batch, Weights, actor, critic, gradients, log_chance
from numpy.typing import NDArray
from pond import FEATURES, Pond, observe, reward, step

DISCOUNT, TRACE, CLIP, ENTROPY = 0.98, 0.9, 0.2, 0.003


@dataclass(frozen=True)
class Lived:
    """All that happened in an iteration, (T, E, N, ...); `seen` has one step more, to look ahead from the last one."""

    seen: Array
    action: Array
    chance: Array
    reward: Array
    alive: NDArray[np.bool_]  # before the step
    died: NDArray[np.bool_]
    cut: NDArray[np.bool_]  # (T, E): a new school came after this step, so the next row belongs to another


def live(
    pond: Pond,
    weights: Weights,
    rng: np.random.Generator,
    steps: int,
    penalty: float,
    renew: Callable[[int, Pond], NDArray[np.bool_]],
) -> Lived:
    """`renew` may put new schools into ponds after a step; it returns which."""
    e, n = pond.alive.shape
    lived = Lived(
        seen=np.empty((steps + 1, e, n, FEATURES), np.float32),
        action=np.empty((steps, e, n, 2), np.float32),
        chance=np.empty((steps, e, n), np.float32),
        reward=np.empty((steps, e, n), np.float32),
        alive=np.empty((steps, e, n), bool),
        died=np.empty((steps, e, n), bool),
        cut=np.zeros((steps, e), bool),
    )
    noise = np.exp(weights["spread"])
    lived.seen[0] = observe(pond)
    for t in range(steps):
        mean = actor(weights, lived.seen[t])
        action = mean + noise * rng.standard_normal(mean.shape, np.float32)
        lived.action[t], lived.alive[t] = action, pond.alive
        lived.chance[t] = log_chance(weights, mean, action)
        lived.died[t] = died = step(pond, action)
        lived.reward[t] = reward(action, died, penalty)
        lived.cut[t] = renew(t + 1, pond)
        lived.seen[t + 1] = observe(pond)
    return lived


def learn(
    weights: Weights, adam: Adam, lived: Lived, rng: np.random.Generator, samples: int, size: int, epochs: int
) -> None:
    batch = sample(weights, lived, rng, samples)
    for _ in range(epochs):
        order = rng.permutation(len(batch.seen))
        for first in range(0, len(order) - size + 1, size):
            part = batch.part(order[first : first + size])
            adam.step(weights, gradients(weights, part, CLIP, ENTROPY))


def sample(weights: Weights, lived: Lived, rng: np.random.Generator, samples: int) -> Batch:
    """Fishes are too many to learn from each of their steps: a random share of those they were alive at."""
    advantage, value = advantages(weights, lived)
    steps = len(lived.alive)
    index = np.flatnonzero(lived.alive)
    index = rng.choice(index, min(samples, len(index)), replace=False)
    chosen = advantage.reshape(-1)[index]
    return Batch(
        seen=lived.seen[:steps].reshape(-1, FEATURES)[index],
        action=lived.action.reshape(-1, 2)[index],
        chance=lived.chance.reshape(-1)[index],
        advantage=(chosen - chosen.mean()) / (chosen.std() + np.float32(1e-6)),
        target=chosen + value[:steps].reshape(-1)[index],
    )


def advantages(weights: Weights, lived: Lived) -> tuple[Array, Array]:
    """Generalised advantage estimates. The dead expect nothing; a cut episode expects what its last state promised."""
    value = np.stack([critic(weights, seen) for seen in lived.seen])  # all at once would not fit into the cache
    advantage = np.zeros_like(lived.reward)
    ahead = np.zeros_like(lived.reward[0])
    for t in range(len(lived.reward) - 1, -1, -1):
        goes_on = ~lived.died[t] & lived.alive[t]
        # after a cut the next row is of another school: its own last value stands for the future
        after = np.where(lived.cut[t][:, None], value[t], value[t + 1]) * goes_on
        ahead = np.where(lived.cut[t][:, None], 0, ahead) * goes_on
        error = lived.reward[t] + DISCOUNT * after - value[t]
        advantage[t] = ahead = error + DISCOUNT * TRACE * ahead
    return advantage, value
