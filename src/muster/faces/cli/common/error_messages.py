"""Failures as people and programs see them: one clear message, or with --json one object, on stderr."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import traceback
from collections.abc import Sequence
from typing import Any

import typer

from muster.faces.cli.common.terminal_output import pad_label, paint_text, print_json
from muster.model.errors import CampaignInvalid, MusterError
from muster.text.phrases import english_text, join_phrases, phrase

# typer carries a click of its own; this is the base of its errors, whichever click it is
WRONG_USE = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


def report_failure(error: Exception, arguments: Sequence[str]) -> int:
    facts, code = _failure_facts(error, arguments)
    if "--json" in arguments:
        print_json({"error": facts}, sys.stderr)
        return code
    if isinstance(error, CampaignInvalid):
        from muster.faces.cli.common.terminal_output import print_mistakes

        print_mistakes(error.file, error.mistakes)
        return code
    print(f"{paint_text('muster:', 'red', stream=sys.stderr)} {_indent_after_first(facts['message'])}", file=sys.stderr)
    for label, said in (("cli.label_where", facts["where"]), ("cli.label_fix", facts["hint"])):
        if said:
            print(f"  {pad_label(phrase(label), 7)}{_indent_after_first(said)}", file=sys.stderr)
    return code


def _indent_after_first(text: str) -> str:
    """Of several lines only the first begins one: what is quoted in it can't pass for a line of ours."""
    return text.replace("\n", "\n  ")


def _failure_facts(error: Exception, arguments: Sequence[str]) -> tuple[dict[str, Any], int]:
    if isinstance(error, CampaignInvalid):
        mistakes = [
            {"line": m.line, "column": m.column, "path": m.path, "message": m.message, "hint": m.hint}
            for m in error.mistakes
        ]
        return _failure_as_json(error.code, error.message, error.file, phrase("cli.fix_them_all")) | {
            "mistakes": mistakes
        }, error.exit
    if isinstance(error, MusterError):
        return _failure_as_json(
            error.code, error.message, error.where, error.hint or _reason_hint(error, arguments)
        ), error.exit
    if isinstance(error, WRONG_USE):
        wrong: Any = error
        ctx = getattr(wrong, "ctx", None)
        return _failure_as_json("usage", _say_wrong_use(wrong, ctx), "", _usage_hint(wrong, ctx, arguments)), 2
    if isinstance(error, OSError):
        return _failure_as_json(
            "os_error", error.strerror or str(error), str(error.filename or ""), _os_error_hint(error)
        ), 1
    return _failure_as_json(
        "internal",
        phrase("cli.something_unexpected_happened", name=type(error).__name__, error=error),
        "",
        _save_traceback(error),
    ), 1


def _say_wrong_use(wrong: Any, ctx: Any) -> str:
    """The frequent ones of click's own sentences, as ours; the others as it says them."""
    said: str = wrong.format_message()
    param, option = getattr(wrong, "param", None), getattr(wrong, "option_name", None)
    known = []
    if type(wrong).__name__ == "MissingParameter" and param is not None:
        hint = wrong.param_hint or param.get_error_hint(ctx)
        known = [phrase("cli.missing_option", option=hint), phrase("cli.missing_argument", argument=hint)]
    elif type(wrong).__name__ == "NoSuchOption":
        known = [phrase("cli.no_such_option", option=option)]
    return next((ours for ours in known if english_text(ours) == said), said)


def _usage_hint(wrong: Any, ctx: Any, arguments: Sequence[str]) -> str:
    help_ = phrase("cli.see_help", command=ctx.command_path if ctx else "muster")
    if ctx and ctx.parent and getattr(wrong, "option_name", None) == "-C":
        return phrase("cli.folder_option_goes_before_command", command=ctx.info_name)
    _, example, text = (getattr(ctx.command, "epilog", None) or "").partition("Example:") if ctx else ("", "", "")
    if not example or type(wrong).__name__ != "MissingParameter":
        return help_
    whole = _reason_hint(wrong, arguments)
    shown = phrase("cli.for_example", command=text.strip())
    return join_phrases("; ", filter(None, (whole, shown, help_)))


def _reason_hint(error: Any, arguments: Sequence[str]) -> str:
    """The whole command to type, where nothing but the reason is missing."""
    param = getattr(getattr(error, "param", None), "name", None)
    if param != "because" and type(error).__name__ != "NoReason":
        return ""
    return phrase("cli.say_why", command=command_with_reason(arguments))


def command_with_reason(arguments: Sequence[str]) -> str:
    """The command that was typed, and a place for the reason."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return " ".join(
        part for part in ("muster", shlex.join(arguments[:at]), "--because '...'", shlex.join(arguments[at:])) if part
    )


def _failure_as_json(code: str, message: str, where: str, hint: str) -> dict[str, Any]:
    return {"code": code, "message": message, "where": where, "hint": hint}


def _os_error_hint(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return phrase("cli.not_allowed_to_read_or_write")
    if error.errno == 28:
        return phrase("cli.free_some_disk_space")
    return ""


def _save_traceback(error: Exception) -> str:
    """The traceback goes to a file for whoever fixes Muster, never to the user's screen."""
    try:
        fd, path = tempfile.mkstemp(prefix="muster-failure-", suffix=".txt")
        with os.fdopen(fd, "w") as file:
            file.write("".join(traceback.format_exception(error)))
    except OSError:
        return phrase("cli.mistake_in_muster")
    return phrase("cli.mistake_in_muster_with_file", path=path)
