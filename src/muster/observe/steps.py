"""The last step a run wrote, read from the end of its file: a log may have gigabytes, the answer is in its tail.

A half-written last line, a tail of NULs after a power cut, bare NaN, and rows without the key are all normal.
"""

from __future__ import annotations

import csv
import json
import math
import os
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

TAIL_BYTES = 16 << 20  # text looked at before giving up: rows without the key, or one endless line
_NUL_BYTES = 256 << 20  # NULs skipped at the end: a power cut can leave many
_FIRST_BLOCK, _LARGEST_BLOCK = 64 << 10, 4 << 20
_HEADER_BYTES = 1 << 20
_NUMBER = re.compile(r"([-+]?(?:\d[\d_,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([KMB]?)", re.IGNORECASE)
_PLAIN = re.compile(rb"[A-Za-z0-9_-]+")
_SCALE = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9}


def last_step(path: str, kind: str, key: str | None) -> float | None:
    """The newest step in a jsonl or csv file (`key`: its key or column), or in a log (`key`: a regex with a group).

    None: there is none, the file is missing, or the kind is not read (wandb, tensorboard). Raises OSError where the
    file is there and can't be read.
    """
    if key is None or kind not in ("jsonl", "csv", "stdout"):
        return None
    try:
        with open(path, "rb") as file:
            if kind == "jsonl":
                return _last_in_jsonl(file, key)
            if kind == "csv":
                return _last_in_csv(file, key)
            return _last_in_log(file, key)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


def lines_from_end(file: BinaryIO) -> Iterator[tuple[bytes, bool]]:
    """Lines, the last one first, each with whether a newline ended it; NULs and empty lines left out, bounded."""
    ended = False
    rest = b""
    for block in _blocks_from_end(file):
        text = block + rest
        parts = text.split(b"\n")
        for part in reversed(parts[1:]):
            line = part.strip(b"\0\r \t")
            if line:
                yield line, ended
            ended = True
        rest = parts[0]
    line = rest.strip(b"\0\r \t")
    if line and file.tell() == 0:  # the file's first line; otherwise a piece of one
        yield line, ended


def _blocks_from_end(file: BinaryIO) -> Iterator[bytes]:
    """Blocks, the last one first, growing; NUL blocks at the end are dropped. Leaves the file at what was not read."""
    position = file.seek(0, os.SEEK_END)
    nul_until, text_left, size = max(0, position - _NUL_BYTES), TAIL_BYTES, _FIRST_BLOCK
    in_text = False
    while position > 0 and text_left > 0 and (in_text or position > nul_until):
        size = min(size, position)
        position -= size
        file.seek(position)
        block = file.read(size)
        file.seek(position)
        if not in_text:
            block = block.rstrip(b"\0")
        if block:
            in_text = True
            text_left -= size
            yield block
        size = min(size * 2, _LARGEST_BLOCK)


def _last_in_jsonl(file: BinaryIO, key: str) -> float | None:
    # most rows of a wide log lack a rare key: looking for its last part saves parsing them. Escapes hide a key, so
    # only plain ASCII keys are looked for this way.
    needle = key.rpartition(".")[2].encode()
    plain = _PLAIN.fullmatch(needle) is not None
    for line, _ in lines_from_end(file):
        if plain and needle not in line:
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        value = number(_look_up(row, key))
        if value is not None:
            return value
    return None


def _look_up(row: Any, key: str) -> Any:
    """A literal key first, then nested ones joined by dots; a nested key may itself hold dots."""
    if not isinstance(row, dict):
        return None
    if key in row:
        return row[key]
    for at, letter in enumerate(key):
        if letter == "." and key[:at] in row:
            found = _look_up(row[key[:at]], key[at + 1 :])
            if found is not None:
                return found
    return None


def number(value: Any) -> float | None:
    """A finite number, also as a text; None for everything else."""
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value.strip())
        if match is None:
            return None
        value = float(match.group(1).replace(",", "").replace("_", "")) * _SCALE[match.group(2).lower()]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        result = float(value)
    except OverflowError:
        return None
    return result if math.isfinite(result) else None


def _last_in_csv(file: BinaryIO, key: str) -> float | None:
    header = file.readline(_HEADER_BYTES).decode("utf-8-sig", "replace")
    for delimiter in (",", "\t", ";"):
        names = [name.strip() for name in _fields(header, delimiter)]
        if key in names:
            return _last_in_column(file, names.index(key), len(names), delimiter)
    return None


def _last_in_column(file: BinaryIO, column: int, width: int, delimiter: str) -> float | None:
    cut: float | None = None
    for line, ended in lines_from_end(file):
        fields = _fields(line.decode("utf-8", "replace"), delimiter)
        if column >= len(fields) or (ended and len(fields) < width):
            continue  # a piece of a quoted field with a newline in it, or of a cut row
        value = number(fields[column])
        if value is None:
            continue
        if not ended and column == len(fields) - 1:
            cut = (
                value  # perhaps 12 of 120000: never more than the truth, so it may only raise what the row before says
            )
            continue
        return value if cut is None else max(cut, value)
    return cut


def _fields(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line.strip("\r\n")], delimiter=delimiter), [])
    except csv.Error:
        return []


def _last_in_log(file: BinaryIO, regex: str) -> float | None:
    pattern = re.compile(regex)
    group: str | int = "step" if "step" in pattern.groupindex else min(1, pattern.groups)
    for line, _ in lines_from_end(file):
        # progress bars draw over one line with \r: the last match of the line is the newest
        text = line.decode("utf-8", "replace")
        for match in reversed(list(pattern.finditer(text))):
            value = number(match.group(group))
            if value is not None:
                return value
    return None
