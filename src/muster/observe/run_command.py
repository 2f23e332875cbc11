"""The command of a run that Muster did not start, as its folder tells it, and the script that it names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from muster.ports.regular_files import read_start
from muster.report.journal.facts import Script
from muster.report.journal.flags import read_command, script_of

NAMES = ("argv.json", "command.json", "command.txt", "command.sh", "cmd.txt")
MOST_BYTES = 1 << 20
MOST_SCRIPT = 4 << 20


class NoCommand(Exception):
    """It is written there and can't be read; the message says why."""


def command_file(folder: Path) -> Path | None:
    return next((folder / name for name in NAMES if (folder / name).is_file()), None)


def read_command_file(path: Path) -> tuple[tuple[str, ...], str]:
    """The words, and the folder it was started in where that is told. Raises NoCommand."""
    try:
        data = read_start(path, MOST_BYTES + 1)
    except OSError as error:
        raise NoCommand(error.strerror or str(error)) from None
    if len(data) > MOST_BYTES:
        raise NoCommand("it is too large")
    text = data.decode("utf-8", "replace")
    if path.suffix == ".json":
        return _of_json(text)
    found = read_command(text)
    if found is None:
        raise NoCommand("it holds no command that a shell could split")
    return found, ""


def _of_json(text: str) -> tuple[tuple[str, ...], str]:
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise NoCommand("it is no JSON") from None
    cwd = ""
    if isinstance(found, dict):
        cwd = str(found.get("cwd") or "")
        found = found.get("argv", found.get("command"))
    if isinstance(found, str):
        found = read_command(found)
    if not isinstance(found, list | tuple) or not found or not all(isinstance(word, str) for word in found):
        raise NoCommand("it holds no list of words")
    return tuple(found), cwd


def read_script(argv: Sequence[str], places: Sequence[Path], begun: float | None) -> Script | None:
    """`places`: folders that its path may be meant from, the likeliest first. None: the command names no script."""
    name = script_of(argv)
    if name is None:
        return None
    for place in places:
        path = place / name
        try:
            if not path.is_file():
                continue
            data = read_start(path, MOST_SCRIPT + 1)
            newer = begun is not None and path.stat().st_mtime > begun
        except OSError:
            continue
        if len(data) > MOST_SCRIPT:
            break
        return Script(name, hashlib.sha256(data).hexdigest(), data.decode("utf-8", "replace"), newer)
    return Script(name)
