"""The journals of a folder: `dev_v40.md`, `dev_v41.md`, found, read and written."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from muster.acts.docs_files import Document, read_document
from muster.domain.errors import MusterError, UsageError
from muster.report.journal import points
from muster.report.journal.compose import name_of
from muster.report.journal.points import Journal
from muster.report.journal.scan import Line, Unreadable, scan

_NAME = re.compile(r"dev_v(0|[1-9][0-9]{0,5})\.md")
LATEST = 999_999


@dataclass(frozen=True, slots=True)
class Opened:
    """A journal as it lies there."""

    document: Document
    version: int
    lines: list[Line]
    journal: Journal

    @property
    def name(self) -> str:
        return self.document.path.name


def versions(folder: Path) -> list[int]:
    """In order. Whatever has such a name counts: it must not be overwritten."""
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except FileNotFoundError:
        raise UsageError("there is no such folder", where=str(folder), hint="name a folder that exists") from None
    except NotADirectoryError:
        raise UsageError("this is a file, no folder", where=str(folder), hint="name the folder it lies in") from None
    except OSError as error:
        raise UsageError(f"the folder can't be read: {error.strerror}", where=str(folder)) from None
    return sorted(int(found[1]) for name in names if (found := _NAME.fullmatch(name)))


def file_of(folder: Path, version: int) -> Path:
    return folder / f"{name_of(version)}.md"


def version_of(path: Path) -> int | None:
    found = _NAME.fullmatch(path.name)
    return int(found[1]) if found else None


def newest(folder: Path) -> Path:
    found = versions(folder)
    if not found:
        hint = "write the first one with `muster journal new`, or name a file"
        raise UsageError("there is no journal here: no file is called dev_vN.md", where=str(folder), hint=hint)
    return file_of(folder, found[-1])


def open_journal(path: Path) -> Opened:
    """Every reason why it can't be worked on is told with its line."""
    version = version_of(path)
    if version is None:
        hint = "its name tells its version: dev_v41.md"
        raise UsageError(f"{path.name} is not the name of a journal", where=str(path), hint=hint)
    document = read_document(path)
    try:
        lines = scan(document.text)
        journal = points.read(version, lines)
    except Unreadable as error:
        raise unreadable(document.path, error) from None
    return Opened(document, version, lines, journal)


def unreadable(path: Path, error: Unreadable) -> MusterError:
    where = f"{path}:{error.line}" if error.line else str(path)
    return MusterError(error.message, where=where, hint="mend that line; nothing was changed", code="unreadable")


def opened_or_none(path: Path) -> Opened | None:
    """For older ones that are only looked at."""
    try:
        return open_journal(path)
    except MusterError:
        return None
