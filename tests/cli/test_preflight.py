"""What `check` finds out before money is spent, and what stops `up`: real commands, made-up GPUs and frameworks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.camp import Camp

JAX = """
import os
__version__ = "0.4.26"
class Device:
    platform, device_kind = SEES, "made up"
    __repr__ = lambda self: self.platform + ":0"
devices = lambda: [Device()]
"""
ONE = """\
muster: 1
campaign: one
axes: {seed: [0]}
slots: {gpus: GPUS, cpus: 1}
jobs:
  train: {axes: [seed], USES command: "ITS_PYTHON -c pass"}
"""


def one(gpus: str, uses: str = "", more: str = "") -> str:
    return ONE.replace("GPUS", gpus).replace("USES", uses).replace("ITS_PYTHON", sys.executable) + more


@pytest.fixture(autouse=True)
def no_real_gpu() -> None:
    if list(Path("/dev").glob("nvidia[0-9]")):
        pytest.skip("this machine has a GPU: what is missing here is there")


# -- a GPU that is missing


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (one("[0, 1]"), "this machine has no GPU 1: it has 0"),
        (one("auto", "uses: {gpu: 2},"), "job train: a cell takes 2 GPUs and 1 can be used here: it would never start"),
        (
            one("0", "env: {JAX_PLATFORM_NAME: gpu},"),
            "job train: JAX_PLATFORM_NAME=gpu asks for a GPU, and no slot here has one",
        ),
    ],
)
def test_stops_up_before_it_costs_anything(camp: Camp, text: str, words: str) -> None:
    camp.write(text)
    camp.has_gpus(1)
    refused = camp("up", code=1)
    assert f"muster: {words}; nothing was started" in refused.stderr
    assert "fix:" in refused.stderr
    assert not (camp.root / ".muster").exists()
    error = json.loads(camp("up", "--detach", "--json", code=1).stderr)["error"]
    assert error["code"] == "preflight"
    assert words in error["message"]
    assert [item["message"] for item in camp.json("check", code=1)["failures"]] == [words]
    record = json.loads((camp.root / ".muster" / "preflight.json").read_text())
    assert record["failures"] == [words]


def test_a_gpu_that_is_there_stops_nothing(camp: Camp) -> None:
    camp.write(one("[0, 1]", "uses: {gpu: 2}, env: {JAX_PLATFORMS: 'cuda,cpu'},"))
    camp.has_gpus(2)
    camp("up", code=0)
    record = camp.json("check", code=0)["preflight"]
    assert [gpu["index"] for gpu in record["gpus"]] == [0, 1]
    assert (record["driver"], record["cuda"]) == ("550.54.15", "12.4")


def test_auto_without_a_gpu_is_a_warning(camp: Camp) -> None:
    camp.write(one("auto"))
    found = camp.json("check", code=0)
    assert "cells run on CPU slots" in found["warnings"][0]["message"]
    assert "warning: `gpus: auto`" in camp("up", code=0).stderr


def test_what_has_nothing_left_to_run_needs_no_gpu(camp: Camp) -> None:
    """Trained where there were GPUs; the plots are made where there are none."""
    camp.write(one("[0]", "uses: {gpu: 1},", '  plots: {axes: [], needs: [train], uses: {gpu: 0}, command: "true"}\n'))
    camp.has_gpus(1)
    camp("up", "--only", "job=train", code=3)
    camp.until(lambda: camp.controller() is None)
    camp.has_gpus(0)
    assert "warning: this machine has no GPU 0" in camp("up", code=0).stderr
    assert camp.cells() == {"train/0": "DONE", "plots": "DONE"}


def test_a_filter_that_leaves_the_gpu_out(camp: Camp) -> None:
    camp.write(one("[0]", "uses: {gpu: 1},", '  data: {axes: [], uses: {gpu: 0}, command: "true"}\n'))
    camp("up", "--only", "job=data", code=3)
    assert camp.cells()["data"] == "DONE"
    assert "this machine has no GPU 0" in camp("up", code=1).stderr


# -- the campaign's own environments


def site(camp: Camp, sees: str) -> str:
    folder = camp.root.parent / "site"
    folder.mkdir(exist_ok=True)
    (folder / "jax.py").write_text(JAX.replace("SEES", repr(sees)))
    return str(folder)


def test_a_framework_that_sees_no_gpu_is_a_failure(camp: Camp) -> None:
    camp.has_gpus(1)
    camp.write(one("[0]", f"env: {{PYTHONPATH: {site(camp, 'cpu')}}},"))
    found = camp.json("check", "--ask", code=1)
    (failure,) = found["failures"]
    assert failure["message"] == f"job train needs a GPU, and jax 0.4.26 in `{sys.executable}` sees none (cpu:0)"
    assert failure["path"] == "jobs.train.command"
    (asked,) = found["preflight"]["environments"]
    assert (asked["jobs"], asked["exit"], asked["gpus_shown"]) == (["train"], 0, "0")
    assert asked["frameworks"][0]["devices"] == ["cpu:0"]
    assert asked["packages"]
    assert "PYTHONPATH" in asked["env"]
    assert camp.json("check", "--quick", code=0)["preflight"].get("environments") is None


def test_where_a_gpu_is_taken_only_because_there_is_one_it_is_a_warning(camp: Camp) -> None:
    camp.has_gpus(1)
    camp.write(one("auto", f"env: {{PYTHONPATH: {site(camp, 'cpu')}}},"))
    (warning,) = camp.json("check", "--ask", code=0)["warnings"]
    assert "sees none (cpu:0)" in warning["message"]


def test_one_that_sees_it_is_told_and_saved(camp: Camp) -> None:
    camp.has_gpus(1)
    camp.write(one("[0]", f"env: {{PYTHONPATH: {site(camp, 'gpu')}}},"))
    told = camp("check", "--ask", code=0).stdout
    assert "driver  550.54.15, CUDA 12.4" in told
    assert "is Python 3." in told
    assert "jax 0.4.26 sees gpu:0 (made up);" in told


def test_an_environment_that_does_not_start_is_a_failure(camp: Camp) -> None:
    fake = camp.root / "conda"
    fake.write_text("#!/bin/sh\necho EnvironmentLocationNotFound: Not a conda environment: $3 >&2\nexit 1\n")
    fake.chmod(0o755)
    text = one("0", "within: ./conda run -n gone,").replace(sys.executable, "python")
    camp.write(text)
    (failure,) = camp.json("check", "--ask", code=1)["failures"]
    assert failure["message"].startswith(
        "job train: `./conda run -n gone python` can't be started: exit 1: EnvironmentLocationNotFound"
    )
    camp.write(text.replace("python -c pass", "bash -c true"))  # that `python` is a guess
    assert len(camp.json("check", "--ask", code=0)["warnings"]) == 1


def test_a_command_without_a_python_is_not_asked(camp: Camp) -> None:
    camp.write(one("0").replace(f"{sys.executable} -c pass", "/bin/sh -c true"))
    (asked,) = camp.json("check", "--ask", code=0)["preflight"]["environments"]
    assert asked["command"] is None
    assert "runs    train: the command names no Python" in camp("check", "--ask", code=0).stdout


def test_jobs_of_one_environment_are_asked_together(camp: Camp) -> None:
    camp.write(
        one(
            "0", "", f"  eval: {{axes: [seed], needs: [train], command: '{sys.executable} -c pass {{train.output}}'}}\n"
        )
    )
    (asked,) = camp.json("check", "--ask", code=0)["preflight"]["environments"]
    assert asked["jobs"] == ["train", "eval"]


def test_check_asks_nobody_unless_told_to(camp: Camp) -> None:
    """It says so in one line; once this user has run the campaign, Pythons that it can't change are asked."""
    mark = camp.root / "asked"
    (camp.root / "bin").mkdir()
    (camp.root / "bin" / "python").write_text(f"#!/bin/sh\n: > {mark}\n")
    (camp.root / "bin" / "python").chmod(0o755)
    camp.write(one("0").replace(sys.executable, "bin/python"))
    found = camp.json("check", code=0)
    (asked,), (note,) = found["preflight"]["environments"], found["notes"]
    assert (asked["command"], asked["note"]) == (["bin/python"], "not asked: `muster check --ask` executes it")
    assert "were not asked what they see, which would execute them: `bin/python`" in note["message"]
    assert note["hint"] == "`muster check --ask` asks them"
    told = camp("check", code=0)
    assert told.stderr.count("not asked") == 1
    assert "runs    train: bin/python, not asked" in told.stdout
    camp("up", code=0)
    mark.unlink()
    assert len(camp.json("check", code=0)["notes"]) == 1
    assert not mark.exists()
    camp("check", "--ask")
    assert mark.exists()


