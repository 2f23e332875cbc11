"""Unpacks a pack: every file is held against the manifest before anything of it can be seen."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from muster.acts.compressed import kind_of_name, reading
from muster.acts.pack_manifest import LARGEST, NAME, PackFile, PackManifest, damaged, decode, folders_of
from muster.acts.tar_reader import BadTar, Member, members
from muster.domain.errors import MusterError, UsageError
from muster.ports.regular_files import open_regular
from muster.ports.write_files import PUBLIC_FOLDER, umask_of_caller

STATE = ".muster"
Step = Callable[[str, int, int], None]
Mark = Callable[[Path, Path], None]  # of a state and the folder it goes to: nothing goes on in it by itself


@dataclass(frozen=True, slots=True)
class Unpacked:
    folder: Path
    manifest: PackManifest


def folder_for(pack: Path, here: Path) -> Path:
    """Where a pack goes if nobody says."""
    return here / kind_of_name(pack)[0]


def unpack(pack: Path, folder: Path, step: Step, mark: Mark) -> Unpacked:
    _refuse_pack(pack)
    _refuse_folder(folder)
    try:
        beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.unpacking-", dir=folder.parent))
    except OSError as error:
        raise MusterError(f"nothing can be unpacked here: {error.strerror}", where=str(folder.parent)) from None
    try:
        with open_regular(pack) as file:
            manifest = _extract(members(reading(file, str(pack))), beside, str(pack), step)
        if (beside / STATE).is_dir():
            mark(beside / STATE, folder)
        beside.chmod(PUBLIC_FOLDER & ~umask_of_caller())
        beside.rename(folder)
    except BadTar as error:
        raise damaged(str(pack), str(error)) from None
    except OSError as error:
        why = error.strerror or str(error)
        hint = "nothing was unpacked; mend it and try again"
        raise MusterError(f"the pack could not be unpacked: {why}", where=str(folder), hint=hint) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return Unpacked(folder, manifest)


def _refuse_pack(pack: Path) -> None:
    if not pack.exists():
        raise UsageError(f"there is no file {pack}", where=str(pack))
    if not pack.is_file():
        raise UsageError("this is no file; name a pack", where=str(pack), hint="`muster pack FILE.tar.gz` makes one")
    if not os.access(pack, os.R_OK):
        raise MusterError("the pack can't be read", where=str(pack))


def _refuse_folder(folder: Path) -> None:
    hint = "name a folder that does not exist: muster unpack FILE DIR"
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UsageError(f"{folder.name} exists, and is no folder", where=str(folder), hint=hint)
    if folder.is_dir() and (any(folder.iterdir()) or folder.samefile(Path.cwd())):
        why = "is not empty" if any(folder.iterdir()) else "is the folder you are in"
        raise UsageError(f"{folder.name} {why}", where=str(folder), hint=hint)
    if not folder.parent.is_dir():
        raise UsageError(f"there is no folder {folder.parent}", where=str(folder))


def _extract(found: Iterator[Member], folder: Path, where: str, step: Step) -> PackManifest:
    manifest = _manifest(next(found, None), where)
    free = shutil.disk_usage(folder).free
    if manifest.size > free:
        raise MusterError(
            f"the disk has {free} bytes left, and the pack holds {manifest.size}", where=str(folder.parent),
            hint="free some space, or unpack elsewhere",
        )  # fmt: skip
    waiting = {file.path: file for file in manifest.files}
    _make_folders(folder, manifest)
    done = 0
    for member in found:
        told = waiting.pop(member.name, None)
        if told is None:
            known = any(file.path == member.name for file in manifest.files)
            raise BadTar(f"{member.name!r} is in it {'twice' if known else 'and not in its manifest'}")
        if member.size != told.size:
            raise BadTar(f"{member.name!r} has {member.size} bytes, and its manifest says {told.size}")
        _write(folder / told.path, told, member.chunks())
        done += told.size
        step("unpacking", done, manifest.size)
    if waiting:
        raise BadTar(f"{next(iter(waiting))!r} is missing in it")
    return manifest


def _manifest(first: Member | None, where: str) -> PackManifest:
    if first is None or first.name != NAME:
        raise BadTar("it does not begin with its manifest")
    if first.size > LARGEST:
        raise BadTar("its manifest is too long")
    return decode(b"".join(first.chunks()), where)


def _make_folders(folder: Path, manifest: PackManifest) -> None:
    paths = [*(file.path for file in manifest.files), *(f"{path}/in it" for path in manifest.folders)]
    for path in folders_of(paths):
        (folder / path).mkdir(mode=0o700 if _is_state(path) else 0o777)


def _is_state(path: str) -> bool:
    return path == STATE or path.startswith(f"{STATE}/")


def _write(path: Path, told: PackFile, chunks: Iterator[bytes]) -> None:
    """Nobody's program: no mode of the pack is taken over."""
    digest = hashlib.sha256()
    mode = 0o600 if _is_state(told.path) else 0o666

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NOFOLLOW, mode)

    with open(path, "xb", opener=opener) as file:
        for data in chunks:
            digest.update(data)
            file.write(data)
    if digest.hexdigest() != told.sha256:
        raise BadTar(f"{told.path!r} is not what its manifest says")
    os.utime(path, ns=(told.mtime_ns, told.mtime_ns))


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end it as Ctrl-C does: what is half done is taken away."""
    import signal

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
