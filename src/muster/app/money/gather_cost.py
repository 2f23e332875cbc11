"""Gathers the facts of the cost report (coverage, products, losses, notes, the price of completing the matrix) and
writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from muster import __version__
from muster.app.campaign.campaign_cost import CampaignCost, expected_price, expected_slot_hours
from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.campaign_status import CellStatus, Status
from muster.app.campaign.load_campaign import count_usable_slots
from muster.app.campaign.stamp_files import write_stamped_text
from muster.app.facts.record_facts import (
    AbsentCells,
    EvidencePlace,
    attempt_log_paths,
    commands_to_complete,
    decisions_about_cells,
    filters_in_order,
    group_absent_cells,
    status_table_places,
)
from muster.app.money.cost_facts import (
    CostFacts,
    HoursAndMoney,
    JobCoverage,
    JobProduct,
    LedgerSums,
    PersonNote,
    WastedAttempts,
)
from muster.engine.plan.cell_standing import is_outdated_cell
from muster.engine.ports.store import LoggedDecision
from muster.files.bounded_walk import glob_paths
from muster.files.safe_open import path_holds_something
from muster.files.state_folder import attempt_folder
from muster.ledger.billed_spans import PRODUCTIVE, REFUSED, RUNNING, SlotSpan, kind_of_waste, priced_unit
from muster.ledger.prices_and_accounts import HOUR_S
from muster.model.attempt import UNKNOWN_EXIT
from muster.model.campaign import Job
from muster.model.verdict import LIVE_STATES

ACCOUNT_NAMES = ("productive", "wasted", "idle", "overhead", "running")
MOST_PLACES = 40
MOST_LOG_LINES = 3  # of a log
WAITING_REASONS = frozenset({"filter", "filter_before", "never", "never_down", "blocked", "held", "dead", "other"})


@dataclass(frozen=True, slots=True)
class CostSources:
    """What lies outside the state. All paths are absolute."""

    root: str
    state: str  # .muster
    folder_of: Callable[[str, int], str]  # of an attempt
    exists: Callable[[str], bool]
    slots: int = 1
    checkpoints: Mapping[str, tuple[int, str]] = field(default_factory=dict)  # job -> (files, where they lie)


def gather_cost_facts(
    status: Status, events: Sequence[LoggedDecision], found: CampaignCost, sources: CostSources
) -> CostFacts:
    state, campaign = status.state, status.state.campaign
    words = decisions_about_cells(events)
    needs = state.needs

    def logs_of(cell: CellStatus) -> tuple[str, ...]:
        return attempt_log_paths(cell.record.last, sources.folder_of, sources.exists)

    missing = _join_never_starting(group_absent_cells(status, words, needs, logs_of))
    order = {cell.record.cell.id: at for at, cell in enumerate(status.cells)}
    gone = (name for each in missing if each.why != "alive" for name in each.cells)
    lacking = sorted(gone, key=order.__getitem__)
    waiting = {name for each in missing if each.why in WAITING_REASONS for name in each.cells}
    left = tuple(name for name in lacking if name in waiting)
    spending = found.spending
    finished = {span.job for span in _productive_spans(spending.spans)}
    known = [name for name in left if state.cells[name].cell.job in finished]
    hours = expected_slot_hours(spending, known) if known else None
    return CostFacts(
        campaign=campaign.name,
        folder=sources.root,
        language=campaign.language,
        at=status.as_of,
        version=__version__,
        covers=tuple(_coverage_by_job(status)),
        sums=_ledger_sums(found),
        products=tuple(_products_by_job(status, found, sources)),
        losses=tuple(_losses_by_cause(status, found, sources)),
        retries=tuple(
            record.cell.id for record in state.cells.values() for each in record.attempts[1:] if not each.adopted
        ),
        filters=tuple(filters_in_order(words, status)),
        notes=tuple(_notes_of_people(events)),
        absent=missing,
        running=sum(cell.verdict.state in LIVE_STATES for cell in status.cells),
        outdated=tuple(record.cell.id for record in state.declared if is_outdated_cell(record)),
        doubts=tuple(_doubts_of_done_cells(status)),
        proxies={
            value.name: value.proxy
            for axis in campaign.axes
            if axis.name == "split"
            for value in axis.values
            if value.proxy
        },
        missing=tuple(lacking),
        completion=left,
        complete_for=HoursAndMoney(hours, expected_price(spending, known, sources.slots))
        if hours is not None
        else None,
        unknown_jobs=tuple(dict.fromkeys(state.cells[name].cell.job for name in left if name not in known)),
        fixes=commands_to_complete(status, missing, sources.slots),
        places=tuple(_cost_evidence_places(status, events, sources, missing))[:MOST_PLACES],
    )


def _join_never_starting(missing: Sequence[AbsentCells]) -> tuple[AbsentCells, ...]:
    """What can never start is told once, whatever each of them waits for."""
    hopeless = [each for each in missing if each.why == "blocked_for_ever"]
    if len(hopeless) < 2:
        return tuple(missing)
    cells = tuple(name for each in hopeless for name in each.cells)
    needs = ",".join(dict.fromkeys(need for each in hopeless for need in each.parts["needs"].split(",")))
    joined = replace(hopeless[0], cells=cells, parts={"needs": needs})
    return (*(each for each in missing if each.why != "blocked_for_ever"), joined)


# -- coverage


def _coverage_by_job(status: Status) -> Iterator[JobCoverage]:
    for job in status.state.campaign.jobs:
        cells = [cell for cell in status.cells if cell.record.cell.job == job.name]
        across = "seed" if "seed" in job.axes else (job.axes[-1] if job.axes else "")
        columns = tuple(value.name for value in status.state.campaign.axis(across).values) if across else ("",)
        rows: dict[str, dict[str, str]] = {}
        for cell in cells:
            names = cell.record.cell.names
            column = names.pop(across, "")
            rows.setdefault(" / ".join(names.values()), {})[column] = str(cell.verdict.state)
        found = tuple((name, tuple(states.get(column, "") for column in columns)) for name, states in rows.items())
        yield JobCoverage(job.name, job.axes, across, columns, found, job.needs, bool(job.results))


# -- the ledger


def _ledger_sums(found: CampaignCost) -> LedgerSums:
    spending, book = found.spending, found.spending.ledger
    money, expected = spending.state.campaign.money, spending.forecast
    accounts = tuple(
        (name, HoursAndMoney(getattr(book.hours, name), getattr(book.money, name) if book.money else None))
        for name in ACCOUNT_NAMES
    )
    return LedgerSums(
        accounts=accounts,
        total=HoursAndMoney(book.hours.total, spending.spent),
        gpu_hours=book.gpu_hours,
        free_hours=found.free_hours,
        adopted=book.adopted,
        adopted_hours=book.adopted_hours,
        currency=money.currency if money else "",
        price=money.price if money and money.price else None,
        per=money.per if money else "gpu",
        unit=priced_unit(spending.state.campaign, (slot for span in spending.spans for slot in span.slots)),
        since=money.since if money else None,
        budget=money.budget if money else None,
        paid=found.paid,
        unaccounted=found.unaccounted,
        forecast=(expected.low, expected.mid, expected.high) if expected else None,
    )


def _productive_spans(spans: Sequence[SlotSpan]) -> list[SlotSpan]:
    return [span for span in spans if span.label == PRODUCTIVE]


def _amount_of_spans(spans: Sequence[SlotSpan], found: CampaignCost) -> HoursAndMoney:
    """Of spans by themselves: where GPUs are shared or a machine is rented, only their hours can be told."""
    spending = found.spending
    hours = sum(span.held_s * max(1, len(span.units)) for span in spans) / HOUR_S
    money = spending.state.campaign.money
    if spending.prices is None or money is None or money.per != "gpu" or spending.state.campaign.slots.per_gpu > 1:
        return HoursAndMoney(hours)
    paid = sum(spending.prices.cost("gpu", span.wall, span.held_s) * len(span.units) for span in spans)
    return HoursAndMoney(hours, paid)


def _products_by_job(status: Status, found: CampaignCost, sources: CostSources) -> Iterator[JobProduct]:
    for job in status.state.campaign.jobs:
        used = [span for span in _productive_spans(found.spending.spans) if span.job == job.name]
        if not used:
            continue
        done = [status.state.cells[span.cell].attempts[span.attempt - 1] for span in used]
        outputs = [each.outcome.output for each in done if each.outcome and each.outcome.output]
        files, pattern = sources.checkpoints.get(job.name, (None, ""))
        lasted = [span.ran_s / HOUR_S for span in used]
        yield JobProduct(
            job=job.name,
            cells=len(used),
            steps=job.steps,
            spent=_amount_of_spans(used, found),
            shortest_h=min(lasted),
            longest_h=max(lasted),
            checkpoints=files,
            pattern=pattern,
            outputs=tuple(outputs),
            results=tuple(result.name for result in job.results),
            adopted=sum(span.adopted for span in used),
            proved=job.asks_proof,
        )


def _losses_by_cause(status: Status, found: CampaignCost, sources: CostSources) -> Iterator[WastedAttempts]:
    groups: dict[str, list[SlotSpan]] = {}
    for span in found.spending.spans:
        if span.label not in (PRODUCTIVE, RUNNING):
            groups.setdefault(span.label[1], []).append(span)
    for cause, spans in sorted(groups.items(), key=lambda item: -sum(span.held_s for span in item[1])):
        if cause == REFUSED[1]:
            yield _refused_runs_loss(status, spans, found)
            continue
        last = spans[-1]
        attempt = status.state.cells[last.cell].attempts[last.attempt - 1]
        outcome = attempt.outcome
        yield WastedAttempts(
            cause=str(outcome.cause) if outcome and outcome.cause and len(spans) == 1 else cause,
            how=kind_of_waste(cause),
            attempts=len(spans),
            spent=_amount_of_spans(spans, found),
            cells=tuple(dict.fromkeys(span.cell for span in spans)),
            reason=outcome.reason if outcome else "",
            lines=outcome.lines[-MOST_LOG_LINES:] if outcome else (),
            log=next(iter(attempt_log_paths(attempt, sources.folder_of, sources.exists)), ""),
            advice=outcome.advice if outcome else "",
        )


def _refused_runs_loss(status: Status, spans: Sequence[SlotSpan], found: CampaignCost) -> WastedAttempts:
    """Runs of others that `muster adopt` found and did not take in."""
    runs = status.state.refused
    return WastedAttempts(
        cause=REFUSED[1],
        how=kind_of_waste(REFUSED[1]),
        attempts=len(spans),
        spent=_amount_of_spans(spans, found),
        cells=tuple(dict.fromkeys(span.cell for span in spans)),
        reason=f"{runs[-1].path}: {runs[-1].reason}" if runs else "",
    )


# -- what people found, and what cells say against themselves


def _notes_of_people(events: Sequence[LoggedDecision]) -> Iterator[PersonNote]:
    for event in events:
        decision = event.decision
        if decision.kind == "note" and not event.void:
            pointed = decision.data.get("evidence") or {}
            file = f"{pointed['file']}:{pointed['line']}" if pointed else ""
            yield PersonNote(
                decision.at, decision.who, decision.reason, decision.cell, file, str(pointed.get("text", ""))
            )


def _doubts_of_done_cells(status: Status) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Notes of DONE attempts, such as a checkpoint that was saved too early to be of the end."""
    found: dict[str, list[str]] = {}
    for record in status.state.declared:
        done = record.completed
        for note in done.outcome.note.split("; ") if done and done.outcome and done.outcome.note else ():
            if note != UNKNOWN_EXIT:
                found.setdefault(note, []).append(record.cell.id)
    for note, cells in found.items():
        yield note, tuple(cells)


