"""What can go wrong for a person, in one tree.

MusterError           the command failed                                          exit 1
  UsageError          wrong use, nothing was changed                              exit 2
    CampaignInvalid   the campaign file has mistakes (all of them are listed)     exit 2
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake in a file: what, where, and how to mend it."""

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
