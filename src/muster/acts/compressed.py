"""Compressed streams of packs: gzip always, Zstandard where its package is there."""

from __future__ import annotations

import contextlib
import gzip
import importlib
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Literal

from muster.acts.pack_manifest import NoPack, damaged
from muster.domain.errors import MusterError, UsageError

Kind = Literal["gz", "zst"]
SUFFIXES: dict[str, Kind] = {".tar.gz": "gz", ".tgz": "gz", ".tar.zst": "zst"}
_MAGIC: dict[bytes, Kind] = {b"\x1f\x8b": "gz", b"\x28\xb5\x2f\xfd": "zst"}


def kind_of_name(path: Path) -> tuple[str, Kind]:
    """The name without its suffix, and what the suffix asks for."""
    for suffix, kind in SUFFIXES.items():
        if path.name.endswith(suffix) and path.name != suffix:
            return path.name.removesuffix(suffix), kind
    hint = "name it NAME.tar.gz, or NAME.tar.zst where the package zstandard is installed"
    raise UsageError(f"{path.name} does not end as a pack does", where=str(path), hint=hint)


def zstandard(where: str) -> Any:
    try:
        return importlib.import_module("zstandard")
    except ImportError:
        hint = "pip install zstandard, or use NAME.tar.gz"
        raise MusterError("a .tar.zst needs the package zstandard", where=where, hint=hint, code="missing") from None


@contextlib.contextmanager
def compressing(file: BinaryIO, kind: Kind, where: str) -> Iterator[BinaryIO]:
    """The same bytes make the same file: no time and no name goes into it."""
    if kind == "gz":
        with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0, compresslevel=6) as stream:
            yield stream  # type: ignore[misc]
        return
    made = zstandard(where).ZstdCompressor(level=10, write_checksum=True)
    with made.stream_writer(file, closefd=False) as stream:
        yield stream


def reading(file: BinaryIO, where: str) -> Callable[[int], bytes]:
    """Reads exactly so many bytes, fewer only at the end; a stream that was cut or changed is told as such."""
    head = file.read(4)
    file.seek(0)
    kind = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)
    if kind is None:
        raise NoPack("this is no pack of Muster", where=where, hint="`muster pack FILE.tar.gz` makes one")
    stream: Any
    wrong: tuple[type[Exception], ...]
    if kind == "gz":
        stream, wrong = gzip.GzipFile(fileobj=file), (EOFError, zlib.error, gzip.BadGzipFile)
    else:
        package = zstandard(where)
        stream, wrong = package.ZstdDecompressor().stream_reader(file), (EOFError, package.ZstdError)

    def read(count: int) -> bytes:
        parts = []
        try:
            while count > 0 and (data := stream.read(count)):
                parts.append(data)
                count -= len(data)
        except wrong as error:
            raise damaged(where, str(error) or "its end is missing") from None
        return b"".join(parts)

    return read
