"""Secrets in what is shown: a value goes where its name sounds like one, in YAML and in commands.

Where it can't be told how far a value goes, more is hidden rather than less.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

HIDDEN = "(value not shown)"
_SECRET = re.compile(r"key|token|secret|passw|credential", re.IGNORECASE)
# what trainings count and cut up is no secret
_HARMLESS = re.compile(r"tokeni[sz]|(max|min|num|n)[_-]?(new[_-])?tokens|key(point|frame|word)", re.IGNORECASE)
_ENTRY = re.compile(r"""((?:-\s+)*)(["']?)([\w.+/-]+)\2\s*:(?:\s+(.*))?$""")  # of a block mapping
_PAIR = re.compile(r"""(["']?)([\w.+-]+)\1\s*([:=])\s*""")  # of a flow mapping; `NAME=value`, `--name=value`
_OPTION = re.compile(r"""(--?[A-Za-z][\w.-]*)(?:["']?\s*,|["']?(?=\s))(?:\s|\\\n)*(?![-\s])""")
_DANGLING = re.compile(r"""(--?[A-Za-z][\w.-]*)["']?\s*,?\s*\\?$""")  # an option whose value is in the next line
_ITEM = re.compile(r"-\s+")
_OPTIONS = re.compile(r"""(?:-\s+)?["']?--?[A-Za-z]""")
_QUOTED = re.compile(r"""'[^']*'|"[^"]*"|#.*$""")
_PLAIN = ",}]"  # what ends a plain value of a flow mapping
_OWN = "key"  # of results: a word of campaign.yaml


def is_secret(name: str) -> bool:
    return _SECRET.search(_HARMLESS.sub("", name)) is not None


def hidden_words(parts: Sequence[str]) -> list[str]:
    """A command's words."""
    found: list[str] = []
    for before, part in zip(["", *parts], parts, strict=False):
        names = re.fullmatch(r"--?[A-Za-z][\w.-]*", before)
        follows = names and is_secret(before) and not part.startswith("-")
        found.append(HIDDEN if follows else hidden_text(part))
    return found


def hidden_text(text: str) -> str:
    """Words of a command as one text."""
    return _shown(text)[0]


def hidden_lines(lines: Sequence[str]) -> list[str]:
    """A YAML text; as many lines as there were."""
    return list(_Text().read(lines))


class _Text:
    """What is known of a YAML text up to a line."""

    def __init__(self) -> None:
        self._parents: list[tuple[int, str]] = []  # indent and key of the mappings around
        self._deeper: int | None = None  # what is indented more than this goes on with a secret value
        self._named = False  # a secret key came, and its value is yet to come
        self._option = False  # the same of an option
        self._depth = 0  # of flow mappings and lists
        self._until = ""  # in these a value may go on at any indent: up to one of these characters

    def read(self, lines: Sequence[str]) -> Iterator[str]:
        for line in lines:
            body = line.lstrip()
            if not body:
                yield line
                continue
            bare = _QUOTED.sub("", body)
            opened = sum((each in "{[") - (each in "}]") for each in bare)
            self._depth = max(0, self._depth + opened)
            yield self._next(line, body, len(line) - len(body))

    def _goes_on(self, column: int, how: str) -> None:
        """`how`: the open quote, or what ends a plain value; empty: it does not go on."""
        self._deeper = column if how else None
        self._until = how if self._depth else ""

    def _next(self, line: str, body: str, indent: int) -> str:
        if self._until:
            self._until = "" if any(each in body for each in self._until) else self._until
            return line[:indent] + HIDDEN
        entry = _ENTRY.match(body)
        starts = entry or _ITEM.match(body)  # a mapping or a list below a key is no value
        if self._deeper is not None and indent > self._deeper and not (self._named and starts):
            self._named = False
            return line[:indent] + HIDDEN
        follows, self._option = self._option, bool((last := _DANGLING.search(body)) and is_secret(last[1]))
        if follows and not entry and not _OPTIONS.match(body):
            return line[:indent] + ("- " if starts else "") + HIDDEN
        self._deeper, self._named = None, False
        column = indent + (len(entry[1]) if entry else 0)
        while self._parents and self._parents[-1][0] >= column:
            self._parents.pop()
        in_env = bool(self._parents) and self._parents[-1][1] == "env"
        if entry is None:
            shown, is_open = _shown(line, in_env=in_env)
            self._goes_on(indent, "" if body.startswith("#") else is_open)
            return shown
        self._parents.append((column, entry[3]))
        return self._entry(line, entry[3], entry[4] or "", column, in_env=in_env)

    def _entry(self, line: str, name: str, value: str, column: int, *, in_env: bool) -> str:
        head = line[: len(line) - len(value)]
        if _sounds(name, in_env=in_env) and value[:1] not in ("{", "["):
            self._named = not value or value.startswith("#")
            end, how = _end(value, 0, _PLAIN)
            self._goes_on(column, how or (_PLAIN if end >= len(value) else ""))
            self._deeper = column
            return line if self._named else head + HIDDEN
        shown, is_open = _shown(value, in_env=name == "env")
        self._goes_on(column, is_open)
        return head + shown


def _sounds(name: str, *, in_env: bool) -> bool:
    return is_secret(name) and (in_env or name != _OWN)


def _shown(text: str, *, in_env: bool = False) -> tuple[str, str]:
    """With its secrets hidden, and what ends the last of them where it goes on in the next line."""
    shown, at, is_open = "", 0, ""
    while found := min(filter(None, (_pair(text, at, in_env=in_env), _option(text, at))), default=None):
        start, at_end, is_open = found
        shown += text[at:start] + HIDDEN
        at = at_end
    return shown + text[at:], is_open if at >= len(text) else ""


def _pair(text: str, at: int, *, in_env: bool) -> tuple[int, int, str] | None:
    for pair in _PAIR.finditer(text, at):
        start, colon = pair.end(), pair[3] == ":"
        in_env = in_env or "env" in text[: pair.start()]
        if text[start : start + 1] in ("{", "[") or not _sounds(pair[2], in_env=in_env or not colon):
            continue
        before = text[max(0, pair.start() - 1) : pair.start()]
        if not colon and before in ("'", '"') and before:  # the whole word is in quotes
            end = text.find(before, start)
            return (start, end, "") if end >= 0 else (start, len(text), before)
        end, is_open = _end(text, start, f"{_PLAIN}\n" if colon else " \t\n")
        return start, end, is_open or (_PLAIN if colon and end >= len(text) else "")
    return None


def _option(text: str, at: int) -> tuple[int, int, str] | None:
    for option in _OPTION.finditer(text, at):
        if is_secret(option[1]) and option.end() < len(text):
            return option.end(), *_end(text, option.end(), " \t\n,]")
    return None


def _end(text: str, start: int, stops: str) -> tuple[int, str]:
    """Where a value ends that starts there; and the quote that is still open there."""
    at = start
    while at < len(text) and text[at] not in stops:
        if text[at] in "'\"":
            end = text.find(text[at], at + 1)
            if end < 0:
                return len(text), text[at]
            at = end
        at += 1
    return at, ""
