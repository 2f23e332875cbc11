"""The facts of the written record: scope, changes, observations, and why each missing cell is missing, with the
commands that would complete it. Times are ISO texts, reasons as they were recorded.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from muster.app.campaign.campaign_cost import expected_price
from muster.app.campaign.campaign_status import CellStatus, Status
from muster.engine.plan.cell_standing import format_cell_filter, passes_filter, standing_of_cell, unmet_needs
from muster.engine.plan.scheduling import median_durations
from muster.engine.ports.store import LoggedDecision
from muster.model.attempt import Attempt
from muster.model.campaign_state import CampaignState, CellFilter, Intent
from muster.model.decision import Decision
from muster.model.verdict import LIVE_STATES, VerdictState


@dataclass(frozen=True, slots=True)
class JobScope:
    name: str
    axes: tuple[tuple[str, int], ...]  # (axis, number of values); empty: it runs once
    cells: int
    excluded: int  # points of the product that it leaves out
    command: str
    within: str = ""
    cwd: str = ""
    env: tuple[tuple[str, str | None], ...] = ()  # as declared; None: its name sounds like a secret
    needs: tuple[str, ...] = ()
    steps: int | None = None
    proof: bool = False  # more than exit 0 is asked for


@dataclass(frozen=True, slots=True)
class CodeUse:
    """One state of the code, and how many attempts ran it."""

    cwd: str
    commit: str  # "": there is none, or it is not known
    dirty: str | None
    attempts: int
    diff: str | None = None  # where what was not committed is kept
    state: str = ""  # of model/attempt.py
    why: str = ""  # it is not known
    files: tuple[str, ...] = ()  # that are in no commit, or not as they are there
    kept: str | None = None  # where their contents are


@dataclass(frozen=True, slots=True)
class TextChange:
    """A campaign text that was taken in, and how it differs from the one before."""

    at: str
    who: str
    file: str
    lines: tuple[str, ...] = ()  # -old, +new; empty for the first one
    more: int = 0  # lines of the difference that are not shown


@dataclass(frozen=True, slots=True)
class FilterSet:
    at: str
    who: str
    only: str  # seed=3,4
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Observation:
    """Something that happened, or several of the same kind in a row."""

    kind: str  # a key of the wording
    at: str
    until: str = ""  # of the last of several
    parts: Mapping[str, str] = field(default_factory=dict)
    cells: tuple[str, ...] = ()
    count: int = 1
    done: int = 0  # of `count` attempts that were started or ended
    evidence: tuple[str, ...] = ()  # readings, FILE:LINE
    lines: tuple[str, ...] = ()  # of a log
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SeedTally:
    """One row of what is done: `v2_baseline: seeds 0, 1 (2 of 5)`."""

    job: str
    name: str  # the values of all axes but the last; "" where there is none
    axis: str
    done: tuple[str, ...]
    declared: int


@dataclass(frozen=True, slots=True)
class AbsentCells:
    """Cells that are not DONE for one and the same reason."""

    cells: tuple[str, ...]
    state: str
    why: str  # a key of the wording
    parts: Mapping[str, str] = field(default_factory=dict)
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProposedFix:
    """A command that nobody has run yet."""

    command: str
    why: str  # a key of the wording
    parts: Mapping[str, str] = field(default_factory=dict)
    cells: tuple[str, ...] = ()
    hours: float | None = None  # of slots; None: no sibling has finished
    wall_hours: float | None = None
    money: float | None = None


@dataclass(frozen=True, slots=True)
class EvidencePlace:
    what: str  # a key of the wording
    path: str
    of: str = ""  # the cell or job


@dataclass(frozen=True, slots=True)
class RecordFacts:
    campaign: str
    folder: str
    language: Literal["zh", "en"]
    at: str
    version: str
    declared: int
    counts: Mapping[str, int]  # verdict -> cells
    intent: str
    alive: bool  # whether a controller is at work
    axes: tuple[tuple[str, tuple[str, ...]], ...]
    jobs: tuple[JobScope, ...]
    slots: str
    values: tuple[tuple[str, str, str, str, str], ...] = ()  # (axis, value, what it adds, its note, its proxy)
    env: tuple[tuple[str, str | None], ...] = ()  # of the whole campaign, as in JobScope
    price: tuple[float, str, str, float | None] | None = None  # (an hour, currency, gpu, slot or machine, budget)
    hold: tuple[str, str, str] | None = None  # (at, who, why)
    code: tuple[CodeUse, ...] = ()
    texts: tuple[TextChange, ...] = ()
    filters: tuple[FilterSet, ...] = ()
    people: Mapping[str, int] = field(default_factory=dict)  # what they decided -> how often
    files: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # kind -> (files, bytes)
    seen: tuple[Observation, ...] = ()
    unseen: int = 0  # observations between the first and the last ones that are not shown
    quiet: int = 0  # how often a run was QUIET
    tallies: tuple[SeedTally, ...] = ()
    absent: tuple[AbsentCells, ...] = ()
    adopted: int = 0  # of the DONE cells
    outdated: int = 0
    fixes: tuple[ProposedFix, ...] = ()
    currency: str = ""
    places: tuple[EvidencePlace, ...] = ()
    more_places: int = 0

    @property
    def done(self) -> int:
        return self.counts.get("DONE", 0)

    @property
    def missing(self) -> int:
        return sum(len(each.cells) for each in self.absent)


FolderOfAttempt = Callable[[str, int], str]  # cell, number
PathExists = Callable[[str], bool]
LogPathsOfCell = Callable[[CellStatus], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class CellDecisions:
    """Who decided what about the cells, from the event table."""

    filters: tuple[tuple[Decision, CellFilter], ...]  # oldest first
    given_up: Mapping[str, Decision]
    hold: Decision | None


def decisions_about_cells(events: Sequence[LoggedDecision]) -> CellDecisions:
    filters: list[tuple[Decision, CellFilter]] = []
    given_up: dict[str, Decision] = {}
    hold = None
    for event in events:
        decision = event.decision
        if event.void:
            continue
        if decision.kind == "filter":
            filters.append((decision, filter_of_decision(decision.data)))
        elif decision.kind == "giveup" and decision.cell:
            given_up[decision.cell] = decision
        elif decision.kind in ("hold", "release"):
            hold = decision if decision.kind == "hold" else None
    return CellDecisions(tuple(filters), given_up, hold)


def filters_in_order(words: CellDecisions, status: Status) -> Iterator[FilterSet]:
    cells = [cell.record.cell for cell in status.cells]
    for decision, only in words.filters:
        known = decision.data.get("left_out")
        left = map(str, known) if known is not None else (cell.id for cell in cells if not passes_filter(cell, only))
        yield FilterSet(decision.at, decision.who, format_cell_filter(only), tuple(left))


def attempt_log_paths(attempt: Attempt | None, folder_of: FolderOfAttempt, exists: PathExists) -> tuple[str, ...]:
    """stderr first, as it tells more."""
    if attempt is None:
        return ()
    folder = folder_of(*attempt.place)
    return tuple(path for name in ("stderr.log", "stdout.log") if exists(path := f"{folder}/{name}"))


def status_table_places(status: Status, root: str, exists: PathExists) -> Iterator[EvidencePlace]:
    for job in status.state.campaign.jobs:
        table = f"{root}/reports/status/{job.name}_status_latest.tsv"
        if exists(table):
            yield EvidencePlace("table", table, job.name)


def filter_of_decision(data: Mapping[str, Any]) -> CellFilter:
    return tuple({axis: tuple(names) for axis, names in part.items()} for part in data.get("only", ()))


def group_absent_cells(
    status: Status, words: CellDecisions, needs: Mapping[str, tuple[str, ...]], paths_of: LogPathsOfCell
) -> tuple[AbsentCells, ...]:
    """Every declared cell that is not DONE, those with one reason together, in declared order."""
    found: dict[object, AbsentCells] = {}
    for cell in status.cells:
        if cell.verdict.state == VerdictState.DONE:
            continue
        each = _absence_of_cell(cell, status.state, words, needs, paths_of)
        told = {} if each.why == "blocked" else each.parts  # what each waits for is named among the missing itself
        key = (each.state, each.why, tuple(sorted(told.items())))
        known = found.get(key)
        found[key] = _join_absent_cells(known, each) if known else each
    return tuple(found.values())


def _join_absent_cells(one: AbsentCells, other: AbsentCells) -> AbsentCells:
    parts = dict(one.parts)
    if "needs" in parts:
        both = [*one.parts["needs"].split(","), *other.parts["needs"].split(",")]
        parts["needs"] = ",".join(dict.fromkeys(both))
    return replace(one, parts=parts, cells=(*one.cells, *other.cells), paths=(*one.paths, *other.paths))


def _absence_of_cell(
    cell: CellStatus,
    state: CampaignState,
    words: CellDecisions,
    needs: Mapping[str, tuple[str, ...]],
    paths_of: LogPathsOfCell,
) -> AbsentCells:
    name, verdict, standing_ = cell.record.cell.id, cell.verdict, cell.verdict.state
    if standing_ == VerdictState.HELD:  # a hold covers up why it had not started before
        standing_ = standing_of_cell(cell.record, replace(state, intent=Intent("running")), needs).state

    def told(why: str, **parts: str) -> AbsentCells:
        return AbsentCells((name,), str(verdict.state), why, parts, paths_of(cell))

    if verdict.state in LIVE_STATES:
        return told("alive", state=str(verdict.state), reason=verdict.reason)
    if verdict.state == VerdictState.GIVEN_UP:
        by = words.given_up.get(name)
        return told("given_up", who=by.who if by else "?", at=by.at if by else "", reason=cell.record.given_up or "")
    if verdict.state == VerdictState.DEAD:
        cause = str(verdict.cause) if verdict.cause else "unknown"
        return told(
            "dead",
            n=str(len(cell.record.attempts)),
            cause=cause,
            confidence=verdict.confidence,
            reason=verdict.reason,
            next=cell.next,
        )
    if standing_ == VerdictState.BLOCKED:
        waiting = unmet_needs(cell.record.cell, state, needs)
        gone = [each for each in waiting if each in state.cells and state.cells[each].given_up is not None]
        return told("blocked_for_ever" if gone else "blocked", needs=",".join(gone or waiting))
    left = next((each for each in reversed(words.filters) if not passes_filter(cell.record.cell, each[1])), None)
    if standing_ == VerdictState.PENDING and left and not cell.record.attempts:
        decision, only = left
        kind = "filter" if not passes_filter(cell.record.cell, state.only) else "filter_before"
        reason = {} if kind == "filter" else {"reason": verdict.reason}
        return told(kind, only=format_cell_filter(only), who=decision.who, at=decision.at, **reason)
    if verdict.state == VerdictState.HELD and words.hold:
        return told("held", who=words.hold.who, at=words.hold.at, reason=words.hold.reason)
    if verdict.state == VerdictState.PENDING and not cell.record.attempts:
        return told("never_down" if state.intent.kind == "down" else "never", reason=verdict.reason)
    return told("other", reason=verdict.reason, next=cell.next)


# -- the fix


def commands_to_complete(status: Status, missing: Sequence[AbsentCells], slots: int) -> tuple[ProposedFix, ...]:
    """In the order in which they would be run."""
    found = [
        *_release_fixes(status),
        *_accept_fixes(status),
        *_retry_fixes(status, missing),
        *_up_fixes(status, missing),
    ]
    return tuple(_estimate_fix(fix, status, slots) for fix in found)


def _release_fixes(status: Status) -> Iterator[ProposedFix]:
    if status.state.intent.kind == "held":
        yield ProposedFix("muster release", "release", {"reason": status.state.intent.reason})


def _accept_fixes(status: Status) -> Iterator[ProposedFix]:
    for cell in status.cells:
        if cell.verdict.state == VerdictState.DEAD and cell.verdict.note:
            name = cell.record.cell.id
            yield ProposedFix(f"muster accept {shlex.quote(name)}", "accept", cells=(name,))


def _retry_fixes(status: Status, missing: Sequence[AbsentCells]) -> Iterator[ProposedFix]:
    """Dead ones that nothing starts again by itself, each cause once. What to fix first is said where it is known."""
    of = {cell.record.cell.id: cell for cell in status.cells}
    by_cause: dict[tuple[str, str], list[str]] = {}
    for each in missing:
        for name in each.cells if each.why == "dead" else ():
            cell = of[name]
            if not cell.startable and not cell.verdict.note:
                last = cell.record.last
                advice = last.outcome.advice if last and last.outcome else ""
                by_cause.setdefault((each.parts["cause"], advice), []).append(name)
    for (cause, advice), names in by_cause.items():
        command = f"muster retry {' '.join(map(shlex.quote, names))} --because 'WHAT WAS FIXED'"
        yield ProposedFix(
            command, "retry_advice" if advice else "retry", {"cause": cause, "advice": advice}, tuple(names)
        )


def _up_fixes(status: Status, missing: Sequence[AbsentCells]) -> Iterator[ProposedFix]:
    """What has not run, and what only waits for it. `up` never runs finished cells again."""
    waiting = {"filter", "filter_before", "never", "never_down", "blocked", "held"}
    names = [name for each in missing if each.why in waiting for name in each.cells]
    again = [c.record.cell.id for c in status.cells if c.verdict.state == VerdictState.DEAD and c.startable]
    if not names and not again:
        return
    intent = status.state.intent
    goes_on = intent.kind == "running" and not status.state.at_rest
    if not status.state.only and (goes_on or (intent.kind == "held" and intent.before == "running")):
        return  # it goes on by itself, at once or after `release`
    cells = tuple(cell.record.cell.id for cell in status.cells if cell.record.cell.id in {*names, *again})
    spelled = _same_as_filter(status, cells)
    yield ProposedFix("muster up", "up_same" if spelled else "up", {"same": spelled}, cells)


def _same_as_filter(status: Status, cells: Sequence[str]) -> str:
    """The same as a filter, where these cells are all that it lets through and that is not done."""
    of = {record.cell.id: record.cell for record in status.state.declared}
    jobs = {of[name].job for name in cells}
    axes: dict[str, list[str]] = {}
    for name in cells:
        for axis, value in of[name].values:
            axes.setdefault(axis, [])
            if value.name not in axes[axis]:
                axes[axis].append(value.name)
    campaign = status.state.campaign
    only: list[dict[str, tuple[str, ...]]] = []
    if len(jobs) < len(campaign.jobs):
        only.append({"job": tuple(job.name for job in campaign.jobs if job.name in jobs)})
    only += [{a: tuple(v)} for a, v in axes.items() if len(v) < len(campaign.axis(a).values)]
    if not only or any("," in value for part in only for values in part.values() for value in values):
        return ""
    through = {r.cell.id for r in status.state.declared if not r.done and passes_filter(r.cell, tuple(only))}
    return f"muster up --only {format_cell_filter(tuple(only))}" if through == set(cells) else ""


def _estimate_fix(fix: ProposedFix, status: Status, slots: int) -> ProposedFix:
    """Hours by what siblings took; money by the ledger, as `muster cost` reckons it."""
    state = status.state
    known = median_durations(state.declared)
    jobs = [state.cells[name].cell.job for name in fix.cells]
    if not jobs or fix.why == "accept" or any(job not in known for job in jobs):
        return fix
    seconds = sum(known[job] for job in jobs)
    wall = max(seconds / max(1, slots), _longest_chain_seconds(state, jobs, known))
    money = expected_price(status.spending, fix.cells, slots) if status.spending else None
    return replace(fix, hours=seconds / 3600, wall_hours=wall / 3600, money=money)


def _longest_chain_seconds(state: CampaignState, jobs: Sequence[str], known: Mapping[str, float]) -> float:
    """No number of slots makes a chain of cells shorter."""

    def chain(name: str) -> float:
        return known[name] + max((chain(need) for need in state.job(name).needs if need in jobs), default=0.0)

    return max(chain(name) for name in set(jobs))
