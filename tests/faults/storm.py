"""A storm over living campaigns: signals, deletions, errors. Afterwards the campaigns must end, with nothing lost or doubled.

    python tests/faults/storm.py --seed 7            one round; prints what it counted as one JSON object

A round is two campaigns on the same slots. A plan drawn from the seed is carried out act by act, while a person types
commands. Then it is calm: no command is typed any more, except where Muster itself says which one is needed, and within
a bound the campaigns have to end. What holds is read from what the runs wrote down themselves (see storm_world).
"""

import argparse
import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fault_world import ticks, until
from storm_check import OTHER, Attendance, Totals, advised, check_verdicts, check_world, needed_for
from storm_errors import Errors, why_no_errors
from storm_plan import COMMANDS, Act, draw_plan
from storm_world import StormWorld, let_go_on

SEEDS, CPUS = 24, 3
CELLS = 2 * SEEDS
BOUND_S = 120.0  # within which a campaign that was left alone must have ended, on two busy cores
ABSENT_S = 2.0  # how long an act waits for somebody to hit
LOOK_S = 0.8
KNOBS = {
    "MUSTER_POLL_S": "0.2",
    "MUSTER_REVIVE_S": "5",
    "MUSTER_GRACE_S": "2",
    "MUSTER_STALE_S": "2",
    "MUSTER_PACE": "0.2",
}


class Stuck(AssertionError):
    """Nothing changes any more."""


