"""muster demo"""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from muster.app.campaign.campaign_status import Status
from muster.app.overview.demo import DEMO_FAULTS, DemoRun, create_demo_folder
from muster.faces.cli.common.status_view import show_status
from muster.faces.cli.common.terminal_output import clear_line, find_muster_command, pad_label, paint_text
from muster.files.own_processes import own_python_command
from muster.text.phrases import has_code, phrase

app = typer.Typer(add_completion=False)
REPORT_COMMANDS = (
    ("docs", "bind", "slides.md", "--yes", "--place"),
    ("report",),
    ("cost", "--report"),
    ("record",),
    ("verify",),
)


@app.command("demo", epilog="Example:  muster demo my-demo")
def demo_command(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="A new folder for it; default: muster-demo.", show_default=False),
    ] = None,
) -> int:
    """A real sprint on this machine: 4 configs x 5 seeds of training, evaluated on 2 splits, with faults on the way.

    A run and the controller are killed while it runs; it completes all the same, and goes on to tables, figures,
    slides, the decision report, the bill and the record. Takes one to two minutes.
    """
    started, muster = time.monotonic(), find_muster_command()
    place = create_demo_folder(folder)
    teller = DemoPrinter()
    teller.say(phrase("cli.demo_begins", folder=place))
    running = DemoRun.start(place, teller.say, teller.draw)
    try:
        last = running.run()
    except KeyboardInterrupt:
        teller.close()
        here = f"{muster} -C {shlex.quote(str(place))}"
        ends = f"{here} down --runs --because 'seen enough'"
        print("\n" + phrase("cli.demo_detached", status=f"{here} status", down=ends))
        return 4
    teller.close()
    print()
    show_status(last)
    code = _run_report_commands(place) if last.complete else last.exit
    print()
    _print_demo_summary(last, place, f"{muster} -C {shlex.quote(str(place))}", time.monotonic() - started)
    return code


def _run_report_commands(place: Path) -> int:
    """From the finished matrix to the decision, by the commands that anybody would give."""
    for words in REPORT_COMMANDS:
        print(f"\n{paint_text('$ muster ' + shlex.join(words), 'bold')}", flush=True)
        done = subprocess.run(own_python_command("muster", "-C", str(place), *words), check=False)
        if done.returncode:
            return done.returncode
    return 0


def _print_demo_summary(last: Status, place: Path, here: str, seconds: float) -> None:
    attempts = sum(len(cell.record.attempts) for cell in last.cells)
    again = [cell.record.cell.id for cell in last.cells if len(cell.record.attempts) > 1]
    print(
        phrase(
            "cli.demo_summary",
            cells=len(last.cells),
            attempts=attempts,
            seconds=seconds,
            again=", ".join(again) or phrase("cli.no_cells"),
        )
    )
    why = f"{here} why {again[0] if again else last.cells[0].record.cell.id}"
    print(f"{pad_label(phrase('cli.label_read_first'), 14)}{place / 'reports' / 'decision.md'}")
    print(f"{pad_label(phrase('cli.label_look_around'), 14)}{why}")


class DemoPrinter:
    """On a terminal a bar that stays at the bottom; in a pipe one line per event."""

    def __init__(self) -> None:
        self.screen = sys.stdout.isatty()
        self.started = time.monotonic()
        self.shown = -1

    def say(self, text: str) -> None:
        self._clear()
        stamp = paint_text(f"[{time.monotonic() - self.started:5.1f} s]", "dim")
        fault = any(has_code(text, code) for code in DEMO_FAULTS)
        print(f"{stamp} {paint_text(text, 'yellow') if fault else text}", flush=True)

    def draw(self, status: Status) -> None:
        done, total = status.counts["DONE"], len(status.cells)
        if self.screen:
            full = 40 * done // max(1, total)
            bar = paint_text("━" * full, "green") + paint_text("━" * (40 - full), "dim")
            stands = phrase("cli.done_and_running", done=done, total=total, running=status.counts["RUNNING"])
            sys.stdout.write(f"{clear_line()}{bar} {stands}")
            sys.stdout.flush()
        elif done // 10 > self.shown // 10:
            self.say(phrase("cli.cells_done", done=done, total=total))
        self.shown = done

    def _clear(self) -> None:
        if self.screen:
            sys.stdout.write(clear_line())

    def close(self) -> None:
        self._clear()
