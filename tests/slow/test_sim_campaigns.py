"""Two thousand campaigns with faults and people: not one violation, and every fault was met."""

from __future__ import annotations

import os

import pytest

from simulator.campaign import figures, simulate_many
from simulator.campaign_faults import FAULTS

CAMPAIGNS = 2000


@pytest.mark.slow
def test_two_thousand_campaigns_without_a_violation() -> None:
    results = simulate_many(range(100_000, 100_000 + CAMPAIGNS), jobs=os.cpu_count() or 1)
    print(figures(results))
    assert not [result.seed for result in results if not result.ok]
    met = {name for name in FAULTS if any(result.counts[f"fault: {name}"] for result in results)}
    assert met == set(FAULTS)
