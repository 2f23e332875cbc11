"""Trains a policy on demonstrations with shifted labels: an L1 loss, and a transport loss that forgives shifts.

As LeRobot does: `python train.py --config_path=cfg.json --steps=400 --output_dir=DIR [--a.b=value]`; DIR must not
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
from data import demonstrations
from ot import transport
from policy import Policy

SUCCESS = 0.055  # mean distance from the true chunk that counts as a success


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
    observations, labels, _ = demonstrations(512, wanted["jitter"], seed=1)
    unseen, _, true = demonstrations(256, 0, seed=2)
    policy = Policy(wanted["hidden"], wanted["seed"])
    ot = wanted["ot"]
    for step in range(1, wanted["steps"] + 1):
        chosen = rng.integers(0, len(observations), wanted["batch_size"])
        apart = policy(observations[chosen]) - labels[chosen]
        l1 = float(np.abs(apart).mean())
        moved = transport(policy(observations[chosen]), labels[chosen], ot["loss_config"], ot["window"])
        gradient = np.sign(apart) / apart.size + ot["lambda_ot"] * moved.gradient
        norm = policy.learn(
            observations[chosen], gradient, wanted["optimizer"]["lr"], wanted["optimizer"]["weight_decay"]
        )
        row = {"train": {"l1": l1, "loss": l1 + ot["lambda_ot"] * moved.loss}, "grad_norm": norm,
               "ot": {"pi_sum": moved.pi_sum, "pi_diag": moved.pi_diag, "cost": moved.cost}}  # fmt: skip
        if step % wanted["eval_freq"] == 0 or step == wanted["steps"]:
            distance = np.abs(policy(unseen) - true).mean((1, 2))
            row["eval"] = {"success": float((distance < SUCCESS).mean()), "distance": float(distance.mean())}
        if step % wanted["log_freq"] == 0 or "eval" in row:
            log(row, step)
            print(f"step:{step} l1:{l1:.4f} pi_sum:{moved.pi_sum:.4f} grdn:{norm:.3f}", flush=True)


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
