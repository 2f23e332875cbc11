"""Seeds that were declared when their config began to run and have no result: what became of them.

N never falls by an edit of the file: a cell that had an attempt, or was declared when the first attempt of its config
began, stays counted as long as its row is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from muster.acts.past import Past
from muster.acts.status import Status
from muster.domain.attempt import CellRecord
from muster.domain.cell import Cell, all_cells, cells_of, needed_cells
from muster.domain.verdict import State
from muster.plan.excused import lost_to_others
from muster.plan.proof_reading import only_proof_failed
from muster.stats.flag_types import Failures, Lost

Kind = Literal["failed", "unread", "unrelated", "completed", "open"]
HeadOf = Callable[[Cell], str]
RESULT = "result "  # what the evidence of a result begins with


@dataclass(frozen=True, slots=True)
class LeftOut:
    lost: tuple[Lost, ...] = ()  # no longer declared, and counted
    settled: tuple[Lost, ...] = ()  # declared, and nobody will run them again
    failures: tuple[Failures, ...] = ()
    dropped: tuple[str, ...] = ()  # they ran, and are no longer declared with all of their row


def left_out(
    status: Status, past: Past, asked: frozenset[str], head_of: HeadOf, deciding: frozenset[str],
    stepped: Mapping[str, bool | None],
) -> LeftOut:  # fmt: skip
    """`asked`: the jobs that results rest on. `deciding`: heads that something is decided on; none: all of them."""
    return _Search(status, past, asked, head_of, deciding, stepped).found()


class _Search:
    def __init__(
        self, status: Status, past: Past, asked: frozenset[str], head_of: HeadOf, deciding: frozenset[str],
        stepped: Mapping[str, bool | None],
    ) -> None:  # fmt: skip
        self.campaign, self.records = status.state.campaign, status.state.cells
        self.past, self.asked, self.head_of, self.deciding, self.stepped = past, asked, head_of, deciding, stepped
        self.states = {cell.record.cell.id: cell.verdict.state for cell in status.cells}
        self.rows = {
            _row(cell) for job in self.campaign.jobs if job.name in asked for cell in cells_of(self.campaign, job)
        }
        gone = [record for record in self.records.values() if not record.declared and record.cell.job in asked]
        self.compared = [record for record in gone if _row(record.cell) in self.rows and not _is_exempt(record)]
        self.withdrawn = [record for record in gone if _row(record.cell) not in self.rows]
        self.unread = unread_jobs(self.records.values())
        first = self._first()
        self.counted = [
            each for each in self.compared if each.attempts or _names(each) & first.get(_config(each.cell), set())
        ]
        cells = [record.cell for record in (*status.state.declared, *self.counted)]
        self.needs = needed_cells(self.campaign, cells)

    def _first(self) -> dict[str, set[str]]:
        """Config -> the cells that were declared when its first attempt began."""
        by_name = {name: record for record in self.records.values() for name in _names(record)}
        found: dict[str, set[str]] = {}
        for begun in self.past.begun:
            record = by_name.get(begun.cell)
            if record is None or record.cell.job not in self.asked or _config(record.cell) in found:
                continue
            then = self.past.snapshots(begun.campaign)
            found[_config(record.cell)] = {cell.id for cell in all_cells(then.campaign)} if then else set()
        return found

    def found(self) -> LeftOut:
        carrying = {job.name for job in self.campaign.jobs if job.results}
        lost = tuple(self._lost(each) for each in self.counted if each.cell.job in carrying or not _had_result(each))
        ran = [each for each in self.withdrawn if each.attempts and not _is_exempt(each)]
        ran = [each for each in ran if each.cell.job in carrying or not _had_result(each)]
        dropped = [each.cell.id for each in sorted(ran, key=_had_result)]  # those that failed are named first
        return LeftOut(lost, tuple(self._settled()), tuple(self._failures()), tuple(dropped))

    def _lost(self, record: CellRecord) -> Lost:
        cell = record.cell
        how = "excluded" if self._has_values(cell) else "withdrawn"
        kind = self._kind(cell.id)
        told = f"{self._told(record)}; {how} since"
        return Lost(cell.id, _config(cell), _seed(cell), self.head_of(cell), kind, how, told, _values(record))

    def _settled(self) -> Iterator[Lost]:
        """Given up, or waiting for what was: cells that are declared and that nothing brings any more."""
        for name, state in self.states.items():
            record = self.records[name]
            if record.cell.job not in self.asked or state not in (State.GIVEN_UP, State.BLOCKED):
                continue
            if state == State.GIVEN_UP or any(self._is_over(need) for need in self._chain(name)):
                cell = record.cell
                head = self.head_of(cell)
                kind, told = self._kind(name), self._told(record)
                yield Lost(name, _config(cell), _seed(cell), head, kind, "given_up", told, _values(record))

    def _is_over(self, name: str) -> bool:
        return self.states.get(name) == State.GIVEN_UP or not self.records[name].declared

    def _failures(self) -> Iterator[Failures]:
        """Of each config, over its seeds whose end is known, where something is decided: how many the method lost.

        A seed that has not come to its end, was lost to something else, or whose result nobody can read, says nothing
        about the rate.
        """
        carrying = {job.name for job in self.campaign.jobs if job.results}
        seeds: dict[str, dict[str, set[Kind]]] = {}
        cells: dict[str, list[str]] = {}
        for record in (*(r for r in self.records.values() if r.declared), *self.counted):
            cell = record.cell
            if cell.job not in carrying or (self.deciding and self.head_of(cell) not in self.deciding):
                continue
            kind = self._kind(cell.id)
            seeds.setdefault(_config(cell), {}).setdefault(_seed(cell), set()).add(kind)
            cells.setdefault(_config(cell), []).extend([cell.id] if kind == "failed" else [])
        for config, by_seed in seeds.items():
            failed = sum("failed" in kinds for kinds in by_seed.values())
            known = failed + sum(kinds == {"completed"} for kinds in by_seed.values())
            if known:
                yield Failures(config, failed, known, tuple(cells[config]))

    def _chain(self, name: str) -> list[str]:
        """The cell and all that it rests on."""
        found: dict[str, None] = {}
        left = [name]
        while left:
            each = left.pop()
            if each not in found:
                found[each] = None
                left += self.needs.get(each, ())
        return list(found)

    def _kind(self, name: str) -> Kind:
        """By what the cell and those that it rests on died of; the gravest counts."""
        if _had_result(self.records[name]):
            return "completed"
        kinds = {self._own_kind(self.records[each]) for each in self._chain(name) if not self.records[each].done}
        kind: Kind = next(kind for kind in ("failed", "unread", "open", "unrelated") if kind in kinds)
        seen = any(attempt.was_done for attempt in self.records[name].attempts)
        return "completed" if kind == "unrelated" and seen else kind

    def _own_kind(self, record: CellRecord) -> Kind:
        if record.open:
            return "open"
        if record.cell.job in self.unread and lacks_result(record):
            before = replace(record, attempts=record.attempts[:-1])
            return "unread" if lost_to_others(before, self.stepped.get(record.cell.id)) else "failed"
        return "unrelated" if lost_to_others(record, self.stepped.get(record.cell.id)) else "failed"

    def _told(self, record: CellRecord) -> str:
        if _had_result(record):
            return "it was DONE"
        if record.open:
            return "it still runs"
        if record.last is None:
            rested = [each for each in self._chain(record.cell.id)[1:] if not self.records[each].done]
            last = next((self.records[each] for each in rested if self.records[each].last), None)
            return f"it never started; {last.cell.id}: {self._told(last)}" if last else "it never started"
        outcome = record.last.outcome
        cause = outcome.cause if outcome else None
        note = f", {cause.note}" if cause and cause.note else ""
        return f"it died of {cause}{note}" if cause else "it ended without a result"

    def _has_values(self, cell: Cell) -> bool:
        return all(value.name in {each.name for each in self.campaign.axis(axis).values} for axis, value in cell.values)


def unread_jobs(records: Iterable[CellRecord]) -> frozenset[str]:
    """Jobs whose commands ended well, and not one of whose results was ever found: `results:` is wrong, no method."""
    every = tuple(records)
    read = {record.cell.job for record in every if _had_result(record)}
    return frozenset(record.cell.job for record in every if lacks_result(record)) - read


def lacks_result(record: CellRecord) -> bool:
    """Its last command ended with exit 0, and all that its proof lacks is a result."""
    last = record.last
    if last is None or not only_proof_failed(last):
        return False
    evidence = last.reread.evidence if last.reread else last.outcome.evidence if last.outcome else ()
    bad = [item.signal for item in evidence if item.kind == "proof" and item.says not in ("holds", "abstains")]
    return bool(bad) and all(signal.startswith(RESULT) for signal in bad)


def _row(cell: Cell) -> tuple[str, tuple[tuple[str, str], ...]]:
    return cell.job, tuple((axis, value.name) for axis, value in cell.values if axis != "seed")


def _config(cell: Cell) -> str:
    return next((value.name for axis, value in cell.values if axis == "config"), "")


def _seed(cell: Cell) -> str:
    return next((value.name for axis, value in cell.values if axis == "seed"), "")


def _names(record: CellRecord) -> set[str]:
    """Under which it was ever declared."""
    return {record.cell.id, *record.formerly}


def _had_result(record: CellRecord) -> bool:
    """DONE; or it was, and a redo has not begun."""
    return record.done or (bool(record.attempts) and not record.current)


def _values(record: CellRecord) -> str:
    """Of the newest attempt that was DONE, as it was measured."""
    done = next((attempt for attempt in reversed(record.attempts) if attempt.was_done), None)
    return ", ".join(f"{name} {value:.6g}" for name, value in done.results.items()) if done else ""


def _is_exempt(record: CellRecord) -> bool:
    """A variant that the loop itself pruned: that was declared, and no variant is compared by its seeds."""
    last = record.last.outcome.cause if record.last and record.last.outcome else None
    return last is not None and last.kind == "pruned" and any(axis == "variant" for axis, _ in record.cell.values)
