"""A shim of nobody's campaign stands against a power-off; one that ends while it is looked at does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from muster.hosts.local import output_writers
from muster.hosts.local.living_runs import OpenFile

WAITS = (sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()")


@pytest.mark.parametrize("ours", [True, False])
def test_a_living_one_counts_if_it_is_of_our_home(ours: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path))
    theirs = str(tmp_path if ours else tmp_path / "other")
    with subprocess.Popen(
        WAITS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "MUSTER_HOME": theirs}
    ) as process:
        assert process.stdout
        process.stdout.readline()
        assert output_writers._is_stray_shim(held_by(process.pid), ()) is ours
        process.kill()


def test_one_that_has_ended_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its environment can't be read any more, reaped or not; that is no reason to keep a machine on."""
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path))
    process = subprocess.Popen(WAITS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={})
    assert process.stdin
    assert process.stdout
    process.stdout.readline()
    assert output_writers._is_stray_shim(held_by(process.pid), ()), "it lives, and its home is the usual one"
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not output_writers._is_stray_shim(held_by(process.pid), ())
    process.communicate()
    assert not output_writers._is_stray_shim(held_by(process.pid), ())


def held_by(pid: int) -> OpenFile:
    return OpenFile(pid, "/gone/.muster/attempts/train/a/1/shim.lock", deleted=True, writes=True)
