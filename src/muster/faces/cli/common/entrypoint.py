"""How every command ends: an exit code, and at worst one clear message. No traceback ever reaches a user."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path

from muster.bootstrap import install_local_services
from muster.faces.cli.common.terminal_output import cleaned_streams, uncleaned_stream


def run_command_line(arguments: list[str]) -> int:
    install_local_services()
    with cleaned_streams():
        return _run_and_report(arguments)


def _run_and_report(arguments: list[str]) -> int:
    for stream in map(uncleaned_stream, (sys.stdout, sys.stderr)):
        if isinstance(stream, io.TextIOWrapper):  # a name that the locale can't print must not end a command
            stream.reconfigure(errors="replace")
    try:
        code = _choose_entry(arguments)()
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader has had enough: no word about it at exit either
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        from muster.faces.cli.common.error_messages import report_failure

        return report_failure(error, arguments)


def _choose_entry(arguments: list[str]) -> Callable[[], int]:
    """`muster [-C DIR] status [--json]` goes straight to its answer; everything else through typer."""
    at, words = (arguments[1], arguments[2:]) if arguments[:1] == ["-C"] and len(arguments) > 2 else (".", arguments)
    if words in (["status"], ["status", "--json"]):
        from muster.faces.cli.common.status_view import print_status

        return lambda: print_status(Path(at), as_json_=len(words) == 2)
    from muster.faces.cli.common.command_line import run_arguments

    return lambda: run_arguments(arguments)
