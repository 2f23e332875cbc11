"""The live view of `up` and `wait`: a bar and the grid on a terminal, a line per change elsewhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.campaign_status import CellStatus, Status
from muster.app.campaign.start_controller import follow_campaign
from muster.faces.cli.common.status_view import (
    change_key,
    format_cell_line,
    format_finish_lines,
    format_grids,
    format_legend,
    format_loop_lines,
    show_status,
)
from muster.faces.cli.common.terminal_output import clean_for_terminal, print_notice, rich_console
from muster.files.known_secrets import mask_secrets_in_output
from muster.text.phrases import phrase

if TYPE_CHECKING:
    from rich.text import Text

ENDED_STATES = ("DONE", "DEAD", "UNKNOWN", "GIVEN_UP")
GOING_STATES = ("RUNNING", "STALLED", "UNKNOWN")


def show_campaign_progress(
    desk: CampaignHandle, *, quiet: bool = False, timeout_s: float | None = None, before: Status | None = None
) -> Status:
    """Until it is over or the time is up. Ctrl-C is the caller's to answer: it changes nothing here.

    What was so `before`, or when we came, is no news.
    """
    view = LiveScreen() if not quiet and sys.stdout.isatty() else None
    teller: ChangePrinter | None = None
    try:
        for found in follow_campaign(desk, print_notice, timeout_s):
            if view:
                view.draw(found)
            elif not quiet:
                teller = teller or ChangePrinter(before or found)
                teller.tell(found)
    finally:
        if view:
            view.close()
    if not quiet and not found.going_on:
        show_status(found, teller.told if teller else ())
    return found


class ChangePrinter:
    """In a pipe: one line for each start and each end, at once."""

    def __init__(self, before: Status) -> None:
        self.known = {change_key(cell) for cell in before.cells}
        self.told: set[str] = set()
        if before.going_on:
            done, living = before.counts["DONE"], sum(cell.record.open is not None for cell in before.cells)
            cells = phrase("count.cell", n=len(before.cells))
            said = phrase("cli.cells_under_way", done=done, cells=cells, living=living)
            print(f"{before.as_of[11:19]}  {said}", flush=True)

    def tell(self, found: Status) -> None:
        for cell in found.cells:
            now = change_key(cell)
            if now not in self.known and _is_worth_printing(cell):
                self.known.add(now)
                self.told.add(now)
                print(f"{found.as_of[11:19]}{format_cell_line(cell)}", flush=True)
        for line in (*format_loop_lines(found), *format_finish_lines(found)) if found.complete else ():
            if line not in self.told:
                self.told.add(line)
                print(f"{found.as_of[11:19]}  {line}", flush=True)


def _is_worth_printing(cell: CellStatus) -> bool:
    """An end once it is recorded; of what is open the start, and what a person should look at."""
    if cell.record.open is None:
        return cell.verdict.state in ENDED_STATES
    return cell.verdict.state in GOING_STATES and cell.verdict.kind != "ending"


class LiveScreen:
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
            Text(clean_for_terminal(mask_secrets_in_output(found.state.campaign.name)), style="bold"),
            ProgressBar(total=max(1, len(found.cells)), completed=settled, width=40),
            Text(f"{settled}/{len(found.cells)}  {found.as_of[11:19]}  {phrase('cli.ctrl_c_detaches')}"),
        )
        lines = [_rich_text(line) for line in format_grids(found)]
        running = [_rich_text(format_cell_line(cell)) for cell in found.cells if cell.record.open][:16]
        finish = [_rich_text(line) for line in (*format_loop_lines(found), *format_finish_lines(found))]
        self.live.update(Group(head, *lines, _rich_text(format_legend(found)), *running, *finish), refresh=True)

    def close(self) -> None:
        self.live.stop()


def _rich_text(line: str) -> Text:
    from rich.text import Text

    return Text.from_ansi(clean_for_terminal(mask_secrets_in_output(line)))
