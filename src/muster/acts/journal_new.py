"""`muster journal new`: the next version, which starts from what the last one has learnt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from muster.acts.docs_files import create_text, refusing
from muster.acts.journal_files import LATEST, Opened, file_of, open_journal, opened_or_none, versions
from muster.domain.errors import MusterError, UsageError
from muster.report.journal.compose import Before, compose, name_of
from muster.report.journal.following import Carried, Settled, following, settled
from muster.report.journal.scan import newline_of
from muster.report.journal.sections import language_of

MOST_MISSING = 20  # versions between two that are named
NOTHING = Settled((), ())
LOOKED_BACK = 50  # older versions that are read for the count of a point


@dataclass(frozen=True, slots=True)
class Asked:
    folder: Path
    now: datetime
    version: int | None = None
    language: str | None = None
    campaign_language: str | None = None
    carry: bool = False  # also where nothing was learnt


@dataclass(frozen=True, slots=True)
class Made:
    path: Path
    version: int
    language: str
    last: Path | None = None
    points: Sequence[Carried] = ()
    settled: Settled = NOTHING
    missing: Sequence[int] = ()


def new(asked: Asked) -> Made:
    known = versions(asked.folder)
    version = _version(asked, known)
    path = file_of(asked.folder, version)
    last = open_journal(file_of(asked.folder, known[-1])) if known else None
    before = _before(asked, last, known, version) if last else None
    own = language_of(last.lines) if last else None
    language = asked.language or own or asked.campaign_language or "en"
    text = compose(version, before, language, asked.now)
    if last and newline_of(last.document.text) == "\r\n":
        text = text.replace("\n", "\r\n")
    try:
        with refusing(path):
            create_text(path, text.encode("utf-8", "replace"))
    except MusterError as error:
        if path.exists():
            raise _there(path) from None
        raise error
    if before is None or last is None:
        return Made(path, version, language)
    return Made(path, version, language, last.document.path, before.points, before.settled, before.missing)


def _version(asked: Asked, known: Sequence[int]) -> int:
    if asked.version is None:
        if known and known[-1] >= LATEST:
            raise UsageError(f"there is no version after {known[-1]}", where=str(asked.folder))
        return known[-1] + 1 if known else 1
    if asked.version in known:
        raise _there(file_of(asked.folder, asked.version))
    if known and asked.version < known[-1]:
        newer = name_of(known[-1])
        hint = f"the next one is --version {known[-1] + 1}, which is what is taken without --version"
        raise UsageError(f"version {asked.version} is older than {newer}.md", where=str(asked.folder), hint=hint)
    return asked.version


def _there(path: Path) -> UsageError:
    hint = "`muster journal new` without --version takes the next number"
    return UsageError("it is there already; a journal is never overwritten", where=str(path), hint=hint)


def _before(asked: Asked, last: Opened, known: Sequence[int], version: int) -> Before:
    journal, path = last.journal, last.document.path
    strange = [each for each in journal.tracked if each.id.version > journal.version]
    if strange:
        what = f"{strange[0].id} belongs to no version: this is {name_of(journal.version)}"
        hint = "an id tells the version whose Learning section the point comes from"
        raise MusterError(what, where=f"{path}:{strange[0].line}", hint=hint)
    if not journal.fresh and not asked.carry:
        raise _nothing_learnt(last)
    earlier = [opened_or_none(file_of(asked.folder, each)) for each in known[:-1][-LOOKED_BACK:]]
    points = following(journal, [each.journal for each in earlier if each])
    missing = range(journal.version + 1, version)[:MOST_MISSING]
    return Before(journal.version, points, settled(journal), missing)


def _nothing_learnt(last: Opened) -> MusterError:
    what = "its Learning section holds no new point" if last.journal.learning else "it has no section Learning / next"
    hint = "write there what was learnt and what comes next, as a numbered list; or --carry takes only what is open"
    return MusterError(
        f"{last.name} has learnt nothing yet: {what}", where=str(last.document.path), hint=hint, code="nothing_learnt"
    )


def as_json(made: Made) -> dict[str, Any]:
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
