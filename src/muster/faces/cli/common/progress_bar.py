"""The bar of commands that take long: report, pack, unpack."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from muster.app.facts.gather_facts import ProgressStep
from muster.faces.cli.common.terminal_output import clean_for_terminal, rich_console


@contextmanager
def show_progress_bar(quiet: bool) -> Iterator[ProgressStep]:
    """A bar on a terminal; nothing in a pipe."""
    if quiet or not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.progress import Progress

    console = rich_console(sys.stderr)
    with Progress(console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as bar:
        tasks: dict[str, Any] = {}

        def step(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(clean_for_terminal(what), total=of or None)
            bar.update(tasks[what], completed=done)

        yield step
