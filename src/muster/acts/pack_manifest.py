"""The manifest of a pack: every file with its size and hash, ahead of all of them. What it may say is checked here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import msgspec

from muster.domain.errors import MusterError

NAME = "muster-pack.json"
FORMAT = 1
LARGEST = 64 << 20  # bytes of a manifest
LONGEST, LONGEST_PART = 4000, 255  # bytes of a path, and of a name in it
LATEST_NS = 1 << 62
STATE = ".muster/"
# of the state: of one machine only. They lead to what runs there, or tell what the log must tell
OF_ONE_MACHINE = frozenset(
    {"ballast", "bell", "controller.log", "guard.json", "hashes.json", "intent", "launched", "registered", "watch.json"}
)
OUR_FOLDERS = ("env/", "lost/", "wandb/")
DATABASE = "campaign.db"
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


class NoPack(MusterError):
    """What is wrong with a pack: it was cut or changed, or it is none."""

    code = "pack"


def encode(manifest: PackManifest) -> bytes:
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1)


def decode(data: bytes, where: str) -> PackManifest:
    try:
        told = msgspec.json.decode(data, type=_Told)
        if told.muster_pack != FORMAT:
            hint = "a later version of Muster made it: use that one"
            raise NoPack(f"its format is {told.muster_pack}, and this Muster knows {FORMAT}", where=where, hint=hint)
        found = msgspec.json.decode(data, type=PackManifest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise damaged(where, f"its manifest can't be read: {error}") from None
    for trouble in _troubles(found):
        raise damaged(where, trouble)
    return found


class _Told(msgspec.Struct):
    muster_pack: int


def damaged(where: str, why: str) -> NoPack:
    hint = "it was cut or changed, or is no pack: copy it once more, or pack again. Nothing was unpacked"
    return NoPack(f"the pack is not whole: {why}", where=where, hint=hint)


def _troubles(found: PackManifest) -> Iterator[str]:
    paths = [file.path for file in found.files]
    for path in (*paths, *found.folders):
        if why := refused_path(path):
            yield f"its manifest names {path!r}, {why}"
        elif path.startswith(STATE) and is_of_one_machine(path.removeprefix(STATE)):
            yield f"its manifest names {path!r}, which no pack holds"
    for text in (found.campaign, found.version, found.log.at, *found.left_out):
        if not text.isprintable():
            yield f"its manifest holds a text that can't be printed: {text!r}"
    known = set(paths)
    if len(known) != len(paths):
        yield "its manifest names a file twice"
    for path in (*paths, *found.folders):
        if any(str(parent) in known for parent in PurePosixPath(path).parents) or (
            path in found.folders and path in known
        ):
            yield f"its manifest names {path!r} below a file"
    for file in found.files:
        if file.size < 0 or not _DIGEST.fullmatch(file.sha256) or not 0 <= file.mtime_ns < LATEST_NS:
            yield f"its manifest tells no size, hash or time of {file.path!r}"
    if not {"campaign.yaml", ".muster/decisions.jsonl"} & known:
        yield "there is no campaign in it"


def is_of_one_machine(name: str) -> bool:
    """Of a path below the state: environments may hold secrets, and the log is folded anew where it is unpacked."""
    return name in OF_ONE_MACHINE or name.startswith((*OUR_FOLDERS, DATABASE)) or name.endswith(".lock")


def refused_path(path: str) -> str:
    """Why a path may not be in a pack; empty: it may. Nothing may lead out of the folder."""
    if not path or path.startswith("/"):
        return "which is absolute" if path else "which is no name"
    parts = path.split("/")
    if ".." in parts:
        return "which leads out of its folder"
    if "" in parts or "." in parts or "\0" in path or path == NAME:
        return "which is no name of a file"
    if len(path.encode("utf-8", "surrogateescape")) > LONGEST or any(
        len(part.encode("utf-8", "surrogateescape")) > LONGEST_PART for part in parts
    ):
        return "which is too long a name"
    return ""


def folders_of(paths: Iterable[str]) -> list[str]:
    """Every folder that these paths need, parents first."""
    found = {str(parent) for path in paths for parent in PurePosixPath(path).parents} - {"."}
    return sorted(found, key=lambda path: (path.count("/"), path))