# -- where the evidence lies


def _cost_evidence_places(
    status: Status, events: Sequence[LoggedDecision], sources: CostSources, missing: Sequence[AbsentCells]
) -> Iterator[EvidencePlace]:
    if sources.exists(f"{sources.state}/decisions.jsonl"):
        yield EvidencePlace("log", f"{sources.state}/decisions.jsonl")
    yield from status_table_places(status, sources.root, sources.exists)
    for note in _notes_of_people(events):
        if note.file:
            yield EvidencePlace("noted", note.file)
    yield EvidencePlace("attempts", f"{sources.state}/attempts")
    for each in missing:
        for path in each.paths[:1]:
            yield EvidencePlace("attempt", path.rpartition("/")[0], each.cells[0])
    outputs: dict[tuple[str, str], list[str]] = {}
    for cell in status.cells:
        done = cell.record.completed
        output = done.outcome.output if done and done.outcome else None
        if done and output and not output.startswith(f"{sources.state}/"):
            outputs.setdefault(("adopted" if done.adopted else "output", cell.record.cell.job), []).append(output)
    for (what, name), paths in outputs.items():
        yield EvidencePlace(what, common_path_pattern(paths), name)


def common_path_pattern(paths: Sequence[str]) -> str:
    """`/runs/*` for the folders of many runs that lie beside each other."""
    if len(paths) == 1:
        return paths[0]
    parts = [path.split("/") for path in paths]
    return "/".join(here[0] if len(set(here)) == 1 else "*" for here in zip(*parts, strict=False))


