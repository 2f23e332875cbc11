"""Whether the decision was declared before its results were seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from muster.acts.past import Past
from muster.domain.campaign import Campaign
from muster.ports.store import Event


def decision_changed_at(campaign: Campaign, events: Iterable[Event], past: Past) -> int:
    """Cells that had shown their results when the decision became what it is now; 0: none had.

    `past` looks at a value that was renamed as if it had always had its new name.
    """
    told = campaign.decision
    if not told:
        return 0
    metrics = {told[part]["metric"] for part in ("primary", "limit") if told.get(part)}
    jobs = {job.name for job in campaign.jobs if metrics & {result.name for result in job.results}}
    now, shown, changed, same = _ways(campaign, metrics), 0, 0, False
    for event in events:
        decision = event.decision
        if event.void or decision.kind not in ("settle", "adopt", "campaign"):
            continue
        if decision.kind == "campaign":
            before = past.snapshots(str(decision.data.get("hash")))
            was, same = same, before is not None and _ways(before.campaign, metrics) == now
            changed = shown if same and not was else changed
        elif (decision.cell or "").partition("/")[0] in jobs:
            shown += decision.data.get("outcome", {}).get("verdict") == "DONE"
    return changed if same else shown


def _ways(campaign: Campaign, metrics: set[str]) -> tuple[Any, ...]:
    """What decides, and where the numbers that it decides on are read from."""
    read = [(job.name, result) for job in campaign.jobs for result in job.results if result.name in metrics]
    return procedure_of(campaign), sorted(read, key=lambda each: (each[0], each[1].name))


def procedure_of(campaign: Campaign) -> Mapping[str, Any] | None:
    """What decides; factors and notes may be added at any time."""
    told = campaign.decision
    return {key: value for key, value in told.items() if key not in ("factors", "notes")} if told else None
