"""Which environments a campaign has, and what follows from what their frameworks see. Nothing is started here."""

from __future__ import annotations

from typing import Any

import pytest

from muster.app.campaign.preflight.python_environments import (
    PythonEnvironment,
    choose_visible_gpus,
    environment_as_json,
    find_environment_mistakes,
    find_gpu_variable,
    find_python_environments,
)
from muster.hosts.local.python_probe import PythonAnswer
from muster.model.campaign import Axis, AxisValue, Campaign, Job, Slots, SlotUse

ONE = Axis("seed", (AxisValue("0", 0), AxisValue("1", 1)))
GPUS = ({"index": 0, "busy": True}, {"index": 1, "busy": False}, {"index": 2, "busy": False})
PYTHON = {"version": "3.11.7", "executable": "/usr/bin/python", "prefix": "/usr"}


def campaign(*jobs: Job, gpus: tuple[int, ...] | None = None, env: dict[str, str] | None = None) -> Campaign:
    return Campaign("c", (ONE,), jobs, slots=Slots(gpus=gpus), env=env or {})


def job(name: str = "train", command: str = "python train.py", **more: Any) -> Job:
    return Job(name, ("seed",), tuple(command.split()), **more)


def found(
    *jobs: Job, gpus: tuple[int, ...] | None = None, here: Any = GPUS, env: dict[str, str] | None = None
) -> list[PythonEnvironment]:
    return find_python_environments(campaign(*jobs, gpus=gpus, env=env), "/c", here, {"PATH": "/nowhere"})


def asked(**more: Any) -> PythonEnvironment:
    facts = {
        "jobs": ("train",), "words": ("python",), "cwd": "/c", "added": {"CUDA_VISIBLE_DEVICES": "0"}, "certain": True,
        "gpus": 1, "required": True, **more,
    }  # fmt: skip
    return PythonEnvironment(**facts)


def framework(name: str = "jax", gpus: int = 0, **more: Any) -> dict[str, Any]:
    return {"name": name, "version": "1.0", "gpus": gpus, "devices": ["cpu:0"] * (not gpus), "kinds": [], **more}


def answer(*frameworks: dict[str, Any], **more: Any) -> PythonAnswer:
    return PythonAnswer(("python",), **{"exit": 0, "python": PYTHON, "frameworks": frameworks, **more})


def levels(one: PythonEnvironment, said: PythonAnswer) -> list[str]:
    return [each.level for each in find_environment_mistakes(one, said)]


# -- which there are


def test_one_for_each_that_differs() -> None:
    conda = ("conda", "run", "-n", "x")
    same = found(job(), job("eval", "python eval.py"))
    assert [(each.jobs, each.words) for each in same] == [(("train", "eval"), ("python",))]
    assert len(found(job(), job("eval", within=conda))) == 2
    assert len(found(job(), job("eval", env={"A": "1"}))) == 2
    assert len(found(job(), job("eval", cwd="/elsewhere"))) == 2
    assert len(found(job(), job("plots", uses=SlotUse(gpu=0)))) == 2, "one sees GPUs, the other none"
    (none,) = found(job(command="bash run.sh"))
    assert none.words == ()
    assert environment_as_json(none, None)["command"] is None


def test_what_a_cell_takes_and_what_is_asked_for() -> None:
    (each,) = found(job(uses=SlotUse(gpu=2)))
    assert (each.gpus, each.required) == (2, True)
    (each,) = found(job(), gpus=(1,))
    assert (each.gpus, each.required) == (1, True)
    (each,) = found(job())
    assert (each.gpus, each.required) == (1, False), "it takes one because there is one"
    (each,) = found(job(), env={"JAX_PLATFORM_NAME": "gpu"})
    assert (each.gpus, each.required, each.framework) == (1, True, "jax")
    (each,) = found(job(), here=())
    assert (each.gpus, each.required) == (0, False)
    (each,) = found(job(uses=SlotUse(gpu=0)), gpus=(1,), env={"JAX_PLATFORM_NAME": "gpu"})
    assert (each.gpus, each.required, each.added["CUDA_VISIBLE_DEVICES"]) == (0, False, "")


def test_nobodys_gpus_are_looked_at_if_any_is_idle() -> None:
    assert choose_visible_gpus(campaign(job()), GPUS) == (1, 2)
    assert choose_visible_gpus(campaign(job(), gpus=(0, 1)), GPUS) == (1,)
    assert choose_visible_gpus(campaign(job(), gpus=(0,)), GPUS) == (0,), "all are in use: one look costs little"
    assert choose_visible_gpus(campaign(job()), ()) == ()


