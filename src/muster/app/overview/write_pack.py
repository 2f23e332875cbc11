"""Writes a pack: the manifest first, then every file, streamed; whole or not at all.

What Muster kept of attempts (logs, exits, orders) is packed without secrets. A file of the user's that holds a known
one is not changed, since numbers and hashes rest on it: the pack is refused and the file is named.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import stat
import tarfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from muster.app.overview.pack_format import (
    MANIFEST_NAME,
    PackFile,
    PackManifest,
    compression_of_name,
    encode_manifest,
    open_compressed_writer,
    why_path_refused,
)
from muster.files.atomic_write import PUBLIC_FILE, create_partial_file
from muster.files.known_secrets import current_masker
from muster.files.safe_open import open_regular_file
from muster.model.errors import MusterError, UsageError
from muster.text.hide_secrets import hide_secrets_in_words
from muster.text.phrases import phrase
from muster.text.secret_masking import HIDDEN_VALUE, SecretMasker, should_hide_value

PACK_CHUNK = 1 << 20
PackProgress = Callable[[str, int, int], None]  # what is done, how many bytes of how many


@dataclass(frozen=True, slots=True)
class PackSource:
    """One file of a pack. `data`: these bytes; else what lies at `place`, as far as `limit` goes."""

    path: str
    place: str = ""
    data: bytes | None = None
    limit: int | None = None


def refuse_pack_target(target: Path, *, force: bool) -> None:
    """What would refuse the pack is told before anything is read."""
    compression_of_name(target)
    if target.is_dir():
        raise UsageError(phrase("overview.pack_target_is_folder"), where=str(target))
    if not target.parent.is_dir():
        raise UsageError(phrase("overview.no_such_folder", folder=target.parent), where=str(target))
    if target.exists() and not force:
        raise UsageError(
            phrase("overview.file_exists", file=target.name),
            where=str(target),
            hint=phrase("overview.name_another_file_or_force"),
        )


def describe_pack_files(sources: Iterable[PackSource], step: PackProgress) -> list[PackFile]:
    """Sizes and hashes, in the order of the paths."""
    ordered = sorted(sources, key=lambda source: source.path)
    sizes = {source.path: _size_and_time(source) for source in ordered}
    of, done = sum(size for size, _ in sizes.values()), 0
    found = []
    for source in ordered:
        if why := why_path_refused(source.path):
            raise MusterError(phrase("overview.name_cant_be_packed", path=source.path, reason=why), where=source.place)
        size, mtime_ns = sizes[source.path]
        digest = hashlib.sha256()
        with _open_source(source) as file:
            for data in _read_chunks(file, size):
                digest.update(data)
                done += len(data)
                step(phrase("overview.hashing"), done, of)
        found.append(PackFile(source.path, size, digest.hexdigest(), mtime_ns))
    return found


def write_pack(
    target: Path, manifest: PackManifest, sources: Iterable[PackSource], step: PackProgress, mode: int = PUBLIC_FILE
) -> int:
    """Beside its place first, then renamed: an interrupted pack leaves nothing. Returns its size."""
    _, kind = compression_of_name(target)
    places = {source.path: source for source in sources}
    partial: Path | None = None
    try:
        fd, partial = create_partial_file(target, mode=mode)
        with open(fd, "wb") as file:
            with open_compressed_writer(file, kind, str(target)) as stream:
                _write_tar_stream(stream, manifest, places, step)
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        partial.replace(target)
    except OSError as error:
        why = error.strerror or str(error)
        raise MusterError(
            phrase("overview.pack_not_written", reason=why), where=error.filename or str(target)
        ) from None
    finally:
        if partial:
            partial.unlink(missing_ok=True)
    return size


def _write_tar_stream(
    stream: BinaryIO, manifest: PackManifest, places: dict[str, PackSource], step: PackProgress
) -> None:
    of, done = manifest.size, 0
    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        head = encode_manifest(manifest)
        tar.addfile(_tar_header(MANIFEST_NAME, len(head), 0), io.BytesIO(head))
        for file in manifest.files:
            with _open_source(places[file.path]) as source:
                checked = _CheckedFile(source, file, places[file.path])
                tar.addfile(_tar_header(file.path, file.size, file.mtime_ns // 10**9), checked)  # type: ignore[arg-type]
                checked.compare()
            done += file.size
            step(phrase("overview.packing"), done, of)


def _tar_header(path: str, size: int, mtime: int) -> tarfile.TarInfo:
    """Owner, group and mode stay behind: they are nobody else's business."""
    info = tarfile.TarInfo(path)
    info.size, info.mtime, info.mode = size, mtime, 0o600
    return info


class _CheckedFile:
    """A file that must still be what the manifest says of it."""

    def __init__(self, file: BinaryIO, told: PackFile, source: PackSource) -> None:
        self._file, self._told, self._source = file, told, source
        self._digest = hashlib.sha256()

    def read(self, count: int) -> bytes:
        data = self._file.read(count)
        if len(data) != count:  # tar asks for as much as was told, and no more
            raise _changed_file_error(self._source)
        self._digest.update(data)
        return data

    def compare(self) -> None:
        if self._digest.hexdigest() != self._told.sha256:
            raise _changed_file_error(self._source)


