"""The simulator proves nothing unless it catches controllers that break a rule."""

from __future__ import annotations

import pytest

from muster.sim.broken_controllers import BROKEN, caught_at
from muster.sim.campaign import simulate_campaign

EVENTFUL = (48, 29, 55, 30, 3108)  # much happens in these: tried first, to be quick
SEEDS = (*EVENTFUL, *range(200))


@pytest.mark.parametrize("name", BROKEN)
def test_a_controller_that_breaks_a_rule_is_caught(name: str) -> None:
    caught = caught_at(name, SEEDS, simulate_campaign)
    assert caught, f"{name} breaks a rule, and nobody sees it"
    assert simulate_campaign(caught[0]).ok, "the real one does not"
