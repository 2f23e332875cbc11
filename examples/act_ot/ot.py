"""Unbalanced optimal transport between predicted and labelled actions, within a window of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from data import ACTION

ITERATIONS = 20
PER_STEP = 0.1  # cost of a label that is one step away
PARTS = {"arm": slice(0, 3), "gripper": slice(3, 4)}  # of an action


@dataclass(frozen=True)
class Transport:
    """Of a batch: its cost, the gradient of that, and how much mass was moved, in all and to the very same step."""

    cost: float
    gradient: np.ndarray
    pi_sum: float
    pi_diag: float


def transport(predicted: np.ndarray, labels: np.ndarray, settings: dict[str, Any], window: int) -> Transport:
    """By Sinkhorn's iteration with marginals that may be missed, at the price `tau`; `reg` softens the plan.

    With a small `tau` mass whose way is long is thrown away, with a large one all of it must be moved, to wrong labels,
    too. The plan is held fixed for the gradient.
    """
    reg, tau_src, tau_tgt = settings["reg"], settings["tau_src"], settings["tau_tgt"]
    weights = _weights(settings["features"])
    length = predicted.shape[1]
    apart = predicted[:, :, None, :] - labels[:, None, :, :]
    late = _steps_apart(length)
    cost = (weights * apart**2).sum(-1) + PER_STEP * late
    kernel = np.exp(-cost / reg) * (late <= window) / length**2
    back = np.ascontiguousarray(kernel.transpose(0, 2, 1))
    u = np.ones((*predicted.shape[:2], 1))
    v = np.ones_like(u)
    for _ in range(ITERATIONS):
        u = (1 / length / np.maximum(kernel @ v, 1e-30)) ** (tau_src / (tau_src + reg))
        v = (1 / length / np.maximum(back @ u, 1e-30)) ** (tau_tgt / (tau_tgt + reg))
    plan = u * kernel * v.transpose(0, 2, 1)
    gradient = 2 * weights * (plan[..., None] * apart).sum(2) / len(predicted)
    moved, diagonal = plan.sum((1, 2)).mean(), np.einsum("bii->b", plan).mean()
    return Transport(float((plan * cost).sum((1, 2)).mean()), gradient, float(moved), float(diagonal))


def _weights(features: list[dict[str, Any]]) -> np.ndarray:
    """What a squared distance between actions costs in each of their dimensions."""
    weights = np.zeros(ACTION)
    for feature in features:
        weights[PARTS[feature["name"]]] = feature["weight_label"]
    return weights


def _steps_apart(length: int) -> np.ndarray:
    steps = np.arange(length)
    return np.abs(steps[:, None] - steps[None, :]).astype(float)
