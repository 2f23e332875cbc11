"""The example workload is real: it learns, its configs differ, and its certificate lowers the cost.

SAFE_NAV_SEEDS="5 6 7 8 9" runs the same claims on other seeds than the campaign's.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "safe_nav"
CONFIGS = ("baseline", "u_only", "cert_only", "full")
SEEDS = tuple(int(seed) for seed in os.environ.get("SAFE_NAV_SEEDS", "0 1 2 3 4").split())
SPLITS = ("id", "ood")


@dataclass(frozen=True)
class Run:
    curve: list[float]  # episode/score at each log point
    risk: float  # the last train/risk_penalty
    train_s: float
    eval_s: float
    results: dict[str, dict[str, float]]  # split -> result.json


def script(name: str, *args: object) -> float:
    started = time.monotonic()
    subprocess.run([sys.executable, str(EXAMPLE / name), *map(str, args)], check=True, capture_output=True, cwd="/")
    return time.monotonic() - started


def run_one(folder: Path, steps: str, config: str, seed: int) -> Run:
    out = folder / f"{config}-{seed}"
    train_s = script("train.py", "--config", config, "--seed", seed, "--steps", steps, "--out", out)
    points = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    eval_s, results = 0.0, {}
    for split in SPLITS:
        eval_s += script("eval.py", "--checkpoint", out / "checkpoint.npz", "--split", split, "--out", out / split)
        results[split] = json.loads((out / split / "result.json").read_text())
    curve = [point["episode/score"] for point in points]
    return Run(curve, points[-1]["train/risk_penalty"], train_s, eval_s / len(SPLITS), results)


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], Run]:
    folder = tmp_path_factory.mktemp("safe_nav")
    (steps,) = re.findall(r"steps: (\d+)", (EXAMPLE / "campaign.yaml").read_text())
    cells = list(product(CONFIGS, SEEDS))
    with ThreadPoolExecutor(2) as pool:  # one core each
        return dict(zip(cells, pool.map(lambda cell: run_one(folder, steps, *cell), cells), strict=True))


def values(matrix: dict[tuple[str, int], Run], config: str, read: Callable[[Run], float]) -> np.ndarray:
    return np.array([read(matrix[config, seed]) for seed in SEEDS])


def outcome(split: str, metric: str) -> Callable[[Run], float]:
    return lambda run: run.results[split][metric]


def welch(matrix: dict[tuple[str, int], Run]) -> float:
    """Two-sided p of the difference in ood cost between full and baseline."""
    full, baseline = (values(matrix, config, outcome("ood", "cost")) for config in ("full", "baseline"))
    return float(stats.ttest_ind(full, baseline, equal_var=False).pvalue)


def third(part: int) -> Callable[[Run], float]:
    return lambda run: float(np.mean(np.array_split(run.curve, 3)[part]))


def test_prints_its_numbers(matrix: dict[tuple[str, int], Run]) -> None:
    columns: dict[str, Callable[[Run], float]] = {
        "first third": third(0),
        "last third": third(2),
        "risk": lambda run: run.risk,
        **{f"{split} {metric}": outcome(split, metric) for split in SPLITS for metric in ("score", "cost")},
        "train s": lambda run: run.train_s,
        "eval s": lambda run: run.eval_s,
    }
    lines = [f"\nseeds {SEEDS}, mean±sd", f"{'config':10}" + "".join(f"{name:>13}" for name in columns)]
    for config in CONFIGS:
        cells = [values(matrix, config, read) for read in columns.values()]
        lines.append(f"{config:10}" + "".join(f"{f'{c.mean():.2f}±{c.std(ddof=1):.2f}':>13}" for c in cells))
    for config, split in product(CONFIGS, SPLITS):
        score, cost = (values(matrix, config, outcome(split, metric)).round(3).tolist() for metric in ("score", "cost"))
        lines.append(f"{config:10}{split:4} score {score} cost {cost}")
    lines.append(f"ood cost, full against baseline: Welch p = {welch(matrix):.2g}")
    print("\n".join(lines))  # shown by -rP, which make test-all asks for


@pytest.mark.parametrize("config", CONFIGS)
def test_it_learns(matrix: dict[tuple[str, int], Run], config: str) -> None:
    rises = values(matrix, config, third(2)) > values(matrix, config, third(0))
    assert rises.sum() >= len(SEEDS) - 1


def test_full_costs_less_than_baseline_out_of_distribution(matrix: dict[tuple[str, int], Run]) -> None:
    full, baseline = (values(matrix, config, outcome("ood", "cost")) for config in ("full", "baseline"))
    assert full.mean() < baseline.mean()
    assert welch(matrix) < 0.01


@pytest.mark.parametrize(("split", "metric"), list(product(SPLITS, ("score", "cost"))))
def test_no_two_configs_share_their_values(matrix: dict[tuple[str, int], Run], split: str, metric: str) -> None:
    for one, other in combinations(CONFIGS, 2):
        assert not np.array_equal(*(values(matrix, config, outcome(split, metric)) for config in (one, other)))


def test_every_result_names_a_checkpoint_of_its_own(matrix: dict[tuple[str, int], Run]) -> None:
    hashes = {run.results[split]["checkpoint_sha256"] for run in matrix.values() for split in SPLITS}
    assert len(hashes) == len(matrix)


def test_only_the_configs_with_a_risk_weight_pay_for_risk(matrix: dict[tuple[str, int], Run]) -> None:
    paying = {config for (config, _), run in matrix.items() if run.risk > 0}
    assert paying == {"u_only", "full"}
