"""Two campaigns whose results are known, for texts that speak of them."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from muster.app.documents.result_names import Quantity

# the first two seeds are those of the story: three configs with 1.684±0.741
STORY: Mapping[tuple[str, str], Mapping[str, Sequence[float]]] = {
    ("id", "score"): {
        "v2_baseline": (1.16, 2.208, 2.031, 1.744, 1.929),
        "v2_u_only": (1.16, 2.208, 1.512, 2.377, 1.803),
        "v2_cert_only": (1.16, 2.208, 1.958, 1.401, 2.116),
        "v2_full": (1.628, 2.208, 2.482, 2.099, 1.713),
    },
    ("ood", "score"): {
        "v2_baseline": (2.096, 2.31, 2.514, 1.987, 2.263),
        "v2_u_only": (1.702, 3.152, 2.288, 2.951, 1.846),
        "v2_cert_only": (1.007, 2.341, 1.533, 2.142, 1.268),
        "v2_full": (0.841, 1.157, 1.392, 0.977, 1.218),
    },
    ("id", "cost"): {
        "v2_baseline": (71.0, 80.0, 77.0, 69.0, 84.0),
        "v2_u_only": (12.0, 19.0, 14.0, 22.0, 17.0),
        "v2_cert_only": (48.0, 55.0, 61.0, 50.0, 57.0),
        "v2_full": (9.0, 16.0, 13.0, 11.0, 18.0),
    },
    ("ood", "cost"): {
        "v2_baseline": (79.0, 87.0, 81.0, 92.0, 78.0),
        "v2_u_only": (15.0, 18.0, 21.0, 13.0, 19.0),
        "v2_cert_only": (55.0, 63.0, 58.0, 66.0, 52.0),
        "v2_full": (13.0, 16.0, 12.0, 19.0, 15.0),
    },
    ("train", "risk_penalty"): {
        "v2_baseline": (0.0, 0.0, 0.0, 0.0, 0.0),
        "v2_u_only": (2.741, 2.857, 2.914, 2.688, 2.802),
        "v2_cert_only": (0.021, 0.031, 0.027, 0.024, 0.036),
        "v2_full": (2.811, 2.963, 2.902, 2.77, 2.854),
    },
}
ROBOT: Mapping[tuple[str, str], Mapping[str, Sequence[float]]] = {
    ("test", "success_rate"): {
        "act": (0.812, 0.85, 0.794, 0.831, 0.847),
        "diffusion": (0.871, 0.905, 0.883, 0.864, 0.912),
        "smolvla": (0.902, 0.874, 0.921, 0.895, 0.913),
    },
    ("test", "return"): {
        "act": (11950.0, 12740.0, 12211.0, 12604.0, 12018.0),
        "diffusion": (13402.0, 13118.0, 13755.0, 12987.0, 13340.0),
        "smolvla": (14011.0, 13642.0, 14270.0, 13893.0, 14105.0),
    },
    ("test", "latency_ms"): {
        "act": (8.42, 8.31, 8.57, 8.4, 8.36),
        "diffusion": (41.3, 42.8, 40.9, 41.7, 42.2),
        "smolvla": (63.1, 64.4, 62.8, 63.7, 63.9),
    },
    ("", "drift"): {
        "act": (-0.031, -0.044, -0.027, -0.039, -0.035),
        "diffusion": (0.00121, 0.00134, 0.00118, 0.00127, 0.00131),
        "smolvla": (-0.112, -0.098, -0.104, -0.117, -0.109),
    },
}


def quantities(
    world: Mapping[tuple[str, str], Mapping[str, Sequence[float]]], k: int = 5, n: int = 5
) -> list[Quantity]:
    return [each for (split, metric), configs in world.items() for config, values in configs.items()
            for each in of_values(config, split, metric, values[:k], n)]  # fmt: skip


def of_values(config: str, split: str, metric: str, values: Sequence[float], n: int) -> Iterator[Quantity]:
    key = "/".join(filter(None, (split, metric, config)))
    named, k = (config, split, metric), len(values)
    means = [statistics.fmean(values[:count]) for count in range(1, k + 1)]
    yield Quantity(f"{key}/mean", *named, "mean", "", means[-1], k, n, tuple(means[:-1]))
    if k > 1:
        spreads = [statistics.stdev(values[:count]) for count in range(2, k + 1)]
        yield Quantity(f"{key}/sd", *named, "sd", "", spreads[-1], k, n, tuple(spreads[:-1]))
    yield Quantity(f"{key}/n", *named, "n", "", float(k), k, n)
    for seed, value in enumerate(values):
        yield Quantity(f"{key}/value/{seed}", *named, "value", str(seed), value, k, n)
