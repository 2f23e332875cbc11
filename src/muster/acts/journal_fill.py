"""`muster journal fill`: generated blocks in a person's text, refreshed in place. All else stays byte for byte."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from muster.acts.docs_files import check_writable, replace_text
from muster.acts.journal_files import Opened, unreadable
from muster.acts.stamping import write
from muster.domain.errors import MusterError
from muster.ports.known_secrets import mask_written
from muster.report.journal.placing import Filled, Filling, fill
from muster.report.journal.scan import Unreadable
from muster.report.journal.wording import Wording


@dataclass(frozen=True, slots=True)
class Told:
    """What a fill did."""

    path: Path
    runs: tuple[str, ...]
    filled: Filled
    figures: tuple[str, ...] = ()
    against: str = ""
    notes: tuple[str, ...] = ()
    dry_run: bool = False

    @property
    def changed(self) -> bool:
        return bool(self.filled.written or self.filled.refreshed or self.filled.forced)

    @property
    def exit(self) -> int:
        return 1 if self.filled.edited else 0


@dataclass(frozen=True, slots=True)
class Work:
    fillings: Sequence[Filling]
    language: str
    figures: Mapping[Path, bytes] = field(default_factory=dict)
    against: str = ""
    notes: Sequence[str] = ()
    overtaken: Sequence[Path] = ()  # figures of an earlier fill whose place others take


def fill_journal(opened: Opened, work: Work, *, force: bool = False, dry_run: bool = False) -> Told:
    """The figures first, then the text: it never refers to what is not there."""
    document = opened.document
    try:
        done = fill(document.text, list(map(_told, work.fillings)), Wording(work.language), force=force)
    except Unreadable as error:
        raise unreadable(document.path, error) from None
    runs = tuple(each.run for each in work.fillings)
    figures = tuple(str(path) for path in work.figures)
    told = Told(document.path, runs, done, figures, work.against, tuple(work.notes), dry_run)
    if dry_run:
        return told
    if told.changed:
        check_writable(document)
    _write_figures(work.figures)
    if told.changed:
        replace_text(document, done.text.encode(document.encoding))
    for path in work.overtaken:
        with contextlib.suppress(OSError):
            path.unlink()
    return told


def _told(filling: Filling) -> Filling:
    """What runs wrote, for others to read."""
    return replace(filling, bodies={kind: mask_written(body) for kind, body in filling.bodies.items()})


def _write_figures(figures: Mapping[Path, bytes]) -> None:
    for path, data in figures.items():
        try:
            write(path, data)
        except OSError as error:
            hint = "check owner and mode of the folder, and the space left; the journal was not changed"
            what = f"a figure can't be written: {error.strerror or error}"
            raise MusterError(what, where=str(path), hint=hint) from None


def as_json(told: Told) -> dict[str, Any]:
    def blocks(pairs: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
        return [{"kind": kind, "run": run} for kind, run in pairs]

    done = told.filled
    return {
        "file": str(told.path),
        "runs": list(told.runs),
        "against": told.against or None,
        "dry_run": told.dry_run,
        "written": blocks(done.written),
        "refreshed": blocks([*done.refreshed, *((each.kind, each.run) for each in done.forced)]),
        "same": blocks(done.same),
        "edited": [{"kind": each.kind, "run": each.run, "line": each.line} for each in done.edited],
        "without_artifacts": [{"kind": each.kind, "run": each.run, "line": each.line} for each in done.silent],
        "figures": list(told.figures),
        "notes": list(told.notes),
    }
