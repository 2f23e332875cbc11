"""Honest campaigns are not INVALID, and copies are caught. `pytest -s -m slow` with this file prints the table."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from muster.app.facts.cell_provenance import find_cell_making
from muster.model.attempt import Attempt, CellRecord, Outcome
from muster.model.cell import Cell, list_campaign_cells
from muster.model.provenance import ResultOrigins
from muster.model.verdict import VerdictState
from muster.spec import read_campaign
from muster.stats.flags_of_provenance import flag_making
from muster.stats.flags_of_values import flag_values
from muster.stats.red_flags import CellMaking, MeasuredCell
from muster.stats.samples import Sample

pytestmark = pytest.mark.slow

CAMPAIGNS, CONFIGS, MOST = 2000, 4, 0.002
Numbers = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Numbers]


def rate(examples: int, mean: float, sd: float, *, unit: float = 1.0, decimals: int | None = None) -> Draw:
    """Accuracy on so many examples: a multiple of 1/examples, perhaps in percent, perhaps rounded."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
        parts = np.rint(np.clip(rng.normal(mean, sd, shape), 0, 1) * examples) / examples * unit
        return parts if decimals is None else np.round(parts, decimals)

    return draw


def modes(*middles: float, sd: float, decimals: int) -> Draw:
    """Runs that find one of several solutions."""
    return lambda rng, shape: np.round(rng.choice(middles, shape) + rng.normal(0.0, sd, shape), decimals)


def plateau(share: float, value: float, mean: float, sd: float) -> Draw:
    """Runs of which so many never get off the ground; what the others reach is a whole number."""
    return lambda rng, shape: np.where(rng.random(shape) < share, value, np.rint(rng.normal(mean, sd, shape)))


FINE = 10**9
ROWS: dict[str, tuple[Draw, int]] = {  # how the values come about, and how many splits there are
    "CIFAR-10, rate": (rate(10_000, 0.95, 0.002), 1),
    "CIFAR-10, percent": (rate(10_000, 0.95, 0.002, unit=100.0), 1),
    "CIFAR-10, two splits": (rate(10_000, 0.95, 0.002), 2),
    "MNIST": (rate(10_000, 0.99, 0.0006), 1),
    "ImageNet": (rate(50_000, 0.76, 0.001), 1),
    "GLUE RTE, 277": (rate(277, 0.65, 0.015), 1),
    "GLUE MRPC, 408": (rate(408, 0.87, 0.008), 1),
    "GLUE RTE, 4 decimals": (rate(277, 0.65, 0.015, decimals=4), 1),
    "percent, 1 decimal": (rate(FINE, 0.913, 0.003, unit=100.0, decimals=1), 1),
    "rate, 3 decimals": (rate(FINE, 0.913, 0.003, decimals=3), 1),
    "normal": (lambda rng, shape: rng.normal(5.0, 0.3, shape), 1),
    "normal, single precision": (lambda rng, shape: rng.normal(5.0, 0.3, shape).astype(np.float32).astype(float), 1),
    "counts": (lambda rng, shape: rng.poisson(20.0, shape).astype(float), 1),
    "saturated": (lambda rng, shape: np.round(np.minimum(rng.normal(0.999, 0.002, shape), 1.0), 4), 1),
    "heavy tails, 3 decimals": (lambda rng, shape: np.round(0.9 + 0.002 * rng.standard_t(2, shape), 3), 1),
    "two modes, 3 decimals": (modes(0.5, 0.9, sd=0.0025, decimals=3), 1),
    "three modes, 3 decimals": (modes(0.5, 0.7, 0.9, sd=0.0025, decimals=3), 1),
    "plateau at -200": (plateau(0.8, -200.0, -110.0, 5.0), 1),
}


def samples_of(values: Numbers) -> list[Sample]:
    """`values`: split, config, seed."""
    return [
        Sample(f"c{c}", f"s{s}", "acc", {str(seed): float(value) for seed, value in enumerate(values[s, c])})
        for s in range(values.shape[0])
        for c in range(values.shape[1])
    ]


def is_invalid(samples: list[Sample], measured: list[MeasuredCell] | None = None) -> bool:
    return any(flag.level == "ERROR" for flag in flag_values(samples, measured or []))


@pytest.mark.parametrize("seeds", [5, 10])
@pytest.mark.parametrize("name", ROWS)
def test_honest_campaigns_are_valid(name: str, seeds: int) -> None:
    draw, splits = ROWS[name]
    rng = np.random.default_rng([seeds, *name.encode()])
    values = draw(rng, (CAMPAIGNS, splits, CONFIGS, seeds))
    invalid = sum(is_invalid(samples_of(each)) for each in values)
    print(
        f"\n| {name:<26} | {seeds:>2} seeds | {invalid:>3} of {CAMPAIGNS} INVALID | {100 * invalid / CAMPAIGNS:.2f} % |"
    )
    assert invalid <= MOST * CAMPAIGNS


# -- what must be caught, each in a hundred campaigns of every kind


CAUGHT = (
    "CIFAR-10, rate",
    "CIFAR-10, percent",
    "MNIST",
    "ImageNet",
    "GLUE RTE, 277",
    "GLUE MRPC, 408",
    "normal",
    "counts",
)


