"""Cells that a table must still account for: declared or begun without a result, and those that were run again
although they had one.

N never falls by an edit of the file: a cell that had an attempt, or was declared when the first attempt of its config
began, stays counted as long as its row is compared. Whoever redoes cells may choose the better results, so that is
listed too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from muster.app.campaign.campaign_digests import jobs_behind_results
from muster.app.campaign.campaign_status import Status
from muster.app.facts.past_campaigns import PastCampaigns
from muster.engine.plan.retry import definition_part, died_of_unrelated_causes, only_proof_failed
from muster.model.attempt import Attempt, CellRecord
from muster.model.cell import Cell, list_campaign_cells, list_cells_of_job, map_needed_cells
from muster.model.verdict import VerdictState
from muster.stats.red_flags import ConfigFailures, LostCell, RedoneCell

LossKind = Literal["failed", "unread", "unrelated", "completed", "open"]
HeadOfCell = Callable[[Cell], str]
RESULT_SIGNAL = "result "  # what the evidence of a result begins with


@dataclass(frozen=True, slots=True)
class LostCells:
    lost: tuple[LostCell, ...] = ()  # no longer declared, and counted
    settled: tuple[LostCell, ...] = ()  # declared, and nobody will run them again
    failures: tuple[ConfigFailures, ...] = ()
    dropped: tuple[str, ...] = ()  # they ran, and are no longer declared with all of their row


def find_lost_cells(
    status: Status,
    past: PastCampaigns,
    asked: frozenset[str],
    head_of: HeadOfCell,
    deciding: frozenset[str],
    stepped: Mapping[str, bool | None],
) -> LostCells:
    """`asked`: the jobs that results rest on. `deciding`: heads that something is decided on; none: all of them."""
    return _LostCellSearch(status, past, asked, head_of, deciding, stepped).found()


class _LostCellSearch:
    def __init__(
        self,
        status: Status,
        past: PastCampaigns,
        asked: frozenset[str],
        head_of: HeadOfCell,
        deciding: frozenset[str],
        stepped: Mapping[str, bool | None],
    ) -> None:
        self.campaign, self.records = status.state.campaign, status.state.cells
        self.past, self.asked, self.head_of, self.deciding, self.stepped = past, asked, head_of, deciding, stepped
        self.states = {cell.record.cell.id: cell.verdict.state for cell in status.cells}
        self.rows = {
            _table_row_of_cell(cell)
            for job in self.campaign.jobs
            if job.name in asked
            for cell in list_cells_of_job(self.campaign, job)
        }
        gone = [record for record in self.records.values() if not record.declared and record.cell.job in asked]
        self.compared = [
            record for record in gone if _table_row_of_cell(record.cell) in self.rows and not _is_pruned_variant(record)
        ]
        self.withdrawn = [record for record in gone if _table_row_of_cell(record.cell) not in self.rows]
        self.unread = jobs_with_unread_results(self.records.values())
        first = self._first()
        self.counted = [
            each
            for each in self.compared
            if each.attempts or _all_names_of_cell(each) & first.get(_config_of_cell(each.cell), set())
        ]
        cells = [record.cell for record in (*status.state.declared, *self.counted)]
        self.needs = map_needed_cells(self.campaign, cells)

    def _first(self) -> dict[str, set[str]]:
        """Config -> the cells that were declared when its first attempt began."""
        by_name = {name: record for record in self.records.values() for name in _all_names_of_cell(record)}
        found: dict[str, set[str]] = {}
        for begun in self.past.begun:
            record = by_name.get(begun.cell)
            if record is None or record.cell.job not in self.asked or _config_of_cell(record.cell) in found:
                continue
            then = self.past.snapshots(begun.campaign)
            found[_config_of_cell(record.cell)] = (
                {cell.id for cell in list_campaign_cells(then.campaign)} if then else set()
            )
        return found

    def found(self) -> LostCells:
        carrying = {job.name for job in self.campaign.jobs if job.results}
        lost = tuple(
            self._lost(each) for each in self.counted if each.cell.job in carrying or not _had_result_before(each)
        )
        ran = [each for each in self.withdrawn if each.attempts and not _is_pruned_variant(each)]
        ran = [each for each in ran if each.cell.job in carrying or not _had_result_before(each)]
        dropped = [each.cell.id for each in sorted(ran, key=_had_result_before)]  # those that failed are named first
        return LostCells(lost, tuple(self._settled()), tuple(self._failures()), tuple(dropped))

    def _lost(self, record: CellRecord) -> LostCell:
        cell = record.cell
        how = "excluded" if self._has_values(cell) else "withdrawn"
        kind = self._kind(cell.id)
        told = f"{self._told(record)}; {how} since"
        return LostCell(
            cell.id,
            _config_of_cell(cell),
            _seed_of_cell(cell),
            self.head_of(cell),
            kind,
            how,
            told,
            _last_values_text(record),
        )

    def _settled(self) -> Iterator[LostCell]:
        """Given up, or waiting for what was: cells that are declared and that nothing brings any more."""
        for name, state in self.states.items():
            record = self.records[name]
            if record.cell.job not in self.asked or state not in (VerdictState.GIVEN_UP, VerdictState.BLOCKED):
                continue
            if state == VerdictState.GIVEN_UP or any(self._is_over(need) for need in self._chain(name)):
                cell = record.cell
                head = self.head_of(cell)
                kind, told = self._kind(name), self._told(record)
                yield LostCell(
                    name,
                    _config_of_cell(cell),
                    _seed_of_cell(cell),
                    head,
                    kind,
                    "given_up",
                    told,
                    _last_values_text(record),
                )

    def _is_over(self, name: str) -> bool:
        return self.states.get(name) == VerdictState.GIVEN_UP or not self.records[name].declared

    def _failures(self) -> Iterator[ConfigFailures]:
        """Of each config, over its seeds whose end is known, where something is decided: how many the method lost.

        A seed that has not come to its end, was lost to something else, or whose result nobody can read, says nothing
        about the rate.
        """
        carrying = {job.name for job in self.campaign.jobs if job.results}
        seeds: dict[str, dict[str, set[LossKind]]] = {}
        cells: dict[str, list[str]] = {}
        for record in (*(r for r in self.records.values() if r.declared), *self.counted):
            cell = record.cell
            if cell.job not in carrying or (self.deciding and self.head_of(cell) not in self.deciding):
                continue
            kind = self._kind(cell.id)
            seeds.setdefault(_config_of_cell(cell), {}).setdefault(_seed_of_cell(cell), set()).add(kind)
            cells.setdefault(_config_of_cell(cell), []).extend([cell.id] if kind == "failed" else [])
        for config, by_seed in seeds.items():
            failed = sum("failed" in kinds for kinds in by_seed.values())
            known = failed + sum(kinds == {"completed"} for kinds in by_seed.values())
            if known:
                yield ConfigFailures(config, failed, known, tuple(cells[config]))

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

    def _kind(self, name: str) -> LossKind:
        """By what the cell and those that it rests on died of; the gravest counts."""
        if _had_result_before(self.records[name]):
            return "completed"
        kinds = {self._own_kind(self.records[each]) for each in self._chain(name) if not self.records[each].done}
        kind: LossKind = next(kind for kind in ("failed", "unread", "open", "unrelated") if kind in kinds)
        seen = any(attempt.was_done for attempt in self.records[name].attempts)
        return "completed" if kind == "unrelated" and seen else kind

    def _own_kind(self, record: CellRecord) -> LossKind:
        if record.open:
            return "open"
        if record.cell.job in self.unread and lacks_only_result(record):
            before = replace(record, attempts=record.attempts[:-1])
            return "unread" if died_of_unrelated_causes(before, self.stepped.get(record.cell.id)) else "failed"
        return "unrelated" if died_of_unrelated_causes(record, self.stepped.get(record.cell.id)) else "failed"

    def _told(self, record: CellRecord) -> str:
        if _had_result_before(record):
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


def jobs_with_unread_results(records: Iterable[CellRecord]) -> frozenset[str]:
    """Jobs whose commands ended well, and not one of whose results was ever found: `results:` is wrong, no method."""
    every = tuple(records)
    read = {record.cell.job for record in every if _had_result_before(record)}
    return frozenset(record.cell.job for record in every if lacks_only_result(record)) - read


def lacks_only_result(record: CellRecord) -> bool:
    """Its last command ended with exit 0, and all that its proof lacks is a result."""
    last = record.last
    if last is None or not only_proof_failed(last):
        return False
    evidence = last.reread.evidence if last.reread else last.outcome.evidence if last.outcome else ()
    bad = [item.signal for item in evidence if item.kind == "proof" and item.says not in ("holds", "abstains")]
    return bool(bad) and all(signal.startswith(RESULT_SIGNAL) for signal in bad)


def _table_row_of_cell(cell: Cell) -> tuple[str, tuple[tuple[str, str], ...]]:
    return cell.job, tuple((axis, value.name) for axis, value in cell.values if axis != "seed")


def _config_of_cell(cell: Cell) -> str:
    return next((value.name for axis, value in cell.values if axis == "config"), "")


def _seed_of_cell(cell: Cell) -> str:
    return next((value.name for axis, value in cell.values if axis == "seed"), "")


def _all_names_of_cell(record: CellRecord) -> set[str]:
    """Under which it was ever declared."""
    return {record.cell.id, *record.formerly}


def _had_result_before(record: CellRecord) -> bool:
    """DONE; or it was, and a redo has not begun."""
    return record.done or (bool(record.attempts) and not record.current)


def _last_values_text(record: CellRecord) -> str:
    """Of the newest attempt that was DONE, as it was measured."""
    done = next((attempt for attempt in reversed(record.attempts) if attempt.was_done), None)
    return ", ".join(f"{name} {value:.6g}" for name, value in done.results.items()) if done else ""


def _is_pruned_variant(record: CellRecord) -> bool:
    """A variant that the loop itself pruned: that was declared, and no variant is compared by its seeds."""
    last = record.last.outcome.cause if record.last and record.last.outcome else None
    return last is not None and last.kind == "pruned" and any(axis == "variant" for axis, _ in record.cell.values)


DIVERGED_CAUSE = "non_finite"


def find_redone_cells(status: Status, metric: str) -> Iterator[RedoneCell]:
    """DONE cells that were DONE before, by the very definition that counts now, and every reason that was given.

    What a new definition made due is no choice, nor what rests on that; more than once, by however many edits, is one.
    """
    campaign = status.state.campaign
    records = {cell.record.cell.id: cell.record for cell in status.cells}
    needs = map_needed_cells(campaign, [record.cell for record in records.values()])

    def is_due(name: str) -> bool:
        record = records[name]
        done, old = record.completed, _superseded_attempts(record)
        other = done and old and definition_part(record.hash_today(old[-1])) != definition_part(record.hash_today(done))
        return bool(other) or any(is_due(need) for need in needs.get(name, ()) if need in records)

    for name, record in records.items():
        old, done = _superseded_attempts(record), record.completed
        if done and old and record.cell.job in jobs_behind_results(campaign) and (len(old) > 1 or not is_due(name)):
            why = "; ".join(dict.fromkeys(attempt.superseded for attempt in old if attempt.superseded))
            yield RedoneCell(name, why, tuple(attempt.results.get(metric) for attempt in (*old, done)))


def find_recovered_cells(status: Status) -> Iterator[str]:
    """DONE cells that the same definition had lost before: another try of a seed is no seed that never failed."""
    asked = jobs_behind_results(status.state.campaign)
    for cell in status.cells:
        record, done = cell.record, cell.record.completed
        if done is None or record.cell.job not in asked:
            continue
        own = definition_part(record.hash_today(done))
        if any(_has_diverged(each) and definition_part(record.hash_today(each)) == own for each in record.attempts):
            yield record.cell.id


def _has_diverged(attempt: Attempt) -> bool:
    cause = attempt.outcome.cause if attempt.outcome else None
    return cause is not None and cause.kind == DIVERGED_CAUSE


def _superseded_attempts(record: CellRecord) -> list[Attempt]:
    return [attempt for attempt in record.attempts if attempt.superseded is not None]
