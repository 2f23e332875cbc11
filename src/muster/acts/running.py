"""What a look at the open attempts says about their ends: how fast each gets on, when it will have ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from muster.acts.money import Running, rests
from muster.domain.sighting import Sighting
from muster.domain.state import CampaignState
from muster.judge.pace import pace_of
from muster.ledger.spans import held, late_s

if TYPE_CHECKING:
    from muster.acts.status import WatchOf

Key = tuple[str, int]


def running(state: CampaignState, sightings: Mapping[Key, Sighting], watch_of: WatchOf, boot: float) -> Running:
    paces, over, late = {}, {}, {}
    for (cell, n), seen in sightings.items():
        record = state.cells[cell]
        attempt, job = record.attempts[n - 1], state.job(record.cell.job)
        if seen.exit is not None or seen.host != "same":
            seconds = held(attempt, seen, boot)
            if seconds is not None:
                over[cell, n] = seconds
                continue
        if unleased := late_s(attempt, seen, boot):
            late[cell, n] = unleased
        watch = watch_of(attempt, seen, job)
        elapsed = max(0.0, boot - (seen.identity.boot if seen.identity else attempt.claimed_boot))
        step = seen.proof.step if seen.proof else None
        paces[cell, n] = pace_of(watch.history if watch else None, elapsed, job.steps, step)
    return Running(paces, over, late)


def ends(state: CampaignState, running: Running, wall: float) -> dict[Key, float]:
    """Wall times, where they can be told."""
    jobs = {state.cells[cell].cell.job for cell, _ in running.paces}
    known: dict[str, list[float]] = {}
    for record in state.cells.values():
        done = record.completed if record.cell.job in jobs else None
        if done and done.outcome and done.outcome.duration_s:
            known.setdefault(record.cell.job, []).append(done.outcome.duration_s)
    return {key: wall + rest for key, rest in rests(known, running, state).items()}
