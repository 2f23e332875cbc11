"""Whether a checkpoint is whole: a file or a folder of files, judged by content. Never executes what it opens."""

# Paths are texts here: globs are no paths, and this runs after every exit.
# ruff: noqa: PTH110, PTH112, PTH114, PTH116, PTH118, PTH119, PTH120, PTH122

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from muster.files.bounded_walk import walk_folders
from muster.files.json_codec import TooManyJsonValues, load_bounded_json
from muster.files.safe_open import check_regular_kind, is_permanent_read_error, read_file_start, read_regular_file
from muster.readers.checkpoints.file_formats import (
    BrokenFile,
    ChecksumBudget,
    check_npy,
    check_pickle,
    check_safetensors,
    check_zip,
)
from muster.text.phrases import phrase

_SETTLE_S = 0.05
_RECENT_S = 2.0
_MOST_FILES = 20_000
_SMALL_JSON = 16 << 20
_MAGIC = ((b"PK\x03\x04", check_zip), (b"\x93NUMPY", check_npy))
_BY_NAME: dict[str, Callable[[str, ChecksumBudget], str]] = {
    ".npz": check_zip,
    ".npy": check_npy,
    ".safetensors": check_safetensors,
    ".pkl": check_pickle,
    ".pickle": check_pickle,
}
_METADATA = frozenset({"_METADATA", "_CHECKPOINT_METADATA"})  # orbax; JSON without the ending
_MAY_BE_EMPTY = ("commit_success", "__init__.py")
_UNFINISHED = (".tmp", ".partial", ".incomplete", ".in_progress")
_NO_WEIGHTS = (".json", ".txt", ".md", ".yaml", ".yml", ".log")


@dataclass(frozen=True, slots=True)
class CheckpointReading:
    valid: bool
    how: str  # what was looked at
    reason: str = ""  # why it is not valid
    unread: bool = False  # not valid because it could not be read, which proves nothing


def check_checkpoint(path: str) -> CheckpointReading:
    try:
        how = _check_path(path, ChecksumBudget())
    except BrokenFile as broken:
        return CheckpointReading(False, "", str(broken))
    except FileNotFoundError:
        link = os.path.islink(path)
        return CheckpointReading(False, "", "a link that leads nowhere" if link else "it does not exist")
    except OSError as error:
        return CheckpointReading(
            False, "", f"it can't be read: {error.strerror or error}", not is_permanent_read_error(error)
        )
    return CheckpointReading(True, how)


def checkpoint_saved_at(path: str) -> float:
    """When it was written last: the newest time on a file of it, for a folder's own time stands still."""
    if not os.path.isdir(path):
        return os.stat(path).st_mtime
    times = [os.stat(file).st_mtime for file in _files_below_checkpoint(path) if os.path.lexists(file)]
    return max(times, default=os.stat(path).st_mtime)


def _check_path(path: str, budget: ChecksumBudget) -> str:
    if os.path.isdir(path):
        return _check_checkpoint_folder(path, budget)
    return _check_checkpoint_file(path, budget)


def _check_checkpoint_file(path: str, budget: ChecksumBudget) -> str:
    facts = os.stat(path)
    check_regular_kind(path, facts.st_mode)
    size = facts.st_size
    if size == 0:
        raise BrokenFile("it is empty (0 bytes)")
    check = _check_of_format(path, size)
    return check(path, budget) if check else _check_unknown_format(path)


def _check_of_format(path: str, size: int) -> Callable[[str, ChecksumBudget], str] | None:
    """By the first bytes; by the name only where the format has no mark of its own or the file is too short for it."""
    head = read_file_start(path, 16)
    for magic, check in _MAGIC:
        if head.startswith(magic[: len(head)]):
            return check
    if head[0] == 0x80 and (len(head) < 2 or 2 <= head[1] <= 5):
        return check_pickle
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") <= size:
        return check_safetensors
    return _BY_NAME.get(os.path.splitext(path)[1].lower())


def _check_unknown_format(path: str) -> str:
    """No known format: all that can be said is that it is there and does not grow any more."""
    before = os.stat(path)
    if abs(time.time() - before.st_mtime) < _RECENT_S:
        time.sleep(_SETTLE_S)
        if os.stat(path).st_size != before.st_size:
            raise BrokenFile("it is still being written")
    return f"{before.st_size} bytes, format not known"


def _check_checkpoint_folder(path: str, budget: ChecksumBudget) -> str:
    """orbax, flax, Hugging Face, LeRobot: something in it, nothing empty, metadata that parses, known files whole."""
    name = os.path.basename(os.path.normpath(path))
    if name.endswith(_UNFINISHED) or ".orbax-checkpoint-tmp" in name:
        raise BrokenFile("it was never finished: its folder still has a temporary name")
    files = _files_below_checkpoint(path)
    if not files:
        raise BrokenFile("an empty folder")
    for file in files:
        try:
            _check_folder_part(file, budget)
        except BrokenFile as broken:
            raise BrokenFile(f"{os.path.relpath(file, path)}: {broken}") from None
    names = {os.path.basename(file) for file in files}
    if "config.json" in names and all(file.endswith(_NO_WEIGHTS) for file in names):  # xgboost's model.json is weights
        raise BrokenFile(f"a folder of {phrase('count.file', n=len(files))} with no weights among them")
    return f"folder of {phrase('count.file', n=len(files))}"


def _check_folder_part(file: str, budget: ChecksumBudget) -> None:
    name = os.path.basename(file)
    if not os.path.exists(file):
        raise BrokenFile("a link that leads nowhere")
    facts = os.stat(file)
    check_regular_kind(file, facts.st_mode)
    size = facts.st_size
    if size == 0:
        if name.startswith((".", *_MAY_BE_EMPTY)) or name.endswith(".lock"):
            return
        raise BrokenFile("empty (0 bytes)")
    if name in _METADATA or name.endswith(".json"):
        _check_json_part(file)
        return
    check = _check_of_format(file, size)
    if check:
        check(file, budget)


def _check_json_part(file: str) -> None:
    if os.stat(file).st_size > _SMALL_JSON:
        return
    text = read_regular_file(file, _SMALL_JSON)
    if not file.endswith(".index.json"):
        _decode_json_part(text)
        return
    index = _decode_json_part(text)
    shards = index.get("weight_map") if isinstance(index, dict) else None
    folder = os.path.dirname(file)
    wanted = {str(shard) for shard in shards.values()} if isinstance(shards, dict) else set()
    missing = sorted(shard for shard in wanted if not os.path.lexists(os.path.join(folder, shard)))
    if missing:
        raise BrokenFile(f"{len(missing)} of {len(wanted)} shards are missing, {missing[0]} first")


def _decode_json_part(text: bytes) -> Any:
    try:
        return load_bounded_json(text)  # not msgspec: trainers write bare NaN
    except TooManyJsonValues as error:
        raise BrokenFile(f"its JSON is not read: {error}") from None
    except ValueError:
        raise BrokenFile("its JSON is cut off or damaged") from None


def _files_below_checkpoint(path: str) -> list[str]:
    """Every file below, links included, bounded."""
    found: list[str] = []
    for folder, _, names in walk_folders(path, onerror=_raise_walk_error):
        found += (os.path.join(folder, name) for name in names)
        if len(found) > _MOST_FILES:
            break
    return sorted(found)


def _raise_walk_error(error: OSError) -> None:
    raise error  # it would be skipped in silence
