"""What many histories add up to, beside the goals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from simulator.drawing import FAULT_NAMES, SHAPE_NAMES
from simulator.single import Result

SHOWN = 12  # failing seeds that are named
ENOUGH_EACH = 500  # of every fault and shape, in 100,000 histories
GOALS = {
    "false_dead": "false DEAD",
    "false_proven": "false proven STALLED",
    "alive_while_dead": "shown alive while dead",
    "overwritten": "final verdicts overwritten",
    "wrong_end": "wrong final verdicts",
    "late_end": "ends told late",
    "late_stall": "idle stalls told late",
    "missed_stall": "stalls never told",
    "proven_busy": "busy stalls called proven",
    "late_stop": "stops told late",
    "stop_forgotten": "stops forgotten",
    "stuck": "stalled while it advances",
    "blind": "alive by nothing",
    "stale": "proven by old readings",
    "wrong_proven_cause": "wrong causes called proven",
}


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    value: str
    goal: str = ""
    met: bool = True


@dataclass(slots=True)
class Figures:
    histories: int = 0
    polls: int = 0
    hours: float = 0.0
    presumed: int = 0
    wrongs: Counter[str] = field(default_factory=Counter)
    shapes: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    mistaken: Counter[tuple[str, str]] = field(default_factory=Counter)  # (true, named)
    stalls: list[float] = field(default_factory=list)
    stall_ratios: list[float] = field(default_factory=list)
    hang_ratios: list[float] = field(default_factory=list)
    stops: list[float] = field(default_factory=list)
    deaths: list[float] = field(default_factory=list)
    failing: list[tuple[int, str, str]] = field(default_factory=list)  # seed, kind, text
    presuming: list[int] = field(default_factory=list)  # seeds

    def add(self, result: Result) -> None:
        self.histories += 1
        self.polls += result.polls
        self.hours += result.hours
        self.presumed += len(result.presumed)
        self.shapes[result.shape] += 1
        self.faults[result.fault] += 1
        for wrong in result.wrongs:
            self.wrongs[wrong.kind] += 1
            self.failing.append((result.seed, wrong.kind, wrong.text))
        if result.presumed:
            self.presuming.append(result.seed)
        if result.cause:
            self.causes[result.cause] += 1
            if result.cause != "right":
                self.mistaken[result.causes] += 1
        for values, value in (
            (self.stalls, result.stall_s),
            (self.stall_ratios, result.stall_ratio),
            (self.hang_ratios, result.hang_ratio),
            (self.stops, result.stop_s),
            (self.deaths, result.death_s),
        ):
            if value is not None:
                values.append(value)

    def merge(self, other: Figures) -> None:
        self.histories += other.histories
        self.polls += other.polls
        self.hours += other.hours
        self.presumed += other.presumed
        for mine, its in (
            (self.wrongs, other.wrongs),
            (self.shapes, other.shapes),
            (self.faults, other.faults),
            (self.causes, other.causes),
        ):
            mine.update(its)
        self.mistaken.update(other.mistaken)
        for name in ("stalls", "stall_ratios", "hang_ratios", "stops", "deaths", "failing", "presuming"):
            getattr(self, name).extend(getattr(other, name))

    @property
    def presumed_rate(self) -> float:
        """Wrong presumed stalls in 1,000 run-hours."""
        return 1000 * self.presumed / self.hours if self.hours else 0.0

    @property
    def met(self) -> bool:
        return all(row.met for row in self.rows())

    def rows(self) -> Iterator[Row]:
        yield Row("histories", f"{self.histories:,}")
        yield Row("run-hours", f"{self.hours:,.0f}")
        yield Row("looks at working runs", f"{self.polls:,}")
        yield self._coverage("shape", self.shapes, SHAPE_NAMES)
        yield self._coverage("fault", self.faults, FAULT_NAMES)
        for kind, name in GOALS.items():
            yield Row(name, str(self.wrongs[kind]), "0", not self.wrongs[kind])
        rate = self.presumed_rate
        yield Row("presumed STALLED, wrongly, in 1,000 run-hours", f"{rate:.2f}", "<= 1", rate <= 1)
        top = max(self.stall_ratios, default=0.0)
        yield Row("idle stall to verdict: share of what is allowed, most", f"{top:.3f}", "<= 1", top <= 1)
        yield Row("idle stall to verdict, s: p50, p99", _quantiles(self.stalls), f"n = {len(self.stalls)}")
        yield Row("other stalls: share of what is allowed, most", f"{max(self.hang_ratios, default=0.0):.3f}")
        yield Row("SIGSTOP to verdict, s: p50, p99", _quantiles(self.stops), f"n = {len(self.stops)}")
        yield Row("end to verdict, s: p50, p99", _quantiles(self.deaths), f"n = {len(self.deaths)}")
        yield self._causes()

    def _coverage(self, what: str, seen: Counter[str], names: Sequence[str]) -> Row:
        least = min(names, key=lambda name: seen[name])
        wanted = math.floor(ENOUGH_EACH * self.histories / 100_000)
        return Row(
            f"rarest {what} of {len(names)}", f"{seen[least]:,} ({least})", f">= {wanted}", seen[least] >= wanted
        )

    def _causes(self) -> Row:
        told = self.causes.total()
        share = 100 * self.causes["right"] / told if told else 100.0
        return Row("causes right", f"{share:.2f} % of {told:,}", ">= 95 %", share >= 95)

    def table(self) -> str:
        rows = list(self.rows())
        width = max(len(row.name) for row in rows)
        lines = [f"{row.name:<{width}}  {row.value:>24}  {row.goal:<10}{'' if row.met else '  MISSED'}" for row in rows]
        lines += [
            f"  {true} named {named or 'nothing'}: {count}" for (true, named), count in self.mistaken.most_common(5)
        ]
        for seed, kind, text in self.failing[:SHOWN]:
            lines.append(f"python -m simulator single --seed {seed}  # {kind}: {text}")
        if len(self.failing) > SHOWN:
            lines.append(f"... and {len(self.failing) - SHOWN} more")
        return "\n".join(lines)


def _quantiles(values: Sequence[float]) -> str:
    if not values:
        return "-"
    ordered = sorted(values)
    half, most = (ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in (0.5, 0.99))
    return f"{half:.1f}, {most:.1f}"
