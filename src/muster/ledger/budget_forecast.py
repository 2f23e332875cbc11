"""The budget: what may still start, when what runs must end, and what is still to come, from the durations of sibling
cells and the pace of those that run. Pure; the controller and `status` ask the same.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from muster.model.attempt import AttemptKey
from muster.model.campaign import Money

BudgetLevel = Literal["fine", "warn", "no_new_start", "at_cap"]
WARN_SHARE = 0.8
MONEY_TOLERANCE = 1e-9  # money is compared to this much


@dataclass(frozen=True, slots=True)
class BudgetedRun:
    """A running attempt: what it costs a second, and what it may still bring before the budget is spent."""

    units: float  # billed units that it pays for
    rest_s: float | None = None  # until its end; None: not known
    checkpoint_s: float | None = None  # until its next checkpoint, of one that has saved some; None: not known


@dataclass(frozen=True, slots=True)
class BudgetState:
    money: Money
    price_s: float  # of one billed unit for a second
    spent: float
    burning: float  # units that are paid for at this moment
    runs: Mapping[AttemptKey, BudgetedRun] = field(default_factory=dict)
    cell_s: Mapping[str, float] = field(default_factory=dict)  # job -> billed seconds of one more cell; absent: unknown
    cells_begun_s: float = 0.0  # of those that start in this very turn
    outdated: bool = False  # the runs were looked at a while ago: some may have ended, and nothing is stopped for it

    @property
    def budget(self) -> float:
        return self.money.budget if self.money.budget is not None else math.inf

    def expected(self, job: str | None = None) -> float:
        """What will have been spent when all that runs has ended, and one more cell of the job with it."""
        more = self.cell_s.get(job, 0.0) if job is not None else 0.0
        rests = [(run.rest_s or 0.0) * (1.0 if self._machine else run.units) for run in self.runs.values()]
        ahead = max([*rests, self.cells_begun_s, more]) if self._machine else sum(rests) + self.cells_begun_s + more
        return self.spent + ahead * self.price_s

    @property
    def _machine(self) -> bool:
        return self.money.per == "machine"

    def refuses(self, job: str) -> str | None:
        """Why no cell of the job may start now."""
        budget, currency = f"{self.budget:g}", self.money.currency
        if self.spent >= self.budget - MONEY_TOLERANCE:
            return f"the budget of {budget} {currency} is spent: {self.spent:.2f}"
        running, with_it = self.expected(), self.expected(job)
        if with_it <= self.budget + MONEY_TOLERANCE and running < self.budget - MONEY_TOLERANCE:
            return None
        known = f"{with_it:.2f} expected with it" if job in self.cell_s else f"{running:.2f} expected with what runs"
        return f"the budget of {budget} {currency} does not suffice: {self.spent:.2f} spent, {known}"

    def without(self, keys: Collection[AttemptKey]) -> BudgetState:
        """Some of its runs turn out to have ended."""
        return replace(self, runs={key: run for key, run in self.runs.items() if key not in keys}) if keys else self

    def started(self, job: str) -> BudgetState:
        more = self.cell_s.get(job, 0.0)
        begun = max(self.cells_begun_s, more) if self._machine else self.cells_begun_s + more
        return replace(self, cells_begun_s=begun)

    @property
    def spent_up(self) -> bool:
        return self.spent >= self.budget - MONEY_TOLERANCE

    def findings(self, *, refused: bool) -> list[tuple[BudgetLevel, str]]:
        """What a person should hear, each once; `refused`: a cell could not start for it."""
        said = f"{self.spent:.2f} of {self.budget:g} {self.money.currency} spent"
        found: list[tuple[BudgetLevel, str]] = []
        if self.spent >= WARN_SHARE * self.budget:
            found.append(
                ("warn", f"{self.spent / self.budget * 100 if self.budget else 100:.0f} % of the budget: {said}")
            )
        if refused:
            more = f"{self.expected():.2f} expected with what runs"
            found.append(("no_new_start", f"the budget lets no further cell start: {said}, {more}"))
        if self.spent_up:
            found.append(("at_cap", f"the budget is spent: {said}"))
        return found

    def level(self, *, refused: bool) -> BudgetLevel:
        found = self.findings(refused=refused)
        return found[-1][0] if found else "fine"

    def left_s(self, ending: Collection[AttemptKey] = ()) -> float:
        """How long until the budget is spent, if nothing starts and those that are ending pay no more."""
        over = sum(self.runs[key].units for key in ending if key in self.runs)
        burning = self.burning if self._machine else self.burning - over
        if burning * self.price_s <= MONEY_TOLERANCE / 3600:
            return math.inf
        return max(0.0, self.budget - self.spent) / (burning * self.price_s)

    def to_stop(self, ending: Collection[AttemptKey]) -> tuple[list[AttemptKey], str]:
        """With `at_cap: stop`: all that runs once the budget is spent; before that the one whose time is wasted.

        A run that can neither end nor save again before the budget is spent is stopped after the checkpoint it has.
        One at a time: the money that it leaves may carry the others to their next checkpoint.
        """
        if self.money.at_cap != "stop" or self.money.budget is None or self.outdated:
            return [], ""
        going = {key: run for key, run in self.runs.items() if key not in ending}
        if self.spent_up:
            return list(going), f"the budget of {self.budget:g} {self.money.currency} is spent: {self.spent:.2f}"
        left = self.left_s(ending)
        vain = {
            key: run.checkpoint_s
            for key, run in going.items()
            if run.checkpoint_s is not None and run.checkpoint_s > left and run.rest_s is not None and run.rest_s > left
        }
        if not vain:
            return [], ""
        key = max(vain, key=lambda key: vain[key])
        return [key], (
            f"the budget of {self.budget:g} {self.money.currency} is spent in {left:.0f} s, "
            f"and its next checkpoint comes after that"
        )


# Student's t, 90 % two-sided, by degrees of freedom
_T = (6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771, 1.761, 1.753)
_T_MANY = 1.7
ONE_SIBLING_FACTORS = (0.5, 2.0)  # of a single duration nobody knows how much others differ from it
UNSURE_STEP_RATE = 0.25  # of a step rate, where no sibling has finished


@dataclass(frozen=True, slots=True)
class ForecastInterval:
    low: float
    mid: float
    high: float

    def __add__(self, other: ForecastInterval) -> ForecastInterval:
        """Spreads that have nothing to do with each other add up in squares."""
        mid = self.mid + other.mid
        down = math.hypot(self.mid - self.low, other.mid - other.low)
        up = math.hypot(self.high - self.mid, other.high - other.mid)
        return ForecastInterval(mid - down, mid, mid + up)

    def __mul__(self, factor: float) -> ForecastInterval:
        return ForecastInterval(self.low * factor, self.mid * factor, self.high * factor)


ZERO_INTERVAL = ForecastInterval(0.0, 0.0, 0.0)


def quick_median(values: Sequence[float]) -> float:
    """The median. The module `statistics` would cost `muster status` more than all the rest of the ledger."""
    ordered = sorted(values)
    half, odd = divmod(len(ordered), 2)
    return ordered[half] if odd else (ordered[half - 1] + ordered[half]) / 2


def _sample_deviation(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


@dataclass(frozen=True, slots=True)
class ProgressRate:
    """How a running attempt gets on."""

    elapsed_s: float
    step: float | None = None
    target: float | None = None
    speed: float | None = None  # steps a second


def remaining_seconds(pace: ProgressRate, usual_s: float | None = None, longest_s: float | None = None) -> float | None:
    """How long it will still run, by its own step rate, else by its siblings; None: nothing tells."""
    if pace.step is not None and pace.target is not None and pace.speed:
        return max(0.0, (pace.target - pace.step) / pace.speed)
    for guess in (usual_s, longest_s):
        if guess is not None and guess > pace.elapsed_s:
            return guess - pace.elapsed_s
    return None  # it takes longer than every sibling did


def forecast_cells(siblings: Sequence[float], count: int) -> ForecastInterval | None:
    """How long `count` more cells take together: nine times in ten between low and high. None: none has finished."""
    if not siblings:
        return None
    mid = quick_median(siblings) * count
    if len(siblings) == 1:
        return ForecastInterval(mid * ONE_SIBLING_FACTORS[0], mid, mid * ONE_SIBLING_FACTORS[1])
    freedom = len(siblings) - 1
    t = _T[freedom - 1] if freedom <= len(_T) else _T_MANY
    # each of them differs from the mean, and so does the mean that we know
    spread = t * _sample_deviation(siblings) * math.sqrt(count + count * count / len(siblings))
    return ForecastInterval(max(min(siblings) * count, mid - spread), mid, mid + spread)


def forecast_running(rest: float, siblings: Sequence[float]) -> ForecastInterval:
    relative = UNSURE_STEP_RATE
    if len(siblings) > 1:
        relative = min(1.0, _sample_deviation(siblings) / max(quick_median(siblings), 1e-9))
    return ForecastInterval(rest * (1 - relative), rest, rest * (1 + relative))


def full_run_lengths(paces: Sequence[ProgressRate]) -> list[float]:
    """How long running siblings will have taken, where none has finished yet."""
    return [
        pace.elapsed_s + (pace.target - pace.step) / pace.speed
        for pace in paces
        if pace.step is not None and pace.target is not None and pace.speed
    ]


@dataclass(frozen=True, slots=True)
class RemainingWork:
    """What is left to run, in billed seconds (units x time) and in slot seconds."""

    billed: ForecastInterval
    longest_s: float  # of the runs at work
    unknown: tuple[str, ...] = ()  # jobs of which nobody knows how long a cell takes
    cells: int = 0


def forecast_remaining_work(
    left: Mapping[str, int],
    known: Mapping[str, Sequence[float]],
    running: Sequence[tuple[str, float | None]],
    units: Mapping[str, float],
) -> RemainingWork:
    """`left`: cells to start, by job; `known`: durations; `running`: (job, rest); `units`: what a cell pays for."""
    total, unknown = ZERO_INTERVAL, set()
    for job, count in left.items():
        more = forecast_cells(known.get(job, ()), count)
        if more is None:
            unknown.add(job)
        else:
            total += more * units[job]
    for job, rest in running:
        if rest is None:
            unknown.add(job)
        else:
            total += forecast_running(rest, known.get(job, ())) * units[job]
    longest = max((rest for _, rest in running if rest is not None), default=0.0)
    return RemainingWork(total, longest, tuple(sorted(unknown)), sum(left.values()) + len(running))
