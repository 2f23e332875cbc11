"""The errors that reach a person, in one tree, and the formats of what lies in `.muster`.

    MusterError           the command failed                                          exit 1
      UsageError          wrong use, nothing was changed                              exit 2
        CampaignInvalid   the campaign file has mistakes (all of them are listed)     exit 2

Raise the number of a format in the commit after which an older Muster would misread what is written: a new kind of
decision, another meaning of a field, a migration. A newer Muster reads all that older ones wrote; an older one
refuses what is newer.
"""

from __future__ import annotations

from dataclasses import dataclass

from muster import __version__


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake in a file: what, where, and how to fix it."""

    message: str
    line: int = 0  # from 1; 0: the file as a whole
    column: int = 0
    hint: str = ""
    path: str = ""  # dotted path in the file: jobs.train.command
    level: str = "error"  # error | warning | failure: the file is right, and this machine can't do what it asks | note


class MusterError(Exception):
    code = "failed"
    exit = 1

    def __init__(self, message: str, *, where: str = "", hint: str = "", code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint
        if code:
            self.code = code


class UsageError(MusterError):
    code = "usage"
    exit = 2


class CampaignInvalid(UsageError):
    code = "invalid_campaign"

    def __init__(self, file: str, mistakes: tuple[Mistake, ...]) -> None:
        count = len(mistakes)
        super().__init__(f"{file} has {count} mistake{'s' if count != 1 else ''}", where=file)
        self.file = file
        self.mistakes = mistakes


STATE_FORMAT = 2  # of decisions.jsonl; every epoch in it says the format it was written in, 1 where it says none
SNAPSHOT_FORMAT = 1  # of campaigns/<hash>.json
ORDER_FORMAT = 1  # of attempt.json; the shim has the number, too


class NewerStateError(MusterError):
    """Written by a newer Muster: whatever we did with it, we would do without knowing what it says."""

    code = "newer"


def newer_state_error(what: str, where: str) -> NewerStateError:
    return NewerStateError(
        f"this state is of a newer Muster: {what}; nothing was changed",
        where=where,
        hint=f"use the Muster that wrote it, or a newer one; this is {__version__}",
    )


def newer_order_error(told: int, where: str) -> NewerStateError:
    return newer_state_error(f"an attempt's order has format {told}, and this Muster knows {ORDER_FORMAT}", where)


def newer_snapshot_error(told: int, where: str) -> NewerStateError:
    return newer_state_error(
        f"a campaign was taken in with format {told}, and this Muster knows {SNAPSHOT_FORMAT}", where
    )