def _changed_file_error(source: PackSource) -> MusterError:
    hint = phrase("overview.pack_again_when_written")
    return MusterError(phrase("overview.file_changed_while_packed"), where=source.place, hint=hint)


def _size_and_time(source: PackSource) -> tuple[int, int]:
    if source.data is not None:
        return len(source.data), 0
    try:
        found = os.stat(source.place)  # noqa: PTH116 - a link to a file counts as the file
    except OSError as error:
        raise _unreadable_file_error(source, error) from None
    if not stat.S_ISREG(found.st_mode):
        raise MusterError(phrase("overview.packed_thing_is_no_file"), where=source.place)
    return found.st_size if source.limit is None else source.limit, found.st_mtime_ns


@contextlib.contextmanager
def _open_source(source: PackSource) -> Iterator[BinaryIO]:
    if source.data is not None:
        yield io.BytesIO(source.data)
        return
    try:
        file = open_regular_file(source.place)
    except OSError as error:
        raise _unreadable_file_error(source, error) from None
    with file:
        yield file


def _unreadable_file_error(source: PackSource, error: OSError) -> MusterError:
    return MusterError(
        phrase("overview.file_cant_be_packed", reason=error.strerror),
        where=source.place,
        hint=phrase("overview.fix_it_and_pack_again"),
    )


def _read_chunks(file: BinaryIO, left: int) -> Iterator[bytes]:
    while left > 0 and (data := file.read(min(PACK_CHUNK, left))):
        left -= len(data)
        yield data


LARGEST_SEARCHED_FILE = 64 << 20  # bytes; what is larger holds numbers
KEPT_PREFIXES = (".muster/attempts/", ".muster/finish/", ".muster/diffs/", ".muster/controller.log")
FACT_FILES = ("attempt.json", "exit.json", "identity.json")
LOG_ENDINGS = (".log", ".diff")


def mask_pack_sources(sources: Iterable[PackSource], needed: Collection[str]) -> Iterator[PackSource]:
    """`needed`: files by whose hashes numbers are traced; they are packed as they are or not at all."""
    hide = current_masker()
    for source in sources:
        data = _read_source(source)
        told = data and _masked_source(source, data, hide)
        if not data or told == data:
            yield source
        elif told is None or source.place in needed:
            raise MusterError(
                phrase("overview.file_holds_secret", path=source.path),
                where=source.place,
                hint=phrase("overview.take_secret_out_of_file"),
                code="secret",
            )
        else:
            yield replace(source, data=told)


def _read_source(source: PackSource) -> bytes:
    if source.data is not None:
        return source.data
    path = Path(source.place)
    try:
        if path.stat().st_size > LARGEST_SEARCHED_FILE:
            return b""
        data = path.read_bytes()
    except OSError:
        return b""  # who packs it says why
    return data if source.limit is None else data[: source.limit]


def _masked_source(source: PackSource, data: bytes, hide: SecretMasker) -> bytes | None:
    """None: it has a secret and is not ours to change."""
    text = data.decode("utf-8", "surrogateescape")
    name = source.path.rpartition("/")[2]
    if source.path.startswith(KEPT_PREFIXES) and name in FACT_FILES and "/out/" not in source.path:
        return _mask_json_facts(data, hide)
    if source.path.startswith(KEPT_PREFIXES) and name.endswith(LOG_ENDINGS) and "/out/" not in source.path:
        told = hide.mask(text)
        return data if told == text else told.encode("utf-8", "surrogateescape")
    return data if hide.literals(text) == text else None


def _mask_json_facts(data: bytes, hide: SecretMasker) -> bytes | None:
    try:
        facts = json.loads(data)
    except (ValueError, RecursionError):
        return data
    try:
        told = _mask_json_leaves(facts, hide)
    except RecursionError:  # no facts of ours: it may hold no secret at all
        text = data.decode("utf-8", "surrogateescape")
        return data if hide.literals(text) == text else None
    if isinstance(told, dict):
        if isinstance(argv := told.get("argv"), list) and all(isinstance(word, str) for word in argv):
            told["argv"] = hide_secrets_in_words(argv)
        if isinstance(env := told.get("env"), dict):
            told["env"] = {
                name: HIDDEN_VALUE if should_hide_value(name, str(value)) else value for name, value in env.items()
            }
    return data if told == facts else json.dumps(told).encode()


def _mask_json_leaves(value: Any, hide: SecretMasker) -> Any:
    if isinstance(value, str):
        return hide.mask(value)
    if isinstance(value, Mapping):
        return {key: _mask_json_leaves(each, hide) for key, each in value.items()}
    return [_mask_json_leaves(each, hide) for each in value] if isinstance(value, list) else value
