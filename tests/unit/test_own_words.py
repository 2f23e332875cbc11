"""Which Pythons `check` asks by itself: programs of the user's that nothing of the campaign can change."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from muster.app.campaign.ask_environments import trusted_command_words
from muster.app.campaign.preflight.python_environments import PythonEnvironment

CONDA = "/opt/conda/bin/conda"


def asked(root: Path, *words: str, cwd: Path | None = None, env: str = "") -> tuple[str, ...]:
    each = PythonEnvironment(
        ("train",), words, str(cwd or root), {env: "0"} if env else {}, certain=True, gpus=0, required=False
    )
    return trusted_command_words(each, str(root))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A campaign with a virtual environment of its own, which comes first on PATH, as the user has activated it."""
    (tmp_path / "camp" / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / "camp" / "campaign.yaml").touch()
    (tmp_path / "bin").mkdir()
    for folder in (tmp_path / "camp" / ".venv" / "bin", tmp_path / "bin"):
        (folder / "python3").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", f"{tmp_path}/camp/.venv/bin:.:{tmp_path}/bin")
    return tmp_path / "camp"


def test_a_python_of_the_user(root: Path) -> None:
    assert asked(root, "/usr/bin/python3") == ("/usr/bin/python3",)
    assert asked(root, "python3", env="CUDA_VISIBLE_DEVICES") == (f"{root.parent}/bin/python3",)
    assert asked(root, CONDA, "run", "-n", "own", "python") == (CONDA, "run", "-n", "own", "python")


@pytest.mark.parametrize(
    "words",
    [
        ("bin/python",), ("./python3",), ("../bin/python3",), ("ROOT/.venv/bin/python3",), ("python4",),
        ("uv", "run", "python"), ("/usr/bin/uv", "run", "python"), ("poetry", "run", "python"), ("env", "A=1", "python3"),
        (CONDA, "run", "-p", "./own", "python"), (CONDA, "run", "-p", "/elsewhere/own", "python"),
        ("conda/bin/conda", "run", "-n", "own", "python"), ("ROOT/conda", "run", "-n", "own", "python"),
    ],
)  # fmt: skip
def test_what_the_campaign_can_change(root: Path, words: tuple[str, ...]) -> None:
    assert asked(root, *(word.replace("ROOT", str(root)) for word in words)) == ()


@pytest.mark.parametrize(
    "name", ["PYTHONPATH", "PYTHONSTARTUP", "LD_PRELOAD", "PATH", "HOME", "CONDA_ROOT", "BASH_ENV"]
)
def test_what_loads_code_into_it(root: Path, name: str) -> None:
    assert asked(root, "/usr/bin/python3", env=name) == ()


def test_a_working_folder_elsewhere(root: Path) -> None:
    assert asked(root, f"{root.parent}/bin/python3", cwd=root.parent / "bin") == ()
