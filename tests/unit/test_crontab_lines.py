"""A line of the crontab runs the command that was meant, or is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.domain.errors import MusterError
from muster.wiring.at_boot import Crontab, Wanted


def test_percent_after_a_backslash_is_refused() -> None:
    plain = Wanted(Path("/c/50%"), ("/bin/true", "/c/50%"), {})
    assert "/c/50\\%" in Crontab().shown(plain)
    with pytest.raises(MusterError, match="backslash before a percent sign"):
        Crontab().shown(Wanted(Path("/c/50\\%"), ("/bin/true", "/c/50\\%"), {}))
