"""Whole campaigns in the made-up world: nothing happens that must never happen, and a seed always tells the same story."""

from __future__ import annotations

import pytest

from simulator.campaign import figures, main, replay, simulate_campaign

SEEDS = 60
AT_ONCE = 6


@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_nothing_happens_that_must_never_happen(first: int) -> None:
    results = [simulate_campaign(seed) for seed in range(first, first + AT_ONCE)]
    bad = [result for result in results if not result.ok]
    assert not bad, figures(bad)
    assert all(result.counts["executions"] <= result.counts["attempts"] for result in results)


def test_a_seed_always_tells_the_same_story() -> None:
    for seed in (1, 4):
        once, again = simulate_campaign(seed), simulate_campaign(seed)
        assert once.timeline == again.timeline
        assert once.counts == again.counts


def test_a_seed_can_be_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert replay(5).ok
    told = capsys.readouterr().out
    assert "controller 1 begins" in told
    assert "seed 5: nothing that must not happen" in told


def test_many_seeds_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--campaigns", "2", "--seed", "7"]) == 0
    assert "2 campaigns, 0 with a violation" in capsys.readouterr().out
