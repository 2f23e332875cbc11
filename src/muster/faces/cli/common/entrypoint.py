"""How every command ends: an exit code, and at worst one clear message. No traceback ever reaches a user."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path

from muster.bootstrap import install_local_services
from muster.faces.cli.common.terminal_output import cleaned_streams, uncleaned_stream
from muster.files.campaign_ownership import language_of_campaign_file
from muster.text.phrases import asked_language, known_language, language_of_locale, set_language

SAMPLES = {"zh": "中", "pseudo": "⟦"}  # letters that a language can't do without


def run_command_line(arguments: list[str]) -> int:
    install_local_services()
    set_language("en" if "--json" in arguments else choose_language(arguments))
    with cleaned_streams():
        return _run_and_report(arguments)


def choose_language(arguments: list[str]) -> str:
    """What `MUSTER_LANG` asks for; else the campaign's `language:`; else that of the locale, if Muster speaks it."""
    folder = Path(arguments[1] if arguments[:1] == ["-C"] and len(arguments) > 1 else ".")
    declared = language_of_campaign_file(folder)
    asked = asked_language() or known_language(declared or "") or language_of_locale()
    return asked if asked and _can_be_shown(asked) else "en"


def _can_be_shown(language: str) -> bool:
    """Where only ASCII is printed, Chinese would be a row of question marks."""
    try:
        SAMPLES.get(language, "").encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


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
