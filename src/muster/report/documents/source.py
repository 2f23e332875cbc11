"""A text as its readers see it: code, links, comments and the like blanked out, every other character where it was."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

MARKDOWN, LATEX, PLAIN = "markdown", "latex", "plain"
_KINDS = {
    "md": MARKDOWN, "markdown": MARKDOWN, "mdx": MARKDOWN, "qmd": MARKDOWN, "rmd": MARKDOWN, "marp": MARKDOWN,
    "html": MARKDOWN, "tex": LATEX, "ltx": LATEX, "latex": LATEX,
}  # fmt: skip

# where the reader sees nothing, or nothing that is prose
_FENCES = re.compile(
    r"^[ \t>]*(?:[-*+][ \t]+)?(?P<fence>`{3,}+|~{3,}+)[^\n`]*\n.*?(?:^[ \t>]*(?P=fence)[`~]*[ \t]*\r?$|\Z)"
    r"|<!--.*?(?:-->|\Z)|<(?P<tag>style|script|pre|svg)\b.*?(?:</(?P=tag)>|\Z)",
    re.MULTILINE | re.DOTALL,
)
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n.*?^(?:---|\.\.\.)[ \t]*\r?$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:\A|\n[ \t]*\r?\n)((?:(?: {4,}|\t)[^\n]*\n?)+)")
_LIST = re.compile(r"[ \t]*(?:[-*+]|[0-9]+[.)])[ \t]")
_LINKS = (  # bounded, so that a text of nothing but brackets is read in time
    re.compile(r"!\[[^\]\n]{0,400}\]\([^)\n]{0,800}\)"),  # an image, with its size
    re.compile(r"(?<=\])\([^)\n]{0,800}\)"),  # where a link leads
    re.compile(r"^[ \t]*\[[^\]\n]+\]:[ \t]+\S[^\n]*", re.MULTILINE),
    re.compile(r"\[\^[^\]\n]{0,100}\]"),
    re.compile(r"<(?!/?code>)[A-Za-z/!?][^<>\n]*>"),
    re.compile(r"\{[.#:][^}\n]{0,400}\}"),  # classes and widths of what stands before
)
_URL = re.compile(
    r"\b(?:https?|ftp|file|ssh|s3|gs)://[^\s<>\"'`|)\]}，。；、）】]+|\b[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{0,64}\w",
    re.ASCII,
)
_STRUCK = re.compile(r"~~(?=\S)[^~\n]{1,400}~~|<(?P<tag>del|s|strike)>[^\n]{0,400}?</(?P=tag)>")
_CODE = re.compile(
    r"<code>[^<\n]*+(?:<(?!/?code>)[^<\n]*+)*</code>|(?<!`)(?P<ticks>`++)[^\n]{0,4000}?(?<!`)(?P=ticks)(?!`)"
)
_QUOTED = re.compile(r"^(?:[ \t]*>)+", re.MULTILINE)
# numbers that count the text's own parts
_COUNTERS = re.compile(
    r"^[ \t]*(?:[0-9]+[.)、]|[-*+•])(?=[ \t])|(?<=^#)#{0,5}[ \t]*[0-9]+(?:\.[0-9]+)*[.)、:：]?(?=[ \t]|[^\x00-\x7f])",
    re.MULTILINE,
)

_ARGUMENT = r"(?:\{(?:[^{}]++|\{(?:[^{}]++|\{[^{}]*+\})*\})*\})"
_OPTIONS = r"\[[^\]\n]{0,800}\]"  # bounded as the links are
_TABULAR = r"(?:tabular[*xy]?|tabulary|longtable|array|tblr|tabu|supertabular|xltabular)"
_LATEX = (
    re.compile(r"(?:(?<=(?<!\\)\\\\)|(?<!\\))%[^\n]*"),
    re.compile(r"\A.*?\\begin\{document\}|\\end\{document\}.*\Z", re.DOTALL),
    re.compile(
        r"\\begin\{(?P<env>verbatim\*?|Verbatim|lstlisting|minted|comment|tikzpicture|filecontents\*?|algorithm(?:ic)?\*?"
        r"|thebibliography)\}.*?(?:\\end\{(?P=env)\}|\Z)",
        re.DOTALL,
    ),
    re.compile(r"\\(?:verb|lstinline)\*?([^\w\s*]).{0,800}?\1"),
    re.compile(
        r"\\(?:(?:eq|auto|c|C|page|v|name)?ref|label|[a-zA-Z]*cite[a-z]*\*?|url|input|include|includegraphics|bibliography"
        r"|bibliographystyle|[vh]space\*?|setlength|addtolength|resizebox\*?|scalebox|rotatebox|rule|definecolor|setcounter"
        r"|addtocounter|geometry|usepackage|documentclass|newcommand|renewcommand|def|addlinespace|cline|cmidrule|vskip"
        r"|hskip|arraystretch|tabcolsep|graphicspath|hypersetup|sisetup)(?![A-Za-z])"
        rf"(?:\s*\([^)\n]{{0,800}}\)|\s*{_OPTIONS}|\s*\{{[^{{}}\n]*\}})*"
    ),
    re.compile(r"\\(?:sout|st|xout)\{[^{}\n]*\}"),
    re.compile(rf"\\(?:textcolor|colorbox|cellcolor|rowcolor|color|href|fontsize)(?:{_OPTIONS})?\{{[^{{}}\n]*\}}"),
    re.compile(rf"(?<=\\begin)\{{{_TABULAR}\}}(?:{_OPTIONS})?(?:\{{[^{{}}\n]*\}}(?=\{{))?{_ARGUMENT}"),
    re.compile(rf"(?<=\\\\)\*?{_OPTIONS}"),
    re.compile(r"(?<![0-9.])-?[0-9]{0,4}\.?[0-9]{1,4} ?\\(?:text|line|column|paper)(?:width|height)"),
)
_LATEX_BARE = (
    re.compile(
        rf"(?<=\\multicolumn)\{{[^{{}}\n]*\}}{_ARGUMENT}|(?<=\\multirow)(?:{_OPTIONS})?\{{[^{{}}\n]*\}}\{{[^{{}}\n]*\}}"
    ),
)
_NOT_NEWLINE = re.compile(r"[^\r\n]")


def kind_of(name: str, text: str) -> str:
    """By the file's name; by what is in it where the name does not tell."""
    known = _KINDS.get(name.rpartition(".")[2].lower())
    if known:
        return known
    return LATEX if re.search(r"\\documentclass|\\begin\{(?:document|tabular)", text) else PLAIN


