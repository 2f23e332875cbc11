"""Slots: machine-wide, all or none, and never a GPU that somebody else uses."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import threading
from pathlib import Path

import pytest

from muster.engine.plan.scheduling import choose_slots, slots_needed
from muster.engine.ports.executor import LeaseHolder, Slot
from muster.hosts.local.executor import LocalExecutor
from muster.hosts.local.gpus import GpuDevice, GpuInventory
from muster.hosts.local.launch_orders import LaunchBook, LocalTraces
from muster.hosts.local.slot_leases import SlotLeases
from muster.model.attempt import Attempt
from muster.model.attempt_snapshot import ProcessIdentity
from muster.model.campaign import Job, Slots, SlotUse

FREE, BUSY = GpuDevice(0, "H200", False), GpuDevice(1, "H200", True, "2 processes use it")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.fixture
def machine(home: Path) -> list[GpuDevice]:
    return [FREE, BUSY]


def executor(home: Path, slots: Slots, gpus: list[GpuDevice]) -> LocalExecutor:
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


def test_auto_leaves_a_gpu_to_others_until_they_are_gone(home: Path, machine: list[GpuDevice]) -> None:
    found = executor(home, Slots(gpus=None, cpus=0), machine)
    assert names(found) == ["gpu0.0", "gpu1.0"]
    assert found.lease(["gpu1.0"]) is None
    machine[1] = GpuDevice(1, "H200", False)
    found.watch = GpuInventory(lambda: list(machine))  # as a later reading would find it
    lease = found.lease(["gpu1.0"])
    assert lease
    found.give_back(lease)


def test_a_gpu_that_is_busy_with_our_own_run_takes_its_second_share(home: Path, machine: list[GpuDevice]) -> None:
    machine[:] = [FREE]
    one = executor(home, Slots(gpus=None, per_gpu=2, cpus=0), machine)
    first = one.lease(["gpu0.0"])
    machine[:] = [GpuDevice(0, "H200", True, "1 process uses it")]
    two = executor(home, Slots(gpus=None, per_gpu=2, cpus=0), machine)
    second = two.lease(["gpu0.1"])
    assert first
    assert second
    one.give_back(first)
    two.give_back(second)


def test_a_driver_that_hangs_never_hangs_us(home: Path) -> None:
    answer = threading.Event()

    def hang() -> list[GpuDevice]:
        answer.wait(60)
        return [FREE]

    watch = GpuInventory(hang, patience_s=0.05)
    assert list(watch.gpus) == []
    assert watch.busy(0) is None
    answer.set()


def test_what_a_cell_takes_by_default() -> None:
    job = Job("train", (), ("true",))
    assert slots_needed(job, has_gpus=True) == (1, 0)
    assert slots_needed(job, has_gpus=False) == (0, 1)
    assert slots_needed(Job("j", (), ("x",), uses=SlotUse(gpu=0)), has_gpus=True) == (0, 1)
    assert slots_needed(Job("j", (), ("x",), uses=SlotUse(gpu=1, cpu=1)), has_gpus=True) == (1, 1)
    assert slots_needed(Job("j", (), ("x",), uses=SlotUse(cpu=2)), has_gpus=True) == (0, 2)


def test_several_gpus_come_from_different_cards() -> None:
    assert choose_slots((2, 0), ["gpu0.0", "gpu0.1", "gpu1.0"], []) == ("gpu0.0", "gpu1.0")
    assert choose_slots((2, 0), ["gpu0.0", "gpu0.1"], []) is None
    assert choose_slots((0, 2), [], ["cpu0"]) is None


# -- files that are deleted, and other users


def one_cpu(home: Path) -> LocalExecutor:
    return executor(home, Slots(gpus=(), cpus=1), [])


def run_of(token: str = "token") -> Attempt:
    return Attempt("train/0", 1, token, 1, ("cpu0",), "", "", 0.0, "boot")


def test_a_lease_says_whose_it_is(home: Path) -> None:
    one = one_cpu(home)
    kept = one.keep(run_of())
    assert kept, "nobody held it"
    assert one.keep(run_of()) is None
    assert one.holder(["cpu0"]) == f"cpu0 is held by train/0 of {home}"
    assert LocalTraces(home / ".muster").holds_slot(run_of())
    assert not LocalTraces(home / ".muster").holds_slot(run_of("another"))
    one.give_back(kept)
    assert one.holder(["cpu0"]) == ""


def test_a_lease_whose_file_was_deleted_still_counts(home: Path) -> None:
    one, two = one_cpu(home), one_cpu(home)
    lease = one.lease(["cpu0"])
    assert lease
    shutil.rmtree(home / "home")
    assert two.lease(["cpu0"]) is None, "the run that got it lives"
    assert two.lease(["cpu0"]) is None, "although the file is there again"
    one.give_back(lease)
    again = two.lease(["cpu0"])
    assert again, "the folder is made anew"
    assert one.lease(["cpu0"]) is None


def test_a_lease_that_was_kept_for_a_run_does_not_end_with_its_keeper(home: Path) -> None:
    one, two = one_cpu(home), one_cpu(home)
    lease = one.lease(["cpu0"])
    assert lease
    shutil.rmtree(home / "home")
    kept = one.keep(run_of())
    assert kept, "its own controller is not refused"
    one.give_back(kept)  # as by the controller's death
    assert two.lease(["cpu0"]) is None, "the run still holds the file that was deleted"
    one.give_back(lease)
    assert two.lease(["cpu0"])


def test_who_inherited_a_lease_that_was_given_back_keeps_nobody_out(home: Path) -> None:
    one, two = one_cpu(home), one_cpu(home)
    lease = one.lease(["cpu0"])
    assert lease
    shutil.rmtree(home / "home")
    fcntl.flock(lease.fds[0], fcntl.LOCK_UN)
    assert two.lease(["cpu0"])


def test_what_stands_in_a_lease_is_never_obeyed_by_a_terminal(home: Path) -> None:
    one = one_cpu(home)
    lease = one.lease(["cpu0"])
    assert lease
    for told in ("[]", "\x1b[2J", json.dumps({"campaign": "\x1b]52;c;x\x07", "cell": "a", "n": 1, "token": ""})):
        (home / "home" / "slots" / "cpu0").write_text(told)
        assert one.holder(["cpu0"]).isprintable()


def test_a_second_user_can_ask_and_take(home: Path) -> None:
    old = os.umask(0o077)
    try:
        lease = one_cpu(home).lease(["cpu0"])
    finally:
        os.umask(old)
    assert lease
    slots = home / "home" / "slots"
    assert (slots.stat().st_mode & 0o7777, (slots / "cpu0").stat().st_mode & 0o777) == (0o1777, 0o666)


@pytest.mark.skipif(os.getuid() != 0, reason="needs to become another user")
@pytest.mark.root
def test_a_lock_of_another_user_that_may_only_be_read_is_taken_not_broken(tmp_path: Path) -> None:
    slots = tmp_path / "slots"
    slots.mkdir()
    (slots / "cpu0").touch(0o644)
    house = SlotLeases(slots)
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(folder.stat().st_mode | 0o055)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setuid(65534)
            code = 0 if house.lease([Slot("cpu0", "cpu")]) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def spoil_slot(kind: str, slot: Path, victim: Path) -> None:
    slot.parent.mkdir(parents=True)
    if kind == "link":
        slot.symlink_to(victim)
    elif kind == "second name":
        os.link(victim, slot)
    elif kind == "dangling link":
        slot.symlink_to(victim.with_name("nobody"))
    elif kind == "fifo":
        os.mkfifo(slot)
    else:
        slot.mkdir()


@pytest.mark.parametrize("kind", ["link", "dangling link", "second name", "fifo", "folder"])
def test_what_is_no_plain_file_is_a_taken_slot_and_told(home: Path, kind: str) -> None:
    slot, victim = home / "home" / "slots" / "cpu0", home / "victim"
    victim.write_text("precious")
    spoil_slot(kind, slot, victim)
    one = one_cpu(home)
    assert one.lease(["cpu0"]) is None
    assert one.keep(run_of()) is None
    told = one.holder(["cpu0"])
    assert f"{slot} is no plain file" in told
    assert f"rm -r {slot}" in told
    assert list(one.house.holders()) == ["cpu0"]
    assert not LocalTraces(home / ".muster").holds_slot(run_of())
    assert victim.read_text() == "precious"
    assert not victim.with_name("nobody").exists()


def test_a_lease_that_got_a_second_name_is_not_signed(home: Path) -> None:
    one = one_cpu(home)
    lease = one.lease(["cpu0"])
    assert lease
    os.link(home / "home" / "slots" / "cpu0", home / "second")
    one.house.sign(lease, LeaseHolder("campaign", "train/0", 1, "token"))
    assert (home / "second").read_text() == ""


def test_the_launch_book_outlives_its_deletion_and_forgets_what_is_over(tmp_path: Path) -> None:
    who = ProcessIdentity("boot", 1, 2, 100, 3, 99, 4, 10.0, 1000.0)
    book = LaunchBook(tmp_path / "launched")
    book.note("a")
    book.note("a", who)
    (tmp_path / "launched").unlink()
    book.note("b")
    assert LaunchBook(tmp_path / "launched").known() == {"a": who, "b": None}
    with open(tmp_path / "launched", "a") as file:
        file.write('{"token": "cut o')
    later = LaunchBook(tmp_path / "launched")
    later.note("c")
    assert LaunchBook(tmp_path / "launched").known() == {"a": who, "b": None, "c": None}
    later.keep_only({"a"})
    assert LaunchBook(tmp_path / "launched").known() == {"a": who}


def test_who_cannot_look_for_a_deleted_lease_does_not_take_the_slot(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = SlotLeases(home / "slots")

    def refused(_: str) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(OSError, match="Too many open files"):
        house.lease([Slot("cpu0", "cpu")])
    monkeypatch.undo()
    lease = house.lease([Slot("cpu0", "cpu")])
    assert lease
    for fd in lease.fds:
        os.close(fd)
