"""One row per cell, for people who grep: `reports/status/<job>_status_latest.tsv`. `adopt --status-tsv` reads it."""

from __future__ import annotations

from muster.acts.status import CellStatus, Status
from muster.ports.clock import iso
from muster.report.escape import csv_text

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def status_tsv(status: Status, job: str) -> str:
    """A header, then every declared cell of the job in declared order. Times are local, with their zone."""
    axes = status.state.campaign.job(job).axes
    header = ["cell", *axes, "verdict", "cause", "attempt", "attempts", "started", "ended", "duration_s", "exit_code",
              "signal", "output", "reason"]  # fmt: skip
    rows: list[list[object]] = [[*header]]
    rows += [_row(cell, axes) for cell in status.cells if cell.record.cell.job == job]
    return "".join("\t".join(escape(value) for value in row) + "\n" for row in rows)


def escape(value: object) -> str:
    """Never a tab or a line break inside a value; a backslash is doubled so that this can be undone.

    What a terminal would obey is spelled out; what a spreadsheet would take for a formula has a `'` before it.
    """
    if value is None:
        return ""
    if isinstance(value, int | float):
        return str(value)
    return csv_text(str(value).translate(_ESCAPES), spaces=True)


def _row(cell: CellStatus, axes: tuple[str, ...]) -> list[object]:
    record, verdict = cell.record, cell.verdict
    shown = record.completed or record.last
    outcome = shown.outcome if shown else None
    names = {axis: value.name for axis, value in record.cell.values}
    started = iso(outcome.started) if outcome and outcome.started else cell.since if record.open else None
    return [
        record.cell.id,
        *(names[axis] for axis in axes),
        verdict.state,
        verdict.cause,
        shown.n if shown else None,
        len(record.attempts),
        started,
        iso(outcome.ended) if outcome and outcome.ended else None,
        _seconds(outcome.duration_s if outcome else None),
        outcome.exit_code if outcome else None,
        outcome.exit_signal if outcome else None,
        cell.output,
        verdict.reason,
    ]


def _seconds(duration_s: float | None) -> str | None:
    return None if duration_s is None else f"{duration_s:.3f}"
