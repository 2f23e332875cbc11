"""What `status` shows. Without typer: this is asked all day long, and typer is a third of its start."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from muster.acts.status import CellStatus, Status, as_json
from muster.cli.grid import OUTDATED, grids, legend, mark
from muster.cli.paint import paint
from muster.cli.revival import REVIVED, not_started_line
from muster.cli.terminal import clear_screen
from muster.cli.words import counted, few, say_json
from muster.domain.cell import needed_cells
from muster.domain.state import CampaignState
from muster.domain.wording import full_stop
from muster.plan.standing import describe, outdated, unmet, wanted
from muster.wiring.desk import Desk
from muster.wiring.hand_started import with_unknown_runs
from muster.wiring.mended import as_the_file_says
from muster.wiring.survey import look

LISTED = 40
GROUPED = ("PENDING", "BLOCKED", "HELD", "GIVEN_UP")


def tell(folder: Path, *, as_json_: bool = False, watch: bool = False) -> int:
    desk = Desk.open(folder)
    while True:
        found = with_unknown_runs(desk.root, as_the_file_says(desk, look(desk)))
        if found.going_on and not found.controller.alive and desk.revive():
            found = replace(found, controller=replace(found.controller, revived=True))
        if as_json_:
            say_json(as_json(found))
        else:
            if watch and sys.stdout.isatty():
                sys.stdout.write(clear_screen())
            show(found)
            for line in filter(None, (brought_line(desk, found), desk.older_line())):
                print(line)
        if not watch or not found.going_on:
            return found.exit
        time.sleep(1)


def brought_line(desk: Desk, found: Status) -> str:
    """Of a folder that was copied or brought here, or is somebody else's; empty: this user started it in its place."""
    if desk.stranger:
        return paint(f"it {desk.stranger.only_read}", "yellow")
    standing, origin = desk.standing(), desk.brought_from()
    if standing == "copy":
        return paint(f"a copy of the campaign in {origin}: read and report here, act there", "yellow")
    if standing == "moved" and found.going_on:
        return paint(f"brought here from {origin}: nothing starts by itself, `muster up` goes on here", "yellow")
    return paint(not_started_line(desk, found), "yellow")


def show(found: Status, told: Collection[str] = ()) -> None:
    """`told`: news (see `news`) that the reader has seen already."""
    done = found.counts["DONE"]
    head = f"{found.state.campaign.name}: {done} of {counted(len(found.cells))} done"
    print(f"{paint(head, 'bold')}   as of {found.as_of[11:19]}   {controller_line(found)}")
    print()
    for line in grids(found):
        print(line)
    print(legend(found))
    left = [cell for cell in found.cells if cell.verdict.state != "DONE" and news(cell) not in told]
    lines = [*list_lines(left), *group_lines(left, found), *outdated_lines(found), *later_lines(found)]
    if lines:
        print()
    for line in lines:
        print(line)
    for cell in found.withdrawn:
        print(f"{cell_line(cell)}. It is no longer declared; `muster stop {shlex.quote(cell.record.cell.id)}` ends it")
    if found.spending:
        from muster.cli.money import money_line

        for line in money_line(found.spending):
            print(line)
    print(closing_line(found))
    for line in disk_lines(found):
        print(paint(line, "yellow"))
    for line in [*loop_lines(found), *gate_lines(found.state), *finish_lines(found), *report_lines(found)]:
        print(line)


def outdated_lines(found: Status) -> Iterator[str]:
    old = [cell.record.cell.id for cell in found.cells if outdated(cell.record)]
    if old:
        what = f"{len(old)} DONE by a definition that the campaign no longer has: {few(old)}"
        yield f"  {mark(OUTDATED)} {what}. Next: `muster redo --outdated --because ...` runs {_them(old)} again"


