"""The runs that a journal names (a folder, an attempt's folder, or a cell of the campaign), and their pictures, drawn
and kept beside the journal.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import muster
from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.campaign_status import CellStatus
from muster.app.campaign.observe_campaign import observe_campaign
from muster.app.gates.staged_artifacts import parse_staged_artifacts
from muster.app.gates.staged_pictures import PARTIAL_MARK, draw_staged_pictures, read_staged_files
from muster.app.journal.journal_versions import journal_name
from muster.app.journal.recorded_run import FileProblem, RecordedRun, RunCommand, RunPicture, parse_command_flags
from muster.app.journal.run_files import (
    RunFolderReader,
    UnreadableCommand,
    find_command_file,
    read_command_file,
    read_script_of_command,
)
from muster.app.metrics.cell_history import attempt_that_counts, output_of_cell
from muster.files.campaign_ownership import find_readable_root
from muster.files.state_folder import attempt_folder
from muster.model.attempt import Order
from muster.model.cell import match_cell_patterns
from muster.model.errors import MusterError, UsageError
from muster.readers.attempt_facts import read_order
from muster.readers.file_hashes import HashCache
from muster.readers.resume import orders_before

PICTURE_FORMAT = "png"


@dataclass(frozen=True, slots=True)
class IllustratedRun:
    run: RecordedRun
    files: dict[Path, bytes]
    overtaken: tuple[Path, ...] = ()  # pictures of a run that was not over, which it is now


def illustrate_run(base: Path, version: int, run: RecordedRun, folder: Path, language: str) -> IllustratedRun:
    """With the pictures that are drawn from its files. They lie beside the journal: a run's own folder stays as it is.

    `base`: the journal's folder, `folder`: the run's.
    """
    mark = PARTIAL_MARK if run.state not in ("", "DONE") else ""
    try:
        found = read_staged_files([folder])
        artifacts = parse_staged_artifacts(found.texts, found.hashes, found.thinned, found.notes)
        drawn = draw_staged_pictures(
            artifacts, language, of=run.title, version=muster.__version__, mark=mark, kinds=(PICTURE_FORMAT,)
        )
    except Exception as error:  # a text without its picture is better than none
        why = f"{type(error).__name__}: {error}"
        return IllustratedRun(replace(run, troubles=(*run.troubles, FileProblem("trouble.figures", {"why": why}))), {})
    place = Path(f"{journal_name(version)}_files") / run_folder_name(run.name)
    files: dict[Path, bytes] = {}
    pictures: list[RunPicture] = []
    overtaken: list[Path] = []
    for name, data in drawn.files.items():
        stem = name.rpartition(".")[0]
        file = f"{stem}.{mark}.{PICTURE_FORMAT}" if mark else name
        files[base / place / file] = data
        pictures.append(RunPicture(str(place / file).replace(os.sep, "/"), drawn.captions.get(stem, "")))
        overtaken += [] if mark else [base / place / f"{stem}.{PARTIAL_MARK}.{PICTURE_FORMAT}"]
    own = _pictures_left_by_run(run.pictures, [name.rpartition(".")[0] for name in drawn.files])
    return IllustratedRun(replace(run, pictures=(*pictures, *own)), files, tuple(overtaken))


def _pictures_left_by_run(pictures: Sequence[RunPicture], drawn: Sequence[str]) -> list[RunPicture]:
    """What the run itself left; of one picture in several formats the first, and none that is drawn here already."""
    found: dict[str, RunPicture] = {}
    for each in pictures:
        stem = each.path.rpartition(".")[0]
        if stem.rpartition("/")[2] not in drawn:
            found.setdefault(stem, each)
    return list(found.values())


def run_folder_name(name: str) -> str:
    """A folder's name for a run; two runs do not share one."""
    plain = re.sub(r"[^\w.-]+", "_", name.removeprefix("cell:")).strip("._") or "run"
    if plain == name:
        return plain
    return f"{plain[-48:]}-{hashlib.sha256(name.encode('utf-8', 'surrogateescape')).hexdigest()[:6]}"


CELL_PREFIX = "cell:"
MOST_CELLS = 12
LONGEST_TITLE = 120
LOOKED_FOR = (
    "eval_history.jsonl, gate_trace.jsonl, schedule_trace.json, stage_summary.json, training_stats.pkl, train.jsonl"
)


