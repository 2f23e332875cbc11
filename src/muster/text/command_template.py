"""Placeholders in commands and paths: `{seed}`, `{config.args}`, `{last.checkpoint}`.

`{{` and `}}` are braces, `${X}` is left alone for the child's own use. In a command that is split into words the
values go in after the splitting, so nothing in a value can split, quote or run anything. Only `.args` splits, because
it is words by its nature. A text for a shell is no such command: `shell_quoting` quotes each value for its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from muster.text.shell_words import split

_TOKEN = re.compile(r"\$\{[^}]*\}|\{\{|\}\}|\{([^{}]*)\}")
_QUOTED = re.compile(r"""'[^']*'|\\\n|\\.|"(?:[^"\\]++|\\.)*\"""", re.DOTALL)

_TILDE = re.compile(r"(?:^|=)~[\w.-]*(?:/|$)")
_VARIABLE = re.compile(r"\$(?:[A-Za-z_]\w*|\{[A-Z_][A-Z0-9_]*\})")  # `${a.b}` and `${now:%Y}` are Hydra's own


def split_shell_words(text: str) -> tuple[str, ...]:
    """As a POSIX shell splits words; raises ValueError for an open quote."""
    return tuple(split(_QUOTED.sub(_join_continued_lines, text)))


def _join_continued_lines(match: re.Match[str]) -> str:
    """A backslash at the end of a line continues it; `split` would make a word of the line break."""
    token = match.group(0)
    return token if token.startswith("'") else token.replace("\\\n", "")


def find_shell_expansion(word: str) -> str:
    """The part of a word that only a shell would replace, `~` or `$X`; "" where there is none."""
    variable = _VARIABLE.search(word)
    return "~" if _TILDE.search(word) else variable.group(0) if variable else ""


def find_stray_brace(text: str) -> int | None:
    """Where a brace stands that is neither doubled nor part of a placeholder."""
    rest = _TOKEN.sub(lambda match: "-" * len(match.group(0)), text)
    return next((index for index, character in enumerate(rest) if character in "{}"), None)


def list_placeholders(text: str) -> Iterator[str]:
    """The names used in a text, in order."""
    for match in _TOKEN.finditer(text):
        if match.group(1) is not None and not match.group(0).startswith("$"):
            yield match.group(1)


def tokenize_template(text: str) -> Iterator[tuple[int, str, str | None]]:
    """(where it begins, what goes in as it is, None) or (where it begins, what is written, the placeholder's name)."""
    at = 0
    for match in _TOKEN.finditer(text):
        if match.start() > at:
            yield at, text[at : match.start()], None
        token, at = match.group(0), match.end()
        if token.startswith("$") or token in ("{{", "}}"):
            yield match.start(), token if token.startswith("$") else token[0], None
        else:
            yield match.start(), token, match.group(1)
    if at < len(text):
        yield at, text[at:], None


def render_template(text: str, values: Mapping[str, str]) -> str:
    """The text with values put in; raises KeyError(name) for an unknown placeholder."""

    return "".join(token if name is None else values[name] for _, token, name in tokenize_template(text))


def render_template_words(words: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """Words with values put in. A word that is only `{axis.args}` becomes as many words as the value has."""
    result: list[str] = []
    for word in words:
        match = _TOKEN.fullmatch(word)
        name = match.group(1) if match and not word.startswith("$") else None
        if name is not None and name.endswith(".args"):
            result.extend(render_template(part, values) for part in split(values[name]))
        else:
            result.append(render_template(word, values))
    return result
