"""Idle slots where GPUs are paid for: the campaign was running, a slot was free, and nothing ran on it.

These hours are told and not billed: `per: gpu` bills what is leased. What a rented machine costs while nothing runs is
an account of its own (`per: machine`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from muster.domain.campaign import Campaign
from muster.ledger.accounts import Stretch
from muster.ledger.prices import HOUR
from muster.ledger.spans import Now, Span

GOES_ON = frozenset({"running", "release"})
ENDS = frozenset({"down", "hold", "end"})


def going_on(turns: Iterable[tuple[float, str]], now: Now) -> list[Stretch]:
    """When the campaign was meant to run. Turns are (wall time, running | release | down | hold | end), in order."""
    found: list[Stretch] = []
    since: float | None = None
    for at, what in turns:
        if what in GOES_ON and since is None:
            since = at
        elif what in ENDS and since is not None:
            found.append((since, at))
            since = None
    return found if since is None else [*found, (since, now.wall)]


def idle_hours(spans: Sequence[Span], campaign: Campaign, stretches: Sequence[Stretch]) -> float:
    """Of all billed units between the first start and the last end, while the campaign was running."""
    own = [span for span in spans if span.units and not span.adopted]
    if not own:
        return 0.0
    window = (min(span.wall for span in own), max(span.wall + span.held_s for span in own))
    open_ = sum(max(0.0, min(end, window[1]) - max(start, window[0])) for start, end in stretches)
    busy: dict[str, list[Stretch]] = {unit: [] for unit in _units(campaign)}
    for span in own:
        for unit in span.units:
            busy.setdefault(unit, []).append((span.wall, span.wall + span.held_s))
    return sum(max(0.0, open_ - _within(_merged(taken), stretches)) for taken in busy.values()) / HOUR


def _units(campaign: Campaign) -> list[str]:
    """Those that are declared by name; with `gpus: auto` only those that were used are known."""
    slots = campaign.slots
    if slots.gpus is None:
        return []
    return [f"gpu{index}" for index in slots.gpus] or [f"cpu{number}" for number in range(slots.cpus)]


def _merged(stretches: Iterable[Stretch]) -> list[Stretch]:
    merged: list[Stretch] = []
    for start, end in sorted(stretches):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _within(merged: Sequence[Stretch], stretches: Sequence[Stretch]) -> float:
    return sum(max(0.0, min(end, until) - max(start, since)) for start, end in merged for since, until in stretches)