def test_check_asks_what_this_user_has_run(camp: Camp) -> None:
    (camp.root / "base64.py").write_text("raise SystemExit('imported')\n")
    camp.write(one("0"))
    assert len(camp.json("check", code=0)["notes"]) == 1
    camp("up", code=0)
    (asked,) = camp.json("check", code=0)["preflight"]["environments"]
    assert asked["python"]["executable"] == sys.executable
    assert camp.json("check", "--quick", code=0)["preflight"].get("environments") is None
    for loads in ("PYTHONPATH: lib",):  # the others: tests/unit/test_own_words.py
        camp.write(one("0", f"env: {{{loads}}},"))
        found = camp.json("check", code=0)
        assert (len(found["notes"]), found["preflight"]["environments"][0]["command"]) == (1, [sys.executable])
        assert "python" not in found["preflight"]["environments"][0]


def test_ask_and_quick_contradict_each_other(camp: Camp) -> None:
    camp.write(one("0"))
    assert "say one of the two" in camp("check", "--ask", "--quick", code=2).stderr


def test_up_asks_before_the_first_start_and_not_again(camp: Camp) -> None:
    """Whatever takes a GPU: so that nothing is paid for that would not see it."""
    camp.has_gpus(1)
    camp.write(one("[0]", f"env: {{PYTHONPATH: {site(camp, 'cpu')}}},"))
    refused = camp("up", code=1).stderr
    assert (
        f"job train needs a GPU, and jax 0.4.26 in `{sys.executable}` sees none (cpu:0); nothing was started" in refused
    )
    assert not (camp.root / ".muster").exists()
    jax = Path(site(camp, "gpu")) / "jax.py"
    jax.write_text(f"open({str(camp.root / 'asked')!r}, 'a').write('x')\n{jax.read_text()}")
    camp("up", code=0)
    assert (camp.root / "asked").read_text() == "x"
    camp("up", code=0)
    assert (camp.root / "asked").read_text() == "x"


