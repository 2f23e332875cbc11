"""Trains a policy on a few careful demonstrations with an L1 loss, and on many hasty ones by optimal transport.

Hasty labels are late, early or wrong. The transport loss forgives shifts within a window and throws away what fits
nowhere; how much it moves at all, its settings say. `eval.l1` is on held-out observations.

As LeRobot does: `python train.py --config_path=cfg.json --steps=2000 --output_dir=DIR [--a.b=value]`; DIR must not
exist. What it logs goes to W&B (offline by default) and nowhere else: whoever wants the history reads its `.wandb`.
Where the package is missing, it goes to `metrics.jsonl`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from data import CHUNK, careful, hasty, unseen
from ot import Transport, transport
from policy import Policy

SUCCESS = 0.04  # mean distance from the true chunk that counts as a success


def settings(arguments: list[str]) -> dict[str, Any]:
    """The config file, with what the command line says in its place."""
    named = dict(argument.removeprefix("--").split("=", 1) for argument in arguments)
    found: dict[str, Any] = json.loads(Path(named.pop("config_path")).read_text())
    for path, text in named.items():
        *folders, last = path.split(".")
        holder = found
        for folder in folders:
            holder = holder.setdefault(folder, {})
        try:
            holder[last] = json.loads(text)
        except ValueError:
            holder[last] = text
    return found


def train(wanted: dict[str, Any], log: Callable[[dict[str, Any], int], None]) -> None:
    rng = np.random.default_rng(wanted["seed"])
    observations, labels = careful(20, 2, seed=1)
    others, doubtful = hasty(99, 8, wanted["jitter"], seed=2)
    judges = Judges(wanted)
    policy = Policy(wanted["hidden"], wanted["seed"])
    ot, optimizer, batch = wanted["ot"], wanted["optimizer"], wanted["batch_size"]
    for step in range(1, wanted["steps"] + 1):
        some, more = rng.integers(0, len(observations), batch), rng.integers(0, len(others), batch)
        seen = np.concatenate([observations[some], others[more]])
        predicted = policy(seen)
        apart = predicted[:batch] - labels[some]
        moved = transport(predicted[batch:], doubtful[more], ot["loss_config"], ot["window"])
        gradient = np.concatenate([np.sign(apart) / apart.size, ot["lambda_ot"] * CHUNK * moved.gradient])
        norm = policy.learn(seen, gradient, optimizer["lr"], optimizer["weight_decay"])
        last = step == wanted["steps"]
        if last or step % wanted["log_freq"] == 0:
            l1, plan = float(np.abs(apart).mean()), judges.plan(policy)
            row = {"train": {"l1": l1, "loss": l1 + ot["lambda_ot"] * CHUNK * moved.cost}, "grad_norm": norm,
                   "ot": {"pi_sum": plan.pi_sum, "pi_diag": plan.pi_diag, "cost": plan.cost}}  # fmt: skip
            if last or step % wanted["eval_freq"] == 0:
                row["eval"] = judges.held_out(policy)
            log(row, step)
            print(f"step:{step} l1:{l1:.4f} pi_sum:{plan.pi_sum:.4f} grdn:{norm:.3f}", flush=True)


class Judges:
    """Demonstrations that nobody learns from."""

    def __init__(self, wanted: dict[str, Any]) -> None:
        self._ot = wanted["ot"]
        self._observations, self._true = unseen(512, seed=3)
        self._others, self._doubtful = hasty(32, 4, wanted["jitter"], seed=4)

    def plan(self, policy: Policy) -> Transport:
        """Always of the same hasty ones: from batch to batch too much depends on how many are astray."""
        return transport(policy(self._others), self._doubtful, self._ot["loss_config"], self._ot["window"])

    def held_out(self, policy: Policy) -> dict[str, float]:
        distance = np.abs(policy(self._observations) - self._true).mean((1, 2))
        return {"l1": float(distance.mean()), "success": float((distance < SUCCESS).mean())}


def to_jsonl(path: Path) -> Callable[[dict[str, Any], int], None]:
    def log(row: dict[str, Any], step: int) -> None:
        with path.open("a") as file:
            file.write(json.dumps({"step": step, **row}) + "\n")

    return log


def main() -> None:
    wanted = settings(sys.argv[1:])
    folder = Path(wanted["output_dir"])
    folder.mkdir(parents=True)  # as LeRobot: a folder that exists is an error
    (folder / "train_config.json").write_text(json.dumps(wanted, indent=2))
    try:
        import wandb
    except ImportError:
        train(wanted, to_jsonl(folder / "metrics.jsonl"))
        return
    mode = wanted.get("wandb", {}).get("mode", os.environ.get("WANDB_MODE", "offline"))
    run = wandb.init(project=wanted.get("wandb", {}).get("project", "act-ot"), dir=str(folder), mode=mode,
                     config=wanted, settings=wandb.Settings(silent=True, x_disable_stats=True))  # fmt: skip
    train(wanted, lambda row, step: run.log(row, step=step))
    run.finish()


if __name__ == "__main__":
    main()
