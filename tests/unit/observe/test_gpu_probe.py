"""NVML at its worst: silent, lying about pids, losing GPUs, renumbering the others."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from muster.hosts.local.gpus import NVML_KEPT_S, GpuProbe, GpuReading, NvmlReader, gpu_use_of_run

HEALTHY = (
    GpuReading(0, "0000:04:00", 9.0, 124.0, 5 << 30, ((100, 2 << 30), (200, 3 << 30))),
    GpuReading(1, "0000:05:00", 100.0, 631.0, 1 << 30, ()),
)
PATIENCE_S = 30.0


class World:
    def __init__(self) -> None:
        self.now = 1000.0
        self.answers: Sequence[GpuReading] | Exception = HEALTHY
        self.asked = 0
        self.free = threading.Event()
        self.free.set()

    def read(self) -> Sequence[GpuReading]:
        self.asked += 1
        answers = self.answers
        assert self.free.wait(PATIENCE_S)
        if isinstance(answers, Exception):
            raise answers
        return answers

    def eyes(self) -> GpuProbe:
        return GpuProbe(self.read, now=lambda: self.now)

    def look(self, eyes: GpuProbe, *devices: int) -> dict[int, GpuReading]:
        """One period later, with what that look has started."""
        self.now += 5.0
        eyes.look(frozenset(devices))
        assert eyes.settle(PATIENCE_S)
        return eyes.look(frozenset(devices))


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.free.set()


def test_nobody_waits_and_the_answer_is_there_later(world: World) -> None:
    eyes = world.eyes()
    assert eyes.look(frozenset()) == {}
    assert world.asked == 0, "nobody leases a GPU: the driver is left alone"
    world.free.clear()
    assert eyes.look({0})[0].trouble == "NVML has not answered yet"
    world.free.set()
    assert eyes.settle(PATIENCE_S)
    assert eyes.look({0, 1}) == {0: HEALTHY[0], 1: HEALTHY[1]}
    assert eyes.look({7})[7].trouble == "NVML lists 2 GPUs, not this one"
    assert world.asked == 1, "a period has not passed"
    world.look(eyes, 0)
    assert world.asked == 2
    assert eyes.pci(1) == "0000:05:00"


def test_a_driver_that_hangs_makes_it_abstain(world: World) -> None:
    eyes = world.eyes()
    assert world.look(eyes, 0)[0].trouble == ""
    world.free.clear()
    for passed_s in (5, 5, 5):
        world.now += passed_s
        assert eyes.look({0})[0].power_w == 124.0, "what it said a moment ago still stands"
    world.now += 2
    silent = eyes.look({0})[0]
    assert (silent.trouble, silent.power_w, silent.lost) == ("NVML has not answered for 12 s", None, "")
    world.now += 1000
    assert eyes.look({0})[0].trouble == "NVML has not answered for 1012 s"
    assert world.asked == 2, "one thread hangs, not two hundred"
    world.free.set()
    assert eyes.settle(PATIENCE_S)
    assert world.look(eyes, 0)[0] == HEALTHY[0]


def test_after_a_pause_without_leases_nobody_is_blamed(world: World) -> None:
    eyes = world.eyes()
    world.look(eyes, 0)
    world.now += 3600
    world.free.clear()
    assert eyes.look({0})[0].trouble == "NVML has not answered yet"
    world.free.set()
    assert eyes.settle(PATIENCE_S)


def test_an_error_of_the_whole_driver_is_trouble_not_loss(world: World) -> None:
    eyes = world.eyes()
    world.look(eyes, 0)
    world.answers = RuntimeError("Driver Not Loaded")
    found = world.look(eyes, 0)[0]
    assert (found.trouble, found.lost, found.utilisation) == ("Driver Not Loaded", "", None)


def test_a_loss_is_told_and_outlives_a_driver_that_hangs_over_it(world: World) -> None:
    eyes = world.eyes()
    world.look(eyes, 0, 1)
    world.answers = (GpuReading(0, lost="NVML: GPU is lost"), HEALTHY[1])
    found = world.look(eyes, 0, 1)
    assert (found[0].lost, found[0].pci, found[1]) == ("NVML: GPU is lost", "0000:04:00", HEALTHY[1])
    world.free.clear()
    world.now += 5
    eyes.look({0, 1})
    world.now += 20
    found = eyes.look({0, 1})
    assert (found[0].lost, found[1].lost) == ("NVML: GPU is lost", "")
    assert found[0].trouble == found[1].trouble == "NVML has not answered for 20 s"
    world.free.set()
    assert eyes.settle(PATIENCE_S)
    world.answers = HEALTHY
    assert world.look(eyes, 0)[0] == HEALTHY[0], "it has been reset"


def test_a_gpu_that_is_no_longer_listed_is_lost_and_the_others_keep_their_names(world: World) -> None:
    eyes = world.eyes()
    world.look(eyes, 0, 1)
    world.answers = (GpuReading(0, "0000:05:00", 50.0),)
    found = world.look(eyes, 0, 1)
    assert found[0].lost == "NVML lists 1 GPU and no longer the one at 0000:04:00"
    assert found[1] == GpuReading(1, "0000:05:00", 50.0)
    world.answers = ()
    assert world.look(eyes, 1)[1].lost.startswith("NVML lists 0 GPUs")


ALL = {100, 200, 300}


@pytest.mark.parametrize(
    ("own", "here", "shared", "memory", "trouble"),
    [
        ({100}, ALL, False, 2 << 30, ""),
        ({100}, ALL, True, 2 << 30, ""),
        ({100, 200, 300}, ALL, True, 5 << 30, ""),
        ({300}, ALL, False, 5 << 30, ""),  # NVML does not name us: the lease does
        ({300}, ALL, True, None, "shared"),
        ({100}, {100, 300}, False, 5 << 30, ""),  # pids that do not exist here are the host's, and so may be ours
        ({100}, {100, 300}, True, None, "shared"),
    ],
)  # fmt: skip
def test_memory_is_attributed_or_abstained_from(
    own: set[int], here: set[int], shared: bool, memory: int | None, trouble: str
) -> None:
    use = gpu_use_of_run(HEALTHY[0], own, here, shared)
    assert (use.memory_bytes, use.shared, use.utilisation, use.power_w) == (memory, shared, 9.0, 124.0)
    assert trouble in use.trouble
    assert bool(trouble) == bool(use.trouble)


@pytest.mark.parametrize("processes", [None, (), ((100, None),)])
def test_where_processes_are_not_told_the_lease_decides(processes: Any) -> None:
    reading = GpuReading(0, "", 1.0, 1.0, 7, processes)
    assert gpu_use_of_run(reading, {100}, ALL, False).memory_bytes == 7
    assert gpu_use_of_run(reading, {100}, ALL, True).memory_bytes is None


def test_a_lost_gpu_needs_no_further_trouble() -> None:
    use = gpu_use_of_run(GpuReading(0, lost="GPU is lost"), {100}, ALL, True)
    assert (use.lost, use.trouble) == ("GPU is lost", "")


# -- the reading itself, over a made-up driver


class NVMLError(Exception):
    pass


class GpuIsLost(NVMLError):
    pass


class NotSupported(NVMLError):
    pass


def fails(error: Exception) -> Callable[..., Any]:
    def call(*_: object) -> Any:
        raise error

    return call


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    pci = SimpleNamespace(domain=0, bus=0x1B, device=0)
    processes = [SimpleNamespace(pid=100, usedGpuMemory=10), SimpleNamespace(pid=200, usedGpuMemory=None)]
    made = SimpleNamespace(NVMLError=NVMLError, NVMLError_GpuIsLost=GpuIsLost, starts=0, open=0)

    def begin() -> None:
        made.starts += 1
        made.open += 1

    def end() -> None:
        made.open -= 1

    made.nvmlInit = begin
    made.nvmlShutdown = end
    made.nvmlDeviceGetCount = lambda: 1
    made.nvmlDeviceGetHandleByIndex = lambda index: index
    made.nvmlDeviceGetPciInfo = lambda _: pci
    made.nvmlDeviceGetMemoryInfo = lambda _: SimpleNamespace(used=77)
    made.nvmlDeviceGetPowerUsage = lambda _: 124500
    made.nvmlDeviceGetUtilizationRates = lambda _: SimpleNamespace(gpu=9)
    made.nvmlDeviceGetComputeRunningProcesses = lambda _: processes
    monkeypatch.setitem(sys.modules, "pynvml", made)
    return made


def test_a_reading_holds_what_the_driver_says(driver: SimpleNamespace) -> None:
    now = 0.0
    nvml = NvmlReader(lambda: now)
    assert nvml() == [GpuReading(0, "0000:1b:00", 9.0, 124.5, 77, ((100, 10), (200, None)))]
    nvml()
    assert (driver.starts, driver.open) == (1, 1), "to start NVML is what costs"
    now = NVML_KEPT_S
    nvml()
    assert driver.open == 0, "but it is not kept for ever"
    nvml()
    assert (driver.starts, driver.open) == (2, 1)


def test_clients_of_mps_are_counted_too(driver: SimpleNamespace) -> None:
    driver.nvmlDeviceGetMPSComputeRunningProcesses = lambda _: [SimpleNamespace(pid=300, usedGpuMemory=5)]
    assert NvmlReader()()[0].processes == ((100, 10), (200, None), (300, 5))
    driver.nvmlDeviceGetMPSComputeRunningProcesses = fails(NotSupported("Not Supported"))
    assert NvmlReader()()[0].processes == ((100, 10), (200, None))


def test_what_one_question_lacks_the_others_still_answer(driver: SimpleNamespace) -> None:
    driver.nvmlDeviceGetUtilizationRates = fails(NotSupported("Not Supported"))
    found = NvmlReader()()[0]
    assert (found.utilisation, found.power_w, found.trouble) == (None, 124.5, "utilisation: Not Supported")
    assert driver.open == 1


def test_a_lost_gpu_is_lost_at_the_handle_or_later_and_nvml_lets_go_of_it(driver: SimpleNamespace) -> None:
    driver.nvmlDeviceGetPowerUsage = fails(GpuIsLost("GPU is lost"))
    assert NvmlReader()()[0].lost == "NVML: GPU is lost"
    driver.nvmlDeviceGetHandleByIndex = fails(GpuIsLost("GPU is lost"))
    assert NvmlReader()() == [GpuReading(0, lost="NVML: GPU is lost")]
    driver.nvmlDeviceGetHandleByIndex = fails(NotSupported("Unknown Error"))
    assert NvmlReader()() == [GpuReading(0, trouble="handle: Unknown Error")]
    assert driver.open == 0


def test_a_driver_that_is_not_there_raises_and_can_be_asked_again(driver: SimpleNamespace) -> None:
    nvml = NvmlReader()
    begin, driver.nvmlInit = driver.nvmlInit, fails(NVMLError("Driver Not Loaded"))
    with pytest.raises(NVMLError):
        nvml()
    driver.nvmlInit = begin
    count, driver.nvmlDeviceGetCount = driver.nvmlDeviceGetCount, fails(NVMLError("Unknown Error"))
    with pytest.raises(NVMLError):
        nvml()
    driver.nvmlDeviceGetCount = count
    assert len(nvml()) == 1
    assert (driver.starts, driver.open) == (2, 1)
