"""Every named write, fsync, rename and commit: a process dies there, or is stopped there, and nothing is lost or doubled."""

import os
import signal

import pytest
from fault_world import SHIM, World, kill, letter, until

from muster.files.crash_points import CRASH_POINTS

EVAL_FAILS = {"eval/1": 3}
COMMAND = "sh job.sh {cell} {attempt}"
JOBS = f"""\
  train: {{axes: [seed], command: '{COMMAND}'}}
  eval: {{axes: [seed], needs: [train], command: '{COMMAND}'}}
"""
BODY = 'case "$1" in eval/1) return 3;; esac'
WAITS = BODY + '\n[ "$1" != train/0 ] || while [ ! -e go ]; do sleep 0.02; done'

# who gets there first: `up` itself, or the controller once the campaign has been taken in
BY_COMMAND = ("campaign.write", "env.write", "fold.intent")
BY_BOTH = ("log.append", "log.fsync", "fold.begin", "fold.commit", "lock.taken")


def shim_points() -> tuple[str, ...]:
    """Read from the file: the shim is never imported by anything."""
    found: dict[str, tuple[str, ...]] = {}
    text = SHIM.read_text()
    begin = text.index("POINTS = (")
    exec(text[begin : text.index(")", begin) + 1], found)
    return found["POINTS"]


def cases() -> list[tuple[str, str]]:
    found = [(point, "command") for point in (*BY_COMMAND, *BY_BOTH)]
    found += [(point, "controller") for point in CRASH_POINTS if point not in BY_COMMAND]
    return found + [(point, "shim") for point in shim_points()]


def prepare(world: World, point: str, by: str) -> None:
    """As far as the campaign gets before the armed process starts."""
    world.campaign(JOBS, body=WAITS if point.startswith("stop.") else BODY)
    if by != "command":
        world.take_in()
    if point.startswith("revoke."):  # an attempt that can't be launched is fenced
        world.folder("train/0").mkdir(parents=True)
        (world.folder("train/0") / "out").touch()


def hit(world: World, point: str, by: str, how: str) -> None:
    """The campaign runs until a process has reached the point."""
    armed = world.armed(point + how)
    if by == "command":
        world.up(armed)
    else:
        world.controller(armed)
    if point.startswith("stop."):
        world.running("train/0")
        world.say("stop", "a person has seen enough", cell="train/0")
    until(world.marker.exists, f"{point} is reached")


def recover(world: World, point: str) -> None:
    """What a person does: `muster up` again, until it is over."""
    answer = world.muster("up", "--detach")
    assert answer.returncode == 0, answer.stderr
    if point.startswith("stop."):
        cell = world.until_cell("train/0", lambda cell: cell["verdict"] == "DEAD", "DEAD")
        assert cell["cause"] == "user_stop", cell
        assert world.counted().of("train/0") == [1]
        (world.root / "go").touch()
    status = world.finish(leave=tuple(EVAL_FAILS))
    assert status["counts"] == {**dict.fromkeys(status["counts"], 0), "DONE": 3, "DEAD": 1}, status["cells"]
    counted = world.check(cells=4, exits=EVAL_FAILS)
    assert counted.of("eval/1")[-1:] == [len(world.rows("SELECT * FROM attempt WHERE cell = 'eval/1'"))]


@pytest.mark.parametrize(("point", "by"), cases())
def test_killed_at(world: World, point: str, by: str) -> None:
    prepare(world, point, by)
    hit(world, point, by, "")
    recover(world, point)
    killed = [row["cell"] for row in world.rows("SELECT cell FROM attempt WHERE outcome LIKE '%signal(9%' OR n > 2")]
    assert len(killed) <= 1  # one process died: at most one attempt went with it


@pytest.mark.slow  # killed at the same points in CI
@pytest.mark.parametrize(("point", "by"), cases())
def test_stopped_at(world: World, point: str, by: str) -> None:
    prepare(world, point, by)
    hit(world, point, by, ":stop")
    stopped: list[int] = until(
        lambda: [pid for pid in world.ours() if letter(pid) == "T"] or helped(world), "it is stopped"
    )
    if point == "child.execing":  # the run itself is stopped: that is no death, and nobody else may run it
        assert world.muster("up", "--detach").returncode == 0
        (pid,) = stopped
        cells = [cell for cell in world.status()["cells"] if cell["pid"] == pid]
        assert [cell["verdict"] for cell in cells] in (["RUNNING"], ["STALLED"])
        assert not world.rows("SELECT * FROM attempt WHERE n > 1")
        kill(pid, signal.SIGCONT)
    recover(world, point)
    assert not world.rows(
        "SELECT * FROM attempt WHERE n > 1 AND retry_cause NOT LIKE '%test wants%' AND cell != 'train/0'"
    )
    left = [pid for pid in stopped if letter(pid) == "T" and pid == world.holder()]
    assert not left, f"a stopped controller still holds the campaign: {left}"


def helped(world: World) -> list[int]:
    """A stopped shim may have been helped on before we could see it stopped: then its campaign goes on."""
    return [os.getpid()] if any(world.counted().ends.values()) else []
