"""Publishes derived files together with their stamp, and reads stamps back. Paths in a stamp are relative on the disk
and absolute in memory, so that a campaign's folder may move.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

import muster
from muster.app.campaign.campaign_digests import _short_sha256, count_decisions_by_people, digest_campaign_state
from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.campaign_status import Status
from muster.app.campaign.last_report import PARTIAL, STAMP_FOLDER, ReportVerdict
from muster.app.campaign.stamp import CellStamp, FileStamp, ReportClaim, Stamp, StampBasis
from muster.files.atomic_write import PUBLIC_FILE, make_public_folder, write_atomically
from muster.files.json_codec import encode_json_bytes
from muster.files.known_secrets import mask_secrets_in_json, mask_secrets_in_output, mask_secrets_in_table
from muster.files.safe_open import FileTooLarge, read_regular_file
from muster.files.state_folder import read_outside_paths
from muster.model.campaign_location import CampaignLocation, campaign_folder_in_path
from muster.model.errors import MusterError
from muster.text.phrases import phrase


def make_stamp_relative(stamp: Stamp, where: CampaignLocation) -> Stamp:
    """As it is written. Where it was made is told beside it: commands name that folder."""
    return _map_stamp_paths(replace(stamp, root=where.now), where.inside, str)


def make_stamp_absolute(stamp: Stamp, where: CampaignLocation) -> Stamp:
    """As it is read; of earlier versions the folder of any attempt tells where it was made."""
    folders = (stamp.root, *(campaign_folder_in_path(cell.folder) for cell in stamp.basis.cells.values()))
    former = tuple(dict.fromkeys(each for each in folders if each and each not in (where.now, *where.also)))
    place = replace(where, former=former)
    return _map_stamp_paths(stamp, place.here, lambda command: _move_command_paths(command, place))


def _move_command_paths(command: str, place: CampaignLocation) -> str:
    """Word by word: the folder may have a space in its name now."""
    if not any(each in command for each in place.former):
        return command
    try:
        return shlex.join(map(place.text, shlex.split(command)))
    except ValueError:
        return command


def _map_stamp_paths(stamp: Stamp, path: Callable[[str], str], text: Callable[[str], str]) -> Stamp:
    cells = {name: _map_cell_stamp_paths(cell, path, text) for name, cell in stamp.basis.cells.items()}
    return replace(stamp, basis=replace(stamp.basis, cells=cells))


def _map_cell_stamp_paths(cell: CellStamp, path: Callable[[str], str], text: Callable[[str], str]) -> CellStamp:
    saved = cell.checkpoint
    return replace(
        cell,
        folder=path(cell.folder),
        output=path(cell.output) if cell.output else cell.output,
        files={path(name): digest for name, digest in cell.files.items()},
        checkpoint=replace(saved, path=path(saved.path)) if saved else None,
        command=text(cell.command),
    )


REPORTS_FOLDER = "reports"
LARGEST_DERIVED = 256 << 20  # bytes of a derived file
READABLE_SUFFIXES = (".md", ".csv", ".tsv", ".tex", ".json", ".html", ".txt", ".yaml")
# PARTIAL: takes nothing of a whole report away; a whole one takes its place
REPLACED_STAMPS = {"report": (PARTIAL,)}
# by what a stamp's name begins with; the others are made by `muster report`
OWN_STAMP_PREFIXES = (
    "report",
    "cost",
    "record",
    "loop",
    "document-",
    "job-",
    "gates-",
)  # how the names of stamps begin
COMMAND_BY_STAMP = {
    "cost": "cost --report",
    "record": "record",
    "loop": "loop report",
    "document": "docs update",
    "gates": "gates draw CELL",
}


@dataclass(frozen=True, slots=True)
class DerivedFile:
    """A file that is to be written. `path` is relative to the campaign's folder."""

    path: str
    data: bytes
    kind: str
    cells: tuple[str, ...] | None = None
    claims: tuple[ReportClaim, ...] = ()


