"""Faults 14 to 16: the kernel kills for want of memory, for real, in a child of our own memory cgroup.

The shim counts the kills of the group that it is in, so the whole campaign is started in that group. The kernel takes
the run, or its child: it is the largest there, and its score is raised.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fault_world import World, kill, said, until

from muster.hosts.local import kernel

LIMIT = 256 << 20
# what a run does with memory; a child dies of it and not the main process: it is by far the larger one
WORDS = """
def eat():
    kept = [bytearray(1 << 20) for _ in range(1024)]
    sys.exit("nobody kills here")

def child_eats():
    child = os.fork()
    if child == 0:
        eat()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""


def why_not() -> str:
    """Why no group can be made here, if so."""
    own = kernel.memory_group_of(os.getpid())
    if own is None:
        return "needs a memory cgroup that tells how often the kernel killed"
    folder = Path(own.folder) / f"muster-probe-{os.getpid()}"
    try:
        folder.mkdir()
        try:
            (folder / limits(own)[0]).write_text(str(LIMIT))
        finally:
            folder.rmdir()
    except OSError as error:
        return f"no child group with a limit can be made in our own memory cgroup: {error}"
    return ""


def limits(own: kernel.MemoryGroup) -> tuple[str, ...]:
    return ("memory.max", "memory.swap.max") if own.v2 else ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")


WHY_NOT = why_not()
pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "it can")]


@pytest.fixture
def group(world: World) -> Iterator[Path]:
    """Asks for `world`, so that it is left before the world's processes are ended: they go back to our own group."""
    own = kernel.memory_group_of(os.getpid())
    assert own is not None
    folder = Path(own.folder) / f"muster-{os.getpid()}"
    folder.mkdir()
    try:
        (folder / limits(own)[0]).write_text(str(LIMIT))
        with contextlib.suppress(OSError):  # swap may not be counted, and there may be none
            (folder / limits(own)[1]).write_text(str(LIMIT) if not own.v2 else "0")
        yield folder
    finally:
        for pid in (folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                (Path(own.folder) / "cgroup.procs").write_text(pid)
        until(lambda: remove(folder), "the group is empty and gone")


def remove(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError:
        return not folder.exists()
    return True


def kills(group: Path) -> int:
    own = kernel.memory_group_of(os.getpid())
    assert own is not None
    return kernel.oom_kills_in_group(own._replace(folder=str(group))) or 0


def begin(world: World, group: Path, body: str) -> None:
    world.trainer(WORDS + body)
    enter = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
    world.start(
        "sh", "-c", enter, str(group), sys.executable, "-m", "muster.bootstrap.controller_process", str(world.root)
    )
    until(world.holder, "the controller is in that group")


def ended(world: World) -> dict[str, Any]:
    (cell,) = world.finish(retry=False)["cells"]
    assert world.counted().of("train/0") == [1]  # held: it would die of the same again
    assert "held" in cell["next"]
    return cell


def test_14_the_main_process_is_killed(world: World, group: Path) -> None:
    begin(world, group, "eat()")
    cell = ended(world)
    assert said(cell) == ("DEAD", None, "proven", "oom_kill")
    assert kills(group) == 1
    (attempt,) = world.why("train/0")["attempts"]
    assert attempt["exit"] == {"code": None, "signal": 9}
    assert "for lack of memory" in attempt["reason"]
    assert "the kernel log names it" in attempt["reason"] or "oom_kill count rose from 0 to 1" in attempt["reason"]
    assert "memory" in attempt["try"]


def test_14_a_kill_by_hand_in_the_same_group_is_no_oom(world: World, group: Path) -> None:
    begin(world, group, 'wait_for("go")')
    kill(world.running("train/0"))
    cell = ended(world)
    assert said(cell) == ("DEAD", None, "proven", "signal(9)")
    assert "not known" in cell["reason"]  # who sent it


def test_15_a_child_is_killed_and_the_main_process_raises(world: World, group: Path) -> None:
    body = """
code = child_eats()
assert code == -9, code
raise RuntimeError(f"DataLoader worker (pid 1) exited unexpectedly")
"""
    begin(world, group, body)
    cell = ended(world)
    assert cell["verdict"] == "DEAD"
    assert cell["cause"].startswith("exception(RuntimeError")
    (attempt,) = world.why("train/0")["attempts"]
    assert attempt["exit"] == {"code": 1, "signal": None}
    assert [text for text in attempt["contributing"] if "child OOM" in text], attempt["contributing"]
    assert kills(group) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_16_an_earlier_child_and_a_later_signal(world: World, group: Path, number: signal.Signals) -> None:
    """It survived the child's death and worked on; what ended it is another matter."""
    begin(world, group, 'child_eats()\nopen("survived", "w").close()\nwait_for("go")')
    until((world.root / "survived").exists, "it has survived")
    world.until_seen("train/0", lambda seen: seen.oom_kills == 1, "a look has seen the count")
    kill(world.running("train/0"), number)
    cell = ended(world)
    assert said(cell) == ("DEAD", None, "proven", f"signal({number})")
    (attempt,) = world.why("train/0")["attempts"]
    assert [text for text in attempt["contributing"] if "earlier (child OOM)" in text], attempt["contributing"]
    assert kills(group) == 1
