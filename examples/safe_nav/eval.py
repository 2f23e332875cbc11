"""Evaluate a checkpoint: python eval.py --checkpoint FILE --split id|ood [--shift.level N] --out DIR"""

import argparse
import hashlib
import json
import os
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

import numpy as np
from plan import Planner
from train import Training
from world import World, shift

EPISODES = 48
LEVELS = {"id": 0, "ood": 2}
TEST_SEED = 10_000  # the same layouts for every checkpoint, and none that training saw


def evaluate(run: Training, level: int, episodes: int) -> tuple[float, float]:
    """Mean score and cost of whole episodes, played side by side with a model that no longer learns."""
    chance, ideas = (np.random.default_rng([TEST_SEED, level, part]) for part in (0, 1))
    world = World(shift(level), episodes, run.settings.episode_length, chance)
    planner = Planner(run.settings, run.model, episodes, ideas)
    while not world.step(planner.act(world)[0]):
        pass
    return float(world.score.mean()), float(world.cost.mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--split", choices=LEVELS, required=True)
    parser.add_argument("--shift.level", dest="level", type=int, help="0 is the training world")
    parser.add_argument("--episodes", type=int, default=EPISODES)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    level = LEVELS[args.split] if args.level is None else args.level
    if (level == 0) != (args.split == "id"):
        parser.error(f"--split {args.split} does not go with --shift.level {level}")
    run = Training.load(args.checkpoint)
    score, cost = evaluate(run, level, args.episodes)
    result = {
        "score": score,
        "cost": cost,
        "episodes": args.episodes,
        "split": args.split,
        "level": level,
        "checkpoint_sha256": hashlib.sha256(args.checkpoint.read_bytes()).hexdigest(),
    }
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "result.json").write_text(json.dumps(result, indent=2) + "\n")
    print(f"{args.split} (level {level}): score {score:.3f}, cost {cost:.3f} over {args.episodes} episodes")


if __name__ == "__main__":
    main()
