"""Every broken judge is caught, and the real one passes the same histories."""

import pytest

from simulator.broken_judges import BROKEN, Broken, passes, seeds_until_caught

MOST = 400


@pytest.mark.parametrize("broken", BROKEN, ids=lambda each: each.__name__)
def test_a_broken_judge_is_caught(broken: type[Broken]) -> None:
    needed = seeds_until_caught(broken(), MOST, broken.shape, broken.fault)
    assert needed is not None, f"{broken.__name__} looks right on {MOST} histories"
    assert passes(needed, broken.shape, broken.fault) == ""
