"""Demonstrations whose labels are late or early by some steps: a chunk of actions for each observation."""

from __future__ import annotations

import numpy as np

CHUNK, ACTION, OBSERVATION = 16, 4, 8


def demonstrations(count: int, jitter: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Observations, labels shifted in time by up to `jitter` steps, and the true chunks."""
    rng = np.random.default_rng(seed)
    observations = rng.normal(size=(count, OBSERVATION))
    true = chunks(observations)
    shifts = rng.integers(-jitter, jitter + 1, size=count)
    index = np.clip(np.arange(CHUNK)[None, :] + shifts[:, None], 0, CHUNK - 1)
    labels = np.take_along_axis(true, index[:, :, None], axis=1)
    return observations, labels + 0.02 * rng.normal(size=labels.shape), true


def chunks(observations: np.ndarray) -> np.ndarray:
    """What a perfect policy would do: reach towards a goal that the observation tells, along a curve."""
    time = np.linspace(0, 1, CHUNK)[None, :, None]
    goal = np.tanh(observations[:, None, :ACTION])
    bend = 0.5 * np.sin(np.pi * time) * np.tanh(observations[:, None, ACTION : 2 * ACTION])
    return goal * (3 * time**2 - 2 * time**3) + bend
