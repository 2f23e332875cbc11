"""Periods that a run's own config declares: `log_every: 1000` explains a log that is quiet for 1000 seconds.

Whether they are seconds or steps the config does not say: they are hints, held against what is seen. Parsing YAML is
slow: read them once per run.
"""

# ruff: noqa: PTH118, PTH122 - texts, not paths, as in the rest of this room

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from muster.observe.steps import number
from muster.ports.bounded_yaml import load_yaml
from muster.ports.regular_files import read_start

_MOST_FILES, _LARGEST, _MOST_KEYS = 20, 1 << 20, 50
_YAML_BYTES = 64 << 10  # of all files together: its parser does about 100 kB/s; beyond that lines are searched
_MOST_NODES, _DEEPEST = 20_000, 32  # YAML may refer to itself
_WORDS = "(?:every|interval|freq|frequency|period)"
_HINT = re.compile(_WORDS, re.IGNORECASE)
_PERIOD = re.compile(rf".*\w[_-]{_WORDS}", re.IGNORECASE)
_LINE = re.compile(r"""^[ \t]*["']?([\w.-]+)["']?[ \t]*[:=][ \t]*([-+\w.]+),?[ \t]*(?:#.*)?$""", re.MULTILINE)
_WORD = re.compile(r"-{0,2}([A-Za-z_][\w.-]*)(?:=(.*))?", re.DOTALL)

Pairs = Iterator[tuple[str, Any]]


def clocks(output_folder: str | None, argv: Sequence[str] = ()) -> tuple[tuple[str, float], ...]:
    """Keys that look like periods, nested ones joined by dots, with their values; those of the command first."""
    found: dict[str, float] = {}
    for key, value in _all_pairs(output_folder, argv):
        period = number(value)
        if period is not None and period >= 1 and _PERIOD.fullmatch(key):
            found.setdefault(key, period)
        if len(found) == _MOST_KEYS:
            break
    return tuple(found.items())


def _all_pairs(folder: str | None, argv: Sequence[str]) -> Pairs:
    yield from _in_words(argv)
    yaml_left = _YAML_BYTES
    for path in _config_files(folder) if folder else ():
        text, kind = _text(path), os.path.splitext(path)[1].lower()
        if _HINT.search(text) is None:
            continue
        if kind in _YAML:
            yaml_left -= len(text)
        parse = _PARSERS[kind] if kind not in _YAML or yaml_left >= 0 else None
        yield from _in_text(text, parse)


def _in_words(argv: Sequence[str]) -> Pairs:
    """`--log_every 1000`, `--log_every=1000`, `run.log_every=1000`."""
    words = [part for word in argv for part in word.split()]  # a shell's command is one word
    for index, word in enumerate(words):
        match = _WORD.fullmatch(word)
        if match is None:
            continue
        key, value = match.groups()
        if value is None and word.startswith("-") and index + 1 < len(words):
            value = words[index + 1]
        yield key, value


def _config_files(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            found = [entry.name for entry in entries if _is_config(entry)]
    except OSError:
        return []
    named = sorted(found, key=lambda name: (not name.startswith("config."), name))
    return [os.path.join(folder, name) for name in named[:_MOST_FILES]]


def _is_config(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.name.lower().endswith(tuple(_PARSERS)) and entry.is_file() and entry.stat().st_size < _LARGEST
    except OSError:
        return False


def _text(path: str) -> str:
    try:
        return read_start(path, _LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""


def _in_text(text: str, parse: Callable[[str], Any] | None) -> Pairs:
    try:
        tree = parse(text) if parse else None
    except Exception:  # half-written, Python's own tags, a parser's own bug: a hint is not worth an error
        tree = None
    return _in_tree(tree) if isinstance(tree, dict) else iter(_LINE.findall(text))


def _in_tree(tree: Any) -> Pairs:
    waiting: list[tuple[str, Any, int]] = [("", tree, 0)]
    for _ in range(_MOST_NODES):
        if not waiting:
            return
        name, value, depth = waiting.pop()
        if not isinstance(value, dict):
            yield name, value
        elif depth < _DEEPEST:
            below = [(f"{name}.{key}" if name else str(key), each, depth + 1) for key, each in value.items()]
            waiting += reversed(below)


_YAML = (".yaml", ".yml")
_PARSERS: dict[str, Callable[[str], Any]] = {
    ".yaml": load_yaml,
    ".yml": load_yaml,
    ".json": json.loads,
    ".toml": tomllib.loads,
}
