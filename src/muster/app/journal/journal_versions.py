"""`dev_vN.md` files: finds, reads and writes the journals of a folder. `muster journal new` starts the next version
from what the last one has learnt.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from muster.app.documents.document_files import (
    TextDocument,
    create_text_file,
    read_text_document,
    write_errors_as_messages,
)
from muster.app.journal.journal_points import (
    CarriedPoint,
    Journal,
    SettledPoints,
    points_to_carry,
    read_journal_points,
    settled_points_of,
)
from muster.app.journal.journal_text import (
    JournalLine,
    UnreadableJournal,
    language_of_journal,
    newline_in_text,
    scan_journal_lines,
    strip_comments,
)
from muster.model.errors import MusterError, UsageError
from muster.text.catalogue import Catalogue, load_catalogue


def journal_name(version: int) -> str:
    return f"dev_v{version}"


@dataclass(frozen=True, slots=True)
class PreviousVersion:
    """What a new version starts from."""

    version: int
    points: Sequence[CarriedPoint]
    settled: SettledPoints
    missing: Sequence[int] = ()  # versions that should lie between the two


def compose_new_version(version: int, before: PreviousVersion | None, language: str, now: datetime) -> str:
    """With plain newlines."""
    w = load_catalogue("journal", language)
    observed = w("section.observations")
    if before:
        observed = w("section.observations_after", last=journal_name(before.version))
    points = before.points if before else ()
    parts = [
        [f"# {journal_name(version)}"],
        [f"## {w('section.start')}", *_start_section_lines(before, w, now)],
        [f"## {observed}", *(_observation_lines(points) or [_hint_comment(w, "observations")])],
        [f"## {w('section.plan')}", *_plan_lines(points, w), _hint_comment(w, "plan")],
        [f"## {w('section.findings')}", _hint_comment(w, "findings")],
        [f"## {w('section.record')}", _hint_comment(w, "record")],
        [f"## {w('section.learning')}", _hint_comment(w, "learning")],
    ]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _hint_comment(w: Catalogue, key: str) -> str:
    return f"<!-- {w(f'hint.{key}')} -->"


def _start_section_lines(before: PreviousVersion | None, w: Catalogue, now: datetime) -> Iterator[str]:
    when = {"date": f"{now:%Y-%m-%d}", "zone": utc_offset_name(now)}
    if before is None:
        yield f"- {w('new.first', **when)}"
    else:
        yield f"- {w('new.after', last=journal_name(before.version), told=_count_points_in_words(before, w), **when)}"
        if before.missing:
            yield f"- {w('new.missing', names=w.list([f'{journal_name(each)}.md' for each in before.missing]))}"
    yield f"- {w('new.goal')}".rstrip()


def _count_points_in_words(before: PreviousVersion, w: Catalogue) -> str:
    kinds = {
        "fresh": sum(not each.carried for each in before.points),
        "carried": sum(bool(each.carried) for each in before.points),
        "done": len(before.settled.done),
        "dropped": len(before.settled.dropped),
    }
    told = [w(f"new.counts.{kind}", n=n) for kind, n in kinds.items() if n]
    return w.list(told) if before.points else w.list([w("new.counts.none"), *told])


def utc_offset_name(now: datetime) -> str:
    """UTC, UTC+8, UTC-3:30."""
    offset = now.utcoffset()
    minutes = round(offset.total_seconds() / 60) if offset else 0
    hours, rest = divmod(abs(minutes), 60)
    sign = "-" if minutes < 0 else "+"
    return "UTC" if not minutes else f"UTC{sign}{hours}" + (f":{rest:02d}" if rest else "")


def _observation_lines(points: Sequence[CarriedPoint]) -> list[str]:
    told = [each for each in points if each.observed]
    return [
        line
        for number, each in enumerate(told, 1)
        for line in _markdown_list_item(f"{number}.", f"{each.id} {each.observed}")
    ]


def _plan_lines(points: Sequence[CarriedPoint], w: Catalogue) -> Iterator[str]:
    for each in points:
        count = w("carried", n=each.carried, since=each.id.version) if each.carried else ""
        gap = "" if count.endswith("）") or not count else " "
        lead = f" {count}{gap}" if count.startswith("(") else count or " "
        yield from _markdown_list_item("- [ ]", f"{each.id}{lead}{each.planned}", "- ")


def _markdown_list_item(marker: str, text: str, hanging: str = "") -> list[str]:
    first, *more = strip_comments(text).split("\n")
    depth = " " * len(hanging or f"{marker} ")
    return [f"{marker} {first}", *(f"{depth}{line}".rstrip() for line in more)]


_JOURNAL_NAME = re.compile(r"dev_v(0|[1-9][0-9]{0,5})\.md")
LATEST_VERSION = 999_999


@dataclass(frozen=True, slots=True)
class OpenedJournal:
    """A journal as it lies there."""

    document: TextDocument
    version: int
    lines: list[JournalLine]
    journal: Journal

    @property
    def name(self) -> str:
        return self.document.path.name


def journal_versions_in(folder: Path) -> list[int]:
    """In order. Whatever has such a name counts: it must not be overwritten."""
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except FileNotFoundError:
        raise UsageError("there is no such folder", where=str(folder), hint="name a folder that exists") from None
    except NotADirectoryError:
        raise UsageError("this is a file, no folder", where=str(folder), hint="name the folder it lies in") from None
    except OSError as error:
        raise UsageError(f"the folder can't be read: {error.strerror}", where=str(folder)) from None
    return sorted(int(found[1]) for name in names if (found := _JOURNAL_NAME.fullmatch(name)))


def journal_path(folder: Path, version: int) -> Path:
    return folder / f"{journal_name(version)}.md"


def version_in_file_name(path: Path) -> int | None:
    found = _JOURNAL_NAME.fullmatch(path.name)
    return int(found[1]) if found else None


def newest_journal_path(folder: Path) -> Path:
    found = journal_versions_in(folder)
    if not found:
        hint = "write the first one with `muster journal new`, or name a file"
        raise UsageError("there is no journal here: no file is called dev_vN.md", where=str(folder), hint=hint)
    return journal_path(folder, found[-1])


def open_journal(path: Path) -> OpenedJournal:
    """Every reason why it can't be worked on is told with its line."""
    version = version_in_file_name(path)
    if version is None:
        hint = "its name tells its version: dev_v41.md"
        raise UsageError(f"{path.name} is not the name of a journal", where=str(path), hint=hint)
    document = read_text_document(path)
    try:
        lines = scan_journal_lines(document.text)
        journal = read_journal_points(version, lines)
    except UnreadableJournal as error:
        raise unreadable_journal_error(document.path, error) from None
    return OpenedJournal(document, version, lines, journal)


