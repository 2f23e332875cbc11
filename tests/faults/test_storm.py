"""A storm of another kind than the named crash points: signals to everybody, state that is deleted or moved, errors of every
kind of file. Replay a round with `python tests/faults/storm.py --seed N`; see storm.py.
"""

import errno
import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from storm import KNOBS, run_round
from storm_check import Attendance, Totals, advised, counted_twice
from storm_errors import ERRORS, KINDS, Errors, kind_of, why_no_errors
from storm_plan import SIGNALS, TARGETS, draw_plan
from storm_world import JOB, Line

WHY_NOT = why_no_errors()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("MUSTER_")]:
        monkeypatch.delenv(name)
    for name, value in {**KNOBS, "MUSTER_HOME": str(tmp_path / "storm" / "home")}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "storm").mkdir()
    return tmp_path / "storm"


def tell(totals: Totals, seed: int) -> None:
    print(json.dumps(dict(sorted(totals.counts.items()))))
    if WHY_NOT:
        print(f"without injected errors: {WHY_NOT}")
    assert not totals.broken, f"seed {seed}: {totals.broken}"


def test_a_storm(folder: Path) -> None:
    """A minute with its calm."""
    seed = int(os.environ.get("MUSTER_STORM_SEED", "1"))
    totals = run_round(folder, draw_plan(seed), 20)
    tell(totals, seed)
    assert all(totals.counts[name] for name in ("signal KILL", "deletions", "cells"))
    assert WHY_NOT or any(name.startswith("error E") for name in totals.counts)


@pytest.mark.slow
def test_five_minutes_of_storms(folder: Path) -> None:
    sum_, seed = Totals(), 100
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        seed += 1
        folder.mkdir(exist_ok=True)
        totals = run_round(folder, draw_plan(seed), 45)
        sum_.counts.update(totals.counts)
        tell(totals, seed)
    tell(sum_, seed)
    assert all(sum_.counts[f"signal {name}"] for name in SIGNALS)
    assert all(sum_.counts[f"target {name}"] for name in TARGETS)


def test_a_seed_says_what_is_done() -> None:
    assert draw_plan(7) == draw_plan(7) != draw_plan(8)
    signals = [(act.what, act.target) for act in draw_plan(7) if act.kind == "signal"]
    assert all(signals.count((name, target)) >= 2 for name in SIGNALS for target in TARGETS)
    drawn = {(act.what, act.target) for seed in range(90) for act in draw_plan(seed) if act.kind == "error"}
    assert drawn == {(error, kind) for error in ERRORS for kind in KINDS}


def test_a_token_that_ran_twice_is_seen() -> None:
    lines = [Line("begin", "train/0", 1, pid, token, "cpu0") for pid, token in ((1, "a"), (2, "a"), (3, "b"))]
    assert counted_twice(lines) == ["train/0 attempt 1 ran 2 times under one token"]


@pytest.mark.parametrize(("held", "killed", "told"), [(True, False, "clash"), (False, True, ""), (True, True, "clash")])
def test_a_clash_is_a_slot_that_somebody_holds(tmp_path: Path, held: bool, killed: bool, told: str) -> None:
    """And not a `flock` that was hit by a signal of the storm, as one just forked is taken for its run."""
    real = shutil.which("flock")
    (tmp_path / "flock").write_text(
        f'#!/bin/sh\n[ "$2" = 8 ] && rm first 2>/dev/null && kill -USR1 $$\nexec {real} "$@"\n'
    )
    (tmp_path / "flock").chmod(0o755)
    (tmp_path / "job.sh").write_text(JOB)
    if killed:
        (tmp_path / "first").touch()
    env = {"COUNT": "count", "SLOTS": "slot", "PATH": f"{tmp_path}:{os.environ['PATH']}", "MUSTER_ATTEMPT": "token"}
    with open(tmp_path / "slot.cpu0.lock", "w") as lock:
        if held:
            fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(["sh", "job.sh", "train/3", "1", "cpu0"], cwd=tmp_path, env=env, check=True)
    words = [line.split()[0] for line in (tmp_path / "count").read_text().splitlines()]
    assert words == [*filter(None, [told]), "begin", "end"]
    assert not (tmp_path / "first").exists()


