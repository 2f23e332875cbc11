"""Where a campaign's journals lie, and the runs that they tell of."""

from __future__ import annotations

from pathlib import Path

from muster.acts.journal_files import versions
from muster.domain.errors import MusterError, UsageError
from muster.wiring.desk import FILE, find_root


def place(start: Path, folder: Path | None) -> Path:
    """Where the journals are: as asked for; else here, if some are; else in the campaign's folder."""
    if folder is not None:
        return (start / folder).absolute()
    here = start.absolute()
    if versions(here):
        return here
    try:
        return find_root(here)
    except UsageError:
        return here


def campaign_language(start: Path) -> str | None:
    """As campaign.yaml declares it; None: there is no campaign, or none that can be read."""
    from muster.wiring.taking import read

    try:
        file = find_root(start) / FILE
        return read(file).campaign.language if file.exists() else None
    except MusterError:
        return None
