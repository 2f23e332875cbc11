"""What `status` prints: grids with a mark for each cell, the controller's state, gates, loop, finish, disk. Without
typer: this is asked all day long, and typer is a third of its start.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.campaign_status import CellStatus, Status, status_as_json
from muster.app.campaign.start_controller import describe_origin, observe_for_status, revived_line
from muster.app.overview.cell_groups import (
    WAITING_STATES,
    BlockedGroup,
    cells_by_missing_result,
    group_blocked_cells,
    group_waiting_cells,
)
from muster.engine.plan.cell_standing import format_cell_filter, is_outdated_cell
from muster.faces.cli.common.terminal_output import (
    clear_screen,
    cut_to_width,
    display_width,
    is_utf8_stream,
    pad_name,
    paint_text,
    print_json,
    screen_columns,
)
from muster.model.campaign_state import CampaignState
from muster.text.phrases import Phrase, join_phrases, phrase
from muster.text.sentences import end_with_full_stop, join_few_names

if TYPE_CHECKING:  # `status` of a campaign without prices has no use for it
    from muster.app.campaign.spending import Spending

OUTDATED_STATE = "outdated"  # DONE, by a definition that the campaign no longer has
STATE_MARKS = {
    "DONE": ("✔", "D", "green"),
    "RUNNING": ("▶", "R", "blue"),
    "QUIET": ("◐", "Q", "cyan"),
    "STALLED": ("⏸", "S", "yellow"),
    "DEAD": ("✘", "X", "red"),
    "UNKNOWN": ("?", "?", "magenta"),
    "PENDING": ("·", ".", "dim"),
    "BLOCKED": ("○", "o", "dim"),
    "HELD": ("‖", "H", "yellow"),
    "GIVEN_UP": ("—", "-", "dim"),
    OUTDATED_STATE: ("≠", "d", "yellow"),
}
LONGEST_HEAD = 12
NOTHING_TO_DO = ("campaign.nothing_to_do", "plan.nothing_do")  # not worth a word after each cell


def state_mark(state: str) -> str:
    fancy, plain, colour = STATE_MARKS[state]
    return paint_text(fancy if is_utf8_stream() else plain, colour)


CONFIDENCES = {
    "proven": "cli.sure_proven",
    "probable": "cli.sure_probable",
    "presumed": "cli.sure_presumed",
    "unknown": "cli.sure_unknown",
}


def confidence_in_words(confidence: str) -> str:
    code = CONFIDENCES.get(confidence)
    return phrase(code) if code else confidence


def mark_of_cell(cell: CellStatus) -> str:
    return state_mark(OUTDATED_STATE if is_outdated_cell(cell.record) else cell.verdict.state)


def format_grids(status: Status) -> Iterator[str]:
    for job in status.state.campaign.jobs:
        cells = [cell for cell in status.cells if cell.record.cell.job == job.name]
        if cells:
            yield from _format_grid(job.name, job.axes, cells)
            yield ""


def _format_grid(job: str, axes: Sequence[str], cells: Sequence[CellStatus]) -> Iterator[str]:
    done = sum(cell.verdict.state == "DONE" for cell in cells)
    title = paint_text(f"{job}  {done}/{len(cells)}", "bold")
    if not axes:
        yield f"{title}  {mark_of_cell(cells[0])}"
        return
    yield f"{title}   {'/'.join([job, *(axis.upper() for axis in axes)])}"  # how its cells are named
    across = "seed" if "seed" in axes else axes[-1]
    rows: dict[str, dict[str, str]] = {}
    columns: dict[str, None] = {}
    for cell in cells:
        names = cell.record.cell.names
        column = names.pop(across)
        columns[column] = None
        rows.setdefault(" ".join(names.values()), {})[column] = mark_of_cell(cell)
    left = max(4 + max(display_width(row) for row in rows), 3 + display_width(across))
    heads = _grid_column_heads(list(columns))
    for block in _column_blocks(heads, screen_columns() - left):
        yield " " * (left - 1 - display_width(across)) + f"{across} " + " ".join(heads[column] for column in block)
        for name, marks in rows.items():
            line = " ".join(marks.get(column, " ") + " " * (display_width(heads[column]) - 1) for column in block)
            yield (pad_name(f"  {name}", left) + line).rstrip()


def _grid_column_heads(columns: Sequence[str]) -> dict[str, str]:
    """Column -> what stands above it: cut where it is long, unless two would then look the same."""
    short = {column: cut_to_width(column, LONGEST_HEAD) for column in columns}
    return short if len(set(short.values())) == len(short) else {column: column for column in columns}


def _column_blocks(heads: dict[str, str], room: int) -> Iterator[list[str]]:
    """The columns in parts that fit the screen beside the rows' names."""
    block: list[str] = []
    used = 0
    for column, head in heads.items():
        if block and used + 1 + display_width(head) > room:
            yield block
            block, used = [], 0
        used += display_width(head) + (1 if block else 0)
        block.append(column)
    if block:
        yield block


