"""`muster manifest`: lists every file that a campaign created or changed, by walking its state, attempts, outputs and
reports. Hashes only where they are asked for.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from muster.engine.plan.cell_command import AttemptContext, cell_placeholder_values
from muster.files.bounded_walk import glob_paths
from muster.files.muster_home import slots_home
from muster.files.state_folder import attempt_folder
from muster.model.attempt import Attempt, CellRecord
from muster.model.calendar import seconds_of_iso_time
from muster.model.campaign import Job
from muster.model.campaign_state import CampaignState
from muster.readers.attempt_facts import read_order
from muster.readers.output_files import find_attempt_output
from muster.text.command_template import render_template

FILE_KINDS = ("state", "attempt", "output", "artifact", "adopted", "report", "lease")
SLACK_S = 2.0  # coarse file times
OutputOfAttempt = Callable[[Attempt], str | None]


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    path: str  # absolute
    bytes: int
    kind: str
    cell: str | None = None
    plain: bool = True  # False: a link, a pipe or a socket, which has no bytes of its own
    sha256: str | None = None  # None: not asked for, can't be read, or not plain


@dataclass(frozen=True, slots=True)
class ManifestPlaces:
    root: Path
    state: Path  # .muster
    leases: Path  # machine-wide, one file per slot
    output_of: OutputOfAttempt  # of an attempt that is not recorded yet


def list_campaign_files(state: CampaignState, places: ManifestPlaces) -> list[ManifestEntry]:
    """Grouped by kind, then by cell in declared order. A file that belongs to two is listed once."""
    found: dict[str, ManifestEntry] = {}
    for entry in _find_all_files(state, places):
        found.setdefault(entry.path, entry)
    order = {kind: number for number, kind in enumerate(FILE_KINDS)}
    position = {cell: number for number, cell in enumerate(state.cells)}
    return sorted(found.values(), key=lambda e: (order[e.kind], position.get(e.cell or "", -1), e.path))


def add_file_hashes(
    entries: Sequence[ManifestEntry], sha256: Callable[[str], str | None], done: Callable[[int], None] = lambda _: None
) -> list[ManifestEntry]:
    """As they are just now: a log that is being written has another hash soon. `done` hears of each one's bytes."""
    hashed = []
    for entry in entries:
        hashed.append(replace(entry, sha256=sha256(entry.path)) if entry.plain else entry)
        done(entry.bytes)
    return hashed


def refresh_state_file(entries: Sequence[ManifestEntry], path: Path) -> list[ManifestEntry]:
    """As it is now: one that was written while the others were read. Of itself it can tell no hash."""
    others = [entry for entry in entries if entry.path != str(path)]
    before = sum(entry.kind == FILE_KINDS[0] and entry.path < str(path) for entry in others)
    return [*others[:before], *_walk_files(path, FILE_KINDS[0]), *others[before:]]


def _find_all_files(state: CampaignState, places: ManifestPlaces) -> Iterator[ManifestEntry]:
    attempts = [(record, attempt) for record in state.cells.values() for attempt in record.attempts]
    for record, attempt in attempts:
        yield from _files_of_attempt(record, attempt, state, places)
    for record, attempt in attempts:  # what lies in an attempt's folder and is no output of it
        if not attempt.adopted:
            yield from _walk_files(_attempt_folder_path(places, attempt), "attempt", record.cell.id)
    yield from _walk_files(places.state, "state")
    yield from _walk_files(places.root / "reports", "report")
    for slot in sorted({slot for _, attempt in attempts for slot in attempt.slots}):
        yield from _walk_files(places.leases / slot, "lease")


def _attempt_folder_path(places: ManifestPlaces, attempt: Attempt) -> Path:
    return places.state.joinpath("attempts", attempt.place[0], str(attempt.n))


def _files_of_attempt(
    record: CellRecord, attempt: Attempt, state: CampaignState, places: ManifestPlaces
) -> Iterator[ManifestEntry]:
    output = attempt.outcome.output if attempt.outcome else places.output_of(attempt)
    kind = "adopted" if attempt.adopted else "output"
    since = None if attempt.adopted else attempt_start_time(attempt)
    if output:
        # outside the state others may write there too: what is older than the attempt is not its work
        inside = Path(output).is_relative_to(places.state)
        for entry in _walk_files(Path(output), kind, record.cell.id, None if inside else since):
            if inside or not Path(entry.path).is_relative_to(places.state):
                yield entry
    job = next((job for job in state.campaign.jobs if job.name == record.cell.job), None)
    if job and job.artifacts:
        base = Path(output) if output else _attempt_folder_path(places, attempt) / "out"
        for path in _matching_artifacts(job, record, attempt, base if not base.is_file() else base.parent, places):
            yield from _walk_files(Path(path), "artifact", record.cell.id, since)


def _matching_artifacts(
    job: Job, record: CellRecord, attempt: Attempt, base: Path, places: ManifestPlaces
) -> list[str]:
    filled: Mapping[str, str] = cell_placeholder_values(
        job, record.cell, AttemptContext(attempt.n, str(_attempt_folder_path(places, attempt) / "out"))
    )
    found: set[str] = set()
    for pattern in job.artifacts:
        try:
            text = render_template(pattern, filled)
        except KeyError:
            continue
        matches = glob_paths(str(base / text))
        found.update(os.path.normpath(match) for match in matches)
    return sorted(found)


def attempt_start_time(attempt: Attempt) -> float:
    if attempt.outcome and attempt.outcome.started:
        return attempt.outcome.started
    return seconds_of_iso_time(attempt.claimed_at) or 0.0


def _walk_files(path: Path, kind: str, cell: str | None = None, since: float | None = None) -> Iterator[ManifestEntry]:
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
            yield ManifestEntry(str(here.absolute()), facts.st_size, kind, cell, stat.S_ISREG(facts.st_mode))


HashProgress = Callable[[int, int], Callable[[int], None]]  # (files, bytes) -> what hears of the bytes that are done


def campaign_files(root: Path, state: CampaignState) -> list[ManifestEntry]:
    folder = root / ".muster"

    def output_of(attempt: Attempt) -> str | None:
        order = read_order(attempt_folder(folder, *attempt.place))
        return find_attempt_output(order, attempt_start_time(attempt)) if order else None

    return list_campaign_files(state, ManifestPlaces(root, folder, slots_home() / "slots", output_of))


def campaign_files_with_hashes(root: Path, entries: list[ManifestEntry], progress: HashProgress) -> list[ManifestEntry]:
    """What is remembered of them is a file of the campaign too, and is listed with them."""
    from muster.readers.file_hashes import HASH_CACHE_FILE, HashCache

    memory = root / ".muster" / HASH_CACHE_FILE
    cache = HashCache(root / ".muster")
    others = [entry for entry in entries if entry.path != str(memory)]
    done = progress(len(others), sum(entry.bytes for entry in others))
    found = add_file_hashes(others, cache.sha256, done)
    cache.save()
    return refresh_state_file(found, memory)
