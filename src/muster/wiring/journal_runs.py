"""Finds the runs that a journal tells of: a folder, an attempt's folder, or a cell of the campaign."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from muster.acts.status import CellStatus
from muster.domain.cell import matching
from muster.domain.errors import MusterError, UsageError
from muster.domain.order import Order
from muster.execute.local import read_order
from muster.execute.paths import attempt_folder
from muster.execute.resumed import orders_before
from muster.observe.hashes import HashCache
from muster.observe.run_command import NoCommand, command_file, read_command_file, read_script
from muster.observe.run_files import RunFolder
from muster.report.journal.facts import Command, Picture, Run, Trouble
from muster.report.journal.flags import flags_of
from muster.wiring.desk import Desk
from muster.wiring.histories import attempt_of, output_of
from muster.wiring.roots import find_root_to_read
from muster.wiring.survey import look

CELL = "cell:"
MOST_CELLS = 12
LONGEST_TITLE = 120
LOOKED_FOR = (
    "eval_history.jsonl, gate_trace.jsonl, schedule_trace.json, stage_summary.json, training_stats.pkl, train.jsonl"
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run lies, before it is read."""

    name: str  # as in the markers
    title: str
    folder: Path
    order: Order | None = None
    state: str = ""
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class _Campaign:
    desk: Desk
    cells: dict[str, CellStatus]


