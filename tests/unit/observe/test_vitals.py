"""The vitals of living runs: every field, and why one is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from living_processes import FAMILY, python, started, stop, ticks, until

from muster.hosts.local import kernel as cgroup
from muster.hosts.local import vitals
from muster.hosts.local.gpus import GpuProbe, GpuReading
from muster.hosts.local.kernel import KernelLog, KernelNote
from muster.hosts.local.process_tree import ProcessSnapshot
from muster.hosts.local.vitals import DiskSpace, VitalsReader, VitalsRequest
from muster.model.attempt_snapshot import GpuUse, TreeVitals

KEY = ("train/0", 1)
PATIENCE_S = 30.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "stdout.log").write_text("step 1\n")
    (tmp_path / "stderr.log").write_text("oh\n")
    return tmp_path


def ask(pid: int, folder: Path, shim: int = 0, **more: object) -> VitalsRequest:
    return VitalsRequest(KEY, pid, ticks(pid), shim, str(folder), **more)  # type: ignore[arg-type]


def look(asked: VitalsRequest, reader: VitalsReader | None = None) -> TreeVitals:
    return (reader or VitalsReader()).look_all([asked])[KEY]


def test_all_that_can_be_seen_of_a_tree(folder: Path) -> None:
    reader = VitalsReader()
    with python(FAMILY) as (shim, who):
        seen = look(ask(who["main"], folder, shim.pid, output=str(folder / "runs" / "not yet there")), reader)
        assert len(seen.states) == 3
        assert set(seen.states) <= set("RSD")
        assert seen.cpu_s is not None
        assert seen.io_bytes
        assert seen.out_bytes == 10
        assert seen.rss_bytes
        assert seen.rss_bytes > 1 << 20
        assert seen.opens_gpu is False
        assert seen.gpus == ()
        assert seen.disk_free
        readable = cgroup.memory_group_of(who["main"]) is not None
        assert (seen.oom_kills is not None) == readable
        assert seen.trouble == (() if readable else (vitals.ABSTENTION_REASONS["oom_kills"],))
        assert reader.pids_of(KEY) == (who["main"], who["child"], who["orphan"])
    assert reader.pids_of(KEY), "the dead are still found in the kernel log"
    assert reader.pids_of(("train/1", 1)) == ()


def test_a_stopped_run_and_a_busy_one_in_one_look(folder: Path) -> None:
    with started("cat") as one, started("cat") as two:
        stop(one.pid)
        asks = [
            VitalsRequest(("a", 1), one.pid, ticks(one.pid), 0, str(folder)),
            VitalsRequest(("b", 1), two.pid, ticks(two.pid), 0, "/none"),
        ]
        snaps = []

        def snap() -> ProcessSnapshot:
            snaps.append(ProcessSnapshot.take())
            return snaps[-1]

        found = VitalsReader(snap=snap).look_all(asks)
        assert found["a", 1].states == "T"
        assert found["b", 1].states in "RS"
        assert found["b", 1].out_bytes == 0, "no log yet"
        assert len(snaps) == 1, "one pass for all"
    assert VitalsReader(snap=snap).look_all([]) == {}
    assert len(snaps) == 1


def test_a_process_that_is_gone_or_another_one_now(folder: Path) -> None:
    with started("cat") as run:
        asked = ask(run.pid, folder)
        other = VitalsRequest(KEY, run.pid, asked.main_ticks + 1, 0, str(folder))
        assert look(other).trouble == (("process", f"pid {run.pid} is another process now"),)
    seen = look(asked)
    assert (seen.states, seen.cpu_s, seen.io_bytes, seen.rss_bytes, seen.opens_gpu) == ("", None, None, None, None)
    assert seen.trouble == (("process", f"process {run.pid} is gone"),)
    assert seen.out_bytes == 10
    assert seen.disk_free


def test_what_can_not_be_read_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with started("cat") as run:
        monkeypatch.setattr(vitals, "io_bytes_of_processes", lambda _: None)
        monkeypatch.setattr(vitals, "memory_group_of", lambda _: None)
        seen = look(
            VitalsRequest(KEY, run.pid, ticks(run.pid), 0, str(folder / "stdout.log")),
            VitalsReader(disk_free=lambda _: None),
        )
        assert {signal for signal, _ in seen.trouble} == {"io", "oom_kills", "output", "disk"}
        assert (seen.out_bytes, seen.io_bytes, seen.oom_kills, seen.disk_free) == (None, None, None, None)
        blind = look(
            ask(run.pid, folder), VitalsReader(snap=lambda: ProcessSnapshot((), "/proc can't be read: No such file"))
        )
        assert ("process", "/proc can't be read: No such file") in blind.trouble


def test_a_fault_of_ours_blinds_us_for_one_run_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def odd(path: str) -> int:
        if path == "odd":
            raise ValueError("odd")
        return 7

    monkeypatch.setattr(vitals, "_log_bytes_of_attempt", odd)
    with started("cat") as run:
        asks = [VitalsRequest((name, 1), run.pid, ticks(run.pid), 0, name) for name in ("odd", "plain")]
        found = VitalsReader().look_all(asks)
        assert found["odd", 1] == TreeVitals(trouble=(("vitals", "ValueError: odd"),))
        assert found["plain", 1].out_bytes == 7


# -- hidden processes, for real

HIDDEN = """
import ctypes, os, sys
from muster.hosts.local.vitals import VitalsRequest as Ask, VitalsReader
pid, start, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
reader = VitalsReader()
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b"proc", b"/proc", b"proc", 0, b"hidepid=invisible"):
    sys.exit("skip: " + os.strerror(ctypes.get_errno()))
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
seen = reader.look_all([Ask(("a", 1), pid, start, 0, folder)])["a", 1]
print(repr((seen.states, seen.cpu_s, seen.io_bytes, seen.opens_gpu, seen.oom_kills)))
print(seen.trouble[0])
"""


@pytest.mark.root
def test_a_proc_that_hides_others_processes_abstains(folder: Path) -> None:
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("needs root and unshare: only root may mount another /proc")
    with started("cat") as run:
        words = ["unshare", "-m", sys.executable, "-c", HIDDEN, str(run.pid), str(ticks(run.pid)), str(folder)]
        done = subprocess.run(words, capture_output=True, text=True)
        if "skip: " in done.stderr or "unshare:" in done.stderr:
            pytest.skip(f"no /proc of our own can be mounted here: {done.stderr.strip()}")
        assert done.stderr == ""
        states, why = done.stdout.splitlines()
        assert states == "('', None, None, None, None)"
        assert why == f"('process', 'process {run.pid} is hidden: /proc does not show all processes')"


# -- GPUs


class Log(KernelLog):
    def __init__(self, *notes: KernelNote) -> None:
        super().__init__(lambda: os.open(os.devnull, os.O_RDONLY))
        self.close()
        self._notes.extend(notes)


def gpu_of(asked: VitalsRequest, reading: GpuReading, kernel: KernelLog | None = None) -> GpuUse:
    eyes = GpuProbe(lambda: [reading])
    reader = VitalsReader(eyes, kernel)
    look(asked, reader)
    assert eyes.settle(PATIENCE_S)
    return look(asked, reader).gpus[0]


def test_gpus_are_those_that_it_leases(folder: Path) -> None:
    with started("cat") as run:
        mine = GpuReading(0, "0000:2b:00", 9.0, 124.0, 99, ((run.pid, 42),))
        assert gpu_of(ask(run.pid, folder, devices=(0,)), mine) == GpuUse(0, 9.0, 124.0, 42)
        assert gpu_of(ask(run.pid, folder, devices=(0,), shared=True), mine) == GpuUse(0, 9.0, 124.0, 42, shared=True)
        unasked = look(ask(run.pid, folder, devices=(3,)), VitalsReader())
        assert unasked.gpus == (GpuUse(3, trouble="nobody asks NVML here"),)


def test_the_kernel_knows_of_a_loss_that_nvml_does_not_tell(folder: Path) -> None:
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    off = KernelNote("xid", "NVRM: Xid (PCI:0000:2b:00): 79, off the bus", 1.0, None, "0000:2b:00", 79, True, now)
    old = KernelNote("xid", off.text, 1.0, None, "0000:2b:00", 79, True, now - 3600)
    mild = KernelNote("xid", "NVRM: Xid (PCI:0000:2b:00): 31, fault", 1.0, None, "0000:2b:00", 31, False, now)
    with started("cat") as run:
        asked = ask(run.pid, folder, devices=(0,))
        reading = GpuReading(0, "0000:2b:00", 0.0, 60.0, 99)
        assert gpu_of(asked, reading, Log(off)).lost == f"the kernel says: {off.text}"
        assert gpu_of(asked, reading, Log(old, mild)).lost == "", "before it started, or not fatal"
        assert gpu_of(asked, GpuReading(0, "0000:05:00"), Log(off)).lost == ""


# -- disks


def test_a_disk_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vitals, "DISK_PATIENCE_S", 1.0)
    free = threading.Event()
    asked = []

    def hanging(path: str) -> int:
        asked.append(path)
        assert free.wait(PATIENCE_S)
        return 7

    disks = DiskSpace(hanging)
    before = time.monotonic()
    found = [disks.free(f"/net/{number}") for number in range(50)]
    took_s = time.monotonic() - before
    assert found == [None] * 50
    assert took_s < 20, "not fifty waits one after the other"
    until(lambda: len(asked) == 50, "each is asked")
    assert disks.free("/net/0") is None
    assert len(asked) == 50, "and none twice"
    free.set()


def test_disk_space_where_the_output_will_be(tmp_path: Path) -> None:
    found = cgroup.free_bytes_at(str(tmp_path / "a" / "b"))
    assert found
    assert cgroup.free_bytes_at(str(tmp_path / "x\0y")) is None


# -- memory groups

V1 = "9:name=systemd:/\n4:cpu,memory:/jobs/a\n0::/\n"


def made_up(tmp_path: Path, cgroups: str, *mounts: str) -> str:
    (tmp_path / "proc" / "7").mkdir(parents=True)
    (tmp_path / "proc" / "self").mkdir()
    (tmp_path / "proc" / "7" / "cgroup").write_text(cgroups)
    (tmp_path / "proc" / "self" / "mountinfo").write_text("".join(f"{line}\n" for line in mounts))
    return str(tmp_path / "proc")


@pytest.mark.parametrize(
    ("cgroups", "root", "kind", "inner", "name"),
    [
        (V1, "/", "cgroup cgroup rw,cpu,memory", "/jobs/a", "memory.oom_control"),
        (V1, "/jobs", "cgroup cgroup rw,memory", "/a", "memory.oom_control"),  # a container sees its own part
        ("0::/jobs/a\n", "/", "cgroup2 cgroup2 rw", "/jobs/a", "memory.events"),
        ("0::/jobs/a\n", "/", "cgroup2 cgroup2 rw", "/jobs", "memory.events"),  # not switched on further down
        ("0::/\n", "/", "cgroup2 cgroup2 rw", "", "memory.events"),
    ],
)
def test_where_memory_is_counted(tmp_path: Path, cgroups: str, root: str, kind: str, inner: str, name: str) -> None:
    point = tmp_path / "a place"
    (point / inner.lstrip("/")).mkdir(parents=True)
    (point / inner.lstrip("/") / name).write_text("low 0\noom_kill 3\nunder_oom 0\n")
    shown = str(point).replace(" ", "\\040")
    proc = made_up(tmp_path, cgroups, f"35 31 0:32 {root} {shown} rw,relatime shared:9 - {kind}", "odd line")
    group = cgroup.memory_group_of(7, proc)
    assert group
    assert group.folder == f"{point}{inner}"
    assert cgroup.oom_kills_in_group(group) == 3
    assert cgroup.memory_group_of(8, proc) is None


@pytest.mark.parametrize("cgroups", ["", "0::/../other\n", "4:memory:/elsewhere\n", "4:cpu:/jobs/a\n", "nonsense"])
def test_where_it_is_not_shown_it_abstains(tmp_path: Path, cgroups: str) -> None:
    place = f"35 31 0:32 /jobs {tmp_path} rw - "
    proc = made_up(tmp_path, cgroups, place + "cgroup cgroup rw,memory", place + "cgroup2 cgroup2 rw")
    assert cgroup.memory_group_of(7, proc) is None
