"""The facts of the cost report and its catalogue of words. Reasons and log lines stay as they were recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from muster.app.facts.record_facts import AbsentCells, EvidencePlace, FilterSet, ProposedFix
from muster.text.catalogue import Catalogue


@dataclass(frozen=True, slots=True)
class HoursAndMoney:
    """Hours, and money where a price is declared."""

    hours: float
    money: float | None = None


@dataclass(frozen=True, slots=True)
class JobCoverage:
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
class JobProduct:
    """What the DONE cells of a job left behind."""

    job: str
    cells: int
    steps: int | None
    spent: HoursAndMoney
    shortest_h: float
    longest_h: float
    checkpoints: int | None  # files that are there; None: none is declared
    pattern: str = ""  # where they lie
    outputs: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    adopted: int = 0
    proved: bool = False  # more than exit 0 was asked for


@dataclass(frozen=True, slots=True)
class WastedAttempts:
    """Attempts that ended in the same way and are not used."""

    cause: str
    how: str  # died | superseded | stopped
    attempts: int
    spent: HoursAndMoney
    cells: tuple[str, ...]
    reason: str = ""  # of the last of them
    lines: tuple[str, ...] = ()
    log: str = ""
    advice: str = ""


@dataclass(frozen=True, slots=True)
class PersonNote:
    """What a person found, with its evidence."""

    at: str
    who: str
    text: str
    cell: str | None = None
    file: str = ""  # FILE:LINE
    line: str = ""  # what stands there


@dataclass(frozen=True, slots=True)
class LedgerSums:
    """The ledger."""

    accounts: tuple[tuple[str, HoursAndMoney], ...]  # productive, wasted, idle, overhead, running
    total: HoursAndMoney
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
    covers: tuple[JobCoverage, ...]
    sums: LedgerSums
    products: tuple[JobProduct, ...] = ()
    losses: tuple[WastedAttempts, ...] = ()
    retries: tuple[str, ...] = ()  # cells that were started again, each with a recorded cause
    filters: tuple[FilterSet, ...] = ()
    notes: tuple[PersonNote, ...] = ()
    absent: tuple[AbsentCells, ...] = ()
    running: int = 0
    outdated: tuple[str, ...] = ()
    doubts: tuple[tuple[str, tuple[str, ...]], ...] = ()  # what a DONE cell says against itself, and which cells
    proxies: Mapping[str, str] = field(default_factory=dict)  # split -> what it stands for
    missing: tuple[str, ...] = ()  # neither DONE nor running, in declared order
    completion: tuple[str, ...] = ()  # those that must still run
    complete_for: HoursAndMoney | None = None  # as far as it is known; None: nobody knows how long any of them takes
    unknown_jobs: tuple[str, ...] = ()  # that are not in it
    fixes: tuple[ProposedFix, ...] = ()
    places: tuple[EvidencePlace, ...] = ()

    @property
    def declared(self) -> int:
        return sum(cover.declared for cover in self.covers)

    @property
    def done(self) -> int:
        return sum(cover.done for cover in self.covers)


def format_money(amount: float, sums: LedgerSums) -> str:
    return f"{amount:.2f} {sums.currency}".rstrip()


def describe_hours(hours: float, sums: LedgerSums, say: Catalogue, *, gpu: bool = False) -> str:
    """Of GPUs, of slots, or of the machine: what `hours` are counted in."""
    unit = "machine" if sums.per == "machine" and sums.price and not gpu else "gpu" if sums.gpu_hours else "slot"
    return say(f"time.{unit}", span=say.span(hours * 3600))


def format_share(part: float) -> str:
    return f"{part * 100:.0f} %" if 0.005 <= part <= 0.995 or part in (0.0, 1.0) else f"{part * 100:.1f} %"
