"""Which Python a command runs, so that its own environment can be asked; and never a word that starts a training."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.app.campaign.preflight.launched_command import Interpreter, find_interpreter, make_shebang_reader


def found(command: str, within: str = "", *, shell: bool = False, script: str | None = None) -> Interpreter:
    words = ["/bin/sh", "-c", command] if shell else shlex.split(command)
    return find_interpreter(
        shlex.split(within), words, shell=shell, shebang=lambda _: shlex.split(script) if script else None
    )


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("python train.py --python python3", "python"),
        ("python3.11 -u train.py", "python3.11"),
        ("/opt/env/bin/python train.py", "/opt/env/bin/python"),
        (".venv/bin/python -m torch.distributed.run train.py", ".venv/bin/python"),
        ("uv run python train.py", "uv run python"),
        ("uv run --with numpy train.py --seed 1", "uv run --with numpy python"),
        ("env A=1 python train.py", "env A=1 python"),
        ("nice -n 5 python3 train.py", "nice -n 5 python3"),
        ("conda run -n x python train.py", "conda run -n x python"),
        ("bash scripts/run.sh python", ""),
        ("env A=1 bash scripts/run.sh python", ""),
        ("xvfb-run ./start.sh python", ""),
        ("srun python train.py", ""),  # it would wait in a queue
        ("make python", ""),
        ("timeout 3h ./train", ""),
        ("pythonic train.py", ""),
    ],
)
def test_of_a_command(command: str, words: str) -> None:
    assert found(command) == Interpreter(tuple(words.split()))


def test_within_goes_before_it() -> None:
    within = "conda run --no-capture-output -n safedreamer"
    assert found("python SafeDreamer/train.py", within) == Interpreter((*within.split(), "python"))
    assert found("python train.py", "docker run image").words == ("docker", "run", "image", "python")


def test_an_environment_has_a_python_even_where_the_command_starts_something_else() -> None:
    assert found("bash run.sh", "conda run -n x") == Interpreter(("conda", "run", "-n", "x", "python"), certain=False)
    assert found("bash run.sh", "docker run image") == Interpreter(())


def test_of_a_shell_text() -> None:
    assert found("SEEDS='2 3' python train.py | tee log", shell=True).words == ("python",)
    assert found("cd x && python train.py", shell=True).words == ()
    assert found("echo 'open", shell=True).words == ()
    assert found("", shell=True).words == ()


def test_of_a_script() -> None:
    assert found("accelerate launch train.py", script="/opt/env/bin/python3.10").words == ("/opt/env/bin/python3.10",)
    assert found("./train.py", script="/usr/bin/env python3").words == ("/usr/bin/env", "python3")
    assert found("./train.sh", script="/bin/bash").words == ()


def test_shebangs_are_read_where_the_command_would_be_found(tmp_path: Path) -> None:
    script = tmp_path / "accelerate"
    script.write_text("#!/opt/env/bin/python\nimport x\n")
    script.chmod(0o755)
    (tmp_path / "binary").write_bytes(b"\x7fELF")
    read = make_shebang_reader(str(tmp_path), str(tmp_path))
    assert read("accelerate") == ["/opt/env/bin/python"]
    assert read("./accelerate") == ["/opt/env/bin/python"]
    assert read("./binary") is None
    assert read("nowhere") is None
    assert read("./nowhere") is None


@pytest.mark.parametrize("line", [b"#!/usr/bin/env python -c 'open\n", b'#!"\n', b"#!a\\", b"#!", b"#!\xff\x00'", b""])
def test_a_first_line_that_is_none_tells_nothing(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "train").write_bytes(line)
    assert not make_shebang_reader(str(tmp_path), "")("./train")


words = st.text() | st.sampled_from(
    ["python", "uv", "run", "env", "A=1", "'", "train.py", "/", "", "a/\0", "conda", "sh"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(words, max_size=4), st.lists(words, max_size=5), st.booleans(), st.binary(max_size=80))
def test_no_command_and_no_script_is_an_error(
    tmp_path: Path, within: list[str], command: list[str], shell: bool, first: bytes
) -> None:
    (tmp_path / "script").write_bytes(b"#!" + first)
    read = make_shebang_reader(str(tmp_path), str(tmp_path))
    for told in (command, ["./script", *command]):
        got = find_interpreter(within, told, shell=shell, shebang=read)
        assert not got.words or any("py" in word for word in got.words)
