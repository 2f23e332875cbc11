"""How every command ends: an exit code, and at worst one clear message. No traceback ever reaches a user."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path

from muster.cli.terminal import cleaned_streams, own_stream


def leave(arguments: list[str]) -> int:
    with cleaned_streams():
        return _leave(arguments)


def _leave(arguments: list[str]) -> int:
    for stream in map(own_stream, (sys.stdout, sys.stderr)):
        if isinstance(stream, io.TextIOWrapper):  # a name that the locale can't print must not end a command
            stream.reconfigure(errors="replace")
    try:
        code = _command(arguments)()
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader has had enough: no word about it at exit either
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        from muster.cli.failure import report

        return report(error, arguments)


def _command(arguments: list[str]) -> Callable[[], int]:
    """`muster [-C DIR] status [--json]` goes straight to its answer; everything else through typer."""
    at, words = (arguments[1], arguments[2:]) if arguments[:1] == ["-C"] and len(arguments) > 2 else (".", arguments)
    if words in (["status"], ["status", "--json"]):
        from muster.cli.telling import tell

        return lambda: tell(Path(at), as_json_=len(words) == 2)
    from muster.cli.app import run

    return lambda: run(arguments)
