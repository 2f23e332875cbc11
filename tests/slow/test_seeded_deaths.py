"""Hundreds of real deaths by a seed, and what Muster says they died of: the confusion matrix.

Each case is a real process, run by Muster, that ends in a way we know. Replay one case with
`MUSTER_DEATHS_SEED=1 MUSTER_DEATHS_ONLY=d017 pytest -s tests/slow/test_seeded_deaths.py`.
"""

import collections
import contextlib
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from death_cases import DEATHS, Case, Means, cases
from fault_world import World, kill, until

from muster.hosts.local.kernel import memory_group_of

pytestmark = pytest.mark.slow

SEED = int(os.environ.get("MUSTER_DEATHS_SEED", "1"))
ONLY = os.environ.get("MUSTER_DEATHS_ONLY", "")
SLOTS = 8
ME = "tests/slow/test_seeded_deaths.py"
LITTLE = 64 << 20  # bytes of memory in a group of our own
LOOKED_AT_S = 0.6  # three polls: the controller has seen the run in its group before it allocates
TIME_S = 300
TOOL = "#!/bin/sh\nexit 0\n"
JOBS = {
    "py": "command: '{python} {{of_py.args}}'",
    "sh": "command: 'sh {{of_sh.args}}'",
    "proof": "command: '{python} {{of_proof.args}}', {proof}",
    "proof_sh": "command: 'sh {{of_proof_sh.args}}', {proof}",
    "timed": "command: '{python} {{of_timed.args}}', timeout: 1.5s",
    "tool": "command: './{{of_tool}}'",
    "nowhere": "command: 'sh -c true', cwd: nowhere",
}
PROOF = 'steps: 100, progress: [{jsonl: metrics.jsonl}], proof: {step: {min: "{steps}", within: 2%}}'


@dataclass
class Named:
    """One death: what it was, and what Muster called it."""

    case: Case
    cause: str
    sure: str
    reason: str

    @property
    def right(self) -> bool:
        return self.cause in self.case.wants

    @property
    def column(self) -> str:
        kind = self.cause.partition("(")[0]
        column = self.cause if kind == "signal" else kind
        true = {want if want.startswith("signal") else want.partition("(")[0] for want in self.case.wants}
        return f"{column}, other details" if column in true and not self.right else column

    def __str__(self) -> str:
        true = " or ".join(self.case.wants)
        return f"{self.case.name} {self.case.words!r}: {true}, called {self.cause}, {self.sure}: {self.reason}"


