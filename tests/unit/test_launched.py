"""What a command runs in the end, and whether it is there: launchers are seen through, nothing is executed."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.app.campaign.preflight.launched_command import find_launched_target
from muster.app.campaign.preflight.missing_programs import (
    UNKNOWN_VALUE,
    find_missing_in_shell_text,
    find_missing_target,
)

PATH = "/usr/bin:/bin"


@pytest.mark.parametrize(
    ("line", "kind", "name", "sure"),
    [
        ("python train.py --seed 1", "script", "train.py", True),
        ("/opt/v/bin/python3.11 -u -X dev train.py", "script", "train.py", True),
        ("python -m pkg.train --a", "module", "pkg.train", True),
        ("env A=1 -u B nice -n 5 nohup python train.py", "script", "train.py", True),
        ("timeout -k 5 1h taskset -c 0-3 python train.py", "script", "train.py", True),
        ("conda run --no-capture-output -n dreamer python a/train.py", "script", "a/train.py", True),
        ("uv run train.py", "script", "train.py", True),
        ("uv run --with x train.py", "script", "train.py", False),
        ("poetry run python train.py", "script", "train.py", True),
        ("bash run.sh 1", "script", "run.sh", True),
        ("./run.sh", "program", "./run.sh", True),
        ("nice ./run.sh", "program", "./run.sh", True),
        ("accelerate launch --num_processes 1 --main_process_port 5 src/t.py --x", "script", "src/t.py", True),
        ("accelerate launch --multi_gpu --cpu t.py data.py", "script", "t.py", True),
        ("accelerate launch --num_processes=1 -m lerobot.scripts.lerobot_train", "module",
         "lerobot.scripts.lerobot_train", True),
        ("python -m accelerate.commands.launch --cpu t.py", "script", "t.py", True),
        ("torchrun --standalone --nproc_per_node 2 t.py", "script", "t.py", True),
        ("python -m torch.distributed.run --nproc-per-node=2 t.py", "script", "t.py", True),
        ("srun --gpus 1 -l python t.py", "script", "t.py", False),
        ("srun -n 4 --label conda run -n e python t.py", "script", "t.py", False),
        ("mpirun -np 2 python -u t.py", "script", "t.py", False),
    ],
)  # fmt: skip
def test_launchers_are_seen_through(line: str, kind: str, name: str, sure: bool) -> None:
    found = find_launched_target(line.split())
    assert found is not None
    assert (found.kind, found.name, found.sure) == (kind, name, sure)
    assert line.split()[found.at] == name


@pytest.mark.parametrize(
    "line",
    [
        "python -c pass", "python", "bash -c train.py", "conda run --cwd /x python t.py", "conda activate x", "uv sync",
        "accelerate config", "accelerate launch --no_python t.py", "srun --config t.py", "env -C /x python t.py", "",
    ],
)  # fmt: skip
def test_what_the_words_do_not_tell(line: str) -> None:
    assert find_launched_target(line.split()) is None


def told(line: str, cwd: Path) -> str:
    found = find_missing_target(line.split(), str(cwd), PATH)
    return f"{'error' if found[2] else 'warning'}: {found[0]}; {found[1]}" if found else ""


def test_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").touch()
    (tmp_path / "pkg" / "train.py").touch()
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "only_here.py").touch()
    for line in ("python3 train.py", "python3 -m pkg.train", "nice python3 train.py", f"python3 {UNKNOWN_VALUE}/x.py",
                 "env torchrunx", "python3 -m lerobot.scripts.lerobot_train"):  # fmt: skip
        assert told(line, tmp_path).endswith("PATH and in " + str(tmp_path)) is (line == "env torchrunx"), line
    assert told("python3 trian.py", tmp_path) == "error: there is no file trian.py; did you mean 'train.py'?"
    assert told("python3 only_here.py", tmp_path).endswith("did you mean 'src/only_here.py'?")
    assert told("python3 -m pkg.trian", tmp_path) == "error: there is no module pkg.trian; did you mean 'pkg.train'?"
    assert told("python3 src", tmp_path).startswith("error: src is a folder without a __main__.py")
    assert told("python3 ~/t.py", tmp_path).endswith(
        "no shell replaces ~ here: write the path itself, or `shell: true`"
    )
    assert told("nice -n 1 ./train.py", tmp_path) == "error: ./train.py is not executable; chmod +x ./train.py"
    assert told("./train.py", tmp_path) == "error: ./train.py is not executable; chmod +x ./train.py"
    assert told("conda run -n x python t.py", tmp_path).startswith("error: the command 'conda' was not found")
    for line, hint in (("cd sub; python3 t.py", "`cwd: FOLDER`"), ("source .venv/bin/activate", "`shell: true`")):
        assert "is a part of the shell and no program" in told(line, tmp_path)
        assert hint in told(line, tmp_path)
        assert "installed" not in told(line, tmp_path)


def test_a_shell_text_is_only_doubted(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "train.py").touch()
    here = str(tmp_path)
    for text in ("cd a && python train.py", f"cd {UNKNOWN_VALUE} && python train.py", "cd $X && python train.py",
                 "python $F/train.py", "for i in 1 2; do echo $i; done", "python 'a"):  # fmt: skip
        assert find_missing_in_shell_text(text, here) is None, text
    for text in (
        "python train.py",
        f'cd "{UNKNOWN_VALUE}" && python "$OLDPWD/train.py"',
        "A=1 python train.py > log 2>&1",
        f"cd {UNKNOWN_VALUE} && python /nowhere/train.py",
    ):
        found = find_missing_in_shell_text(text, here)
        assert found is not None, text
        assert found[0].startswith("there is no file ")
        assert not found[2]
