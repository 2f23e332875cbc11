"""A look takes time: a shim may write its last facts and end between two reads of one look. That is no lost exit status."""

import json
import os
from pathlib import Path

import pytest

from muster.engine.judge.attempt_verdict import judge_attempt
from muster.engine.ports.clock import SystemClock
from muster.files import process_identity
from muster.hosts.local import attempt_probe
from muster.model.attempt import Attempt
from muster.model.attempt_snapshot import ProofReading
from muster.model.campaign import Job

JOB = Job("train", (), ("true",))
ATTEMPT = Attempt("train/0", 1, "token", 1, ("cpu0",), "", "", 0.0, process_identity.read_boot_id())


def identity() -> dict[str, object]:
    """Of a process that has ended."""
    pid = os.spawnlp(os.P_NOWAIT, "true", "true")
    os.waitpid(pid, 0)
    host = {
        "boot_id": process_identity.read_boot_id(),
        "pid_namespace": process_identity.read_pid_namespace(),
        "init_ticks": process_identity.read_init_ticks(),
    }
    return {**host, "pid": pid, "ticks": 1, "shim_pid": pid, "shim_ticks": 1, "boot": 0.0, "at": 0.0}


def finish(folder: Path) -> None:
    """What a shim writes before it ends."""
    (folder / "identity.json").write_text(json.dumps(identity()))
    (folder / "execing").touch()
    facts = {"token": "token", "code": 0, "signal": None, "at": 0.0, "boot": 0.0, "duration_s": 1.0, "orphans": []}
    (folder / "exit.json").write_text(json.dumps(facts))


@pytest.mark.parametrize("named", [True, False])
def test_the_shim_ends_in_the_middle_of_a_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool) -> None:
    (tmp_path / "started").write_text("token")
    if named:
        (tmp_path / "identity.json").write_text(json.dumps(identity()))
        (tmp_path / "execing").touch()
    lives = True

    def locked(path: str) -> bool:
        if path.endswith("/shim.lock") and not lives and not (tmp_path / "exit.json").exists():
            finish(tmp_path)  # all else of this look was read before, and found nothing
        return lives and path.endswith("/shim.lock")

    monkeypatch.setattr(attempt_probe, "is_lock_file_held", locked)
    probe = attempt_probe.AttemptProbe(
        lambda _cell, _n: tmp_path, SystemClock(), lambda _attempt, _exit: ProofReading(True)
    )
    for _ in range(3):  # it is slow to write its exit down: its process is seen gone more than once
        seen = probe.look([ATTEMPT])[ATTEMPT.key]
        assert not judge_attempt(ATTEMPT, seen, JOB).final
    lives = False
    verdict = judge_attempt(ATTEMPT, probe.look([ATTEMPT])[ATTEMPT.key], JOB)
    assert (verdict.state, verdict.cause) == ("DONE", None), verdict
