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
    facts, code = _facts(error, arguments)
    if "--json" in arguments:
        say_json({"error": facts}, sys.stderr)
        return code
    if isinstance(error, CampaignInvalid):
        from muster.cli.mistakes import show

        show(error.file, error.mistakes)
        return code
    print(f"{paint('muster:', 'red', stream=sys.stderr)} {_indented(facts['message'])}", file=sys.stderr)
    if facts["where"]:
        print(f"  where: {_indented(facts['where'])}", file=sys.stderr)
    if facts["hint"]:
        print(f"  mend:  {_indented(facts['hint'])}", file=sys.stderr)
    return code


def _indented(text: str) -> str:
    """Of several lines only the first begins one: what is quoted in it can't pass for a line of ours."""
    return text.replace("\n", "\n  ")


def _facts(error: Exception, arguments: Sequence[str]) -> tuple[dict[str, Any], int]:
    if isinstance(error, CampaignInvalid):
        mistakes = [
            {"line": m.line, "column": m.column, "path": m.path, "message": m.message, "hint": m.hint}
            for m in error.mistakes
        ]
        return _one(error.code, error.message, error.file, "mend them all; nothing was changed") | {
            "mistakes": mistakes
        }, error.exit
    if isinstance(error, MusterError):
        return _one(error.code, error.message, error.where, error.hint or _say_why(error, arguments)), error.exit
    if isinstance(error, WRONG_USE):
        wrong: Any = error
        ctx = getattr(wrong, "ctx", None)
        return _one("usage", wrong.format_message(), "", _right_use(wrong, ctx, arguments)), 2
    if isinstance(error, OSError):
        return _one("os_error", error.strerror or str(error), str(error.filename or ""), _mend(error)), 1
    return _one("internal", f"something unexpected happened: {type(error).__name__}: {error}", "", _kept(error)), 1


def _right_use(wrong: Any, ctx: Any, arguments: Sequence[str]) -> str:
    help_ = f"see `{ctx.command_path} --help`" if ctx else "see `muster --help`"
    if ctx and ctx.parent and getattr(wrong, "option_name", None) == "-C":
        return f"-C goes before the command: `muster -C DIR {ctx.info_name} ...`"
    _, example, text = (getattr(ctx.command, "epilog", None) or "").partition("Example:") if ctx else ("", "", "")
    if not example or type(wrong).__name__ != "MissingParameter":
        return help_
    whole = _say_why(wrong, arguments)
    return f"{whole}{'; ' if whole else ''}for example: {text.strip()}; {help_}"


def _say_why(error: Any, arguments: Sequence[str]) -> str:
    """The whole command to type, where nothing but the reason is missing."""
    param = getattr(getattr(error, "param", None), "name", None)
    if param != "because" and type(error).__name__ != "NoReason":
        return ""
    from muster.cli.reasons import typed_with_reason  # not at the top: it brings most of the commands along

    return f"say why: {typed_with_reason(arguments)}"


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