# -- code


def test_what_is_not_committed_is_saved_as_text(camp: Camp) -> None:
    git = ["git", "-c", "user.name=me", "-c", "user.email=me@example.org", "-C", str(camp.root)]
    camp.write(one("0"))
    (camp.root / "code.py").write_text("before\n")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)
    (camp.root / "code.py").write_text("after\n" + "x" * (1 << 20))
    (code,) = camp.json("check", code=0)["preflight"]["code"].values()
    saved = Path(code["diff"]["path"])
    assert saved == camp.root / ".muster" / "diffs" / f"{code['dirty']}.diff"
    text = saved.read_text()
    assert "-before\n+after\n" in text
    assert (len(text), code["diff"]["cut"]) == (1 << 20, True)


# -- periods and looks


def test_check_plan_and_up_warn_of_a_save_period_that_outlasts_the_run(camp: Camp) -> None:
    """The reference: finished runs took about 5,940 s, and the command saves every 10,000."""
    camp.write("""\
muster: 1
campaign: paper
axes: {config: [v2_baseline, v2_full], seed: [0]}
slots: {gpus: 0, cpus: 1}
jobs:
  train:
    axes: [config, seed]
    output: runs/*_{config}_*_{seed}
    command: /bin/sh -c 'mkdir -p runs/new_{config}_x_{seed}' SafeDreamer/train.py --run.save_every 10000
""")
    folder = camp.root / "runs" / "old_v2_baseline_x_0"
    folder.mkdir(parents=True)
    for name, at in (("checkpoint.ckpt", 1771600000), ("metrics.jsonl", 1771605940)):
        (folder / name).write_text("x")
        os.utime(folder / name, (at, at))
    row = f"v2_baseline\t0\tsuccess\t{folder}"
    (camp.root / "status.tsv").write_text(f"config\tseed\tstatus\trun_dir\n{row}\n")
    camp("adopt", "--status-tsv", "status.tsv", code=0)
    words = "run.save_every 10000 (seconds, in its command) is longer than a run (about 5,940 s, from 1 finished one): the only checkpoint"
    (warning,) = camp.json("check", code=0)["warnings"]
    assert words in warning["message"]
    assert "594 or less" in warning["hint"]
    assert warning["line"] == 9
    assert words in camp("plan", code=0).stderr
    assert words in camp("up", code=0).stderr


def test_check_says_where_the_permutation_test_only_informs(camp: Camp) -> None:
    text = """\
muster: 1
campaign: looks
axes: {config: [a, b, c, d, e], seed: [0, 1, 2, 3, 4]}
slots: {gpus: 0, cpus: 1}
jobs:
  eval: {axes: [config, seed], command: "true {cell}", results: {score: {json: r.json, key: score}}}
decision: {primary: {metric: score, better: higher}, baseline: a}
"""
    camp.write(text)
    found = camp.json("check", code=0)
    assert [item["message"] for item in found["notes"]] == [
        "with 5 seeds, 4 candidates and 2 looks the permutation test can't reach p <= 0.00625 (its smallest is 0.00794): "
        "it informs and does not veto"
    ]
    assert found["warnings"] == []
    assert "campaign.yaml:7:11: note: with 5 seeds" in camp("check", code=0).stderr
    camp.write(text.replace("[a, b, c, d, e]", "[a, b, c, d]"))
    assert camp.json("check", code=0)["notes"] == [], "0.00794 is below 0.00833"
    camp.write(text.replace("baseline: a}", "baseline: a, looks: [5]}"))
    assert camp.json("check", code=0)["notes"] == []
    camp.write(text.replace("[0, 1, 2, 3, 4]", "[0, 1, 2, 3]"))
    assert "with 4 seeds" in camp.json("check", code=0)["notes"][0]["message"]
