"""Names and notes of people, made harmless for the format that they are put into."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

from muster.text.sentences import format_inline_code
from muster.text.terminal_text import escape_terminal_text

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
_BLOCK = 1 << 16  # characters that are escaped at a time
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
_LATEX_SIGNS = str.maketrans(_LATEX)
_NEGATIVE = re.compile(r"(?<![\w.)}\]-])-(?=\d)")


_BLANKS = dict.fromkeys((*range(9, 14), *range(28, 32), 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B)), " ")
_BLANKS |= dict.fromkeys((0x2028, 0x2029, 0x202F, 0x205F, 0x3000), " ")


def as_one_safe_line(text: str) -> str:
    """Without what a terminal would obey, too: reports are also read with `cat`."""
    line = text.translate(_BLANKS).strip()  # `split` would take fifty times the size of a text of many short words
    while "  " in line:
        line = line.replace("  ", " ")
    return escape_terminal_text(line)


def escape_markdown(text: str) -> str:
    """One line of it that stands for itself, in a table too."""
    return _escape_line(as_one_safe_line(text))


def escape_sentence(text: str) -> str:
    """People's words in a sentence: nothing in them becomes markup, but what stands in backticks stays code."""
    line = as_one_safe_line(text)
    parts = _CODE.split(line)
    return "".join(
        format_inline_code(part) if at % 2 else _escape_line(part, first=not at) for at, part in enumerate(parts)
    )


def escape_link_label(text: str) -> str:
    """Between the brackets of a link or a picture of ours."""
    return _escape_line(as_one_safe_line(text), first=False, marks=_LABEL)


def escape_link_target(path: str) -> str:
    """A path behind `](`: nothing in it can end the link or lead elsewhere."""
    return quote(path, errors="surrogateescape")


def _escape_line(text: str, *, first: bool = True, marks: re.Pattern[str] = _MARKDOWN) -> str:
    line = "".join(_escape_block(block, marks) for block in _cut_at_blanks(text))
    return _FIRST.sub(_escape_line_start, line) if first else line


def _cut_at_blanks(text: str) -> Iterator[str]:
    """In blocks: what is escaped is held in many small pieces, and nothing that is escaped has a blank in it."""
    at = 0
    while at < len(text):
        end = len(text) if len(text) - at <= _BLOCK else text.rfind(" ", at, at + _BLOCK) + 1 or len(text)
        yield text[at:end]
        at = end


def _escape_block(text: str, marks: re.Pattern[str]) -> str:
    parts = re.split(f"({_ADDRESS.pattern})", text, flags=_ADDRESS.flags)
    return "".join(format_inline_code(part) if at % 2 else _escape_marks(part, marks) for at, part in enumerate(parts))


def _escape_marks(text: str, marks: re.Pattern[str]) -> str:
    return _OUTER_UNDERSCORE.sub(r"\\_", marks.sub(r"\\\g<0>", text))


def _escape_line_start(found: re.Match[str]) -> str:
    return f"{found[1]}\\" if found[1] else f"\\{found[0]}"


def escape_csv_text(text: str, *, spaces: bool = False) -> str:
    """A text in a table of a spreadsheet, which takes `=1+1` for a formula; a number stays one. `spaces`: kept."""
    line = escape_terminal_text(text) if spaces else as_one_safe_line(text)
    return f"'{line}" if line[:1] in _FORMULA and line[:1] and not _NUMBER.fullmatch(line) else line


def escape_latex(text: str) -> str:
    signed = _NEGATIVE.sub("\0", as_one_safe_line(text))
    return signed.translate(_LATEX_SIGNS).replace("\0", "$-$")


def contains_chinese(text: str) -> bool:
    return any("\u2e80" <= char <= "\u9fff" or "\uff00" <= char <= "\uffef" for char in text)
