"""Larger counts than a test may take: storms, simulated campaigns, hostile inputs, until time is up.

make soak SEED=1 MINUTES=30            of all kinds, in turn
make soak SEED=1 MINUTES=30 ONLY=storm  of one kind: storm, crashes, simulated, fuzz

Each round is one line of soak.jsonl with its seed, what it counted and whether it held. A second call leaves out the
seeds that the file has, goes on, and prints the sums of all rounds, and the largest of what
was worst. Exit 1 if any failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LOG = ROOT / "soak.jsonl"
CAMPAIGNS = 50  # simulated ones in a round
_CRASHES = re.compile(r"(\d+) injections in (\d+) campaigns .*?: (\d+) executions, (\d+) attempts, (\d+) cells done")
INPUTS, GUIDED = 5000, 300  # hostile ones in a round, and how many of them hypothesis chooses
_FUZZ = re.compile(r"fuzz: (\d+) inputs, \d+ readers, (\d+) failures, worst ([\d.]+) s \([^)]*\), ([\d.]+) MB")
WORST = ("worst_s", "worst_mb")  # of one input: no sum of them means anything
_SIMULATED = re.compile(r"(\d+) campaigns, (\d+) with a violation")


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="the first seed; those that the log has are left out")
    parser.add_argument("--minutes", type=float, default=10, help="no round begins later than this")
    parser.add_argument("--only", choices=[*ROUNDS], help="rounds of this kind alone")
    asked = parser.parse_args(words)
    until = time.monotonic() + 60 * asked.minutes
    done = {(row["kind"], row["seed"]) for row in _rounds()}
    for seed in count(asked.seed):
        if time.monotonic() >= until:
            break
        for kind, run in ROUNDS.items():
            if asked.only in (None, kind) and (kind, seed) not in done:
                _write_round(kind, seed, *run(seed))
    return _print_sums()


def run_storm(seed: int) -> tuple[str, int]:
    """Signals, deletions and errors over two campaigns, and their calm. What broke is kept in the folder it names."""
    return _run([sys.executable, str(ROOT / "tests/faults/storm.py"), "--seed", str(seed)], {})


def run_crashes(seed: int) -> tuple[str, int]:
    """A hundred kills at named points; nothing may be lost and nothing run twice."""
    test = "tests/faults/test_random_crashes.py::test_small_storm"
    command = [sys.executable, "-m", "pytest", "-q", "-rP", "-p", "no:cacheprovider", test]
    return _run(command, {"MUSTER_STORM_SEED": str(1000 * seed)})


def run_simulated(seed: int) -> tuple[str, int]:
    """Whole campaigns with faults and people in the simulator's world."""
    first = 1_000_000 + CAMPAIGNS * seed
    module = [sys.executable, "-m", "simulator.campaign"]
    return _run(
        [*module, "--campaigns", str(CAMPAIGNS), "--seed", str(first), "--jobs", "2"],
        {"PYTHONPATH": str(ROOT / "tests")},
    )


def run_fuzz(seed: int) -> tuple[str, int]:
    """Every reader gets hostile inputs, and no input may take more than its limits. CI has seed 0."""
    asked = ["--inputs", str(INPUTS), "--guided", str(GUIDED), "--seed", str(seed)]
    return _run([sys.executable, str(ROOT / "tests/fuzz/harness.py"), *asked], {"PYTHONHASHSEED": "0"})


ROUNDS: dict[str, Callable[[int], tuple[str, int]]] = {
    "storm": run_storm,
    "crashes": run_crashes,
    "simulated": run_simulated,
    "fuzz": run_fuzz,
}


def _run(command: list[str], more: dict[str, str]) -> tuple[str, int]:
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **more}, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr, done.returncode


def _rounds() -> list[dict[str, Any]]:
    if not LOG.exists():
        return []
    return [json.loads(line) for line in LOG.read_text(encoding="utf-8").splitlines() if line.endswith("}")]


def _write_round(kind: str, seed: int, output: str, code: int) -> None:
    row = {"kind": kind, "seed": seed, "ok": code == 0, "counts": read_counts(kind, output)}
    with LOG.open("a", encoding="utf-8") as log:
        log.write(json.dumps(row) + "\n")
    told = ", ".join(f"{name} {number}" for name, number in row["counts"].items())
    print(f"{kind} {seed}: {'held' if code == 0 else 'FAILED'}; {told}", flush=True)
    if code:
        print(output[-4000:], file=sys.stderr)


def read_counts(kind: str, output: str) -> dict[str, float]:
    if kind == "storm":
        told = next((line for line in output.splitlines() if line.startswith('{"counts"')), "{}")
        return dict(json.loads(told).get("counts", {}))
    if kind == "crashes":
        names: tuple[str, ...] = ("injections", "campaigns", "executions", "attempts", "cells")
        found = _CRASHES.search(output)
    elif kind == "fuzz":
        names, found = ("inputs", "failures", *WORST), _FUZZ.search(output)
    else:
        names, found = ("campaigns", "violations"), _SIMULATED.search(output)
    return dict(zip(names, map(_number, found.groups()), strict=True)) if found else {}


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)


def summed(counts: list[dict[str, float]]) -> dict[str, float]:
    """Rounds of earlier versions have nothing of what was worst."""
    total: dict[str, float] = {}
    for each in counts:
        for name, number in each.items():
            before = total.get(name, 0)
            total[name] = max(before, number) if name in WORST else before + number
    return total


def _print_sums() -> int:
    rounds = _rounds()
    for kind in ROUNDS:
        mine = [row for row in rounds if row["kind"] == kind]
        total = summed([row["counts"] for row in mine])
        told = ", ".join(f"{name} {number}" for name, number in total.items())
        print(f"all of {kind}: {len(mine)} rounds, {sum(not row['ok'] for row in mine)} failed; {told}")
    return 0 if all(row["ok"] for row in rounds) else 1


if __name__ == "__main__":
    sys.exit(main())
