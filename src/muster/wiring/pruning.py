"""Looks at the histories of a loop's runs while they run, and says which of them are hopeless."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from muster.acts.loop_settings import loop_settings
from muster.domain.attempt import Attempt
from muster.domain.state import CampaignState
from muster.domain.variants import AXIS
from muster.observe.metrics.discover import run_of
from muster.ports.clock import Clock
from muster.ports.metrics import MetricReader
from muster.rounds.pruning import PruneRule, Trail, hopeless

EVERY_S = 5.0
Key = tuple[str, int]


@dataclass(slots=True)
class _Read:
    """One run's trail, and the reader that goes on with it."""

    variant: str
    trail: Trail
    readers: tuple[MetricReader, ...] = ()
    over: bool = False


@dataclass(slots=True)
class Pruning:
    output_of: Callable[[Attempt], str]
    clock: Clock
    _runs: dict[Key, _Read] = field(default_factory=dict)
    _next: float = 0.0
    _found: Mapping[Key, str] = field(default_factory=dict)

    def __call__(self, state: CampaignState) -> Mapping[Key, str]:
        rule = loop_settings(state.campaign.loop).prune if state.campaign.loop else None
        if rule is None:
            return {}
        now = self.clock.boot()
        if now >= self._next:
            self._next = now + EVERY_S
            self._look(state, rule)
            self._found = dict(self._hopeless(rule))
        return self._found

    def _look(self, state: CampaignState, rule: PruneRule) -> None:
        for cell in state.cells.values():
            attempt = cell.open or cell.completed or cell.last
            if attempt is None or cell.cell.job != (state.campaign.loop or {}).get("job"):
                continue
            known = self._runs.get(attempt.key)
            if known is None:
                known = self._runs[attempt.key] = _Read(cell.cell.value(AXIS).name, Trail(rule.better))
            if not known.over:
                with contextlib.suppress(OSError):  # what can't be read now is read at the next look
                    self._read(known, attempt, rule.key)
                    known.over = attempt.outcome is not None

    def _read(self, known: _Read, attempt: Attempt, key: str) -> None:
        if not known.readers and (found := run_of(self.output_of(attempt)).run):
            known.readers = tuple(feed.reader for feed in found.feeds())
        for reader in known.readers:
            for rows in reader.read():
                if rows.fresh:
                    known.trail = Trail(known.trail.better)
                if key in rows.columns:
                    known.trail.add_many(*rows.columns[key])

    def _hopeless(self, rule: PruneRule) -> Iterator[tuple[Key, str]]:
        for key, mine in self._runs.items():
            if not mine.over:
                others = [each.trail for each in self._runs.values() if each.variant != mine.variant]
                if why := hopeless(rule, mine.trail, others):
                    yield key, why