def later_lines(found: Status) -> Iterator[str]:
    """DONE cells whose record lacks a result that is declared today, until a report has found it in their files."""
    if found.report and not found.report.stale:
        return
    lacking: dict[str, list[str]] = {}
    for cell in found.cells:
        done = cell.record.completed
        if done is None or done.accepted:
            continue
        for result in found.state.job(cell.record.cell.job).results:
            if result.name not in done.results:
                lacking.setdefault(result.name, []).append(cell.record.cell.id)
    for name, cells in lacking.items():
        what = f"{len(cells)} DONE before `{name}` was declared: {few(cells)}"
        yield f"  {what}. Next: `muster report` looks for it in {'its' if len(cells) == 1 else 'their'} files"


def _them(cells: Sequence[str]) -> str:
    return "it" if len(cells) == 1 else "them"


def gate_lines(state: CampaignState) -> Iterator[str]:
    """One line for each gate of the campaign: where it stands in the runs that it had a word about."""
    for name, gate in (state.campaign.gates or {}).items():
        runs = [record for record in state.declared if record.cell.job == gate["job"] and record.attempts]
        told = {record.cell.id: state.gates.get(record.cell.id, {}).get(name) for record in runs}
        open_ = [f"{cell} (phase {known.phase})" for cell, known in told.items() if known and known.phase]
        word = f"open in {few(open_)}" if open_ else "shut in all of them"
        if runs:
            yield f"gate {name}: {counted(len(runs), 'run')}, {word}; `muster why CELL` tells what is missing"


def loop_lines(found: Status) -> list[str]:
    """How far its rounds have come; nothing where there is no loop."""
    if found.loop is None:
        return []
    from muster.acts.loop_view import told

    return [paint(told(found.loop), "red" if found.loop.failed else "")]


def finish_lines(found: Status) -> list[str]:
    """What became of the finish; nothing where none is declared."""
    if found.finish is None:
        return []
    from muster.acts.finish import told

    colour = "red" if found.finish.failed else "yellow" if found.finish.due else ""
    return [paint(line, colour) for line in told(found.finish)]


def disk_lines(found: Status) -> list[str]:
    """A disk that will not last, and logs that grow without end."""
    if not found.large_logs and not (found.disk and found.disk.too_small):
        return []
    from muster.acts.disk import disk_lines as told

    return list(told(found.disk, found.large_logs, cut=found.state.campaign.log_max is not None))


def report_lines(found: Status) -> list[str]:
    """What the last report found; nothing where there is none."""
    if found.report is None:
        return []
    from muster.acts.report_verdict import verdict_line

    verdict = found.report.found.verdict
    colour = "red" if verdict == "INVALID" else "yellow" if verdict == "INCOMPLETE" or found.report.stale else ""
    return [paint(verdict_line(found.report), colour)]


def news(cell: CellStatus) -> str:
    """What is told once."""
    return f"{cell.record.cell.id} {len(cell.record.attempts)} {cell.verdict.state} {cell.verdict.kind}"


def list_lines(left: Sequence[CellStatus]) -> Iterator[str]:
    """One line for each cell that has something of its own to tell; of very many, groups by cause."""
    own = [cell for cell in left if cell.verdict.state not in GROUPED]
    own.sort(key=lambda cell: cell.verdict.state not in ("DEAD", "UNKNOWN", "STALLED"))
    yield from map(cell_line, own[:LISTED])
    more: dict[tuple[str, str], list[str]] = {}
    for cell in own[LISTED:]:
        more.setdefault((cell.verdict.state, _kind(cell)), []).append(cell.record.cell.id)
    for (state, kind), names in more.items():
        yield f"  {mark(state)} {len(names)} more {state}{kind}: {few(names)}"


