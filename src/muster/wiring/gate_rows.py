"""What past runs of a campaign wrote for a gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from muster.domain.campaign import Campaign
from muster.domain.errors import UsageError
from muster.domain.state import CampaignState
from muster.execute.paths import attempt_folder
from muster.observe.gate_stream import stream_of
from muster.observe.outputs import folder_of
from muster.stages.rows import Row, judged, settled
from muster.stages.settings import GateSettings

MOST_RUNS = 8  # the newest ones: what they never met, the next one hardly will


def past_rows(campaign: Campaign, state: CampaignState | None, name: str) -> Sequence[Sequence[Row]]:
    """One list for each run that has ended. What can't be read tells nothing."""
    gate = (campaign.gates or {})[name]
    if state is None:
        return ()
    ended = [
        attempt.outcome
        for record in state.cells.values()
        if record.cell.job == gate["job"] and (attempt := record.completed or record.last) and attempt.outcome
    ]
    found = []
    for outcome in ended[-MOST_RUNS:]:
        if outcome.output and (rows := rows_in(gate, outcome.output)):
            found.append(rows)
    return found


def rows_in(gate: Mapping[str, Any], output: str) -> list[Row]:
    """Of a run that has ended."""
    stream = stream_of(gate["read"], gate.get("stage"), folder_of(output))
    try:
        rows = [*stream.look().rows, *stream.rest()]
    except Exception:  # whatever a run left behind
        return []
    return settled(judged(rows, GateSettings.of(gate)))


def cell_output(root: Path, name: str) -> str:
    """Where the run of a cell writes; raises UsageError where there is neither such a cell nor such a path."""
    from muster.wiring.fitting import known_state

    state = known_state(root)
    record = state.cells.get(name) if state else None
    if record is None:
        raise UsageError(f"{name} is neither a file, nor a folder, nor a cell", hint="name a trace, or a cell that ran")
    attempt = record.completed or record.last
    if attempt is None:
        raise UsageError(f"{name} has not run yet", hint="`muster status` tells what has")
    output = attempt.outcome.output if attempt.outcome else None
    return output or str(attempt_folder(root / ".muster", *attempt.place) / "out")
