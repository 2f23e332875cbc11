"""What `up` takes in, as files: campaigns in `.muster/campaigns/<hash>.json`, immutable, so that the log can refer to
them; and environments in `.muster/env/`, which hold secrets and go when no attempt needs them.

Who records an environment holds the folder's lock until the decision that names it is folded. Who deletes holds it
alone, so an environment that is on its way into the log is never taken for an old one. Killed between two, the rest
goes next time.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

import msgspec

from muster.files.atomic_write import PRIVATE_FILE, make_private_folder, make_public_folder, write_atomically
from muster.files.crash_points import reach_crash_point
from muster.files.json_codec import JSON_ERRORS, encode_json_bytes
from muster.files.known_secrets import learn_secrets
from muster.files.safe_open import LARGEST_CELLS_FILE, read_plain_file
from muster.files.state_folder import former_campaign_folders, locate_campaign
from muster.model.campaign import Campaign, section_as_written
from muster.model.campaign_location import CampaignLocation, relativize_campaign_paths, resolve_campaign_paths
from muster.model.campaign_state import CampaignState
from muster.model.cell import list_campaign_cells
from muster.model.errors import SNAPSHOT_FORMAT, MusterError, newer_snapshot_error
from muster.text.phrases import phrase

_SHORT_SECTIONS = ("decision", "report", "loop", "gates", "finish")  # stored as 0.1 did: without empty keys


class StoredSnapshot(msgspec.Struct, omit_defaults=True):
    """What `up` took in: the text for people, the campaign for Muster, the hash of each cell's definition."""

    text: str
    campaign: Campaign
    hashes: dict[str, str]
    format: int = SNAPSHOT_FORMAT  # left out while it is 1: the name of a snapshot is the hash of all this


def save_snapshot(folder: Path, text: str, campaign: Campaign, hashes: Mapping[str, str]) -> str:
    placed = relativize_campaign_paths(campaign, locate_campaign(folder))
    stored = msgspec.to_builtins(StoredSnapshot(text, placed, dict(hashes)))
    stored["campaign"] |= {name: section_as_written(getattr(placed, name)) for name in _SHORT_SECTIONS}
    data = encode_json_bytes(stored)
    name = snapshot_digest(data)
    write_once_durably(folder / "campaigns" / f"{name}.json", data, PRIVATE_FILE, "campaign.write", inside=folder)
    return name


def save_recorded_environment(folder: Path, environment: Mapping[str, str]) -> str:
    """The environment `up` was called in, for every attempt, whoever starts it. It may hold secrets: mode 0600."""
    learn_secrets(environment)
    data = json.dumps(dict(sorted(environment.items()))).encode()  # bytes that are no UTF-8 survive as \udcXX
    path = folder / "env" / f"{snapshot_digest(data)}.json"
    write_once_durably(path, data, PRIVATE_FILE, "env.write", inside=folder)
    return str(path)


def snapshot_digest(data: bytes) -> str:
    import hashlib  # not at the top: reading needs none, and it loads OpenSSL

    return hashlib.sha256(data).hexdigest()[:16]


def write_once_durably(path: Path, data: bytes, mode: int, point: str, *, inside: Path | None = None) -> None:
    """Where it is not yet, with its folders; `inside`: but not that one, which may have been moved or deleted."""
    if path.exists():
        return
    make = make_private_folder if mode == PRIVATE_FILE else make_public_folder
    make(path.parent, parents=inside is None, inside=inside)
    write_atomically(path, data, mode=mode, sync=True, point=point)


def load_campaign_snapshot(folder: Path, name: str, where: CampaignLocation | None = None) -> StoredSnapshot:
    """`where`: the folder with all where it lay, if that is known; its paths lead there."""
    path = folder / "campaigns" / f"{name}.json"
    where = where or locate_campaign(folder, former_campaign_folders(folder))
    try:
        found = msgspec.json.decode(read_plain_file(str(path), LARGEST_CELLS_FILE), type=StoredSnapshot)
        if found.format > SNAPSHOT_FORMAT:
            raise newer_snapshot_error(found.format, str(path))
        _refuse_unknown_names(found.campaign)
        return StoredSnapshot(found.text, resolve_campaign_paths(found.campaign, where), found.hashes)
    except (OSError, *JSON_ERRORS) as error:
        raise MusterError(
            phrase("files.snapshot_unreadable", reason=error),
            where=str(path),
            hint=phrase("files.fsck_restores_snapshot"),
        ) from None


def _refuse_unknown_names(campaign: Campaign) -> None:
    axes, jobs = {axis.name for axis in campaign.axes}, {job.name for job in campaign.jobs}
    for job in campaign.jobs:
        if not axes.issuperset(job.axes) or not jobs.issuperset(job.needs) or len({*job.axes}) < len(job.axes):
            raise msgspec.ValidationError(phrase("files.job_names_unknown", job=job.name))


def load_snapshotted_campaign(folder: Path, name: str, where: CampaignLocation | None = None) -> Campaign:
    return load_campaign_snapshot(folder, name, where).campaign


def snapshot_cell_rows(folder: Path, name: str) -> list[tuple[str, str, str, str]]:
    """(id, job, axes as JSON, hash) of every declared cell, in order."""
    known = load_campaign_snapshot(folder, name, CampaignLocation(str(folder.parent)))
    return [
        (
            cell.id,
            cell.job,
            json.dumps([[axis, value.name, value.value] for axis, value in cell.values], ensure_ascii=False),
            known.hashes.get(cell.id, ""),
        )
        for cell in list_campaign_cells(known.campaign)
    ]


ENVIRONMENT_FOLDER = "env"


@contextlib.contextmanager
def lock_environment_recording(state: Path) -> Iterator[None]:
    """While an environment is recorded and taken in, none is deleted."""
    folder = state / ENVIRONMENT_FOLDER
    make_private_folder(folder, inside=state.parent)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH)
        yield
    finally:
        os.close(fd)


def has_old_environments(state: Path) -> bool:
    """Cheap: whether there is more than the one that every campaign has."""
    return len(_environment_files(state)) > 1


def delete_old_environments(state: Path, needed: Callable[[], Collection[str] | None]) -> list[str]:
    """Deletes all but those that `needed` names; it is asked while nobody records one. None: it can't tell now."""
    try:
        fd = os.open(state / ENVIRONMENT_FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        names = needed()
        gone = [] if names is None else sorted(set(_environment_files(state)) - set(names))
        for name in gone:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=fd)
            reach_crash_point("env.forgotten")
        if gone:
            os.fsync(fd)
        return gone
    except BlockingIOError:
        return []  # somebody records one: there is a next time
    finally:
        os.close(fd)


def _environment_files(state: Path) -> list[str]:
    try:
        return [name for name in os.listdir(state / ENVIRONMENT_FOLDER) if name.endswith(".json")]  # noqa: PTH208
    except OSError:
        return []


def why_environment_is_missing(state: CampaignState) -> str:
    """An attempt that was started without it would die of our own missing file, and be counted as a failure."""
    if state.env_file and Path(state.env_file).is_file():
        return ""
    gone = f": {state.env_file}" if state.env_file else ""  # last: who shows it may cut it
    return phrase("files.environment_gone", gone=gone)
