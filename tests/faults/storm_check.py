"""What must hold in a storm and after it, and what a person would do about what a status says."""

import collections
import json
import re
import sqlite3
from dataclasses import dataclass, field
from typing import Any, Literal

from storm_world import Line, StormWorld

_RUN = re.compile(r"run `muster (\w+)`")
_ADVICE = re.compile(r"`muster (\w+) (\S+?)(?: --because \.\.\.)?`")


@dataclass
class Totals:
    """What was really done, and what must stay empty."""

    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    broken: list[str] = field(default_factory=list)  # doubled, lost, dead while alive, stuck

    def hit(self, *names: str) -> None:
        self.counts.update(names)

    def breaks(self, promise: str, what: str) -> None:
        told = f"{promise}: {what}"
        if told not in self.broken:
            self.broken.append(told)


# -- who must be there

ALONE_S = 4.0  # by then somebody is there again: the guard starts a controller at once, shims within 5 s where none is
AT_ONCE_S = 2.0  # killed within that time neither could start the other again
HIT_S = 5.0  # what happens so shortly before the last of them was seen may have ended them
OTHER = {"controller": "guard", "guard": "controller"}


@dataclass
class Attendance:
    """Whether somebody must be there for a campaign with work to do. Times are those of one clock that does not jump."""

    seen: float = 0.0  # when somebody was there last, or nobody had to be
    alone: float | None = None  # since when nobody is seen
    excused: float = float("-inf")  # when something happened that may leave nobody
    hits: dict[str, float] = field(default_factory=dict)

    def disturb(self, now: float) -> None:
        """A deletion, a move, an error, a limit: what they end is not always started again by itself."""
        self.excused = now

    def hit(self, role: str, now: float, *, other_is_there: bool) -> None:
        """A signal. One of the two is started again by the other; both at once are the documented exception."""
        if not other_is_there or now - self.hits.get(OTHER[role], float("-inf")) < AT_ONCE_S:
            self.excused = now
        self.hits[role] = now

    def look(self, now: float, *, wanted: bool, attended: bool) -> Literal["fine", "wait", "excused", "broken"]:
        if attended or not wanted:
            self.seen, self.alone = now, None
            return "fine"
        self.alone = now if self.alone is None else self.alone
        if now - self.alone < ALONE_S:  # looks may lie far apart
            return "wait"
        return "excused" if self.excused >= self.seen - HIT_S else "broken"


# -- the person


def advised(status: dict[str, Any]) -> list[str]:
    """The commands that would bring it on, as the status says it, one for all cells that need the same."""
    found = {"held": ["release"], "down": ["up --detach"]}.get(status["intent"], [])
    if status["controller"]["started_here"] is False:  # the register was deleted, and nobody is left who knows
        found = ["up --detach"]
    lost = [cell for cell in status["cells"] if "No such file" in cell["reason"] and "/.muster/env/" in cell["reason"]]
    if any(cell["verdict"] == "DEAD" for cell in lost):
        found = ["up --detach"]  # which records the environment anew
    if "`muster up` records the environment" in str(status["controller"]["trouble"]):
        found = ["up --detach"]
    cells: dict[str, list[str]] = {}  # many at once need a reason
    for cell in status["cells"]:
        told = [verb for verb, name in _ADVICE.findall(cell["next"] or "") if name == cell["cell"]]
        if cell["verdict"] == "DEAD" and "retry" in told:
            cells.setdefault("retry", []).append(cell["cell"])
        elif cell["verdict"] == "UNKNOWN" and told:
            cells.setdefault(told[0], []).append(cell["cell"])
    return found + [f"{verb} {' '.join(names)} --because storm" for verb, names in cells.items()]


def needed_for(error: Exception) -> str:
    """The command that an error names; "": none."""
    if "has not been started" in str(error):
        return "up --detach"
    told = _RUN.search(f"{error} {getattr(error, 'hint', '')}")
    return told[1] if told else ""


# -- while it goes on


