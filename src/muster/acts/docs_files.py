"""People's own texts as files: read with their encoding, replaced whole or not at all, the old version kept."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from muster.domain.errors import MusterError, UsageError
from muster.ports.regular_files import read_regular
from muster.ports.write_files import make_public_folder, umask_of_caller
from muster.report.documents.sidecar import SUFFIX, Damaged, Sidecar, digest
from muster.report.documents.sidecar import read as read_sidecar
from muster.report.documents.sidecar import write as write_sidecar

LARGEST = 8 << 20
LARGEST_SIDECAR = 128 << 20
KEPT = "reports/documents"  # below the campaign's folder: old versions of texts
_WIDE = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


@dataclass(frozen=True, slots=True)
class Document:
    path: Path  # links followed
    data: bytes
    text: str  # a byte order mark and line ends are characters of it
    encoding: str  # utf-8 | gb18030
    facts: os.stat_result

    @property
    def sidecar(self) -> Path:
        return self.path.with_name(self.path.name + SUFFIX)


def read_document(path: Path) -> Document:
    shown = str(path)
    try:
        real = path.resolve(strict=True)
        facts = real.stat()
    except FileNotFoundError:
        raise UsageError("there is no such file", where=shown, hint="name the text to work on") from None
    except (OSError, RuntimeError) as error:  # a link that leads to itself
        raise UsageError(f"it can't be read: {_said(error)}", where=shown) from None
    if stat.S_ISDIR(facts.st_mode):
        raise UsageError("this is a folder", where=shown, hint="name the texts in it, one by one")
    if not stat.S_ISREG(facts.st_mode):
        raise UsageError("this is no ordinary file", where=shown)
    if facts.st_size > LARGEST:
        size = f"{facts.st_size / (1 << 20):.0f} MB"
        hint = f"texts up to {LARGEST >> 20} MB can be worked on; a part of it in a file of its own will do"
        raise UsageError(f"it has {size}: too large for a text", where=shown, hint=hint)
    try:
        data = read_regular(real, LARGEST)
    except OSError as error:
        raise UsageError(f"it can't be read: {_said(error)}", where=shown) from None
    text, encoding = decode(data, shown)
    return Document(real, data, text, encoding, facts)


def decode(data: bytes, shown: str) -> tuple[str, str]:
    """UTF-8, with or without a byte order mark, or GB18030 (which holds all of GBK)."""
    for mark, name in _WIDE.items():
        if data.startswith(mark):
            hint = f"save it as UTF-8: iconv -f {name.lower()} -t utf-8"
            raise UsageError(f"it is {name}, which is not supported", where=shown, hint=hint)
    if b"\0" in data:
        raise UsageError("this is a binary file, no text", where=shown)
    for encoding in ("utf-8", "gb18030"):
        with contextlib.suppress(UnicodeDecodeError):
            text = data.decode(encoding)
            if text.encode(encoding) == data:
                return text, encoding
    raise UsageError("it is neither UTF-8 nor GBK", where=shown, hint="save it as UTF-8")


# -- sidecars


def load_sidecar(document: Document) -> Sidecar | None:
    """What was bound; None: nothing yet. What an interrupted update left is put right on the way."""
    _finish(document)
    path = document.sidecar
    try:
        found = _read(path)
    except FileNotFoundError:
        return None
    except Damaged as damaged:
        hint = f"move it away, then `muster docs bind {document.path.name}` again"
        raise MusterError(f"the bindings are damaged: {damaged}", where=str(path), hint=hint) from None
    except OSError as error:
        hint = f"move it away or mend it, then `muster docs bind {document.path.name}` again"
        raise MusterError(f"the bindings can't be read: {_said(error)}", where=str(path), hint=hint) from None
    if found.file != document.path.name and found.digest != digest(document.text):
        hint = f"move it away, then `muster docs bind {document.path.name}`"
        raise MusterError(f"these are the bindings of {found.file}, another text", where=str(path), hint=hint)
    return found


def save_sidecar(document: Document, sidecar: Sidecar) -> None:
    with refusing(document.sidecar):
        _replace(document.sidecar, write_sidecar(sidecar), None)


def _read(path: Path) -> Sidecar:
    return read_sidecar(read_regular(path, LARGEST_SIDECAR))


def _next(path: Path) -> Path:
    """Where the coming sidecar waits while the text is replaced."""
    return path.with_name(f"{path.name}.next")


def _finish(document: Document) -> None:
    """After a crash in the middle: the text is the old or the new one, and the sidecar becomes the one that fits."""
    waiting = _next(document.sidecar)
    try:
        fits = _read(waiting).digest == digest(document.text)
    except FileNotFoundError:
        return
    except (OSError, Damaged):
        fits = False
    with contextlib.suppress(OSError):
        if fits:
            waiting.replace(document.sidecar)
        else:
            waiting.unlink()


# -- writing


def check_writable(document: Document) -> None:
    """A text without a write bit is meant to stay as it is, whoever asks."""
    bits = stat.S_IMODE(document.facts.st_mode) & 0o222
    if not bits or not os.access(document.path, os.W_OK):
        hint = f"make it writable (chmod u+w {document.path.name}) if it shall change"
        raise MusterError("the text is read-only; nothing was changed", where=str(document.path), hint=hint)


def replace_document(document: Document, data: bytes, sidecar: Sidecar, root: Path, now: datetime) -> Path:
    """The old version is kept first; then text and sidecar change together. Returns where the old one lies."""
    check_writable(document)
    waiting = _next(document.sidecar)
    with refusing(document.path):
        kept = _keep(document, root, now)
        _replace(waiting, write_sidecar(sidecar), None)
        try:
            _replace(document.path, data, document.facts)
        except BaseException:
            with contextlib.suppress(OSError):
                waiting.unlink()
            raise
        waiting.replace(document.sidecar)
    return kept


def replace_text(document: Document, data: bytes) -> None:
    """Whole or not at all, and only while it is still the text that was read."""
    check_writable(document)
    with refusing(document.path):
        _replace(document.path, data, document.facts)


def create_text(path: Path, data: bytes) -> None:
    """A new file, whole or not at all. One that is there already, even since a moment, is never overwritten."""
    fd, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".new")
    temporary = Path(name)
    try:
        with os.fdopen(fd, "wb") as file:
            os.fchmod(file.fileno(), 0o666 & ~umask_of_caller())
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        path.hardlink_to(temporary)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    _sync(path.parent)


def _keep(document: Document, root: Path, now: datetime) -> Path:
    folder = root / KEPT
    make_public_folder(folder, parents=True)
    name = f"{document.path.name}.before-{now:%Y%m%dT%H%M%S}"
    for more in range(1, 1000):
        path = folder / (name if more == 1 else f"{name}-{more}")
        try:
            with open(path, "xb") as file:
                os.fchmod(file.fileno(), stat.S_IMODE(document.facts.st_mode) | stat.S_IRUSR)
                file.write(document.data)
                file.flush()
                os.fsync(file.fileno())
            return path
        except FileExistsError:
            continue
    raise MusterError("there are too many old versions", where=str(folder), hint="take some of them away")


def _replace(path: Path, data: bytes, like: os.stat_result | None) -> None:
    """Whole or not at all; `like`: with that mode and owner, and only if the file is still that one."""
    fd, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".new")
    temporary = Path(name)
    try:
        with os.fdopen(fd, "wb") as file:
            os.fchmod(file.fileno(), stat.S_IMODE(like.st_mode) if like else 0o666 & ~umask_of_caller())
            if like and (like.st_uid, like.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(file.fileno(), like.st_uid, like.st_gid)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if like and _changed(path, like):
            raise MusterError("the text was changed meanwhile; nothing was written", where=str(path), hint="try again")
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _sync(path.parent)


def _changed(path: Path, before: os.stat_result) -> bool:
    now = path.stat()
    return (now.st_mtime_ns, now.st_size, now.st_ino) != (before.st_mtime_ns, before.st_size, before.st_ino)


def _sync(folder: Path) -> None:
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


@contextlib.contextmanager
def refusing(path: Path) -> Iterator[None]:
    """What the file system says, with the file that it is about."""
    try:
        yield
    except OSError as error:
        hint = "check owner and mode of the file and its folder, and the space left"
        raise MusterError(
            f"it can't be written: {_said(error)}", where=str(error.filename or path), hint=hint
        ) from None


def _said(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error)
