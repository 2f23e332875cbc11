"""The logged history of a cell: which attempt counts, the chain of attempts that it resumes, where their logs lie,
and why there is none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.campaign_status import CellStatus, Status
from muster.app.campaign.stamp import CellStamp
from muster.app.facts.stamp_basis import OriginReader, make_cell_stamp
from muster.files.state_folder import attempt_folder
from muster.model.attempt import Attempt, CellRecord
from muster.model.cell import map_needed_cells
from muster.model.provenance import ResultOrigins, Resumption
from muster.model.variant import VARIANT_AXIS
from muster.readers.discovery.folder_walk import LOG_WALK_PATIENCE_S, LOGS_LOOKED_FOR
from muster.readers.file_hashes import HashCache
from muster.readers.log_rows import step_in_checkpoint_name
from muster.readers.records.joined_history import AttemptLogs, join_attempt_runs
from muster.readers.records.logged_runs import LoggedRun, MeasuredRun, RunMeter, newest_run_in
from muster.readers.resume import resume_chain
from muster.rules.metric_summary import Summary

KeyFilter = Callable[[str], bool]


def accept_every_key(_: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class CellHistory:
    """`run` and `measured` go together; both None: nothing was found."""

    output: str  # where it should lie
    run: LoggedRun | None = None
    measured: MeasuredRun | None = None
    told: tuple[str, ...] = ()  # what was not looked at, or can't be read
    printed: bool = False  # nothing is in the output: it is what the run printed

    @property
    def keys(self) -> Mapping[str, Summary]:
        return self.measured.keys if self.measured else {}

    @property
    def resumed(self) -> Resumption | None:
        """None: one attempt wrote all of it."""
        return self.measured.resumed if self.measured else None

    @property
    def unread(self) -> str:
        """Why there is no value; empty where there is one."""
        if self.keys:
            return ""
        if self.run is None or self.measured is None or self.printed:
            return self._missing()
        skipped = [text for said in self.measured.sources for text in said.skipped]
        said = [*self.measured.troubles, *skipped] or [f"no value in {self.run.sources[0].path}"]
        return "; ".join([*said, *self.told])

    def _missing(self) -> str:
        printed = ["what it printed holds no number"] if self.printed else []
        if self.told:  # it may well be where nobody could look
            return "; ".join([f"what it logged was not found in {self.output}", *self.told, *printed])
        return "; ".join([f"nothing that it logged is in {self.output}: {LOGS_LOOKED_FOR}", *printed])


def measure_run(run: LoggedRun, keys: KeyFilter = accept_every_key) -> MeasuredRun:
    meter = RunMeter(run.feeds(), keys)
    meter.look()
    return meter.measured()


def attempt_that_counts(record: CellRecord) -> Attempt | None:
    """The one that counts: the one that was completed, else the newest."""
    return record.completed or record.last


def output_of_cell(state: Path, cell: CellStatus) -> str | None:
    """Where that one writes; None: there is none. `state`: the campaign's `.muster`."""
    attempt = attempt_that_counts(cell.record)
    if attempt is None:
        return None
    found = attempt.outcome.output if attempt.outcome else cell.output
    return found or str(attempt_folder(state, *attempt.place) / "out")


@dataclass(frozen=True, slots=True)
class AttemptTrace:
    """Where one attempt of a run wrote."""

    attempt: int
    places: tuple[str, ...]  # the likeliest first
    saved: float | None = None  # the step of the checkpoint that it went on from, as far as its name tells


def trace_attempt_chain(state: Path, record: CellRecord, attempt: Attempt, output: str) -> tuple[AttemptTrace, ...]:
    """The attempts that make one run, the first one first. `output`: where `attempt` writes."""
    links = resume_chain(state, *attempt.place) if attempt.n > 1 and not attempt.adopted else ()
    known = {each.n: each for each in record.attempts}
    found = []
    for link in links[:-1]:
        folder = attempt_folder(state, link.cell, link.n)
        outcome = known[link.n].outcome if link.n in known else None
        place = outcome.output if outcome and outcome.output else str(folder / "out")
        found.append(AttemptTrace(link.n, (place, str(folder)), step_in_checkpoint_name(link.resumed_from)))
    saved = step_in_checkpoint_name(links[-1].resumed_from) if links else None
    return (*found, AttemptTrace(attempt.n, (output, str(attempt_folder(state, *attempt.place))), saved))


