"""Save and log periods that are longer than the run: told before it is paid for, and nobody else is frightened."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.app.campaign.preflight.config_warnings import warn_of_long_periods
from muster.model.attempt import Attempt, CellRecord, Outcome
from muster.model.campaign import Campaign
from muster.model.cell import list_campaign_cells
from muster.model.errors import Mistake
from muster.model.verdict import VerdictState
from muster.spec import read_campaign
from muster.spec.campaign_templates import template_names, template_text
from muster.spec.training_periods import parse_period

ROOT = Path(__file__).parents[2]
REFERENCE = (
    'AUTO_SHUTDOWN=0 SEEDS="2 3 4" STEPS=120000 EVAL_EVERY=5000 LOG_EVERY=1000 SAVE_EVERY=10000 '
    "bash scripts/run_paper_longtrain.sh"
)
SPRINT = """\
muster: 1
campaign: paper
axes:
  config: [v2_baseline, v2_u_only, v2_cert_only, v2_full]
  seed: [0, 1, 2, 3, 4]
slots: {gpus: 0, cpus: 2}
jobs:
  train:
    axes: [config, seed]
    steps: 120000
    MORE
    command: COMMAND
"""
LEROBOT = "accelerate launch src/lerobot/scripts/lerobot_train.py --steps={steps} --log_freq=50 --save_freq=20000 --output_dir={out}"
DREAMER = "python SafeDreamer/train.py --configs {config} --seed {seed} --run.steps {steps} --run.log_every 1000 --run.save_every 10000"


def campaign(command: str, *more: str, folder: str = "/c", base: str = SPRINT) -> Campaign:
    text = base.replace("COMMAND", json.dumps(command)).replace("    MORE\n", "".join(f"    {line}\n" for line in more))
    return read_campaign(text, file="campaign.yaml", folder=folder).campaign


def finished(of: Campaign, count: int, seconds: float, job: str = "train", *, adopted: bool = True) -> list[CellRecord]:
    """The first `count` cells of a job are DONE."""
    outcome = Outcome(VerdictState.DONE, duration_s=seconds)
    found = []
    for number, cell in enumerate(each for each in list_campaign_cells(of) if each.job == job):
        done = Attempt(cell.id, 1, "t", 1, (), "h-c", "", 0.0, "b", adopted=adopted, outcome=outcome)
        found.append(CellRecord(cell, number, hash="h-c", attempts=(done,) if number < count else ()))
    return found


def told(of: Campaign, records: Sequence[CellRecord] = (), root: str = "/c") -> list[str]:
    found = warn_of_long_periods(of, root, records)
    assert all(isinstance(each, Mistake) and each.level == "warning" for each in found)
    return [each.message for each in found]


# -- the reference


def test_the_reference_command_word_for_word() -> None:
    """17 runs of about 5,940 s, whose only checkpoint was saved at their start."""
    of = campaign(REFERENCE, "shell: true", "cwd: ../SafeDreamer_v2")
    (found,) = warn_of_long_periods(of, "/c", finished(of, 17, 5940))
    assert found.message == (
        "job train: SAVE_EVERY 10000 (seconds, in its command) is longer than a run (about 5,940 s, from 17 finished ones): "
        "the only checkpoint would be the one saved at the start, with untrained weights"
    )
    assert found.hint == (
        "set it to 594 or less, a tenth of the run, and prove it with "
        "`proof: {checkpoint: {path: FILE, saved_after: 90%}}`"
    )
    assert found.path == "jobs.train.command"


def test_the_trainer_itself_and_its_wrapper_are_the_same() -> None:
    of = campaign(DREAMER)
    (found,) = told(of, finished(of, 17, 5940))
    assert "run.save_every 10000 (seconds, in its command) is longer than a run (about 5,940 s" in found
    wrapped = campaign(f"env {REFERENCE}", "within: conda run -n safedreamer")
    assert "with untrained weights" in told(wrapped, finished(wrapped, 1, 5940))[0]
    assert "from 1 finished one)" in told(wrapped, finished(wrapped, 1, 5940))[0]


def test_declared_variables_count_as_well() -> None:
    of = campaign("bash scripts/run_paper_longtrain.sh", "env: {SAVE_EVERY: '10000'}", "cwd: ../SafeDreamer_v2")
    assert "(seconds, in its environment) is longer than a run" in told(of, finished(of, 17, 5940))[0]
    of = campaign(f"env {REFERENCE}", "env: {SAVE_EVERY: '60'}", "cwd: ../SafeDreamer_v2")
    assert "in its command" in told(of, finished(of, 17, 5940))[0], "the command has the last word"


def test_before_anything_has_finished_the_timeout_is_all_that_is_known() -> None:
    assert told(campaign(DREAMER)) == []
    assert told(campaign(DREAMER, "timeout: 12h")) == []
    (found,) = told(campaign(DREAMER, "timeout: 2h"))
    assert "is longer than a run can last (its timeout, 7,200 s): the only checkpoint" in found


def test_a_period_that_fits_is_none_of_our_business() -> None:
    of = campaign(DREAMER.replace("10000", "300"), "proof: {checkpoint: {path: c, saved_after: 90%}}")
    assert told(of, finished(of, 17, 5940)) == []


def test_a_last_checkpoint_before_the_proof_would_have_it() -> None:
    """4,000 s fit once into 5,940 s: what is saved last is two thirds of a training."""
    declared = "proof: {checkpoint: {path: checkpoint.ckpt, saved_after: 90%}}"
    of = campaign(DREAMER.replace("10000", "4000"), declared)
    (found,) = warn_of_long_periods(of, "/c", finished(of, 17, 5940))
    assert (
        "the last checkpoint would be saved after 4,000 s, 67% of it; the proof asks for 90% and would fail"
        in found.message
    )
    assert found.hint == "set it to 594 or less, a tenth of the run"
    assert told(campaign(DREAMER.replace("10000", "4000")), finished(of, 17, 5940)) == []


def test_a_run_of_the_same_definition_that_was_done_is_better_evidence() -> None:
    declared = "proof: {checkpoint: {path: checkpoint.ckpt, saved_after: 90%}}"
    of = campaign(DREAMER, declared)
    assert told(of, finished(of, 17, 5940, adopted=False)) == []
    assert len(told(of, finished(of, 17, 5940))) == 1, "who knows with what period an adopted run was made"
    changed = [replace(record, hash="other-c") for record in finished(of, 17, 5940, adopted=False)]
    assert len(told(of, changed)) == 1
    unproved = campaign(DREAMER)
    assert len(told(unproved, finished(unproved, 17, 5940, adopted=False))) == 1


# -- units


def test_lerobot_counts_steps() -> None:
    of = campaign(LEROBOT.replace("{steps}", "2000"), base=SPRINT.replace("120000", "2000"))
    (found,) = warn_of_long_periods(of, "/c", finished(of, 5, 300))
    assert found.message == (
        "job train: save_freq 20000 (steps, in its command) is more than the run has (2,000): "
        "no checkpoint would be saved between the start and the end; what dies loses all its work"
    )
    assert found.hint.startswith("set it to 200 or less, a tenth of the run, and prove it")
    fine = campaign(LEROBOT)
    assert told(fine, finished(fine, 5, 300)) == [], "20,000 of 120,000 steps, however few seconds they take"


def test_lerobot_without_an_environment_evaluates_nothing(tmp_path: Path) -> None:
    config = tmp_path / "act.json"
    for env, count in ((None, 0), ({"type": "aloha"}, 1)):
        config.write_text(json.dumps({"eval_freq": 20000, "env": env}))
        made = campaign(f"lerobot-train --config_path={config} --steps={{steps}} --out {{out}}", folder=str(tmp_path))
        made = replace(made, jobs=tuple(replace(job, steps=100) for job in made.jobs))
        assert len([each for each in warn_of_long_periods(made, str(tmp_path)) if "eval_freq" in each.message]) == count


def test_an_unknown_unit_is_tried_both_ways_and_it_says_so() -> None:
    of = campaign("python train.py --save_every 10000")
    (found,) = told(of, finished(of, 17, 5940))
    assert found == (
        "job train: save_every 10000 (in its command) may count seconds or steps, its name does not say which: "
        "in steps it fits (120,000), but in seconds it is longer than a run (about 5,940 s, from 17 finished ones), and "
        "no checkpoint would be saved between the start and the end; what dies loses all its work"
    )
    assert told(of) == [], "nothing is known of its duration"
    assert told(campaign("python train.py --save_every 10000", "timeout: 1h")) == [], "a limit is no duration"
    of = campaign("python train.py --save_every 200000")
    assert "in steps it is more than the run has (120,000), and no checkpoint" in told(of)[0]
    assert "in both it is longer than the run; no checkpoint" in told(of, finished(of, 2, 60))[0]
    of = campaign("python train.py --log_every 10000")
    assert told(of, finished(of, 17, 5940)) == []


def test_a_declared_clock_tells_the_unit() -> None:
    progress = "progress: [{jsonl: metrics.jsonl, step: step, every: 1000s}]"
    of = campaign("python train.py --log_every 1000 --save_every 10000 --eval_every 7000", progress)
    (found,) = told(of, finished(of, 17, 5940))
    assert "save_every 10000 (seconds, in its command) is longer than a run" in found
    other = campaign("python train.py --log_every 500 --save_every 10000", progress)
    assert "may count seconds or steps" in told(other, finished(other, 17, 5940))[0]


def test_dreamers_evaluations_count_steps() -> None:
    of = campaign(DREAMER.replace("10000", "60") + " --run.eval_every 100000")
    assert told(of, finished(of, 17, 5940)) == []
    of = campaign(DREAMER.replace("10000", "60") + " --run.eval_every 1e6")
    assert "no evaluation on the way" in told(of, finished(of, 17, 5940))[0]


def test_what_a_long_log_period_costs() -> None:
    of = campaign(DREAMER.replace("10000", "60").replace("log_every 1000", "log_every 6000"))
    assert "nothing would be logged on the way, and a living run looks stalled" in told(of, finished(of, 17, 5940))[0]


@pytest.mark.parametrize(
    ("name", "value", "kind", "amount", "unit"),
    [
        ("save_every", "10000", "save", 10000, None),
        ("run.save_every", "1e4", "save", 10000, None),
        ("--no", "1", None, 0, None),
        ("save_freq", 20000, "save", 20000, "steps"),
        ("save_steps", "500", "save", 500, "steps"),
        ("logging_steps", 10, "log", 10, "steps"),
        ("save-interval-secs", "600", "save", 600, "seconds"),
        ("save_every_s", "600", "save", 600, "seconds"),
        ("ckpt_every_minutes", "10", "save", 600, "seconds"),
        ("checkpoint_interval", "10m", "save", 600, "seconds"),
        ("checkpoint.save_every_n_epochs", "10", "save", 10, "epochs"),
        ("logger_cfgs:save_model_freq", "100", "save", 100, "steps"),
        ("env_eval_freq", "20_000", "eval", 20000, "steps"),
        ("check_val_every_n_epoch", "5", "eval", 5, "epochs"),
        ("EVAL_STEPS", "3000", None, 0, None),  # the length of an evaluation
        ("n_eval_episodes", "10", None, 0, None),
        ("save_total_limit", "3", None, 0, None),
        ("every", "7", None, 0, None),
        ("save_every", "0", None, 0, None),
        ("save_every", "-1", None, 0, None),
        ("save_every", "never", None, 0, None),
        ("save_every", True, None, 0, None),
        ("saved_freq_of_it", "5", None, 0, None),
    ],
)
def test_names(name: str, value: object, kind: str | None, amount: float, unit: str | None) -> None:
    found = parse_period(name, value, "")
    if kind is None:
        assert found is None
    else:
        assert found is not None
        assert (found.kind, found.value, found.unit) == (kind, amount, unit)


@given(st.text(max_size=30), st.one_of(st.text(max_size=12), st.floats(), st.integers(), st.none(), st.booleans()))
def test_any_words_are_read_without_a_fall(name: str, value: object) -> None:
    found = parse_period(name, value, "")
    assert found is None or found.value > 0


# -- config files


def test_a_config_file_that_the_command_names(tmp_path: Path) -> None:
    for file, text in {
        "cfg.yaml": "training: {save_freq: 200000, log_freq: 50}\n",
        "cfg.json": '{"training": {"save_freq": 200000}}',
        "cfg.toml": "[training]\nsave_freq = 200_000\n",
    }.items():
        (tmp_path / file).write_text(text)
        of = campaign(f"python train.py --config_path={file}", folder=str(tmp_path))
        (found,) = told(of, root=str(tmp_path))
        assert f"training.save_freq 200000 (steps, in {file}) is more than the run has (120,000)" in found
        of = campaign(f"python train.py --config_path {file} --save_freq 100", folder=str(tmp_path))
        assert told(of, root=str(tmp_path)) == [], "the command has the last word"


def test_a_file_that_is_broken_or_gone_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "cfg.json").write_text('{"save_freq": 2000')
    of = campaign("python train.py cfg.json gone.yaml --x=other.toml", folder=str(tmp_path))
    assert told(of, root=str(tmp_path)) == []


def test_the_configs_that_a_dreamer_names(tmp_path: Path) -> None:
    (tmp_path / "SafeDreamer").mkdir()
    (tmp_path / "SafeDreamer" / "configs.yaml").write_text(
        "defaults:\n  run: {save_every: 900, log_every: 300}\nv2_full:\n  run.save_every: 10000\n"
    )
    command = "python SafeDreamer/train.py --configs {config} --seed {seed} --logdir runs/"
    of = campaign(command, folder=str(tmp_path))
    (found,) = told(of, finished(of, 17, 5940), root=str(tmp_path))
    assert (
        "(5 of 20 cells, such as train/v2_full/0): run.save_every 10000 (seconds, in SafeDreamer/configs.yaml: v2_full)"
        in found
    )


# -- no false alarm


@pytest.mark.parametrize("name", template_names())
def test_templates_are_right(name: str) -> None:
    of = read_campaign(template_text(name), file="campaign.yaml", folder="/c").campaign
    assert told(of) == []
    for job in of.jobs:
        assert told(of, finished(of, 4, 5940, job.name)) == []


def test_the_example_is_right() -> None:
    folder = ROOT / "examples" / "safe_nav"
    of = read_campaign((folder / "campaign.yaml").read_text(), file="campaign.yaml", folder=str(folder)).campaign
    assert told(of, finished(of, 20, 1.5), root=str(folder)) == []
