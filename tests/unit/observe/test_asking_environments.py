"""Asking a Python what it is and what its frameworks see: real interpreters, made-up frameworks."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from muster.hosts.local.gpus import read_nvidia_driver
from muster.hosts.local.python_probe import PythonAnswer, ask_python

JAX = """
import os
__version__ = "0.4.26"
class Device:
    def __init__(self, platform, kind):
        self.platform, self.device_kind = platform, kind
    def __repr__(self):
        return self.platform + ":0"
def devices():
    assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
    print("noise of an import")
    if os.environ.get("JAX_PLATFORM_NAME") == "gpu" and not os.environ["CUDA_VISIBLE_DEVICES"]:
        raise RuntimeError("Unable to initialize backend 'gpu'\\nsecond line")
    return [Device("gpu", "NVIDIA H200")] if os.environ["CUDA_VISIBLE_DEVICES"] else [Device("cpu", "cpu")]
"""
TORCH = """
__version__ = "2.3.0+cu121"
class version:
    cuda = "12.1"
class cuda:
    is_available = staticmethod(lambda: True)
    device_count = staticmethod(lambda: 2)
    get_device_name = staticmethod(lambda index: "NVIDIA RTX %d" % index)
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    return folder


def answer(site: Path, words: list[str] | None = None, limit_s: float = 60, **more: str) -> PythonAnswer:
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(site), "CUDA_VISIBLE_DEVICES": "0", **more}
    return ask_python(words or [sys.executable], str(site), env, limit_s)


def test_a_python_tells_its_version_and_its_packages(site: Path) -> None:
    said = answer(site)
    assert (said.exit, said.timed_out, said.trouble, said.frameworks) == (0, False, "", ())
    assert said.python is not None
    assert said.python["version"] == sys.version.split()[0]
    assert said.packages["pytest"] == pytest.__version__


def test_frameworks_tell_their_devices(site: Path) -> None:
    (site / "jax.py").write_text(JAX)
    (site / "torch.py").write_text(TORCH)
    jax, torch = answer(site).frameworks
    assert (jax["name"], jax["version"], jax["gpus"], jax["devices"], jax["kinds"]) == (
        "jax", "0.4.26", 1, ["gpu:0"], ["NVIDIA H200"],
    )  # fmt: skip
    assert (torch["name"], torch["gpus"], torch["kinds"]) == ("torch", 2, ["NVIDIA RTX 0", "NVIDIA RTX 1"])
    (jax, _) = answer(site, CUDA_VISIBLE_DEVICES="").frameworks
    assert (jax["gpus"], jax["devices"]) == (0, ["cpu:0"])
    (jax, _) = answer(site, CUDA_VISIBLE_DEVICES="", JAX_PLATFORM_NAME="gpu").frameworks
    assert jax["trouble"] == "RuntimeError: Unable to initialize backend 'gpu'"
    assert "noise of an import" in answer(site).stdout


def test_a_module_of_the_working_folder_is_no_framework(tmp_path: Path, site: Path) -> None:
    (tmp_path / "jax.py").write_text("raise SystemExit('a script of somebody')")
    said = ask_python([sys.executable], str(tmp_path), {"PATH": os.environ["PATH"]})
    assert (said.exit, said.frameworks) == (0, ())


def test_a_framework_that_crashes_is_known_by_name(site: Path) -> None:
    (site / "jax.py").write_text("import os\nos._exit(7)")
    said = answer(site)
    assert said.exit == 7
    assert said.python
    assert said.packages
    (jax,) = said.frameworks
    assert (jax["name"], jax["trouble"]) == ("jax", "importing it took its Python with it: exit 7")


def test_one_that_hangs_is_ended_with_all_its_children(site: Path) -> None:
    (site / "torch.py").write_text(
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(site / 'pid')!r}, 'w').write(str(child.pid))\n"
        "time.sleep(600)\n"
    )
    said = answer(site, limit_s=3)
    assert (said.exit, said.timed_out) == (None, True)
    (torch,) = said.frameworks
    assert torch["trouble"] == "importing it did not come back"
    pid = int((site / "pid").read_text())
    deadline = time.monotonic() + 10
    while alive(pid) and time.monotonic() < deadline:  # it was killed, and the kernel takes its time
        time.sleep(0.01)
    assert not alive(pid)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_an_environment_that_is_not_there(site: Path) -> None:
    said = answer(site, ["/nowhere/bin/python"])
    assert (said.exit, said.python, said.trouble) == (None, None, "No such file or directory")
    said = answer(site, ["/bin/sh", "-c", "echo EnvironmentLocationNotFound: x >&2; exit 1"])
    assert (said.exit, said.python) == (1, None)
    assert "EnvironmentLocationNotFound" in said.stderr


def test_the_code_is_one_line_of_plain_words(site: Path) -> None:
    """`conda run` writes the words into a script: no line break, no quote but one pair."""
    echo = site / "echo"
    echo.write_text('#!/bin/sh\nprintf "%s" "$2" > seen\n')
    echo.chmod(0o755)
    answer(site, [str(echo)])
    code = (site / "seen").read_text()
    assert "\n" not in code
    assert code.count("'") == 2
    assert not set('"$`\\!') & set(code)


def test_the_driver_is_asked_and_nobody_waits_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    (tmp_path / "pynvml.py").write_text(
        "def nvmlInit(): pass\ndef nvmlShutdown(): pass\n"
        "def nvmlSystemGetDriverVersion(): return b'550.54.15'\n"
        "def nvmlSystemGetCudaDriverVersion_v2(): return 12040\n"
    )
    assert read_nvidia_driver() == {"version": "550.54.15", "cuda": "12.4"}
    monkeypatch.delitem(sys.modules, "pynvml")
    (tmp_path / "pynvml.py").write_text("import threading\ngo = threading.Event()\ndef nvmlInit(): go.wait()\n")
    (tmp_path / "__pycache__").mkdir(exist_ok=True)
    for old in (tmp_path / "__pycache__").iterdir():
        old.unlink()
    assert read_nvidia_driver(0.05)["cuda"] is None
    sys.modules["pynvml"].go.set()  # type: ignore[attr-defined]
    monkeypatch.delitem(sys.modules, "pynvml")
