"""Cells that count because a person vouched for them: `muster accept`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from muster.acts.status import Status
from muster.ports.store import Event
from muster.report.facts import Accepted


def accepted_cells(status: Status, events: Iterable[Event]) -> Iterator[Accepted]:
    """In declared order, each with who took it as done, and why."""
    who: dict[tuple[str | None, int | None], str] = {}
    for event in events:
        decision = event.decision
        if decision.kind == "accept" and not event.void:
            who[decision.cell, decision.attempt] = decision.who
    for cell in status.cells:
        attempt = cell.record.completed
        if attempt is not None and attempt.accepted is not None:
            yield Accepted(attempt.cell, attempt.n, who.get(attempt.key, ""), attempt.accepted)
