"""The command line: the reference's flags, with values that suit a small pond."""

import argparse
from pathlib import Path
from typing import Any

from muster.stages import GateSettings
from muster.stages.training_flags import TrainingFlags, parse_training_flags

CURRICULUM = "15:9,20:10,25:9,25:8,25:8,25:8,25:8"
# 120 iterations, as long as the reference's: in a run of 60 the last three stages never come
SCHEDULE = (
    "8:seeds_ne.json|type=ne;6:seeds_ne.json|type=ne;15:seeds_main.json|type=main;6:seeds_ne.json|type=ne;"
    "24:seeds_main.json|type=main;16:seeds_main.json|type=main;25:seeds_main_2.json|type=main;20:seeds_main_2.json|type=main"
)
# the reference's; a count of first-step deaths is of 2000 fish here
GATE = {
    "phase_allowance": "4,5,6,7",
    "required_successes": "2",
    "freeze_iterations": "5",
    "success_step_one": "45",
    "success_step_one_ratio": "0.02",
    "success_early_death": "0.10",
    "success_early_death_window": "3",
    "success_early_death_by_stage": "ne:0.13,main:0.10",
    "success_early_death_window_by_stage": "main:4",
    "success_p10": "70",
    "success_freeze_iterations": "2",
    "success_median_window": "4",
    "failure_p10": "95",
    "failure_min_final": "0.5",
    "failure_tolerance": "2",
    "failure_tolerance_by_stage": "main:3",
}
# what Muster's own reader of such flag lines makes settings of
STAGED = ("penalty_gate_", "tail_", "multi_eval_", "eval_multi_", "curriculum", "total_iterations")


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    _run(made.add_argument_group("run"))
    _learning(made.add_argument_group("learning"))
    _evaluation(made.add_argument_group("evaluation"))
    _tail(made.add_argument_group("hard starts (tail seeds)"))
    _gate(made.add_argument_group("gate; without any of these: the reference's setting"))
    return made


def staged(args: argparse.Namespace) -> TrainingFlags:
    """Of the flags that are about stages and gates, those left to their defaults included. SpecError: all mistakes."""
    words: list[str] = []
    for name, value in vars(args).items():
        if name.startswith(STAGED) and value not in (None, ""):
            words += [f"--{name}", str(value)]
    found = parse_training_flags(words)
    return found._replace(gate=GateSettings.of(_read(args.gate_file))) if args.gate_file else found


def _run(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--artifacts", type=Path, required=True, help="the folder that everything is written to")
    group.add_argument("--resume", type=Path, help="a checkpoint to go on from")
    group.add_argument("--run_name", default="fish_school")
    group.add_argument("--seed", type=int, default=0)
    group.add_argument("--total_iterations", type=int, default=60)
    group.add_argument("--save_every", type=int, default=4, help="iterations between checkpoints")
    group.add_argument("--video_num_fish", type=int, default=0, help="record a last episode of so many fish: swim.npz")


def _learning(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--num_envs", type=int, default=128, help="ponds")
    group.add_argument("--n_steps", type=int, default=300, help="of an episode; an iteration is one in each pond")
    group.add_argument("--samples", type=int, default=40_000, help="steps of fish that an iteration learns from")
    group.add_argument("--batch_size", type=int, default=1024)
    group.add_argument("--n_epochs", type=int, default=3)
    group.add_argument("--learning_rate", type=float, default=2.5e-3)
    group.add_argument("--curriculum", default=CURRICULUM, help="number of fish:iterations, ...")


def _evaluation(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--multi_eval_interval", type=int, default=5)
    group.add_argument("--multi_eval_probe_episodes", type=int, default=20)
    group.add_argument("--multi_eval_seed_base", type=int, default=411232)
    group.add_argument("--eval_multi_fish", type=int, default=50)
    group.add_argument("--eval_multi_episodes", type=int, default=40)
    group.add_argument("--skip_final_eval", action="store_true", help="no evaluation only because it is the end")


def _tail(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--tail_seed_stage_spec", default=SCHEDULE, help="iterations:file|type=NAME;...")
    group.add_argument("--tail_force_reset_steps", type=int, default=150, help="a hard start gives way to the next one")
    group.add_argument("--tail_replay_count", type=int, default=2)
    group.add_argument("--tail_stage_warn_ratio", type=float, default=0.30)
    group.add_argument("--tail_stage_warn_patience", type=int, default=2)
    group.add_argument("--hard_share", type=float, default=0.25, help="share of the ponds that begin with hard starts")


def _gate(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--gate_file", type=Path, help="a gate as in campaign.yaml, in place of --penalty_gate_*")
    for name, default in GATE.items():
        group.add_argument(f"--penalty_gate_{name}", default=default)


def _read(path: Path) -> dict[str, Any]:
    from ruamel.yaml import YAML

    found: dict[str, Any] = YAML(typ="safe").load(path)
    return found