def check_verdicts(world: StormWorld, status: dict[str, Any], totals: Totals) -> None:
    """Recorded verdicts and told ones against the processes that live after they were told."""
    try:
        rows = world.rows("SELECT cell, n, token, verdict FROM attempt")
    except sqlite3.Error:
        return
    tokens = {(row["cell"], row["n"]): row["token"] for row in rows}
    alive = world.tokens_alive()
    for cell in status["cells"]:
        name, verdict, n = cell["cell"], cell["verdict"], cell["attempt"]
        pids = alive.get(tokens.get((name, n), ""))
        if verdict in ("DEAD", "DONE") and pids:
            totals.breaks("dead while alive", f"{name} attempt {n} is {verdict}, pids {pids} live: {cell['reason']}")
        if name in world.seen_done and (verdict != "DONE" or world.seen_done[name] != n):
            totals.breaks("lost", f"{name} was DONE by attempt {world.seen_done[name]}, now {verdict} {n}")
    world.seen_done.update({row["cell"]: row["n"] for row in rows if row["verdict"] == "DONE"})


# -- when it is over


def check_world(world: StormWorld, cells: int, totals: Totals) -> None:
    lines = world.lines()
    _check_lines(lines, totals)
    rows = world.rows("SELECT * FROM attempt ORDER BY cell, n")
    declared = [row["id"] for row in world.rows("SELECT id FROM cell WHERE declared")]
    if len(declared) != cells:
        totals.breaks("lost", f"{len(declared)} of {cells} cells are declared")
    began = {line.token for line in lines if line.word == "begin"}
    ended = {line.token for line in lines if line.word == "end"}
    unknown = began - {row["token"] for row in rows}
    if unknown and world.lives == 1:
        totals.breaks("lost", f"{len(unknown)} executions that no attempt stands for")
    for cell in declared:
        _check_cell(cell, [row for row in rows if row["cell"] == cell], began, ended, totals)
    totals.hit("campaigns")
    for name, number in (("executions", len(began)), ("attempts", len(rows)), ("cells", len(declared))):
        totals.counts[name] += number
    totals.counts["partial files"] += len(world.partial_files())


def _check_lines(lines: list[Line], totals: Totals) -> None:
    for told in counted_twice(lines):
        totals.breaks("doubled", told)
    for line in lines:
        if line.word == "overlap":
            totals.breaks("doubled", f"two executions of a cell at once: {line.cell} attempt {line.n}")
        elif line.word == "clash":
            totals.breaks("doubled", f"slot {line.slot} booked twice: {line.cell} attempt {line.n}")


def counted_twice(lines: list[Line]) -> list[str]:
    """Tokens that were executed more than once."""
    begins = collections.Counter(line.token for line in lines if line.word == "begin")
    names = {line.token: f"{line.cell} attempt {line.n}" for line in lines}
    return [f"{names[token]} ran {times} times under one token" for token, times in begins.items() if times > 1]


def _check_cell(cell: str, rows: list[Any], began: set[str], ended: set[str], totals: Totals) -> None:
    if [row["n"] for row in rows] != list(range(1, len(rows) + 1)):
        totals.breaks("lost", f"{cell}: attempts {[row['n'] for row in rows]}")
    if any(not row["retry_cause"] for row in rows[1:]):
        totals.breaks("doubled", f"{cell}: a retry without a cause")
    done = [row for row in rows if row["verdict"] == "DONE"]
    if len(done) != 1 or done[0] is not rows[-1]:
        totals.breaks("lost" if not done else "doubled", f"{cell}: {[row['verdict'] for row in rows]}")
    for row in rows:
        outcome = json.loads(row["outcome"] or "{}")
        if (outcome.get("cause") or {}).get("kind") == "never_started" and row["token"] in began:
            totals.breaks("dead while alive", f"{cell} attempt {row['n']} never started, and it ran")
        if row["verdict"] == "DONE" and row["token"] not in ended:
            totals.breaks("lost", f"{cell} attempt {row['n']} is DONE, but it did not run to its end")
