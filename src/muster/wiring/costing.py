"""Looks at a campaign for its ledger, and writes the cost report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from muster.acts.cost import Cost, cost, report_text
from muster.acts.cost_report import CostSources, together
from muster.acts.status import Status
from muster.domain.campaign import Job
from muster.execute.paths import attempt_folder
from muster.ports.folders import glob_paths
from muster.ports.store import Event
from muster.wiring.declared import declared_now
from muster.wiring.desk import Desk
from muster.wiring.planning import slot_count
from muster.wiring.recording import holds_something, write_stamped

FILE = "cost.md"


def reckon(desk: Desk) -> tuple[Status, list[Event], Cost]:
    """Changes nothing."""
    status = declared_now(desk, ledger=True)
    events = desk.store.events()
    return status, events, cost(status, events, desk.clock.wall())


def write_report(desk: Desk, status: Status, events: Sequence[Event], found: Cost) -> Path:
    path = desk.root / "reports" / FILE
    text = report_text(status, events, found, sources(desk, status))
    write_stamped(desk, status, "cost", "muster cost --report", path, text)
    return path


def sources(desk: Desk, status: Status) -> CostSources:
    return CostSources(
        root=str(desk.root),
        state=str(desk.state),
        folder_of=lambda cell, n: str(attempt_folder(desk.state, cell, n)),
        exists=holds_something,
        slots=slot_count(status.state.campaign),
        checkpoints={
            job.name: counted
            for job in status.state.campaign.jobs
            if (counted := _checkpoints(job, status)) is not None
        },
    )


def _checkpoints(job: Job, status: Status) -> tuple[int, str] | None:
    """How many files fit the declared checkpoints in the outputs that are used; None: none is declared."""
    patterns = [source.path for source in job.progress if source.kind == "checkpoint"]
    if job.proof.checkpoint:
        patterns.append(job.proof.checkpoint.path)
    if not patterns:
        return None
    outputs = [
        done.outcome.output
        for cell in status.cells
        if cell.record.cell.job == job.name and (done := cell.record.completed) and done.outcome and done.outcome.output
    ]
    found = {
        path
        for output in outputs
        for pattern in patterns
        for path in glob_paths(pattern, output)
        for path in [str(Path(output, path))]
    }
    return len(found), f"{together(outputs)}/{patterns[0]}" if outputs else patterns[0]
