"""What derived files rest on: the DONE cells as `campaign.yaml` declares them now, their attempts, and the files
behind their numbers, with those that can't be read any more or were left out of a pack.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from muster.app.campaign.accepted_flags import find_accepted_flags
from muster.app.campaign.campaign_code import CodeReader
from muster.app.campaign.campaign_cost import CampaignCost, reckon_cost
from muster.app.campaign.campaign_digests import (
    count_decisions_by_people,
    digest_accepted_flags,
    digest_campaign_sections,
    digest_campaign_state,
    jobs_behind_results,
)
from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.campaign_status import Status
from muster.app.campaign.cell_definitions import hash_definitions
from muster.app.campaign.load_campaign import read_campaign_file
from muster.app.campaign.observe_campaign import observe_campaign
from muster.app.campaign.stamp import CellStamp, CheckpointStamp, Stamp, StampBasis
from muster.engine.plan.up_preview import state_as_declared
from muster.engine.ports.store import LoggedDecision
from muster.files.campaign_snapshots import load_campaign_snapshot
from muster.files.safe_open import read_plain_file
from muster.files.state_folder import attempt_folder
from muster.model.attempt import Attempt, CellRecord, Order
from muster.model.attempt_snapshot import ExitRecord
from muster.model.campaign import Campaign, Job
from muster.model.cell import map_needed_cells
from muster.model.errors import MusterError
from muster.model.provenance import CheckpointOrigin, ResultOrigins, UnreadResults
from muster.readers.attempt_facts import read_exit_file, read_order
from muster.readers.discovery.axis_values import RUN_CONFIG_FILES
from muster.readers.file_hashes import HashCache
from muster.readers.proof import STEP_FILE_KINDS, FileProofReader, order_of_found_run
from muster.readers.proof_steps import RECORD_FILE_KINDS
from muster.readers.result_origins import read_result_origins
from muster.readers.resume import orders_before
from muster.readers.run_times import times_of_run_folder
from muster.text.catalogue import load_catalogue
from muster.text.describe_run import describe_code_of_cell
from muster.text.phrases import phrase
from muster.text.sentences import join_few_names

OMITTED_FILE = "left_out.json"


@dataclass(frozen=True, slots=True)
class OmittedCheckpoints:
    """By the token of the attempt that saved it. Paths as they are recorded: relative to the campaign's folder."""

    checkpoints: Mapping[str, CheckpointOrigin] = field(default_factory=dict)
    muster: int = 1

    def names(self, path: str) -> bool:
        """Whether it is one of them, or lies in one that is a folder."""
        return any(path == each.path or path.startswith(f"{each.path}/") for each in self.checkpoints.values())


def read_omitted_checkpoints(state: Path, here: Callable[[str], str]) -> OmittedCheckpoints:
    """Nothing where this was never unpacked. `here`: where a recorded path leads to now."""
    try:
        found = msgspec.json.decode(read_plain_file(str(state / OMITTED_FILE)), type=OmittedCheckpoints)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return OmittedCheckpoints()
    return place_omitted_checkpoints(found, here)


def place_omitted_checkpoints(found: OmittedCheckpoints, place: Callable[[str], str]) -> OmittedCheckpoints:
    return replace(
        found, checkpoints={k: replace(each, path=place(each.path)) for k, each in found.checkpoints.items()}
    )


MOST_UNREAD_CELLS = 5


def find_unread_results(
    record: CellRecord, job: Job, found: ResultOrigins, exists: Callable[[str], bool] = lambda path: Path(path).exists()
) -> UnreadResults | None:
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
    return UnreadResults(tuple(each.name for each in lost), path, exists(path))


def rests_on_unread_files(cell: CellStamp) -> bool:
    """Whether a stamp vouches for numbers whose files nobody could read; earlier versions name no file then."""
    return bool(cell.unread or (cell.results and not cell.files))


