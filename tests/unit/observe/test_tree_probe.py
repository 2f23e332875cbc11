"""Process trees, by one pass over /proc: real processes, and a made-up /proc for names that no shell would give."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from living_processes import FAMILY, HEADLESS, SPIN, go_on, python, started, stop, ticks, until

from muster.hosts.local.process_tree import GpuHandles, ProcessSnapshot, ProcessStat, io_bytes_of_processes


def proc(pid: int, ppid: int, cpu_s: float = 0.0, waited_s: float = 0.0, state: str = "S") -> ProcessStat:
    return ProcessStat(pid, ppid, state, 100 + pid, cpu_s, waited_s, 4096, 1)


def test_the_main_process_comes_first_then_descendants_then_orphans() -> None:
    with python(FAMILY) as (shim, who):
        main = (who["main"], ticks(who["main"]))
        snapshot = ProcessSnapshot.take()
        assert [found.pid for found in snapshot.tree(*main)] == [who["main"], who["child"]]
        assert [found.pid for found in snapshot.tree(*main, shim.pid)] == [who["main"], who["child"], who["orphan"]]
        assert [found.pid for found in snapshot.tree(*main, os.getpid())] == [who["main"], who["child"]]
        assert snapshot.tree(who["main"], main[1] + 1, shim.pid) == [], "the same pid, another process"
        assert all(found.rss_bytes > 0 for found in snapshot.tree(*main))
    assert ProcessSnapshot.take().tree(*main, shim.pid) == []


def test_a_process_that_spins_uses_cpu_and_one_that_waits_does_not() -> None:
    with python(SPIN) as (spinning, _), started("cat") as waiting:

        def cpu(pid: int) -> float:
            snapshot = ProcessSnapshot.take()
            return snapshot.cpu_s(snapshot.tree(pid, ticks(pid)))

        assert waiting.stdin
        assert waiting.stdout
        waiting.stdin.write(b"\n")
        waiting.stdin.flush()
        waiting.stdout.readline()
        before, idle = cpu(spinning.pid), cpu(waiting.pid)
        until(lambda: cpu(spinning.pid) >= before + 0.1, "a tenth of a second of CPU time")
        assert cpu(waiting.pid) <= idle + 0.01  # at most the end of its start, rounded up


def test_a_stopped_process_is_in_state_t() -> None:
    with started("cat") as run:
        stop(run.pid)
        assert [found.state for found in ProcessSnapshot.take().tree(run.pid, ticks(run.pid))] == ["T"]
        go_on(run.pid)
        until(lambda: ProcessSnapshot.take().tree(run.pid, ticks(run.pid))[0].state != "T", "it goes on")


def test_a_leader_that_ended_before_its_threads_is_no_zombie() -> None:
    with python(HEADLESS) as (run, _):
        until(lambda: ProcessSnapshot.take().procs[run.pid].state == "Z", "its main thread ends")
        assert ProcessSnapshot.take().tree(run.pid, ticks(run.pid))[0].state == "S"


def test_what_passes_through_a_process_counts_as_io() -> None:
    with started("cat") as run:
        assert run.stdin
        assert run.stdout
        before = io_bytes_of_processes([run.pid])
        assert before is not None
        for _ in range(4):
            run.stdin.write(b"x" * 16384)
            run.stdin.flush()
            run.stdout.read(16384)
        after = io_bytes_of_processes([run.pid, 2**22 + 1])
        assert after is not None
        assert after >= before + 2 * 65536
    assert io_bytes_of_processes([run.pid]) is None
    assert io_bytes_of_processes([]) is None


def test_what_the_dead_have_used_is_not_lost() -> None:
    alive = ProcessSnapshot(
        [proc(1, 0, 5.0, 5.0), proc(10, 1), proc(20, 10, 1.0), proc(21, 20, 2.0), proc(22, 10, 4.0)]
    )
    waited_for = ProcessSnapshot([proc(1, 0, 5.0, 5.0), proc(10, 1), proc(20, 10, 3.0, 2.0), proc(22, 10, 4.0)])
    orphan_reaped = ProcessSnapshot([proc(1, 0, 5.0, 5.0), proc(10, 1, 4.0, 4.0), proc(20, 10, 3.0, 2.0)])
    for snapshot in (alive, waited_for, orphan_reaped):
        assert snapshot.cpu_s(snapshot.tree(20, 120, 10), 10) == 7.0
    left = ProcessSnapshot([proc(1, 0, 9.0, 9.0), proc(20, 1, 3.0, 2.0)])
    assert left.cpu_s(left.tree(20, 120, 10), 10) == 3.0, "whoever adopted it has children of its own"


def test_rings_and_odd_names_do_no_harm(tmp_path: Path) -> None:
    ring = ProcessSnapshot([proc(5, 7), proc(6, 5), proc(7, 6)])
    assert [found.pid for found in ring.tree(5, 105)] == [5, 6, 7]
    tail = "7 5 5 0 -1 4194304 100 0 0 0 250 50 20 30 20 0 1 0 77 1000000 25 18446744073709551615"
    for pid, text in (("5", f"5 (a) Z (b\n) c) R {tail}"), ("6", "6 (half"), ("7", "")):
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "stat").write_text(text)
    (tmp_path / "8").mkdir()
    snapshot = ProcessSnapshot.take(str(tmp_path))
    assert list(snapshot.procs) == [5]
    found = snapshot.procs[5]
    assert (found.ppid, found.state, found.ticks, found.threads) == (7, "R", 77, 1)
    assert found.cpu_s == pytest.approx(350 / os.sysconf("SC_CLK_TCK"))
    assert found.waited_s == pytest.approx(50 / os.sysconf("SC_CLK_TCK"))
    assert found.rss_bytes == 25 * os.sysconf("SC_PAGE_SIZE")


def test_a_proc_that_is_not_there_abstains(tmp_path: Path) -> None:
    snapshot = ProcessSnapshot.take(str(tmp_path / "proc"))
    assert snapshot.tree(1, 0) == []
    assert "can't be read" in snapshot.trouble


def test_who_holds_a_gpu_is_asked_once_a_minute() -> None:
    now = 0.0
    asked: list[int] = []
    handles = {10: ["/dev/null", "/dev/nvidiactl"], 11: ["pipe:[7]", "/dev/nvidia0"]}

    def links(pid: int) -> list[str]:
        asked.append(pid)
        if pid not in handles:
            raise PermissionError(13, "Permission denied")
        return handles[pid]

    looking = GpuHandles(links, lambda: now)
    assert looking.opens_gpu([proc(10, 1)]) is False
    assert looking.opens_gpu([proc(10, 1), proc(11, 10)]) is True
    assert looking.opens_gpu([proc(10, 1), proc(12, 10)]) is None, "one that can't be read may hold it"
    assert looking.opens_gpu([proc(11, 10), proc(12, 10)]) is True
    assert looking.opens_gpu([proc(12, 10)._replace(ticks=1, state="Z")]) is False
    assert looking.opens_gpu([]) is None
    assert asked == [10, 11, 12]
    now = 61.0
    assert looking.opens_gpu([proc(11, 10)]) is True
    assert asked == [10, 11, 12, 11]


def test_handles_of_real_processes() -> None:
    with started("cat") as run:
        tree = ProcessSnapshot.take().tree(run.pid, ticks(run.pid))
        assert GpuHandles().opens_gpu(tree) is False
    assert GpuHandles().opens_gpu(tree) is False, "it ended between the pass and the look"
