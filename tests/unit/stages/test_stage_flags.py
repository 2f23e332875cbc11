"""A training's own flag line, read into typed settings."""

from __future__ import annotations

import shlex

import pytest
from gate_world import flag_line, reference

from muster.stages import SpecError
from muster.stages.alarms import Watch
from muster.stages.gate_settings import FreezeSettings
from muster.stages.training_flags import (
    EvaluationFlags,
    TailFlags,
    parse_flag_values,
    parse_training_flags,
    split_command_words,
)


def test_the_whole_flag_line_of_the_reference() -> None:
    found = reference()
    assert found.iterations == 60
    assert found.watch == Watch(0.7, 2)
    assert found.evaluations == EvaluationFlags(interval=8, probe=20, full=40, fish=96, seed_base=411232)
    assert found.tail == TailFlags(replay=2, force_reset_steps=224)
    assert found.others == {
        "run_name": "dev_v40_main_rebalance_v1", "num_envs": "128", "n_steps": "128", "batch_size": "1024",
        "n_epochs": "5", "learning_rate": "2.5e-4", "video_num_fish": "48", "skip_final_eval": "", "seed": "411232",
    }  # fmt: skip


def test_the_gate_of_the_reference() -> None:
    gate = reference().gate
    assert gate is not None
    assert [each.mapping() for each in gate.success] == [
        {"key": "first_death_p10", "min": 70, "window": "median 4"},
        {"key": "early_death_100", "max": 0.1, "window": "mean 3",
         "by_stage": {"ne": {"max": 0.13}, "main": {"max": 0.1, "window": "mean 4"}}},
        {"key": "step_one", "max": 18},
        {"key": "step_one_ratio", "max": 0.02},
    ]  # fmt: skip
    assert [each.mapping() for each in gate.failure] == [
        {"key": "first_death_p10", "below": 95}, {"key": "min_final", "below": 0.5},
    ]  # fmt: skip
    assert (gate.required, gate.allowance, gate.tolerance) == (2, (4, 5, 6, 7), {"default": 2, "main": 3})
    assert gate.freeze == FreezeSettings(advance=2, fall_back=5)
    assert (gate.borne("ne"), gate.borne("main")) == (2, 3)
    assert [gate.allowed(phase) for phase in range(6)] == [4, 5, 6, 7, 7, 7]
    early = gate.success[1]
    assert str(early.at("main").window) == "mean 4"
    assert str(early.at("ne").window) == "mean 3"
    assert early.at("ne").max == 0.13


@pytest.mark.parametrize("drop", ["\\\n", "\\\r\n"])
def test_a_line_may_go_on_in_the_next_one(drop: str) -> None:
    assert parse_training_flags(flag_line().replace("\\\n", drop)) == reference()
    assert parse_training_flags(flag_line().replace("\\\n", " ")) == reference()
    assert parse_training_flags(shlex.split(flag_line().replace("\\\n", " "))) == reference()


def test_values_may_be_joined_and_the_last_one_counts() -> None:
    assert parse_flag_values(["python", "a.py", "--a=1", "--b", "2", "3", "--c", "--d=", "--a", "-4"]) == {
        "a": "-4", "b": "2 3", "c": "", "d": "",
    }  # fmt: skip
    assert parse_training_flags("--total_iterations=30 --total_iterations 60").iterations == 60


def test_words_are_split_as_a_shell_does() -> None:
    assert split_command_words('a \'b c\' "d\\"e" f\\ g # h') == ["a", "b c", 'd"e', "f g", "#", "h"]
    assert split_command_words("") == []


def test_a_line_that_is_about_something_else() -> None:
    found = parse_training_flags("python train.py --lr 1e-3")
    assert (found.gate, found.schedule, found.curriculum, found.watch, found.iterations) == (None,) * 5
    assert found.others == {"lr": "1e-3"}
    assert parse_training_flags("").others == {}


def test_what_is_not_said_follows_from_what_is() -> None:
    gate = parse_training_flags("--penalty_gate_success_p10 70 --penalty_gate_freeze_iterations 5").gate
    assert gate is not None
    assert (gate.required, gate.freeze, gate.tolerance, gate.allowance) == (1, FreezeSettings(5, 5), {}, ())
    gate = parse_training_flags("--penalty_gate_failure_p10 70 --penalty_gate_failure_window 3").gate
    assert gate is not None
    assert gate.failure[0].mapping() == {"key": "first_death_p10", "below": 70, "window": "median 3"}
    gate = parse_training_flags("--penalty_gate_success_early_death_by_stage ne:0.13").gate
    assert gate is not None
    assert gate.success[0].mapping() == {"key": "early_death_100", "by_stage": {"ne": {"max": 0.13}}}
    assert parse_training_flags("--tail_stage_warn_ratio 0.7").watch == Watch(0.7, 1)


@pytest.mark.parametrize(
    ("flag", "criterion"),
    [
        ("success_avg_final 0.7", {"key": "avg_final", "min": 0.7}),
        ("success_min_final 0.5", {"key": "min_final", "min": 0.5}),
        ("success_step_one 18", {"key": "step_one", "max": 18}),
        ("failure_step_one_ratio 0.03", {"key": "step_one_ratio", "above": 0.03}),
        ("failure_early_death 0.2", {"key": "early_death_100", "above": 0.2}),
        ("failure_avg_final 0.4", {"key": "avg_final", "below": 0.4}),
        ("success_p10 -5", {"key": "first_death_p10", "min": -5}),
    ],
)
def test_which_side_is_better(flag: str, criterion: dict[str, object]) -> None:
    gate = parse_training_flags(f"--penalty_gate_{flag}").gate
    assert gate is not None
    assert [each.mapping() for each in (*gate.success, *gate.failure)] == [criterion]


def test_what_is_too_long_for_a_command_line_is_not_split() -> None:
    with pytest.raises(SpecError, match="no command line is as long"):
        parse_training_flags("python x.py " + "]=" * 100_000)
