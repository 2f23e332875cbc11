"""What a report, a trace and a verification cost, in a process of their own, from a warm state."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

# scores that differ from cell to cell, without starting Python for each: the checksum of the cell's name
EVALUATE = (
    """/bin/sh -c 'n=$(echo {cell} | cksum | cut -d" " -f1); """
    """printf "{{\\"score\\": 1.%06d, \\"cost\\": 9.%06d}}" $((n % 999983)) $((n % 777767)) > {out}/result.json'"""
)
TRAIN = (
    """/bin/sh -c 'for i in 1 2 3 4 5 6 7 8; do """
    """echo "{{\\"step\\": $i, \\"score\\": $i.{seed}, \\"cost\\": 9.$i}}"; done > {out}/metrics.jsonl; """
    """head -c 40000 /dev/urandom > {out}/model.bin'"""
)


def sprint(seeds: int) -> str:
    return f"""\
muster: 1
campaign: bench
axes: {{config: [base, a, b, c], seed: [{", ".join(map(str, range(seeds)))}], split: [id, ood]}}
slots: {{gpus: 0, cpus: 2}}
jobs:
  train:
    axes: [config, seed]
    command: >-
      {TRAIN}
    progress: [{{jsonl: metrics.jsonl, step: step}}, {{checkpoint: model.bin}}]
  eval:
    axes: [config, seed, split]
    needs: [train]
    command: >-
      {EVALUATE}
    results: {{score: {{json: result.json, key: score}}, cost: {{json: result.json, key: cost}}}}
decision:
  primary: {{metric: score, split: ood, better: higher}}
  baseline: base
  limit: {{metric: cost, split: ood, max: 25}}
  delta: 0.3
"""


def timed(root: Path, *arguments: str, times: int = 3) -> tuple[float, float, int]:
    """Seconds (median), peak of memory in MB, and the exit code."""
    spent, code, peak = [], 0, 0.0
    for _ in range(times):
        began = time.perf_counter()
        command = [sys.executable, "-m", "muster", "-C", str(root), *arguments]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as started:
            _, status, usage = os.wait4(started.pid, 0)
            started.returncode = code = os.waitstatus_to_exitcode(status)
        spent.append(time.perf_counter() - began)
        peak = max(peak, usage.ru_maxrss / 1024)
    return statistics.median(spent), peak, code


def import_floor() -> float:
    """Seconds to start Python and import what draws the figures."""
    spent = []
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import matplotlib.figure"], check=True)
        spent.append(time.perf_counter() - began)
    return statistics.median(spent)
