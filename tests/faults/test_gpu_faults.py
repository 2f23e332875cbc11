"""Faults 20, 39 and 40 with a made-up NVML: a module of that name stands before the real one.

Everything else is real: the controller with its probe threads, shims, runs, slots.
"""

import json
import subprocess
from typing import Any

import pytest
from fault_world import World, evidence, said, ticks, until

NVML = '''
"""As much of NVML as Muster asks for; what it answers is in the file that FAKE_NVML names."""
import json, os, time
from types import SimpleNamespace

class NVMLError(Exception):
    pass

class NVMLError_GpuIsLost(NVMLError):
    pass

class NVMLError_ResetRequired(NVMLError):
    pass

def _told():
    while True:
        with open(os.environ["FAKE_NVML"]) as file:
            told = json.load(file)
        if not told.get("hangs"):
            return told
        time.sleep(0.02)

def _gpu(index):
    gpu = _told()["gpus"][index]
    if gpu.get("lost"):
        raise NVMLError_GpuIsLost("GPU is lost")
    return gpu

def nvmlInit():
    _told()

def nvmlShutdown():
    pass

def nvmlDeviceGetCount():
    return len(_told()["gpus"])

def nvmlDeviceGetHandleByIndex(index):
    return index if _gpu(index) else None

def nvmlDeviceGetName(index):
    return "made up"

def nvmlDeviceGetPciInfo(index):
    _gpu(index)
    return SimpleNamespace(domain=0, bus=4 + index, device=0)

def nvmlDeviceGetMemoryInfo(index):
    return SimpleNamespace(used=_gpu(index).get("memory", 0))

def nvmlDeviceGetPowerUsage(index):
    return _gpu(index).get("power_w", 90) * 1000

def nvmlDeviceGetUtilizationRates(index):
    return SimpleNamespace(gpu=_gpu(index).get("utilisation", 0))

def nvmlDeviceGetComputeRunningProcesses(index):
    return [SimpleNamespace(pid=pid, usedGpuMemory=1 << 30) for pid in _gpu(index).get("pids", ())]
'''
BUSY = {"utilisation": 100, "power_w": 631, "memory": 2 << 30}
TWO = "gpus: [0, 1]"
POLL_S = 0.1


class Nvml:
    def __init__(self, world: World, *gpus: dict[str, Any], **more: Any) -> None:
        self.world = world
        self.folder = world.root.parent / "nvml"
        self.folder.mkdir()
        (self.folder / "pynvml.py").write_text(NVML)
        self.says(*gpus, **more)

    def says(self, *gpus: dict[str, Any], **more: Any) -> None:
        partial = self.folder / "partial"
        partial.write_text(json.dumps({"gpus": gpus, **more}))
        partial.replace(self.folder / "told")

    def controller(self) -> subprocess.Popen[bytes]:
        env = {"PYTHONPATH": str(self.folder), "FAKE_NVML": str(self.folder / "told")}
        return self.world.controller(env)


def slots(world: World) -> dict[tuple[str, int], list[str]]:
    rows = world.rows("SELECT cell, n, slots FROM attempt ORDER BY claimed_boot")
    return {(row["cell"], row["n"]): json.loads(row["slots"]) for row in rows}


