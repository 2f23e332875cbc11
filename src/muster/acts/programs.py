"""Whether a program can be found, as the one who executes it would look for it; and what may have been meant."""

from __future__ import annotations

import os
import shutil
from difflib import get_close_matches
from pathlib import Path

LISTED = 2000  # files of a folder that are looked at for a name that is meant


def found(program: str, cwd: str, path: str) -> bool:
    if "/" in program:
        file = Path(cwd) / program
        return file.is_file() and os.access(file, os.X_OK)
    return shutil.which(program, path=path) is not None


def not_executable(program: str, cwd: str) -> bool:
    """It is there, and nobody may execute it."""
    file = Path(cwd) / program
    return "/" in program and file.is_file() and not os.access(file, os.X_OK)


def meant(root: Path, name: str) -> str | None:
    """A file of nearly the same name beside it, or of the same name one folder down."""
    wanted = Path(name)
    near = get_close_matches(wanted.name, _names((root / name).parent, files=True), 1)
    if near:
        return str(wanted.with_name(near[0]))
    folders = sorted(_names(root, files=False))
    below = next((each for each in folders if (root / each / wanted.name).is_file()), None)
    return str(Path(below) / wanted.name) if below else None


def _names(folder: Path, *, files: bool) -> list[str]:
    try:
        with os.scandir(folder) as listing:
            entries = [each for each, _ in zip(listing, range(LISTED), strict=False) if not each.name.startswith(".")]
            return [each.name for each in entries if (each.is_file() if files else each.is_dir())]
    except OSError:
        return []