def refuse_to_lose_report(before: Stamp | None, unread: Mapping[str, str], where: str) -> None:
    """`before`: the report that is there; `unread`: cell -> why. A sound one is not given up for this one."""
    if not unread or before is None or any(map(rests_on_unread_files, before.basis.cells.values())):
        return
    told = [f"{cell}: {why}" for cell, why in unread.items()]
    raise MusterError(
        f"results of {phrase('count.cell', n=len(told))} can't be read, and the report that is there was made "
        f"when they could: it was left as it is. {join_few_names(told, MOST_UNREAD_CELLS, '; ')}",
        where=where,
        hint="bring the files back, or mount their disk, and try again; "
        "to report without them, move reports/stamps/ away first",
        code="unread",
    )


def observe_declared_campaign(desk: CampaignHandle, *, ledger: bool = False) -> Status:
    """Whether or not it was taken in; where campaign.yaml was deleted, as it was taken in."""
    before = desk.load()
    if not desk.file.exists():
        return observe_campaign(desk, before, ledger=ledger)
    found = read_campaign_file(desk.file)
    if load_campaign_snapshot(desk.state, before.campaign_hash).text == found.text:
        return observe_campaign(desk, before, ledger=ledger)
    hashed = hash_definitions(
        found.campaign, str(desk.root), CodeReader(found.campaign, desk.root), desk.store.origin()
    )
    return observe_campaign(desk, state_as_declared(found.campaign, hashed, before), ledger=ledger)


STEP_KINDS = (*STEP_FILE_KINDS, *RECORD_FILE_KINDS)  # kinds of progress that count steps
NamedFiles = Mapping[str, Mapping[str, tuple[str, ...]]]


@dataclass(slots=True)
class OriginReader:
    """Reads what DONE cells left behind, each file once."""

    desk: CampaignHandle
    hashes: HashCache
    values: bool = True  # False: only which files there are and what they hash to
    left_out: OmittedCheckpoints = field(init=False)  # of the pack that this was unpacked from

    def __post_init__(self) -> None:
        self.left_out = read_omitted_checkpoints(self.desk.state, self.desk.store.where().here)

    def order(self, record: CellRecord, attempt: Attempt) -> tuple[Order | None, ExitRecord | None]:
        outcome = attempt.outcome
        if attempt.adopted:
            if outcome is None or outcome.output is None:
                return None, None
            times = times_of_run_folder(Path(outcome.output)) if self.values else None
            known = times is not None and not times.lost and outcome.ended is not None and outcome.duration_s
            window = ExitRecord(None, None, outcome.ended or 0.0, 0.0, outcome.duration_s or 0.0) if known else None
            return order_of_found_run(record, outcome.output), window
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
            return order, read_exit_file(str(folder / "exit.json"), attempt.token)
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
        if not any(source.kind in STEP_KINDS for source in job.progress):
            return None
        orders = [read_order(attempt_folder(self.desk.state, *attempt.place)) for attempt in record.current]
        proofs = FileProofReader()
        found = [proofs.progress(job, record.cell, order) if order else None for order in orders]
        if any(each and each.step is not None for each in found):
            return True
        return False if all(each and each.output for each in found) else None

    def origins(
        self, record: CellRecord, campaign: Campaign, used: str | None = None, metrics: Sequence[str] = ()
    ) -> tuple[ResultOrigins, Order | None]:
        """`used`: the file of its output that an evaluation's command names, which is then what was evaluated.

        `metrics`: those whose learning curves are read, too; evaluations on a split have none.
        """
        attempt = record.completed
        order, exit_ = self.order(record, attempt) if attempt else (None, None)
        if order is None:
            return ResultOrigins(), None
        job = campaign.job(record.cell.job)
        best = campaign.decision is not None and campaign.decision.checkpoint != "last"
        found = read_result_origins(
            job,
            record.cell,
            order,
            exit_,
            self.hashes.sha256,
            values=self.values,
            best=best,
            used=used,
            metrics=() if "split" in job.axes else metrics,
            before=self._before(record, order),
        )
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
        paths = [Path(output, name) for name in RUN_CONFIG_FILES]
        return {str(path): self.hashes.sha256(path) for path in paths if path.is_file()}


