"""Campaigns of real processes, each in a folder and a machine-wide home of its own; nothing outlives its test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.camp import Camp

# a run says that it has started, then waits for a word at its gate: the exit code it shall end with
GATED = """\
muster: 1
campaign: gated
axes: {seed: [0, 1]}
slots: {gpus: 0, cpus: 2}
jobs:
  train:
    axes: [seed]
    command: /bin/sh -c 'echo started {cell}; echo trouble of {cell} >&2; read word < gate-{seed}; exit $word'
  eval:
    axes: [seed]
    needs: [train]
    command: /bin/sh -c 'echo evaluated' {cell}
"""


@pytest.fixture
def camp(tmp_path: Path) -> Iterator[Camp]:
    (tmp_path / "home").mkdir()
    (tmp_path / "campaign").mkdir()
    made = Camp(tmp_path / "campaign", tmp_path / "home")
    yield made
    made.clean_up()


@pytest.fixture
def gated(camp: Camp) -> Camp:
    """Two train cells that wait at their gates, two eval cells that need them; not started."""
    camp.write(GATED)
    camp.gates(0, 1)
    return camp
