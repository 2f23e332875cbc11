"""What a report is made from: every measured cell, what is missing, what was declared. Gathered by `acts`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from muster.report.claims import Claim, Text
from muster.stats.decision import Procedure
from muster.stats.flags import Declared, Made
from muster.stats.more_seeds import Price

__all__ = ["Accepted", "Claim", "Column", "Curve", "Facts", "Measurement", "Missing", "Plan", "Text"]


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


@dataclass(frozen=True, slots=True)
class Accepted:
    """A cell that counts because a person took an attempt as done."""

    cell: str
    attempt: int
    who: str  # "": not known
    reason: str


@dataclass(frozen=True, slots=True)
class Missing:
    cell: str
    state: str  # PENDING, DEAD, GIVEN_UP, ...
    reason: str


@dataclass(frozen=True, slots=True)
class Column:
    """`ood/score`: a result on a split; `train/risk_penalty`: a result of a job without splits."""

    head: str
    metric: str

    @property
    def name(self) -> str:
        return f"{self.head}/{self.metric}" if self.head else self.metric


@dataclass(frozen=True, slots=True)
class Curve:
    """What one training logged on its way, thinned out."""

    cell: str
    config: str
    seed: str
    metric: str  # the result it shows the way of: score, cost
    key: str  # as the run wrote it: episode/score
    steps: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """`decision:` of the campaign file."""

    procedure: Procedure
    primary: Column
    limit: Column | None = None
    checkpoint: str = "last"  # "last", or "best by METRIC"
    factors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    campaign: str
    folder: str
    language: Literal["zh", "en"]
    at: str  # ISO time, for display
    version: str  # of Muster
    code: str  # commit of the campaign's code, or its commits in words; "" where it is under no version control
    configs: tuple[str, ...]  # in declared order
    seeds: tuple[str, ...]
    columns: tuple[Column, ...]  # of the main table, in order
    measured: tuple[Measurement, ...]
    k: int  # DONE cells of those that carry results
    n: int  # declared ones
    missing: tuple[Missing, ...] = ()  # of all declared cells, also those that carry none
    excluded: tuple[tuple[str, str, str], ...] = ()  # (config, seed, head) that `exclude:` takes out of the matrix
    plan: Plan | None = None
    declared: Declared = field(default_factory=Declared)
    proxies: Mapping[str, str] = field(default_factory=dict)  # split -> its note: what it stands for
    notes: Mapping[str, str] = field(default_factory=dict)  # config -> its note
    made: tuple[Made, ...] = ()
    accepted: tuple[Accepted, ...] = ()
    curves: tuple[Curve, ...] = ()
    price: Price | None = None  # of one more seed of one config
    currency: str = ""
    budget_left: float | None = None

    @property
    def partial(self) -> bool:
        return bool(self.missing)

    @property
    def mark(self) -> str:
        """What every title, caption, file name and bound number of a partial report carries."""
        return f"PARTIAL {self.k}/{self.n}" if self.partial else ""
