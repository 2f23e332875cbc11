"""A policy that all fish share, and a value beside it: two small networks, their gradients and Adam, in numpy."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Weights = dict[str, Array]

HIDDEN = 32


def new_weights(rng: np.random.Generator, inputs: int) -> Weights:
    """Actor (a*) and critic (c*), each with one hidden layer; `spread` is the log of the actor's noise."""
    weights = {}
    for net, outputs, last in (("a", 2, 0.01), ("c", 1, 0.1)):
        weights[f"{net}1"] = rng.normal(0, 1 / np.sqrt(inputs), (inputs, HIDDEN))
        weights[f"{net}1_bias"] = np.zeros(HIDDEN)
        weights[f"{net}2"] = rng.normal(0, last / np.sqrt(HIDDEN), (HIDDEN, outputs))
        weights[f"{net}2_bias"] = np.zeros(outputs)
    weights["spread"] = np.full(2, -0.7)
    return {name: value.astype(np.float32) for name, value in weights.items()}


def actor(w: Weights, seen: Array) -> Array:
    """The mean action, (..., 2)."""
    hidden = np.tanh(seen @ w["a1"] + w["a1_bias"])
    return np.asarray(hidden @ w["a2"] + w["a2_bias"])


def critic(w: Weights, seen: Array) -> Array:
    hidden = np.tanh(seen @ w["c1"] + w["c1_bias"])
    return np.asarray((hidden @ w["c2"] + w["c2_bias"])[..., 0])


def log_chance(w: Weights, mean: Array, action: Array) -> Array:
    off = (action - mean) / np.exp(w["spread"])
    return np.asarray(-0.5 * (off * off).sum(axis=-1) - w["spread"].sum() - np.log(2 * np.pi), np.float32)


@dataclass(frozen=True)
class Batch:
    seen: Array
    action: Array
    chance: Array  # log probability under the policy that acted
    advantage: Array
    target: Array  # of the value

    def part(self, index: NDArray[np.intp]) -> "Batch":
        return Batch(*(getattr(self, name)[index] for name in self.__dataclass_fields__))


def gradients(w: Weights, batch: Batch, clip: float, entropy: float) -> Weights:
    """Of PPO's clipped loss and the value's squared error, by hand."""
    grads: Weights = {}
    n = np.float32(len(batch.seen))
    hidden = np.tanh(batch.seen @ w["a1"] + w["a1_bias"])
    mean = hidden @ w["a2"] + w["a2_bias"]
    inverse = np.exp(-2 * w["spread"])
    off = batch.action - mean
    ratio = np.exp(np.clip(log_chance(w, mean, batch.action) - batch.chance, -20, 20))
    # where the clip holds, the loss is flat
    free = np.where(batch.advantage > 0, ratio < 1 + clip, ratio > 1 - clip)
    pull = (-batch.advantage * ratio * free / n)[:, None]  # d loss / d log chance
    _layers(grads, "a", w, batch.seen, hidden, pull * off * inverse)
    grads["spread"] = (pull * (off * off * inverse - 1)).sum(axis=0) - np.float32(entropy)
    hidden = np.tanh(batch.seen @ w["c1"] + w["c1_bias"])
    error = (hidden @ w["c2"] + w["c2_bias"])[:, 0] - batch.target
    _layers(grads, "c", w, batch.seen, hidden, (error / n)[:, None])
    return grads


def _layers(grads: Weights, net: str, w: Weights, seen: Array, hidden: Array, out: Array) -> None:
    grads[f"{net}2"] = hidden.T @ out
    grads[f"{net}2_bias"] = out.sum(axis=0)
    back = (out @ w[f"{net}2"].T) * (1 - hidden * hidden)
    grads[f"{net}1"] = seen.T @ back
    grads[f"{net}1_bias"] = back.sum(axis=0)


class Adam:
    """Moments are kept by name, so that a checkpoint holds them as plain arrays."""

    def __init__(self, weights: Weights, rate: float) -> None:
        self.rate, self.time = rate, 0
        self.first = {name: np.zeros_like(value) for name, value in weights.items()}
        self.second = {name: np.zeros_like(value) for name, value in weights.items()}

    def step(self, weights: Weights, grads: Weights, longest: float = 0.5) -> None:
        norm = float(np.sqrt(sum(float((g * g).sum()) for g in grads.values())))
        shrink = np.float32(min(1.0, longest / (norm + 1e-8)))
        self.time += 1
        rate = self.rate * np.sqrt(1 - 0.999**self.time) / (1 - 0.9**self.time)
        for name, grad in grads.items():
            g = grad * shrink
            self.first[name] += np.float32(0.1) * (g - self.first[name])
            self.second[name] += np.float32(0.001) * (g * g - self.second[name])
            weights[name] -= np.float32(rate) * self.first[name] / (np.sqrt(self.second[name]) + np.float32(1e-8))
