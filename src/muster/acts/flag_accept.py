"""`muster flag accept`: which of the flags that are raised now a person may clear, and why not the others."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from muster.domain.errors import MusterError, UsageError
from muster.report.flag_words import flag_meaning, known_codes
from muster.stats.flags import Flag


def acceptable_flags(code: str, flags: Sequence[Flag]) -> list[Flag]:
    """All that are raised under this code. One that nobody may accept refuses all: half an acceptance misleads."""
    meant = [flag for flag in flags if flag.code == code]
    if not meant:
        raise _not_raised(code, flags)
    if fixed := next((flag for flag in meant if not flag.acceptable), None):
        why = flag_meaning(fixed, "en") or fixed.message
        raise MusterError(f"{code} can't be accepted: {fixed.message}", hint=f"no word can clear it. {why}")
    return meant


def _not_raised(code: str, flags: Sequence[Flag]) -> UsageError:
    raised = list(dict.fromkeys(flag.code for flag in flags))
    now = f"raised now: {', '.join(raised)}" if raised else "nothing is to be accepted: no flag is raised now"
    known = dict.fromkeys([*raised, *known_codes()])
    if code in known:
        return UsageError(f"no flag {code} is raised now", hint=now)
    near = difflib.get_close_matches(code, known, 1)
    return UsageError(f"there is no flag {code!r}", hint=f"did you mean {near[0]}? {now}" if near else now)
