"""A reason for what ends or settles many cells: without one nothing happens, and the whole command is shown."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from muster.acts.decisions import given
from muster.acts.status import Status
from muster.cli.deciding import VERBS, meant
from muster.cli.words import counted, few
from muster.domain.errors import MusterError, UsageError

FEW = 5


class NoReason(UsageError):
    """`failure.report` knows what was typed, and tells the same command with a reason."""


def reason_for(verb: str, names: Sequence[str], because: str | None, usual: str) -> str:
    """What was given, or for one cell the usual words. NoReason: there are more, and nothing was said."""
    if because is not None:
        return given(because)
    if len(names) > 1:
        told = f"{counted(len(names))} ({few(names, FEW)}) would be {verb}"
        raise NoReason(f"{told}, and that needs a reason; nothing was changed")
    return usual


def refuse_many(verb: str, patterns: Sequence[str], because: str | None, found: Status) -> None:
    """The same before anything is written, even the end of a run that nobody has recorded yet."""
    try:
        names = meant(verb, patterns, found) if because is None else []
    except MusterError:  # told when the ends are recorded, where it is still so
        return
    reason_for(VERBS[verb], going_on(names, found) if verb == "stop" else names, because, "")


def going_on(names: Sequence[str], found: Status) -> list[str]:
    """Those that a stop would end; the others are told that they don't run."""
    return [name for name in names if found.state.cells[name].open is not None]


def typed_with_reason(arguments: Sequence[str]) -> str:
    """The command that was typed, and a place for the reason."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return " ".join(
        part for part in ("muster", shlex.join(arguments[:at]), "--because '...'", shlex.join(arguments[at:])) if part
    )
