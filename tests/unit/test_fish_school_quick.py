"""examples/fish_school keeps what it promises to Muster: the same seed gives the same bytes, a kill can't be told
from its files after a resume, and its gate decides what Muster's replay of its trace decides."""

import json
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ruamel.yaml import YAML

from muster.stages import GateSettings
from muster.stages.replay import replay_gate
from muster.stages.traces import parse_gate_trace

EXAMPLE = Path(__file__).parents[2] / "examples" / "fish_school"
SMALL = (
    *("--seed", 3, "--total_iterations", 9, "--save_every", 3, "--num_envs", 6, "--n_steps", 40, "--samples", 1500),
    *("--batch_size", 256, "--curriculum", "5:3,8:6", "--multi_eval_interval", 2, "--tail_force_reset_steps", 15),
    *("--multi_eval_probe_episodes", 2, "--eval_multi_episodes", 4, "--eval_multi_fish", 10),
    *("--tail_seed_stage_spec", "4:seeds_ne.json|type=ne;5:seeds_main.json|type=main"),
    # so that the gate opens in such a short run, and a resumed one has a phase to keep
    *("--penalty_gate_success_p10", 2, "--penalty_gate_failure_p10", 1, "--penalty_gate_failure_min_final", 0.01),
    *("--penalty_gate_success_early_death", 1, "--penalty_gate_success_early_death_by_stage", "ne:1,main:1"),
    *("--penalty_gate_success_step_one_ratio", 0.9, "--penalty_gate_success_median_window", 1),
    *("--penalty_gate_success_early_death_window", 1, "--penalty_gate_success_early_death_window_by_stage", "main:1"),
)
TRACES = ("eval_history.jsonl", "gate_trace.jsonl", "schedule_trace.json", "stage_summary.json")


def command(out: Path, *more: object) -> list[str]:
    return [sys.executable, str(EXAMPLE / "train.py"), "--artifacts", str(out), *map(str, more)]


def train(out: Path, *more: object) -> Path:
    subprocess.run(command(out, *(more or SMALL)), check=True, capture_output=True, cwd="/")
    return out


def rows(path: Path) -> list[dict[str, Any]]:
    """Without what a clock wrote."""
    found = map(json.loads, path.read_text().splitlines())
    return [{key: value for key, value in row.items() if key != "seconds"} for row in found]