@dataclass(frozen=True, slots=True)
class PublishedFiles:
    """What `publish` did: written, and what of an earlier report was taken away or left."""

    written: tuple[str, ...]
    removed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()  # changed by somebody since: not ours to remove


def publish_derived_files(
    root: Path,
    made: str,
    command: str,
    at: str,
    version: str,
    basis: StampBasis,
    files: Sequence[DerivedFile],
    verdict: ReportVerdict | None = None,
) -> PublishedFiles:
    """The files first, each whole or not at all; then the stamp; then what an earlier one made and this one did not."""
    files = [_mask_derived_file(file) for file in files]
    before = [found for name in (made, *REPLACED_STAMPS.get(made, ())) if (found := read_stamp_or_none(root, name))]
    with explain_failed_writes(root):
        _check_room_for_files(root, made, files)
        for file in files:
            write_derived_file(root / file.path, file.data)
    stamped = {f.path: FileStamp(_short_sha256(f.data, 64), f.kind, f.cells, f.claims) for f in files}
    write_stamp(root, Stamp(made, command, at, version, basis, stamped, verdict=verdict))
    removed, left = _remove_earlier_files(root, before, stamped)
    for name in REPLACED_STAMPS.get(made, ()):
        (root / STAMP_FOLDER / f"{name}.json").unlink(missing_ok=True)
    return PublishedFiles(tuple(stamped), tuple(removed), tuple(left))


def _mask_derived_file(file: DerivedFile) -> DerivedFile:
    """What others read has no secret in it, whatever it was made from. Hashed as it is written."""
    if not file.path.endswith(READABLE_SUFFIXES):
        return file
    text = file.data.decode("utf-8", "surrogateescape")
    if (told := _mask_text_by_suffix(file.path, text)) == text:
        return file
    claims = tuple(replace(claim, text=mask_secrets_in_output(claim.text)) for claim in file.claims)
    return replace(file, data=told.encode("utf-8", "surrogateescape"), claims=claims)


def _mask_text_by_suffix(path: str, text: str) -> str:
    if path.endswith(".json"):
        return mask_secrets_in_json(text)
    if path.endswith((".csv", ".tsv")):
        return mask_secrets_in_table(text, "\t" if path.endswith(".tsv") else ",")
    return mask_secrets_in_output(text)


def _check_room_for_files(root: Path, made: str, files: Sequence[DerivedFile]) -> None:
    """What would refuse one of them is told before any is written."""
    for path in (f"{STAMP_FOLDER}/{made}.json", *(file.path for file in files)):
        make_public_folder((root / path).parent, parents=True)
        if (root / path).is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(root / path))


def write_stamp(root: Path, stamp: Stamp) -> None:
    data = encode_json_bytes(make_stamp_relative(stamp, _whereabouts_of_root(root)))
    with explain_failed_writes(root):
        write_derived_file(root / STAMP_FOLDER / f"{stamp.made}.json", msgspec.json.format(data, indent=1))


def read_stamp_or_none(root: Path, made: str) -> Stamp | None:
    """A damaged one vouches for nothing, and is replaced."""
    try:
        return read_stamp(root, made)
    except MusterError:
        return None


def _remove_earlier_files(
    root: Path, before: Sequence[Stamp], now: Mapping[str, FileStamp]
) -> tuple[list[str], list[str]]:
    """A PARTIAL table beside the whole one would be taken for it some day. Outside reports/ nothing is removed."""
    removed: list[str] = []
    left: list[str] = []
    for path, file in [item for stamp in before for item in stamp.files.items()]:
        if path in now or not os.path.normpath(path).startswith(f"{REPORTS_FOLDER}/"):
            continue
        try:
            untouched = _short_sha256(read_regular_file(root / path, LARGEST_DERIVED), 64) == file.sha256
            if untouched:
                (root / path).unlink()
            (removed if untouched else left).append(path)
        except OSError:
            continue
    return removed, left


