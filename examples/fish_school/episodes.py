"""Many episodes of one policy, acting without noise: what the gate is told."""

from pathlib import Path

import numpy as np
from nets import Weights, actor
from numpy.typing import NDArray
from pond import observe, ponds, step
from starts import starts

from muster.stages.episodes import Plan

EARLY = 100  # steps
DRAWS = 200
Steps = NDArray[np.int32]


def deaths(weights: Weights, seeds: list[int], fish: int, steps: int) -> Steps:
    """The step at which each fish died, (episodes, fish); `steps + 1` where it lived on."""
    pond = ponds(starts(seeds, fish))
    for _ in range(steps):
        step(pond, actor(weights, observe(pond)))
    return np.where(pond.alive, steps + 1, pond.death).astype(np.int32)


def p10(death: Steps, steps: int) -> float:
    """The step by which a tenth of all fish is dead."""
    return round(float(np.percentile(np.minimum(death, steps), 10)), 1)


def interval(death: Steps, steps: int, seed: int) -> tuple[float, float]:
    """95 % of p10. Whole episodes are drawn: fish of one pond share its hunters, and are no independent witnesses."""
    picks = np.random.default_rng(seed).integers(len(death), size=(DRAWS, len(death)))
    found = np.percentile([p10(death[pick], steps) for pick in picks], [2.5, 97.5])
    return round(float(found[0]), 1), round(float(found[1]), 1)


def measures(death: Steps, steps: int) -> dict[str, float]:
    final = (death > steps).mean(axis=1)
    return {
        "avg_final": round(float(final.mean()), 4),
        "min_final": round(float(final.min()), 4),
        "early_death_100": round(float((death <= EARLY).mean()), 4),
        "first_death_p10": p10(death, steps),
        "step_one": int((death == 1).sum()),
        "step_one_ratio": round(float((death == 1).mean()), 4),
    }


def evaluate(weights: Weights, iteration: int, plan: Plan, fish: int, steps: int) -> dict[str, float]:
    """Every evaluation meets schools of its own; its first episodes tell what the quick look would have shown."""
    seeds = plan.seeds(iteration)
    death = deaths(weights, seeds, fish, steps)
    low, high = interval(death, steps, seeds[0])
    few = measures(death[: plan.probe], steps)
    return (
        measures(death, steps)
        | {"p10_low": low, "p10_high": high, "episodes": plan.full, "fish": fish, "first_seed": seeds[0]}
        | {f"probe_{key}": few[key] for key in ("avg_final", "first_death_p10")}
    )


def record(path: Path, weights: Weights, seed: int, fish: int, steps: int) -> None:
    """One episode as a file that can be drawn: where everybody was at each step, and who was alive."""
    pond = ponds(starts([seed], fish))
    seen = [(pond.fish[0], pond.hunters[0], pond.alive[0].copy())]
    for _ in range(steps):
        step(pond, actor(weights, observe(pond)))
        seen.append((pond.fish[0], pond.hunters[0], pond.alive[0].copy()))
    named = zip(("fish", "hunters", "alive"), zip(*seen, strict=True), strict=True)
    np.savez_compressed(path, **{name: np.stack(values) for name, values in named})
