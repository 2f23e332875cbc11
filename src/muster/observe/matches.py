"""Files that a glob of the campaign file fits, the newest first."""

# Paths are texts here: globs are no paths, and this runs after every exit.
# ruff: noqa: PTH112, PTH116, PTH208

from __future__ import annotations

import os

from muster.observe import outputs
from muster.observe.checkpoints import saved_at
from muster.ports.folders import glob_paths


def fitting(pattern: str) -> list[str]:
    if outputs.is_glob(pattern):
        return glob_paths(pattern)
    return [pattern] if os.path.lexists(pattern) else []


def newest_first(pattern: str) -> list[str]:
    found = {os.path.realpath(match): match for match in sorted(fitting(pattern))}  # `last` is a link to one of them
    return sorted(found.values(), key=lambda match: (time_of(match), match), reverse=True)


def time_of(path: str) -> float:
    try:
        return saved_at(path)
    except OSError:
        return float("-inf")


def came_at(path: str) -> float:
    """When it was put there or written: a copy may keep the older time of what it was copied from."""
    try:
        stat = os.stat(path)
    except OSError:
        return float("-inf")
    return max(stat.st_mtime, stat.st_ctime)


def has_content(path: str) -> bool:
    try:
        return bool(os.listdir(path)) if os.path.isdir(path) else os.stat(path).st_size > 0
    except OSError:
        return False
