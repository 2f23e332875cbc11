"""What every derived file rests on: DONE cells, their attempts, and the files behind their numbers."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from muster.acts.accepted import accepted_flags
from muster.acts.adopt import as_if_started
from muster.acts.left_checkpoints import LeftOut, read_left_out
from muster.acts.run_config import FILES
from muster.acts.run_times import run_times
from muster.acts.stamping import digest_of, digest_of_flags, relevant, sections_of, words_of_people
from muster.acts.status import Status
from muster.domain.attempt import Attempt, CellRecord
from muster.domain.campaign import Campaign, Job
from muster.domain.cell import needed_cells
from muster.domain.order import Order
from muster.domain.origins import Checkpoint, Origins
from muster.domain.sighting import Exit
from muster.execute.local import read_order
from muster.execute.paths import attempt_folder
from muster.execute.resumed import orders_before
from muster.observe.facts import read_exit
from muster.observe.hashes import HashCache
from muster.observe.origins import read_origins
from muster.observe.proof import RECORDS, STEPS, FileProofReader
from muster.report.code_words import code_words
from muster.report.stamp import Basis, CellStamp, CheckpointStamp
from muster.report.words import Words
from muster.wiring.declared import declared_now
from muster.wiring.desk import Desk

STEPPED = (*STEPS, *RECORDS)  # kinds of progress that count steps
Named = Mapping[str, Mapping[str, tuple[str, ...]]]


@dataclass(slots=True)
class Reader:
    """Reads what DONE cells left behind, each file once."""

    desk: Desk
    hashes: HashCache
    values: bool = True  # False: only which files there are and what they hash to
    left_out: LeftOut = field(init=False)  # of the pack that this was unpacked from

    def __post_init__(self) -> None:
        self.left_out = read_left_out(self.desk.state, self.desk.store.where().here)

    def order(self, record: CellRecord, attempt: Attempt) -> tuple[Order | None, Exit | None]:
        outcome = attempt.outcome
        if attempt.adopted:
            if outcome is None or outcome.output is None:
                return None, None
            times = run_times(Path(outcome.output)) if self.values else None
            known = times is not None and not times.lost and outcome.ended is not None and outcome.duration_s
            window = Exit(None, None, outcome.ended or 0.0, 0.0, outcome.duration_s or 0.0) if known else None
            return as_if_started(record, outcome.output), window
        folder = attempt_folder(self.desk.state, *attempt.place)
        order = read_order(folder)
        if order is None:
            return None, None
        where = self.desk.store.where()
        if where.outside:
            order = replace(order, argv=tuple(map(where.text, order.argv)), cwd=where.here(order.cwd))
        if outcome and outcome.output:  # a folder that came later may fit the same glob
            order = replace(order, output=outcome.output)
        try:
            return order, read_exit(str(folder / "exit.json"), attempt.token)
        except OSError:
            return order, None

    def chain(self, record: CellRecord) -> tuple[int, ...]:
        """The attempts that a DONE cell rests on, oldest first; none where it was made in one go."""
        done = record.completed
        found: list[int] = []
        for attempt in reversed(record.attempts[: done.n] if done and not done.adopted else ()):
            found.append(attempt.n)
            order = read_order(attempt_folder(self.desk.state, *attempt.place))
            if order is None or not order.resumed_from:
                break
        return tuple(reversed(found)) if len(found) > 1 else ()

    def stepped(self, record: CellRecord, job: Job) -> bool | None:
        """Whether a run of the cell made a step, by what it logged; None: it logs none, or its files are gone."""
        if not any(source.kind in STEPPED for source in job.progress):
            return None
        orders = [read_order(attempt_folder(self.desk.state, *attempt.place)) for attempt in record.current]
        proofs = FileProofReader()
        found = [proofs.progress(job, record.cell, order) if order else None for order in orders]
        if any(each and each.step is not None for each in found):
            return True
        return False if all(each and each.output for each in found) else None

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
            metrics=() if "split" in job.axes else metrics, before=self._before(record, order),
        )  # fmt: skip
        left = self.left_out.checkpoints.get(attempt.token) if attempt else None
        if left and (found.checkpoint is None or found.checkpoint.sha256 is None):
            found = replace(found, checkpoint=left)
        return replace(found, files={**found.files, **self._configs(order.output)}), order

    def _before(self, record: CellRecord, order: Order) -> list[Order]:
        """Of the attempts that it goes on from: their logs are the beginning of its history."""
        known = {each.n: each for each in record.attempts}
        found = [self.order(record, known[each.n])[0] for each in orders_before(order) if each.n in known]
        return [each for each in found if each]

    def there(self, path: str) -> bool:
        return Path(path).exists() or self.left_out.names(path)

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
            inside = [word for word in words if word.startswith(f"{output}/") and reader.there(word)]
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
    events = desk.store.events()
    told = digest_of(status.state, words_of_people(events))
    accepted = digest_of_flags(tuple(accepted_flags(events)))
    declared = sections_of(campaign, desk.store.origin())
    return Basis(campaign.name, declared, stamped, 0, 0, missing, accepted=accepted, state=told)


def needs_now(desk: Desk) -> dict[str, tuple[str, ...]]:
    status = declared_now(desk)
    return needed_cells(status.state.campaign, [cell.record.cell for cell in status.cells])


def done_cells(status: Status) -> Iterator[CellRecord]:
    jobs = relevant(status.state.campaign)
    return (cell.record for cell in status.cells if cell.record.done and cell.record.cell.job in jobs)


def _checkpoint_stamp(saved: Checkpoint) -> CheckpointStamp:
    return CheckpointStamp(saved.path, saved.sha256, saved.share, saved.step, saved.steps_share)


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
        folder=str(attempt_folder(desk.state, *attempt.place)),
        output=outcome.output if outcome else None,
        adopted=attempt.adopted,
        commit=code.get("commit"),
        dirty=code.get("dirty"),
        results=dict(attempt.results),
        files=dict(found.files),
        checkpoint=_checkpoint_stamp(saved) if saved else None,
        needs=needs,
        command=shlex.join(order.argv) if order else "",
        formerly=record.formerly,
        code=code_words(code, Words("en")) if order else "",
    )
