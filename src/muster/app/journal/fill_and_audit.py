"""`muster journal fill` and `audit` on files: finds a campaign's journals and runs, refreshes generated blocks in
place, compares with the last version. All other text stays byte for byte.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from muster.app.campaign.campaign_handle import CAMPAIGN_FILE_NAME
from muster.app.campaign.stamp_files import write_derived_file
from muster.app.documents.document_files import check_document_writable, replace_document_text
from muster.app.journal.block_bodies import blocks_of_run
from muster.app.journal.generated_blocks import FilledText, RunBlocks, fill_run_blocks, find_generated_blocks
from muster.app.journal.journal_audit import AuditedJournal, audit_opened_journal
from muster.app.journal.journal_runs import RunFinder, distinct_run_places, illustrate_run, with_distinct_title
from muster.app.journal.journal_text import UnreadableJournal, language_of_journal, run_from_journal_text
from muster.app.journal.journal_versions import (
    OpenedJournal,
    journal_name,
    journal_path,
    journal_versions_in,
    newest_journal_path,
    open_journal,
    open_journal_or_none,
    unreadable_journal_error,
)
from muster.app.journal.metric_index import MetricIndex
from muster.app.journal.recorded_run import RecordedRun
from muster.files.campaign_ownership import find_readable_root
from muster.files.known_secrets import mask_secrets_in_run_text
from muster.model.errors import MusterError, UsageError
from muster.text.catalogue import load_catalogue


@dataclass(frozen=True, slots=True)
class FillReport:
    """What a fill did."""

    path: Path
    runs: tuple[str, ...]
    filled: FilledText
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
class FillRequest:
    fillings: Sequence[RunBlocks]
    language: str
    figures: Mapping[Path, bytes] = field(default_factory=dict)
    against: str = ""
    notes: Sequence[str] = ()
    overtaken: Sequence[Path] = ()  # figures of an earlier fill whose place others take


def fill_opened_journal(
    opened: OpenedJournal, work: FillRequest, *, force: bool = False, dry_run: bool = False
) -> FillReport:
    """The figures first, then the text: it never refers to what is not there."""
    document = opened.document
    try:
        done = fill_run_blocks(
            document.text,
            list(map(_mask_run_blocks, work.fillings)),
            load_catalogue("journal", work.language),
            force=force,
        )
    except UnreadableJournal as error:
        raise unreadable_journal_error(document.path, error) from None
    runs = tuple(each.run for each in work.fillings)
    figures = tuple(str(path) for path in work.figures)
    told = FillReport(document.path, runs, done, figures, work.against, tuple(work.notes), dry_run)
    if dry_run:
        return told
    if told.changed:
        check_document_writable(document)
    _write_journal_figures(work.figures)
    if told.changed:
        replace_document_text(document, done.text.encode(document.encoding))
    for path in work.overtaken:
        with contextlib.suppress(OSError):
            path.unlink()
    return told


def _mask_run_blocks(filling: RunBlocks) -> RunBlocks:
    """What runs wrote, for others to read."""
    return replace(filling, bodies={kind: mask_secrets_in_run_text(body) for kind, body in filling.bodies.items()})


def _write_journal_figures(figures: Mapping[Path, bytes]) -> None:
    for path, data in figures.items():
        try:
            write_derived_file(path, data)
        except OSError as error:
            hint = "check owner and mode of the folder, and the space left; the journal was not changed"
            what = f"a figure can't be written: {error.strerror or error}"
            raise MusterError(what, where=str(path), hint=hint) from None


def fill_report_as_json(told: FillReport) -> dict[str, Any]:
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


def find_journal_folder(start: Path, folder: Path | None) -> Path:
    """Where the journals are: as asked for; else here, if some are; else in the campaign's folder."""
    if folder is not None:
        return (start / folder).absolute()
    here = start.absolute()
    if journal_versions_in(here):
        return here
    try:
        return find_readable_root(here)
    except UsageError:
        return here


def language_of_campaign(start: Path) -> str | None:
    """As campaign.yaml declares it; None: there is no campaign, or none that can be read."""
    from muster.app.campaign.load_campaign import read_campaign_file

    try:
        file = find_readable_root(start) / CAMPAIGN_FILE_NAME
        return read_campaign_file(file).campaign.language if file.exists() else None
    except MusterError:
        return None


def choose_journal(start: Path, folder: Path | None, file: Path | None) -> OpenedJournal:
    """The journal that was named, or the newest."""
    if file is not None and folder is not None:
        raise UsageError("a file and --dir: one of them is enough", hint="the file tells where it lies")
    return open_journal(
        (start / file).absolute() if file is not None else newest_journal_path(find_journal_folder(start, folder))
    )


def language_to_fill_in(opened: OpenedJournal, asked: str | None) -> str:
    """That of the journal's own text comes first: its blocks are read together with it."""
    folder = opened.document.path.parent
    return asked or language_of_journal(opened.lines) or language_of_campaign(folder) or "en"


@dataclass(frozen=True, slots=True)
class LastVersion:
    """The version before, and its runs; read from their folders where they still are, else from its text."""

    name: str
    version: int
    runs: tuple[RecordedRun, ...]