def unreadable_journal_error(path: Path, error: UnreadableJournal) -> MusterError:
    where = f"{path}:{error.line}" if error.line else str(path)
    return MusterError(error.message, where=where, hint="fix that line; nothing was changed", code="unreadable")


def open_journal_or_none(path: Path) -> OpenedJournal | None:
    """For older ones that are only looked at."""
    try:
        return open_journal(path)
    except MusterError:
        return None


MOST_MISSING_VERSIONS = 20  # versions between two that are named
NOTHING_SETTLED = SettledPoints((), ())
LOOKED_BACK = 50  # older versions that are read for the count of a point


@dataclass(frozen=True, slots=True)
class NewJournalRequest:
    folder: Path
    now: datetime
    version: int | None = None
    language: str | None = None
    campaign_language: str | None = None
    carry: bool = False  # also where nothing was learnt


@dataclass(frozen=True, slots=True)
class CreatedJournal:
    path: Path
    version: int
    language: str
    last: Path | None = None
    points: Sequence[CarriedPoint] = ()
    settled: SettledPoints = NOTHING_SETTLED
    missing: Sequence[int] = ()


def create_journal(asked: NewJournalRequest) -> CreatedJournal:
    known = journal_versions_in(asked.folder)
    version = _choose_version(asked, known)
    path = journal_path(asked.folder, version)
    last = open_journal(journal_path(asked.folder, known[-1])) if known else None
    before = _previous_version(asked, last, known, version) if last else None
    own = language_of_journal(last.lines) if last else None
    language = asked.language or own or asked.campaign_language or "en"
    text = compose_new_version(version, before, language, asked.now)
    if last and newline_in_text(last.document.text) == "\r\n":
        text = text.replace("\n", "\r\n")
    try:
        with write_errors_as_messages(path):
            create_text_file(path, text.encode("utf-8", "replace"))
    except MusterError as error:
        if path.exists():
            raise _already_there_error(path) from None
        raise error
    if before is None or last is None:
        return CreatedJournal(path, version, language)
    return CreatedJournal(path, version, language, last.document.path, before.points, before.settled, before.missing)


