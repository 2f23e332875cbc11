"""Every file that a campaign created or changed, by walking: its state, its attempts and their outputs, its reports."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from muster.domain.attempt import Attempt, CellRecord
from muster.domain.campaign import Job
from muster.domain.state import CampaignState
from muster.domain.template import render
from muster.plan.commands import Place, values
from muster.ports.folders import glob_paths

KINDS = ("state", "attempt", "output", "artifact", "adopted", "report", "lease")
SLACK_S = 2.0  # coarse file times
OutputOf = Callable[[Attempt], str | None]


@dataclass(frozen=True, slots=True)
class Entry:
    path: str  # absolute
    bytes: int
    kind: str
    cell: str | None = None
    plain: bool = True  # False: a link, a pipe or a socket, which has no bytes of its own
    sha256: str | None = None  # None: not asked for, can't be read, or not plain


@dataclass(frozen=True, slots=True)
class Places:
    root: Path
    state: Path  # .muster
    leases: Path  # machine-wide, one file per slot
    output_of: OutputOf  # of an attempt that is not recorded yet


def manifest(state: CampaignState, places: Places) -> list[Entry]:
    """Grouped by kind, then by cell in declared order. A file that belongs to two is listed once."""
    found: dict[str, Entry] = {}
    for entry in _all(state, places):
        found.setdefault(entry.path, entry)
    order = {kind: number for number, kind in enumerate(KINDS)}
    position = {cell: number for number, cell in enumerate(state.cells)}
    return sorted(found.values(), key=lambda e: (order[e.kind], position.get(e.cell or "", -1), e.path))


def with_hashes(
    entries: Sequence[Entry], sha256: Callable[[str], str | None], done: Callable[[int], None] = lambda _: None
) -> list[Entry]:
    """As they are just now: a log that is being written has another hash soon. `done` hears of each one's bytes."""
    hashed = []
    for entry in entries:
        hashed.append(replace(entry, sha256=sha256(entry.path)) if entry.plain else entry)
        done(entry.bytes)
    return hashed


def with_state_file(entries: Sequence[Entry], path: Path) -> list[Entry]:
    """As it is now: one that was written while the others were read. Of itself it can tell no hash."""
    others = [entry for entry in entries if entry.path != str(path)]
    before = sum(entry.kind == KINDS[0] and entry.path < str(path) for entry in others)
    return [*others[:before], *_files(path, KINDS[0]), *others[before:]]


def _all(state: CampaignState, places: Places) -> Iterator[Entry]:
    attempts = [(record, attempt) for record in state.cells.values() for attempt in record.attempts]
    for record, attempt in attempts:
        yield from _of_attempt(record, attempt, state, places)
    for record, attempt in attempts:  # what lies in an attempt's folder and is no output of it
        if not attempt.adopted:
            yield from _files(_folder(places, attempt), "attempt", record.cell.id)
    yield from _files(places.state, "state")
    yield from _files(places.root / "reports", "report")
    for slot in sorted({slot for _, attempt in attempts for slot in attempt.slots}):
        yield from _files(places.leases / slot, "lease")


def _folder(places: Places, attempt: Attempt) -> Path:
    return places.state.joinpath("attempts", attempt.place[0], str(attempt.n))


def _of_attempt(record: CellRecord, attempt: Attempt, state: CampaignState, places: Places) -> Iterator[Entry]:
    output = attempt.outcome.output if attempt.outcome else places.output_of(attempt)
    kind = "adopted" if attempt.adopted else "output"
    since = None if attempt.adopted else began(attempt)
    if output:
        # outside the state others may write there too: what is older than the attempt is not its work
        inside = Path(output).is_relative_to(places.state)
        for entry in _files(Path(output), kind, record.cell.id, None if inside else since):
            if inside or not Path(entry.path).is_relative_to(places.state):
                yield entry
    job = next((job for job in state.campaign.jobs if job.name == record.cell.job), None)
    if job and job.artifacts:
        base = Path(output) if output else _folder(places, attempt) / "out"
        for path in _artifacts(job, record, attempt, base if not base.is_file() else base.parent, places):
            yield from _files(Path(path), "artifact", record.cell.id, since)


def _artifacts(job: Job, record: CellRecord, attempt: Attempt, base: Path, places: Places) -> list[str]:
    filled: Mapping[str, str] = values(job, record.cell, Place(attempt.n, str(_folder(places, attempt) / "out")))
    found: set[str] = set()
    for pattern in job.artifacts:
        try:
            text = render(pattern, filled)
        except KeyError:
            continue
        matches = glob_paths(str(base / text))
        found.update(os.path.normpath(match) for match in matches)
    return sorted(found)


def began(attempt: Attempt) -> float:
    if attempt.outcome and attempt.outcome.started:
        return attempt.outcome.started
    try:
        return datetime.fromisoformat(attempt.claimed_at).timestamp()
    except ValueError:
        return 0.0


def _files(path: Path, kind: str, cell: str | None = None, since: float | None = None) -> Iterator[Entry]:
    """Files, links and pipes, never through a link: what lies behind it is listed where it lies."""
    waiting = [path]
    while waiting:
        here = waiting.pop()
        try:
            facts = here.lstat()
            names = os.listdir(here) if stat.S_ISDIR(facts.st_mode) else None  # noqa: PTH208
        except OSError:
            continue
        if names is not None:
            waiting += (here / name for name in sorted(names, reverse=True))
        elif since is None or max(facts.st_mtime, facts.st_ctime) >= since - SLACK_S:
            yield Entry(str(here.absolute()), facts.st_size, kind, cell, stat.S_ISREG(facts.st_mode))
