"""A campaign in a storm: who lives in it, what of it can be deleted, and what its runs wrote down themselves."""

import contextlib
import fcntl
import shutil
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fault_world import World, kill, ticks

# A flock of its cell shows two executions at once, one of its slot a slot that was booked twice. 1 says that somebody else
# has it; anything else that a signal of the storm's hit `flock` itself.
JOB = """\
tell() { echo "$1 $cell $n $$ $MUSTER_ATTEMPT $slot" >> "$COUNT"; }
lock() { flock -n "$1"; case $? in 0) ;; 1) tell "$2";; *) lock "$1" "$2";; esac; }
cell=$1 n=$2 slot=$3
exec 9>>"$COUNT.$(echo "$cell" | tr / _).lock" 8>>"$SLOTS.$slot.lock"
lock 9 overlap
lock 8 clash
tell begin
case "$cell" in *3) sleep 0.05;; *7) sleep 1.5;; *5) sleep 0.6 8>&- & sleep 0.2;; *) sleep 0.3;; esac
tell end
"""
CAMPAIGN = """\
muster: 1
campaign: {name}
axes: {{seed: {seeds}}}
slots: {{gpus: 0, cpus: {cpus}}}
env: {{COUNT: '{count}', SLOTS: '{slots}'}}
jobs:
  train: {{axes: [seed], command: 'sh job.sh {{cell}} {{attempt}} {{slot}}'}}
  eval: {{axes: [seed], needs: [train], command: 'sh job.sh {{cell}} {{attempt}} {{slot}}'}}
"""


@dataclass(frozen=True, slots=True)
class Line:
    """One line that a run wrote."""

    word: str
    cell: str
    n: int
    pid: int
    token: str
    slot: str


@dataclass
class StormWorld(World):
    lives: int = 1  # how often its state was begun anew
    seen_done: dict[str, int] = field(default_factory=dict)  # in this life: cell -> the attempt that was told DONE

    def write_campaign(self, seeds: int, cpus: int) -> None:
        self.root.mkdir()
        (self.root / "job.sh").write_text(JOB)
        slots = self.home.parent / "slot"
        text = CAMPAIGN.format(name=self.root.name, seeds=list(range(seeds)), cpus=cpus, count=self.count, slots=slots)
        (self.root / "campaign.yaml").write_text(text)

    # -- what the runs say

    def lines(self) -> list[Line]:
        try:
            text = self.count.read_text()
        except FileNotFoundError:
            return []
        words = [line.split() for line in text.splitlines()]
        return [Line(word, cell, int(n), int(pid), token, slot) for word, cell, n, pid, token, slot in words]

    def tokens_alive(self) -> dict[str, list[int]]:
        """Of every process that carries a token, by /proc alone."""
        found: dict[str, list[int]] = {}
        for pid in self.ours():
            token = environment(pid).get("MUSTER_ATTEMPT")
            if token:
                found.setdefault(token, []).append(pid)
        return found

    # -- who is there

    def people(self, target: str) -> list[int]:
        """Live processes of one kind that belong to this campaign or, as a warm process, to its controller."""
        found = [pid for pid in self.ours() if self.is_mine(pid) and role_of(pid) == target]
        return sorted(found, key=lambda pid: ticks(pid) or 0)

    def is_mine(self, pid: int) -> bool:
        told = environment(pid)
        return told.get("STORM_CAMPAIGN") == self.root_name

    @property
    def root_name(self) -> str:
        return self.count.name

    # -- deletions and moves: what was deleted, or "" where there was nothing

    def delete(self, what: str, pick: float) -> str:
        if what in ("open attempt", "ended attempt"):
            return self._delete_attempt(what == "open attempt", pick)
        if what == "database":
            names = ("campaign.db", "campaign.db-wal", "campaign.db-shm")
            return _remove(self.state / name for name in (names if pick < 0.5 else names[:1]))
        if what == "state":
            told = _remove([self.state])
            self.lives += 1
            self.seen_done.clear()
            return told
        return _remove([{"attempts": self.state / "attempts", "slots": self.home / "slots", "home": self.home}[what]])

    def _delete_attempt(self, open_: bool, pick: float) -> str:
        condition = "IS NULL" if open_ else "IS NOT NULL"
        with contextlib.suppress(Exception):
            rows = self.rows(f"SELECT cell, n FROM attempt WHERE verdict {condition} ORDER BY cell, n")
            if rows:
                row = rows[int(pick * len(rows))]
                return _remove([self.folder(row["cell"], row["n"])])
        return ""

    def move(self, name: str) -> None:
        """A plain `mv` of the campaign's folder."""
        target = self.root.with_name(name)
        self.root = self.root.rename(target)

    # -- what is left

    def partial_files(self) -> list[str]:
        """Half-written files of processes that were killed."""
        found = self.state.rglob(".*")
        return sorted(str(path.relative_to(self.state)) for path in found if path.name.rpartition(".")[2].isdecimal())

    def slots_held(self) -> list[str]:
        held = []
        for path in (self.home / "slots").glob("*"):
            with open(path) as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    held.append(path.name)
        return held


def role_of(pid: int) -> str:
    words = _words(f"/proc/{pid}/cmdline")
    if any(word.endswith("/guard.py") for word in words):  # it names the controller's command, too
        return "guard"
    if "muster.bootstrap.controller_process" in words:
        return "controller"
    if any(word.endswith("/shim.py") for word in words):
        return "shim" if _holds(pid, "/shim.lock") else "warm" if "serve" in words else "helper"
    if "muster" in words and "-m" in words:
        return "command"
    return "run" if "job.sh" in words else "helper"


def environment(pid: int) -> dict[str, str]:
    return dict(word.partition("=")[::2] for word in _words(f"/proc/{pid}/environ"))


def let_go_on(pids: list[int]) -> None:
    for pid in pids:
        kill(pid, signal.SIGCONT)


def _holds(pid: int, ending: str) -> bool:
    try:
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            if str(fd.readlink()).removesuffix(" (deleted)").endswith(ending):
                return True
    except OSError:
        pass
    return False


def _words(path: str) -> list[str]:
    try:
        return Path(path).read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def _remove(paths: Any) -> str:
    """As `rm -rf` does it: once, beside those who still write."""
    told = []
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
            told.append(path.name)
        elif path.exists():
            path.unlink(missing_ok=True)
            told.append(path.name)
    return " ".join(told)
