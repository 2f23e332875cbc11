"""People's texts as files: read with their encoding, replaced whole or not at all, the old version kept. Their
bindings and stamps lie beside them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from muster.app.campaign.stamp import FileStamp, ReportClaim
from muster.app.documents.number_bindings import (
    DamagedSidecar,
    Sidecar,
    digest_of_text,
    find_bindings_again,
    parse_sidecar,
    sidecar_as_bytes,
)
from muster.files.atomic_write import PUBLIC_FILE, make_public_folder, write_partial_file
from muster.files.safe_open import read_regular_file
from muster.files.state_folder import SIDECAR_SUFFIX
from muster.model.errors import MusterError, UsageError

LARGEST_DOCUMENT = 8 << 20
MOST_LINES = 200_000  # each of them is held apart
LARGEST_SIDECAR = 128 << 20
OLD_VERSIONS_FOLDER = "reports/documents"  # below the campaign's folder: old versions of texts
_WIDE = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


@dataclass(frozen=True, slots=True)
class TextDocument:
    path: Path  # links followed
    data: bytes
    text: str  # a byte order mark and line ends are characters of it
    encoding: str  # utf-8 | gb18030
    facts: os.stat_result

    @property
    def sidecar(self) -> Path:
        return self.path.with_name(self.path.name + SIDECAR_SUFFIX)


def read_text_document(path: Path) -> TextDocument:
    shown = str(path)
    try:
        real = path.resolve(strict=True)
        facts = real.stat()
    except FileNotFoundError:
        raise UsageError("there is no such file", where=shown, hint="name the text to work on") from None
    except (OSError, RuntimeError) as error:  # a link that leads to itself
        raise UsageError(f"it can't be read: {_os_error_text(error)}", where=shown) from None
    if stat.S_ISDIR(facts.st_mode):
        raise UsageError("this is a folder", where=shown, hint="name the texts in it, one by one")
    if not stat.S_ISREG(facts.st_mode):
        raise UsageError("this is no ordinary file", where=shown)
    if facts.st_size > LARGEST_DOCUMENT:
        size = f"{facts.st_size / (1 << 20):.0f} MB"
        hint = f"texts up to {LARGEST_DOCUMENT >> 20} MB can be worked on; a part of it in a file of its own will do"
        raise UsageError(f"it has {size}: too large for a text", where=shown, hint=hint)
    try:
        data = read_regular_file(real, LARGEST_DOCUMENT)
    except OSError as error:
        raise UsageError(f"it can't be read: {_os_error_text(error)}", where=shown) from None
    if (lines := data.count(b"\n")) > MOST_LINES:
        hint = f"texts up to {MOST_LINES:,} lines can be worked on; a part of it in a file of its own will do"
        raise UsageError(f"it has {lines:,} lines: too many for a text", where=shown, hint=hint)
    text, encoding = decode_document(data, shown)
    return TextDocument(real, data, text, encoding, facts)


def decode_document(data: bytes, shown: str) -> tuple[str, str]:
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


def load_sidecar(document: TextDocument) -> Sidecar | None:
    """What was bound; None: nothing yet. What an interrupted update left is put right on the way."""
    _finish_interrupted_update(document)
    path = document.sidecar
    try:
        found = _read_sidecar_file(path)
    except FileNotFoundError:
        return None
    except DamagedSidecar as damaged:
        hint = f"move it away, then `muster docs bind {document.path.name}` again"
        raise MusterError(f"the bindings are damaged: {damaged}", where=str(path), hint=hint) from None
    except OSError as error:
        hint = f"move it away or fix it, then `muster docs bind {document.path.name}` again"
        raise MusterError(f"the bindings can't be read: {_os_error_text(error)}", where=str(path), hint=hint) from None
    if found.file != document.path.name and found.digest != digest_of_text(document.text):
        hint = f"move it away, then `muster docs bind {document.path.name}`"
        raise MusterError(f"these are the bindings of {found.file}, another text", where=str(path), hint=hint)
    return found


def save_sidecar(document: TextDocument, sidecar: Sidecar) -> None:
    with write_errors_as_messages(document.sidecar):
        _replace_file_whole(document.sidecar, sidecar_as_bytes(sidecar), None)


def _read_sidecar_file(path: Path) -> Sidecar:
    return parse_sidecar(read_regular_file(path, LARGEST_SIDECAR))


def _pending_sidecar_path(path: Path) -> Path:
    """Where the coming sidecar waits while the text is replaced."""
    return path.with_name(f"{path.name}.next")


def _finish_interrupted_update(document: TextDocument) -> None:
    """After a crash in the middle: the text is the old or the new one, and the sidecar becomes the one that fits."""
    waiting = _pending_sidecar_path(document.sidecar)
    try:
        fits = _read_sidecar_file(waiting).digest == digest_of_text(document.text)
    except FileNotFoundError:
        return
    except (OSError, DamagedSidecar):
        fits = False
    with contextlib.suppress(OSError):
        if fits:
            waiting.replace(document.sidecar)
        else:
            waiting.unlink()


# -- writing


def check_document_writable(document: TextDocument) -> None:
    """A text without a write bit is meant to stay as it is, whoever asks."""
    bits = stat.S_IMODE(document.facts.st_mode) & 0o222
    if not bits or not os.access(document.path, os.W_OK):
        hint = f"make it writable (chmod u+w {document.path.name}) if it shall change"
        raise MusterError("the text is read-only; nothing was changed", where=str(document.path), hint=hint)


def replace_document(document: TextDocument, data: bytes, sidecar: Sidecar, root: Path, now: datetime) -> Path:
    """The old version is kept first; then text and sidecar change together. Returns where the old one lies."""
    check_document_writable(document)
    waiting = _pending_sidecar_path(document.sidecar)
    with write_errors_as_messages(document.path):
        kept = _keep_old_version(document, root, now)
        _replace_file_whole(waiting, sidecar_as_bytes(sidecar), None)
        try:
            _replace_file_whole(document.path, data, document.facts)
        except BaseException:
            with contextlib.suppress(OSError):
                waiting.unlink()
            raise
        waiting.replace(document.sidecar)
    return kept


def replace_document_text(document: TextDocument, data: bytes) -> None:
    """Whole or not at all, and only while it is still the text that was read."""
    check_document_writable(document)
    with write_errors_as_messages(document.path):
        _replace_file_whole(document.path, data, document.facts)


def create_text_file(path: Path, data: bytes) -> None:
    """A new file, whole or not at all. One that is there already, even since a moment, is never overwritten."""
    temporary = write_partial_file(path, data, mode=PUBLIC_FILE, sync=True)
    try:
        path.hardlink_to(temporary)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    _sync_parent_folder(path.parent)


def _keep_old_version(document: TextDocument, root: Path, now: datetime) -> Path:
    folder = root / OLD_VERSIONS_FOLDER
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


def _replace_file_whole(path: Path, data: bytes, like: os.stat_result | None) -> None:
    """Whole or not at all; `like`: with that mode and owner, and only if the file is still that one."""
    mode = stat.S_IMODE(like.st_mode) if like else PUBLIC_FILE
    temporary = write_partial_file(path, data, mode=mode, exact=like is not None, sync=True)
    try:
        if like and (like.st_uid, like.st_gid) != (os.geteuid(), os.getegid()):
            os.chown(temporary, like.st_uid, like.st_gid)
        if like and _file_has_changed(path, like):
            raise MusterError("the text was changed meanwhile; nothing was written", where=str(path), hint="try again")
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _sync_parent_folder(path.parent)


def _file_has_changed(path: Path, before: os.stat_result) -> bool:
    now = path.stat()
    return (now.st_mtime_ns, now.st_size, now.st_ino) != (before.st_mtime_ns, before.st_size, before.st_ino)


def _sync_parent_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


@contextlib.contextmanager
def write_errors_as_messages(path: Path) -> Iterator[None]:
    """What the file system says, with the file that it is about."""
    try:
        yield
    except OSError as error:
        hint = "check owner and mode of the file and its folder, and the space left"
        raise MusterError(
            f"it can't be written: {_os_error_text(error)}", where=str(error.filename or path), hint=hint
        ) from None


def _os_error_text(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error)


DOCUMENT_STAMP_KIND = "document"


def document_stamp(path: Path, cells: Mapping[str, tuple[str, ...]]) -> FileStamp | None:
    """`cells`: key of a quantity -> the cells it is made of. None: nothing in the text is bound."""
    document = read_text_document(path)
    sidecar = load_sidecar(document)
    if sidecar is None:
        return None
    claims = []
    for number, each in enumerate(sidecar.bindings, 1):
        names = tuple(dict.fromkeys(cell for key in each.keys for cell in cells.get(key, ())))
        claims.append(ReportClaim(f"E{number}", f"line {each.line}: {each.token}", names, each.keys))
    every = tuple(dict.fromkeys(cell for claim in claims for cell in claim.cells))
    return FileStamp(hashlib.sha256(document.data).hexdigest(), DOCUMENT_STAMP_KIND, every, tuple(claims))


def describe_changed_bound_numbers(path: Path) -> str:
    """Why the bound numbers of an edited text are not those that were written; empty: they are."""
    try:
        document = read_text_document(path)
        sidecar = load_sidecar(document)
    except MusterError as error:
        return error.message
    if sidecar is None:
        return "its bindings are gone"
    _, gone = find_bindings_again(sidecar, document.text)
    return "; ".join(f"line {each.binding.line}: {each.binding.token} was changed by hand" for each in gone[:3])
