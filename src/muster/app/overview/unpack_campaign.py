"""`muster unpack`: every file is checked against the manifest before anything of it can be seen.

The tar files are read here, member by member: tarfile would follow what a header claims (links, devices, owners,
headers of any length in memory). This knows plain files with their name and size, and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from muster.app.overview.pack_format import (
    LARGEST_MANIFEST,
    MANIFEST_NAME,
    PackFile,
    PackManifest,
    compression_of_name,
    damaged_pack_error,
    decode_manifest,
    folders_of_paths,
    make_stream_reader,
)
from muster.files.atomic_write import PUBLIC_FOLDER, umask_of_caller
from muster.files.safe_open import open_regular_file
from muster.model.campaign_location import STATE_FOLDER
from muster.model.errors import MusterError, UsageError
from muster.text.phrases import phrase

TAR_BLOCK = 512
TAR_CHUNK = 1 << 20
LARGEST_EXTENSION = 64 << 10  # bytes of a pax header: a long name
LONGEST_END = 1 << 20  # bytes of padding after the last member
REFUSED_TAR_KINDS = {
    b"1": "overview.kind_hard_link",
    b"2": "overview.kind_symbolic_link",
    b"3": "overview.kind_device",
    b"4": "overview.kind_device",
    b"5": "overview.kind_folder",
    b"6": "overview.kind_pipe",
}
_PLAIN, _EXTENSION = b"0", b"x"
_OCTAL = re.compile(rb"[0-7]+[\0 ]?")
_KNOWN_PAX_KEYS = frozenset({"path", "size", "mtime"})

ReadBytes = Callable[[int], bytes]  # at most so many bytes; fewer only at the end


class BadTar(Exception):
    """Why this is no tar file of ours."""


@dataclass(frozen=True, slots=True)
class TarMember:
    name: str
    size: int
    chunks: Callable[[], Iterator[bytes]]  # to be read to its end before the next member


def read_tar_members(read: ReadBytes) -> Iterator[TarMember]:
    """Until the end of the archive, which is read as well: only then its checksum has been compared."""
    whole = _make_exact_reader(read)
    while (header := whole(TAR_BLOCK)) != bytes(TAR_BLOCK):
        extension: dict[str, str] = {}
        if _header_kind(header) == _EXTENSION:
            size = _header_size(header)
            if size > LARGEST_EXTENSION:
                raise BadTar(phrase("overview.pack_header_too_long"))
            extension = _parse_pax_header(whole(size + _padding_to_block(size))[:size])
            header = whole(TAR_BLOCK)
        kind = _header_kind(header)
        name = extension.get("path") or _header_name(header)
        if kind != _PLAIN:
            code = REFUSED_TAR_KINDS.get(kind, "overview.kind_not_plain")
            raise BadTar(phrase("overview.member_is_no_file", member=name, kind=phrase(code)))
        size = int(extension["size"]) if "size" in extension else _header_size(header)
        left = [size + _padding_to_block(size)]
        yield TarMember(name, size, lambda left=left, size=size: _member_chunks(whole, left, size))  # type: ignore[misc]
        if left[0]:
            raise BadTar(phrase("overview.member_not_read", member=name))
    _read_tar_end(read)


def _member_chunks(whole: ReadBytes, left: list[int], size: int) -> Iterator[bytes]:
    while size:
        data = whole(min(TAR_CHUNK, size))
        size -= len(data)
        left[0] -= len(data)
        yield data
    whole(left[0])
    left[0] = 0


def _read_tar_end(read: ReadBytes) -> None:
    seen = 0
    while data := read(TAR_CHUNK):
        seen += len(data)
        if seen > LONGEST_END or data.strip(b"\0"):
            raise BadTar(phrase("overview.pack_goes_on_after_end"))
    if seen < TAR_BLOCK:
        raise BadTar(phrase("overview.pack_end_missing"))


def _make_exact_reader(read: ReadBytes) -> ReadBytes:
    def exactly(count: int) -> bytes:
        data = read(count)
        if len(data) != count:
            raise BadTar(phrase("overview.pack_end_missing"))
        return data

    return exactly


def _padding_to_block(size: int) -> int:
    return -size % TAR_BLOCK


def _header_kind(header: bytes) -> bytes:
    told, rest = header[148:156], header[:148] + b" " * 8 + header[156:]
    if _parse_octal(told) != sum(rest) or not header[257:263].startswith(b"ustar"):
        raise BadTar(phrase("overview.pack_header_damaged"))
    return header[156:157]


def _header_size(header: bytes) -> int:
    return _parse_octal(header[124:136])


def _parse_octal(field: bytes) -> int:
    text = field.strip(b"\0 ")
    if not _OCTAL.fullmatch(text):
        raise BadTar(phrase("overview.pack_number_damaged"))
    return int(text, 8)


def _header_name(header: bytes) -> str:
    name, prefix = (header[start:end].partition(b"\0")[0] for start, end in ((0, 100), (345, 500)))
    with contextlib.suppress(UnicodeDecodeError):
        return (prefix + b"/" + name if prefix else name).decode()
    raise BadTar(phrase("overview.pack_name_damaged"))


def _parse_pax_header(data: bytes) -> dict[str, str]:
    """Of a pax header: `LENGTH KEY=VALUE` and a line's end, each."""
    found: dict[str, str] = {}
    try:
        while data:
            length = int(data[: data.index(b" ")])
            key, equals, value = data[data.index(b" ") + 1 : length - 1].decode().partition("=")
            if (
                not equals
                or not 4 < length <= len(data)
                or data[length - 1 : length] != b"\n"
                or key not in _KNOWN_PAX_KEYS
            ):
                raise BadTar(phrase("overview.pack_header_damaged"))
            found[key] = value
            data = data[length:]
    except ValueError:
        raise BadTar(phrase("overview.pack_header_damaged")) from None
    if "size" in found and not (found["size"].isascii() and found["size"].isdecimal()):
        raise BadTar(phrase("overview.pack_header_damaged"))
    return found


