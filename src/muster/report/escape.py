"""Names and notes of people, made harmless for the format that they are put into."""

from __future__ import annotations

import re
from urllib.parse import quote

from muster.domain.terminal_text import safe_text
from muster.domain.wording import code

# Only what would be taken for markup: reports are also read as they are written, and [0.3, 0.9] opens no link.
_MARKDOWN = re.compile(r"[\\`*|]|<(?=[A-Za-z/!?])|~(?=~)|\](?=[(\[:])|!(?=\[)|&(?=#?\w+;)")
_LABEL = re.compile(rf"[\[\]]|{_MARKDOWN.pattern}")
_FIRST = re.compile(r"^(?:[-+](?=\s\S)|#(?=#{0,5}\s\S)|>)|^(\d{1,9})(?=[.)]\s\S)")  # a list, a title, a quotation
# What GitHub and others make a link of by themselves: it is set as code, which nobody does anything to.
_ADDRESS = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9+.-]{0,30}://|(?<![A-Za-z0-9])www\.|(?<![A-Za-z0-9])(?:mailto|xmpp|javascript|data|vbscript|tel):)[^\s`|<\\]+"
    r"|(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    re.IGNORECASE | re.ASCII,
)
_FORMULA = "=+-@|%\uff1d\uff0b\uff0d\uff20"
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]?inf")
_CODE = re.compile(r"(?<!`)`([^`|]+)`(?!`)")
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
    """Without what a terminal would obey, too: reports are also read with `cat`."""
    return safe_text(" ".join(text.split()))


def markdown(text: str) -> str:
    """One line of it that stands for itself, in a table too."""
    return _escaped(one_line(text))


def sentence(text: str) -> str:
    """People's words in a sentence: nothing in them becomes markup, but what stands in backticks stays code."""
    line = one_line(text)
    parts = _CODE.split(line)
    return "".join(code(part) if at % 2 else _escaped(part, first=not at) for at, part in enumerate(parts))


def label(text: str) -> str:
    """Between the brackets of a link or a picture of ours."""
    return _escaped(one_line(text), first=False, marks=_LABEL)


def target(path: str) -> str:
    """A path behind `](`: nothing in it can end the link or lead elsewhere."""
    return quote(path, errors="surrogateescape")


def _escaped(text: str, *, first: bool = True, marks: re.Pattern[str] = _MARKDOWN) -> str:
    parts = re.split(f"({_ADDRESS.pattern})", text, flags=_ADDRESS.flags)
    shown = [code(part) if at % 2 else _marked(part, marks) for at, part in enumerate(parts)]
    line = "".join(shown)
    return _FIRST.sub(_led, line) if first else line


def _marked(text: str, marks: re.Pattern[str]) -> str:
    return _OUTER_UNDERSCORE.sub(r"\\_", marks.sub(r"\\\g<0>", text))


def _led(found: re.Match[str]) -> str:
    return f"{found[1]}\\" if found[1] else f"\\{found[0]}"


def csv_text(text: str, *, spaces: bool = False) -> str:
    """A text in a table of a spreadsheet, which takes `=1+1` for a formula; a number stays one. `spaces`: kept."""
    line = safe_text(text) if spaces else one_line(text)
    return f"'{line}" if line[:1] in _FORMULA and line[:1] and not _NUMBER.fullmatch(line) else line


def latex(text: str) -> str:
    signed = _NEGATIVE.sub("\0", one_line(text))
    return "".join(_LATEX.get(char, char) for char in signed).replace("\0", "$-$")


def has_chinese(text: str) -> bool:
    return any("\u2e80" <= char <= "\u9fff" or "\uff00" <= char <= "\uffef" for char in text)
