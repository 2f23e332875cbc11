"""Writes derived files with their stamp, and reads stamps back."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from muster.acts.report_verdict import PARTIAL, STAMPS
from muster.acts.stamp_places import stamp_here, stamp_inside
from muster.domain.campaign import Campaign
from muster.domain.errors import MusterError
from muster.domain.state import CampaignState
from muster.domain.whereabouts import Whereabouts, campaign_here
from muster.ports.known_secrets import mask_json, mask_output, mask_table
from muster.ports.outside import outside_paths
from muster.ports.regular_files import TooLarge, read_regular
from muster.ports.store import Event
from muster.ports.write_files import PUBLIC_FILE, make_public_folder, write_atomically
from muster.report.claims import Claim
from muster.report.report_verdict import ReportVerdict
from muster.report.stamp import Basis, FileStamp, Stamp
from muster.stats.flag_weight import AcceptedFlag

REPORTS = "reports"
LARGEST = 256 << 20  # bytes of a derived file
READ = (".md", ".csv", ".tsv", ".tex", ".json", ".html", ".txt", ".yaml")
# PARTIAL: takes nothing of a whole report away; a whole one takes its place
EARLIER = {"report": (PARTIAL,)}
# by what a stamp's name begins with; the others are made by `muster report`
OURS = ("report", "cost", "record", "loop", "document-", "job-", "gates-")  # how the names of stamps begin
COMMANDS = {"cost": "cost --report", "record": "record", "loop": "loop report", "document": "docs update",
            "gates": "gates draw CELL"}  # fmt: skip
PEOPLE = frozenset({"note", "hold", "release", "giveup", "retry", "redo", "accept", "flag", "stop", "filter", "adopt"})
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


def sections_of(campaign: Campaign, origin: Whereabouts) -> dict[str, str]:
    """`origin`: where the campaign was first taken in. A folder that moved declares the same as before."""
    then = campaign_here(campaign, origin)
    return {name: _digest(msgspec.json.encode(getattr(then, name), order="sorted")) for name in SECTIONS}


def words_of_people(events: Iterable[Event]) -> int:
    """Decisions that a record tells of and no attempt shows."""
    return sum(event.decision.kind in PEOPLE and not event.void for event in events)


def digest_of_flags(accepted: Sequence[AcceptedFlag]) -> str:
    """Empty where there is none, as in stamps of older versions."""
    return _digest(msgspec.json.encode(accepted, order="sorted")) if accepted else ""


def digest_of(state: CampaignState, words: int) -> str:
    """Every attempt and how it ended, the campaign that was taken in, and how often people had their say."""
    rows = [
        (attempt.cell, attempt.n, attempt.token, attempt.outcome.verdict if attempt.outcome else "", attempt.accepted)
        for record in state.cells.values()
        for attempt in record.attempts
    ]
    return _digest(msgspec.json.encode([state.campaign_hash, state.intent.kind, words, rows]))


def publish(
    root: Path, made: str, command: str, at: str, version: str, basis: Basis, files: Sequence[Derived],
    verdict: ReportVerdict | None = None,
) -> Kept:  # fmt: skip
    """The files first, each whole or not at all; then the stamp; then what an earlier one made and this one did not."""
    files = [_told(file) for file in files]
    before = [found for name in (made, *EARLIER.get(made, ())) if (found := stamp_or_none(root, name))]
    with refused(root):
        _room(root, made, files)
        for file in files:
            write(root / file.path, file.data)
    stamped = {f.path: FileStamp(_digest(f.data, 64), f.kind, f.cells, f.claims) for f in files}
    seal(root, Stamp(made, command, at, version, basis, stamped, verdict=verdict))
    removed, left = _clear(root, before, stamped)
    for name in EARLIER.get(made, ()):
        (root / STAMPS / f"{name}.json").unlink(missing_ok=True)
    return Kept(tuple(stamped), tuple(removed), tuple(left))


def _told(file: Derived) -> Derived:
    """What others read has no secret in it, whatever it was made from. Hashed as it is written."""
    if not file.path.endswith(READ):
        return file
    text = file.data.decode("utf-8", "surrogateescape")
    if (told := _masked(file.path, text)) == text:
        return file
    claims = tuple(replace(claim, text=mask_output(claim.text)) for claim in file.claims)
    return replace(file, data=told.encode("utf-8", "surrogateescape"), claims=claims)


def _masked(path: str, text: str) -> str:
    if path.endswith(".json"):
        return mask_json(text)
    if path.endswith((".csv", ".tsv")):
        return mask_table(text, "\t" if path.endswith(".tsv") else ",")
    return mask_output(text)


def _room(root: Path, made: str, files: Sequence[Derived]) -> None:
    """What would refuse one of them is told before any is written."""
    for path in (f"{STAMPS}/{made}.json", *(file.path for file in files)):
        make_public_folder((root / path).parent, parents=True)
        if (root / path).is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(root / path))


def seal(root: Path, stamp: Stamp) -> None:
    data = msgspec.json.encode(stamp_inside(stamp, _where(root)))
    with refused(root):
        write(root / STAMPS / f"{stamp.made}.json", msgspec.json.format(data, indent=1))


def stamp_or_none(root: Path, made: str) -> Stamp | None:
    """A damaged one vouches for nothing, and is replaced."""
    try:
        return load(root, made)
    except MusterError:
        return None


def _clear(root: Path, before: Sequence[Stamp], now: Mapping[str, FileStamp]) -> tuple[list[str], list[str]]:
    """A PARTIAL table beside the whole one would be taken for it some day. Outside reports/ nothing is removed."""
    removed: list[str] = []
    left: list[str] = []
    for path, file in [item for stamp in before for item in stamp.files.items()]:
        if path in now or not os.path.normpath(path).startswith(f"{REPORTS}/"):
            continue
        try:
            untouched = _digest(read_regular(root / path, LARGEST), 64) == file.sha256
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
        return stamp_here(msgspec.json.decode(read_regular(path, LARGEST), type=Stamp), _where(root))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        why = error.strerror or error if isinstance(error, OSError) else error
        first = "move it away, then " if isinstance(error, OSError) or not made.startswith(OURS) else ""
        again = f"{first}make it anew: `muster {COMMANDS.get(made.partition('-')[0], 'report')}`"
        raise MusterError(f"a stamp can't be read: {why}", where=str(path), hint=again) from None


def _where(root: Path) -> Whereabouts:
    now, real = str(root.absolute()), str(root.resolve())
    return Whereabouts(now, (), (real,) if real != now else (), outside_paths(root / ".muster"))


def stamps(root: Path) -> Iterator[Stamp]:
    folder = root / STAMPS
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        if found := load(root, path.stem):
            yield found


def write(path: Path, data: bytes) -> None:
    """Whole or not at all, and not where nothing changes: a figure that stays the same keeps its times."""
    make_public_folder(path.parent, parents=True)
    with contextlib.suppress(FileNotFoundError, TooLarge):
        if read_regular(path, LARGEST) == data:
            return
    write_atomically(path, data, mode=PUBLIC_FILE, sync=True)


@contextlib.contextmanager
def refused(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = Path(error.filename or root / REPORTS)
        why, first = error.strerror or str(error), "mend it"
        if isinstance(error, IsADirectoryError):
            why, first = "a folder stands where a file belongs", "move it away"
        elif isinstance(error, FileExistsError | NotADirectoryError):
            where = next((each for each in (where, *where.parents) if each.is_file()), where)
            why, first = "a file stands where a folder belongs", "move it away"
        elif error.errno == errno.ENOSPC:
            first = "free some space"
        hint = f"what was there before is whole; {first} and try again"
        raise MusterError(f"the reports could not be written: {why}", where=str(where), hint=hint) from None


def _digest(data: bytes, length: int = 16) -> str:
    return hashlib.sha256(data).hexdigest()[:length]
