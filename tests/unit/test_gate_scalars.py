"""A gate's decisions as TensorBoard scalars: written by the real package, read by ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from muster.readers.records.logged_runs import RunMeter, newest_run_in
from muster.stages import Gate, GateSettings

SETTINGS = {"success": [{"key": "survival", "min": 0.5}], "failure": [{"key": "survival", "below": 0.3}], "required": 2}
VALUES = (0.2, 0.6, 0.7, 0.1, 0.4)
SCRIPT = f"""
import sys
from tensorboard.summary import Writer
from muster.stages import Gate, GateSettings
gate, writer = Gate(GateSettings.of({SETTINGS!r})), Writer(sys.argv[1])
for at, value in enumerate({VALUES!r}, start=1):
    gate.observe(10 * at, {{"survival": value}}).add_to(writer, "penalty")
writer.close()
"""


def test_scalars_come_back_as_they_were_decided(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, timeout=120,
        env={**os.environ, "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    run = newest_run_in(str(tmp_path)).run
    assert run is not None
    series: dict[str, list[float]] = {}
    meter = RunMeter(run.feeds())
    meter.look()
    found = meter.measured()
    assert found.troubles == ()
    gate = Gate(GateSettings.of(SETTINGS))
    for at, value in enumerate(VALUES, start=1):
        for tag, number in gate.observe(10 * at, {"survival": value}).scalars("penalty"):
            series.setdefault(tag, []).append(number)
    assert set(found.keys) == set(series) == {f"penalty/{name}" for name in ("phase", "streak", "failures", "state")}
    for tag, numbers in series.items():
        summary = found.keys[tag]
        assert list(summary.tail) == numbers, tag
        assert list(summary.tail_steps) == [10, 20, 30, 40, 50], tag