def format_legend(status: Status) -> str:
    present = [state for state, count in status.counts.items() if count]
    told = [f"{state_mark(state)} {state} {status.counts[state]}" for state in present]
    old = sum(is_outdated_cell(cell.record) for cell in status.cells)
    told += [f"{state_mark(OUTDATED_STATE)} {phrase('cli.of_them_outdated', count=old)}"] if old else []
    return "  ".join(told)


MOST_LISTED_CELLS = 40
GROUPED_STATES = ("BLOCKED", *WAITING_STATES)


def print_status(folder: Path, *, as_json_: bool = False, watch: bool = False) -> int:
    desk = CampaignHandle.open(folder)
    while True:
        found = observe_for_status(desk)
        if as_json_:
            print_json(status_as_json(found))
        else:
            if watch and sys.stdout.isatty():
                sys.stdout.write(clear_screen())
            show_status(found)
            for line in filter(None, (paint_text(describe_origin(desk, found), "yellow"), desk.older_line())):
                print(line)
        if not watch or not found.going_on:
            return found.exit
        time.sleep(1)


def show_status(found: Status, told: Collection[str] = ()) -> None:
    """`told`: news (see `news`) that the reader has seen already."""
    done = found.counts["DONE"]
    cells = phrase("count.cell", n=len(found.cells))
    head = phrase("cli.done_of_cells", campaign=found.state.campaign.name, done=done, cells=cells)
    as_of = phrase("cli.as_of", time=found.as_of[11:19])
    print("   ".join((paint_text(head, "bold"), as_of, format_controller_line(found))))
    print()
    for line in format_grids(found):
        print(line)
    print(format_legend(found))
    left = [cell for cell in found.cells if cell.verdict.state != "DONE" and change_key(cell) not in told]
    lines = [
        *format_cell_list(left),
        *format_cell_groups(left, found),
        *format_outdated_lines(found),
        *format_later_result_lines(found),
    ]
    if lines:
        print()
    for line in lines:
        print(line)
    for cell in found.withdrawn:
        name = shlex.quote(cell.record.cell.id)
        told_of = phrase("cli.cell_no_longer_declared", said=_say_cell_with_next(cell), cell=name)
        print(f"  {state_mark(cell.verdict.state)} {told_of}")
    if found.spending:
        from muster.faces.cli.common.status_view import money_line

        for line in money_line(found.spending):
            print(line)
    print(format_closing_line(found))
    for line in format_disk_warnings(found):
        print(paint_text(line, "yellow"))
    for line in [
        *format_loop_lines(found),
        *format_gate_lines(found.state),
        *format_finish_lines(found),
        *format_last_report_line(found),
    ]:
        print(line)


def format_outdated_lines(found: Status) -> Iterator[str]:
    old = [cell.record.cell.id for cell in found.cells if is_outdated_cell(cell.record)]
    if old:
        yield f"  {state_mark(OUTDATED_STATE)} {phrase('cli.cells_outdated', n=len(old), cells=join_few_names(old))}"


def format_later_result_lines(found: Status) -> Iterator[str]:
    for name, cells in cells_by_missing_result(found).items():
        said = phrase("cli.done_before_result_declared", n=len(cells), result=name, cells=join_few_names(cells))
        yield f"  {said}"


def format_gate_lines(state: CampaignState) -> Iterator[str]:
    """One line for each gate of the campaign: where it stands in the runs that it had a word about."""
    for name, gate in (state.campaign.gates or {}).items():
        runs = [record for record in state.declared if record.cell.job == gate.job and record.attempts]
        told = {record.cell.id: state.gates.get(record.cell.id, {}).get(name) for record in runs}
        open_ = [
            phrase("cli.cell_in_phase", cell=cell, phase=known.phase)
            for cell, known in told.items()
            if known and known.phase
        ]
        stands = phrase("cli.gate_open_in", cells=join_few_names(open_)) if open_ else phrase("cli.gate_shut_in_all")
        if runs:
            yield phrase("cli.gate_line", gate=name, runs=phrase("count.run", n=len(runs)), stands=stands)