@dataclass(frozen=True)
class Source:
    text: str
    kind: str

    @cached_property
    def shown(self) -> str:
        """What names are read from: without comments, front matter, code blocks and where links lead."""
        text = " " + self.text[1:] if self.text.startswith("\ufeff") else self.text
        if self.kind == LATEX:
            for pattern in _LATEX:
                text = pattern.sub(_blank, text)
            return _URL.sub(_blank, text)
        if self.kind == MARKDOWN:
            text = _FRONT.sub(_blank, text)
            text = _STRUCK.sub(_blank, text)
            text = _FENCES.sub(_blank, text)
            text = _without_indented(text)
            for pattern in _LINKS:
                text = pattern.sub(_blank, text)
        return _QUOTED.sub(_blank, _URL.sub(_blank, text))

    @cached_property
    def bare(self) -> str:
        """What numbers are read from: also without inline code, bullets and the numbers of headings."""
        text = self.shown
        if self.kind == LATEX:
            for pattern in _LATEX_BARE:
                text = pattern.sub(_blank, text)
            return text
        return _COUNTERS.sub(_blank, _CODE.sub(_blank, text))

    @cached_property
    def _lines(self) -> list[int]:
        return [0, *(found.end() for found in re.finditer("\n", self.text))]

    def where(self, at: int) -> tuple[int, int]:
        """Line and column, both from 1."""
        line = bisect_right(self._lines, at)
        return line, at - self._lines[line - 1] + 1


def _blank(found: re.Match[str]) -> str:
    return _NOT_NEWLINE.sub(" ", found[0])


def _without_indented(text: str) -> str:
    """Four spaces after an empty line are code, unless they go on with a list."""
    done, in_list = 0, False

    def blank(found: re.Match[str]) -> str:
        nonlocal done, in_list
        in_list = _ends_in_list(text[done : found.start()], in_list)
        done = found.start()
        return found[0] if in_list or _LIST.match(found[1]) else _blank(found)

    return _INDENTED.sub(blank, text)


def _ends_in_list(above: str, before: bool) -> bool:
    """`before`: whether what stands above that does."""
    for line in reversed(above.splitlines()):
        if _LIST.match(line):
            return True
        if line.strip() and not line.startswith((" ", "\t")):
            return False
    return before
