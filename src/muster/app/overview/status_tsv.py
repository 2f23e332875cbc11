"""Writes `reports/status/<job>_status_latest.tsv`, one row per cell, for people who grep. `adopt --status-tsv` reads
it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from muster.app.campaign.campaign_status import CellStatus, Status
from muster.engine.ports.extension import ControllerExtension
from muster.files.atomic_write import PUBLIC_FILE, make_public_folder, write_atomically
from muster.files.known_secrets import mask_secrets_in_table
from muster.model.calendar import format_iso_time
from muster.model.campaign_state import CampaignState
from muster.text.escape_markup import escape_csv_text

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def format_status_tsv(status: Status, job: str) -> str:
    """A header, then every declared cell of the job in declared order. Times are local, with their zone."""
    axes = status.state.campaign.job(job).axes
    header = [
        "cell",
        *axes,
        "verdict",
        "cause",
        "attempt",
        "attempts",
        "started",
        "ended",
        "duration_s",
        "exit_code",
        "signal",
        "output",
        "reason",
    ]
    rows: list[list[object]] = [[*header]]
    rows += [_status_tsv_row(cell, axes) for cell in status.cells if cell.record.cell.job == job]
    return "".join("\t".join(escape_tsv_value(value) for value in row) + "\n" for row in rows)


def escape_tsv_value(value: object) -> str:
    """Never a tab or a line break inside a value; a backslash is doubled so that this can be undone.

    What a terminal would obey is spelled out; what a spreadsheet would take for a formula has a `'` before it.
    """
    if value is None:
        return ""
    if isinstance(value, int | float):
        return str(value)
    return escape_csv_text(str(value).translate(_ESCAPES), spaces=True)


def _status_tsv_row(cell: CellStatus, axes: tuple[str, ...]) -> list[object]:
    record, verdict = cell.record, cell.verdict
    shown = record.completed or record.last
    outcome = shown.outcome if shown else None
    names = record.cell.names
    started = format_iso_time(outcome.started) if outcome and outcome.started else cell.since if record.open else None
    return [
        record.cell.id,
        *(names[axis] for axis in axes),
        verdict.state,
        verdict.cause,
        shown.n if shown else None,
        len(record.attempts),
        started,
        format_iso_time(outcome.ended) if outcome and outcome.ended else None,
        _format_tsv_seconds(outcome.duration_s if outcome else None),
        outcome.exit_code if outcome else None,
        outcome.exit_signal if outcome else None,
        cell.output,
        verdict.reason,
    ]


def _format_tsv_seconds(duration_s: float | None) -> str | None:
    return None if duration_s is None else f"{duration_s:.3f}"


def write_status_tsv(root: Path, status: Status) -> list[Path]:
    """One file per job under reports/status/, each replaced as a whole: a reader never sees half a table."""
    folder = root / "reports" / "status"
    make_public_folder(folder.parent)  # never `root` itself: the campaign may have been moved or deleted
    make_public_folder(folder)
    written = []
    for job in status.state.campaign.jobs:
        file = folder / f"{job.name}_status_latest.tsv"
        write_atomically(file, mask_secrets_in_table(format_status_tsv(status, job.name), "\t"), mode=PUBLIC_FILE)
        written.append(file)
    return written


@dataclass(frozen=True, slots=True)
class StatusTables(ControllerExtension):
    root: Path
    build_status: Callable[[CampaignState], Status]

    def publish(self, state: CampaignState) -> None:
        with contextlib.suppress(OSError):  # a table that can't be written must not stop the campaign
            write_status_tsv(self.root, self.build_status(state))