def format_loop_lines(found: Status) -> list[str]:
    """How far its rounds have come; nothing where there is no loop."""
    if found.loop is None:
        return []
    from muster.app.campaign.loop_progress import describe_loop_progress

    return [paint_text(describe_loop_progress(found.loop), "red" if found.loop.failed else "")]


def format_finish_lines(found: Status) -> list[str]:
    """What became of the finish; nothing where none is declared."""
    if found.finish is None:
        return []
    from muster.app.campaign.finish_steps import describe_finish

    colour = "red" if found.finish.failed else "yellow" if found.finish.due else ""
    return [paint_text(line, colour) for line in describe_finish(found.finish)]


def format_disk_warnings(found: Status) -> list[str]:
    """A disk that will not last, and logs that grow without end."""
    if not found.large_logs and not (found.disk and found.disk.too_small):
        return []
    from muster.app.campaign.disk_use import format_disk_lines

    return list(format_disk_lines(found.disk, found.large_logs, cut=found.state.campaign.log_max is not None))


def format_last_report_line(found: Status) -> list[str]:
    """What the last report found; nothing where there is none."""
    if found.report is None:
        return []
    from muster.app.campaign.last_report import format_report_line

    verdict = found.report.found.verdict
    colour = "red" if verdict == "INVALID" else "yellow" if verdict == "INCOMPLETE" or found.report.stale else ""
    return [paint_text(format_report_line(found.report), colour)]


def change_key(cell: CellStatus) -> str:
    """What is told once."""
    return f"{cell.record.cell.id} {len(cell.record.attempts)} {cell.verdict.state} {cell.verdict.kind}"


def format_cell_list(left: Sequence[CellStatus]) -> Iterator[str]:
    """One line for each cell that has something of its own to tell; of very many, groups by cause."""
    own = [cell for cell in left if cell.verdict.state not in GROUPED_STATES]
    own.sort(key=lambda cell: cell.verdict.state not in ("DEAD", "UNKNOWN", "STALLED"))
    yield from map(format_cell_line, own[:MOST_LISTED_CELLS])
    more: dict[tuple[str, str], list[str]] = {}
    for cell in own[MOST_LISTED_CELLS:]:
        more.setdefault((cell.verdict.state, _verdict_kind(cell)), []).append(cell.record.cell.id)
    for (state, kind), names in more.items():
        said = phrase("cli.more_cells_in_state", count=len(names), state=state + kind, cells=join_few_names(names))
        yield f"  {state_mark(state)} {said}"


def format_cell_groups(left: Sequence[CellStatus], found: Status) -> Iterator[str]:
    """Cells that did not start share their reasons: one line for each reason."""
    for waiting in group_waiting_cells(left):
        if len(waiting.cells) == 1:
            yield format_cell_line(waiting.cells[0])
            continue
        names = join_few_names([cell.record.cell.id for cell in waiting.cells])
        said = phrase(
            "cli.cells_waiting",
            count=len(waiting.cells),
            state=waiting.state,
            reason=waiting.reason,
            cells=names,
            next=waiting.next,
        )
        yield f"  {state_mark(waiting.state)} {said}"
    for blocked in group_blocked_cells(left, found.state):
        yield _format_blocked_group(blocked, found.state)


def _format_blocked_group(group: BlockedGroup, state: CampaignState) -> str:
    left_out = "" if group.asked else phrase("cli.left_out_by_filter_too", filter=format_cell_filter(state.only))
    if len(group.cells) == 1:
        return format_cell_line(group.cells[0]) + left_out
    following = phrase("cli.cant_start_need_given_up") if group.hopeless else phrase("cli.they_start_when_needs_done")
    said = phrase(
        "cli.cells_blocked",
        count=len(group.cells),
        job=group.job,
        needs=join_few_names(group.needs),
        left_out=left_out,
        next=following,
    )
    return f"  {state_mark('BLOCKED')} {said}"


