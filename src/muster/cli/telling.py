"""What `status` shows. Without typer: this is asked all day long, and typer is a third of its start."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from muster.acts.status import CellStatus, Status, as_json
from muster.cli.grid import grids, legend, mark
from muster.cli.paint import paint
from muster.wiring.desk import Desk
from muster.wiring.survey import look

LISTED = 40


def tell(folder: Path, *, as_json_: bool = False, watch: bool = False) -> int:
    desk = Desk.open(folder)
    while True:
        found = look(desk)
        if found.going_on and not found.controller.alive:
            desk.revive()
        if as_json_:
            sys.stdout.write(json.dumps(as_json(found), ensure_ascii=False) + "\n")
        else:
            if watch and sys.stdout.isatty():
                sys.stdout.write("\033[H\033[2J")
            show(found)
        if not watch or not found.going_on:
            return found.exit
        time.sleep(1)


def show(found: Status) -> None:
    done = found.counts["DONE"]
    head = f"{found.state.campaign.name}: {done} of {len(found.cells)} cells done"
    print(f"{paint(head, 'bold')}   as of {found.as_of[11:19]}   {controller_line(found)}")
    print()
    for line in grids(found):
        print(line)
    print(legend(found))
    left = [cell for cell in found.cells if cell.verdict.state not in ("DONE", "PENDING", "BLOCKED")]
    left.sort(key=lambda cell: cell.verdict.state not in ("DEAD", "UNKNOWN", "STALLED"))
    if left:
        print()
    for cell in left[:LISTED]:
        print(cell_line(cell))
    if len(left) > LISTED:
        print(f"  and {len(left) - LISTED} more; `muster status --json` has them all")
    for cell in found.withdrawn:
        print(f"{cell_line(cell)}. It is no longer declared; `muster stop {cell.record.cell.id}` ends it")
    print(closing_line(found))


def controller_line(found: Status) -> str:
    intent = found.state.intent
    if intent.kind == "held":
        return paint(f"held: {intent.reason}", "yellow")
    controller = found.controller
    if controller.trouble:
        return paint(f"controller {controller.pid}: {controller.trouble}", "red")
    if controller.alive:
        return f"controller {controller.pid}"
    if intent.kind == "down":
        return "down"
    return "its controller was gone and is being revived" if found.going_on else "at rest"


def cell_line(cell: CellStatus) -> str:
    verdict, record = cell.verdict, cell.record
    kind = f"({verdict.kind})" if verdict.kind else f"({verdict.cause})" if verdict.cause else ""
    attempt = f" attempt {record.last.n}" if record.last else ""
    text = f"  {mark(verdict.state)} {record.cell.id}{attempt}: {verdict.state}{kind}, {verdict.reason}"
    return text if cell.next == "nothing to do" else f"{text}. Next: {cell.next}"


def closing_line(found: Status) -> str:
    if found.complete:
        return paint("complete", "green")
    if found.going_on:
        return "still going on; `muster why CELL` shows the evidence"
    missing = sum(count for state, count in found.counts.items() if state not in ("DONE", "GIVEN_UP"))
    return paint(f"stopped short: {missing} cells are missing and nothing runs", "yellow")
