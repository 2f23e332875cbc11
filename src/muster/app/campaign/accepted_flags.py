"""What counts by a person's word: cells (`muster accept`) and red flags (`muster flag accept`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from muster.engine.ports.store import LoggedDecision
from muster.model.decision import Decision
from muster.stats.red_flags import AcceptedFlag, FlagAcceptance, RedFlag

RUN_DECISIONS = ("start", "adopt", "redo")


def find_accepted_flags(events: Iterable[LoggedDecision]) -> Iterator[AcceptedFlag]:
    """As they were when they were accepted, oldest first. A line that this version can't read covers nothing.

    A cell that ran again since is not the one that somebody looked at.
    """
    told = [event.decision for event in events if not event.void and event.decision.kind in ("flag", *RUN_DECISIONS)]
    ran: set[str | None] = set()
    found: list[AcceptedFlag] = []
    for decision in reversed(told):
        if decision.kind == "flag":
            words = reversed(list(_flags_of_decision(decision)))
            found += [replace(each, cells=tuple(cell for cell in each.cells if cell not in ran)) for each in words]
        else:
            ran.add(decision.cell)
    return reversed(found)


def _flags_of_decision(decision: Decision) -> Iterator[AcceptedFlag]:
    by = {"who": decision.who, "at": decision.at, "because": decision.reason}
    for each in decision.data.get("flags", ()):
        try:
            yield msgspec.convert({**each, "code": decision.data.get("code"), "by": by}, AcceptedFlag)
        except (msgspec.ValidationError, TypeError):
            continue


def flag_decision_data(code: str, flags: Sequence[RedFlag]) -> dict[str, Any]:
    """What a decision keeps of the flags that it accepts: these, and none that is raised later elsewhere."""
    return {
        "code": code,
        "flags": [
            {
                "cells": list(flag.cells),
                "place": msgspec.to_builtins(flag.place),
                "parts": dict(flag.parts),
                "level": flag.level,
                "message": flag.message,
            }
            for flag in flags
        ],
    }


def acceptance_as_json(accepted: FlagAcceptance | None) -> dict[str, str] | None:
    return None if accepted is None else {"who": accepted.who, "at": accepted.at, "because": accepted.because}


def flags_as_json(flags: Iterable[RedFlag]) -> list[dict[str, Any]]:
    """Of `muster report --json` and `muster flag list --json`: a contract."""
    return [
        {
            "level": flag.level,
            "code": flag.code,
            "cells": list(flag.cells),
            "message": flag.message,
            "acceptable": flag.acceptable,
            "accepted": acceptance_as_json(flag.accepted),
        }
        for flag in flags
    ]
