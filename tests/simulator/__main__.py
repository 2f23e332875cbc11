"""python -m simulator single --histories 100000 --jobs 2 --seed 0   or   single --seed N, which shows one history."""

from __future__ import annotations

import argparse
import sys
import time

from simulator.drawing import FAULT_NAMES, SHAPE_NAMES
from simulator.figures import Figures
from simulator.many import run_many
from simulator.replay import replay


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m simulator", description="The real judge in a made-up world.")
    kinds = parser.add_subparsers(dest="kind", required=True)
    single = kinds.add_parser("single", help="one run at a time: readings, verdicts, causes")
    single.add_argument("--histories", type=int, help="so many, from --seed on, and their figures")
    single.add_argument("--jobs", type=int, default=1, help="processes")
    single.add_argument("--seed", type=int, default=0, help="without --histories: the one to show")
    single.add_argument("--shape", choices=SHAPE_NAMES, help="in place of the drawn one")
    single.add_argument("--fault", choices=FAULT_NAMES, help="in place of the drawn one")
    asked = parser.parse_args(words)
    if asked.histories is None:
        return _show(asked.seed, asked.shape, asked.fault)
    return _count(asked.histories, asked.jobs, asked.seed)


def _show(seed: int, shape: str | None, fault: str | None) -> int:
    text, result = replay(seed, shape=shape, fault=fault)
    print(text)
    return 1 if result.wrongs else 0


def _count(histories: int, jobs: int, seed: int) -> int:
    began = time.monotonic()

    def tell(figures: Figures) -> None:
        took = time.monotonic() - began
        left = took / figures.histories * (histories - figures.histories)
        wrong = figures.wrongs.total()
        print(
            f"\r{figures.histories:,} of {histories:,}, {wrong} wrong, {left / 60:.0f} min left ",
            end="",
            file=sys.stderr,
        )

    figures = run_many(histories, jobs, seed, tell)
    took = time.monotonic() - began
    print(file=sys.stderr)
    print(figures.table())
    print(f"{took:.0f} s, {1000 * took * jobs / max(1, histories):.1f} ms of one process for each history")
    return 0 if figures.met else 1


if __name__ == "__main__":
    sys.exit(main())
