"""Train a robot: python train.py --config full --seed 0 --steps 6000 --out DIR [--from CHECKPOINT]"""

import argparse
import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

# One core per run, so that runs side by side don't slow each other; numpy reads this when it is imported.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

import numpy as np
from model import INPUTS, OUTPUTS, Array, Ensemble
from plan import Planner
from settings import CONFIGS, Settings, resolve
from world import World, shift

MEMORY = ("inputs", "changes", "counts")  # what the robots have seen, a row per step


class Training:
    """All that changes during a run. `save` and `load` carry the whole of it: a resumed run can't tell."""

    def __init__(self, settings: Settings) -> None:
        s = self.settings = settings
        self.rng = np.random.default_rng(s.seed)
        self.world = World(shift(0), s.robots, s.episode_length, self.rng)
        self.model = Ensemble(s.members, s.hidden, s.learning_rate, self.rng)
        self.planner = Planner(s, self.model, s.robots, self.rng)
        self.step = 0
        self.inputs: Array = np.zeros((0, INPUTS), np.float32)
        self.changes: Array = np.zeros((0, OUTPUTS), np.float32)
        self.counts: Array = np.zeros((0, s.members), np.float32)
        self.window: dict[str, list[float]] = {}  # what happened since the last log point
        self.last: dict[str, float] = {}  # what that log point said

    def advance(self) -> None:
        """One step of every robot, one update of the model."""
        before = self.world.state
        if self.step < self.settings.warmup_steps:
            action = self.rng.uniform(-1, 1, (self.settings.robots, 2)).astype(np.float32)
        else:
            action, penalty = self.planner.act(self.world)
            self._note("train/risk_penalty", penalty)
        over = self.world.step(action)
        self.step += self.settings.robots
        self._remember(np.concatenate([before, action], axis=1), self.world.state - before)
        self._learn()
        if over:
            self._note("episode/score", float(self.world.score.mean()))
            self._note("episode/cost", float(self.world.cost.mean()))
            self._note("episode/length", float(self.world.time))
            self.world.reset()
            self.planner.forget()

    def _remember(self, inputs: Array, changes: Array) -> None:
        # Poisson(1) counts make each member's data a bootstrap sample: they agree only where data is plenty.
        counts = self.rng.poisson(1, (len(inputs), self.settings.members)).astype(np.float32)
        self.inputs = np.concatenate([self.inputs, inputs])
        self.changes = np.concatenate([self.changes, changes])
        self.counts = np.concatenate([self.counts, counts])

    def _learn(self) -> None:
        rows = self.rng.integers(len(self.inputs), size=self.settings.batch)
        loss = self.model.update(self.inputs[rows], self.changes[rows], self.counts[rows].T)
        self._note("train/model_loss", loss)

    def _note(self, key: str, value: float) -> None:
        self.window.setdefault(key, []).append(value)

    def summarise(self) -> None:
        """Means since the last log point; no episode keys where no episode ended."""
        self.last = {"train/risk_penalty": 0.0} | {key: float(np.mean(v)) for key, v in self.window.items()}
        self.window = {}

    def save(self, path: Path) -> None:
        arrays = self.model.arrays() | {name: getattr(self, name) for name in MEMORY}
        arrays |= {f"world.{name}": getattr(self.world, name) for name in World.SAVED}
        rest = {
            "settings": asdict(self.settings),
            "step": self.step,
            "updates": self.model.updates,
            "time": self.world.time,
            "rng": self.rng.bit_generator.state,
            "window": self.window,
            "last": self.last,
        }
        write_npz(path, step=self.step, rest=json.dumps(rest), plan=self.planner.plan, **arrays)

    @classmethod
    def load(cls, path: Path) -> "Training":
        with np.load(path) as stored:
            arrays = dict(stored)
        rest: dict[str, Any] = json.loads(str(arrays["rest"]))
        self = cls(Settings(**rest["settings"]))
        for name in World.SAVED:
            setattr(self.world, name, arrays[f"world.{name}"])
        self.model.load(arrays, rest["updates"])
        for name in MEMORY:
            setattr(self, name, arrays[name])
        self.planner.plan = arrays["plan"]
        self.step, self.world.time = rest["step"], rest["time"]
        self.window, self.last = rest["window"], rest["last"]
        self.rng.bit_generator.state = rest["rng"]
        return self


def write_npz(path: Path, **arrays: Any) -> None:
    """Whole or not at all: a reader, or a resume after a kill, never meets half a file."""
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        np.savez(file, **arrays)
    partial.replace(path)


def train(run: Training, steps: int, out: Path, log_every: int, save_every: int) -> None:
    robots, chunk = run.settings.robots, run.settings.robots * run.settings.episode_length
    (out / "replay").mkdir(parents=True, exist_ok=True)
    (out / "config.json").write_text(json.dumps({**asdict(run.settings), "steps": steps}, indent=2) + "\n")
    started = time.time()

    def due(period: int) -> bool:
        return run.step // period > (run.step - robots) // period or run.step >= steps

    with (out / "metrics.jsonl").open("w") as metrics:

        def log() -> None:
            point = {"step": run.step, **run.last, "time": round(time.time() - started, 3)}
            print(json.dumps(point), file=metrics, flush=True)
            print(f"step {run.step}/{steps}", *(f"{k} {v:.3f}" for k, v in run.last.items()), flush=True)

        if run.step >= steps:  # the run before was killed between its last checkpoint and its end
            log()
            run.save(out / "checkpoint.npz")
        while run.step < steps:
            run.advance()
            if due(log_every):
                run.summarise()
                log()
            if due(chunk):
                new = slice((run.step - robots) // chunk * chunk, run.step)
                path = out / "replay" / f"{run.step:08d}.npz"
                write_npz(path, inputs=run.inputs[new], changes=run.changes[new])
            if due(save_every):
                run.save(out / "checkpoint.npz")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, choices=CONFIGS)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--steps", type=int, default=6000, help="environment steps, all robots together")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--from", dest="checkpoint", type=Path, help="continue from this checkpoint")
    parser.add_argument("--log-every", type=int, default=200, help="environment steps")
    parser.add_argument("--save-every", type=int, default=400, help="environment steps")
    args = parser.parse_args()
    settings = resolve(args.config, args.seed)
    run = Training.load(args.checkpoint) if args.checkpoint else Training(settings)
    if run.settings != settings:
        parser.error(f"{args.checkpoint} was trained as {run.settings}, which is not {settings}")
    train(run, args.steps, args.out, args.log_every, args.save_every)


if __name__ == "__main__":
    main()
