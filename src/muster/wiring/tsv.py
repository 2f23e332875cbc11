"""Writes the status tables for people who grep."""

from __future__ import annotations

import os
from pathlib import Path

from muster.acts.status import Status
from muster.acts.tsv import status_tsv


def write_status_tsv(root: Path, status: Status) -> list[Path]:
    """One file per job under reports/status/, each replaced as a whole: a reader never sees half a table."""
    folder = root / "reports" / "status"
    folder.parent.mkdir(exist_ok=True)  # never `root` itself: the campaign may have been moved or deleted
    folder.mkdir(exist_ok=True)
    written = []
    for job in status.state.campaign.jobs:
        file = folder / f"{job.name}_status_latest.tsv"
        partial = folder / f".{file.name}.{os.getpid()}"
        try:
            partial.write_text(status_tsv(status, job.name), encoding="utf-8")
            partial.replace(file)
        finally:
            partial.unlink(missing_ok=True)
        written.append(file)
    return written
