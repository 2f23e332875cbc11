"""The state of a campaign: all that has been decided about it so far, with its cells, gates, finish and intent."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Literal

from muster.model.attempt import Attempt, CellRecord, UnadoptedRun
from muster.model.calendar import NO_CLOCK_RECORD, ClockRecord
from muster.model.campaign import Campaign, Job, Money
from muster.model.campaign_location import NEVER_MOVED, CampaignLocation
from muster.model.cell import map_needed_cells
from muster.model.variant import LoopRecord

# dropped: the one who asked for it by hand let it go. unclear: it began, and nobody saw its end
ShutdownStageKind = Literal["refused", "clear", "counting", "began", "ended", "failed", "dropped", "unclear"]


@dataclass(frozen=True, slots=True)
class FinishStepRecord:
    """A step of the finish as it was carried out last."""

    step: str  # report, docs, run-1, notify
    key: str  # the state of the matrix that it was done for
    n: int  # which execution of this step, over all states of the matrix: its folder
    token: str
    at: str  # when it began
    boot: float
    boot_id: str
    lost: int = 0  # executions for this key before it whose end nobody saw
    ended: str | None = None
    ok: bool | None = None  # None with an end: it counts as not done
    why: str = ""
    verdict: str = ""  # that the report came to
    flag: str = ""  # its first red flag of level ERROR


@dataclass(frozen=True, slots=True)
class ShutdownRequest:
    """`muster shutdown --when-done`: power off once all is done."""

    who: str
    at: str
    command: str | None = None  # of an older version, which took it from an option: not used any more
    countdown_s: float | None = None


@dataclass(frozen=True, slots=True)
class ShutdownProgress:
    """How far a shutdown has come, as it was told last."""

    what: ShutdownStageKind
    at: str
    boot: float
    who: str
    key: str
    reasons: tuple[str, ...] = ()
    command: str = ""
    countdown_s: float = 0.0
    mark: str = ""  # by which whoever began it knows it as its own
    boot_id: str = ""  # in which boot that was; "": an older log


@dataclass(frozen=True, slots=True)
class FinishRecord:
    steps: Mapping[str, FinishStepRecord] = field(default_factory=dict)
    wish: ShutdownRequest | None = None
    cancelled: str = ""  # who took the shutdown back: none comes by itself until somebody wishes for one again
    cancels: int = 0  # how often one was taken back: what began before the last time does not go on
    stage: ShutdownProgress | None = None
    begun: str = ""  # the state of the matrix for which the command was recorded: it is not run again by itself


@dataclass(frozen=True, slots=True)
class GateRecord:
    """The newest event of a gate over a cell."""

    attempt: int
    iteration: int
    state: str
    phase: int
    why: str = ""


IntentKind = Literal["running", "down", "held"]
CellFilter = tuple[Mapping[str, tuple[str, ...]], ...]  # each mapping axis -> values; all must fit


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
    only: CellFilter = ()
    cells: MutableMapping[str, CellRecord] = field(default_factory=dict)  # declared order; withdrawn ones at the end
    at_rest: bool = False  # a controller found that nothing may start, and nobody has decided anything since
    former_jobs: tuple[Job, ...] = ()  # of cells that are no longer declared
    forgiven: int = 0  # attempts that had ended when a person last released a hold: their deaths no longer count
    finish: FinishRecord = field(default_factory=FinishRecord)
    prices: tuple[tuple[str, Money], ...] = ()  # what was declared when, oldest first
    told: frozenset[tuple[float, str]] = frozenset()  # (budget, level): what was told of it
    loop: LoopRecord = field(default_factory=LoopRecord)
    gates: MutableMapping[str, dict[str, GateRecord]] = field(default_factory=dict)  # by cell, then by gate
    origin: CampaignLocation = NEVER_MOVED  # as if its folder lay where it was first taken in
    clock: ClockRecord = NO_CLOCK_RECORD
    refused: tuple[UnadoptedRun, ...] = ()  # runs of others that were not taken in: known spend

    def job(self, name: str) -> Job:
        """Of the campaign, or of an earlier one: a cell that is no longer declared may still run."""
        return next(job for job in (*self.campaign.jobs, *self.former_jobs) if job.name == name)

    @property
    def declared(self) -> list[CellRecord]:
        return [record for record in self.cells.values() if record.declared]

    @property
    def needs(self) -> dict[str, tuple[str, ...]]:
        """For each declared cell the cells it waits for; made anew each time."""
        return map_needed_cells(self.campaign, [record.cell for record in self.declared])

    @property
    def open_attempts(self) -> list[Attempt]:
        return [attempt for record in self.cells.values() if (attempt := record.open)]
