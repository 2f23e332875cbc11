"""The format of packs: the manifest with every file's size and hash ahead of all files, and compression (gzip always,
Zstandard where its package is there). What a manifest may say is checked here.
"""

from __future__ import annotations

import contextlib
import gzip
import importlib
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Literal

import msgspec

from muster.model.errors import MusterError, UsageError
from muster.text.phrases import phrase

MANIFEST_NAME = "muster-pack.json"
PACK_FORMAT = 1
LARGEST_MANIFEST = 64 << 20  # bytes of a manifest
LONGEST, LONGEST_PART = 4000, 255  # bytes of a path, and of a name in it
LATEST_NS = 1 << 62
STATE_PREFIX = ".muster/"
# of the state: of one machine only. They lead to what runs there, or tell what the log must tell
OF_ONE_MACHINE = frozenset(
    {"ballast", "bell", "controller.log", "guard.json", "hashes.json", "intent", "launched", "registered", "watch.json"}
)
OWN_FOLDERS = ("env/", "lost/", "wandb/")
DATABASE_PREFIX = "campaign.db"
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class PackFile:
    path: str  # relative to the campaign's folder
    size: int
    sha256: str
    mtime_ns: int  # whether a result was written after its run is told by this


@dataclass(frozen=True, slots=True)
class LogRevision:
    """Up to where the decision log is in the pack."""

    bytes: int
    at: str  # of its last decision


@dataclass(frozen=True, slots=True)
class PackManifest:
    muster_pack: int
    version: str  # of Muster
    campaign: str
    log: LogRevision
    files: tuple[PackFile, ...]
    folders: tuple[str, ...] = ()  # that must be there, with or without a file
    left_out: tuple[str, ...] = field(default=())  # cells whose checkpoint is not in it, with its hash on record
    outside: int = 0  # files that lay outside of the campaign's folder

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


class PackError(MusterError):
    """What is wrong with a pack: it was cut or changed, or it is none."""

    code = "pack"


def encode_manifest(manifest: PackManifest) -> bytes:
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1)


