"""Names and notes of people, made harmless for the format that they are put into."""

from __future__ import annotations

import re

# Only what would be taken for markup: reports are also read as they are written, and [0.3, 0.9] opens no link.
_MARKDOWN = re.compile(r"[\\`*|]|<(?=[A-Za-z/!?])|~(?=~)|\](?=[(\[])|&(?=#?\w+;)")
_OUTER_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")  # v2_full is safe, _full_ would be set in italics

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "_": r"\_",
    "%": r"\%",
    "&": r"\&",
    "#": r"\#",
    "$": r"\$",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # after \\ it would open an argument
    "]": "{]}",
    "*": "{*}",
    '"': "''",
    "±": r"$\pm$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "†": r"$^{\dagger}$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "✓": r"$\checkmark$",
    "→": r"$\rightarrow$",
    "−": "$-$",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
}
_NEGATIVE = re.compile(r"(?<![\w.)}\]-])-(?=\d)")


def one_line(text: str) -> str:
    return " ".join(text.split())


def markdown(text: str) -> str:
    """One line of it that stands for itself, in a table too."""
    escaped = _MARKDOWN.sub(lambda found: f"\\{found[0]}", one_line(text))
    return _OUTER_UNDERSCORE.sub(r"\\_", escaped)


def latex(text: str) -> str:
    signed = _NEGATIVE.sub("\0", one_line(text))
    return "".join(_LATEX.get(char, char) for char in signed).replace("\0", "$-$")


def has_chinese(text: str) -> bool:
    return any("\u2e80" <= char <= "\u9fff" or "\uff00" <= char <= "\uffef" for char in text)
