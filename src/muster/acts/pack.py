"""Writes a pack: the manifest first, then every file as the manifest says, streamed; whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from muster.acts.compressed import compressing, kind_of_name
from muster.acts.pack_manifest import NAME, PackFile, PackManifest, encode, refused_path
from muster.domain.errors import MusterError, UsageError
from muster.ports.regular_files import open_regular
from muster.ports.write_files import PUBLIC_FILE, create_partial

CHUNK = 1 << 20
Step = Callable[[str, int, int], None]  # what is done, how many bytes of how many


@dataclass(frozen=True, slots=True)
class Source:
    """One file of a pack. `data`: these bytes; else what lies at `place`, as far as `limit` goes."""

    path: str
    place: str = ""
    data: bytes | None = None
    limit: int | None = None


def refuse_target(target: Path, *, force: bool) -> None:
    """What would refuse the pack is told before anything is read."""
    kind_of_name(target)
    if target.is_dir():
        raise UsageError("this is a folder; name the file that is to be made", where=str(target))
    if not target.parent.is_dir():
        raise UsageError(f"there is no folder {target.parent}", where=str(target))
    if target.exists() and not force:
        raise UsageError(f"{target.name} exists", where=str(target), hint="name another file, or add --force")


def describe(sources: Iterable[Source], step: Step) -> list[PackFile]:
    """Sizes and hashes, in the order of the paths."""
    ordered = sorted(sources, key=lambda source: source.path)
    sizes = {source.path: _facts(source) for source in ordered}
    of, done = sum(size for size, _ in sizes.values()), 0
    found = []
    for source in ordered:
        if why := refused_path(source.path):
            raise MusterError(f"{source.path!r} can't be packed: a name {why}", where=source.place)
        size, mtime_ns = sizes[source.path]
        digest = hashlib.sha256()
        with _opened(source) as file:
            for data in _limited(file, size):
                digest.update(data)
                done += len(data)
                step("hashing", done, of)
        found.append(PackFile(source.path, size, digest.hexdigest(), mtime_ns))
    return found


def write_pack(
    target: Path, manifest: PackManifest, sources: Iterable[Source], step: Step, mode: int = PUBLIC_FILE
) -> int:
    """Beside its place first, then renamed: an interrupted pack leaves nothing. Returns its size."""
    _, kind = kind_of_name(target)
    places = {source.path: source for source in sources}
    partial: Path | None = None
    try:
        fd, partial = create_partial(target, mode=mode)
        with open(fd, "wb") as file:
            with compressing(file, kind, str(target)) as stream:
                _write_tar(stream, manifest, places, step)
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        partial.replace(target)
    except OSError as error:
        why = error.strerror or str(error)
        raise MusterError(f"the pack could not be written: {why}", where=error.filename or str(target)) from None
    finally:
        if partial:
            partial.unlink(missing_ok=True)
    return size


def _write_tar(stream: BinaryIO, manifest: PackManifest, places: dict[str, Source], step: Step) -> None:
    of, done = manifest.size, 0
    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        head = encode(manifest)
        tar.addfile(_header(NAME, len(head), 0), io.BytesIO(head))
        for file in manifest.files:
            with _opened(places[file.path]) as source:
                checked = _Checked(source, file, places[file.path])
                tar.addfile(_header(file.path, file.size, file.mtime_ns // 10**9), checked)  # type: ignore[arg-type]
                checked.compare()
            done += file.size
            step("packing", done, of)


def _header(path: str, size: int, mtime: int) -> tarfile.TarInfo:
    """Owner, group and mode stay behind: they are nobody else's business."""
    info = tarfile.TarInfo(path)
    info.size, info.mtime, info.mode = size, mtime, 0o600
    return info


class _Checked:
    """A file that must still be what the manifest says of it."""

    def __init__(self, file: BinaryIO, told: PackFile, source: Source) -> None:
        self._file, self._told, self._source = file, told, source
        self._digest = hashlib.sha256()

    def read(self, count: int) -> bytes:
        data = self._file.read(count)
        if len(data) != count:  # tar asks for as much as was told, and no more
            raise _changed(self._source)
        self._digest.update(data)
        return data

    def compare(self) -> None:
        if self._digest.hexdigest() != self._told.sha256:
            raise _changed(self._source)


def _changed(source: Source) -> MusterError:
    hint = "something writes to it; pack again when that has ended"
    return MusterError("a file changed while it was packed", where=source.place, hint=hint)


def _facts(source: Source) -> tuple[int, int]:
    if source.data is not None:
        return len(source.data), 0
    try:
        found = os.stat(source.place)  # noqa: PTH116 - a link to a file counts as the file
    except OSError as error:
        raise _unreadable(source, error) from None
    if not stat.S_ISREG(found.st_mode):
        raise MusterError("what is to be packed is no plain file", where=source.place)
    return found.st_size if source.limit is None else source.limit, found.st_mtime_ns


@contextlib.contextmanager
def _opened(source: Source) -> Iterator[BinaryIO]:
    if source.data is not None:
        yield io.BytesIO(source.data)
        return
    try:
        file = open_regular(source.place)
    except OSError as error:
        raise _unreadable(source, error) from None
    with file:
        yield file


def _unreadable(source: Source, error: OSError) -> MusterError:
    return MusterError(f"a file can't be packed: {error.strerror}", where=source.place, hint="mend it and pack again")


def _limited(file: BinaryIO, left: int) -> Iterator[bytes]:
    while left > 0 and (data := file.read(min(CHUNK, left))):
        left -= len(data)
        yield data