class Runs:
    """`base`: the journal's folder, which paths in it are relative to; `start`: where the command was given."""

    def __init__(self, base: Path, start: Path) -> None:
        self._base, self._start = base, start
        self._campaigns: dict[Path, _Campaign] = {}
        self._hashes: HashCache | None = None
        self._read: dict[str, Run] = {}
        self._folders: dict[str, Path] = {}

    # -- names

    def asked(self, target: str) -> list[Place]:
        """What a person named: a folder that exists is meant as such, else a cell or a glob of cells."""
        folder = self._start / target
        if folder.is_dir():
            return [self._of_folder(folder)]
        if folder.exists():
            raise UsageError(f"--run {target}: this is a file", hint="name the folder that the run wrote to")
        here = self._here()
        known = here.cells if here else {}
        wanted, useless = matching([target.removeprefix(CELL)], list(known))
        if useless:
            hint = f"cells are {', '.join(list(known)[:5])}" if known else "name a folder that exists"
            raise UsageError(f"--run {target}: there is no such folder{' or cell' if known else ''}", hint=hint)
        return [self._of_cell(here, known[name]) for name in wanted if here]

    def marked(self, name: str) -> Place | None:
        """What a marker names; None: it is not there any more."""
        if name.startswith(CELL):
            own = self._campaign(_root_of(self._base))
            cell = own.cells.get(name.removeprefix(CELL)) if own else None
            return self._of_cell(own, cell) if own and cell and attempt_of(cell.record) else None
        folder = self._base / name
        return self._of_folder(folder) if folder.is_dir() else None

    def all_cells(self) -> tuple[list[Place], int]:
        """Those that have run and left something to tell of, the first few; and how many there are in all."""
        here = self._here()
        ran = [self._of_cell(here, cell) for cell in here.cells.values() if attempt_of(cell.record)] if here else []
        told = [place for place in ran if not self.nothing(self.read(place))]
        return told[:MOST_CELLS], len(told)

    def _here(self) -> _Campaign | None:
        """The campaign where the command was given; else the journal's."""
        return self._campaign([*_root_of(self._start), *_root_of(self._base)])

    def _campaign(self, roots: Sequence[Path]) -> _Campaign | None:
        if not roots:
            return None
        root = roots[0]
        if root not in self._campaigns:
            try:
                desk = Desk.open(root)
            except UsageError:
                return None
            self._campaigns[root] = _Campaign(desk, {cell.record.cell.id: cell for cell in look(desk).cells})
        return self._campaigns[root]

    def _of_folder(self, folder: Path) -> Place:
        real = folder.resolve()
        name = os.path.relpath(real, self._base.resolve()).replace(os.sep, "/")
        order = read_order(real) or _order_above(real)
        title = order.cell if order else real.name
        return Place(name, title, Path(order.out) if order and Path(order.out).is_dir() else real, order)

    def _of_cell(self, campaign: _Campaign, cell: CellStatus) -> Place:
        desk, attempt, name = campaign.desk, attempt_of(cell.record), cell.record.cell.id
        if attempt is None:
            hint = f"`muster why {shlex.quote(name)}` says what it waits for"
            raise MusterError(f"{name} has not run yet", where=str(desk.root), hint=hint)
        folder = attempt_folder(desk.state, *attempt.place)
        marker = f"{CELL}{name}"
        if _root_of(self._base) != [desk.root]:  # the journal's own campaign may have a cell of this name
            marker = os.path.relpath(folder.resolve(), self._base.resolve()).replace(os.sep, "/")
        output = Path(output_of(desk.state, cell) or "")
        return Place(marker, name, output, read_order(folder), str(cell.verdict.state))

    # -- content

    def read(self, place: Place) -> Run:
        if place.name not in self._read:
            self._folders[place.name] = place.folder
            self._read[place.name] = self._whole(place)
        return self._read[place.name]

    def folder_of(self, name: str) -> Path:
        """Of a run that was read."""
        return self._folders[name]

    def nothing(self, run: Run) -> bool:
        """Nothing in it that the journal tells of."""
        return not (run.evaluations or run.gates or run.schedule or run.summary or run.training)

    def refuse_empty(self, place: Place, run: Run) -> None:
        if self.nothing(run) and not (run.files and run.command):
            hint = f"looked for {LOOKED_FOR}"
            raise MusterError(
                f"nothing that a journal tells of is in {place.title}", where=str(place.folder), hint=hint
            )

    def _whole(self, place: Place) -> Run:
        folder = RunFolder(place.folder, self._base)
        found = folder.read(self.hash)
        command, trouble = self._command(place, folder.earliest)
        title = place.title
        if command and not place.name.startswith(CELL):
            title = flags_of(command.argv).get("run_name") or title
        title = " ".join(title.split())[:LONGEST_TITLE]
        return Run(
            place.name, title, folder.shown(str(place.folder)), command, found.evaluations, found.gates, found.schedule,
            found.schedule_source, found.summary, found.summary_source, found.training, found.files,
            tuple(Picture(path) for path in found.pictures), (*trouble, *found.troubles), place.state,
        )  # fmt: skip

    def _command(self, place: Place, earliest: float | None) -> tuple[Command | None, tuple[Trouble, ...]]:
        order = place.order
        if order:
            return self._ordered(order, earliest), ()
        path = command_file(place.folder)
        if path is None:
            return None, ()
        shown = os.path.relpath(path, self._base).replace(os.sep, "/")
        try:
            argv, cwd = read_command_file(path)
        except NoCommand as error:
            return None, (Trouble("trouble.order", {"file": shown, "why": str(error)}),)
        places = [*([Path(cwd)] if cwd else []), self._start, self._base, place.folder, *self._root()]
        script = read_script(argv, places, earliest)
        return Command(argv, shown, self._shown_cwd(cwd) if cwd else "", script), ()

    def _ordered(self, order: Order, earliest: float | None) -> Command:
        first = _began(order)
        script = read_script(first.argv, [Path(order.cwd)], earliest)
        commit, dirty = str(order.code.get("commit") or ""), bool(order.code.get("dirty"))
        resumed = order.resumed_from is not None
        cwd = self._shown_cwd(order.cwd)
        return Command(first.argv, "attempt.json", cwd, script, commit, dirty, order.n, resumed, first.out)

    def _shown_cwd(self, cwd: str) -> str:
        return os.path.relpath(cwd, self._base).replace(os.sep, "/")

    def _root(self) -> list[Path]:
        return _root_of(self._base)

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


def _root_of(folder: Path) -> list[Path]:
    try:
        return [find_root_to_read(folder)]
    except UsageError:
        return []


def _began(order: Order) -> Order:
    """The attempt that it goes on from began with the flags; `resume:` may name a checkpoint and nothing else."""
    return next(iter(orders_before(order)), order)


def _order_above(folder: Path) -> Order | None:
    """Of the attempt whose output this is."""
    order = read_order(folder.parent)
    return order if order and Path(order.out).resolve() == folder else None


def distinct(places: Sequence[Place]) -> list[Place]:
    return list({place.name: place for place in places}.values())


def titled(run: Run, others: Sequence[Run]) -> Run:
    """Two runs of one name are told apart by where they lie."""
    same = [each for each in others if each.title == run.title and each.name != run.name]
    return replace(run, title=f"{run.title} ({run.name})") if same else run
