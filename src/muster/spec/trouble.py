"""What ruamel.yaml says about a text that is not YAML, in words that help."""

from __future__ import annotations

import re

from ruamel.yaml.error import MarkedYAMLError

from muster.domain.errors import Mistake

_PLACEHOLDER = re.compile(r"\{[a-z_.]+\}")
_NOTATION = "this is not YAML: "


def plain_words(error: MarkedYAMLError, text: str) -> Mistake:
    problem = str(error.problem or "")
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    rows = text.split("\n")
    row = rows[line - 1] if line <= len(rows) else ""
    indent = row[: len(row) - len(row.lstrip(" \t"))]
    if "\t" in indent:
        return Mistake("a tab is used for indentation", line, indent.index("\t") + 1, "use spaces")
    if "unexpected end of stream" in problem and error.context_mark:
        mark = error.context_mark
        what = "a quote is opened here and never closed"
        return Mistake(_NOTATION + what, mark.line + 1, mark.column + 1, "close it on the same line")
    what, hint = _explain(problem, row, str(error.context or ""))
    return Mistake(_NOTATION + what, line, column, hint)


def _explain(problem: str, row: str, context: str) -> tuple[str, str]:
    if "mapping values are not allowed" in problem:
        return _colon(row)
    if "cannot start any token" in problem:
        character = problem.split("'")[1] if problem.count("'") >= 2 else "this"
        return f"a value may not begin with {character}", "put the value in quotes"
    if "flow sequence" in context or "flow mapping" in context:
        kind = ("list", "[", "]") if "flow sequence" in context else ("mapping", "{", "}")
        return f"a {kind[0]} that begins with {kind[1]} is not closed or lacks a comma", _brace_hint(row, kind[2])
    if "unknown escape" in problem:
        return "a backslash in double quotes begins an escape that YAML does not know", "use single quotes"
    if "sequence entries are not allowed" in problem:
        return "a list item may not begin on the line of its key", "begin the list on the next line"
    if "<block end>" in problem and "<scalar>" in problem:
        return "there is text after the end of a value", _brace_hint(row, None)
    if "<block end>" in problem:
        return "this line fits neither the lines above it nor their indentation", "indent it like its siblings"
    if "<document start>" in problem:
        return "something follows after the end of the document", "look for a bracket too many"
    return problem or "it can't be read", "quotes around the value often help"


def _colon(row: str) -> tuple[str, str]:
    if row.count(": ") + row.rstrip().endswith(":") > 1:
        return "a value contains ': ', which begins a new key", "put the whole value in quotes"
    return "a key stands where none can be", "check the indentation, and the space after ':' on the line above"


def _brace_hint(row: str, closing: str | None) -> str:
    if closing and _PLACEHOLDER.search(row):
        return "inside { } and [ ] a text with placeholders must be in quotes"
    if ": {" in row or "[{" in row or "- {" in row:
        return 'a value that begins with a placeholder must be in quotes: "{out}/file"'
    if ': "' in row or ": '" in row:
        return "put the whole value in one pair of quotes"
    return f"close it with {closing}" if closing else "put the whole value in quotes"