def _choose_version(asked: NewJournalRequest, known: Sequence[int]) -> int:
    if asked.version is None:
        if known and known[-1] >= LATEST_VERSION:
            raise UsageError(f"there is no version after {known[-1]}", where=str(asked.folder))
        return known[-1] + 1 if known else 1
    if asked.version in known:
        raise _already_there_error(journal_path(asked.folder, asked.version))
    if known and asked.version < known[-1]:
        newer = journal_name(known[-1])
        hint = f"the next one is --version {known[-1] + 1}, which is what is taken without --version"
        raise UsageError(f"version {asked.version} is older than {newer}.md", where=str(asked.folder), hint=hint)
    return asked.version


def _already_there_error(path: Path) -> UsageError:
    hint = "`muster journal new` without --version takes the next number"
    return UsageError("it is there already; a journal is never overwritten", where=str(path), hint=hint)


def _previous_version(
    asked: NewJournalRequest, last: OpenedJournal, known: Sequence[int], version: int
) -> PreviousVersion:
    journal, path = last.journal, last.document.path
    strange = [each for each in journal.tracked if each.id.version > journal.version]
    if strange:
        what = f"{strange[0].id} belongs to no version: this is {journal_name(journal.version)}"
        hint = "an id tells the version whose Learning section the point comes from"
        raise MusterError(what, where=f"{path}:{strange[0].line}", hint=hint)
    if not journal.fresh and not asked.carry:
        raise _nothing_learnt_error(last)
    earlier = [open_journal_or_none(journal_path(asked.folder, each)) for each in known[:-1][-LOOKED_BACK:]]
    points = points_to_carry(journal, [each.journal for each in earlier if each])
    missing = range(journal.version + 1, version)[:MOST_MISSING_VERSIONS]
    return PreviousVersion(journal.version, points, settled_points_of(journal), missing)


def _nothing_learnt_error(last: OpenedJournal) -> MusterError:
    what = "its Learning section holds no new point" if last.journal.learning else "it has no section Learning / next"
    hint = "write there what was learnt and what comes next, as a numbered list; or --carry takes only what is open"
    return MusterError(
        f"{last.name} has learnt nothing yet: {what}", where=str(last.document.path), hint=hint, code="nothing_learnt"
    )


def created_journal_as_json(made: CreatedJournal) -> dict[str, Any]:
    return {
        "file": str(made.path),
        "version": made.version,
        "language": made.language,
        "last": str(made.last) if made.last else None,
        "points": [
            {"id": str(each.id), "carried": each.carried, "observed": each.observed, "planned": each.planned}
            for each in made.points
        ],
        "done": [str(each.id) for each in made.settled.done],
        "dropped": [{"id": str(each.id), "reason": each.reason} for each in made.settled.dropped],
        "missing": list(made.missing),
    }
