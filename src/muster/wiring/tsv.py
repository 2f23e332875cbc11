"""Writes the status tables for people who grep."""

from __future__ import annotations

from pathlib import Path

from muster.acts.status import Status
from muster.acts.tsv import status_tsv
from muster.ports.known_secrets import mask_table
from muster.ports.write_files import PUBLIC_FILE, make_public_folder, write_atomically


def write_status_tsv(root: Path, status: Status) -> list[Path]:
    """One file per job under reports/status/, each replaced as a whole: a reader never sees half a table."""
    folder = root / "reports" / "status"
    make_public_folder(folder.parent)  # never `root` itself: the campaign may have been moved or deleted
    make_public_folder(folder)
    written = []
    for job in status.state.campaign.jobs:
        file = folder / f"{job.name}_status_latest.tsv"
        write_atomically(file, mask_table(status_tsv(status, job.name), "\t"), mode=PUBLIC_FILE)
        written.append(file)
    return written
