"""Demonstrations: a few careful ones, and many hasty ones whose labels can't be trusted step by step."""

from __future__ import annotations

import numpy as np

CHUNK, ACTION, OBSERVATION = 16, 4, 8
ASTRAY = 0.25  # of the hasty demonstrations: their operator did something else


def careful(count: int, chunks_each: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Observations and labels, on time and nearly exact."""
    rng = np.random.default_rng(seed)
    observations = rng.normal(size=(count * chunks_each, OBSERVATION))
    return observations, _shaken(chunks(observations), 0.02, rng)


def hasty(count: int, chunks_each: int, jitter: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Each is late or early by up to `jitter` steps, shaky, and some have the labels of another task altogether."""
    rng = np.random.default_rng(seed)
    observations = rng.normal(size=(count * chunks_each, OBSERVATION))
    others = chunks(rng.normal(size=observations.shape))
    astray = np.repeat(rng.random(count) < ASTRAY, chunks_each)
    done = np.where(astray[:, None, None], others, chunks(observations))
    shifts = np.repeat(rng.integers(-jitter, jitter + 1, size=count), chunks_each)
    steps = np.clip(np.arange(CHUNK)[None, :] + shifts[:, None], 0, CHUNK - 1)
    return observations, _shaken(np.take_along_axis(done, steps[:, :, None], axis=1), 0.05, rng)


def unseen(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Held out: observations, and what a perfect policy would do there."""
    observations = np.random.default_rng(seed).normal(size=(count, OBSERVATION))
    return observations, chunks(observations)


def chunks(observations: np.ndarray) -> np.ndarray:
    """Reach towards a goal that the observation tells, along a curve."""
    time = np.linspace(0, 1, CHUNK)[None, :, None]
    goal = np.tanh(observations[:, None, :ACTION])
    bend = 0.5 * np.sin(np.pi * time) * np.tanh(observations[:, None, ACTION : 2 * ACTION])
    return goal * (3 * time**2 - 2 * time**3) + bend


def _shaken(labels: np.ndarray, spread: float, rng: np.random.Generator) -> np.ndarray:
    return labels + spread * rng.normal(size=labels.shape)