UnpackProgress = Callable[[str, int, int], None]
MarkState = Callable[[Path, Path], None]  # of a state and the folder it goes to: nothing goes on in it by itself


@dataclass(frozen=True, slots=True)
class UnpackResult:
    folder: Path
    manifest: PackManifest


def default_unpack_folder(pack: Path, here: Path) -> Path:
    """Where a pack goes if nobody says."""
    return here / compression_of_name(pack)[0]


def unpack_campaign(pack: Path, folder: Path, step: UnpackProgress, mark: MarkState) -> UnpackResult:
    _refuse_unreadable_pack(pack)
    _refuse_unpack_folder(folder)
    try:
        beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.unpacking-", dir=folder.parent))
    except OSError as error:
        raise MusterError(
            phrase("overview.cant_unpack_here", reason=error.strerror), where=str(folder.parent)
        ) from None
    try:
        with open_regular_file(pack) as file:
            manifest = _extract_members(read_tar_members(make_stream_reader(file, str(pack))), beside, str(pack), step)
        if (beside / STATE_FOLDER).is_dir():
            mark(beside / STATE_FOLDER, folder)
        beside.chmod(PUBLIC_FOLDER & ~umask_of_caller())
        beside.rename(folder)
    except BadTar as error:
        raise damaged_pack_error(str(pack), error.args[0]) from None
    except OSError as error:
        why = error.strerror or str(error)
        hint = phrase("overview.fix_it_and_unpack_again")
        raise MusterError(phrase("overview.pack_not_unpacked", reason=why), where=str(folder), hint=hint) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return UnpackResult(folder, manifest)


def _refuse_unreadable_pack(pack: Path) -> None:
    if not pack.exists():
        raise UsageError(phrase("overview.no_such_pack", file=pack), where=str(pack))
    if not pack.is_file():
        raise UsageError(phrase("overview.pack_is_no_file"), where=str(pack), hint=phrase("overview.pack_makes_one"))
    if not os.access(pack, os.R_OK):
        raise MusterError(phrase("overview.pack_unreadable"), where=str(pack))


def _refuse_unpack_folder(folder: Path) -> None:
    hint = phrase("overview.name_folder_to_unpack_to")
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UsageError(phrase("overview.exists_and_is_no_folder", file=folder.name), where=str(folder), hint=hint)
    if folder.is_dir() and (any(folder.iterdir()) or folder.samefile(Path.cwd())):
        code = "overview.folder_is_not_empty" if any(folder.iterdir()) else "overview.folder_is_where_you_are"
        raise UsageError(phrase(code, folder=folder.name), where=str(folder), hint=hint)
    if not folder.parent.is_dir():
        raise UsageError(phrase("overview.no_such_folder", folder=folder.parent), where=str(folder))


def _extract_members(found: Iterator[TarMember], folder: Path, where: str, step: UnpackProgress) -> PackManifest:
    manifest = _read_manifest_member(next(found, None), where)
    free = shutil.disk_usage(folder).free
    if manifest.size > free:
        raise MusterError(
            phrase("overview.disk_too_small_for_pack", free=free, size=manifest.size),
            where=str(folder.parent),
            hint=phrase("overview.free_space_or_unpack_elsewhere"),
        )
    waiting = {file.path: file for file in manifest.files}
    _make_unpacked_folders(folder, manifest)
    done = 0
    for member in found:
        told = waiting.pop(member.name, None)
        if told is None:
            known = any(file.path == member.name for file in manifest.files)
            raise BadTar(phrase("overview.member_twice" if known else "overview.member_unknown", member=member.name))
        if member.size != told.size:
            raise BadTar(
                phrase("overview.member_size_differs", member=member.name, size=member.size, declared=told.size)
            )
        _write_unpacked_file(folder / told.path, told, member.chunks())
        done += told.size
        step(phrase("overview.unpacking"), done, manifest.size)
    if waiting:
        raise BadTar(phrase("overview.member_missing", member=next(iter(waiting))))
    return manifest


def _read_manifest_member(first: TarMember | None, where: str) -> PackManifest:
    if first is None or first.name != MANIFEST_NAME:
        raise BadTar(phrase("overview.no_manifest_first"))
    if first.size > LARGEST_MANIFEST:
        raise BadTar(phrase("overview.manifest_too_long"))
    return decode_manifest(b"".join(first.chunks()), where)


def _make_unpacked_folders(folder: Path, manifest: PackManifest) -> None:
    paths = [
        *(file.path for file in manifest.files),
        *(f"{path}/in it" for path in manifest.folders),
    ]
    for path in folders_of_paths(paths):
        (folder / path).mkdir(mode=0o700 if _is_state_path(path) else 0o777)


def _is_state_path(path: str) -> bool:
    return path == STATE_FOLDER or path.startswith(f"{STATE_FOLDER}/")


def _write_unpacked_file(path: Path, told: PackFile, chunks: Iterator[bytes]) -> None:
    """Nobody's program: no mode of the pack is taken over."""
    digest = hashlib.sha256()
    mode = 0o600 if _is_state_path(told.path) else 0o666

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NOFOLLOW, mode)

    with open(path, "xb", opener=opener) as file:
        for data in chunks:
            digest.update(data)
            file.write(data)
    if digest.hexdigest() != told.sha256:
        raise BadTar(phrase("overview.member_differs", member=told.path))
    os.utime(path, ns=(told.mtime_ns, told.mtime_ns))


@contextlib.contextmanager
def interrupt_on_signals() -> Iterator[None]:
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