class Storm:
    def __init__(self, folder: Path, plan: Sequence[Act], totals: Totals) -> None:
        self.folder, self.plan, self.totals = folder, plan, totals
        home = folder / "home"
        self.worlds = [self._world(name, home) for name in ("first", "second")]
        self.errors = None if why_no_errors() else Errors.start(str(folder))
        self.commands: list[tuple[StormWorld, subprocess.Popen[bytes]]] = []
        self.stopped: list[tuple[float, int, int]] = []  # until when, pid, ticks
        self.moved: list[tuple[float, StormWorld, str]] = []  # until when it lies elsewhere, and its name
        self.limited_until = 0.0
        self.look_at = 0.0
        self.met: set[str] = set()  # kinds of processes that there are
        self.attendance = {world.count: Attendance(time.monotonic()) for world in self.worlds}
        self.left: dict[Path, bool] = {}  # nobody is there, and nobody will come
        self.needed: dict[Path, str] = {}  # where no status can be told: the command that its message names

    def _world(self, name: str, home: Path) -> StormWorld:
        env = {**os.environ, "MUSTER_HOME": str(home), **KNOBS, "STORM_CAMPAIGN": f"count-{name}"}
        world = StormWorld(self.folder / name, home, env, self.folder / f"count-{name}")
        world.write_campaign(SEEDS, CPUS)
        return world

    # -- the storm

    def rage(self, seconds: float) -> None:
        """The plan, or as much of it as the time allows."""
        for world in self.worlds:
            self.type(world, "up --detach")
        for world in self.worlds:
            until(world.holder, "a controller starts")
        deadline = time.monotonic() + seconds
        for act in self.plan:
            if time.monotonic() > deadline:
                return
            self.wait(act.pause_s)
            self.do(act)

    def wait(self, seconds: float) -> None:
        """Meanwhile all that is due."""
        deadline = time.monotonic() + seconds
        while True:
            self.tend()
            if time.monotonic() >= deadline:
                return
            time.sleep(0.02)

    def tend(self) -> None:
        now = time.monotonic()
        for due in [each for each in self.stopped if each[0] <= now]:
            self.stopped.remove(due)
            if ticks(due[1]) == due[2]:
                let_go_on([due[1]])
        for back in [each for each in self.moved if each[0] <= now]:
            self.moved.remove(back)
            self._move_back(back[1], back[2])
        if self.limited_until and now > self.limited_until:
            self._unlimit()
        for fault, _, _ in self.errors.collect() if self.errors else ():
            self.totals.hit(f"error {fault.error}", f"error {fault.error} {fault.kind}")
            self._disturb()
        self.commands = [each for each in self.commands if each[1].poll() is None]
        if now > self.look_at:
            for world in self.worlds:
                self.look(world, act=True)
            self.look_at = time.monotonic() + LOOK_S

    def do(self, act: Act) -> None:
        world = self.worlds[int(act.pick * 2)]
        if act.kind == "signal":
            self._signal(world, act)
        elif act.kind == "delete":
            self._delete(world, act)
        elif act.kind == "error" and self.errors:
            self.errors.arm(act.what, act.target, 1 + int(act.pick * 4), 1.5)
        elif act.kind == "limit":
            self._limit(world, act)
        elif act.kind == "command":
            self.type(world, act.what, act.pick)

    def _signal(self, world: StormWorld, act: Act) -> None:
        if act.target == "command":
            self.type(world, COMMANDS[int(act.pick * len(COMMANDS))], act.pick)
            self.wait(act.pick)
        pid = self._somebody(world, act)
        born = ticks(pid) if pid else None
        if pid is None or born is None:
            self.totals.hit("missed", f"missed {act.target}")
            return
        self._tell_hit(pid, act.target)
        number = signal.Signals[f"SIG{act.what}"]
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        self.totals.hit(f"signal {act.what}", f"target {act.target}", f"signal {act.what} {act.target}")
        if act.what == "KILL" and act.target in ("controller", "guard"):
            self.totals.hit("kills of controller or guard")
        if number == signal.SIGSTOP:
            self.stopped.append((time.monotonic() + 4 * act.pick, pid, born))

    def _tell_hit(self, pid: int, role: str) -> None:
        for world in self.worlds:
            if role in OTHER and world.is_mine(pid):
                there = bool(world.people(OTHER[role]))
                self.attendance[world.count].hit(role, time.monotonic(), other_is_there=there)

    def _disturb(self) -> None:
        """Both campaigns: they share a home, and whom an error hits is not told."""
        for each in self.attendance.values():
            each.disturb(time.monotonic())

    def _somebody(self, world: StormWorld, act: Act) -> int | None:
        deadline = time.monotonic() + (ABSENT_S if act.target in self.met else 0.3)
        while True:
            for each in (world, *(other for other in self.worlds if other is not world)):
                found = [pid for pid in each.people(act.target) if pid != os.getpid()]
                if found:
                    self.met.add(act.target)
                    return found[int(act.pick * 7919) % len(found)]
            if time.monotonic() > deadline:
                return None
            self.wait(0.05)

    def _delete(self, world: StormWorld, act: Act) -> None:
        if any(world is each[1] for each in self.moved):
            return
        if act.what == "moved":
            name = world.root.name
            self._disturb()
            world.move(f"{name}-moved")
            self.totals.hit("moves")
            if act.pick * 2 % 1 < 0.5:
                self.moved.append((time.monotonic() + 3 * act.pick, world, name))
            return
        deadline = time.monotonic() + ABSENT_S
        while not world.delete(act.what, act.pick * 2 % 1):
            if time.monotonic() > deadline:
                self.totals.hit("missed", f"missed {act.what}")
                return
            self.wait(0.05)
        self._disturb()
        self.totals.hit("deletions", f"deletion {act.what}")

    def _move_back(self, world: StormWorld, name: str) -> None:
        self._disturb()
        try:
            world.move(name)
        except OSError:
            left = sorted(str(path) for path in (self.folder / name).rglob("*"))[:5]
            self.totals.breaks("lost", f"{name} was made anew where it had been moved away from: {left}")

    def _limit(self, world: StormWorld, act: Act) -> None:
        """No new descriptor for one process, for a moment: a real EMFILE, for whatever it opens."""
        pid = self._somebody(world, act)
        if pid is None:
            return
        with contextlib.suppress(OSError):
            hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (len(list(Path(f"/proc/{pid}/fd").iterdir())), hard))
            self.limited_until = time.monotonic() + 0.3 + act.pick
            self._disturb()
            self.totals.hit("limit EMFILE", f"limit EMFILE {act.target}")

    def _unlimit(self) -> None:
        self.limited_until = 0.0
        self._disturb()
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        for pid in self.worlds[0].ours():
            with contextlib.suppress(OSError):
                hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]
                resource.prlimit(pid, resource.RLIMIT_NOFILE, (min(soft, hard), hard))

    # -- the person

    def type(self, world: StormWorld, words: str, pick: float = 0.0) -> subprocess.Popen[bytes]:
        """A command, as from a terminal; it may be hit as well."""
        cell = f"{'train' if pick < 0.5 else 'eval'}/{int(pick * 7919) % SEEDS}"
        command = (sys.executable, "-m", "muster", "-C", str(world.root), *words.format(cell=cell).split())
        log = self.folder / "commands.log"
        with log.open("ab") as out:
            out.write(f"\n$ {' '.join(command[3:])}\n".encode())
            out.flush()
            how = {"preexec_fn": self.errors.filtered()} if self.errors else {}
            started = world.start(*command, stdout=out, stderr=out, start_new_session=True, **how)
        self.commands.append((world, started))
        self.totals.hit("commands")
        return started

    def look(self, world: StormWorld, *, act: bool) -> dict[str, Any] | None:
        """The truth that Muster tells, against /proc; then what a person would do about it."""
        attendance = self.attendance[world.count]
        if any(world is each[1] for each in self.moved):
            attendance.look(time.monotonic(), wanted=False, attended=False)
            return None
        try:
            status = world.status()
        except Exception as error:  # it was deleted a moment ago, or is being written
            self.totals.hit("looks without an answer")
            attendance.look(time.monotonic(), wanted=False, attended=False)
            self.needed[world.count] = needed_for(error)
            if act and self.needed[world.count] and not self._is_typing(world):
                self.type(world, self.needed[world.count])
            return None
        check_verdicts(world, status, self.totals)
        left = self.left[world.count] = self._left_alone(world, status)
        if act and not self._is_typing(world):
            for words in (advised(status) or (["status"] if left else []))[:1]:
                self.type(world, words)
        return status

    def _left_alone(self, world: StormWorld, status: dict[str, Any]) -> bool:
        """Nobody is there, and nobody will come: a person has to look, for any look revives. Unexcused it is a break."""
        wanted = status["intent"] == "running" and not status["complete"] and not advised(status)
        attended = bool(world.people("controller") or world.people("guard"))
        told = self.attendance[world.count].look(time.monotonic(), wanted=wanted, attended=attended)
        if told == "broken":
            self.totals.breaks("stuck", f"nobody attends {world.root.name}, and nothing ended both: {world.trouble()}")
        if told in ("excused", "broken"):
            self.totals.hit("left alone")
        return told in ("excused", "broken")

    def _is_typing(self, world: StormWorld) -> bool:
        return any(each is world and process.poll() is None for each, process in self.commands)

    # -- the calm

    def calm(self) -> None:
        """Nothing more happens to it: it must end, whatever state it was left in."""
        if self.errors:
            self.errors.calm()
        for each in self.moved:
            self._move_back(each[1], each[2])
        self.moved.clear()
        self._unlimit()
        self.stopped.clear()
        let_go_on(self.worlds[0].ours())
        for _, command in self.commands:
            with contextlib.suppress(subprocess.TimeoutExpired):
                command.wait(timeout=BOUND_S)
        for world in self.worlds:
            self._take_its_controller(world)
        for world in self.worlds:
            self._see_the_end(world)
        until(lambda: not self._processes(), "no process is left", timeout_s=BOUND_S, every_s=0.1)
        for world in self.worlds:
            self._rebuild_if_deleted(world)
            check_world(world, CELLS, self.totals)
            if held := world.slots_held():
                self.totals.breaks("stuck", f"slots {held} are held by nobody's run")

    def _take_its_controller(self, world: StormWorld) -> None:
        """The last blow, while nothing else happens: the guard alone has to make it good, and no excuse counts."""
        deadline = time.monotonic() + 15
        known: tuple[list[int], list[int]] = ([], [])
        since = time.monotonic()
        while not (all(known) and time.monotonic() - since > 3):  # what was sent has arrived, the register is fixed
            there = world.people("controller"), world.people("guard")
            if there != known:
                known, since = there, time.monotonic()
            if time.monotonic() > deadline or len(there[0]) > 1:
                return
            time.sleep(0.1)
        (controller,) = known[0]
        attendance = self.attendance[world.count]
        attendance.excused = float("-inf")
        attendance.hits.clear()
        attendance.look(time.monotonic(), wanted=False, attended=False)
        with contextlib.suppress(ProcessLookupError):
            os.kill(controller, signal.SIGKILL)
            self.totals.hit("controllers taken in the calm")

    def _rebuild_if_deleted(self, world: StormWorld) -> None:
        """Whoever looks at a campaign that no register knows writes nothing: its database stays deleted, the log counts."""
        if not (world.state / "campaign.db").exists():
            self.totals.hit("databases rebuilt to be counted")
            self.type(world, "fsck").wait(timeout=BOUND_S)

    def _processes(self) -> list[int]:
        for world in self.worlds:
            world.reap()
        return self.worlds[0].ours()

    def _see_the_end(self, world: StormWorld) -> None:
        """It ends by itself, or says which command it needs; then a person types that."""
        news, since = ("", 0), time.monotonic()
        began = since
        while True:
            quiet = not any(world.people(role) for role in ("controller", "guard", "shim", "run"))
            status = self.look(world, act=False)
            if quiet and status and status["complete"]:
                return
            advice = advised(status) if status else [self.needed[world.count] or "up --detach"]
            told = " ".join(advice), len(world.lines())
            if told != news:
                news, since = told, time.monotonic()
            elif advice:  # for a second look: it may have been about to change
                for words in advice:
                    self.totals.hit("commands that it asked for")
                    self.type(world, words).wait(timeout=BOUND_S)
                if "fsck" in advice:
                    self._after_fsck(world)
            elif quiet and self.left.get(world.count):  # documented, and what a person would type
                self.totals.hit("woken by a person")
                self.type(world, "status").wait(timeout=BOUND_S)
            if time.monotonic() - since > BOUND_S or time.monotonic() - began > 4 * BOUND_S:
                who = {role: world.people(role) for role in ("controller", "guard", "shim", "run")}
                raise Stuck(f"{world.root.name} for {BOUND_S:.0f} s: {who}; {advice}; {world.trouble()[:3000]}")
            time.sleep(0.5)

    def _after_fsck(self, world: StormWorld) -> None:
        """As its help says: the environment that `up` recorded may be gone, too. Or as its message says."""
        told = (self.folder / "commands.log").read_text(errors="replace").rpartition("\n$ ")[2]
        if "move that folder away" in told:
            (world.state / "attempts").rename(self.folder / f"attempts-{time.monotonic_ns()}")
        self.type(world, "up --detach").wait(timeout=BOUND_S)

    def close(self) -> None:
        for world in self.worlds:
            world.close()
        if self.errors:
            self.errors.close()


