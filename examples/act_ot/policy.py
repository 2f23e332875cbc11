"""A small network from an observation to a chunk of actions, with Adam."""

from __future__ import annotations

import numpy as np
from data import ACTION, CHUNK, OBSERVATION


class Policy:
    def __init__(self, hidden: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.weights = [
            rng.normal(size=(OBSERVATION, hidden)) * OBSERVATION**-0.5, np.zeros(hidden),
            rng.normal(size=(hidden, CHUNK * ACTION)) * hidden**-0.5, np.zeros(CHUNK * ACTION),
        ]  # fmt: skip
        self._first = [np.zeros_like(each) for each in self.weights]
        self._second = [np.zeros_like(each) for each in self.weights]
        self._steps = 0

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        hidden = np.tanh(observations @ self.weights[0] + self.weights[1])
        return (hidden @ self.weights[2] + self.weights[3]).reshape(-1, CHUNK, ACTION)

    def learn(self, observations: np.ndarray, gradient: np.ndarray, lr: float, decay: float) -> float:
        """One step of Adam; the norm of the gradient."""
        hidden = np.tanh(observations @ self.weights[0] + self.weights[1])
        behind = gradient.reshape(len(observations), -1)
        before = (behind @ self.weights[2].T) * (1 - hidden**2)
        gradients = [observations.T @ before, before.sum(0), hidden.T @ behind, behind.sum(0)]
        gradients = [each + decay * weight for each, weight in zip(gradients, self.weights, strict=True)]
        self._steps += 1
        for at, each in enumerate(gradients):
            self._first[at] = 0.9 * self._first[at] + 0.1 * each
            self._second[at] = 0.999 * self._second[at] + 0.001 * each**2
            first = self._first[at] / (1 - 0.9**self._steps)
            second = self._second[at] / (1 - 0.999**self._steps)
            self.weights[at] -= lr * first / (np.sqrt(second) + 1e-8)
        return float(np.sqrt(sum((each**2).sum() for each in gradients)))