def same(one: Path, other: Path) -> None:
    for name in TRACES:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    assert rows(one / "train.jsonl") == rows(other / "train.jsonl")
    with np.load(one / "checkpoint.npz") as left, np.load(other / "checkpoint.npz") as right:
        assert set(left) == set(right)
        for name in set(left) - {"told"}:
            np.testing.assert_array_equal(left[name], right[name], err_msg=name)
        told = [json.loads(str(each["told"])) for each in (left, right)]
    assert all(told[0][key] == told[1][key] for key in ("iteration", "gate", "cycler", "rng", "adam_time"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("fish") / "whole")


def test_a_run_leaves_what_it_says(whole: Path) -> None:
    named = {"train.jsonl", "training_stats.pkl", "checkpoint.npz", *TRACES}
    assert {path.name for path in whole.iterdir()} == named
    assert [row["iteration"] for row in rows(whole / "train.jsonl")] == list(range(1, 10))
    evaluations = rows(whole / "eval_history.jsonl")
    assert [(row["iter"], row["stage"]) for row in evaluations] == [
        (2, "ne"), (4, "ne"), (6, "main"), (8, "main"), (9, "main")
    ]  # fmt: skip
    stats = pickle.loads((whole / "training_stats.pkl").read_bytes())
    assert stats["survival"] == [row["survival"] for row in rows(whole / "train.jsonl")]
    schedule = json.loads((whole / "schedule_trace.json").read_text())
    assert [row["value"] for row in schedule["trace"]] == [5] * 3 + [8] * 6
    assert schedule["drawn"] == {"seeds_ne.json": 4 * 6, "seeds_main.json": 5 * 6}, (
        "two ponds, three hard starts in each"
    )


def test_first_step_deaths_are_counted_by_stage(whole: Path) -> None:
    summary = json.loads((whole / "stage_summary.json").read_text())
    assert summary["what"] == "first-step deaths"
    assert sum(summary["events"].values()) == sum(row["count"] for row in summary["by_iteration"]) > 0
    assert [row["of"] for row in summary["by_iteration"]] == [(6 + 2 * 2) * fish for fish in [5] * 3 + [8] * 6]


def test_the_gate_in_the_script_decides_what_a_replay_of_its_trace_decides(whole: Path) -> None:
    trace = parse_gate_trace((whole / "gate_trace.jsonl").read_text())
    assert trace.settings is not None
    assert [each.row() for each in replay_gate(trace.settings, trace.rows)] == trace.decided
    assert "advance" in [row["state"] for row in trace.decided]
    phases = {row["iteration"]: row["phase"] for row in trace.decided}
    opened = min(iteration for iteration, phase in phases.items() if phase)
    after = {row["iteration"]: row["phase"] for row in rows(whole / "train.jsonl")}
    assert (after[opened], after[opened + 1]) == (0, 1), "the next iteration is the first at the new difficulty"


def test_the_same_seed_gives_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    same(whole, train(tmp_path / "again"))


@pytest.mark.parametrize("last", [4, 8])
def test_a_killed_run_resumes_as_if_nothing_had_happened(whole: Path, tmp_path: Path, last: int) -> None:
    out = tmp_path / "killed"
    with subprocess.Popen(command(out, *SMALL), stdout=subprocess.PIPE, text=True, cwd="/") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(f"iteration {last} "):
                process.kill()  # -9, behind its last checkpoint
                break
    assert process.wait() == -signal.SIGKILL
    with (out / "gate_trace.jsonl").open("a") as torn:
        torn.write('{"iteration": 8, "sta')
    checkpoint = out / "checkpoint.npz"
    elsewhere = train(tmp_path / "elsewhere", "--resume", checkpoint, "--total_iterations", 9, "--save_every", 3)
    same(whole, elsewhere)
    same(whole, train(out, "--resume", checkpoint, "--total_iterations", 9, "--save_every", 3))


def test_a_checkpoint_of_another_run_is_refused(whole: Path, tmp_path: Path) -> None:
    for flags, said in (
        (("--seed", "4"), "--seed was 3"),
        (("--penalty_gate_success_p10", "50"), "--penalty_gate_success_p10 was 2"),
    ):
        done = subprocess.run(
            command(tmp_path / "other", "--resume", whole / "checkpoint.npz", *flags), capture_output=True, text=True
        )
        assert done.returncode == 2
        assert said in done.stderr
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--curriculum", "15:"), "curriculum"),
        (("--tail_seed_stage_spec", "8:nowhere.json|type=ne"), "nowhere.json"),
        (("--penalty_gate_failure_p10", "nan"), "penalty_gate_failure_p10"),
    ],
)
def test_wrong_settings_are_told_before_anything_runs(tmp_path: Path, flags: tuple[str, str], said: str) -> None:
    done = subprocess.run(command(tmp_path / "out", *flags), capture_output=True, text=True)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_the_campaign_mirrors_the_gate_of_its_flags() -> None:
    from muster.stages.training_flags import parse_training_flags

    campaign = YAML(typ="safe").load(EXAMPLE / "campaign.yaml")
    flags = parse_training_flags(campaign["jobs"]["train"]["command"].replace("{steps}", "60"))
    gate = campaign["gates"]["penalty"]
    assert GateSettings.of(gate).mapping() == (flags.gate.mapping() if flags.gate else None)
    assert flags.schedule is not None
    assert gate["schedule"] == flags.schedule.text()
    second = YAML(typ="safe").load(EXAMPLE / "v2" / "campaign.yaml")["gates"]["penalty"]
    assert GateSettings.of(second) == GateSettings.of(YAML(typ="safe").load(EXAMPLE / "gate_v2.yaml"))
