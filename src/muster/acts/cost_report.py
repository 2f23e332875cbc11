"""Gathers what the cost report is made from: coverage, products, losses, notes, what a completion would take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from muster import __version__
from muster.acts.adopt import UNKNOWN_EXIT
from muster.acts.cost import Cost, hours_of, price_of
from muster.acts.record_missing import absent, decided, fixes
from muster.acts.status import CellStatus, Status
from muster.domain.attempt import Attempt
from muster.domain.cell import needed_cells
from muster.domain.verdict import LIVE
from muster.ledger.prices import HOUR
from muster.ledger.spans import PRODUCTIVE, REFUSED, RUNNING, Span, how_wasted
from muster.ledger.units import unit
from muster.plan.standing import describe, outdated, wanted
from muster.ports.store import Event
from muster.report.cost_facts import Amount, CostFacts, Cover, Loss, Noted, Product, Sums
from muster.report.record_facts import Absent, FilterSet, Place

ACCOUNTS = ("productive", "wasted", "idle", "overhead", "running")
MOST_PLACES = 40
LINES = 3  # of a log
WAITS = frozenset({"filter", "filter_before", "never", "never_down", "blocked", "held", "dead", "other"})


@dataclass(frozen=True, slots=True)
class CostSources:
    """What lies outside the state. All paths are absolute."""

    root: str
    state: str  # .muster
    folder_of: Callable[[str, int], str]  # of an attempt
    exists: Callable[[str], bool]
    slots: int = 1
    checkpoints: Mapping[str, tuple[int, str]] = field(default_factory=dict)  # job -> (files, where they lie)


def cost_facts(status: Status, events: Sequence[Event], found: Cost, sources: CostSources) -> CostFacts:
    state, campaign = status.state, status.state.campaign
    words = decided(events)
    needs = needed_cells(campaign, [record.cell for record in state.declared])
    missing = _together(absent(status, words, needs, lambda cell: _logs(cell, sources)))
    order = {cell.record.cell.id: at for at, cell in enumerate(status.cells)}
    gone = (name for each in missing if each.why != "alive" for name in each.cells)
    lacking = sorted(gone, key=order.__getitem__)
    waiting = {name for each in missing if each.why in WAITS for name in each.cells}
    left = tuple(name for name in lacking if name in waiting)
    spending = found.spending
    finished = {span.job for span in _used(spending.spans)}
    known = [name for name in left if state.cells[name].cell.job in finished]
    hours = hours_of(spending, known) if known else None
    return CostFacts(
        campaign=campaign.name,
        folder=sources.root,
        language=campaign.language,
        at=status.as_of,
        version=__version__,
        covers=tuple(_covers(status)),
        sums=_sums(found),
        products=tuple(_products(status, found, sources)),
        losses=tuple(_losses(status, found, sources)),
        retries=tuple(
            record.cell.id for record in state.cells.values() for each in record.attempts[1:] if not each.adopted
        ),
        filters=tuple(
            FilterSet(decision.at, decision.who, describe(only), _left_out(decision.data, status, only))
            for decision, only in words.filters
        ),
        notes=tuple(_notes(events)),
        absent=missing,
        running=sum(cell.verdict.state in LIVE for cell in status.cells),
        outdated=tuple(record.cell.id for record in state.declared if outdated(record)),
        doubts=tuple(_doubts(status)),
        proxies={
            value.name: value.proxy
            for axis in campaign.axes
            if axis.name == "split"
            for value in axis.values
            if value.proxy
        },
        missing=tuple(lacking),
        completion=left,
        complete_for=Amount(hours, price_of(spending, known, sources.slots)) if hours is not None else None,
        unknown_jobs=tuple(dict.fromkeys(state.cells[name].cell.job for name in left if name not in known)),
        fixes=fixes(status, missing, sources.slots),
        places=tuple(_places(status, events, sources, missing))[:MOST_PLACES],
    )


def _together(missing: Sequence[Absent]) -> tuple[Absent, ...]:
    """What can never start is told once, whatever each of them waits for."""
    hopeless = [each for each in missing if each.why == "blocked_for_ever"]
    if len(hopeless) < 2:
        return tuple(missing)
    cells = tuple(name for each in hopeless for name in each.cells)
    needs = ",".join(dict.fromkeys(need for each in hopeless for need in each.parts["needs"].split(",")))
    joined = replace(hopeless[0], cells=cells, parts={"needs": needs})
    return (*(each for each in missing if each.why != "blocked_for_ever"), joined)


def _left_out(data: Mapping[str, object], status: Status, only: object) -> tuple[str, ...]:
    known = data.get("left_out")
    if isinstance(known, list | tuple):
        return tuple(map(str, known))
    return tuple(cell.record.cell.id for cell in status.cells if not wanted(cell.record.cell, only))  # type: ignore[arg-type]


# -- coverage


def _covers(status: Status) -> Iterator[Cover]:
    for job in status.state.campaign.jobs:
        cells = [cell for cell in status.cells if cell.record.cell.job == job.name]
        across = "seed" if "seed" in job.axes else (job.axes[-1] if job.axes else "")
        columns = tuple(value.name for value in status.state.campaign.axis(across).values) if across else ("",)
        rows: dict[str, dict[str, str]] = {}
        for cell in cells:
            names = {axis: value.name for axis, value in cell.record.cell.values}
            column = names.pop(across, "")
            rows.setdefault(" / ".join(names.values()), {})[column] = str(cell.verdict.state)
        found = tuple((name, tuple(states.get(column, "") for column in columns)) for name, states in rows.items())
        yield Cover(job.name, job.axes, across, columns, found, job.needs, bool(job.results))


# -- the ledger


def _sums(found: Cost) -> Sums:
    spending, book = found.spending, found.spending.ledger
    money, expected = spending.state.campaign.money, spending.forecast
    accounts = tuple(
        (name, Amount(getattr(book.hours, name), getattr(book.money, name) if book.money else None))
        for name in ACCOUNTS
    )
    return Sums(
        accounts=accounts,
        total=Amount(book.hours.total, spending.spent),
        gpu_hours=book.gpu_hours,
        free_hours=found.free_hours,
        adopted=book.adopted,
        adopted_hours=book.adopted_hours,
        currency=money.currency if money else "",
        price=money.price if money and money.price else None,
        per=money.per if money else "gpu",
        unit=unit(spending.state.campaign, (slot for span in spending.spans for slot in span.slots)),
        since=money.since if money else None,
        budget=money.budget if money else None,
        paid=found.paid,
        unaccounted=found.unaccounted,
        forecast=(expected.low, expected.mid, expected.high) if expected else None,
    )


def _used(spans: Sequence[Span]) -> list[Span]:
    return [span for span in spans if span.label == PRODUCTIVE]


def _amount(spans: Sequence[Span], found: Cost) -> Amount:
    """Of spans by themselves: where GPUs are shared or a machine is rented, only their hours can be told."""
    spending = found.spending
    hours = sum(span.held_s * max(1, len(span.units)) for span in spans) / HOUR
    money = spending.state.campaign.money
    if spending.prices is None or money is None or money.per != "gpu" or spending.state.campaign.slots.per_gpu > 1:
        return Amount(hours)
    paid = sum(spending.prices.cost("gpu", span.wall, span.held_s) * len(span.units) for span in spans)
    return Amount(hours, paid)


def _products(status: Status, found: Cost, sources: CostSources) -> Iterator[Product]:
    for job in status.state.campaign.jobs:
        used = [span for span in _used(found.spending.spans) if span.job == job.name]
        if not used:
            continue
        done = [status.state.cells[span.cell].attempts[span.attempt - 1] for span in used]
        outputs = [each.outcome.output for each in done if each.outcome and each.outcome.output]
        files, pattern = sources.checkpoints.get(job.name, (None, ""))
        lasted = [span.ran_s / HOUR for span in used]
        yield Product(
            job=job.name,
            cells=len(used),
            steps=job.steps,
            spent=_amount(used, found),
            shortest_h=min(lasted),
            longest_h=max(lasted),
            checkpoints=files,
            pattern=pattern,
            outputs=tuple(outputs),
            results=tuple(result.name for result in job.results),
            adopted=sum(span.adopted for span in used),
            proved=job.asks_proof,
        )


def _losses(status: Status, found: Cost, sources: CostSources) -> Iterator[Loss]:
    groups: dict[str, list[Span]] = {}
    for span in found.spending.spans:
        if span.label not in (PRODUCTIVE, RUNNING):
            groups.setdefault(span.label[1], []).append(span)
    for cause, spans in sorted(groups.items(), key=lambda item: -sum(span.held_s for span in item[1])):
        if cause == REFUSED[1]:
            yield _refused(status, spans, found)
            continue
        last = spans[-1]
        attempt = status.state.cells[last.cell].attempts[last.attempt - 1]
        outcome = attempt.outcome
        yield Loss(
            cause=str(outcome.cause) if outcome and outcome.cause and len(spans) == 1 else cause,
            how=how_wasted(cause),
            attempts=len(spans),
            spent=_amount(spans, found),
            cells=tuple(dict.fromkeys(span.cell for span in spans)),
            reason=outcome.reason if outcome else "",
            lines=outcome.lines[-LINES:] if outcome else (),
            log=next(iter(_paths(attempt, sources)), ""),
            advice=outcome.advice if outcome else "",
        )


def _refused(status: Status, spans: Sequence[Span], found: Cost) -> Loss:
    """Runs of others that `muster adopt` found and did not take in."""
    runs = status.state.refused
    return Loss(
        cause=REFUSED[1],
        how=how_wasted(REFUSED[1]),
        attempts=len(spans),
        spent=_amount(spans, found),
        cells=tuple(dict.fromkeys(span.cell for span in spans)),
        reason=f"{runs[-1].path}: {runs[-1].reason}" if runs else "",
    )


# -- what people found, and what cells say against themselves


def _notes(events: Sequence[Event]) -> Iterator[Noted]:
    for event in events:
        decision = event.decision
        if decision.kind == "note" and not event.void:
            pointed = decision.data.get("evidence") or {}
            file = f"{pointed['file']}:{pointed['line']}" if pointed else ""
            yield Noted(decision.at, decision.who, decision.reason, decision.cell, file, str(pointed.get("text", "")))


def _doubts(status: Status) -> Iterator[tuple[str, tuple[str, ...]]]:
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


def _paths(attempt: Attempt, sources: CostSources) -> tuple[str, ...]:
    folder = sources.folder_of(*attempt.place)
    return tuple(path for name in ("stderr.log", "stdout.log") if sources.exists(path := f"{folder}/{name}"))


def _logs(cell: CellStatus, sources: CostSources) -> tuple[str, ...]:
    return _paths(cell.record.last, sources) if cell.record.last else ()


def _places(
    status: Status, events: Sequence[Event], sources: CostSources, missing: Sequence[Absent]
) -> Iterator[Place]:
    if sources.exists(f"{sources.state}/decisions.jsonl"):
        yield Place("log", f"{sources.state}/decisions.jsonl")
    for job in status.state.campaign.jobs:
        table = f"{sources.root}/reports/status/{job.name}_status_latest.tsv"
        if sources.exists(table):
            yield Place("table", table, job.name)
    for note in _notes(events):
        if note.file:
            yield Place("noted", note.file)
    yield Place("attempts", f"{sources.state}/attempts")
    for each in missing:
        for path in each.paths[:1]:
            yield Place("attempt", path.rpartition("/")[0], each.cells[0])
    outputs: dict[tuple[str, str], list[str]] = {}
    for cell in status.cells:
        done = cell.record.completed
        output = done.outcome.output if done and done.outcome else None
        if done and output and not output.startswith(f"{sources.state}/"):
            outputs.setdefault(("adopted" if done.adopted else "output", cell.record.cell.job), []).append(output)
    for (what, name), paths in outputs.items():
        yield Place(what, together(paths), name)


def together(paths: Sequence[str]) -> str:
    """`/runs/*` for the folders of many runs that lie beside each other."""
    if len(paths) == 1:
        return paths[0]
    parts = [path.split("/") for path in paths]
    return "/".join(here[0] if len(set(here)) == 1 else "*" for here in zip(*parts, strict=False))
