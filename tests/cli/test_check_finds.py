"""`check` sees what would fail before it is paid for, `up` refuses it, and `plan` says so. Nothing of the user's runs."""

from __future__ import annotations

import pytest

from support.camp import Camp

TEXT = """\
muster: 1
campaign: finds
axes: {config: {small: {args: --configs small}, big: {args: --configs bgi}}, seed: [0, 1]}
slots: {gpus: 0, cpus: 1}
jobs:
  train: {axes: [config, seed], command: "COMMAND {config.args} --seed {seed}"}
"""


def write(camp: Camp, command: str) -> None:
    camp.write(TEXT.replace("COMMAND", command))


def test_a_python_that_is_asked_says_which_module_it_lacks(camp: Camp) -> None:
    write(camp, "python3 -m nonexist.mod")
    assert "no module" not in camp("check", "--quick", code=0).stdout
    (failure,) = [each for each in camp.json("check", "--ask", code=1)["failures"] if "no module" in each["message"]]
    assert failure["message"] == "job train: `python3` has no module nonexist"
    assert "fix the name" in failure["hint"]
    write(camp, "python3 -m json.tool")
    assert "no module" not in camp("check", "--ask").stdout
    (camp.root / "nonexist.py").write_text("open('ran', 'w')\n")
    write(camp, "python3 -m nonexist")
    assert "no module" not in camp("check", "--ask").stdout
    assert not (camp.root / "ran").exists()


@pytest.mark.parametrize(
    ("command", "what", "hint"),
    [
        ("python3 trian.py", "there is no file trian.py", "did you mean 'train.py'?"),
        ("nice -n 3 env A=1 python3 -m own.nothing", "there is no module own.nothing", "own/nothing.py"),
        ("./train.py", "./train.py is not executable", "chmod +x ./train.py"),
        ("python3 ~/train.py", "no shell runs this: ~ in '~/train.py' stays as it is", "write the path or value"),
    ],
)
def test_what_will_fail_stops_up_and_plan_says_so(camp: Camp, command: str, what: str, hint: str) -> None:
    (camp.root / "train.py").write_text("open('ran', 'w')\n")
    (camp.root / "own").mkdir()
    (camp.root / "own" / "__init__.py").write_text("open('ran', 'w')\n")
    write(camp, command)
    found = camp.json("check", "--quick", code=2)
    (mistake,) = found["mistakes"]
    assert what in mistake["message"]
    assert hint in mistake["hint"]
    assert mistake["line"] == 6
    assert what in camp("up", code=2).stderr
    assert not (camp.root / ".muster").exists()
    if "~" not in command:  # a file that can't be read has no plan
        assert "`muster check` finds 1 mistake that keeps `muster up` from starting any of it" in camp("plan").stdout
        assert camp.json("plan", code=0)["mistakes"] == 1
    assert not (camp.root / "ran").exists()


def test_a_config_that_the_trainer_does_not_have(camp: Camp) -> None:
    folder = camp.root / "dreamer"
    folder.mkdir()
    (folder / "train.py").write_text("print('trained')\n")
    (folder / "configs.yaml").write_text("defaults: {run: {steps: 1}}\nsmall: {}\nbig: {}\n")
    write(camp, "python3 dreamer/train.py")
    (mistake,) = camp.json("check", "--quick", code=2)["mistakes"]
    assert mistake["message"] == "job train: dreamer/configs.yaml has no config 'bgi' (cell train/big/0)"
    assert mistake["hint"] == "did you mean 'big'?"
    (folder / "configs.yaml").write_text("small: {}\n")  # some other trainer's: without `defaults` nothing is known
    assert camp.json("check", "--quick", code=0)["mistakes"] == []


def test_a_gpu_in_the_command_of_a_machine_without_one(camp: Camp) -> None:
    camp.write(TEXT.replace("COMMAND", "true --device {gpu}").replace("gpus: 0", "gpus: auto").replace("bgi", "big"))
    camp.has_gpus(0)
    warned = [each["message"] for each in camp.json("check", "--quick", code=0)["warnings"]]
    assert "job train: {gpu} is empty here: no slot has a GPU, and the command gets an empty word" in warned
    assert "{gpu} is empty here" in camp("up", code=0).stderr
    camp.has_gpus(1)
    assert not [
        each for each in camp.json("check", "--quick", code=0)["warnings"] if "is empty here" in each["message"]
    ]