def decode_manifest(data: bytes, where: str) -> PackManifest:
    try:
        told = msgspec.json.decode(data, type=_ManifestHead)
        if told.muster_pack != PACK_FORMAT:
            hint = phrase("overview.use_later_version")
            raise PackError(
                phrase("overview.pack_format_unknown", format=told.muster_pack, known=PACK_FORMAT),
                where=where,
                hint=hint,
            )
        found = msgspec.json.decode(data, type=PackManifest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise damaged_pack_error(where, phrase("overview.manifest_unreadable", error=error)) from None
    for trouble in _find_manifest_troubles(found):
        raise damaged_pack_error(where, trouble)
    return found


class _ManifestHead(msgspec.Struct):
    muster_pack: int


def damaged_pack_error(where: str, why: str) -> PackError:
    hint = phrase("overview.copy_pack_once_more")
    return PackError(phrase("overview.pack_not_whole", reason=why), where=where, hint=hint)


def _find_manifest_troubles(found: PackManifest) -> Iterator[str]:
    paths = [file.path for file in found.files]
    for path in (*paths, *found.folders):
        if why := why_path_refused(path):
            yield phrase("overview.manifest_names_bad_path", path=path, reason=why)
        elif path.startswith(STATE_PREFIX) and is_machine_specific(path.removeprefix(STATE_PREFIX)):
            yield phrase("overview.manifest_names_foreign_path", path=path)
    for text in (found.campaign, found.version, found.log.at, *found.left_out):
        if not text.isprintable():
            yield phrase("overview.manifest_text_unprintable", text=text)
    known = set(paths)
    if len(known) != len(paths):
        yield phrase("overview.manifest_names_file_twice")
    for path in (*paths, *found.folders):
        if any(str(parent) in known for parent in PurePosixPath(path).parents) or (
            path in found.folders and path in known
        ):
            yield phrase("overview.manifest_path_below_file", path=path)
    for file in found.files:
        if file.size < 0 or not _DIGEST.fullmatch(file.sha256) or not 0 <= file.mtime_ns < LATEST_NS:
            yield phrase("overview.manifest_facts_missing", path=file.path)
    if not {"campaign.yaml", ".muster/decisions.jsonl"} & known:
        yield phrase("overview.pack_without_campaign")


def is_machine_specific(name: str) -> bool:
    """Of a path below the state: environments may hold secrets, and the log is folded anew where it is unpacked."""
    return name in OF_ONE_MACHINE or name.startswith((*OWN_FOLDERS, DATABASE_PREFIX)) or name.endswith(".lock")


def why_path_refused(path: str) -> str:
    """Why a path may not be in a pack; empty: it may. Nothing may lead out of the folder."""
    if not path or path.startswith("/"):
        return phrase("overview.path_is_absolute") if path else phrase("overview.path_has_no_name")
    parts = path.split("/")
    if ".." in parts:
        return phrase("overview.path_leads_out")
    if "" in parts or "." in parts or "\0" in path or path == MANIFEST_NAME:
        return phrase("overview.path_names_no_file")
    if len(path.encode("utf-8", "surrogateescape")) > LONGEST or any(
        len(part.encode("utf-8", "surrogateescape")) > LONGEST_PART for part in parts
    ):
        return phrase("overview.path_too_long")
    return ""


def folders_of_paths(paths: Iterable[str]) -> list[str]:
    """Every folder that these paths need, parents first."""
    found = {str(parent) for path in paths for parent in PurePosixPath(path).parents} - {"."}
    return sorted(found, key=lambda path: (path.count("/"), path))


Compression = Literal["gz", "zst"]
PACK_SUFFIXES: dict[str, Compression] = {".tar.gz": "gz", ".tgz": "gz", ".tar.zst": "zst"}
_MAGIC: dict[bytes, Compression] = {b"\x1f\x8b": "gz", b"\x28\xb5\x2f\xfd": "zst"}


def compression_of_name(path: Path) -> tuple[str, Compression]:
    """The name without its suffix, and what the suffix asks for."""
    for suffix, kind in PACK_SUFFIXES.items():
        if path.name.endswith(suffix) and path.name != suffix:
            return path.name.removesuffix(suffix), kind
    hint = phrase("overview.pack_names")
    raise UsageError(phrase("overview.pack_name_unknown", file=path.name), where=str(path), hint=hint)


def import_zstandard(where: str) -> Any:
    try:
        return importlib.import_module("zstandard")
    except ImportError:
        hint = phrase("overview.install_zstandard")
        raise MusterError(phrase("overview.zstandard_missing"), where=where, hint=hint, code="missing") from None


@contextlib.contextmanager
def open_compressed_writer(file: BinaryIO, kind: Compression, where: str) -> Iterator[BinaryIO]:
    """The same bytes make the same file: no time and no name goes into it."""
    if kind == "gz":
        with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0, compresslevel=6) as stream:
            yield stream  # type: ignore[misc]
        return
    made = import_zstandard(where).ZstdCompressor(level=10, write_checksum=True)
    with made.stream_writer(file, closefd=False) as stream:
        yield stream


def make_stream_reader(file: BinaryIO, where: str) -> Callable[[int], bytes]:
    """Reads exactly so many bytes, fewer only at the end; a stream that was cut or changed is told as such."""
    head = file.read(4)
    file.seek(0)
    kind = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)
    if kind is None:
        raise PackError(phrase("overview.not_a_pack"), where=where, hint=phrase("overview.pack_makes_one"))
    stream: Any
    wrong: tuple[type[Exception], ...]
    if kind == "gz":
        stream, wrong = gzip.GzipFile(fileobj=file), (EOFError, zlib.error, gzip.BadGzipFile)
    else:
        package = import_zstandard(where)
        stream, wrong = package.ZstdDecompressor().stream_reader(file), (EOFError, package.ZstdError)

    def read(count: int) -> bytes:
        parts = []
        try:
            while count > 0 and (data := stream.read(count)):
                parts.append(data)
                count -= len(data)
        except wrong as error:
            raise damaged_pack_error(where, str(error) or phrase("overview.pack_end_missing")) from None
        return b"".join(parts)

    return read
