"""The templates against the trainers that they are for: flags, configs, folders and files of the real packages.

The facts in tools/fixtures are written by tools/trainer_facts.py.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from muster.app.campaign.preflight.launched_command import ACCELERATE_FLAGS, TORCHRUN_FLAGS, find_launched_target
from muster.engine.plan.cell_command import AttemptContext, build_command, cell_placeholder_values
from muster.model.campaign import Campaign, Job, section_as_written
from muster.model.cell import list_cells_of_job
from muster.spec import read_campaign
from muster.spec.campaign_templates import template_names, template_text

FACTS = Path(__file__).parents[3] / "tools" / "fixtures"


def facts(name: str) -> dict[str, Any]:
    return dict(json.loads((FACTS / f"{name}.json").read_text()))


def read(text: str) -> Campaign:
    parsed = read_campaign(text, file="campaign.yaml", folder="/c/campaign")
    assert parsed.warnings == ()
    return parsed.campaign


def lines_of(campaign: Campaign, job: Job) -> list[list[str]]:
    """The words of every cell, of a first attempt and of one that resumes."""
    cells = list(list_cells_of_job(campaign, job))
    if campaign.loop:  # its variants are not known yet
        return [list(job.command), list(job.resume or ())]
    found = []
    for cell in cells:
        for last in ("", "LAST"):
            place = AttemptContext(1, "OUT", gpus=(0,), outputs=dict.fromkeys(job.needs, "OUT"), last_checkpoint=last)
            found.append(build_command(job, cell_placeholder_values(job, cell, place)))
    return found


def flags_in(words: list[str]) -> set[str]:
    target = find_launched_target(words)
    assert target is not None
    own = words[target.at + 1 :]
    return {word.removeprefix("--").partition("=")[0] for word in own if word.startswith("--")}


def sources(job: Job) -> set[str]:
    named = {each.path for each in job.progress if each.path} | {each.path for each in job.results if each.path}
    return named | ({job.proof.checkpoint.path} if job.proof.checkpoint else set()) | set(job.proof.files)


# -- SafeDreamer


def test_safedreamer_names_what_upstream_has() -> None:
    known, campaign = facts("safedreamer"), read(template_text("safedreamer"))
    for job in campaign.jobs:
        for words in lines_of(campaign, job):
            assert flags_in(words) <= set(known["flags"])
            named = words[words.index("--configs") + 1]
            assert named in known["configs"]
            script = words[words.index("--run.script") + 1] if "--run.script" in words else "train_eval"
            assert script in known["scripts"]
            assert "--run.steps" in words, f"unsaid, {known['run_steps'][named]} steps"
        assert sources(job) <= set(known["files"])
        assert {each.key for each in job.results} <= set(known["keys"])
        assert job.timeout_s
        assert known["folder"] == "{time}_{method}_{task}_{seed}"
        task = "safetygymcoor_SafetyPointGoal1-v0"
        label = "eval-{config}-{split}" if job.name == "eval" else "{config}"
        assert job.output.endswith(f"runs/*_{label}_{task}_{{seed}}")


def test_safedreamer_scales_by_the_repeat_of_its_own_task() -> None:
    known, campaign = facts("safedreamer"), read(template_text("safedreamer"))
    job = campaign.job("train")
    words = lines_of(campaign, job)[0]
    suite = words[words.index("--task") + 1].partition("_")[0]
    (logged,) = [each for each in job.progress if each.kind == "jsonl"]
    for config in ("defaults", *(each.name for each in campaign.axis("config").values)):
        repeat = known["repeat"].get(config, {}).get(suite, known["repeat"]["defaults"][suite])
        assert logged.scale == pytest.approx(1 / repeat), config


def test_safedreamer_resumes_and_has_the_columns_of_the_decision() -> None:
    text = template_text("safedreamer")
    campaign = read(text)
    assert "--run.from_checkpoint" in (campaign.job("train").resume or ())
    assert campaign.report is not None
    assert "ood/cost@best" in campaign.report.columns
    fork = re.sub(r"^ *ood: .*\n|^report: .*\n", "", text, flags=re.MULTILINE)
    fork = re.sub(r"# fork: ", "", fork)
    of_fork = read(fork)
    assert of_fork.report is not None
    assert "train/risk_penalty" in of_fork.report.columns
    assert "--hallu.level" in of_fork.axis("split").values[1].args


def test_safedreamer_on_cpus() -> None:
    """As its comment says."""
    text = template_text("safedreamer")
    for old, new in (("slots: {gpus: auto}", "slots: {gpus: 0, cpus: 4}"),
                     ("--jax.logical_gpus {gpu}", "--jax.platform cpu")):  # fmt: skip
        assert old in text
        text = text.replace(old, new)
    campaign = read(text.replace("for `--jax.platform cpu` below", ""))
    assert {"jax.platform", "jax.logical_gpus"} <= set(facts("safedreamer")["flags"])
    assert not any("{gpu}" in word for job in campaign.jobs for word in (*job.command, *(job.resume or ())))


# -- LeRobot


@pytest.mark.parametrize("version", ["lerobot", "lerobot.installable"])
def test_lerobot_names_what_its_version_has(version: str) -> None:
    known, campaign = facts(version), read(template_text("lerobot"))
    (job,) = campaign.jobs
    for words in lines_of(campaign, job):
        target = find_launched_target(words)
        assert target is not None
        assert (target.kind, target.sure) == ("module", True)
        assert target.name in known["modules"]
        assert flags_in(words) <= set(known["flags"])
    assert known["push_to_hub"] is True
    assert "--policy.push_to_hub=false" in job.command
    assert {"--seed={seed}", "--wandb.run_id=null"} <= set(job.command)
    assert job.proof.checkpoint is not None
    assert job.proof.checkpoint.path in known["files"]
    assert any(word.endswith(f"{{last.checkpoint}}/{known['files'][1]}") for word in job.resume or ())
    assert campaign.loop is not None
    asked = set(re.findall(r'"(train/\w+)"', json.dumps(section_as_written(campaign.loop)).replace('\\"', '"')))
    assert asked
    assert asked <= set(known["keys"])


# -- OmniSafe


def test_omnisafe_names_what_its_version_has() -> None:
    known, campaign = facts("omnisafe"), read(template_text("omnisafe"))
    (job,) = campaign.jobs
    assert {each.name for each in campaign.axis("config").values} <= set(known["algorithms"])
    assert job.shell
    for words in lines_of(campaign, job):
        text = words[-1]
        moved, _, line = text.partition(" && ")
        assert moved == 'cd "OUT"'
        own = line.split()
        assert own[:2] == ["python", '"$OLDPWD/train_policy.py"']
        algorithm = own[own.index("--algo") + 1]
        flags = {word[2:] for word in own if word.startswith("--")}
        assert flags <= set(known["flags"]) | set(known["custom"][algorithm])
        assert "OUT" not in line, "a value with a dot in it is read as a number"
    assert known["dotted_values_are_numbers"]
    assert known["log_dir"] == ["./runs"]
    start = f"runs/*/{known['run_folder']}*/"
    assert sources(job) == {f"{start}{known['files'][0]}", f"{start}{known['files'][1]}*.pt"}
    keys = {each.key for each in job.results} | {each.step for each in job.progress if each.step}
    assert keys <= set(known["keys"])


# -- the others, and the launchers


def test_every_other_template_is_for_a_script_of_the_users() -> None:
    for name in set(template_names()) - {"safedreamer", "lerobot", "omnisafe"}:
        campaign = read(template_text(name))
        for job in campaign.jobs:
            target = find_launched_target(job.command)
            assert target is not None
            assert (target.kind, target.name) in (("script", "train.py"), ("script", "eval.py")), name


def test_the_options_of_launchers_that_take_no_value() -> None:
    known = facts("launchers")
    assert set(known["accelerate"]["flags_without_value"]) == ACCELERATE_FLAGS
    assert set(known["torchrun"]["flags_without_value"]) == TORCHRUN_FLAGS