def test_frameworks_that_the_words_give_away() -> None:
    assert found(job(command="python train.py --jax.logical_gpus 0"))[0].framework == "jax"
    assert found(job(command="python -m torch.distributed.run train.py"))[0].framework == "torch"
    assert found(job())[0].framework is None


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"JAX_PLATFORM_NAME": "gpu"}, "JAX_PLATFORM_NAME=gpu"),
        ({"JAX_PLATFORMS": "cuda,cpu"}, "JAX_PLATFORMS=cuda,cpu"),
        ({"JAX_PLATFORM": "GPU"}, "JAX_PLATFORM=GPU"),
        ({"JAX_PLATFORMS": "cpu"}, None),
        ({"JAX_PLATFORM_NAME": ""}, None),
        ({}, None),
    ],
)
def test_variables_that_ask_for_a_gpu(env: dict[str, str], said: str | None) -> None:
    assert find_gpu_variable(env) == said


# -- what follows


def test_a_framework_that_sees_what_is_needed_is_no_news() -> None:
    assert levels(asked(), answer(framework(gpus=1))) == []
    assert levels(asked(gpus=0), answer(framework())) == [], "nobody needs one"
    assert levels(asked(), answer()) == [], "no framework, no word about it"


def test_one_that_sees_none_is_a_failure_where_a_gpu_is_asked_for() -> None:
    (said,) = find_environment_mistakes(asked(), answer(framework()))
    assert said.message == "job train needs a GPU, and jax 1.0 in `python` sees none (cpu:0)"
    assert "CUDA" in said.hint
    assert (said.level, said.path) == ("failure", "jobs.train.command")
    assert levels(asked(required=False), answer(framework())) == ["warning"]
    (said,) = find_environment_mistakes(
        asked(jobs=("train", "eval")), answer(framework(trouble="RuntimeError: no backend"))
    )
    assert said.message.startswith(
        "jobs train, eval need a GPU, and jax 1.0 in `python` fails: RuntimeError: no backend"
    )


def test_fewer_than_a_cell_takes() -> None:
    two = asked(gpus=2, added={"CUDA_VISIBLE_DEVICES": "0,1"})
    (said,) = find_environment_mistakes(two, answer(framework(gpus=1, devices=["cuda:0"])))
    assert said.message == "job train needs 2 GPUs, and jax 1.0 in `python` sees 1 (cuda:0)"
    assert levels(asked(gpus=2), answer(framework(gpus=1))) == [], "only one was shown to it"


def test_of_two_frameworks_the_one_that_is_used_counts() -> None:
    both = answer(framework("jax"), framework("torch", 1))
    assert levels(asked(), both) == ["warning"], "which one is used can't be told"
    assert levels(asked(framework="jax"), both) == ["failure"]
    assert levels(asked(framework="torch"), both) == []
    assert levels(asked(framework="jax"), answer(framework("torch", 1))) == [], "the known one is not installed"
    assert levels(asked(), answer(framework("jax"), framework("torch"))) == ["failure", "failure"]


def test_an_environment_that_does_not_start() -> None:
    gone = answer(exit=1, python=None, stderr="warning\nEnvironmentLocationNotFound: x\n")
    (said,) = find_environment_mistakes(asked(), gone)
    assert said.message == "job train: `python` can't be started: exit 1: EnvironmentLocationNotFound: x"
    assert said.level == "failure"
    assert levels(asked(certain=False), gone) == ["warning"]
    assert levels(asked(), answer(exit=None, python=None, timed_out=True)) == ["warning"], "slow is not missing"
    (said,) = find_environment_mistakes(asked(), answer(exit=None, python=None, trouble="No such file or directory"))
    assert said.message.endswith("can't be started: No such file or directory")


def test_one_that_is_slow_to_answer() -> None:
    slow = answer(framework(trouble="importing it did not come back"), exit=None, timed_out=True)
    assert levels(asked(), slow) == ["warning"], "slow is not missing"


def test_values_of_variables_are_not_saved_twice() -> None:
    record = environment_as_json(asked(added={"TOKEN": "s3cret", "CUDA_VISIBLE_DEVICES": "0"}), answer(framework()))
    assert "s3cret" not in str(record)
    assert record["env"] == ["CUDA_VISIBLE_DEVICES", "TOKEN"]
