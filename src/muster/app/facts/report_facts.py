"""The facts of a report as types: every measured cell, what is missing, what was declared. `build_report_facts` fills
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from muster.model.provenance import NoCurveReason, Resumption
from muster.stats.coincidences import MetricScale
from muster.stats.decision_procedure import DecisionProcedure
from muster.stats.red_flags import (
    AcceptedFlag,
    CellMaking,
    ConfigFailures,
    DeclaredMetrics,
    DefinitionMixture,
    LostCell,
)
from muster.stats.seed_planning import SeedPrice


@dataclass(frozen=True, slots=True)
class Measurement:
    """One DONE cell whose job has results. `head` is its split, or its job where that has none."""

    cell: str
    job: str
    config: str  # "" where the job has no such axis
    seed: str
    head: str
    results: Mapping[str, float]
    now: Mapping[str, float] | None = None  # what its files say today; None: nobody looked
    episodes: int = 1  # that its values are means of; 1: not known
    attempt: int = 1
    adopted: bool = False
    unread: str = ""  # why its files can't be read, in the report's language


@dataclass(frozen=True, slots=True)
class AcceptedCell:
    """A cell that counts because a person took an attempt as done."""

    cell: str
    attempt: int
    who: str  # "": not known
    reason: str


@dataclass(frozen=True, slots=True)
class MissingCell:
    cell: str
    state: str  # PENDING, DEAD, GIVEN_UP, ...
    reason: str


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """`ood/score`: a result on a split; `train/risk_penalty`: a result of a job without splits."""

    head: str
    metric: str

    @property
    def name(self) -> str:
        return f"{self.head}/{self.metric}" if self.head else self.metric


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """What one training logged on its way, thinned out."""

    cell: str
    config: str
    seed: str
    metric: str  # the result it shows the way of: score, cost
    key: str  # as the run wrote it: episode/score
    steps: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class MissingCurve:
    """A metric of which trainings have no learning curve."""

    metric: str
    reason: NoCurveReason
    cells: tuple[str, ...]
    all: bool  # no training has one


@dataclass(frozen=True, slots=True)
class DecisionPlan:
    """`decision:` of the campaign file."""

    procedure: DecisionProcedure
    primary: ResultColumn
    limit: ResultColumn | None = None
    checkpoint: str = "last"  # "last", or "best by METRIC"
    factors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportFacts:
    campaign: str
    folder: str
    language: Literal["zh", "en"]
    at: str  # ISO time, for display
    version: str  # of Muster
    code: str  # commit of the campaign's code, or its states in words; "" where no cell is done yet
    configs: tuple[str, ...]  # in declared order
    seeds: tuple[str, ...]
    columns: tuple[ResultColumn, ...]  # of the main table, in order
    measured: tuple[Measurement, ...]
    k: int  # DONE cells of those that carry results
    n: int  # declared ones, also those that were declared when their config began to run and are not any more
    missing: tuple[MissingCell, ...] = ()  # of all cells that count, also those that carry no results
    excluded: tuple[tuple[str, str, str], ...] = ()  # (config, seed, head) that `exclude:` takes out of the matrix
    plan: DecisionPlan | None = None
    declared: DeclaredMetrics = field(default_factory=DeclaredMetrics)
    proxies: Mapping[str, str] = field(default_factory=dict)  # split -> its `proxy:`, what it stands for
    split_notes: Mapping[str, str] = field(default_factory=dict)  # split -> its note: a remark, and no more
    notes: Mapping[str, str] = field(default_factory=dict)  # config -> its note
    made: tuple[CellMaking, ...] = ()
    accepted: tuple[AcceptedCell, ...] = ()
    accepted_flags: tuple[AcceptedFlag, ...] = ()  # oldest first
    scales: Mapping[str, MetricScale] = field(default_factory=dict)  # metric -> what is declared of it
    curves: tuple[LearningCurve, ...] = ()
    uncurved: tuple[MissingCurve, ...] = ()
    resumed: tuple[tuple[str, Resumption], ...] = ()  # cells whose log several attempts wrote, with what counts of it
    price: SeedPrice | None = None  # of one more seed of one config
    currency: str = ""
    budget_left: float | None = None
    mixed: tuple[DefinitionMixture, ...] = ()  # definitions that differ between cells of one job
    outdated: tuple[
        DefinitionMixture, ...
    ] = ()  # cells that agree with each other and not with the campaign as it is now
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # cell -> files unlike those of its job
    gone_seeds: tuple[str, ...] = ()  # of `seeds`, those that are on the axis no more
    lost: tuple[LostCell, ...] = ()  # missing cells that are no longer declared
    settled: tuple[LostCell, ...] = ()  # missing cells that are declared, and that nothing will bring
    failures: tuple[ConfigFailures, ...] = ()  # of each config, over its seeds
    dropped: tuple[str, ...] = ()  # cells that ran and are no longer declared, with all of their row
    refused: tuple[str, ...] = ()  # the cell of each run of others that was found and not taken in
    cleared: frozenset[str] = frozenset()  # missing cells whose loss a person has explained: they hold up no verdict

    def split_of(self, head: str) -> str:
        """The split in the head of a column, which may have its job before it and other axes behind it."""
        parts = head.split("/")
        led = len(parts) > 1 and parts[0] in {each.job for each in self.measured}
        return parts[1] if led else parts[0]

    @property
    def partial(self) -> bool:
        return any(each.cell not in self.cleared for each in self.missing)

    @property
    def mark(self) -> str:
        """What every title, caption, file name and bound number of a partial report carries."""
        return f"PARTIAL {self.k}/{self.n}" if self.partial else ""
