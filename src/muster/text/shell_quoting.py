"""Placeholders in a text that a shell reads (`shell: true`): each value arrives there as the text that it is.

`render_shell` quotes every value for its place: unquoted, in double or single quotes, as a number in `$(( ))`. What a
value contains can't end a quote, start a command or split a word there. Where no way of quoting is right (a comment, a
here-document, backquotes), `check` refuses the placeholder, and `render_shell` raises ValueError. What the shell hands
on to another reader as code (`eval`, `sh -c`, `python -c`, the arithmetic of `[[ ]]`) is quoted for the first one only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from muster.text.command_template import render_template
from muster.text.shell_syntax import PLACEHOLDER_CHAR, ShellParser, ShellPlaceholder
from muster.text.shell_words import split

_PLAIN = re.compile(r"[\w@%+:./-]+", re.ASCII)  # nothing in it means anything to a shell
_RESERVED = frozenset(
    {
        "if",
        "then",
        "else",
        "elif",
        "fi",
        "do",
        "done",
        "case",
        "esac",
        "while",
        "until",
        "for",
        "in",
        "time",
        "function",
        "select",
        "coproc",
    }
)
_NUMBER = re.compile(r"0|[1-9][0-9]*", re.ASCII)
_IN_DOUBLE = re.compile(r'[\\$`"]')


def find_shell_placeholders(text: str) -> list[ShellPlaceholder]:
    return ShellParser(text).spots


def is_plain_shell_word(value: str) -> bool:
    """Whether it is the same text to every shell, quoted or not."""
    return _PLAIN.fullmatch(value) is not None and value not in _RESERVED


def is_shell_integer(value: str) -> bool:
    """What may stand in `$(( ))`: there even the name of a variable would be evaluated."""
    return _NUMBER.fullmatch(value) is not None


def render_shell_text(text: str, values: Mapping[str, str]) -> str:
    """The text with every value quoted for its place. `{axis.args}` outside of quotes stays several words.

    Raises ValueError where a value can't be put in safely, KeyError(name) for an unknown placeholder.
    """
    reader = ShellParser(text)
    found = iter(reader.spots)
    return "".join(
        _quote_placeholder_value(next(found), values) if each == PLACEHOLDER_CHAR else each for each in reader.marked
    )


def _quote_placeholder_value(spot: ShellPlaceholder, values: Mapping[str, str]) -> str:
    value = values[spot.name]
    is_args = spot.name.endswith(".args")
    if spot.context == "bare" and is_args:
        words = [render_template(word, values) for word in split(value)]
        return " ".join(_quote_bare_word(spot, word) for word in words) or ("''" if spot.glued else "")
    return _quote_for_context(spot, render_template(value, values) if is_args else value)


def _quote_for_context(spot: ShellPlaceholder, value: str) -> str:
    if spot.context == "refused":
        raise ValueError(f"{{{spot.name}}} can't be put in safely: {spot.why}; {spot.hint}")
    if spot.context == "number":
        if not is_shell_integer(value):
            raise ValueError(f"{{{spot.name}}} stands in $(( )), where only a whole number is safe: {value!r}")
        return value
    if spot.context == "bare":
        return _quote_bare_word(spot, value)
    _reject_nul_byte(spot, value)
    if spot.context == "single":
        return value.replace("'", "'\\''")
    return ('""' if spot.glued else "") + _IN_DOUBLE.sub(r"\\\g<0>", value)


def _quote_bare_word(spot: ShellPlaceholder, value: str) -> str:
    _reject_nul_byte(spot, value)
    if is_plain_shell_word(value) and not spot.glued and not (spot.redirected and value.isdigit()):
        return value
    return "'" + value.replace("'", "'\"'\"'") + "'"


def _reject_nul_byte(spot: ShellPlaceholder, value: str) -> None:
    if "\0" in value:
        raise ValueError(f"{{{spot.name}}} has a NUL byte, and no program can be given one: {value!r}")