@dataclass(frozen=True, slots=True)
class JournalRunPlace:
    """Where a run lies, before it is read."""

    name: str  # as in the markers
    title: str
    folder: Path
    order: Order | None = None
    state: str = ""
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class _JournalCampaign:
    desk: CampaignHandle
    cells: dict[str, CellStatus]


class RunFinder:
    """`base`: the journal's folder, which paths in it are relative to; `start`: where the command was given."""

    def __init__(self, base: Path, start: Path) -> None:
        self._base, self._start = base, start
        self._campaigns: dict[Path, _JournalCampaign] = {}
        self._hashes: HashCache | None = None
        self._read: dict[str, RecordedRun] = {}
        self._folders: dict[str, Path] = {}

    # -- names

    def asked(self, target: str) -> list[JournalRunPlace]:
        """What a person named: a folder that exists is meant as such, else a cell or a glob of cells."""
        folder = self._start / target
        if folder.is_dir():
            return [self._of_folder(folder)]
        if folder.exists():
            raise UsageError(f"--run {target}: this is a file", hint="name the folder that the run wrote to")
        here = self._here()
        known = here.cells if here else {}
        wanted, useless = match_cell_patterns([target.removeprefix(CELL_PREFIX)], list(known))
        if useless:
            hint = f"cells are {', '.join(list(known)[:5])}" if known else "name a folder that exists"
            raise UsageError(f"--run {target}: there is no such folder{' or cell' if known else ''}", hint=hint)
        return [self._of_cell(here, known[name]) for name in wanted if here]

    def marked(self, name: str) -> JournalRunPlace | None:
        """What a marker names; None: it is not there any more."""
        if name.startswith(CELL_PREFIX):
            own = self._campaign(_roots_above(self._base))
            cell = own.cells.get(name.removeprefix(CELL_PREFIX)) if own else None
            return self._of_cell(own, cell) if own and cell and attempt_that_counts(cell.record) else None
        folder = self._base / name
        return self._of_folder(folder) if folder.is_dir() else None

    def all_cells(self) -> tuple[list[JournalRunPlace], int]:
        """Those that have run and left something to tell of, the first few; and how many there are in all."""
        here = self._here()
        ran = (
            [self._of_cell(here, cell) for cell in here.cells.values() if attempt_that_counts(cell.record)]
            if here
            else []
        )
        told = [place for place in ran if not self.nothing(self.read(place))]
        return told[:MOST_CELLS], len(told)

    def _here(self) -> _JournalCampaign | None:
        """The campaign where the command was given; else the journal's."""
        return self._campaign([*_roots_above(self._start), *_roots_above(self._base)])

    def _campaign(self, roots: Sequence[Path]) -> _JournalCampaign | None:
        if not roots:
            return None
        root = roots[0]
        if root not in self._campaigns:
            try:
                desk = CampaignHandle.open(root)
            except UsageError:
                return None
            self._campaigns[root] = _JournalCampaign(
                desk, {cell.record.cell.id: cell for cell in observe_campaign(desk).cells}
            )
        return self._campaigns[root]

    def _of_folder(self, folder: Path) -> JournalRunPlace:
        real = folder.resolve()
        name = os.path.relpath(real, self._base.resolve()).replace(os.sep, "/")
        order = read_order(real) or _order_of_output(real)
        title = order.cell if order else real.name
        return JournalRunPlace(name, title, Path(order.out) if order and Path(order.out).is_dir() else real, order)

    def _of_cell(self, campaign: _JournalCampaign, cell: CellStatus) -> JournalRunPlace:
        desk, attempt, name = campaign.desk, attempt_that_counts(cell.record), cell.record.cell.id
        if attempt is None:
            hint = f"`muster why {shlex.quote(name)}` says what it waits for"
            raise MusterError(f"{name} has not run yet", where=str(desk.root), hint=hint)
        folder = attempt_folder(desk.state, *attempt.place)
        marker = f"{CELL_PREFIX}{name}"
        if _roots_above(self._base) != [desk.root]:  # the journal's own campaign may have a cell of this name
            marker = os.path.relpath(folder.resolve(), self._base.resolve()).replace(os.sep, "/")
        output = Path(output_of_cell(desk.state, cell) or "")
        return JournalRunPlace(marker, name, output, read_order(folder), str(cell.verdict.state))

    # -- content

    def read(self, place: JournalRunPlace) -> RecordedRun:
        if place.name not in self._read:
            self._folders[place.name] = place.folder
            self._read[place.name] = self._whole(place)
        return self._read[place.name]

    def folder_of(self, name: str) -> Path:
        """Of a run that was read."""
        return self._folders[name]

    def nothing(self, run: RecordedRun) -> bool:
        """Nothing in it that the journal tells of."""
        return not (run.evaluations or run.gates or run.schedule or run.summary or run.training)

    def refuse_empty(self, place: JournalRunPlace, run: RecordedRun) -> None:
        if self.nothing(run) and not (run.files and run.command):
            hint = f"looked for {LOOKED_FOR}"
            raise MusterError(
                f"nothing that a journal tells of is in {place.title}", where=str(place.folder), hint=hint
            )

    def _whole(self, place: JournalRunPlace) -> RecordedRun:
        folder = RunFolderReader(place.folder, self._base)
        found = folder.read(self.hash)
        command, trouble = self._command(place, folder.earliest)
        title = place.title
        if command and not place.name.startswith(CELL_PREFIX):
            title = parse_command_flags(command.argv).get("run_name") or title
        title = " ".join(title.split())[:LONGEST_TITLE]
        return RecordedRun(
            place.name,
            title,
            folder.shown(str(place.folder)),
            command,
            found.evaluations,
            found.gates,
            found.schedule,
            found.schedule_source,
            found.summary,
            found.summary_source,
            found.training,
            found.files,
            tuple(RunPicture(path) for path in found.pictures),
            (*trouble, *found.troubles),
            place.state,
        )

    def _command(
        self, place: JournalRunPlace, earliest: float | None
    ) -> tuple[RunCommand | None, tuple[FileProblem, ...]]:
        order = place.order
        if order:
            return self._ordered(order, earliest), ()
        path = find_command_file(place.folder)
        if path is None:
            return None, ()
        shown = os.path.relpath(path, self._base).replace(os.sep, "/")
        try:
            argv, cwd = read_command_file(path)
        except UnreadableCommand as error:
            return None, (FileProblem("trouble.order", {"file": shown, "why": str(error)}),)
        places = [*([Path(cwd)] if cwd else []), self._start, self._base, place.folder, *self._root()]
        script = read_script_of_command(argv, places, earliest)
        return RunCommand(argv, shown, self._shown_cwd(cwd) if cwd else "", script), ()

    def _ordered(self, order: Order, earliest: float | None) -> RunCommand:
        first = _first_order_of(order)
        script = read_script_of_command(first.argv, [Path(order.cwd)], earliest)
        commit, dirty = str(order.code.get("commit") or ""), bool(order.code.get("dirty"))
        resumed = order.resumed_from is not None
        cwd = self._shown_cwd(order.cwd)
        return RunCommand(first.argv, "attempt.json", cwd, script, commit, dirty, order.n, resumed, first.out)

    def _shown_cwd(self, cwd: str) -> str:
        return os.path.relpath(cwd, self._base).replace(os.sep, "/")

    def _root(self) -> list[Path]:
        return _roots_above(self._base)

    def hash(self, path: str) -> str | None:
        if self._hashes is None:
            root = next(iter(self._root()), self._base)
            self._hashes = HashCache(root / ".muster")
        return self._hashes.sha256(path)

    def close(self) -> None:
        if self._hashes is not None and self._campaigns:
            self._hashes.save()
        for each in self._campaigns.values():
            each.desk.close()


def _roots_above(folder: Path) -> list[Path]:
    try:
        return [find_readable_root(folder)]
    except UsageError:
        return []


def _first_order_of(order: Order) -> Order:
    """The attempt that it goes on from began with the flags; `resume:` may name a checkpoint and nothing else."""
    return next(iter(orders_before(order)), order)


def _order_of_output(folder: Path) -> Order | None:
    """Of the attempt whose output this is."""
    order = read_order(folder.parent)
    return order if order and Path(order.out).resolve() == folder else None


def distinct_run_places(places: Sequence[JournalRunPlace]) -> list[JournalRunPlace]:
    return list({place.name: place for place in places}.values())


def with_distinct_title(run: RecordedRun, others: Sequence[RecordedRun]) -> RecordedRun:
    """Two runs of one name are told apart by where they lie."""
    same = [each for each in others if each.title == run.title and each.name != run.name]
    return replace(run, title=f"{run.title} ({run.name})") if same else run
