"""Storms: processes die at random named points and at random moments, two controllers start at once; nothing is lost or doubled.

Each trial is one campaign of quick cells under a storm of its own seed. Replay one with
`MUSTER_STORM_SEED=7 pytest tests/faults/test_random_crashes.py -k small`; timing is not part of the seed, so repeat it.
"""

import os
import random
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fault_world import World, kill, letter, ticks, until
from test_crash_points import shim_points

from muster.files.crash_points import CRASH_POINTS

JOBS = """\
  train: {axes: [seed], command: 'sh job.sh {cell} {attempt}'}
  eval: {axes: [seed], needs: [train], command: 'sh job.sh {cell} {attempt}'}
"""
SEEDS = 12
BODY = 'case "$1" in *[159]) sleep 0.15;; *[037]) sleep 0.04;; esac'
CONTROLLER_POINTS = tuple(
    point for point in CRASH_POINTS if point not in ("campaign.write", "env.write", "fold.intent")
)
SHIM_POINTS = shim_points()


@dataclass
class Totals:
    trials: int = 0
    injections: int = 0  # that really hit a process
    by_kind: dict[str, int] = field(default_factory=dict)
    executions: int = 0
    attempts: int = 0
    cells: int = 0
    seconds: float = 0.0

    def hit(self, kind: str) -> None:
        self.injections += 1
        self.by_kind[kind] = self.by_kind.get(kind, 0) + 1


class Storm:
    def __init__(self, world: World, seed: int, totals: Totals) -> None:
        self.world, self.totals = world, totals
        self.random = random.Random(seed)
        self.controllers: list[subprocess.Popen[bytes]] = []
        self.marker = world.root
        self.markers: dict[Path, str] = {}  # one for each controller that was started armed, and for its shims

    def rage(self, most: int) -> None:
        """Until the campaign is over or `most` injections have hit."""
        before = self.totals.injections
        retry_at = 0.0
        while self.totals.injections - before < most:
            self._keep_controlled()
            self._count_hits()
            if self.random.random() < 0.25:
                self._kill_somebody()
            if time.monotonic() > retry_at:
                retry_at = time.monotonic() + 0.3
                if self._over():
                    return
            time.sleep(self.random.uniform(0.002, 0.03))

    def _keep_controlled(self) -> None:
        self.controllers = [controller for controller in self.controllers if controller.poll() is None]
        if self.controllers:
            return
        point = self.random.choice(SHIM_POINTS if self.random.random() < 0.5 else CONTROLLER_POINTS)
        how = ":stop" if point.startswith("shim.") and self.random.random() < 0.2 else ""
        self.marker = self.world.root / f"hit-{len(self.markers)}-{time.monotonic_ns()}"
        self.markers[self.marker] = point
        armed = {"MUSTER_CRASH_AT": point + how, "MUSTER_CRASH_ONCE": str(self.marker)}
        rivals = self.random.choice((1, 1, 1, 2, 3))
        self.controllers = [self.world.controller(armed) for _ in range(rivals)]
        if rivals > 1:
            self.totals.hit("controllers at once")

    def _count_hits(self) -> None:
        """A marker says that a process died at its point. The newest is armed again: the next to get there dies too."""
        for marker, point in list(self.markers.items()):
            if marker.exists():
                self.totals.hit(point)
                if marker == self.marker:
                    marker.unlink()
                else:
                    del self.markers[marker]

    def _kill_somebody(self) -> None:
        kind = self.random.choice(("controller", "shim", "run", "run"))
        if kind == "controller":
            pid = self.world.holder()
            if pid and pid != os.getpid() and kill(pid):
                self.totals.hit(kind)
            return
        opened = self.world.rows("SELECT cell, n FROM attempt WHERE verdict IS NULL")
        if not opened:
            return
        row = self.random.choice(opened)
        about = self.world.identity(row["cell"], row["n"])
        name = "shim_" if kind == "shim" else ""
        if about and ticks(about[name + "pid"]) == about[name + "ticks"] and kill(about[name + "pid"]):
            self.totals.hit(kind)

    def _over(self) -> bool:
        """A person retries what is held, so that the storm has something to hit; True: all cells are done."""
        query = """SELECT c.id, (SELECT count(*) FROM attempt a WHERE a.cell = c.id AND a.verdict = 'DONE') AS done,
            (SELECT verdict FROM attempt a WHERE a.cell = c.id ORDER BY n DESC LIMIT 1) AS last FROM cell c"""
        rows = self.world.rows(query)
        for row in rows:
            if row["last"] == "DEAD" and not row["done"]:
                self.world.say("retry", "the storm goes on", cell=row["id"])
        return all(row["done"] for row in rows)

    def calm(self) -> None:
        """No more injections: the campaign must come to its end, whatever state it was left in."""
        for marker in self.markers:
            marker.touch()  # disarms those that still run
        self.world.finish()
        counted = self.world.check(cells=2 * SEEDS)
        folder = self.world.root / "refolded"
        folder.mkdir()
        self.world.check_log(folder)
        for pid in self.world.ours():
            if letter(pid) == "T":  # a shim that we stopped after all was over: nobody is left to help it on
                kill(pid, signal.SIGCONT)
        until(lambda: not self.world.ours(), "no process is left")
        self.totals.executions += counted.executions
        self.totals.attempts += len(self.world.rows("SELECT * FROM attempt"))
        self.totals.cells += 2 * SEEDS


def storms(world: World, first_seed: int, injections: int) -> Totals:
    totals = Totals()
    began = time.monotonic()
    while totals.injections < injections:
        seed = first_seed + totals.trials
        trial = world.beside(f"trial-{seed}")
        trial.count = trial.root / "count"
        trial.campaign(JOBS, seeds=SEEDS, cpus=4, body=BODY)
        try:
            trial.take_in()
            storm = Storm(trial, seed, totals)
            storm.rage(min(40, injections - totals.injections))
            storm.calm()
        except Exception as error:
            replay = f"MUSTER_STORM_SEED={seed} pytest tests/faults/test_random_crashes.py -k small"
            raise AssertionError(f"seed {seed}, state in {trial.root}; {trial.trouble()}; replay: {replay}") from error
        for child in world.children:
            child.wait(timeout=60)
        world.children.clear()
        shutil.rmtree(trial.root)  # each holds a ballast of 16 MB
        totals.trials += 1
        totals.seconds = time.monotonic() - began
    print(f"{totals.injections} injections in {totals.trials} campaigns of {2 * SEEDS} cells, {totals.seconds:.0f} s:"
          f" {totals.executions} executions, {totals.attempts} attempts, {totals.cells} cells done, lost 0, doubled 0")  # fmt: skip
    print("  " + ", ".join(f"{kind} {count}" for kind, count in sorted(totals.by_kind.items())))
    return totals


def test_small_storm(world: World) -> None:
    totals = storms(world, int(os.environ.get("MUSTER_STORM_SEED", "1")), 100)
    assert totals.injections >= 100


@pytest.mark.slow
@pytest.mark.parametrize("part", [0, 1])
def test_great_storm(world: World, part: int) -> None:
    """Both parts together: 2,000 injections, or as many as MUSTER_STORM_INJECTIONS says."""
    wanted = int(os.environ.get("MUSTER_STORM_INJECTIONS", "2000")) // 2
    totals = storms(world, 10_000 * (part + 1), wanted)
    assert totals.injections >= wanted
