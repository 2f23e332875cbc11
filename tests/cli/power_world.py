"""A machine of its own for a campaign that is to be powered off: no GPU, no real power switch, little patience."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from support.camp import Camp

OFF = "shutdown -h now"
SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "schemas" / "shutdown.schema.json").read_text())

ONE = """\
muster: 1
campaign: one
axes: {seed: [0, 1]}
slots: {gpus: 0, cpus: 2}
finish: {others: ignore}
jobs: {train: {axes: [seed], command: "sh -c 'echo started; read word < gate-{seed}; exit $word'"}}
"""
# as much of NVML as is asked for: a machine with as many GPUs as the file says, somebody on each
NVML = """
import os
from pathlib import Path
from types import SimpleNamespace
class NVMLError(Exception): pass
def nvmlInit(): pass
def nvmlShutdown(): pass
def nvmlDeviceGetCount():
    told = Path(os.environ["FAKE_GPUS"]).read_text()
    if told == "broken":
        raise NVMLError("Driver/library version mismatch")
    return int(told)
def nvmlDeviceGetHandleByIndex(index): return index
def nvmlDeviceGetName(index): return "made up"
def nvmlDeviceGetComputeRunningProcesses(index): return [SimpleNamespace(pid=7, usedGpuMemory=1)]
def nvmlDeviceGetMemoryInfo(index): return SimpleNamespace(used=0)
"""


@pytest.fixture
def machine(camp: Camp, tmp_path: Path) -> Camp:
    """A campaign on a machine of its own: no GPU unless a test puts one there, no power switch, little patience."""
    (tmp_path / "nvml").mkdir()
    (tmp_path / "nvml" / "pynvml.py").write_text(NVML)
    gpus = tmp_path / "gpus"
    gpus.write_text("0")
    camp.environment |= {"PYTHONPATH": str(tmp_path / "nvml"), "FAKE_GPUS": str(gpus), "MUSTER_PACE": "0.005"}
    camp.gpus = gpus
    switches(camp, tmp_path)
    camp.write(ONE)
    camp.gates(0, 1)
    camp.marker = camp.switches
    camp.off = ("--countdown", "0.2s")
    return camp


def switches(camp: Camp, folder: Path) -> None:
    """Whatever a test does, the real ones are out of its reach: these stand before them, and write down who called."""
    (folder / "bin").mkdir()
    camp.switches = folder / "switches"
    camp.environment["PATH"] = f"{folder / 'bin'}{os.pathsep}{camp.environment['PATH']}"

    def make(name: str, code: int) -> None:
        path = folder / "bin" / name
        said = "" if code == 0 else "echo no rights >&2\n"
        path.write_text(f'#!/bin/sh\necho {name} "$@" | sed "s/ *$//" >> {camp.switches}\n{said}exit {code}\n')
        path.chmod(0o755)

    for name in ("shutdown", "poweroff", "halt"):
        make(name, 0)
    camp.break_switches = lambda *names: [make(name, 1) for name in names]


def complete(camp: Camp) -> None:
    camp("up", "--detach", code=0)
    camp.open(0)
    camp.open(1)
    camp("wait", code=0)


def fits(found: Any) -> Any:
    problems = [error.message for error in Draft202012Validator(SCHEMA).iter_errors(found)]
    assert not problems, problems
    return found