def read_cell_history(state: Path, cell: CellStatus, keys: KeyFilter = accept_every_key) -> CellHistory | None:
    """Of the attempt that counts and those that it goes on from. None: it never ran."""
    attempt, output = attempt_that_counts(cell.record), output_of_cell(state, cell)
    if attempt is None or output is None:
        return None
    return read_chain_history(trace_attempt_chain(state, cell.record, attempt, output), keys)


def read_chain_history(chain: Sequence[AttemptTrace], keys: KeyFilter = accept_every_key) -> CellHistory:
    """From the first kind of place with a value in it; outputs come first, then the folders with what was printed."""
    output = chain[-1].places[0]
    found = CellHistory(output)
    told: list[str] = []
    for number, (run, more) in enumerate(runs_logged_in_chain(chain)):
        told += [each for each in more if each not in told]
        if run is None:
            continue
        measured = measure_run(run, keys)
        some = bool(measured.keys or measured.others)
        if some or found.run is None:
            found = CellHistory(output, run, measured, printed=number > 0)
        if some:
            break
    return CellHistory(found.output, found.run, found.measured, tuple(told), found.printed)


def has_newest_attempt_logged(chain: Sequence[AttemptTrace], run: LoggedRun) -> bool:
    """Whether the newest attempt has logged something of it."""
    return any(run.folder == place or run.folder.startswith(f"{place}/") for place in chain[-1].places)


def runs_logged_in_chain(
    chain: Sequence[AttemptTrace], patience_s: float = LOG_WALK_PATIENCE_S
) -> Iterator[tuple[LoggedRun | None, tuple[str, ...]]]:
    """What the attempts logged, as one run, for each kind of place; and what was not looked at, or can't be read."""
    for places in zip(*(each.places for each in chain), strict=True):
        looked = {place: newest_run_in(place, patience_s) for place in dict.fromkeys(places) if os.path.lexists(place)}
        runs = [found.run if (found := looked.get(place)) else None for place in places]
        parts = [AttemptLogs(each.attempt, run, each.saved) for each, run in zip(chain, runs, strict=True)]
        yield join_attempt_runs(parts), tuple(text for found in looked.values() for text in found.told)


PRINTED_KIND = "stdout"  # a kind of history


def stamp_loop_cells(
    desk: CampaignHandle, status: Status, hashes: HashCache, known: Mapping[str, CellStamp] | None = None
) -> dict[str, CellStamp]:
    """Runs that died or still run, too: what they logged is told. Checkpoints are not: no number is read from one.

    `known`: an earlier stamp, whose files are looked at again instead of being looked for.
    """
    campaign, reader = status.state.campaign, OriginReader(desk, hashes, values=False)
    if campaign.loop is None:
        return {}
    mine = [cell for cell in status.cells if cell.record.cell.job == campaign.loop.job]
    needs = map_needed_cells(campaign, [cell.record.cell for cell in status.cells])
    configs = {variant.name: variant.config for variant in status.state.loop.variants}
    found = {}
    for cell in mine:
        record, name = cell.record, cell.record.cell.id
        attempt, before = attempt_that_counts(record), (known or {}).get(name)
        if attempt is None:
            continue
        order, _ = reader.order(record, attempt)
        paths = (
            list(before.files)
            if before
            else [configs[record.cell.value(VARIANT_AXIS).name], *_files_of_cell_history(desk, cell)]
        )
        files = {path: hashes.sha256(path) for path in paths}
        found[name] = make_cell_stamp(desk, record, ResultOrigins(files=files), order, needs.get(name, ()), attempt)
    hashes.save()
    return found


def _files_of_cell_history(desk: CampaignHandle, cell: CellStatus) -> list[str]:
    """As `histories.read_history` looks for it, without reading a value."""
    attempt, output = attempt_that_counts(cell.record), output_of_cell(desk.state, cell)
    if attempt is None or output is None:
        return []
    files: list[str] = []
    for run, _ in runs_logged_in_chain(trace_attempt_chain(desk.state, cell.record, attempt, output)):
        files += run.files() if run else []
        if run and any(source.kind != PRINTED_KIND for source in run.sources):
            break
    return list(dict.fromkeys(files))
