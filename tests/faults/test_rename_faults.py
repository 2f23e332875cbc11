"""`muster rename` and a death at any moment of it: said again, it is done once, and nothing runs for it."""

import pytest
from fault_world import World

POINTS = ("campaign.write", "lock.taken", "log.append", "log.fsync", "fold.begin", "fold.commit")
RENAME = ("rename", "seed", "0=7")


@pytest.mark.parametrize("point", POINTS)
def test_killed_at(world: World, point: str) -> None:
    world.campaign("  train: {axes: [seed], command: 'sh job.sh {cell} {attempt}'}")
    assert world.muster("up").returncode == 0
    assert world.muster(*RENAME, env=world.armed(point)).returncode != 0
    assert world.marker.exists(), f"{point} was not reached"
    again = world.muster(*RENAME)
    assert again.returncode == 0, again.stderr
    assert world.muster("up").returncode == 0
    assert world.counted().executions == 2
    assert [row["id"] for row in world.rows("SELECT id FROM cell ORDER BY position")] == ["train/7", "train/1"]
    assert "seed: [7, 1]" in (world.root / "campaign.yaml").read_text()
    assert len(world.rows("SELECT * FROM event WHERE kind = 'rename' AND void IS NULL")) == 1
