"""Slots: machine-wide, all or none, and never a GPU that somebody else uses."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from muster.domain.campaign import Job, Slots, Uses
from muster.execute.gpus import Gpu, GpuWatch
from muster.execute.local import LocalExecutor
from muster.plan.slots import choose, need

FREE, BUSY = Gpu(0, "H200", False), Gpu(1, "H200", True, "2 processes use it")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.fixture
def machine(home: Path) -> list[Gpu]:
    return [FREE, BUSY]


def executor(home: Path, slots: Slots, gpus: list[Gpu]) -> LocalExecutor:
    return LocalExecutor(home / ".muster", slots, find=lambda: list(gpus))


def names(found: LocalExecutor) -> list[str]:
    return [slot.name for slot in found.slots()]


def test_a_list_is_taken_as_it_is_and_more_cpus_than_cores_are_fine(home: Path) -> None:
    assert names(executor(home, Slots(gpus=(6, 7), per_gpu=2, cpus=1), [])) == [
        "gpu6.0",
        "gpu7.0",
        "gpu6.1",
        "gpu7.1",
        "cpu0",
    ]
    assert len(names(executor(home, Slots(gpus=(), cpus=64), []))) == 64


def test_two_campaigns_never_share_a_slot(home: Path) -> None:
    one, two = (executor(home, Slots(gpus=(), cpus=2), []) for _ in range(2))
    lease = one.lease(["cpu0"])
    assert lease
    assert two.lease(["cpu0"]) is None
    assert two.lease(["cpu0", "cpu1"]) is None, "all or none"
    other = two.lease(["cpu1"])
    assert other, "the half that could be had was given back"
    one.give_back(lease)
    two.give_back(other)
    again = two.lease(["cpu0", "cpu1"])
    assert again
    two.give_back(again)


def test_a_lease_lives_as_long_as_any_process_that_inherited_it(home: Path) -> None:
    one, two = (executor(home, Slots(gpus=(), cpus=1), []) for _ in range(2))
    lease = one.lease(["cpu0"])
    assert lease
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
    one.give_back(lease)
    assert two.lease(["cpu0"]) is None
    os.close(writer)
    os.waitpid(child, 0)
    os.close(reader)
    freed = two.lease(["cpu0"])
    assert freed
    two.give_back(freed)


def test_auto_leaves_a_gpu_to_others_until_they_are_gone(home: Path, machine: list[Gpu]) -> None:
    found = executor(home, Slots(gpus=None, cpus=0), machine)
    assert names(found) == ["gpu0.0", "gpu1.0"]
    assert found.lease(["gpu1.0"]) is None
    machine[1] = Gpu(1, "H200", False)
    found.watch = GpuWatch(lambda: list(machine))  # as a later reading would find it
    lease = found.lease(["gpu1.0"])
    assert lease
    found.give_back(lease)


def test_a_gpu_that_is_busy_with_our_own_run_takes_its_second_share(home: Path, machine: list[Gpu]) -> None:
    machine[:] = [FREE]
    one = executor(home, Slots(gpus=None, per_gpu=2, cpus=0), machine)
    first = one.lease(["gpu0.0"])
    machine[:] = [Gpu(0, "H200", True, "1 process uses it")]
    two = executor(home, Slots(gpus=None, per_gpu=2, cpus=0), machine)
    second = two.lease(["gpu0.1"])
    assert first
    assert second
    one.give_back(first)
    two.give_back(second)


def test_a_driver_that_hangs_never_hangs_us(home: Path) -> None:
    answer = threading.Event()

    def hang() -> list[Gpu]:
        answer.wait(60)
        return [FREE]

    watch = GpuWatch(hang, patience_s=0.05)
    assert list(watch.gpus) == []
    assert watch.busy(0) is None
    answer.set()


def test_what_a_cell_takes_by_default() -> None:
    job = Job("train", (), ("true",))
    assert need(job, has_gpus=True) == (1, 0)
    assert need(job, has_gpus=False) == (0, 1)
    assert need(Job("j", (), ("x",), uses=Uses(gpu=0)), has_gpus=True) == (0, 1)
    assert need(Job("j", (), ("x",), uses=Uses(gpu=1, cpu=1)), has_gpus=True) == (1, 1)
    assert need(Job("j", (), ("x",), uses=Uses(cpu=2)), has_gpus=True) == (0, 2)


def test_several_gpus_come_from_different_cards() -> None:
    assert choose((2, 0), ["gpu0.0", "gpu0.1", "gpu1.0"], []) == ("gpu0.0", "gpu1.0")
    assert choose((2, 0), ["gpu0.0", "gpu0.1"], []) is None
    assert choose((0, 2), [], ["cpu0"]) is None
