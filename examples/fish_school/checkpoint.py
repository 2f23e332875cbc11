"""Everything that a later iteration rests on, in one file that is there whole or not at all."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from nets import Adam, Weights
from records import whole

FILE = "checkpoint.npz"


def save(path: Path, weights: Weights, adam: Adam, rng: np.random.Generator, rest: dict[str, Any]) -> None:
    """`rest`: what JSON can hold: iteration, gate, cycler, rows."""
    told = {"adam_time": adam.time, "rng": rng.bit_generator.state} | rest
    arrays = {f"w.{name}": value for name, value in weights.items()}
    arrays |= {f"m.{name}": value for name, value in adam.first.items()}
    arrays |= {f"v.{name}": value for name, value in adam.second.items()}
    held = io.BytesIO()
    np.savez(held, told=np.array(json.dumps(told)), **arrays)
    whole(path, held.getvalue())


def told_by(path: Path) -> dict[str, Any]:
    """What is no array."""
    with np.load(path) as found:
        told: dict[str, Any] = json.loads(str(found["told"]))
    return told


def load(path: Path, weights: Weights, adam: Adam, rng: np.random.Generator) -> dict[str, Any]:
    """Fills them, and returns the rest."""
    told = told_by(path)
    with np.load(path) as found:
        for prefix, into in (("w", weights), ("m", adam.first), ("v", adam.second)):
            for name in into:
                into[name] = found[f"{prefix}.{name}"]
    adam.time = told.pop("adam_time")
    rng.bit_generator.state = told.pop("rng")
    return told
