"""What a simulated campaign truly costs, by the world's own time; and what its budget must never let happen."""

from __future__ import annotations

from dataclasses import dataclass, field

from muster.model.campaign import Job, Money
from muster.model.decision import Decision
from simulator.campaign_book import Book, Try
from simulator.campaign_folder import Folder
from simulator.world import Key, Violation, World

EPSILON_S = 1.0  # between a decision and its commit
LEASE_S = 120.0  # a claim that waited longer had no lease
UNSTARTED_S = 150.0  # a claim that nobody starts is fenced by then
FAR_S = 400.0  # how much longer than three times the usual a run and what it leaves behind may take


@dataclass(slots=True)
class Bill:
    """Kept from the claims that took effect and from the truth about processes; nothing here asks the ledger."""

    world: World
    book: Book
    folders: dict[Key, Folder]
    usual_s: float  # the longest of the jobs' mean durations
    claimed: dict[Key, float] = field(default_factory=dict)  # in true time
    boots: dict[Key, float] = field(default_factory=dict)  # the same in the boot time of then
    settled: dict[Key, float] = field(default_factory=dict)  # since when everybody may know that it has ended
    decided: dict[Key, float] = field(default_factory=dict)  # since when the log says so
    capped_at: float | None = None  # since when the budget is seen to be spent
    clock_s: float = 0.0  # by how much the wall clock was set in all
    booted: int = 1  # how often the machine was switched on

    @property
    def money(self) -> Money | None:
        money = self.book.campaign.money if self.book.campaign else None
        return money if money and money.budget is not None else None

    # -- what happens

    def clock_set(self, seconds: float) -> None:
        self.clock_s += abs(seconds)

    def booted_again(self) -> None:
        self.booted += 1

    @property
    def gap_doubt(self) -> float:
        """Between two boots nobody but the wall clock tells how long a rented machine was paid for."""
        return self.clock_s if self.booted > 1 and self._rented else 0.0

    @property
    def _rented(self) -> bool:
        money = self.book.campaign.money if self.book.campaign else None
        return money is not None and money.per == "machine"

    def started(self, decision: Decision) -> None:
        """Before the claim is counted: at that moment there was money for it."""
        key = (decision.cell or "", decision.attempt or 0)
        at = self._moment(decision)
        money = self.money
        if money and money.budget is not None:
            spent, job = self.spent(at) - self.gap_doubt, self.book.cells[key[0]].job
            shortest = self._shortest(job, at)
            if spent >= money.budget + EPSILON_S:
                raise Violation(f"{key[0]} starts although {spent:.0f} of {money.budget:.0f} are spent")
            if shortest is not None and spent + shortest > money.budget + EPSILON_S * 2:
                more = f"{shortest:.0f} more at least"
                raise Violation(f"{key[0]} starts with {spent:.0f} of {money.budget:.0f} spent, and {more}")
        self.claimed[key], self.boots[key] = at, decision.boot

    def ended(self, decision: Decision) -> None:
        key = (decision.cell or "", decision.attempt or 0)
        self.settled[key], self.decided[key] = self.world.now, self._moment(decision)

    def _moment(self, decision: Decision) -> float:
        """In true time: whoever decided may have been stopped or killed before it took effect."""
        return self.world.true_time(decision.boot, str(decision.data["boot_id"]))

    def taken_in(self) -> None:
        self.capped_at = None

    # -- what it comes to

    def spent(self, at: float) -> float:
        """One a second for each unit: GPUs are counted once, however many share them; or one for the machine."""
        if self._rented:
            return max(0.0, at - min(self.claimed.values(), default=at))
        taken: dict[str, list[tuple[float, float]]] = {}
        for key in self.claimed:
            start, end = self._held(key, at)
            for unit in self._units(key) if self.folders[key].run else ():  # what never ran held a slot for a moment
                taken.setdefault(unit, []).append((start, end))
        return sum(_union(stretches) for stretches in taken.values())

    def _held(self, key: Key, at: float) -> tuple[float, float]:
        """Until its tree was gone and its shim had said so: a slow one keeps the slot as long.

        What a DONE cell leaves behind is not its work any more: then until that was decided.
        """
        folder, decided = self.folders.get(key), self.decided.get(key)
        started = folder.started_at - LEASE_S if folder and folder.run else 0.0  # before that nobody leased them
        start = max(self.claimed[key], started)
        ends = [end for end in (self._over(key), decided, at) if end is not None]
        return start, max(start, min(ends))

    def _over(self, key: Key) -> float | None:
        folder = self.folders.get(key)
        if folder is None or folder.over_at is None:
            return None
        told = [at for at in (folder.exit.boot if folder.exit else None, folder.freed) if at is not None]
        return max([folder.over_at, *(self.claimed[key] + at - self.boots[key] for at in told)])

    def _units(self, key: Key) -> set[str]:
        slots = self._try(key).slots
        gpus = {slot.partition(".")[0] for slot in slots if slot.startswith("gpu")}
        campaign = self.book.campaign
        return gpus if gpus or (campaign and campaign.slots.gpus) else set(slots)

    def _try(self, key: Key) -> Try:
        return self.book.cells[key[0]].tries[key[1] - 1]

    def _shortest(self, job: str, at: float) -> float | None:
        """The cheapest completed attempt of the job that was known by then, for its own units."""
        done = [
            (end - start) * (1 if self._rented else len(self._units(key)) / self._shares())
            for key, settled in self.settled.items()
            if settled < at and self.book.cells[key[0]].job == job and self._try(key).done
            for start, end in [self._held(key, at)]
        ]
        return min(done, default=None)

    def _shares(self) -> int:
        return self.book.campaign.slots.per_gpu if self.book.campaign else 1

    # -- what follows

    def look(self) -> None:
        """After a turn: since when the budget is spent."""
        money = self.money
        if money is None or money.budget is None or self.spent(self.world.now) - self.gap_doubt < money.budget:
            self.capped_at = None
        elif self.capped_at is None:
            self.capped_at = self.world.now

    @property
    def must_stop_since(self) -> float | None:
        return self.capped_at if self.money and self.money.at_cap == "stop" else None

    def may_stop(self, job: Job) -> bool:
        """At the cap, or before it where a checkpoint could be lost."""
        money = self.money
        if money is None or money.budget is None or money.at_cap != "stop":
            return False
        saves = any(progress.kind == "checkpoint" for progress in job.progress)
        counted = self.spent(self.world.now) + self.doubt() + self._unseen() + self.gap_doubt
        return saves or counted >= money.budget - EPSILON_S

    def _unseen(self) -> float:
        """Of runs whose end nobody can read yet, because their file system does not answer: they count as held."""
        total, now = 0.0, self.world.now
        for key in self.claimed.keys() - self.decided.keys():
            over, folder = self._over(key), self.folders.get(key)
            if over is not None and folder and folder.unread_until > over:
                total += max(0.0, now - over) * len(self._units(key))
        return total

    def doubt(self) -> float:
        """Where no shim saw the tree's end, the slot counts as held until somebody looked."""
        total = 0.0
        for key, claimed in self.claimed.items():
            folder, seen = self.folders.get(key), self.decided.get(key, self.world.now)
            if folder and folder.run is None:  # what never ran may have held its slots for a while
                most = float("inf") if folder.gone else UNSTARTED_S  # of a deleted one nobody knows that it never ran
                total += min(most, max(0.0, seen - claimed)) * len(self._units(key))
            elif folder and folder.over_at is not None and _unseen(folder):
                total += max(0.0, seen - folder.over_at) * len(self._units(key))
        return total

    def may_refuse(self) -> bool:
        """Whether a budget can be why a cell does not start."""
        money = self.money
        if money is None or money.budget is None:
            return False
        units = max((len(self._try(key).slots) for key in self.claimed), default=1)
        lasted = [end - start for key in self.settled for start, end in [self._held(key, self.world.now)]]
        most = max(3 * self.usual_s + FAR_S, *lasted, 0.0) * units * (len(self.book.open()) + 1)
        return self.spent(self.world.now) + self.doubt() + self.gap_doubt + most > money.budget


def _unseen(folder: Folder) -> bool:
    return folder.exit is None or (folder.exit.orphans != () and folder.freed is None)


def _union(stretches: list[tuple[float, float]]) -> float:
    total, until = 0.0, float("-inf")
    for start, end in sorted(stretches):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total
