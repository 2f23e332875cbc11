"""What counts by a person's word: cells (`muster accept`) and red flags (`muster flag accept`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from muster.acts.status import Status
from muster.domain.decision import Decision
from muster.ports.store import Event
from muster.report.facts import Accepted
from muster.stats.flag_types import Acceptance, Flag
from muster.stats.flag_weight import AcceptedFlag

RUNS = ("start", "adopt", "redo")


def accepted_cells(status: Status, events: Iterable[Event]) -> Iterator[Accepted]:
    """In declared order, each with who took it as done, and why."""
    who: dict[tuple[str | None, int | None], str] = {}
    for event in events:
        decision = event.decision
        if decision.kind == "accept" and not event.void:
            who[decision.cell, decision.attempt] = decision.who
    for cell in status.cells:
        attempt = cell.record.completed
        if attempt is not None and attempt.accepted is not None and not attempt.reread:
            yield Accepted(attempt.cell, attempt.n, who.get(attempt.key, ""), attempt.accepted)


def accepted_flags(events: Iterable[Event]) -> Iterator[AcceptedFlag]:
    """As they were when they were accepted, oldest first. A line that this version can't read covers nothing.

    A cell that ran again since is not the one that somebody looked at.
    """
    told = [event.decision for event in events if not event.void and event.decision.kind in ("flag", *RUNS)]
    ran: set[str | None] = set()
    found: list[AcceptedFlag] = []
    for decision in reversed(told):
        if decision.kind == "flag":
            words = reversed(list(_words_of(decision)))
            found += [replace(each, cells=tuple(cell for cell in each.cells if cell not in ran)) for each in words]
        else:
            ran.add(decision.cell)
    return reversed(found)


def _words_of(decision: Decision) -> Iterator[AcceptedFlag]:
    by = {"who": decision.who, "at": decision.at, "because": decision.reason}
    for each in decision.data.get("flags", ()):
        try:
            yield msgspec.convert({**each, "code": decision.data.get("code"), "by": by}, AcceptedFlag)
        except (msgspec.ValidationError, TypeError):
            continue


def flag_data(code: str, flags: Sequence[Flag]) -> dict[str, Any]:
    """What a decision keeps of the flags that it accepts: these, and none that is raised later elsewhere."""
    return {
        "code": code,
        "flags": [
            {"cells": list(flag.cells), "place": msgspec.to_builtins(flag.place), "parts": dict(flag.parts),
             "level": flag.level, "message": flag.message}
            for flag in flags
        ],
    }  # fmt: skip


def acceptance_json(accepted: Acceptance | None) -> dict[str, str] | None:
    return None if accepted is None else {"who": accepted.who, "at": accepted.at, "because": accepted.because}


def flags_json(flags: Iterable[Flag]) -> list[dict[str, Any]]:
    """Of `muster report --json` and `muster flag list --json`: a contract."""
    return [
        {
            "level": flag.level,
            "code": flag.code,
            "cells": list(flag.cells),
            "message": flag.message,
            "acceptable": flag.acceptable,
            "accepted": acceptance_json(flag.accepted),
        }
        for flag in flags
    ]
