"""Warns of save, log and evaluation periods that are longer than a run, before the run is paid for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.acts.config_names import DEFAULTS, load_parts, named_parts, parts_file
from muster.acts.run_config import leaves, load
from muster.acts.take_in import CONFIG_SUFFIXES
from muster.domain.attempt import CellRecord
from muster.domain.campaign import Campaign, Job
from muster.domain.cell import Cell, cells_of
from muster.domain.errors import Mistake
from muster.domain.shell_words import split
from muster.plan.commands import Place, command, environment, values
from muster.plan.order import durations
from muster.plan.periods import CLOCKED, Expected, Period, pairs, period, too_long, with_units
from muster.plan.standing import outdated

NO_ENVIRONMENT = "env"  # of LeRobot: where it is null, nothing is evaluated, however often that is asked for
OUT = "OUT"  # stands for paths that are not known yet


@dataclass(slots=True)
class _Files:
    """Config files, each read once."""

    read: dict[Path, list[tuple[str, Any]]]
    parts: dict[Path, Mapping[str, Any]]

    def settings(self, path: Path) -> list[tuple[str, Any]]:
        if path not in self.read:
            self.read[path] = list(leaves(load(path) or {}))
        return self.read[path]

    def named(self, path: Path) -> Mapping[str, Any]:
        if path not in self.parts:
            self.parts[path] = load_parts(path)
        return self.parts[path]


def period_warnings(campaign: Campaign, root: str, records: Sequence[CellRecord] = ()) -> list[Mistake]:
    """`records`: the cells as they stand; finished ones tell how long a run is."""
    files = _Files({}, {})
    return [warning for job in campaign.jobs for warning in _of_job(campaign, job, root, records, files)]


def _of_job(campaign: Campaign, job: Job, root: str, records: Sequence[CellRecord], files: _Files) -> Iterator[Mistake]:
    of_job = [record for record in records if record.cell.job == job.name]
    expected = _expected(job, of_job)
    proof = job.proof.checkpoint
    saved_after = proof.saved_after if proof else 0.0
    seen: dict[tuple[str, float], tuple[Period, bool, list[str]]] = {}
    cells_of_job = list(cells_of(campaign, job))
    for cell in cells_of_job:
        clocked, found = _of_cell(campaign, job, cell, root, files)
        for each in found:
            seen.setdefault((each.key, each.value), (each, clocked, []))[2].append(cell.id)
    count = len(cells_of_job)
    for each, clocked, cells in seen.values():
        told = too_long(each, expected, clocked=clocked, saved_after=saved_after)
        if told and not (each.kind == "save" and saved_after and _was_saved(of_job)):
            some = f" ({len(cells)} of {count} cells, such as {cells[0]})" if len(cells) < count else ""
            yield Mistake(
                f"job {job.name}{some}: {told[0]}", hint=told[1], path=f"jobs.{job.name}.command", level="warning"
            )


def _expected(job: Job, records: Sequence[CellRecord]) -> Expected:
    known = durations(records).get(job.name)
    if known is None:
        return Expected(job.timeout_s, 0, job.steps)
    timed = [record for record in records if (done := record.completed) and done.outcome and done.outcome.duration_s]
    return Expected(known, len(timed), job.steps)


def _was_saved(records: Sequence[CellRecord]) -> bool:
    """A run of this very definition was DONE: its checkpoint was saved late enough, whatever the period says."""
    return any(
        record.completed and not record.completed.adopted and record.hash and not outdated(record) for record in records
    )


def _of_cell(campaign: Campaign, job: Job, cell: Cell, root: str, files: _Files) -> tuple[bool, list[Period]]:
    """Whether it is one of the trainers that save by the clock, and its periods; the command's word counts first."""
    place = Place(n=1, out=OUT, outputs=dict.fromkeys(job.needs, OUT))
    try:
        words = command(job, values(job, cell, place))
    except (KeyError, ValueError):
        return False, []
    if job.shell:
        words = [*words[:-1], *_split(words[-1])]
    cwd = job.cwd or root
    about = [*words, cwd]
    env = environment(campaign, job, cell, place, "")
    found: dict[str, Period] = {}
    evaluates = True
    for name, value, where in _settings(words, env, Path(cwd), files):
        evaluates = evaluates and not (name == NO_ENVIRONMENT and value is None)
        each = period(name, value, where)
        if each:
            found.setdefault(each.key, each)
    clocked = any(name in word.lower() for word in about for name in CLOCKED)
    told = [each for each in found.values() if evaluates or each.kind != "eval"]
    return clocked, with_units(told, job, about)


def _split(text: str) -> list[str]:
    try:
        return split(text, comments=True)
    except ValueError:
        return text.split()


def _settings(
    words: Sequence[str], env: Mapping[str, str], cwd: Path, files: _Files
) -> Iterator[tuple[str, object, str]]:
    yield from ((name, value, "in its command") for name, value in pairs(words))
    yield from ((name, value, "in its environment") for name, value in env.items())
    for word in words:
        text = word.rpartition("=")[2]
        if text.endswith(CONFIG_SUFFIXES):
            yield from ((name, value, f"in {text}") for name, value in files.settings(cwd / text))
    yield from _of_parts(words, cwd, files)


def _of_parts(words: Sequence[str], cwd: Path, files: _Files) -> Iterator[tuple[str, object, str]]:
    """`train.py --configs a b` takes `defaults`, `a` and `b` of the configs.yaml beside it; the last one counts."""
    file = parts_file(words)
    if file is None or "--configs" not in words:
        return
    whole = files.named(cwd / file)
    for name in (*reversed(named_parts(words)), DEFAULTS):
        part = whole.get(name)
        if isinstance(part, Mapping):
            yield from ((key, value, f"in {file}: {name}") for key, value in leaves(part))
