"""What the cost report is made from. Gathered by `acts`; reasons and log lines stay as they were recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from muster.report.record_facts import Absent, FilterSet, Fix, Place


@dataclass(frozen=True, slots=True)
class Amount:
    """Hours, and money where a price is declared."""

    hours: float
    money: float | None = None


@dataclass(frozen=True, slots=True)
class Cover:
    """One job's matrix: a row for all axes but the last, a column for each value of that one."""

    job: str
    axes: tuple[str, ...]
    across: str  # the axis of the columns: seed where there is one
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]  # (name, state of each column; "": excluded)
    needs: tuple[str, ...] = ()
    measures: bool = False  # it declares results

    @property
    def declared(self) -> int:
        return sum(1 for _, states in self.rows for state in states if state)

    @property
    def done(self) -> int:
        return sum(states.count("DONE") for _, states in self.rows)

    def seeds_of(self, states: tuple[str, ...]) -> tuple[str, ...]:
        """The columns that are DONE."""
        return tuple(column for column, state in zip(self.columns, states, strict=True) if state == "DONE")


@dataclass(frozen=True, slots=True)
class Product:
    """What the DONE cells of a job left behind."""

    job: str
    cells: int
    steps: int | None
    spent: Amount
    shortest_h: float
    longest_h: float
    checkpoints: int | None  # files that are there; None: none is declared
    pattern: str = ""  # where they lie
    outputs: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    adopted: int = 0
    proved: bool = False  # more than exit 0 was asked for


@dataclass(frozen=True, slots=True)
class Loss:
    """Attempts that ended in the same way and are not used."""

    cause: str
    how: str  # died | superseded | stopped
    attempts: int
    spent: Amount
    cells: tuple[str, ...]
    reason: str = ""  # of the last of them
    lines: tuple[str, ...] = ()
    log: str = ""
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Noted:
    """What a person found, with its evidence."""

    at: str
    who: str
    text: str
    cell: str | None = None
    file: str = ""  # FILE:LINE
    line: str = ""  # what stands there


@dataclass(frozen=True, slots=True)
class Sums:
    """The ledger."""

    accounts: tuple[tuple[str, Amount], ...]  # productive, wasted, idle, overhead, running
    total: Amount
    gpu_hours: float
    free_hours: float | None
    adopted: int = 0
    adopted_hours: float = 0.0
    currency: str = ""
    price: float | None = None
    per: str = "gpu"
    unit: str = "gpu"  # what the price is for: gpu, slot or machine
    since: str | None = None
    budget: float | None = None
    paid: float | None = None
    unaccounted: float | None = None
    forecast: tuple[float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class CostFacts:
    campaign: str
    folder: str
    language: Literal["zh", "en"]
    at: str
    version: str
    covers: tuple[Cover, ...]
    sums: Sums
    products: tuple[Product, ...] = ()
    losses: tuple[Loss, ...] = ()
    retries: tuple[str, ...] = ()  # cells that were started again, each with a recorded cause
    filters: tuple[FilterSet, ...] = ()
    notes: tuple[Noted, ...] = ()
    absent: tuple[Absent, ...] = ()
    running: int = 0
    outdated: tuple[str, ...] = ()
    doubts: tuple[tuple[str, tuple[str, ...]], ...] = ()  # what a DONE cell says against itself, and which cells
    proxies: Mapping[str, str] = field(default_factory=dict)  # split -> what it stands for
    missing: tuple[str, ...] = ()  # neither DONE nor running, in declared order
    completion: tuple[str, ...] = ()  # those that must still run
    complete_for: Amount | None = None  # as far as it is known; None: nobody knows how long any of them takes
    unknown_jobs: tuple[str, ...] = ()  # that are not in it
    fixes: tuple[Fix, ...] = ()
    places: tuple[Place, ...] = ()

    @property
    def declared(self) -> int:
        return sum(cover.declared for cover in self.covers)

    @property
    def done(self) -> int:
        return sum(cover.done for cover in self.covers)
