"""What a storm does, drawn from its seed: the same seed does the same things in the same order. Timing is not part of it."""

import random
from dataclasses import dataclass

from storm_errors import ERRORS, KINDS

SIGNALS = ("KILL", "TERM", "INT", "HUP", "QUIT", "USR1", "STOP")  # a STOP is followed by its CONT
TARGETS = ("controller", "guard", "shim", "warm", "run", "command")
MORE_KILLS = 6  # of controller and guard, each
DELETIONS = ("open attempt",) * 4 + ("ended attempt", "attempts", "database", "database", "slots", "home", "moved")
COMMANDS = (
    "status", "status --json", "why {cell}", "plan", "wait --timeout 2s", "up --detach", "logs {cell}", "cost", "check",
    "record", "fsck", "note hello", "hold --because storm", "release", "down", "retry {cell} --because storm",
    "metrics {cell}", "report", "stop {cell} --because storm", "look",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Act:
    """`pick` in [0, 1) chooses among those that are there when it is done."""

    kind: str  # signal, delete, error, limit, command
    what: str
    target: str
    pick: float
    pause_s: float  # before it

    @property
    def name(self) -> str:
        return " ".join(filter(None, (self.kind, self.what, self.target)))


def draw_plan(seed: int) -> list[Act]:
    """One round: every signal to every target twice, more kills of those that others rely on, deletions, errors."""
    chance = random.Random(seed)
    drawn: list[tuple[str, str, str]] = [("signal", name, target) for name in SIGNALS for target in TARGETS] * 2
    drawn += [("signal", "KILL", target) for target in ("controller", "guard")] * MORE_KILLS
    drawn += [("delete", what, "") for what in DELETIONS]
    drawn.append(("delete", chance.choice(("state", "open attempt")), ""))
    for error in ERRORS:
        drawn += [("error", error, kind) for kind in chance.sample(sorted(KINDS), 9)]
    drawn += [("limit", "EMFILE", target) for target in ("controller", "guard", "shim", "warm")]
    drawn += [("command", words, "") for words in chance.sample(COMMANDS, 12)]
    chance.shuffle(drawn)
    return [Act(*each, chance.random(), chance.uniform(0, 0.15)) for each in drawn]