def cost_report_text(
    status: Status, events: Sequence[LoggedDecision], found: CampaignCost, sources: CostSources
) -> str:
    """What did it buy? As Markdown, in the campaign's language."""
    from muster.app.money.cost_report import cost_report_markdown

    return cost_report_markdown(gather_cost_facts(status, events, found, sources))


COST_FILE = "cost.md"


def write_cost_report(
    desk: CampaignHandle, status: Status, events: Sequence[LoggedDecision], found: CampaignCost
) -> Path:
    path = desk.root / "reports" / COST_FILE
    text = cost_report_text(status, events, found, cost_sources(desk, status))
    write_stamped_text(desk, status, "cost", "muster cost --report", path, text)
    return path


def cost_sources(desk: CampaignHandle, status: Status) -> CostSources:
    return CostSources(
        root=str(desk.root),
        state=str(desk.state),
        folder_of=lambda cell, n: str(attempt_folder(desk.state, cell, n)),
        exists=path_holds_something,
        slots=count_usable_slots(status.state.campaign),
        checkpoints={
            job.name: counted
            for job in status.state.campaign.jobs
            if (counted := _count_checkpoint_files(job, status)) is not None
        },
    )


def _count_checkpoint_files(job: Job, status: Status) -> tuple[int, str] | None:
    """How many files fit the declared checkpoints in the outputs that are used; None: none is declared."""
    patterns = [source.path for source in job.progress if source.kind == "checkpoint"]
    if job.proof.checkpoint:
        patterns.append(job.proof.checkpoint.path)
    if not patterns:
        return None
    outputs = [
        done.outcome.output
        for cell in status.cells
        if cell.record.cell.job == job.name and (done := cell.record.completed) and done.outcome and done.outcome.output
    ]
    found = {
        path
        for output in outputs
        for pattern in patterns
        for path in glob_paths(pattern, output)
        for path in [str(Path(output, path))]
    }
    return len(found), f"{common_path_pattern(outputs)}/{patterns[0]}" if outputs else patterns[0]
