"""The budget: what may still start, and when what runs must end. Pure; the controller and `status` ask the same."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from muster.domain.campaign import Money

Key = tuple[str, int]
Level = Literal["fine", "warn", "no_new_start", "at_cap"]
WARN = 0.8
EDGE = 1e-9  # money is compared to this much


@dataclass(frozen=True, slots=True)
class Prospect:
    """A running attempt: what it costs a second, and what it may still bring before the budget is spent."""

    units: float  # billed units that it pays for
    rest_s: float | None = None  # until its end; None: not known
    checkpoint_s: float | None = None  # until its next checkpoint, of one that has saved some; None: not known


@dataclass(frozen=True, slots=True)
class Purse:
    money: Money
    price_s: float  # of one billed unit for a second
    spent: float
    burning: float  # units that are paid for at this moment
    runs: Mapping[Key, Prospect] = field(default_factory=dict)
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
        if self.spent >= self.budget - EDGE:
            return f"the budget of {budget} {currency} is spent: {self.spent:.2f}"
        running, with_it = self.expected(), self.expected(job)
        if with_it <= self.budget + EDGE and running < self.budget - EDGE:
            return None
        known = f"{with_it:.2f} expected with it" if job in self.cell_s else f"{running:.2f} expected with what runs"
        return f"the budget of {budget} {currency} does not suffice: {self.spent:.2f} spent, {known}"

    def without(self, keys: Collection[Key]) -> Purse:
        """Some of its runs turn out to have ended."""
        return replace(self, runs={key: run for key, run in self.runs.items() if key not in keys}) if keys else self

    def started(self, job: str) -> Purse:
        more = self.cell_s.get(job, 0.0)
        begun = max(self.cells_begun_s, more) if self._machine else self.cells_begun_s + more
        return replace(self, cells_begun_s=begun)

    @property
    def spent_up(self) -> bool:
        return self.spent >= self.budget - EDGE

    def findings(self, *, refused: bool) -> list[tuple[Level, str]]:
        """What a person should hear, each once; `refused`: a cell could not start for it."""
        said = f"{self.spent:.2f} of {self.budget:g} {self.money.currency} spent"
        found: list[tuple[Level, str]] = []
        if self.spent >= WARN * self.budget:
            found.append(
                ("warn", f"{self.spent / self.budget * 100 if self.budget else 100:.0f} % of the budget: {said}")
            )
        if refused:
            more = f"{self.expected():.2f} expected with what runs"
            found.append(("no_new_start", f"the budget lets no further cell start: {said}, {more}"))
        if self.spent_up:
            found.append(("at_cap", f"the budget is spent: {said}"))
        return found

    def level(self, *, refused: bool) -> Level:
        found = self.findings(refused=refused)
        return found[-1][0] if found else "fine"

    def left_s(self, ending: Collection[Key] = ()) -> float:
        """How long until the budget is spent, if nothing starts and those that are ending pay no more."""
        over = sum(self.runs[key].units for key in ending if key in self.runs)
        burning = self.burning if self._machine else self.burning - over
        if burning * self.price_s <= EDGE / 3600:
            return math.inf
        return max(0.0, self.budget - self.spent) / (burning * self.price_s)

    def to_stop(self, ending: Collection[Key]) -> tuple[list[Key], str]:
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
