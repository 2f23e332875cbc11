"""`muster redo` and a death at any moment of it: nothing is lost, and what is redone runs once more, never twice."""

import pytest
from fault_world import World, until

BY_COMMAND = ("lock.taken", "log.append", "log.fsync", "fold.begin", "fold.commit")
BY_CONTROLLER = ("lease.taken", "claim.committed", "order.rename", "spawn.sent",
                 "exit.seen", "settle.committed")  # fmt: skip
JOBS = """\
  train: {axes: [seed], command: 'sh job.sh {cell} {attempt}'}
  eval: {axes: [seed], needs: [train], command: 'sh job.sh {cell} {attempt}'}
"""
REDO = ("redo", "train/0", "--because", "a fault was found")


def done(world: World) -> None:
    world.campaign(JOBS)
    assert world.muster("up").returncode == 0
    assert world.counted().executions == 4


def settled(world: World) -> None:
    """What a person does: asks again where the first word was lost, and lets it run."""
    status = world.finish()
    assert status["complete"], status["cells"]
    for cell in ("train/0", "eval/0"):
        assert world.counted().of(cell) in ([1, 2], [1, 2, 3]), "it ran more often than it was asked to"
    for cell in ("train/1", "eval/1"):
        assert world.counted().of(cell) == [1]
    assert not world.counted().overlaps
    rows = world.rows("SELECT cell, n, superseded, verdict, retry_cause FROM attempt ORDER BY cell, n")
    for cell in ("train/0", "eval/0"):
        own = [row for row in rows if row["cell"] == cell]
        assert [row["verdict"] for row in own if row["superseded"] is None][-1] == "DONE"
        assert sum(row["verdict"] == "DONE" and row["superseded"] is None for row in own) == 1
        assert all(row["retry_cause"] for row in own[1:])


@pytest.mark.parametrize("point", [*BY_COMMAND, *BY_CONTROLLER])
def test_killed_at(world: World, point: str) -> None:
    """The command itself, or the controller that it starts and that inherits its environment."""
    done(world)
    world.muster(*REDO, env=world.armed(point))
    until(world.marker.exists, f"{point} is reached")
    world.muster("up", "--detach")
    world.finish()
    if world.counted().of("train/0") == [1]:  # its word was never durable, and nothing has come of it
        assert world.muster(*REDO).returncode == 0
    settled(world)
