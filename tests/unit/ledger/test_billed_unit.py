"""What the price is for, in a word: the bill and the record say the same."""

from __future__ import annotations

import pytest
from ledger_world import world

from muster.ledger.billed_spans import priced_unit
from muster.model.campaign import Money, Slots


@pytest.mark.parametrize(
    ("gpus", "held", "expected"),
    [
        ((0, 1), ["gpu0.0", "cpu0"], "gpu"),
        ((0, 1), [], "gpu"),
        ((), [], "slot"),
        ((), ["cpu0"], "slot"),
        (None, [], "gpu"),
        (None, ["cpu0", "cpu1"], "slot"),  # `auto`, and there was none
        (None, ["cpu0", "gpu3.1"], "gpu"),
    ],
)
def test_the_unit(gpus: tuple[int, ...] | None, held: list[str], expected: str) -> None:
    slots = Slots(gpus, 1, 2)
    assert priced_unit(world(Money(2.0, "CNY"), slots=slots).campaign, held) == expected
    assert priced_unit(world(slots=slots).campaign, held) == expected
    assert priced_unit(world(Money(2.0, "CNY", "machine"), slots=slots).campaign, held) == "machine"
