"""Unbalanced optimal transport between predicted and labelled actions, within a window of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

ITERATIONS = 20


@dataclass(frozen=True)
class Transport:
    """Of a batch: the loss of each chunk, its gradient, and how much mass was moved where."""

    loss: float
    gradient: np.ndarray
    pi_sum: float
    pi_diag: float
    cost: float


def transport(predicted: np.ndarray, labels: np.ndarray, settings: dict[str, Any], window: int) -> Transport:
    """By Sinkhorn's iteration with marginals that may be missed; the plan is held fixed for the gradient."""
    weight = float(np.mean([feature["weight_label"] for feature in settings["features"]]))
    reg, tau_src, tau_tgt = settings["reg"], settings["tau_src"], settings["tau_tgt"]
    length = predicted.shape[1]
    apart = predicted[:, :, None, :] - labels[:, None, :, :]
    cost = weight * (apart**2).sum(-1) + 0.05 * _steps_apart(length)[None]
    kernel = np.exp(-cost / reg) * (_steps_apart(length) <= window)[None] / length**2
    mass = np.full(length, 1 / length)
    u = np.ones(predicted.shape[:2])
    v = np.ones_like(u)
    for _ in range(ITERATIONS):
        u = (mass / np.maximum(np.einsum("bij,bj->bi", kernel, v), 1e-30)) ** (tau_src / (tau_src + reg))
        v = (mass / np.maximum(np.einsum("bij,bi->bj", kernel, u), 1e-30)) ** (tau_tgt / (tau_tgt + reg))
    plan = u[:, :, None] * kernel * v[:, None, :]
    moved = float((plan * cost).sum((1, 2)).mean())
    gradient = 2 * weight * (plan[..., None] * apart).sum(2) / len(predicted)
    return Transport(moved, gradient, float(plan.sum((1, 2)).mean()),
                     float(np.einsum("bii->b", plan).mean()), moved)  # fmt: skip


def _steps_apart(length: int) -> np.ndarray:
    steps = np.arange(length)
    return np.abs(steps[:, None] - steps[None, :]).astype(float)
