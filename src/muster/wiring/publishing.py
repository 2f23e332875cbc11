"""Makes the report: tables, figures, texts with their stamp, and the bound documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import muster
from muster.acts.docs import Documents, update_all
from muster.acts.docs_stamp import document_stamp
from muster.acts.job_stamps import JobStamps, using_results
from muster.acts.report_verdict import NO_RESULT, PARTIAL, file_digest
from muster.acts.stamping import REPORTS, Derived, Kept, publish, relevant, seal, stamp_or_none
from muster.acts.unread import refuse_to_lose
from muster.observe.hashes import HashCache
from muster.report.analysis import Analysis, analyse
from muster.report.documents.sidecar import SUFFIX
from muster.report.facts import Claim, Text
from muster.report.flag_words import by_level
from muster.report.quantities import cells_by_key, quantities_of
from muster.report.report_verdict import ReportVerdict
from muster.report.stamp import Stamp, footer
from muster.report.verdict import verdict_sentence
from muster.wiring.desk import Desk
from muster.wiring.listing import files_of
from muster.wiring.reporting import Gathered, Step, gather, silent


@dataclass(frozen=True, slots=True)
class Report:
    """What `muster report` made. `kept` None: the matrix is incomplete, and nothing was written."""

    analysis: Analysis
    kept: Kept | None = None
    documents: Documents | None = None


def make(desk: Desk, *, partial: bool = False, documents: bool = True, step: Step = silent) -> Report:
    found = gather(desk, step)
    analysis = analyse(found.facts)
    made = PARTIAL if found.facts.partial and partial else "report"
    refuse_to_lose(stamp_or_none(found.root, made), found.unread, str(found.root))
    if found.facts.partial and not partial:
        return Report(analysis)
    command = "muster report --partial" if partial else "muster report"
    files = list(_files(found, analysis, step))
    told = verdict_of(desk, found, analysis)
    kept = publish(found.root, made, command, found.facts.at, muster.__version__, found.basis, files, told)
    stamp_jobs(desk, found)
    names = _documents(found) if documents else ()
    if analysis.errors:
        refused = tuple((name, NO_RESULT) for name in names)
        return Report(analysis, kept, Documents(refused=refused) if names else None)
    updated = _update(found, names) if names else None
    stamp_documents(found, updated.updated if updated else ())
    return Report(analysis, kept, updated)


def verdict_of(desk: Desk, found: Gathered, analysis: Analysis) -> ReportVerdict:
    decision, flag = analysis.decision, next(iter(by_level(analysis.errors)), None)
    taken, now = desk.load(), found.status.state.campaign
    return ReportVerdict(
        decision.verdict, decision.config, verdict_sentence(analysis), flag.message if flag else "",
        flag.code if flag else "", f"{REPORTS}/{_named(found, 'decision.md')}", taken.campaign_hash,
        "" if now == taken.campaign else file_digest(found.root), tuple(sorted(relevant(now))),
    )  # fmt: skip


def stamp_documents(found: Gathered, names: Sequence[str | Path]) -> None:
    """One stamp for each text: they are updated at different times."""
    cells = cells_by_key(found.facts) if names else {}
    for path in [(found.root / name).resolve() for name in names]:
        home = found.root.resolve()
        name = str(path.relative_to(home)) if path.is_relative_to(home) else str(path)
        stamped = document_stamp(path, cells)
        if stamped:
            made = f"document-{name.replace('/', '_')}"
            command = "muster docs update"
            seal(found.root, Stamp(made, command, found.facts.at, muster.__version__, found.basis, {name: stamped}))


def stamp_jobs(desk: Desk, found: Gathered) -> None:
    if not using_results(found.status):
        return
    hashes = HashCache(desk.state)
    stamps = JobStamps(found.root, found.status, found.basis, muster.__version__, hashes.sha256)
    stamps.make(files_of(desk.root, found.status.state))
    hashes.save()


def _update(found: Gathered, names: Sequence[str]) -> Documents:
    return update_all(found.root, names, tuple(quantities_of(found.facts)), found.facts.mark or None)


def _documents(found: Gathered) -> Sequence[str]:
    """Those that the campaign names, and what is bound beside its file."""
    named = (found.status.state.campaign.report or {}).get("documents") or ()
    bound = (path.name.removesuffix(SUFFIX) for path in sorted(found.root.glob(f"*{SUFFIX}")))
    return tuple(dict.fromkeys([*named, *(name for name in bound if (found.root / name).exists())]))


def _files(found: Gathered, analysis: Analysis, step: Step) -> Iterator[Derived]:
    """Figures last to be drawn and first to be named: the texts show them."""
    from muster.report.decision_report import decision_report
    from muster.report.defence import defence_notes
    from muster.report.figures import figures
    from muster.report.tables import tables

    for table in tables(analysis):
        for suffix, text in (("csv", table.csv), ("md", table.markdown), ("tex", table.latex)):
            name, claims = f"tables/{table.name}.{suffix}", table.claims[suffix]
            yield _derived(found, name, text.encode(), "table", table.cells, claims)
    shown = []
    for at, figure in enumerate(figures(analysis)):
        step("drawing figures", at, 0)
        for suffix, data in figure.files.items():
            yield _derived(found, f"figures/{figure.name}.{suffix}", data, "figure", figure.cells)
        shown.append((_named(found, f"figures/{figure.name}.png"), figure.caption))
    yield _text(found, "decision.md", decision_report(analysis, shown))
    yield _text(found, "defence.md", defence_notes(analysis))


def _text(found: Gathered, name: str, text: Text) -> Derived:
    path = f"{REPORTS}/{_named(found, name)}"
    body = f"{text.body.rstrip()}\n\n---\n{footer(found.basis, found.facts.version, path)}\n"
    return Derived(path, body.encode(), "text", None, text.claims)


def _derived(
    found: Gathered, name: str, data: bytes, kind: str, cells: tuple[str, ...], claims: tuple[Claim, ...] = ()
) -> Derived:
    path = f"{REPORTS}/{_named(found, name)}"
    if name.endswith(".tex"):
        data += f"% {footer(found.basis, found.facts.version, path)}\n".encode()
    elif name.endswith(".md"):
        data += f"\n{footer(found.basis, found.facts.version, path)}\n".encode()
    return Derived(path, data, kind, cells, claims)


def _named(found: Gathered, name: str) -> str:
    """`tables/main.PARTIAL-16of40.csv`."""
    if not found.facts.partial:
        return name
    path = PurePosixPath(name)
    return str(path.with_name(f"{path.stem}.PARTIAL-{found.facts.k}of{found.facts.n}{path.suffix}"))
