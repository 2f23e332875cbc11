"""What is really true of each run, by the kernel's word alone, and what an observer is told meanwhile."""

import contextlib
import math
import os
import select
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fault_world import World
from run_plans import Plan

from muster.app.campaign.campaign_status import CellStatus
from muster.app.campaign.observe_campaign import observe_campaign

Key = tuple[str, int]


def boot() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Deaths:
    """A thread that waits on the pidfds of all processes it was told of, and writes down when each ended."""

    def __init__(self) -> None:
        self.died: dict[int, float] = {}  # pidfd -> boot time
        self._fds: list[int] = []
        self._poll = select.epoll()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._wait, name="deaths")

    def __enter__(self) -> "Deaths":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._poll.close()
        for fd in self._fds:
            os.close(fd)

    def watch(self, pid: int) -> int | None:
        """None: it is gone already."""
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            return None
        self._fds.append(fd)
        self._poll.register(fd, select.EPOLLIN | select.EPOLLONESHOT)
        return fd

    def _wait(self) -> None:
        while not self._over.is_set():
            for fd, _ in self._poll.poll(0.1):
                self.died[fd] = boot()


def alive(pidfd: int) -> bool:
    """Now, by the kernel."""
    return not select.select([pidfd], [], [], 0)[0]


def send(pidfd: int, number: int) -> float:
    """When it was sent, at the earliest."""
    at = boot()
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, number)
    return at


@dataclass
class Truth:
    """One attempt, as it really is."""

    plan: Plan
    n: int
    began: float
    pids: list[int] = field(default_factory=list)  # pidfds; the main process first
    shim: int | None = None
    stops: list[tuple[float, float]] = field(default_factory=list)  # from and until when it was stopped
    hung: float | None = None  # since when it hangs
    done_to_it: set[str] = field(default_factory=set)
    lost: float | None = None  # it was gone before we could watch it: since when, at the latest

    def working(self, since: float, until: float) -> bool:
        """Neither stopped nor hung at any time between."""
        if self.hung is not None and self.hung <= until:
            return False
        return not any(start <= until and end >= since for start, end in self.stops)

    def lives(self) -> bool:
        return any(alive(fd) for fd in self.pids)

    def death(self, deaths: Deaths) -> float | None:
        """When the last of its processes ended."""
        if self.lost is not None:
            return self.lost
        times = [deaths.died.get(fd) for fd in self.pids]
        known = [time for time in times if time is not None]
        return max(known) if known and len(known) == len(times) else None


@dataclass
class Told:
    """What the observer was told of one attempt."""

    said: str = ""  # the last verdict: STALLED(stopped) proven
    first_end: float | None = None  # when it was first told that it had ended
    ended_as: str = ""
    alive_while_dead_s: float = 0.0
    stalled_at: float | None = None  # first told so, since the fault
    flips: int = 0  # from STALLED back to another verdict of the living while it hung


@dataclass
class Observer:
    """Asks for the status again and again, and compares it with the truth."""

    world: World
    deaths: Deaths
    slack_s: float  # a verdict about a living run is as old as the last look of the controller
    truths: dict[Key, Truth] = field(default_factory=dict)
    told: dict[Key, Told] = field(default_factory=dict)
    looks: int = 0
    verdicts: int = 0
    look_s: list[float] = field(default_factory=list)
    false_dead: list[str] = field(default_factory=list)
    false_done: list[str] = field(default_factory=list)
    false_stalled: list[str] = field(default_factory=list)  # proven ones
    presumed: list[str] = field(default_factory=list)  # presumed STALLED of a run that worked: allowed, and counted
    stopped_after_cont_s: float = 0.0

    def look(self) -> bool:
        """One look; whether the campaign goes on."""
        before = boot()
        with self.world.desk() as desk:
            status = observe_campaign(desk)
        after = boot()
        self.looks += 1
        self.look_s.append(after - before)
        for cell in (*status.cells, *status.withdrawn):
            last = cell.record.last
            truth = self.truths.get((cell.record.cell.id, last.n)) if last else None
            if last and truth:
                self.verdicts += 1
                self._compare(cell, truth, self.told.setdefault(last.key, Told()), before, after)
        return status.going_on

    def _compare(self, cell: CellStatus, truth: Truth, told: Told, before: float, after: float) -> None:
        verdict = cell.verdict
        said = f"{verdict.state}({verdict.kind})" if verdict.kind else str(verdict.state)
        said = f"{said} {verdict.confidence}"
        death = truth.death(self.deaths)
        where = f"{cell.record.cell.id}@{truth.n} ({truth.plan.fault}, seed {truth.plan.seed}) {said}: {verdict.reason}"
        if verdict.state == "DEAD":
            if truth.lives():
                self.false_dead.append(where)
            told.ended_as = f"DEAD({verdict.cause})"
        if verdict.state == "DONE":
            if truth.pids and alive(truth.pids[0]):
                self.false_done.append(where)
            told.ended_as = "DONE"
        if verdict.state in ("DEAD", "DONE") and told.first_end is None:
            told.first_end = after
        if verdict.state in ("RUNNING", "QUIET", "STALLED") and death is not None and death < before:
            told.alive_while_dead_s = max(told.alive_while_dead_s, before - death)
        if verdict.state == "STALLED":
            self._stalled(truth, told, verdict.confidence, where, before, after)
        elif (
            told.said.startswith("STALLED")
            and verdict.state in ("RUNNING", "QUIET")
            and not truth.working(before, after)
        ):
            told.flips += 1
        told.said = said

    def _stalled(self, truth: Truth, told: Told, sure: str, where: str, before: float, after: float) -> None:
        ended = [end for _, end in truth.stops if end < before]
        if truth.working(before, after) and ended and "(stopped)" in where:
            self.stopped_after_cont_s = max(self.stopped_after_cont_s, before - max(ended))
        if truth.working(before - self.slack_s, after):
            (self.false_stalled if sure == "proven" else self.presumed).append(where)
        elif told.stalled_at is None:
            told.stalled_at = after


def descendants(pid: int) -> Iterator[int]:
    """Every process below it now, as the kernel lists them."""
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                yield child
                yield from descendants(child)


def quantile(values: Sequence[float], share: float) -> float:
    """The nearest rank; of nothing it is 0."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0


def row(name: str, values: Sequence[float], goal: str = "") -> str:
    figures: list[Any] = [len(values), quantile(values, 0.5), quantile(values, 0.99), max(values, default=0.0)]
    return f"{name:58} {figures[0]:5d} {figures[1]:8.3f} {figures[2]:8.3f} {figures[3]:8.3f}  {goal}"
