"""Which cell a run folder belongs to: by its name, by its own config file, by a row of a status table."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from muster.files.bounded_walk import glob_paths
from muster.model.campaign import Campaign, Job
from muster.model.campaign_state import CampaignState
from muster.model.cell import Cell, make_cell_id
from muster.readers.discovery.axis_values import (
    ConfigAxisValue,
    StatusRow,
    axis_values_in_configs,
    jobs_of_row,
    read_run_configs,
    read_status_table,
)
from muster.readers.output_files import has_searchable_output, output_pattern_of_cell
from muster.readers.run_times import RunTimes
from muster.text.command_template import list_placeholders, render_template
from muster.text.sentences import join_few_names

CellsByName = dict[str, frozenset[str]]  # cell id -> the axes that the name decided


@dataclass
class RunCandidate:
    """A run folder, and what its name or a table says of it before anything in it was read."""

    path: str
    named: CellsByName = field(default_factory=dict)  # empty: nothing yet, its config file must say
    how: str = ""
    row: StatusRow | None = None


@dataclass(frozen=True, slots=True)
class MatchRefusal:
    what: str  # a path, a pattern or a row
    reason: str
    cell: str = ""  # that the run belongs to: what it took is known
    times: RunTimes | None = None


class RunSearch:
    """Collects candidates; what can't be one is in `refused`."""

    def __init__(self, state: CampaignState, folder: Path, job: str | None = None) -> None:
        self.campaign: Campaign = state.campaign
        self.jobs: list[Job] = [each for each in state.campaign.jobs if job in (None, each.name)]
        records = [record for record in state.declared if job in (None, record.cell.job)]
        self.cells: dict[str, Cell] = {record.cell.id: record.cell for record in records}
        self.folder = folder
        self.found: dict[str, RunCandidate] = {}  # by real path
        self.refused: list[MatchRefusal] = []
        self._globs: dict[str, list[str]] = {}
        self.by_output = self._by_output()

    # -- from patterns

    def add_outputs(self) -> None:
        """What fits the jobs' own `output:`."""
        for real, (path, named) in self.by_output.items():
            self.found.setdefault(real, RunCandidate(path, named, "its name fits the job's output"))
        if not any(has_searchable_output(job) for job in self.jobs):
            self.refused.append(MatchRefusal("adopt", "no job names an output folder of its own: give a pattern"))

    def add_pattern(self, pattern: str) -> None:
        axes = list(dict.fromkeys(list_placeholders(pattern)))
        unknown = [name for name in axes if name not in {axis.name for axis in self.campaign.axes}]
        if unknown:
            self.refused.append(MatchRefusal(pattern, f"{{{unknown[0]}}} is no axis of this campaign"))
            return
        fits = 0
        for cell_name, path in self._fitting(pattern, axes):
            fits += 1
            candidate = self.found.setdefault(
                os.path.realpath(path), RunCandidate(path, how=f"its name fits {pattern}")
            )
            if cell_name:
                candidate.named[cell_name] = candidate.named.get(cell_name, frozenset()) | frozenset(axes)
        if not fits:
            self.refused.append(MatchRefusal(pattern, "it fits no folder"))

    def _fitting(self, pattern: str, axes: Sequence[str]) -> Iterator[tuple[str | None, str]]:
        """(cell, folder); without placeholders no cell is named."""
        if not axes:
            yield from ((None, path) for path in self._folders(pattern, (self.folder, Path.cwd())))
            return
        for cell in self.cells.values():
            values = {axis: glob.escape(value.name) for axis, value in cell.values}
            if set(axes) <= set(values):
                for path in self._folders(render_template(pattern, values), (self.folder, Path.cwd())):
                    yield cell.id, path

    def _by_output(self) -> dict[str, tuple[str, CellsByName]]:
        found: dict[str, tuple[str, CellsByName]] = {}
        for cell in self.cells.values():
            job = self.campaign.job(cell.job)
            if not has_searchable_output(job):
                continue
            for path in self._folders(output_pattern_of_cell(job, cell), (Path(job.cwd or self.folder),)):
                _, named = found.setdefault(os.path.realpath(path), (path, {}))
                named[cell.id] = frozenset(set(list_placeholders(job.output)) & set(job.axes))
        return found

    def _folders(self, pattern: str, bases: Sequence[Path]) -> list[str]:
        """Folders that fit, from the first base where any does; never Muster's own."""
        for base in bases:
            full = str(Path(glob.escape(str(base)), pattern))
            if full not in self._globs:
                matches = map(os.path.normpath, glob_paths(full))
                self._globs[full] = sorted(path for path in matches if Path(path).is_dir() and "/.muster" not in path)
            if self._globs[full]:
                return self._globs[full]
        return []

    def undeclared(self) -> list[str]:
        """Folders that are named as the jobs' outputs are, with values that nobody declared."""
        known = {*self.found, *self.by_output}
        found: dict[str, str] = {}
        for job in self.jobs:
            if not has_searchable_output(job) or not list_placeholders(job.output):
                continue
            wild = render_template(job.output, dict.fromkeys(list_placeholders(job.output), "*"))
            if not glob.has_magic(wild.split("/")[0]):  # `*/*` would be everything
                for path in self._folders(wild, (Path(job.cwd or self.folder),)):
                    found.setdefault(os.path.realpath(path), path)
        return sorted(path for real, path in found.items() if real not in known)

    # -- from a status table

    def add_table(self, table: Path) -> None:
        for row in read_status_table(table, self.campaign):
            if row.trouble:
                self._refuse(row, row.trouble)
                # a run that the table calls failed is not taken in by its name either
                self.found.pop(os.path.realpath(self._folder_of(row, table) or ""), None)
            else:
                self._add_row(row, table)

    def _add_row(self, row: StatusRow, table: Path) -> None:
        named: CellsByName = {}
        for job in jobs_of_row(row, self.jobs):
            name = make_cell_id(job.name, [row.values[axis] for axis in job.axes])
            if name in self.cells:
                named[name] = frozenset(job.axes)
        if not named:
            self._refuse(row, "it names no declared cell")
            return
        for path in self._folders_of(row, table, named):
            self.found[os.path.realpath(path)] = RunCandidate(path, dict(named), f"{row.label} of {table.name}", row)

    def _folders_of(self, row: StatusRow, table: Path, named: CellsByName) -> list[str]:
        if row.folder is None:
            fitting = [path for path, names in self._known() if set(names) & set(named)]
            if not fitting:
                self._refuse(row, "it names no run folder, and none fits its cell")
            return fitting
        found = self._folder_of(row, table)
        if found is None:
            self._refuse(row, f"run folder {row.folder} does not exist")
        return [found] if found else []

    def _folder_of(self, row: StatusRow, table: Path) -> str | None:
        if row.folder is None:
            return None
        bases = [table.parent, self.folder, Path.cwd(), *(Path(job.cwd) for job in self.campaign.jobs if job.cwd)]
        return next((os.path.normpath(path) for base in bases if (path := base / row.folder).is_dir()), None)

    def _known(self) -> list[tuple[str, CellsByName]]:
        """Folders by name: those of the patterns that were given, else those of the jobs' outputs."""
        given = [(candidate.path, candidate.named) for candidate in self.found.values() if candidate.named]
        return given or list(self.by_output.values())

    def _refuse(self, row: StatusRow, reason: str) -> None:
        self.refused.append(MatchRefusal(row.label, reason))

    # -- the decision

    def cell_of(self, candidate: RunCandidate) -> tuple[str, str] | MatchRefusal:
        """The one cell that the folder belongs to, and how that is known."""
        named = self._named(candidate)
        if isinstance(named, MatchRefusal):
            return named
        configs = read_run_configs(Path(candidate.path))
        said: dict[str, ConfigAxisValue] = {}
        for axis in self.campaign.axes:
            found = axis_values_in_configs(configs, axis)
            other = next((each for each in found if each.value != found[0].value), None)
            if other:
                reason = f"{found[0].where} says {found[0].value}, but {other.where} says {other.value}"
                return MatchRefusal(candidate.path, f"its config contradicts itself: {reason}")
            if found:
                said[axis.name] = found[0]
        return self._decide(candidate, named, said)

    def _named(self, candidate: RunCandidate) -> CellsByName | MatchRefusal:
        """The cells that its name allows, by the pattern or table and by the jobs' outputs together."""
        _, by_output = self.by_output.get(os.path.realpath(candidate.path), ("", {}))
        if not candidate.named or not by_output:
            return candidate.named or by_output
        both = {cell: axes | by_output[cell] for cell, axes in candidate.named.items() if cell in by_output}
        if both:
            return both
        says, fits = join_few_names(list(candidate.named), 3), join_few_names(list(by_output), 3)
        return MatchRefusal(candidate.path, f"{candidate.how} says {says}, but its name fits {fits}")

    def _decide(
        self, candidate: RunCandidate, named: CellsByName, said: Mapping[str, ConfigAxisValue]
    ) -> tuple[str, str] | MatchRefusal:
        fitting, against = [], ""
        for cell in [self.cells[name] for name in named] or list(self.cells.values()):
            by_name = named.get(cell.id, frozenset())
            wrong = next(
                (each for each in cell.values if each[0] in said and said[each[0]].value != each[1].name), None
            )
            if wrong:
                claim = said[wrong[0]]
                against = (
                    f"its name says {cell.id}, but {claim.where} says {claim.value}: the label contradicts the config"
                )
            elif all(axis in by_name or axis in said for axis, _ in cell.values):
                fitting.append(cell.id)
        if len(fitting) == 1:
            how = candidate.how if named else ", ".join(claim.where for claim in said.values())
            return fitting[0], how + (" and its config agrees" if named and said else "")
        if fitting:
            return MatchRefusal(
                candidate.path,
                f"it fits {len(fitting)} cells: {join_few_names(list(fitting), 3)}{self._one_job(fitting)}",
            )
        if named and against:
            return MatchRefusal(candidate.path, against)
        return MatchRefusal(candidate.path, f"no declared cell: {self._unsaid(named, said)}")

    def _one_job(self, fitting: Sequence[str]) -> str:
        """Jobs with the same axes are told apart by nobody but the person who asks."""
        jobs = list(dict.fromkeys(self.cells[name].job for name in fitting))
        return f"; name the job with --job {jobs[0]}" if len(jobs) > 1 else ""

    def _unsaid(self, named: CellsByName, said: Mapping[str, ConfigAxisValue]) -> str:
        """What keeps a folder without contradiction from having a cell."""
        known = set(said).union(*named.values()) if named else set(said)
        jobs = {self.cells[name].job for name in named} or {job.name for job in self.jobs}
        missing = [axis for job in self.jobs if job.name in jobs for axis in job.axes if axis not in known]
        if missing:
            return f"neither its name nor a config file says its {missing[0]}"
        return "its config says " + ", ".join(f"{claim.where} = {claim.value}" for claim in said.values())
