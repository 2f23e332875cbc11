"""Trainers that name their own folders, on another file system than the campaign's."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.camp import Camp

CAMPAIGN = """\
muster: 1
campaign: named
axes: {{seed: [1]}}
slots: {{gpus: 0, cpus: 1}}
jobs:
  train:
    axes: [seed]
    command: sh train.sh {{attempt}} {folder}/m_{{seed}}
    output: {folder}/m_{{seed}}-*
    proof: {{files: [model.pt]}}
"""
TRAIN = '[ $1 = 1 ] || exit 0; mkdir "$2-first"; echo weights > "$2-first/model.pt"; exit 7'


@pytest.fixture
def elsewhere(camp: Camp) -> Iterator[Path]:
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK) or memory.stat().st_dev == camp.root.stat().st_dev:
        pytest.skip("there is one file system only")
    folder = Path(tempfile.mkdtemp(dir=memory))
    yield folder
    shutil.rmtree(folder)


def test_a_retry_that_writes_nothing_is_not_done_by_what_the_attempt_before_wrote(camp: Camp, elsewhere: Path) -> None:
    camp.write(CAMPAIGN.format(folder=elsewhere))
    (camp.root / "train.sh").write_text(TRAIN)
    camp("up", code=3)
    last = elsewhere / "m_1-first"
    for path in (last / "model.pt", last):
        os.utime(path, (time.time() + 9,) * 2)  # as if its clock were ahead, for a command is slow
    camp("retry", "train/1", "--because", "again", code=0)
    camp("wait", code=3)
    (cell,) = camp.json("status")["cells"]
    assert (cell["attempt"], cell["verdict"]) == (2, "DEAD")
    assert "no folder fits" in cell["reason"]