def drawn(name: str, at: int) -> tuple[np.random.Generator, Numbers]:
    """Configs differ by a few sd, as those of a study do."""
    rng = np.random.default_rng([at, *name.encode()])
    values = ROWS[name][0](rng, (400,))
    spread = float(np.std(values))
    shift = rng.normal(0.0, 2 * spread, (1, CONFIGS, 1))
    grid = 1.0 if name == "counts" else 1 / 277 if "277" in name else 1 / 408 if "408" in name else None
    shift = shift if grid is None else np.rint(shift / grid) * grid
    decimals = {"CIFAR-10, rate": 4, "CIFAR-10, percent": 2, "MNIST": 4, "ImageNet": 5}.get(name)
    moved = ROWS[name][0](rng, (1, CONFIGS, 5)) + shift
    return rng, moved if decimals is None else np.round(moved, decimals)


@pytest.mark.parametrize("name", CAUGHT)
def test_one_checkpoint_under_three_configs_is_caught(name: str) -> None:
    """By its hash in any case; by the values, where no hash is known."""
    by_hash, by_value = 0, 0
    for at in range(100):
        _, values = drawn(name, at)
        values[:, 1] = values[:, 2] = values[:, 0]
        by_value += is_invalid(samples_of(values))
        made = [
            CellMaking(f"train/c{c}/{seed}", f"c{c}", str(seed), checkpoint=f"{0 if c < 3 else c}/{seed}")
            for c in range(CONFIGS) for seed in range(5)
        ]  # fmt: skip
        by_hash += any(flag.level == "ERROR" for flag in flag_making(made))
    print(f"\n| one checkpoint for three   | {name:<18} | by hash {by_hash} | by value {by_value} of 100 |")
    assert by_hash == 100
    assert by_value >= 90, "on a lattice of 408 examples chance is not always excluded"


@pytest.mark.parametrize("name", CAUGHT)
def test_a_seed_without_an_effect_is_caught(name: str) -> None:
    caught = 0
    for at in range(100):
        _, values = drawn(name, at)
        caught += is_invalid(samples_of(np.repeat(values[:, :, :1], 5, axis=2)))
    print(f"\n| a seed without an effect   | {name:<18} | {caught} of 100 |")
    assert caught == 100


@pytest.mark.parametrize("name", CAUGHT)
def test_a_copied_row_is_caught(name: str) -> None:
    """A run has a loss beside its accuracy, in full precision."""
    caught = 0
    for at in range(100):
        rng, values = drawn(name, at)
        loss = rng.normal(0.2, 0.01, values.shape)
        (c, seed), (d, other) = (rng.integers(0, (CONFIGS, 5)) for _ in range(2))
        if (c, seed) == (d, other):
            other = (other + 1) % 5
        values[0, d, other], loss[0, d, other] = values[0, c, seed], loss[0, c, seed]
        measured = [
            MeasuredCell(f"eval/c{k}/{s}", f"c{k}", str(s), "s0", {"acc": float(values[0, k, s]), "loss": float(loss[0, k, s])})
            for k in range(CONFIGS) for s in range(5)
        ]  # fmt: skip
        losses = [
            Sample(f"c{k}", "s0", "loss", {str(s): float(v) for s, v in enumerate(loss[0, k])}) for k in range(CONFIGS)
        ]
        caught += is_invalid([*samples_of(values), *losses], measured)
    print(f"\n| a copied row               | {name:<18} | {caught} of 100 |")
    assert caught == 100


FILE = """\
muster: 1
campaign: copies
axes: {config: [c0, c1, c2, c3], seed: [0, 1, 2, 3, 4]}
jobs: {eval: {axes: [config, seed], command: x, results: {acc: {json: r.json, key: acc}}}}
"""
CAMPAIGN = read_campaign(FILE, file="campaign.yaml", folder="/nowhere").campaign


@pytest.mark.parametrize("name", CAUGHT)
def test_a_copied_result_file_is_caught(name: str) -> None:
    """Only the declared number is known to the report; the file has a time beside it."""
    caught = 0
    for at in range(100):
        rng, values = drawn(name, at)
        cells = {cell.id: done(cell) for cell in list_campaign_cells(CAMPAIGN)}
        numbers = zip(cells, values.reshape(-1), strict=True)
        texts = {cell: {"acc": float(v), "took": rng.uniform(100, 200), "n": 277} for cell, v in numbers}
        a, b = rng.choice(list(texts), 2, replace=False)
        texts[b] = texts[a]
        made = find_cell_making(CAMPAIGN, cells, origins_of(texts), {})
        codes = {(flag.level, flag.code) for flag in flag_making(list(made))}
        caught += ("ERROR", "one_result") in codes
    print(f"\n| a copied result file       | {name:<18} | {caught} of 100 |")
    assert caught == 100


def done(cell: Cell) -> CellRecord:
    outcome = Outcome(VerdictState.DONE, started=0.0, ended=1.0, duration_s=1.0)
    return CellRecord(cell, 0, attempts=(Attempt(cell.id, 1, "t", 1, (), "h", "", 0.0, "", outcome=outcome),))


def origins_of(texts: dict[str, dict[str, float]]) -> dict[str, ResultOrigins]:
    return {
        name: ResultOrigins(
            results={"acc": f"{name}/r.json"},
            values={"acc": found["acc"]},
            files={f"{name}/r.json": json.dumps(found)},
            more={key: str(value) for key, value in found.items() if key != "acc"},
        )
        for name, found in texts.items()
    }
