"""Whether the decision was declared before its results were seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from muster.domain.campaign import Campaign
from muster.ports.store import Event

Then = Callable[[str], Campaign | None]  # the campaign of this hash, as it was taken in; None: it can't be read


def decision_changed_at(campaign: Campaign, events: Iterable[Event], then: Then) -> int:
    """Cells that had shown their results when the decision became what it is now; 0: none had."""
    told = campaign.decision
    if not told:
        return 0
    metrics = {told[part]["metric"] for part in ("primary", "limit") if told.get(part)}
    jobs = {job.name for job in campaign.jobs if metrics & {result.name for result in job.results}}
    now, shown, changed, same = procedure_of(campaign), 0, 0, False
    for event in events:
        decision = event.decision
        if event.void or decision.kind not in ("settle", "adopt", "campaign"):
            continue
        if decision.kind == "campaign":
            before = then(str(decision.data.get("hash")))
            was, same = same, before is not None and procedure_of(before) == now
            changed = shown if same and not was else changed
        elif (decision.cell or "").partition("/")[0] in jobs:
            shown += decision.data.get("outcome", {}).get("verdict") == "DONE"
    return changed if same else shown


def procedure_of(campaign: Campaign) -> Mapping[str, Any] | None:
    """What decides; factors and notes may be added at any time."""
    told = campaign.decision
    return {key: value for key, value in told.items() if key not in ("factors", "notes")} if told else None
