"""JSON with the place of every value: numbers that nobody edits stay as they are written."""

from __future__ import annotations

import json
import re
from typing import Any

from muster.rounds.config import DEEPEST, Config, UnreadableConfig
from muster.rounds.paths import Where

_BLANK = re.compile(r"[ \t\r\n]*")
_TEXT = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_ATOM = re.compile(r"-?(?:[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|Infinity)|NaN|true|false|null")


def read_json(text: str) -> Config:
    config = Config(text, "json", None)
    config.tree, end = _value(config, _skip(text, 0), ())
    end = _skip(text, end)
    if end != len(text):
        raise _wrong(text, end, "there is more behind the end of it")
    return config


def _value(config: Config, at: int, where: Where) -> tuple[Any, int]:
    text = config.text
    value: Any
    end: int
    if len(where) > DEEPEST:
        raise _wrong(text, at, "it is nested too deeply")
    first = text[at : at + 1]
    if first == "{":
        value, end = _mapping(config, at + 1, where)
    elif first == "[":
        value, end = _list(config, at + 1, where)
    elif first == '"':
        value, end = _text(text, at)
    else:
        found = _ATOM.match(text, at)
        if not found:
            raise _wrong(text, at, "a value is missing" if at < len(text) else "it ends too early")
        value, end = _atom(text, found), found.end()
    config.spans[where] = (at, end)
    return value, end


def _atom(text: str, found: re.Match[str]) -> Any:
    try:
        return json.loads(found[0])
    except ValueError:  # zeros in front, or more digits than anybody reads
        raise _wrong(text, found.start(), f"{found[0][:20]} is no number") from None


def _mapping(config: Config, at: int, where: Where) -> tuple[dict[str, Any], int]:
    text = config.text
    found: dict[str, Any] = {}
    at = _skip(text, at)
    while text[at : at + 1] != "}":
        if text[at : at + 1] != '"':
            raise _wrong(text, at, "a key in double quotes is missing")
        key, end = _text(text, at)
        if key in found:
            raise _wrong(text, at, f"the key {key!r} is there twice")
        at = _skip(text, end)
        if text[at : at + 1] != ":":
            raise _wrong(text, at, f"a colon is missing behind {key!r}")
        found[key], at = _value(config, _skip(text, at + 1), (*where, key))
        at = _next(text, at, "}")
    return found, at + 1


def _list(config: Config, at: int, where: Where) -> tuple[list[Any], int]:
    text = config.text
    found: list[Any] = []
    at = _skip(text, at)
    while text[at : at + 1] != "]":
        value, at = _value(config, at, (*where, len(found)))
        found.append(value)
        at = _next(text, at, "]")
    return found, at + 1


def _next(text: str, at: int, end: str) -> int:
    """Behind the comma, or at the end."""
    at = _skip(text, at)
    if text[at : at + 1] == ",":
        at = _skip(text, at + 1)
        if text[at : at + 1] == end:
            raise _wrong(text, at, f"a comma before {end}")
    elif text[at : at + 1] != end:
        raise _wrong(text, at, f"a comma or {end} is missing")
    return at


def _text(text: str, at: int) -> tuple[str, int]:
    found = _TEXT.match(text, at)
    try:
        if found:
            return str(json.loads(found[0])), found.end()
    except json.JSONDecodeError as error:
        raise _wrong(text, at + error.pos, error.msg) from None
    raise _wrong(text, at, "a text in double quotes does not end on its line")


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _wrong(text: str, at: int, why: str) -> UnreadableConfig:
    line = text.count("\n", 0, at) + 1
    return UnreadableConfig(f"it is no JSON: line {line}, column {at - text.rfind(chr(10), 0, at)}: {why}")
