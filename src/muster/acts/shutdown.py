"""What stands against powering off. What can't be read counts as active: doubt costs money, a lost run costs more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
