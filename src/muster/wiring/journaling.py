"""Where a campaign's journals lie, what they are filled from, and what they are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from muster.acts.journal_audit import Audited
from muster.acts.journal_audit import audit as audit_journal
from muster.acts.journal_files import Opened, file_of, newest, open_journal, opened_or_none, unreadable, versions
from muster.acts.journal_fill import Told, Work, fill_journal
from muster.domain.errors import MusterError, UsageError
from muster.report.journal.blocks import find
from muster.report.journal.bodies import filling
from muster.report.journal.book import Book
from muster.report.journal.compose import name_of
from muster.report.journal.facts import Run
from muster.report.journal.scan import Unreadable
from muster.report.journal.sections import language_of
from muster.report.journal.told import told_run
from muster.report.journal.wording import Wording
from muster.wiring.desk import FILE
from muster.wiring.journal_figures import illustrated
from muster.wiring.journal_runs import Runs, distinct, titled
from muster.wiring.roots import find_root_to_read


def place(start: Path, folder: Path | None) -> Path:
    """Where the journals are: as asked for; else here, if some are; else in the campaign's folder."""
    if folder is not None:
        return (start / folder).absolute()
    here = start.absolute()
    if versions(here):
        return here
    try:
        return find_root_to_read(here)
    except UsageError:
        return here


def campaign_language(start: Path) -> str | None:
    """As campaign.yaml declares it; None: there is no campaign, or none that can be read."""
    from muster.wiring.taking import read

    try:
        file = find_root_to_read(start) / FILE
        return read(file).campaign.language if file.exists() else None
    except MusterError:
        return None


def chosen(start: Path, folder: Path | None, file: Path | None) -> Opened:
    """The journal that was named, or the newest."""
    if file is not None and folder is not None:
        raise UsageError("a file and --dir: one of them is enough", hint="the file tells where it lies")
    return open_journal((start / file).absolute() if file is not None else newest(place(start, folder)))


def language_for(opened: Opened, asked: str | None) -> str:
    """That of the journal's own text comes first: its blocks are read together with it."""
    folder = opened.document.path.parent
    return asked or language_of(opened.lines) or campaign_language(folder) or "en"


@dataclass(frozen=True, slots=True)
class Last:
    """The version before, and its runs; read from their folders where they still are, else from its text."""

    name: str
    version: int
    runs: tuple[Run, ...]


def fill(
    start: Path,
    opened: Opened,
    asked: Sequence[str],
    language: str | None,
    *,
    force: bool = False,
    dry_run: bool = False,
) -> Told:
    base = opened.document.path.parent
    runs = Runs(base, start)
    try:
        found, notes = _runs(runs, opened, asked)
        last = last_version(runs, opened)
        tongue = language_for(opened, language)
        return fill_journal(opened, _work(opened, found, runs, last, tongue, notes), force=force, dry_run=dry_run)
    finally:
        runs.close()


def _runs(runs: Runs, opened: Opened, asked: Sequence[str]) -> tuple[list[Run], list[str]]:
    """Those that were named; else those that the journal has blocks of; else the campaign's. And what is to be said."""
    notes: list[str] = []
    if asked:
        places = distinct([place for each in asked for place in runs.asked(each)])
    else:
        known = {name: runs.marked(name) for name in named_runs(opened)}
        places = [place for place in known.values() if place]
        gone = [name for name, place in known.items() if place is None]
        notes += [f"{', '.join(gone)}: not there any more; left as it is"] if gone and places else []
        if not known:
            places, every = runs.all_cells()
            more = f"only the first {len(places)} of {every} cells are told of; --run names others"
            notes += [more] if every > len(places) else []
        if not places:
            raise _nothing_to_fill(opened, gone)
    found = [runs.read(place) for place in places]
    for place, run in zip(places, found, strict=True):
        runs.refuse_empty(place, run)
    return [titled(run, found) for run in found], notes


def _nothing_to_fill(opened: Opened, gone: Sequence[str]) -> UsageError:
    told = f"the runs it tells of are gone: {', '.join(gone[:4])}" if gone else "no run is named"
    hint = "name one: --run DIR, or --run CELL where a campaign is"
    return UsageError(f"there is nothing to fill {opened.name} from: {told}", hint=hint)


def audit(start: Path, opened: Opened, asked: Sequence[str]) -> Audited:
    """Against the runs that were named, or else those that the journal itself and the last one tell of."""
    runs = Runs(opened.document.path.parent, start)
    try:
        named = named_runs(opened)
        places = [place for each in asked for place in runs.asked(each)]
        marked = [] if asked else [runs.marked(name) for name in named]
        found = [runs.read(place) for place in distinct([place for place in [*places, *marked] if place])]
        last = last_version(runs, opened)
        books = {opened.version: Book(name_of(opened.version), found)} if found else {}
        if last and last.runs:
            books[last.version] = Book(last.name, last.runs)
        notes = (
            [] if found else ["no run of this version is known, so its numbers can't be traced: --run DIR names one"]
        )
        return audit_journal(opened, books, runs.hash, notes)
    finally:
        runs.close()


def named_runs(opened: Opened) -> list[str]:
    try:
        return list(dict.fromkeys(block.run for block in find(opened.document.text, opened.lines) if block.run))
    except Unreadable as error:
        raise unreadable(opened.document.path, error) from None


def last_version(runs: Runs, opened: Opened) -> Last | None:
    folder = opened.document.path.parent
    older = [each for each in versions(folder) if each < opened.version]
    last = opened_or_none(file_of(folder, older[-1])) if older else None
    if last is None:
        return None
    name = name_of(last.version)
    own = set(named_runs(opened))
    found: list[Run] = []
    for marked in named_runs(last):
        # the same folder or cell under two versions: only the text still tells what it held then
        there = runs.marked(marked) if marked not in own else None
        run = runs.read(there) if there else None
        if run is None or runs.nothing(run):
            run = told_run(last.lines, name, marked.rpartition("/")[2].removeprefix("cell:"))
        found += [run] if run else []
    written = told_run(last.lines, name)
    return Last(name, last.version, tuple(found or ([written] if written else [])))


def _matching(run: Run, last: Last) -> Run | None:
    """The run of the last version that this one follows: of the same name, else the last one of them."""
    by_title = [each for each in last.runs if each.title == run.title or each.name == run.name]
    found = by_title or last.runs
    return found[-1] if found else None


def _work(
    opened: Opened, found: Sequence[Run], runs: Runs, last: Last | None, language: str, notes: Sequence[str]
) -> Work:
    w = Wording(language)
    figures: dict[Path, bytes] = {}
    overtaken: list[Path] = []
    fillings, told = [], list(notes)
    for run in found:
        before = _matching(run, last) if last else None
        if before and run.evaluations and before.evaluations == run.evaluations:
            told.append(f"{run.title}: {last.name if last else ''} tells of the same run; nothing is compared")
            before = None
        drawn = illustrated(opened.document.path.parent, opened.version, run, runs.folder_of(run.name), language)
        figures |= drawn.files
        overtaken += drawn.overtaken
        fillings.append(filling(drawn.run, before, last.name if last else "", w))
    alone = [] if last is None or last.runs else [f"{last.name}.md tells of no run: nothing is compared"]
    return Work(fillings, language, figures, last.name if last and last.runs else "", [*told, *alone], overtaken)
