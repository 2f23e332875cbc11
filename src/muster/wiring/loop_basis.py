"""What a loop's report rests on: every attempt that it tells of, with its config and the files of its history."""

from __future__ import annotations

from collections.abc import Mapping

from muster.acts.status import CellStatus, Status
from muster.domain.cell import needed_cells
from muster.domain.origins import Origins
from muster.domain.variants import AXIS
from muster.observe.hashes import HashCache
from muster.report.stamp import CellStamp
from muster.wiring import looping
from muster.wiring.basis import Reader, stamp_of
from muster.wiring.desk import Desk
from muster.wiring.histories import attempt_of, chain_of, output_of, runs_in

PRINTED = "stdout"  # a kind of history


def loop_cells(
    desk: Desk, status: Status, hashes: HashCache, known: Mapping[str, CellStamp] | None = None
) -> dict[str, CellStamp]:
    """Runs that died or still run, too: what they logged is told. Checkpoints are not: no number is read from one.

    `known`: an earlier stamp, whose files are looked at again instead of being looked for.
    """
    campaign, reader = status.state.campaign, Reader(desk, hashes, values=False)
    if campaign.loop is None:
        return {}
    job = looping.settings_of(status).job
    mine = [cell for cell in status.cells if cell.record.cell.job == job]
    needs = needed_cells(campaign, [cell.record.cell for cell in status.cells])
    configs = {variant.name: variant.config for variant in status.state.loop.variants}
    found = {}
    for cell in mine:
        record, name = cell.record, cell.record.cell.id
        attempt, before = attempt_of(record), (known or {}).get(name)
        if attempt is None:
            continue
        order, _ = reader.order(record, attempt)
        paths = list(before.files) if before else [configs[record.cell.value(AXIS).name], *_history(desk, cell)]
        files = {path: hashes.sha256(path) for path in paths}
        found[name] = stamp_of(desk, record, Origins(files=files), order, needs.get(name, ()), attempt)
    hashes.save()
    return found


def _history(desk: Desk, cell: CellStatus) -> list[str]:
    """As `histories.read_history` looks for it, without reading a value."""
    attempt, output = attempt_of(cell.record), output_of(desk.state, cell)
    if attempt is None or output is None:
        return []
    files: list[str] = []
    for run, _ in runs_in(chain_of(desk.state, cell.record, attempt, output)):
        files += run.files() if run else []
        if run and any(source.kind != PRINTED for source in run.sources):
            break
    return list(dict.fromkeys(files))
