"""Every fault that must be injected, by its number, and the tests that inject it: none may be missing in silence.

Real processes everywhere but where the table says so.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent  # the tests
LAST = 48

FAULTS: dict[int, tuple[str, ...]] = {
    1: ("faults/test_controller_faults.py::test_1_killed_before_the_claim_is_committed",),
    2: ("faults/test_controller_faults.py::test_2_killed_after_the_claim_before_the_shim",),
    3: ("faults/test_controller_faults.py::test_3_killed_after_the_shim_was_asked_for",),
    4: ("faults/test_controller_faults.py::test_4_killed_after_exit_json_before_it_is_recorded",),
    5: ("faults/test_controller_faults.py::test_5_killed_between_the_verdict_and_the_retry",),
    6: ("faults/test_controller_faults.py::test_6_killed_in_the_middle_of_a_stop",),
    7: (
        "faults/test_controller_faults.py::test_7_two_ups_at_once",
        "faults/test_controller_faults.py::test_7_two_ups_at_once_fifty_times",
        "faults/test_controller_faults.py::test_7_two_controllers_at_once",
    ),
    8: ("faults/test_controller_faults.py::test_8_stopped_controller_is_taken_over",),
    9: ("faults/test_shim_faults.py::test_9_two_shims_of_one_attempt",),
    10: ("faults/test_shim_faults.py::test_10_shim_killed_before_the_gate_opens",),
    11: ("faults/test_shim_faults.py::test_11_shim_killed_while_the_run_lives",),
    12: ("faults/test_shim_faults.py::test_12_run_killed",),
    13: ("faults/test_shim_faults.py::test_13_run_exits_with_137",),
    14: (
        "faults/test_memory.py::test_14_the_main_process_is_killed",
        "faults/test_memory.py::test_14_a_kill_by_hand_in_the_same_group_is_no_oom",
        "unit/sim/test_single.py::test_every_fault_in_runs_of_several_shapes",  # where no group can be made
    ),
    15: ("faults/test_memory.py::test_15_a_child_is_killed_and_the_main_process_raises",),
    16: ("faults/test_memory.py::test_16_an_earlier_child_and_a_later_signal",),
    17: (
        "faults/test_stalls.py::test_17_stopped_and_let_go_on",
        "faults/test_stalls.py::test_17_a_stopped_run_is_not_restarted_whatever_the_campaign_says",
    ),
    18: (
        "faults/test_stalls.py::test_18_deadlock",
        "faults/test_stalls.py::test_a_stalled_run_is_restarted_as_often_as_allowed",
        "faults/test_stalls.py::test_three_attempts_without_a_newer_checkpoint_are_enough",
        "faults/test_stalls.py::test_a_stalled_run_is_left_alone_by_default",
    ),
    19: ("faults/test_stalls.py::test_19_endless_loop",),
    20: (
        "faults/test_stalls.py::test_20_heartbeats_without_steps",
        "faults/test_stalls.py::test_20_a_heart_that_beats_between_idle_looks",  # the judge alone
        "faults/test_gpu_faults.py::test_20_a_gpu_at_full_load_and_heartbeats_without_steps",
    ),
    21: (
        "faults/test_stalls.py::test_21_silent_log_and_growing_replay",
        "faults/test_story.py::test_the_reference_story",
    ),
    22: ("faults/test_stalls.py::test_22_compiles_before_the_first_step",),
    23: (
        "faults/test_stalls.py::test_23_the_second_long_evaluation_is_learned",
        "unit/judge/test_living_runs.py::test_a_busy_tree_is_not_convicted_before_half_an_hour_and_then_presumed",
    ),
    24: ("faults/test_living.py::test_24_the_terminal_closes",),
    25: ("cli/test_look.py::test_a_hangup_is_read_off_the_log",),
    26: (
        "faults/test_causes.py::test_26_exception_memory_of_the_gpu_and_nan_are_three_causes",
        "faults/test_causes.py::test_26_the_same_words_in_the_log_of_a_run_that_ends_otherwise",
    ),
    27: ("faults/test_run_faults.py::test_27_exit_0_at_40_percent",),
    28: ("faults/test_run_faults.py::test_28_exit_1_with_complete_artifacts",),
    29: (
        "faults/test_disk.py::test_29_where_the_run_writes",
        "faults/test_disk.py::test_29_where_muster_writes",
        "faults/test_disk.py::test_29_a_disk_without_room_stops_nothing_that_runs",
    ),
    30: (
        "faults/test_files_faults.py::test_30_half_a_line",
        "faults/test_files_faults.py::test_30_a_tail_of_nuls",
        "faults/test_files_faults.py::test_30_the_proof_rests_on_the_last_whole_line",
    ),
    31: ("faults/test_run_faults.py::test_31_truncated_checkpoint",),
    32: (
        "faults/test_files_faults.py::test_32_the_log_is_another_one",
        "faults/test_files_faults.py::test_32_rotated_again_and_again_under_a_run_that_writes",
    ),
    33: (
        "faults/test_controller_faults.py::test_33_the_wall_clock_jumps",
        "faults/test_clock_set.py::test_33_a_clock_that_is_set_stops_nothing_and_bills_nothing",
    ),
    34: (
        # the clock of who looks is shifted: no test can suspend its machine
        "faults/test_clock_faults.py::test_34_the_machine_sleeps_for_an_hour",
        "unit/judge/test_living_runs.py::test_a_suspended_host_is_not_stalled",
    ),
    35: ("faults/test_namespaces.py::test_35_the_pid_is_given_out_again",),
    36: (
        "faults/test_run_faults.py::test_36_main_gone_grandchild_lives",
        "faults/test_run_faults.py::test_36_main_gone_and_shim_gone_grandchild_lives",
        "faults/test_run_faults.py::test_36_zombie_leader_whose_thread_works_on",
    ),
    37: ("faults/test_namespaces.py::test_37_the_machine_rebooted",),
    38: (
        "faults/test_namespaces.py::test_38_the_container_is_restarted",
        "faults/test_namespaces.py::test_38_a_run_in_another_container_is_not_dead",
    ),
    39: (
        # a made-up NVML
        "faults/test_gpu_faults.py::test_39_a_gpu_falls_off_the_bus",
        "faults/test_gpu_faults.py::test_39_no_gpu_is_left",
    ),
    40: (
        # a made-up NVML
        "faults/test_gpu_faults.py::test_40_nvml_hangs",
        "faults/test_gpu_faults.py::test_40_nvml_hangs_under_a_run_that_hangs",
        "faults/test_gpu_faults.py::test_40_nvml_names_the_pids_of_the_host",
    ),
    41: (
        # a file system that nobody serves
        "faults/test_files_faults.py::test_41_living_runs",
        "faults/test_files_faults.py::test_41_an_idle_run_that_can_not_be_read_is_not_called_working",  # the judge
        "faults/test_files_faults.py::test_41_runs_that_end",
        "faults/test_files_faults.py::test_41_a_retry_that_looks_for_a_checkpoint",
    ),
    42: (
        "faults/test_hidden.py::test_42_cells_start_and_end_where_processes_of_others_are_hidden",
        "faults/test_hidden.py::test_42_a_hidden_run_that_advances",
        "faults/test_hidden.py::test_42_a_hidden_run_that_hangs",
        "faults/test_hidden.py::test_42_a_hidden_run_that_ends",
        "faults/test_hidden.py::test_42_a_hidden_run_whose_shim_died",
    ),
    43: (
        "faults/test_run_faults.py::test_43_leftover_helper_does_not_keep_the_slot_of_a_done_cell",
        "faults/test_run_faults.py::test_43_helper_without_a_proof_keeps_the_cell_running",
    ),
    44: ("contract/test_rebuild.py::test_a_power_cut_after_every_commit_and_within_it",),
    45: (
        "faults/test_controller_faults.py::test_45_the_database_is_deleted",
        "cli/test_fsck.py::test_a_deleted_database_comes_back_by_itself",
    ),
    46: (
        "faults/test_clock_faults.py::test_46_nobody_looked_for_a_while",
        "faults/test_clock_faults.py::test_46_a_hundred_busy_processes",
    ),
    47: ("faults/test_run_faults.py::test_47_three_of_twenty_can_not_be_executed",),
    48: (
        "unit/test_shutdown.py::test_48_any_other_cell_is_named",
        "faults/test_finish_faults.py::test_48_a_shutdown_with_one_unknown_is_refused",
    ),
}


@cache
def names_in(path: str) -> frozenset[str]:
    """Names that pytest collects from a file."""
    body = ast.parse((ROOT / path).read_text()).body
    classes = [each for each in body if isinstance(each, ast.ClassDef) and each.name.startswith("Test")]
    found = [each for part in (body, *(each.body for each in classes)) for each in part]
    return frozenset(each.name for each in found if isinstance(each, ast.FunctionDef) and each.name.startswith("test_"))


def test_no_fault_is_without_a_test() -> None:
    assert list(FAULTS) == list(range(1, LAST + 1))
    assert all(FAULTS.values())


@pytest.mark.parametrize("number", FAULTS)
def test_its_tests_exist(number: int) -> None:
    for name in FAULTS[number]:
        path, _, test = name.partition("::")
        assert (ROOT / path).is_file(), f"fault {number}: there is no {path}"
        assert test in names_in(path), f"fault {number}: there is no {test} in {path}"


def test_what_is_numbered_is_in_the_table() -> None:
    """A new test of a numbered fault, `test_17_...`, has to be named here."""
    for path in sorted((ROOT / "faults").glob("test_*.py")):
        for name in names_in(f"faults/{path.name}"):
            number = name.split("_")[1]
            if number.isdecimal():
                assert f"faults/{path.name}::{name}" in FAULTS[int(number)], f"{path.name}::{name} is not in the table"