def test_nobody_there_is_a_break_unless_both_were_hit_at_once() -> None:
    def alone(*hits: tuple[str, float, bool], disturbed: float | None = None) -> str:
        found = Attendance(0.0)
        assert found.look(20.0, wanted=True, attended=True) == "fine"
        for role, at, other in hits:
            found.hit(role, at, other_is_there=other)
        if disturbed is not None:
            found.disturb(disturbed)
        assert found.look(22.0, wanted=True, attended=False) == "wait"
        return found.look(26.5, wanted=True, attended=False)

    late = Attendance(0.0)
    assert late.look(99.0, wanted=True, attended=False) == "wait"  # it may have ended a moment ago
    assert alone() == "broken"
    assert alone(("controller", 20.5, True)) == "broken"  # a guard that never starts it again
    assert alone(("guard", 20.5, True)) == "broken"
    assert alone(("guard", 10.0, True), ("controller", 20.5, True)) == "broken"
    assert alone(("guard", 19.5, True), ("controller", 20.5, True)) == "excused"
    assert alone(("controller", 20.5, False)) == "excused"  # its guard was in a pause before it starts
    assert alone(disturbed=21.0) == "excused"
    assert alone(disturbed=12.0) == "broken"
    assert Attendance(0.0).look(99.0, wanted=False, attended=False) == "fine"


def test_a_person_types_what_the_status_says() -> None:
    lost = (
        "make sure that nothing runs, then `muster stop {0}` ends it and `muster retry {0} --because ...` runs it again"
    )
    dead = "held: fix it, then `muster up`, else `muster retry {0} --because ...`"
    told = {
        "train/0": ("UNKNOWN", lost),
        "train/1": ("UNKNOWN", lost),
        "train/2": ("DEAD", dead),
        "train/3": ("DONE", ""),
    }
    cells = [
        {"cell": name, "verdict": verdict, "reason": "", "next": words.format(name)}
        for name, (verdict, words) in told.items()
    ]
    expected = ["stop train/0 train/1 --because storm", "retry train/2 --because storm"]
    controller = {"trouble": None, "started_here": None}
    assert advised({"intent": "running", "controller": controller, "cells": cells}) == expected
    assert advised({"intent": "held", "controller": controller, "cells": cells})[0] == "release"
    unregistered = {"trouble": None, "started_here": False}
    assert advised({"intent": "running", "controller": unregistered, "cells": []}) == ["up --detach"]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/c/.muster/attempts/train/0/1/.exit.json.99", "exit.json"),
        ("/c/.muster/campaign.db-shm", "campaign.db-wal"),
        ("/c/.muster/.watch.7", "watch.json"),
        ("/h/slots/cpu0", "slot"),
        ("/h/campaigns/e7fc.json", "register"),
        ("/c/.muster/campaigns/e7fc.json", "campaign"),
        ("/c/reports/status/.train_status_latest.tsv.9", "status tables"),
        ("/c/campaign.yaml", None),
    ],
)
def test_kinds_of_files(path: str, kind: str | None) -> None:
    assert kind_of(path) == kind


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "it can")
def test_an_error_hits_the_next_call_that_touches_the_file_and_no_other(tmp_path: Path) -> None:
    errors = Errors.start(str(tmp_path))
    try:
        errors.arm("EIO", "exit.json", 1, 60)
        errors.arm("EMFILE", "started", 1, 60)
        code = f"""
import os
for name in ("other", ".exit.json.1", ".exit.json.1", "started", "started"):
    try:
        os.close(os.open({str(tmp_path)!r} + "/" + name, os.O_CREAT | os.O_WRONLY))
        print(0)
    except OSError as error:
        print(error.errno)
"""
        command = [sys.executable, "-I", "-S", "-c", code]
        done = subprocess.run(command, preexec_fn=errors.filtered(), capture_output=True, text=True, check=True)
        assert list(map(int, done.stdout.split())) == [0, errno.EIO, 0, errno.EMFILE, 0]
        assert [(fault.error, call) for fault, call, _ in errors.collect()] == [("EIO", "openat"), ("EMFILE", "openat")]
    finally:
        errors.close()
