"""What every derived file rests on: DONE cells, their attempts, and the files behind their numbers."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from muster.acts.adopt import as_if_started
from muster.acts.run_config import FILES
from muster.acts.run_times import run_times
from muster.acts.stamping import digest_of, relevant, sections_of, words_of_people
from muster.acts.status import Status
from muster.domain.attempt import Attempt, CellRecord
from muster.domain.campaign import Campaign
from muster.domain.cell import needed_cells
from muster.domain.order import Order
from muster.domain.origins import Origins
from muster.domain.sighting import Exit
from muster.execute.local import read_order
from muster.execute.paths import attempt_folder
from muster.observe.facts import read_exit
from muster.observe.hashes import HashCache
from muster.observe.origins import read_origins
from muster.report.stamp import Basis, CellStamp, CheckpointStamp
from muster.wiring.declared import declared_now
from muster.wiring.desk import Desk

Named = Mapping[str, Mapping[str, tuple[str, ...]]]


@dataclass(slots=True)
class Reader:
    """Reads what DONE cells left behind, each file once."""

    desk: Desk
    hashes: HashCache
    values: bool = True  # False: only which files there are and what they hash to

    def order(self, record: CellRecord, attempt: Attempt) -> tuple[Order | None, Exit | None]:
        outcome = attempt.outcome
        if attempt.adopted:
            if outcome is None or outcome.output is None:
                return None, None
            times = run_times(Path(outcome.output)) if self.values else None
            known = times is not None and not times.lost and outcome.ended is not None and outcome.duration_s
            window = Exit(None, None, outcome.ended or 0.0, 0.0, outcome.duration_s or 0.0) if known else None
            return as_if_started(record, outcome.output), window
        folder = attempt_folder(self.desk.state, *attempt.key)
        order = read_order(folder)
        if order is None:
            return None, None
        if outcome and outcome.output:  # a folder that came later may fit the same glob
            order = replace(order, output=outcome.output)
        try:
            return order, read_exit(str(folder / "exit.json"), attempt.token)
        except OSError:
            return order, None

    def origins(
        self, record: CellRecord, campaign: Campaign, used: str | None = None, metrics: Sequence[str] = ()
    ) -> tuple[Origins, Order | None]:
        """`used`: the file of its output that an evaluation's command names, which is then what was evaluated.

        `metrics`: those whose learning curves are read, too; evaluations on a split have none.
        """
        attempt = record.completed
        order, exit_ = self.order(record, attempt) if attempt else (None, None)
        if order is None:
            return Origins(), None
        job = campaign.job(record.cell.job)
        best = (campaign.decision or {}).get("checkpoint", "last") != "last"
        found = read_origins(
            job, record.cell, order, exit_, self.hashes.sha256, values=self.values, best=best, used=used,
            metrics=() if "split" in job.axes else metrics,
        )  # fmt: skip
        return replace(found, files={**found.files, **self._configs(order.output)}), order

    def _configs(self, output: str) -> dict[str, str | None]:
        """What red flags are read from."""
        paths = [Path(output, name) for name in FILES]
        return {str(path): self.hashes.sha256(path) for path in paths if path.is_file()}


def used_files(named: Named) -> dict[str, str]:
    """Cell -> the one file of its output that the commands of those who need it name; left out where they differ."""
    found: dict[str, set[str]] = {}
    for needs in named.values():
        for need, paths in needs.items():
            found.setdefault(need, set()).update(paths)
    return {name: paths.pop() for name, paths in found.items() if len(paths) == 1}


def named_files(reader: Reader, records: Sequence[CellRecord], needs: Mapping[str, tuple[str, ...]]) -> Named:
    """Cell -> a cell that it needs -> the files of that one's output that its command names."""
    by_name = {record.cell.id: record for record in records}
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for record in records:
        attempt = record.completed
        order, _ = reader.order(record, attempt) if attempt and needs.get(record.cell.id) else (None, None)
        for need in needs.get(record.cell.id, ()) if order and not (attempt and attempt.adopted) else ():
            done = by_name[need].completed if need in by_name else None
            output = done.outcome.output if done and done.outcome else None
            words = [word.rpartition("=")[2] for word in order.argv] if order and output else []
            inside = [word for word in words if word.startswith(f"{output}/") and Path(word).exists()]
            if inside:
                found.setdefault(record.cell.id, {})[need] = tuple(inside)
    return found


def inside_of(named: Named, records: Sequence[CellRecord]) -> dict[str, list[str]]:
    """Cell -> the same files, as they are called inside of the outputs that they lie in."""
    outputs = {r.cell.id: done.outcome.output or "" for r in records if (done := r.completed) and done.outcome}
    return {
        name: [path.removeprefix(outputs[need]) for need, paths in needs.items() for path in paths]
        for name, needs in named.items()
    }


def basis_now(desk: Desk) -> Basis:
    """As `gather` has it, without reading a value."""
    status = declared_now(desk)
    campaign = status.state.campaign
    reader = Reader(desk, HashCache(desk.state), values=False)
    needs = needed_cells(campaign, [cell.record.cell for cell in status.cells])
    stamped = {}
    records = list(done_cells(status))
    used = used_files(named_files(reader, records, needs))
    for record in records:
        name = record.cell.id
        found, order = reader.origins(record, campaign, used.get(name))
        stamped[name] = stamp_of(desk, record, found, order, needs.get(name, ()))
    reader.hashes.save()
    missing = tuple(
        cell.record.cell.id
        for cell in status.cells
        if not cell.record.done and cell.record.cell.job in relevant(campaign)
    )
    told = digest_of(status.state, words_of_people(desk.store.events()))
    return Basis(campaign.name, sections_of(campaign), stamped, 0, 0, missing, state=told)


def needs_now(desk: Desk) -> dict[str, tuple[str, ...]]:
    status = declared_now(desk)
    return needed_cells(status.state.campaign, [cell.record.cell for cell in status.cells])


def done_cells(status: Status) -> Iterator[CellRecord]:
    jobs = relevant(status.state.campaign)
    return (cell.record for cell in status.cells if cell.record.done and cell.record.cell.job in jobs)


def stamp_of(
    desk: Desk, record: CellRecord, found: Origins, order: Order | None, needs: tuple[str, ...],
    attempt: Attempt | None = None,
) -> CellStamp:  # fmt: skip
    """`attempt`: another one than that which made the cell DONE."""
    attempt = attempt or record.completed
    if attempt is None:
        raise LookupError(record.cell.id)
    outcome, saved = attempt.outcome, found.checkpoint
    code = order.code if order else {}
    return CellStamp(
        cell=record.cell.id,
        attempt=attempt.n,
        token=attempt.token,
        definition=attempt.hash,
        folder=str(attempt_folder(desk.state, *attempt.key)),
        output=outcome.output if outcome else None,
        adopted=attempt.adopted,
        commit=code.get("commit"),
        dirty=code.get("dirty"),
        results=dict(outcome.results) if outcome else {},
        files=dict(found.files),
        checkpoint=CheckpointStamp(saved.path, saved.sha256, saved.share) if saved else None,
        needs=needs,
        command=shlex.join(order.argv) if order else "",
    )
