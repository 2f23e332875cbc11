"""Finds the hard starts that the tail schedule mixes in, and writes seeds_*.json; the files are there, this is how.

python make_seeds.py [FOLDER]

A school that flees straight from its hunters meets each candidate; those that cost it most of its
first 100 steps are kept. `ne`: hunters come from the north-east corner, and quick. `main`: open
starts; the second file holds the harder ones.
"""

import json
import sys
from pathlib import Path

import numpy as np
from pond import HUNTERS, observe, ponds, step
from starts import starts

CANDIDATES, KEPT, FISH, EARLY = 400, 24, 25, 100


def lives(seeds: range, kind: str) -> list[float]:
    """How many of the first steps a fish lives through on average, by seed."""
    pond = ponds(starts(seeds, FISH, kind))
    for _ in range(EARLY):
        step(pond, -5 * observe(pond)[..., HUNTERS])
    return [float(life) for life in np.where(pond.alive, EARLY, pond.death).mean(axis=1)]


def hardest(seeds: range, kind: str, skip: int = 0) -> list[dict[str, object]]:
    found = sorted(zip(lives(seeds, kind), seeds, strict=True))[skip : skip + KEPT]
    return [{"seed": seed, "type": kind, "life": round(life, 1)} for life, seed in found]


def main(folder: Path) -> None:
    wanted = {
        "seeds_ne.json": hardest(range(CANDIDATES), "ne"),
        "seeds_main.json": hardest(range(CANDIDATES), "main", skip=KEPT),
        "seeds_main_2.json": hardest(range(CANDIDATES), "main"),
    }
    for name, found in wanted.items():
        lines = ",\n".join(json.dumps(each) for each in found)
        (folder / name).write_text(f"[\n{lines}\n]\n")
        print(name, len(found), "starts; a fish lives for", found[0]["life"], "to", found[-1]["life"], "of", EARLY)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