# -- what a test needs of the machine


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[str | None]:
    """A disk of a quarter of a megabyte; None where we may not mount one."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "muster-test", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        yield None
        return
    try:
        yield str(folder)
    finally:
        until(lambda: subprocess.run(["umount", str(folder)], capture_output=True).returncode == 0, "it is unmounted")


@dataclass
class Groups:
    """Memory groups below our own, each for one run."""

    made: list[Path] = field(default_factory=list)

    @staticmethod
    def own() -> Path | None:
        found = memory_group_of(os.getpid())
        return Path(found.folder) if found and not found.v2 else None  # v2 has no processes in inner groups

    @classmethod
    def why_not(cls) -> str:
        own = cls.own()
        if own is None:
            return "no memory cgroup (v1) of our own"
        group = own / f"muster-{os.getpid()}-try"
        try:
            group.mkdir()
            (group / "memory.limit_in_bytes").write_text(str(LITTLE))
        except OSError as error:
            return f"no group of our own can be made: {error}"
        finally:
            with contextlib.suppress(OSError):
                group.rmdir()
        return ""

    def add(self, *pids: int) -> None:
        own = self.own()
        assert own is not None
        group = own / f"muster-{os.getpid()}-{len(self.made)}"
        group.mkdir()
        self.made.append(group)
        (group / "memory.limit_in_bytes").write_text(str(LITTLE))
        with contextlib.suppress(OSError):
            (group / "memory.memsw.limit_in_bytes").write_text(str(LITTLE))
        for pid in pids:
            (group / "cgroup.procs").write_text(str(pid))

    def remove(self) -> None:
        for group in self.made:
            with contextlib.suppress(FileNotFoundError):
                until(lambda: not (group / "cgroup.procs").read_text().split(), f"{group.name} is empty")  # noqa: B023
                group.rmdir()
        self.made.clear()


# -- the campaign


def write_campaign(world: World, wanted: Sequence[Case]) -> None:
    world.root.mkdir()
    for script in DEATHS.iterdir():
        if script.is_file():
            (world.root / script.name).write_bytes(script.read_bytes())
    (world.root / "nowhere").mkdir()
    by_job: dict[str, list[Case]] = collections.defaultdict(list)
    for case in wanted:
        by_job[case.job].append(case)
        if case.job == "tool":
            tool = world.root / case.name
            tool.write_text(TOOL)
            tool.chmod(0o755)
    lines = ["muster: 1", "campaign: deaths", f"slots: {{gpus: 0, cpus: {SLOTS}}}", "axes:"]
    for job, of_job in by_job.items():
        lines.append(f"  of_{job}:")
        lines += [f"    {case.name}: {{args: {json.dumps(case.words or 'none')}}}" for case in of_job]
    lines.append("jobs:")
    for job in by_job:
        told = JOBS[job].format(python=shlex.quote(sys.executable), proof=PROOF)
        lines.append(f"  {job}: {{axes: [of_{job}], {told}}}")
    (world.root / "campaign.yaml").write_text("\n".join(lines) + "\n")


def spoil(world: World, wanted: Sequence[Case]) -> None:
    """After the campaign was checked and taken in: the commands and folders that it found are no longer there."""
    (world.root / "nowhere").rmdir()
    for case in wanted:
        tool = world.root / case.name
        if case.job != "tool":
            continue
        if case.words == "gone":
            tool.unlink()
        elif case.words == "plain":
            tool.chmod(0o644)
        elif case.words == "bad_interpreter":
            tool.write_text("#!/no/such/interpreter\n")
        else:
            tool.write_bytes(b"\x7fNOT A PROGRAM\n")


@dataclass
class Hand:
    """Does to the runs what their cases say, and keeps the campaign going."""

    world: World
    groups: Groups
    waiting: dict[str, Case]
    later: list[tuple[float, Case]] = field(default_factory=list)  # runs that may allocate, and when
    again: dict[str, Case] = field(default_factory=dict)
    releases: int = 0

    def turn(self) -> None:
        for case in list(self.waiting.values()):
            if (self.out(case) / "ready").exists():
                del self.waiting[case.cell]
                self.act(case)
        for at, case in list(self.later):
            if time.monotonic() > at:
                self.later.remove((at, case))
                (self.out(case) / "go").touch()
        for case in list(self.again.values()):
            if (self.out(case) / "ready_again").exists():
                del self.again[case.cell]
                self.signal(case, int(case.act.split()[-1]))
        if (self.world.state / "intent").read_text().strip() == "held":  # five deaths in a row: not the machine's fault
            self.world.say("release", "these deaths are meant")
            self.releases += 1

    def act(self, case: Case) -> None:
        if case.act.startswith("signal"):
            self.signal(case, int(case.act.split()[1]))
        elif case.act == "stop":
            answer = self.world.muster("stop", case.cell, "--because", "the test wants it", "--no-wait")
            assert answer.returncode in (0, 4), answer.stderr
        else:
            about = self.world.identity(case.cell)
            assert about is not None
            self.groups.add(about["shim_pid"], about["pid"])
            self.later.append((time.monotonic() + LOOKED_AT_S, case))
            if "then" in case.act:
                self.again[case.cell] = case

    def signal(self, case: Case, number: int) -> None:
        about = self.world.identity(case.cell)
        assert about is not None
        kill(about["pid"], number)

    def out(self, case: Case) -> Path:
        return self.world.folder(case.cell) / "out"


def die(world: World, wanted: Sequence[Case]) -> tuple[list[Named], int]:
    write_campaign(world, wanted)
    world.take_in()
    spoil(world, wanted)
    groups = Groups()
    hand = Hand(world, groups, {case.cell: case for case in wanted if case.act})
    deadline = time.monotonic() + TIME_S
    try:
        while time.monotonic() < deadline:
            if world.without_controller():
                if world.rows("SELECT count(*) AS n FROM attempt WHERE verdict IS NOT NULL")[0]["n"] >= len(wanted):
                    break
                world.controller()
                until(world.holder, "a controller starts")
            hand.turn()
            time.sleep(0.02)
        else:
            raise AssertionError(f"not within {TIME_S} s; {world.trouble()}")
    finally:
        world.close()  # whoever is left must be gone before its group and its disk can go
        groups.remove()
    return named(world, wanted), hand.releases


def named(world: World, wanted: Sequence[Case]) -> list[Named]:
    rows = {row["cell"]: row for row in world.rows("SELECT * FROM attempt WHERE n = 1")}
    found = []
    for case in wanted:
        row = rows[case.cell]
        outcome = json.loads(row["outcome"])
        cause = outcome["cause"] or {"kind": row["verdict"], "detail": "", "confidence": "proven"}
        told = f"{cause['kind']}({cause['detail']})" if cause["detail"] else cause["kind"]
        found.append(Named(case, told, cause["confidence"], outcome["reason"]))
    return found


# -- what came out


def matrix(found: Sequence[Named]) -> str:
    """Rows are true classes, columns what they were called: `8 proven, 1 probable`."""
    rows: dict[str, collections.Counter[tuple[str, str]]] = collections.defaultdict(collections.Counter)
    for each in found:
        rows[each.case.row][each.column, each.sure] += 1
    lines = [f"{'true class':16} {'n':>3} {'right':>5}  called, how surely (* its log says something else)"]
    for row in sorted(rows):
        counts = rows[row]
        right = sum(each.right for each in found if each.case.row == row)
        total = sum(counts.values())
        by_column: dict[str, list[str]] = collections.defaultdict(list)
        for (column, sure), count in sorted(counts.items()):
            by_column[column].append(f"{count} {sure}")
        told = "; ".join(f"{column}: {', '.join(cells)}" for column, cells in sorted(by_column.items()))
        lines.append(f"{row:16} {total:3d} {right:5d}  {told}")
    return "\n".join(lines)


def test_seeded_deaths(world: World, tmp_path: Path) -> None:
    began = time.monotonic()
    why_not = Groups.why_not()
    with small_disk(tmp_path / "small") as disk:
        wanted = [case for case in cases(SEED, Means(disk, not why_not)) if ONLY in ("", case.name)]
        found, releases = die(world, wanted)
    wrong = [each for each in found if not each.right]
    lies = [each for each in wrong if each.sure == "proven"]
    classes = {each.case.row.rstrip(" *") for each in found}
    seconds = time.monotonic() - began
    print(f"\nseed {SEED}: {len(found)} deaths of {len(classes)} classes in {seconds:.0f} s, {releases} holds")
    for what, why in (("oom_kill", why_not), ("a small disk", "" if disk else "it can't be mounted")):
        if why:
            print(f"left out: {what}: {why}")
    print(matrix(found))
    share = 100 - 100 * len(wrong) / len(found)
    print(f"right {len(found) - len(wrong)} of {len(found)} ({share:.1f} %), wrong ones called proven: {len(lies)}")
    for each in wrong:
        print(f"  wrong: {each}; replay: MUSTER_DEATHS_SEED={SEED} MUSTER_DEATHS_ONLY={each.case.name} pytest -s {ME}")
    assert not lies, [str(each) for each in lies]
    assert len(wrong) <= 0.05 * len(found)
    if not ONLY:
        assert len(found) >= 200
        assert len(classes) >= 12