def run_round(folder: Path, plan: Sequence[Act], seconds: float) -> Totals:
    """One storm and its calm. `folder` is empty before, and is removed if everything held."""
    totals = Totals()
    began = time.monotonic()
    storm = Storm(folder, plan, totals)
    try:
        storm.rage(seconds)
        storm.calm()
    except Exception as error:
        totals.breaks("stuck", f"{type(error).__name__}: {error}")
        if not isinstance(error, AssertionError | subprocess.TimeoutExpired):
            raise
    finally:
        storm.close()
        totals.counts["seconds"] = round(time.monotonic() - began)
    if not totals.broken:
        shutil.rmtree(folder)
    return totals


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=60, help="the rage lasts at most this long")
    parser.add_argument("--keep", type=Path, help="where the folder of a broken round is left")
    parser.add_argument("--only", help="these kinds of acts alone: signal,delete,error,limit,command")
    asked = parser.parse_args()
    plan = [act for act in draw_plan(asked.seed) if not asked.only or act.kind in asked.only.split(",")]
    folder = Path(tempfile.mkdtemp(prefix=f"storm-{asked.seed}-", dir=asked.keep))
    for name in [name for name in os.environ if name.startswith("MUSTER_")]:
        del os.environ[name]
    os.environ.update(KNOBS, MUSTER_HOME=str(folder / "home"))  # this process looks as well
    totals = run_round(folder, plan, asked.seconds)
    told = {"counts": dict(sorted(totals.counts.items())), "broken": totals.broken, "without": why_no_errors()}
    print(json.dumps(told))
    if totals.broken:
        print(f"seed {asked.seed} broke; its state is in {folder}", file=sys.stderr)
    return 1 if totals.broken else 0


if __name__ == "__main__":
    sys.exit(main())
