"""PATH without the places that a repository could have filled: whatever we run by name is the user's own program."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

MARKS = (".git", "campaign.yaml", ".muster")


def trusted_path(folder: str, path: str | None = None) -> str:
    """PATH less what is relative (an empty entry is the working folder) and what lies in the repository of `folder`."""
    given = os.environ.get("PATH", os.defpath) if path is None else path
    return _trusted(os.path.realpath(folder), given, os.path.realpath(Path("~").expanduser()))


def find_program(name: str, folder: str) -> str | None:
    """Its absolute path by `trusted_path`; None: there is none there."""
    found = shutil.which(name, path=trusted_path(folder))
    return None if found is None or is_within(folder, found) else found


def is_within(folder: str, place: str) -> bool:
    """Whether a file or a folder, links followed, lies in the repository or the campaign of `folder`."""
    return _lies_in(os.path.realpath(place), _own(os.path.realpath(folder), os.path.realpath(Path("~").expanduser())))


@functools.lru_cache(maxsize=64)
def _trusted(folder: str, path: str, home: str) -> str:
    own = _own(folder, home)
    entries = (entry for entry in path.split(os.pathsep) if entry.startswith("/"))
    return os.pathsep.join(entry for entry in entries if not _lies_in(os.path.realpath(entry), own))


def _own(folder: str, home: str) -> tuple[str, ...]:
    """The folder, and each one above it that is a repository or a campaign; not the home, where dotfiles may be one."""
    return (folder, *_marked(Path(folder), Path(home)))


def _marked(folder: Path, home: Path) -> Iterator[str]:
    for each in folder.parents:
        if each == Path(each.root) or home.is_relative_to(each):
            return
        if any(os.path.lexists(each / mark) for mark in MARKS):
            yield str(each)


def _lies_in(place: str, folders: tuple[str, ...]) -> bool:
    return any(place == each or place.startswith(f"{each}/") for each in folders)