def fill_journal_from_runs(
    start: Path,
    opened: OpenedJournal,
    asked: Sequence[str],
    language: str | None,
    *,
    force: bool = False,
    dry_run: bool = False,
) -> FillReport:
    base = opened.document.path.parent
    runs = RunFinder(base, start)
    try:
        found, notes = _runs_to_fill_from(runs, opened, asked)
        last = read_last_version(runs, opened)
        tongue = language_to_fill_in(opened, language)
        return fill_opened_journal(
            opened, _request_to_fill(opened, found, runs, last, tongue, notes), force=force, dry_run=dry_run
        )
    finally:
        runs.close()


def _runs_to_fill_from(
    runs: RunFinder, opened: OpenedJournal, asked: Sequence[str]
) -> tuple[list[RecordedRun], list[str]]:
    """Those that were named; else those that the journal has blocks of; else the campaign's. And what is to be said."""
    notes: list[str] = []
    if asked:
        places = distinct_run_places([place for each in asked for place in runs.asked(each)])
    else:
        known = {name: runs.marked(name) for name in runs_named_in_blocks(opened)}
        places = [place for place in known.values() if place]
        gone = [name for name, place in known.items() if place is None]
        notes += [f"{', '.join(gone)}: not there any more; left as it is"] if gone and places else []
        if not known:
            places, every = runs.all_cells()
            more = f"only the first {len(places)} of {every} cells are told of; --run names others"
            notes += [more] if every > len(places) else []
        if not places:
            raise _nothing_to_fill_error(opened, gone)
    found = [runs.read(place) for place in places]
    for place, run in zip(places, found, strict=True):
        runs.refuse_empty(place, run)
    return [with_distinct_title(run, found) for run in found], notes


def _nothing_to_fill_error(opened: OpenedJournal, gone: Sequence[str]) -> UsageError:
    told = f"the runs it tells of are gone: {', '.join(gone[:4])}" if gone else "no run is named"
    hint = "name one: --run DIR, or --run CELL where a campaign is"
    return UsageError(f"there is nothing to fill {opened.name} from: {told}", hint=hint)


def audit_journal_against_runs(start: Path, opened: OpenedJournal, asked: Sequence[str]) -> AuditedJournal:
    """Against the runs that were named, or else those that the journal itself and the last one tell of."""
    runs = RunFinder(opened.document.path.parent, start)
    try:
        named = runs_named_in_blocks(opened)
        places = [place for each in asked for place in runs.asked(each)]
        marked = [] if asked else [runs.marked(name) for name in named]
        found = [runs.read(place) for place in distinct_run_places([place for place in [*places, *marked] if place])]
        last = read_last_version(runs, opened)
        books = {opened.version: MetricIndex(journal_name(opened.version), found)} if found else {}
        if last and last.runs:
            books[last.version] = MetricIndex(last.name, last.runs)
        notes = (
            [] if found else ["no run of this version is known, so its numbers can't be traced: --run DIR names one"]
        )
        return audit_opened_journal(opened, books, runs.hash, notes)
    finally:
        runs.close()


def runs_named_in_blocks(opened: OpenedJournal) -> list[str]:
    try:
        return list(
            dict.fromkeys(block.run for block in find_generated_blocks(opened.document.text, opened.lines) if block.run)
        )
    except UnreadableJournal as error:
        raise unreadable_journal_error(opened.document.path, error) from None


def read_last_version(runs: RunFinder, opened: OpenedJournal) -> LastVersion | None:
    folder = opened.document.path.parent
    older = [each for each in journal_versions_in(folder) if each < opened.version]
    last = open_journal_or_none(journal_path(folder, older[-1])) if older else None
    if last is None:
        return None
    name = journal_name(last.version)
    own = set(runs_named_in_blocks(opened))
    found: list[RecordedRun] = []
    for marked in runs_named_in_blocks(last):
        # the same folder or cell under two versions: only the text still tells what it held then
        there = runs.marked(marked) if marked not in own else None
        run = runs.read(there) if there else None
        if run is None or runs.nothing(run):
            run = run_from_journal_text(last.lines, name, marked.rpartition("/")[2].removeprefix("cell:"))
        found += [run] if run else []
    written = run_from_journal_text(last.lines, name)
    return LastVersion(name, last.version, tuple(found or ([written] if written else [])))


def _run_it_follows(run: RecordedRun, last: LastVersion) -> RecordedRun | None:
    """The run of the last version that this one follows: of the same name, else the last one of them."""
    by_title = [each for each in last.runs if each.title == run.title or each.name == run.name]
    found = by_title or last.runs
    return found[-1] if found else None


def _request_to_fill(
    opened: OpenedJournal,
    found: Sequence[RecordedRun],
    runs: RunFinder,
    last: LastVersion | None,
    language: str,
    notes: Sequence[str],
) -> FillRequest:
    w = load_catalogue("journal", language)
    figures: dict[Path, bytes] = {}
    overtaken: list[Path] = []
    fillings, told = [], list(notes)
    for run in found:
        before = _run_it_follows(run, last) if last else None
        if before and run.evaluations and before.evaluations == run.evaluations:
            told.append(f"{run.title}: {last.name if last else ''} tells of the same run; nothing is compared")
            before = None
        drawn = illustrate_run(opened.document.path.parent, opened.version, run, runs.folder_of(run.name), language)
        figures |= drawn.files
        overtaken += drawn.overtaken
        fillings.append(blocks_of_run(drawn.run, before, last.name if last else "", w))
    alone = [] if last is None or last.runs else [f"{last.name}.md tells of no run: nothing is compared"]
    return FillRequest(fillings, language, figures, last.name if last and last.runs else "", [*told, *alone], overtaken)
