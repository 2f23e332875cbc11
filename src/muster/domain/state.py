"""All that has been decided about a campaign so far."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Literal

from muster.domain.attempt import Attempt, CellRecord
from muster.domain.calendar import UNSEEN, ClockRecord
from muster.domain.campaign import Campaign, Job, Money
from muster.domain.finish import FinishRecord
from muster.domain.gates import GateRecord
from muster.domain.refused import RefusedRun
from muster.domain.variants import LoopRecord
from muster.domain.whereabouts import STAYED, Whereabouts

IntentKind = Literal["running", "down", "held"]
Only = tuple[Mapping[str, tuple[str, ...]], ...]  # each mapping axis -> values; all must fit


@dataclass(frozen=True, slots=True)
class Intent:
    """What a person wants of the campaign, durable. Only `running` is revived."""

    kind: IntentKind = "running"
    reason: str = ""
    before: IntentKind = "running"  # what `release` returns to

    @property
    def wants_down(self) -> bool:
        """`down` on a campaign that is held lasts beyond the hold."""
        return self.kind == "down" or (self.kind == "held" and self.before == "down")


@dataclass(slots=True)
class CampaignState:
    campaign: Campaign
    campaign_hash: str
    env_file: str
    intent: Intent
    epoch: int
    only: Only = ()
    cells: MutableMapping[str, CellRecord] = field(default_factory=dict)  # declared order; withdrawn ones at the end
    at_rest: bool = False  # a controller found that nothing may start, and nobody has decided anything since
    former_jobs: tuple[Job, ...] = ()  # of cells that are no longer declared
    forgiven: int = 0  # attempts that had ended when a person last released a hold: their deaths no longer count
    finish: FinishRecord = field(default_factory=FinishRecord)
    prices: tuple[tuple[str, Money], ...] = ()  # what was declared when, oldest first
    told: frozenset[tuple[float, str]] = frozenset()  # (budget, level): what was told of it
    loop: LoopRecord = field(default_factory=LoopRecord)
    gates: MutableMapping[str, dict[str, GateRecord]] = field(default_factory=dict)  # by cell, then by gate
    origin: Whereabouts = STAYED  # as if its folder lay where it was first taken in
    clock: ClockRecord = UNSEEN
    refused: tuple[RefusedRun, ...] = ()  # runs of others that were not taken in: known spend

    def job(self, name: str) -> Job:
        """Of the campaign, or of an earlier one: a cell that is no longer declared may still run."""
        return next(job for job in (*self.campaign.jobs, *self.former_jobs) if job.name == name)

    @property
    def declared(self) -> list[CellRecord]:
        return [record for record in self.cells.values() if record.declared]

    @property
    def open_attempts(self) -> list[Attempt]:
        return [attempt for record in self.cells.values() if (attempt := record.open)]