def read_stamp(root: Path, made: str) -> Stamp | None:
    """None: there is none. A damaged one is an error: what it vouched for can't be told."""
    path = root / STAMP_FOLDER / f"{made}.json"
    try:
        return make_stamp_absolute(
            msgspec.json.decode(read_regular_file(path, LARGEST_DERIVED), type=Stamp), _whereabouts_of_root(root)
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        why = error.strerror or error if isinstance(error, OSError) else error
        away = isinstance(error, OSError) or not made.startswith(OWN_STAMP_PREFIXES)
        code = "campaign.move_away_make_anew" if away else "campaign.make_anew"
        again = phrase(code, command=COMMAND_BY_STAMP.get(made.partition("-")[0], "report"))
        raise MusterError(phrase("campaign.stamp_unreadable", reason=why), where=str(path), hint=again) from None


def _whereabouts_of_root(root: Path) -> CampaignLocation:
    now, real = str(root.absolute()), str(root.resolve())
    return CampaignLocation(now, (), (real,) if real != now else (), read_outside_paths(root / ".muster"))


def read_all_stamps(root: Path) -> Iterator[Stamp]:
    folder = root / STAMP_FOLDER
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        if found := read_stamp(root, path.stem):
            yield found


def write_derived_file(path: Path, data: bytes) -> None:
    """Whole or not at all, and not where nothing changes: a figure that stays the same keeps its times."""
    make_public_folder(path.parent, parents=True)
    with contextlib.suppress(FileNotFoundError, FileTooLarge):
        if read_regular_file(path, LARGEST_DERIVED) == data:
            return
    write_atomically(path, data, mode=PUBLIC_FILE, sync=True)


@contextlib.contextmanager
def explain_failed_writes(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = Path(error.filename or root / REPORTS_FOLDER)
        why, first = error.strerror or str(error), phrase("campaign.fix_it")
        if isinstance(error, IsADirectoryError):
            why, first = phrase("campaign.folder_in_place_of_file"), phrase("campaign.move_it_away")
        elif isinstance(error, FileExistsError | NotADirectoryError):
            where = next((each for each in (where, *where.parents) if each.is_file()), where)
            why, first = phrase("campaign.file_in_place_of_folder"), phrase("campaign.move_it_away")
        elif error.errno == errno.ENOSPC:
            first = phrase("campaign.free_some_space")
        hint = phrase("campaign.former_file_is_whole", first=first)
        raise MusterError(phrase("campaign.reports_unwritable", reason=why), where=str(where), hint=hint) from None


def write_stamped_text(desk: CampaignHandle, status: Status, made: str, command: str, path: Path, text: str) -> None:
    """With a stamp, so that `verify` can say that it was overtaken; a copy elsewhere carries none."""
    data = mask_secrets_in_output(text).encode("utf-8", "replace")
    home, place_ = desk.root.resolve(), path.parent.resolve() / path.name  # `--out ../x` is elsewhere
    if not place_.is_relative_to(home):
        with explain_failed_writes(path.parent):
            write_derived_file(path, data)
        return
    campaign, cells = status.state.campaign, status.cells
    missing = tuple(cell.record.cell.id for cell in cells if not cell.record.done)
    done = len(cells) - len(missing)
    told = digest_campaign_state(status.state, count_decisions_by_people(desk.store.events()))
    basis = StampBasis(campaign.name, {}, {}, done, len(cells), missing, state=told)
    name = str(place_.relative_to(home))
    if name != f"{REPORTS_FOLDER}/{made}.md":  # each place has a stamp of its own: one record does not replace another
        made, command = f"{made}-{_stamp_slug_of_path(name)}", f"{command} --out {shlex.quote(name)}"
    publish_derived_files(
        desk.root, made, command, status.as_of, muster.__version__, basis, [DerivedFile(name, data, "text")]
    )


def _stamp_slug_of_path(name: str) -> str:
    """Of a path, for the name of its stamp: no two paths share one, and none is too long for a file's name."""
    import hashlib

    return f"{name.replace('/', '_')[-40:]}-{hashlib.sha256(name.encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"
