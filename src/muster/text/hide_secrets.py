"""Secrets in what is shown: a value goes where its name sounds like one, in YAML and in commands.

Where it can't be told how far a value goes, more is hidden rather than less.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from muster.text.secret_masking import HIDDEN_VALUE, is_secret_name, mask_secret_shapes, should_hide_value

_ENTRY = re.compile(r"""((?:-\s++)*+)(["']?)([\w.+/-]+)\2\s*+:(?:\s++(.*))?$""")  # of a block mapping
_PAIR = re.compile(
    r"""(["']?)(?<![\w.+-])([\w.+-]++)\1\s*+([:=])\s*+"""
)  # of a flow mapping; `NAME=value`, `--name=value`
_OPTION = re.compile(r"""(?<![\w.-])(--?[A-Za-z][\w.-]*+)(?:["']?\s*+,|["']?(?=\s))(?:\s|\\\n)*+(?![-\s])""")
_DANGLING = re.compile(r"""(?<![\w.-])(--?[A-Za-z][\w.-]*+)["']?\s*+,?\s*+\\?$""")  # its value is in the next line
_ITEM = re.compile(r"-\s+")
_OPTIONS = re.compile(r"""(?:-\s++)?["']?--?[A-Za-z]""")
_QUOTED = re.compile(r"""'[^']*+'|"[^"]*+"|#.*$""")
_PLAIN = ",}]"  # what ends a plain value of a flow mapping
_PLAIN_VALUE = re.compile(r"""["']?([\w.+-]{1,20})(?=["']?(?:[\s,}\]]|$))""")  # a number, perhaps
_OWN = "key"  # of results: a word of campaign.yaml


def hide_secrets_in_words(parts: Sequence[str]) -> list[str]:
    """A command's words."""
    found: list[str] = []
    for before, part in zip(["", *parts], parts, strict=False):
        names = re.fullmatch(r"--?[A-Za-z][\w.-]*", before)
        follows = names and should_hide_value(before, part) and not part.startswith("-")
        found.append(HIDDEN_VALUE if follows else hide_secrets_in_text(part))
    return found


def hide_secrets_in_text(text: str) -> str:
    """Words of a command as one text."""
    return _hide_values(mask_secret_shapes(text))[0]


def hide_secrets_in_yaml(lines: Sequence[str]) -> list[str]:
    """A YAML text; as many lines as there were."""
    shown = list(_YamlText().read(lines))
    if any("\n" in line for line in shown):
        return [mask_secret_shapes(line) for line in shown]
    return mask_secret_shapes("\n".join(shown)).split("\n") if shown else []


class _YamlText:
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
            return line[:indent] + HIDDEN_VALUE
        entry = _ENTRY.match(body)
        starts = entry or _ITEM.match(body)  # a mapping or a list below a key is no value
        if self._deeper is not None and indent > self._deeper and not (self._named and starts):
            self._named = False
            return line[:indent] + HIDDEN_VALUE
        follows, self._option = self._option, bool((last := _DANGLING.search(body)) and is_secret_name(last[1]))
        if follows and not entry and not _OPTIONS.match(body):
            return line[:indent] + ("- " if starts else "") + HIDDEN_VALUE
        self._deeper, self._named = None, False
        column = indent + (len(entry[1]) if entry else 0)
        while self._parents and self._parents[-1][0] >= column:
            self._parents.pop()
        in_env = bool(self._parents) and self._parents[-1][1] == "env"
        if entry is None:
            shown, is_open = _hide_values(line, in_env=in_env)
            self._goes_on(indent, "" if body.startswith("#") else is_open)
            return shown
        self._parents.append((column, entry[3]))
        return self._entry(line, entry[3], entry[4] or "", column, in_env=in_env)

    def _entry(self, line: str, name: str, value: str, column: int, *, in_env: bool) -> str:
        head = line[: len(line) - len(value)]
        if _sounds_secret(name, value, in_env=in_env) and value[:1] not in ("{", "["):
            self._named = not value or value.startswith("#")
            end, how = _end_of_plain_value(value, 0, _PLAIN)
            self._goes_on(column, how or (_PLAIN if end >= len(value) else ""))
            self._deeper = column
            return line if self._named else head + HIDDEN_VALUE
        shown, is_open = _hide_values(value, in_env=name == "env")
        self._goes_on(column, is_open)
        return head + shown


def _sounds_secret(name: str, value: str, *, in_env: bool) -> bool:
    return (in_env or name != _OWN) and should_hide_value(name, value)


def _hide_values(text: str, *, in_env: bool = False) -> tuple[str, str]:
    """With its secrets hidden, and what ends the last of them where it goes on in the next line."""
    shown: list[str] = []
    at, is_open = 0, ""
    pairs, options = _find_secret_pairs(text, in_env=in_env), _find_secret_options(text)
    pair, option = next(pairs, None), next(options, None)
    while pair or option:
        if pair and (not option or pair[0] <= option[0]):
            (start, stops, colon), pair = pair, next(pairs, None)
        else:
            assert option
            (start, stops, colon), option = option, next(options, None)
        if start < at:
            continue  # it stands within what is hidden
        end, is_open = _end_of_value(text, start, stops, colon=colon)
        shown += [text[at:start], HIDDEN_VALUE]
        at = end
    return "".join(shown) + text[at:], is_open if at >= len(text) else ""


SecretSpan = tuple[int, str, bool]  # where a value begins, what ends it, and whether a colon stands before it


def _find_secret_pairs(text: str, *, in_env: bool) -> Iterator[SecretSpan]:
    env = text.find("env")
    for pair in _PAIR.finditer(text):
        start, colon = pair.end(), pair[3] == ":"
        of_env = in_env or 0 <= env <= pair.start() - len("env")
        if text[start : start + 1] in ("{", "[") or not is_secret_name(pair[2]):
            continue
        before = text[max(0, pair.start() - 1) : pair.start()]
        stops = f"{_PLAIN}\n" if colon else " \t\n"
        if not colon and before in ("'", '"') and before:  # the whole word is in quotes
            stops = before
        plain = _PLAIN_VALUE.match(text, start)
        if _sounds_secret(pair[2], plain[1] if plain else "", in_env=of_env or not colon):
            yield start, stops, colon


def _find_secret_options(text: str) -> Iterator[SecretSpan]:
    for option in _OPTION.finditer(text):
        plain = _PLAIN_VALUE.match(text, option.end())
        if option.end() < len(text) and should_hide_value(option[1], plain[1] if plain else ""):
            yield option.end(), " \t\n,]", False


def _end_of_value(text: str, start: int, stops: str, *, colon: bool) -> tuple[int, str]:
    if stops in ("'", '"'):
        end = text.find(stops, start)
        return (end, "") if end >= 0 else (len(text), stops)
    end, is_open = _end_of_plain_value(text, start, stops)
    return end, is_open or (_PLAIN if colon and end >= len(text) else "")


def _end_of_plain_value(text: str, start: int, stops: str) -> tuple[int, str]:
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
