"""What `retry`, `redo`, `giveup`, `accept` and `stop` share: whom they mean, and what each cell is told."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from muster.acts.decisions import concerns
from muster.acts.status import Status
from muster.cli.cells import declared, is_glob, resolve, withdrawn
from muster.cli.paint import paint
from muster.cli.up import start
from muster.domain.decision import Decision
from muster.domain.errors import MusterError, UsageError
from muster.wiring.desk import Desk
from muster.wiring.started_here import MOVED, moved_since, not_started_here
from muster.wiring.survey import look

VERBS = {"stop": "stopped", "retry": "retried", "redo": "redone", "giveup": "given up", "accept": "accepted"}


def meant(verb: str, patterns: Sequence[str], found: Status) -> list[str]:
    """Every cell that was named, and of those that a glob fits the ones the verb is about."""
    if not patterns:
        raise UsageError("name the cells", hint=f"muster {verb} 'train/*/2', or '*' for all of them")
    about = {cell.record.cell.id for cell in found.cells if concerns(verb, cell)}
    names = declared(found.state)
    former: list[str] = []
    if verb == "stop":  # also what the campaign file has forgotten; a glob means what of that still runs
        running = [cell.record.cell.id for cell in found.withdrawn]
        former = [name for name in withdrawn(found.state) if name not in running]
        names += running
        about.update(running)
    chosen = resolve(patterns, names, former)
    named = {pattern for pattern in patterns if not is_glob(pattern, [*names, *former])}
    left = [name for name in chosen if name in named or name in about]
    if not left and verb != "stop":
        count = f"none of the {len(chosen)} cells that fit" if len(chosen) > 1 else f"{chosen[0]} is none that"
        raise MusterError(
            f"nothing to do: {count} can be {VERBS[verb]} now", hint="`muster status` shows where each stands"
        )
    return left


def carry(desk: Desk, decisions: Sequence[Decision], done: str) -> tuple[list[str], int]:
    """Decides; tells each cell that was refused why. Returns the others, and the exit code."""
    accepted = []
    for decision, refused in zip(decisions, desk.decide(decisions), strict=True):
        cell = decision.cell or ""
        if refused:
            refuse(cell, done, refused)
        else:
            accepted.append(cell)
    return accepted, 0 if len(accepted) == len(decisions) else 1


def refuse(cell: str, done: str, why: str) -> None:
    print(f"{cell}: {paint('not ' + done, 'yellow')}: {why}")


def go_on(desk: Desk) -> Status:
    """Starts a controller where the decision gives it something to do; returns where everything stands."""
    if desk.load().intent.kind == "running":
        if desk.started_here():
            start(desk)
        else:
            why = MOVED if moved_since(desk.state) else not_started_here()
            print(f"{why}: it is written down, and nothing starts before `muster up`", file=sys.stderr)
    return look(desk)
