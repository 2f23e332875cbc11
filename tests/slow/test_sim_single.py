"""A hundred thousand histories, and the goals of the rules."""

import pytest

from simulator.broken_judges import BROKEN, Broken, seeds_until_caught
from simulator.many import run_many

pytestmark = pytest.mark.slow


def test_the_figures_of_a_hundred_thousand_histories() -> None:
    figures = run_many(100_000, jobs=2, seed=0)
    print(figures.table())
    assert figures.met, "\n" + figures.table()


@pytest.mark.parametrize("broken", BROKEN, ids=lambda each: each.__name__)
def test_a_broken_judge_is_caught_without_a_hint(broken: type[Broken]) -> None:
    """Shapes and faults as the seeds draw them."""
    needed = seeds_until_caught(broken(), 6000)
    print(f"{broken.__name__}: {needed} histories")
    assert needed is not None
