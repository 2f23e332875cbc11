"""A line of the crontab runs the command that was meant, or is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.hosts.local.start_at_boot import BootEntry, CrontabKeeper
from muster.model.errors import MusterError


def test_percent_after_a_backslash_is_refused() -> None:
    plain = BootEntry(Path("/c/50%"), ("/bin/true", "/c/50%"), {})
    assert "/c/50\\%" in CrontabKeeper().shown(plain)
    with pytest.raises(MusterError, match="backslash before a percent sign"):
        CrontabKeeper().shown(BootEntry(Path("/c/50\\%"), ("/bin/true", "/c/50\\%"), {}))
