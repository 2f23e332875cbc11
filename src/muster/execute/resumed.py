"""Which attempts of a cell make one run: each goes on from a checkpoint of the one before it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from muster.domain.attempt import Attempt
from muster.domain.order import Order
from muster.execute.local import read_order
from muster.execute.paths import attempt_folder


@dataclass(frozen=True, slots=True)
class Link:
    """One attempt of the chain."""

    cell: str  # as its folder is called: a cell that was renamed keeps those of its old attempts
    n: int
    order: Order | None  # None: its attempt.json is gone, and what was before it is not known
    resumed_from: str | None = None  # the checkpoint that it went on from; None: it began anew


def resume_chain(state: Path, cell: str, n: int) -> tuple[Link, ...]:
    """The attempt and those that it goes on from, the first one first. An attempt that began anew is one by itself."""
    chain: list[Link] = []
    while n > 0:
        order = read_order(attempt_folder(state, cell, n))
        chain.append(Link(cell, n, order, order.resumed_from if order else None))
        if order is None or not order.resumed_from:
            break
        cell, n = _went_on_from(state, order, cell, n)
    return tuple(reversed(chain))


def attempts_before(state: Path, attempt: Attempt) -> tuple[int, ...]:
    """The numbers of those that this one goes on from."""
    return tuple(link.n for link in resume_chain(state, *attempt.place)[:-1])


def orders_before(order: Order) -> tuple[Order, ...]:
    """Of the attempts that this one goes on from, as far as they are known."""
    chain = resume_chain(Path(order.state), order.cell, order.n)[:-1] if order.resumed_from else ()
    return tuple(link.order for link in chain if link.order)


def _went_on_from(state: Path, order: Order, cell: str, n: int) -> tuple[str, int]:
    """The attempt whose checkpoint it is. In a folder that all of them share it is the one before."""
    inside = (order.resumed_from or "").removeprefix(f"{state}/attempts/").split("/")
    for at, part in enumerate(inside if inside[0] else ()):
        if part.isdecimal() and inside[at + 1 : at + 2] == ["out"]:
            before = int(part)
            return ("/".join(inside[:at]), before) if before < n else (cell, n - 1)
    return cell, n - 1
