"""The simulator proves nothing unless it catches controllers that break a rule."""

from __future__ import annotations

import pytest

from simulator.broken_controllers import BROKEN, caught_at
from simulator.campaign import simulate_campaign

EVENTFUL = (41, 48, 29, 55, 30, 182, 3, 2, 42, 23, 7, 59)  # much happens in these: tried first, to be quick
RARE = {  # where it is soon seen what seldom happens
    "relaunches_what_has_started": 182,
    "keeps_what_it_leased": 59,
    "does_not_wait_for_the_shim": 55,
    "kills_what_it_should_report": 30,
    "ignores_a_newer_epoch": 182,
    "stops_long_before_the_cap": 3108,
    "lets_runs_go_on_at_the_cap": 23,
    "forgets_what_has_ended": 1,
    "bills_the_main_process_only": 4,
    "bills_by_the_wall_clock": 182,
    "powers_off_beside_other_campaigns": 3,
    "powers_off_beside_what_runs_left_behind": 3,
    "takes_deleted_files_for_a_claim": 55,
    "keeps_a_step_of_the_clock_to_itself": 182,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_controller_that_breaks_a_rule_is_caught(name: str) -> None:
    first = (RARE[name],) if name in RARE else ()
    caught = caught_at(name, (*first, *EVENTFUL, *range(200)), simulate_campaign)
    assert caught, f"{name} breaks a rule, and nobody sees it"
    assert simulate_campaign(caught[0]).ok, "the real one does not"
