"""Fault 29: a full disk, where the run writes and where Muster does. Each disk is a small one that nobody else sees."""

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_world import World, mount, own_mounts, said, ticks, until, why_no_mounts

WHY_NOT = why_no_mounts()
pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "it can")]


@pytest.fixture(autouse=True)
def mounts(world: World) -> Iterator[None]:
    """Left after the world's processes are ended: they are in it."""
    with own_mounts():
        yield
        world.close()


def small_disk(folder: Path, size: str) -> Path:
    folder.mkdir(exist_ok=True)
    mount("none", folder, "tmpfs", options=f"size={size}")
    return folder


def fill(path: Path) -> None:
    """To the last byte."""
    with contextlib.suppress(OSError), open(path, "wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))


@pytest.mark.parametrize("how", ["raises", "in a library", "only said"])
def test_29_where_the_run_writes(world: World, how: str) -> None:
    world.root.mkdir()
    small_disk(world.root / "runs", "1m")
    body = {
        "raises": "while True: file.write(bytes(65536))",
        "in a library": """
try:
    while True: file.write(bytes(65536))
except OSError as error:
    raise RuntimeError("the checkpoint could not be saved") from error
""",
        "only said": "os.dup2(file.fileno(), 1)\nos.execvp('sh', ['sh', '-c', 'dd if=/dev/zero bs=64k'])",
    }[how]
    job = "output: runs, progress: [{jsonl: metrics.jsonl}, {checkpoint: '*.ckpt'}]"
    world.trainer(f"log(1)\nfile = open('runs/1.ckpt', 'wb', buffering=0)\n{body}", job)
    world.controller()
    (cell,) = world.finish(retry=False)["cells"]
    sure = "proven" if how == "raises" else "probable"
    assert said(cell) == ("DEAD", None, sure, "disk_full")
    assert "held: disk_full is not retried by itself" in cell["next"]
    assert world.counted().of("train/0") == [1]
    (attempt,) = world.why("train/0")["attempts"]
    assert [line for line in attempt["lines"] if "No space left on device" in line], attempt["lines"]
    assert "free space" in attempt["try"]


def test_29_where_muster_writes(world: World) -> None:
    """The ballast goes, so that the end of the run is recorded with its cause; nothing is corrupt."""
    small_disk(world.root, "24m")
    world.trainer('print("begun", flush=True)\nwait_for("go")\ncount("end")\nsys.exit(3)', "", seeds=2, cpus=1)
    ballast = world.state / "ballast"
    world.controller()
    world.running("train/0")
    until(ballast.exists, "the ballast is laid")
    (world.root / "later").touch()  # a new one would find no room
    fill(world.root / "filler")
    (world.root / "later").rename(world.root / "go")
    status = world.finish(retry=False)
    first = status["cells"][0]
    assert said(first) == ("DEAD", None, "proven", "exit_code(3)")
    assert not ballast.exists(), "there was room: nothing was tried"
    check_database(world)
    (world.root / "filler").unlink()
    status = world.finish(retry=False)
    assert [said(cell) for cell in status["cells"]] == [("DEAD", None, "proven", "exit_code(3)")] * 2
    world.check(cells=2, exits={"train/0": 3, "train/1": 3})
    check_database(world)


def test_29_a_disk_without_room_stops_nothing_that_runs(world: World) -> None:
    """Not even a ballast is there: status tells the truth, and all goes on once there is room."""
    small_disk(world.root, "12m")
    world.trainer('wait_for("go")', "", seeds=2, cpus=1)
    controller = world.controller()
    run = world.running("train/0")
    (world.root / "later").touch()
    fill(world.root / "filler")
    assert not (world.state / "ballast").exists()
    cell = world.cell("train/0")
    assert (cell["verdict"], cell["pid"]) == ("RUNNING", run)
    (world.root / "later").rename(world.root / "go")
    until(lambda: ticks(run) is None, "it ends")
    cell = world.until_cell("train/0", lambda cell: cell["verdict"] != "RUNNING", "no longer RUNNING")
    assert said(cell) == ("UNKNOWN", "ending", "unknown", None)  # how it ended can't be written, so nobody guesses
    assert "not written down yet" in cell["reason"]
    assert controller.poll() is None
    assert world.cell("train/1")["verdict"] == "PENDING"  # nothing starts that could not be written down
    (world.root / "filler").unlink()
    world.finish(retry=False)
    world.check(cells=2)
    check_database(world)


def check_database(world: World) -> None:
    db = sqlite3.connect(f"file:{world.state / 'campaign.db'}?mode=ro", uri=True)
    try:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        db.close()
    answer = world.muster("fsck", "--json")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert json.loads(answer.stdout)
