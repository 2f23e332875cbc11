"""What stands against powering off. What can't be read counts as active: doubt costs money, a lost run costs more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from muster.acts.status import CellStatus, Status
from muster.domain.verdict import SETTLED


def refusals(
    status: Status, carriers: Mapping[str, Sequence[int]] | None, foreign: Mapping[int, str] | None
) -> list[str]:
    """Empty: nothing. `carriers`: attempt -> pids that carry its token; `foreign`: GPU -> who sits on it.

    None for either means that it could not be looked at, which is a reason of its own.
    """
    found = [_cell(cell) for cell in (*status.cells, *status.withdrawn) if not _over(cell)]
    if carriers is None:
        found.append("whether a process of a run lives on can't be read")
    else:
        found += [f"{name}: pid {', '.join(map(str, pids))} of it lives on" for name, pids in carriers.items() if pids]
    if foreign is None:
        found.append("who uses the GPUs can't be read")
    else:
        found += [f"GPU {gpu} is in use: {who}" for gpu, who in foreign.items()]
    return found


def _over(cell: CellStatus) -> bool:
    return cell.verdict.state in SETTLED and cell.record.open is None


def _cell(cell: CellStatus) -> str:
    return f"{cell.record.cell.id} is {cell.verdict.state}: {cell.verdict.reason}"


@dataclass(frozen=True, slots=True)
class Vigil:
    """The way to a power-off: a look, a pause, another look, a countdown, a last look. One doubt, and it begins anew.

    Times are boot times; the pause counts from the end of the first look.
    """

    pause_s: float
    countdown_s: float
    first: float | None = None  # when a look had found nothing against it
    second: float | None = None
    last: float | None = None
    not_before: float = 0.0  # after a refusal

    def move(self, now: float) -> Literal["look", "wait", "go"]:
        if self.last is not None:
            return "go"
        return "look" if now >= self.next_at else "wait"

    @property
    def next_at(self) -> float:
        if self.second is not None:
            return self.second + self.countdown_s
        return self.not_before if self.first is None else self.first + self.pause_s

    @property
    def counting(self) -> bool:
        return self.second is not None and self.last is None

    def saw(self, reasons: Sequence[str], now: float) -> Vigil:
        if reasons:
            return Vigil(self.pause_s, self.countdown_s, not_before=now + self.pause_s)
        if self.first is None:
            return replace(self, first=now)
        return replace(self, second=now) if self.second is None else replace(self, last=now)
