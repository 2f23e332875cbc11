"""Numbers of DONE cells whose files can't be read any more: which, and where they should be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from muster.domain.attempt import CellRecord
from muster.domain.campaign import Job
from muster.domain.errors import MusterError
from muster.domain.origins import Origins, Unread
from muster.domain.wording import counted
from muster.report.stamp import CellStamp, Stamp

TOLD = 5


def unread_results(
    record: CellRecord, job: Job, found: Origins, exists: Callable[[str], bool] = lambda path: Path(path).exists()
) -> Unread | None:
    """What was recorded and can't be read; or, where the whole output is gone, all that is declared.

    A result that was declared later than the run ended is none of them: its file was never written.
    """
    attempt = record.completed
    outcome = attempt.outcome if attempt else None
    output = outcome.output if outcome else None
    gone = output is not None and not exists(output)
    recorded = attempt.results if attempt else {}
    lost = [each for each in job.results if each.name not in found.values and (gone or each.name in recorded)]
    if not lost:
        return None
    path = found.results.get(lost[0].name) or str(Path(output or "", lost[0].path))
    return Unread(tuple(each.name for each in lost), path, exists(path))


def rests_on_unread(cell: CellStamp) -> bool:
    """Whether a stamp vouches for numbers whose files nobody could read; earlier versions name no file then."""
    return bool(cell.unread or (cell.results and not cell.files))


def refuse_to_lose(before: Stamp | None, unread: Mapping[str, str], where: str) -> None:
    """`before`: the report that is there; `unread`: cell -> why. A sound one is not given up for this one."""
    if not unread or before is None or any(map(rests_on_unread, before.basis.cells.values())):
        return
    told = [f"{cell}: {why}" for cell, why in unread.items()]
    more = f"; and {len(told) - TOLD} more" if len(told) > TOLD else ""
    raise MusterError(
        f"results of {counted(len(told))} can't be read, and the report that is there was made when they could: "
        f"it was left as it is. {'; '.join(told[:TOLD])}{more}",
        where=where,
        hint="bring the files back, or mount their disk, and try again; "
        "to report without them, move reports/stamps/ away first",
        code="unread",
    )
