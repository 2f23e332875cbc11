"""Why each missing cell is missing, and the commands that would mend it. Nothing is started."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from muster.acts.cost import price_of
from muster.acts.status import CellStatus, Status
from muster.domain.decision import Decision
from muster.domain.state import CampaignState, Intent, Only
from muster.domain.verdict import LIVE, State
from muster.plan.order import durations
from muster.plan.standing import describe, standing, unmet, wanted
from muster.ports.store import Event
from muster.report.record_facts import Absent, Fix

PathsOf = Callable[[CellStatus], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Words:
    """Who decided what about the cells, from the event table."""

    filters: tuple[tuple[Decision, Only], ...]  # oldest first
    given_up: Mapping[str, Decision]
    hold: Decision | None


def decided(events: Sequence[Event]) -> Words:
    filters: list[tuple[Decision, Only]] = []
    given_up: dict[str, Decision] = {}
    hold = None
    for event in events:
        decision = event.decision
        if event.void:
            continue
        if decision.kind == "filter":
            filters.append((decision, only_of(decision.data)))
        elif decision.kind == "giveup" and decision.cell:
            given_up[decision.cell] = decision
        elif decision.kind in ("hold", "release"):
            hold = decision if decision.kind == "hold" else None
    return Words(tuple(filters), given_up, hold)


def only_of(data: Mapping[str, Any]) -> Only:
    return tuple({axis: tuple(names) for axis, names in part.items()} for part in data.get("only", ()))


def absent(status: Status, words: Words, needs: Mapping[str, tuple[str, ...]], paths_of: PathsOf) -> tuple[Absent, ...]:
    """Every declared cell that is not DONE, those with one reason together, in declared order."""
    found: dict[object, Absent] = {}
    for cell in status.cells:
        if cell.verdict.state == State.DONE:
            continue
        each = _why(cell, status.state, words, needs, paths_of)
        told = {} if each.why == "blocked" else each.parts  # what each waits for is named among the missing itself
        key = (each.state, each.why, tuple(sorted(told.items())))
        known = found.get(key)
        found[key] = _joined(known, each) if known else each
    return tuple(found.values())


def _joined(one: Absent, other: Absent) -> Absent:
    parts = dict(one.parts)
    if "needs" in parts:
        both = [*one.parts["needs"].split(","), *other.parts["needs"].split(",")]
        parts["needs"] = ",".join(dict.fromkeys(both))
    return replace(one, parts=parts, cells=(*one.cells, *other.cells), paths=(*one.paths, *other.paths))


def _why(
    cell: CellStatus, state: CampaignState, words: Words, needs: Mapping[str, tuple[str, ...]], paths_of: PathsOf
) -> Absent:
    name, verdict, standing_ = cell.record.cell.id, cell.verdict, cell.verdict.state
    if standing_ == State.HELD:  # a hold covers up why it had not started before
        standing_ = standing(cell.record, replace(state, intent=Intent("running")), needs).state

    def told(why: str, **parts: str) -> Absent:
        return Absent((name,), str(verdict.state), why, parts, paths_of(cell))

    if verdict.state in LIVE:
        return told("alive", state=str(verdict.state), reason=verdict.reason)
    if verdict.state == State.GIVEN_UP:
        by = words.given_up.get(name)
        return told("given_up", who=by.who if by else "?", at=by.at if by else "", reason=cell.record.given_up or "")
    if verdict.state == State.DEAD:
        cause = str(verdict.cause) if verdict.cause else "unknown"
        return told("dead", n=str(len(cell.record.attempts)), cause=cause, confidence=verdict.confidence,
                    reason=verdict.reason, next=cell.next)  # fmt: skip
    if standing_ == State.BLOCKED:
        waiting = unmet(cell.record.cell, state, needs)
        gone = [each for each in waiting if each in state.cells and state.cells[each].given_up is not None]
        return told("blocked_for_ever" if gone else "blocked", needs=",".join(gone or waiting))
    left = next((each for each in reversed(words.filters) if not wanted(cell.record.cell, each[1])), None)
    if standing_ == State.PENDING and left and not cell.record.attempts:
        decision, only = left
        kind = "filter" if not wanted(cell.record.cell, state.only) else "filter_before"
        reason = {} if kind == "filter" else {"reason": verdict.reason}
        return told(kind, only=describe(only), who=decision.who, at=decision.at, **reason)
    if verdict.state == State.HELD and words.hold:
        return told("held", who=words.hold.who, at=words.hold.at, reason=words.hold.reason)
    if verdict.state == State.PENDING and not cell.record.attempts:
        return told("never_down" if state.intent.kind == "down" else "never", reason=verdict.reason)
    return told("other", reason=verdict.reason, next=cell.next)


# -- the fix


def fixes(status: Status, missing: Sequence[Absent], slots: int) -> tuple[Fix, ...]:
    """In the order in which they would be run."""
    found = [*_releases(status), *_accepts(status), *_retries(status, missing), *_up(status, missing)]
    return tuple(_estimated(fix, status, slots) for fix in found)


def _releases(status: Status) -> Iterator[Fix]:
    if status.state.intent.kind == "held":
        yield Fix("muster release", "release", {"reason": status.state.intent.reason})


def _accepts(status: Status) -> Iterator[Fix]:
    for cell in status.cells:
        if cell.verdict.state == State.DEAD and cell.verdict.note:
            name = cell.record.cell.id
            yield Fix(f"muster accept {shlex.quote(name)}", "accept", cells=(name,))


def _retries(status: Status, missing: Sequence[Absent]) -> Iterator[Fix]:
    """Dead ones that nothing starts again by itself, each cause once. What to mend first is said where it is known."""
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
        command = f"muster retry {' '.join(map(shlex.quote, names))} --because 'WHAT WAS MENDED'"
        yield Fix(command, "retry_advice" if advice else "retry", {"cause": cause, "advice": advice}, tuple(names))


def _up(status: Status, missing: Sequence[Absent]) -> Iterator[Fix]:
    """What has not run, and what only waits for it. `up` never runs finished cells again."""
    waiting = {"filter", "filter_before", "never", "never_down", "blocked", "held"}
    names = [name for each in missing if each.why in waiting for name in each.cells]
    again = [c.record.cell.id for c in status.cells if c.verdict.state == State.DEAD and c.startable]
    if not names and not again:
        return
    intent = status.state.intent
    goes_on = intent.kind == "running" and not status.state.at_rest
    if not status.state.only and (goes_on or (intent.kind == "held" and intent.before == "running")):
        return  # it goes on by itself, at once or after `release`
    cells = tuple(cell.record.cell.id for cell in status.cells if cell.record.cell.id in {*names, *again})
    spelled = _spelled_out(status, cells)
    yield Fix("muster up", "up_same" if spelled else "up", {"same": spelled}, cells)


def _spelled_out(status: Status, cells: Sequence[str]) -> str:
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
    through = {r.cell.id for r in status.state.declared if not r.done and wanted(r.cell, tuple(only))}
    return f"muster up --only {describe(tuple(only))}" if through == set(cells) else ""


def _estimated(fix: Fix, status: Status, slots: int) -> Fix:
    """Hours by what siblings took; money by the ledger, as `muster cost` reckons it."""
    state = status.state
    known = durations(state.declared)
    jobs = [state.cells[name].cell.job for name in fix.cells]
    if not jobs or fix.why == "accept" or any(job not in known for job in jobs):
        return fix
    seconds = sum(known[job] for job in jobs)
    wall = max(seconds / max(1, slots), _longest(state, jobs, known))
    money = price_of(status.spending, fix.cells, slots) if status.spending else None
    return replace(fix, hours=seconds / 3600, wall_hours=wall / 3600, money=money)


def _longest(state: CampaignState, jobs: Sequence[str], known: Mapping[str, float]) -> float:
    """No number of slots makes a chain of cells shorter."""

    def chain(name: str) -> float:
        return known[name] + max((chain(need) for need in state.job(name).needs if need in jobs), default=0.0)

    return max(chain(name) for name in set(jobs))