def group_lines(left: Sequence[CellStatus], found: Status) -> Iterator[str]:
    """Cells that did not start share their reasons: one line for each reason."""
    groups: dict[tuple[str, str, str], list[CellStatus]] = {}
    for cell in left:
        if cell.verdict.state in GROUPED and cell.verdict.state != "BLOCKED":
            groups.setdefault((cell.verdict.state, cell.verdict.reason, cell.next), []).append(cell)
    for (state, reason, following), cells in groups.items():
        if len(cells) == 1:
            yield cell_line(cells[0])
            continue
        names = few([cell.record.cell.id for cell in cells])
        yield f"  {mark(state)} {len(cells)} {state}: {reason}: {names}. Next: {following}"
    blocked = [cell for cell in left if cell.verdict.state == "BLOCKED"]
    if blocked:
        yield from _blocked_lines(blocked, found.state)


def _blocked_lines(blocked: Sequence[CellStatus], state: CampaignState) -> Iterator[str]:
    """By job: what its cells lack, whether that can still come, and whether a filter is in the way."""
    needs = needed_cells(state.campaign, [record.cell for record in state.declared])
    groups: dict[tuple[str, bool, bool], list[CellStatus]] = {}
    lacking: dict[tuple[str, bool, bool], dict[str, None]] = {}
    for cell in blocked:
        lacks = unmet(cell.record.cell, state, needs)
        if not lacks:  # a gate is shut
            yield cell_line(cell)
            continue
        hopeless = any(state.cells[need].given_up is not None for need in lacks)
        key = (cell.record.cell.job, hopeless, wanted(cell.record.cell, state.only))
        groups.setdefault(key, []).append(cell)
        lacking.setdefault(key, {}).update(dict.fromkeys(lacks))
    for key, cells in groups.items():
        job, hopeless, asked = key
        left_out = "" if asked else f"; left out by --only {describe(state.only)} too"
        if len(cells) == 1:
            yield cell_line(cells[0]) + left_out
            continue
        following = "can't start: something they need was given up" if hopeless else "they start when these are DONE"
        needed = few(list(lacking[key]))
        yield f"  {mark('BLOCKED')} {len(cells)} BLOCKED of {job}: need {needed}{left_out}. Next: {following}"


def controller_line(found: Status) -> str:
    intent = found.state.intent
    if intent.kind == "held":
        return paint(f"held: {intent.reason}", "yellow")
    controller = found.controller
    if controller.trouble:
        who = f"controller {controller.pid}" if controller.pid else "no controller"
        return paint(f"{who}: {controller.trouble}", "red")
    if controller.alive:
        return f"controller {controller.pid}"
    if intent.kind == "down":
        return "down"
    if not found.going_on:
        return "at rest"
    if controller.revived:
        return REVIVED
    return "its controller was gone and is being revived" if controller.started_here else "no controller"


def cell_line(cell: CellStatus) -> str:
    verdict, record = cell.verdict, cell.record
    attempt = f" attempt {record.last.n}" if record.last else ""
    text = f"  {mark(verdict.state)} {record.cell.id}{attempt}: {verdict.state}{_kind(cell)}, {verdict.reason}"
    following = cell.next
    if verdict.kind == "orphans":
        following = f"no other attempt starts while they live; `muster stop {shlex.quote(record.cell.id)}` ends them"
    return text if following == "nothing to do" else f"{full_stop(text)} Next: {following}"


def _kind(cell: CellStatus) -> str:
    verdict = cell.verdict
    return f"({verdict.kind})" if verdict.kind else f"({verdict.cause})" if verdict.cause else ""


def closing_line(found: Status) -> str:
    given_up = found.counts["GIVEN_UP"]
    if found.complete:
        going = "; the finish goes on" if found.finish and found.finish.due else ""
        more = f", with {counted(given_up)} given up: reports count {'it' if given_up == 1 else 'them'} as missing"
        return paint("complete" + (more if given_up else "") + going, "green")
    if found.going_on:
        return "still going on; `muster why CELL` shows the evidence"
    missing = len(found.cells) - found.counts["DONE"] - given_up
    if not missing:
        return paint("stopped short: nothing runs, and the loop is not over", "yellow")
    are = "is" if missing == 1 else "are"
    return paint(f"stopped short: {counted(missing)} {are} missing and nothing runs", "yellow")
