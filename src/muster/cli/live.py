"""The live view of `up` and `wait`: a bar and the grid on a terminal, a line per change elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from muster.acts.status import CellStatus, Status
from muster.cli.grid import grids, legend
from muster.cli.revival import REVIVED
from muster.cli.telling import cell_line, finish_lines, loop_lines, news, show
from muster.cli.terminal import as_printed, rich_console
from muster.cli.words import counted
from muster.ports.known_secrets import mask_output
from muster.wiring.desk import Desk
from muster.wiring.survey import look

if TYPE_CHECKING:
    from rich.text import Text

REFRESH_S = 0.5
ENDED = ("DONE", "DEAD", "UNKNOWN", "GIVEN_UP")
GOING = ("RUNNING", "STALLED", "UNKNOWN")


def follow(desk: Desk, *, quiet: bool = False, timeout_s: float | None = None, before: Status | None = None) -> Status:
    """Until it is over or the time is up. Ctrl-C is the caller's to answer: it changes nothing here.

    What was so `before`, or when we came, is no news.
    """
    screen = not quiet and sys.stdout.isatty()
    view = Screen() if screen else None
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    began = time.monotonic()
    found = look(desk)
    pause = max(REFRESH_S, 4 * (time.monotonic() - began))  # a large matrix takes long to look at
    teller = None if quiet or view else Teller(before or found)
    try:
        while True:
            if view:
                view.draw(found)
            elif teller:
                teller.tell(found)
            if not found.going_on or (deadline is not None and time.monotonic() >= deadline):
                break
            if not found.controller.alive and not found.controller.pid and desk.revive():
                print(REVIVED, file=sys.stderr, flush=True)
            wait = pause if deadline is None else max(0.01, min(pause, deadline - time.monotonic()))
            time.sleep(wait)
            found = look(desk)
    finally:
        if view:
            view.close()
    if not quiet and not found.going_on:
        show(found, teller.told if teller else ())
    return found


class Teller:
    """In a pipe: one line for each start and each end, at once."""

    def __init__(self, before: Status) -> None:
        self.known = {news(cell) for cell in before.cells}
        self.told: set[str] = set()
        if before.going_on:
            done, living = before.counts["DONE"], sum(cell.record.open is not None for cell in before.cells)
            all_ = counted(len(before.cells))
            print(f"{before.as_of[11:19]}  {done} of {all_} done, {living} under way", flush=True)

    def tell(self, found: Status) -> None:
        for cell in found.cells:
            now = news(cell)
            if now not in self.known and _worth_telling(cell):
                self.known.add(now)
                self.told.add(now)
                print(f"{found.as_of[11:19]}{cell_line(cell)}", flush=True)
        for line in (*loop_lines(found), *finish_lines(found)) if found.complete else ():
            if line not in self.told:
                self.told.add(line)
                print(f"{found.as_of[11:19]}  {line}", flush=True)


def _worth_telling(cell: CellStatus) -> bool:
    """An end once it is recorded; of what is open the start, and what a person should look at."""
    if cell.record.open is None:
        return cell.verdict.state in ENDED
    return cell.verdict.state in GOING and cell.verdict.kind != "ending"


class Screen:
    """rich, imported only here: a pipe never pays for it."""

    def __init__(self) -> None:
        from rich.live import Live

        console = rich_console(sys.stdout)
        self.live = Live(
            console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
        )
        self.live.start()

    def draw(self, found: Status) -> None:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        settled = found.counts["DONE"] + found.counts["GIVEN_UP"]
        head = Table.grid(padding=(0, 1))
        head.add_row(
            Text(as_printed(mask_output(found.state.campaign.name)), style="bold"),
            ProgressBar(total=max(1, len(found.cells)), completed=settled, width=40),
            Text(f"{settled}/{len(found.cells)}  {found.as_of[11:19]}  Ctrl-C detaches"),
        )
        lines = [_text(line) for line in grids(found)]
        running = [_text(cell_line(cell)) for cell in found.cells if cell.record.open][:16]
        finish = [_text(line) for line in (*loop_lines(found), *finish_lines(found))]
        self.live.update(Group(head, *lines, _text(legend(found)), *running, *finish), refresh=True)

    def close(self) -> None:
        self.live.stop()


def _text(line: str) -> Text:
    from rich.text import Text

    return Text.from_ansi(as_printed(mask_output(line)))
