"""Writes derived files with their stamp, and reads stamps back."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from muster.domain.campaign import Campaign
from muster.domain.errors import MusterError
from muster.domain.state import CampaignState
from muster.report.claims import Claim
from muster.report.stamp import Basis, FileStamp, Stamp

REPORTS = "reports"
STAMPS = "reports/stamps"
COMMANDS = {"cost": "cost --report", "record": "record"}  # the others are made by `muster report`
# what of a campaign file changes what is reported, and not only how it is run
SECTIONS = ("name", "language", "axes", "env", "money", "jobs", "decision", "report")


@dataclass(frozen=True, slots=True)
class Derived:
    """A file that is to be written. `path` is relative to the campaign's folder."""

    path: str
    data: bytes
    kind: str
    cells: tuple[str, ...] | None = None
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True, slots=True)
class Kept:
    """What `publish` did: written, and what of an earlier report was taken away or left."""

    written: tuple[str, ...]
    removed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()  # changed by somebody since: not ours to remove


def relevant(campaign: Campaign) -> frozenset[str]:
    """The jobs that carry results and all that these need. What only uses results is no part of the matrix."""
    found: set[str] = set()
    left = [job.name for job in campaign.jobs if job.results]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += campaign.job(name).needs
    return frozenset(found)


def sections_of(campaign: Campaign) -> dict[str, str]:
    return {name: _digest(msgspec.json.encode(getattr(campaign, name), order="sorted")) for name in SECTIONS}


def digest_of(state: CampaignState) -> str:
    """Every attempt and how it ended, and the campaign that was taken in."""
    rows = [
        (attempt.cell, attempt.n, attempt.token, attempt.outcome.verdict if attempt.outcome else "", attempt.accepted)
        for record in state.cells.values()
        for attempt in record.attempts
    ]
    return _digest(msgspec.json.encode([state.campaign_hash, rows]))


def publish(root: Path, made: str, command: str, at: str, version: str, basis: Basis, files: Sequence[Derived]) -> Kept:
    """The files first, each whole or not at all; then the stamp; then what an earlier one made and this one did not."""
    before = load(root, made)
    with refused(root):
        for file in files:
            write(root / file.path, file.data)
    stamped = {f.path: FileStamp(_digest(f.data, 64), f.kind, f.cells, f.claims) for f in files}
    seal(root, Stamp(made, command, at, version, basis, stamped))
    removed, left = _clear(root, before, stamped)
    return Kept(tuple(stamped), tuple(removed), tuple(left))


def seal(root: Path, stamp: Stamp) -> None:
    with refused(root):
        write(root / STAMPS / f"{stamp.made}.json", msgspec.json.format(msgspec.json.encode(stamp), indent=1))


def _clear(root: Path, before: Stamp | None, now: Mapping[str, FileStamp]) -> tuple[list[str], list[str]]:
    """A PARTIAL table beside the whole one would be taken for it some day. Outside reports/ nothing is removed."""
    removed: list[str] = []
    left: list[str] = []
    for path, file in before.files.items() if before else ():
        if path in now or not os.path.normpath(path).startswith(f"{REPORTS}/"):
            continue
        try:
            untouched = _digest((root / path).read_bytes(), 64) == file.sha256
            if untouched:
                (root / path).unlink()
            (removed if untouched else left).append(path)
        except OSError:
            continue
    return removed, left


def load(root: Path, made: str) -> Stamp | None:
    """None: there is none. A damaged one is an error: what it vouched for can't be told."""
    path = root / STAMPS / f"{made}.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=Stamp)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except msgspec.MsgspecError as error:
        raise MusterError(
            f"a stamp can't be read: {error}",
            where=str(path),
            hint=f"make it anew: `muster {COMMANDS.get(made, 'report')}`",
        ) from None


def stamps(root: Path) -> Iterator[Stamp]:
    folder = root / STAMPS
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        if found := load(root, path.stem):
            yield found


def write(path: Path, data: bytes) -> None:
    """Whole or not at all, and not where nothing changes: a figure that stays the same keeps its times."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        if path.read_bytes() == data:
            return
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(partial, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def refused(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise MusterError(
            f"the reports could not be written: {error.strerror or error}",
            where=str(error.filename or root / REPORTS),
            hint="what was there before is whole; mend it and try again",
        ) from None


def _digest(data: bytes, length: int = 16) -> str:
    return hashlib.sha256(data).hexdigest()[:length]
