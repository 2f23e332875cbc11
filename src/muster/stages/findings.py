"""What a look at gates and schedules finds."""

from __future__ import annotations

from typing import NamedTuple

ERROR, WARNING, NOTE = "error", "warning", "note"


class Finding(NamedTuple):
    level: str  # error: it contradicts itself | warning: hardly what was meant | note
    code: str
    message: str
    hint: str = ""