def files_used_of_cells(named: NamedFiles) -> dict[str, str]:
    """Cell -> the one file of its output that the commands of those who need it name; left out where they differ."""
    found: dict[str, set[str]] = {}
    for needs in named.values():
        for need, paths in needs.items():
            found.setdefault(need, set()).update(paths)
    return {name: paths.pop() for name, paths in found.items() if len(paths) == 1}


def files_named_by_commands(
    reader: OriginReader, records: Sequence[CellRecord], needs: Mapping[str, tuple[str, ...]]
) -> NamedFiles:
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


def paths_inside_outputs(named: NamedFiles, records: Sequence[CellRecord]) -> dict[str, list[str]]:
    """Cell -> the same files, as they are called inside of the outputs that they lie in."""
    outputs = {r.cell.id: done.outcome.output or "" for r in records if (done := r.completed) and done.outcome}
    return {
        name: [path.removeprefix(outputs[need]) for need, paths in needs.items() for path in paths]
        for name, needs in named.items()
    }


def current_stamp_basis(desk: CampaignHandle) -> StampBasis:
    """As `gather` has it, without reading a value."""
    status = observe_declared_campaign(desk)
    campaign = status.state.campaign
    reader = OriginReader(desk, HashCache(desk.state), values=False)
    needs = map_needed_cells(campaign, [cell.record.cell for cell in status.cells])
    stamped = {}
    records = list(done_cells_behind_results(status))
    used = files_used_of_cells(files_named_by_commands(reader, records, needs))
    for record in records:
        name = record.cell.id
        found, order = reader.origins(record, campaign, used.get(name))
        stamped[name] = make_cell_stamp(desk, record, found, order, needs.get(name, ()))
    reader.hashes.save()
    missing = tuple(
        cell.record.cell.id
        for cell in status.cells
        if not cell.record.done and cell.record.cell.job in jobs_behind_results(campaign)
    )
    events = desk.store.events()
    told = digest_campaign_state(status.state, count_decisions_by_people(events))
    accepted = digest_accepted_flags(tuple(find_accepted_flags(events)))
    declared = digest_campaign_sections(campaign, desk.store.origin())
    return StampBasis(campaign.name, declared, stamped, 0, 0, missing, accepted=accepted, state=told)


def current_needs(desk: CampaignHandle) -> dict[str, tuple[str, ...]]:
    status = observe_declared_campaign(desk)
    return map_needed_cells(status.state.campaign, [cell.record.cell for cell in status.cells])


def done_cells_behind_results(status: Status) -> Iterator[CellRecord]:
    jobs = jobs_behind_results(status.state.campaign)
    return (cell.record for cell in status.cells if cell.record.done and cell.record.cell.job in jobs)


def _make_checkpoint_stamp(saved: CheckpointOrigin) -> CheckpointStamp:
    return CheckpointStamp(saved.path, saved.sha256, saved.share, saved.step, saved.steps_share)


def make_cell_stamp(
    desk: CampaignHandle,
    record: CellRecord,
    found: ResultOrigins,
    order: Order | None,
    needs: tuple[str, ...],
    attempt: Attempt | None = None,
) -> CellStamp:
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
        checkpoint=_make_checkpoint_stamp(saved) if saved else None,
        needs=needs,
        command=shlex.join(order.argv) if order else "",
        formerly=record.formerly,
        code=describe_code_of_cell(code, load_catalogue("report", "en")) if order else "",
    )


def reckon_open_campaign(desk: CampaignHandle) -> tuple[Status, list[LoggedDecision], CampaignCost]:
    """Changes nothing."""
    status = observe_declared_campaign(desk, ledger=True)
    events = desk.store.events()
    return status, events, reckon_cost(status, events, desk.clock.wall())