def format_controller_line(found: Status) -> str:
    intent = found.state.intent
    if intent.kind == "held":
        return paint_text(phrase("cli.held_because", reason=intent.reason), "yellow")
    controller = found.controller
    if controller.trouble:
        who = phrase("cli.controller_pid", pid=controller.pid) if controller.pid else phrase("cli.no_controller")
        return paint_text(join_phrases(": ", (who, controller.trouble)), "red")
    if controller.alive:
        return phrase("cli.controller_pid", pid=controller.pid)
    if intent.kind == "down":
        return phrase("cli.campaign_down")
    if not found.going_on:
        return phrase("cli.campaign_at_rest")
    if controller.revived:
        return revived_line()
    return phrase("cli.controller_being_revived") if controller.started_here else phrase("cli.no_controller")


def format_cell_line(cell: CellStatus) -> str:
    return f"  {state_mark(cell.verdict.state)} {_say_cell_with_next(cell)}"


def _say_cell_with_next(cell: CellStatus) -> str:
    verdict, record = cell.verdict, cell.record
    state = f"{verdict.state}{_verdict_kind(cell)}"
    if record.last:
        said = phrase(
            "cli.attempt_stands", cell=record.cell.id, attempt=record.last.n, state=state, reason=verdict.reason
        )
    else:
        said = phrase("cli.cell_stands", cell=record.cell.id, state=state, reason=verdict.reason)
    following = cell.next
    if verdict.kind == "orphans":
        following = phrase("cli.orphans_must_end_first", cell=shlex.quote(record.cell.id))
    if isinstance(following, Phrase) and following.code in NOTHING_TO_DO:
        return said
    return phrase("cli.and_next", said=end_with_full_stop(said), next=following)


def _verdict_kind(cell: CellStatus) -> str:
    verdict = cell.verdict
    return f"({verdict.kind})" if verdict.kind else f"({verdict.cause})" if verdict.cause else ""


def format_closing_line(found: Status) -> str:
    given_up = found.counts["GIVEN_UP"]
    if found.complete:
        said = [phrase("cli.complete_with_given_up", n=given_up) if given_up else phrase("cli.complete")]
        said += [phrase("cli.finish_goes_on")] if found.finish and found.finish.due else []
        return paint_text(join_phrases("; ", said), "green")
    if found.going_on:
        return phrase("cli.still_going_on")
    missing = len(found.cells) - found.counts["DONE"] - given_up
    if not missing:
        return paint_text(phrase("cli.stopped_short_in_loop"), "yellow")
    return paint_text(phrase("cli.stopped_short", n=missing), "yellow")


# -- money in one line

ACCOUNT_NAMES = {
    "productive": "cli.account_productive",
    "wasted": "cli.account_wasted",
    "idle": "cli.account_idle",
    "overhead": "cli.account_overhead",
    "running": "cli.account_running",
}
BUDGET_COLOURS = {"warn": "yellow", "no_new_start": "yellow", "at_cap": "red"}


def money_line(found: Spending) -> Iterator[str]:
    """What was spent and on what, what the rest will cost; nothing where no price is declared."""
    money, accounts = found.state.campaign.money, found.ledger.money
    if money is None or accounts is None:
        return
    parts = [
        join_phrases(" ", (phrase(code), f"{amount:.2f}"))
        for account, code in ACCOUNT_NAMES.items()
        if (amount := getattr(accounts, account)) >= 0.005
    ]
    said = [phrase("cli.money_spent", spent=format_spent(accounts.total, money.budget), currency=money.currency)]
    said += [" (", join_phrases(", ", parts), ")"] if parts else []
    from muster.app.campaign.spending import budget_level_of

    line = join_phrases("", (*said, forecast_text(found)))
    yield paint_text(line, BUDGET_COLOURS.get(budget_level_of(found) or "", ""))


def format_spent(spent: float, budget: float | None) -> str:
    if budget is None:
        return f"{spent:.2f}"
    return phrase("cli.spent_of_budget", spent=f"{spent:.2f}", budget=f"{budget:g}")


def forecast_text(found: Spending) -> str:
    expected, unknown = found.forecast, join_few_names(list(found.unknown), 3)
    if expected is None:
        return phrase("cli.no_forecast_yet", jobs=unknown) if found.unknown else ""
    if expected.high - (found.spent or 0.0) < 0.005:
        return ""
    left_out = phrase("cli.forecast_leaves_out", jobs=unknown) if found.unknown else ""
    return phrase("cli.expected_in_all", mid=expected.mid, low=expected.low, high=expected.high, left_out=left_out)
