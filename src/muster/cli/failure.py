"""Failures as people and programs see them: one clear message, or with --json one object, on stderr."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from typing import Any

import typer

from muster.cli.paint import paint
from muster.cli.words import say_json
from muster.domain.errors import CampaignInvalid, MusterError

# typer carries a click of its own; this is the base of its errors, whichever click it is
WRONG_USE = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


def report(error: Exception, arguments: Sequence[str]) -> int:
    facts, code = _facts(error)
    if "--json" in arguments:
        say_json({"error": facts}, sys.stderr)
        return code
    if isinstance(error, CampaignInvalid):
        from muster.cli.mistakes import show

        show(error.file, error.mistakes)
        return code
    print(f"{paint('muster:', 'red', stream=sys.stderr)} {facts['message']}", file=sys.stderr)
    if facts["where"]:
        print(f"  where: {facts['where']}", file=sys.stderr)
    if facts["hint"]:
        print(f"  mend:  {facts['hint']}", file=sys.stderr)
    return code


def _facts(error: Exception) -> tuple[dict[str, Any], int]:
    if isinstance(error, CampaignInvalid):
        mistakes = [
            {"line": m.line, "column": m.column, "path": m.path, "message": m.message, "hint": m.hint}
            for m in error.mistakes
        ]
        return _one(error.code, error.message, error.file, "mend them all; nothing was changed") | {
            "mistakes": mistakes
        }, error.exit
    if isinstance(error, MusterError):
        return _one(error.code, error.message, error.where, error.hint), error.exit
    if isinstance(error, WRONG_USE):
        wrong: Any = error
        ctx = getattr(wrong, "ctx", None)
        return _one("usage", wrong.format_message(), "", _right_use(wrong, ctx)), 2
    if isinstance(error, OSError):
        return _one("os_error", error.strerror or str(error), str(error.filename or ""), _mend(error)), 1
    return _one("internal", f"something unexpected happened: {type(error).__name__}: {error}", "", _kept(error)), 1


def _right_use(wrong: Any, ctx: Any) -> str:
    help_ = f"see `{ctx.command_path} --help`" if ctx else "see `muster --help`"
    if ctx and ctx.parent and getattr(wrong, "option_name", None) == "-C":
        return f"-C goes before the command: `muster -C DIR {ctx.info_name} ...`"
    _, example, text = (getattr(ctx.command, "epilog", None) or "").partition("Example:") if ctx else ("", "", "")
    return f"for example: {text.strip()}; {help_}" if example and type(wrong).__name__ == "MissingParameter" else help_


def _one(code: str, message: str, where: str, hint: str) -> dict[str, Any]:
    return {"code": code, "message": message, "where": where, "hint": hint}


def _mend(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "you may not read or write this; check its owner and mode"
    if error.errno == 28:
        return "free some space on that disk, then try again; nothing was lost"
    return ""


def _kept(error: Exception) -> str:
    """The traceback goes to a file for whoever mends Muster, never to the user's screen."""
    try:
        fd, path = tempfile.mkstemp(prefix="muster-failure-", suffix=".txt")
        with os.fdopen(fd, "w") as file:
            file.write("".join(traceback.format_exception(error)))
    except OSError:
        return "this is a mistake in Muster; please report it"
    return f"this is a mistake in Muster; please report it with {path}"