def test_20_a_gpu_at_full_load_and_heartbeats_without_steps(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A collective that waits for ever: every sign of activity, no step. marin#7344 had 512 such GPUs for 33 min."""
    world.pace(monkeypatch, 0.002, POLL_S)  # a tree that works as usual is convicted after 3.6 s
    nvml = Nvml(world, BUSY)
    body = """
def beat():
    while not is_there("go"):
        print("rank 0 alive", flush=True)
        time.sleep(0.05)
threading.Thread(target=beat, daemon=True).start()
log(0)
train(12, first=1)
wait_for("go")
"""
    world.trainer(body, gpus="gpus: [0]", cpus=0)
    nvml.controller()
    run = world.running("train/0")
    cell = world.until_cell("train/0", lambda cell: cell["verdict"] == "STALLED", "STALLED")
    assert said(cell) == ("STALLED", "spinning", "presumed", None)
    assert "100 % busy" in evidence(cell, "gpu0")["reading"]
    assert cell["slot"] == "gpu0.0"
    assert ticks(run)
    assert world.counted().of("train/0") == [1]
    world.until_seen("train/0", lambda seen: seen.convicted_polls > 10, "it stays convicted")
    assert said(world.cell("train/0"))[:2] == ("STALLED", "spinning")


LOST = """
if attempt == 1 and cell == "train/0":
    step = 0
    while not is_there("fails"):
        work(0.1)
        log(step)
        step += 1
    raise RuntimeError("CUDA error: unspecified launch failure")
log(1)
wait_for("go")
"""


def test_39_a_gpu_falls_off_the_bus(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the run lives its evidence says so; it ends, and is retried elsewhere: nothing starts on that GPU again."""
    world.pace(monkeypatch, 0.02, POLL_S)
    nvml = Nvml(world, BUSY, BUSY)
    world.trainer(LOST, gpus=TWO, cpus=0, seeds=4)
    nvml.controller()
    run = world.running("train/0")
    world.running("train/1")
    world.until_cell(
        "train/0", lambda cell: cell["step"] and evidence(cell, "gpu0")["says"] == "busy", "seen on its GPU"
    )
    nvml.says({"lost": True}, BUSY)
    cell = world.until_cell("train/0", lambda cell: evidence(cell, "gpu0")["says"] == "lost", "flagged")
    assert cell["verdict"] in ("RUNNING", "STALLED")  # it lives, and it is not called dead
    assert "GPU is lost" in evidence(cell, "gpu0")["reading"]
    assert evidence(world.cell("train/1"), "gpu1")["says"] == "busy"
    assert ticks(run)
    (world.root / "fails").touch()
    world.until_cell("train/0", lambda cell: cell["attempt_count"] == 1 and cell["verdict"] == "DEAD", "DEAD")
    (world.root / "go").touch()
    status = world.finish(retry=False)
    assert status["complete"]
    first, second = world.why("train/0")["attempts"]
    assert (first["cause"], first["confidence"], second["retry_cause"]) == ("gpu_lost", "proven", "gpu_lost")
    assert "another GPU" in first["try"]
    used = slots(world)
    assert used.pop(("train/0", 1)) == ["gpu0.0"]
    assert set(map(tuple, used.values())) == {("gpu1.0",)}
    world.check(cells=4)


def test_39_no_gpu_is_left(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The only one is lost: nothing starts on it, and nobody is left to wait for ever without being told why."""
    world.pace(monkeypatch, 0.02, POLL_S)
    nvml = Nvml(world, BUSY)
    world.trainer(LOST, gpus="gpus: [0]", cpus=0, seeds=2)
    nvml.controller()
    world.running("train/0")
    world.until_cell(
        "train/0", lambda cell: cell["step"] and evidence(cell, "gpu0")["says"] == "busy", "seen on its GPU"
    )
    nvml.says({"lost": True})
    world.until_cell("train/0", lambda cell: evidence(cell, "gpu0")["says"] == "lost", "flagged")
    (world.root / "fails").touch()
    (world.root / "go").touch()
    until(lambda: world.rows("SELECT * FROM attempt WHERE verdict = 'DEAD'"), "its end is recorded")
    assert said(world.cell("train/0")) == ("DEAD", None, "proven", "gpu_lost")
    polled = (world.state / "controller.lock").read_text()
    lock = world.state / "controller.lock"  # it may have decided already, and ended
    until(lambda: world.holder() is None or lock.read_text() != polled, "the controller decides again")
    status = world.status()
    assert slots(world) == {("train/0", 1): ["gpu0.0"]}
    told = json.dumps([status["controller"], *((cell["reason"], cell["next"]) for cell in status["cells"])])
    assert "lost" in status["cells"][1]["reason"] + status["cells"][1]["next"], told


def test_40_nvml_hangs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for it: runs start, are watched and end, and the evidence says what is missing."""
    world.pace(monkeypatch, 0.02, POLL_S)
    nvml = Nvml(world, BUSY, BUSY, hangs=True)
    body = """
step = 0
while not is_there("go") and cell == "train/0":
    work(0.1)
    log(step)
    step += 1
"""
    world.trainer(body, gpus=TWO, cpus=0, seeds=4)
    nvml.controller()
    run = world.running("train/0")
    until(lambda: len(world.counted().ends) == 3, "the others start and end meanwhile", 20)
    cell = world.until_cell("train/0", lambda cell: said(cell) == ("RUNNING", None, "proven", None), "RUNNING")
    assert evidence(cell, "gpu0")["says"] == "abstains"
    assert "NVML has not answered" in evidence(cell, "gpu0")["reading"]
    beat = json.loads((world.state / "controller.lock").read_text())["beat"]
    until(lambda: json.loads((world.state / "controller.lock").read_text())["beat"] > beat + 1, "the loop beats on")
    assert ticks(run)
    nvml.says(BUSY, BUSY)
    world.until_cell(
        "train/0", lambda cell: evidence(cell, "gpu0")["says"] == "busy", "it answers, and is believed again"
    )
    (world.root / "go").touch()
    assert world.finish(retry=False)["complete"]
    world.check(cells=4)


def test_40_nvml_hangs_under_a_run_that_hangs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What can't be read counts neither for nor against: the rest of the evidence convicts an idle tree."""
    world.pace(monkeypatch, 0.01, POLL_S)
    nvml = Nvml(world, BUSY, hangs=True)
    world.trainer("train(12)\ndeadlock()", gpus="gpus: [0]", cpus=0)
    nvml.controller()
    world.running("train/0")
    cell = world.until_cell("train/0", lambda cell: cell["verdict"] == "STALLED", "STALLED")
    assert cell["kind"] == "waiting"
    assert evidence(cell, "gpu0")["says"] == "abstains"


def test_40_nvml_names_the_pids_of_the_host(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU that two runs share nobody can tell whose memory and load it is: it abstains, and convicts nobody."""
    world.pace(monkeypatch, 0.02, POLL_S)
    nvml = Nvml(world, {**BUSY, "pids": [4194303, 4194302]})  # as far as we can see there are no such processes
    body = 'step = 0\nwhile not is_there("go"):\n    work(0.1)\n    log(step)\n    step += 1'
    world.trainer(body, gpus="gpus: [0], per_gpu: 2", cpus=0, seeds=2)
    nvml.controller()
    runs = [world.running(f"train/{seed}") for seed in (0, 1)]
    for seed in (0, 1):
        cell = world.until_cell(
            f"train/{seed}", lambda cell: cell["step"] and "busy" in evidence(cell, "gpu0")["reading"], "read"
        )
        assert said(cell) == ("RUNNING", None, "proven", None)
        found = evidence(cell, "gpu0")
        assert found["says"] == "abstains"
        assert "MiB" not in found["reading"]  # the device's 2 GiB are not claimed to be this run's
    assert all(ticks(run) for run in runs)
    (world.root / "go").touch()
    assert world.finish(retry=False)["complete"]
