"""Finds the campaign of a folder, as git finds its repository: there or above. One of somebody else ends the search."""

from __future__ import annotations

import os
from pathlib import Path

from muster.domain.errors import UsageError
from muster.store.private_state import mend_modes, refuse_links
from muster.wiring.owner import CAMPAIGN_FILE, LOG, STATE, refuse_stranger, stranger, unreadable


def find_root(start: Path) -> Path:
    """Of a campaign to act in: one of somebody else is refused."""
    root = find_root_to_read(start)
    refuse_stranger(root)
    return root


def find_root_to_read(start: Path) -> Path:
    """One of somebody else is found where it is named itself, and nowhere above: nobody has asked for it there."""
    start = start.absolute()
    if start.is_file():
        import shlex

        hint = f"name its folder: -C {shlex.quote(str(start.parent))}"
        raise UsageError("this is a file, no folder", where=str(start), hint=hint)
    if not start.is_dir():
        raise UsageError(f"there is no folder {start}", where=str(start))
    for folder in (start, *start.parents):
        if not (os.path.lexists(folder / CAMPAIGN_FILE) or os.path.lexists(folder / STATE)):
            continue
        known = _is_campaign(folder)
        if (folder != start or not known) and (known or _is_of_another(folder / STATE)):
            _refuse_unreadable(folder)  # to who may not read it nobody says how it is read
            refuse_stranger(folder, start)
        if known:
            _refuse_unreadable(folder)
            refuse_links(folder / STATE)
            mend_modes(folder / STATE)
            return folder  # a campaign whose file was deleted can still be asked and stopped
    raise UsageError(
        f"there is no {CAMPAIGN_FILE} here or in a folder above",
        where=str(start),
        hint="write one with `muster init`, or use -C DIR",
    )


def _is_campaign(folder: Path) -> bool:
    return _is_file(folder / CAMPAIGN_FILE) or _is_file(folder / STATE / LOG)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # what can't be looked at is somebody else's
        return False


def _is_of_another(path: Path) -> bool:
    try:
        return path.lstat().st_uid != os.geteuid()
    except OSError:
        return False


def _refuse_unreadable(root: Path) -> None:
    for path in (root / STATE, root / STATE / LOG, root / CAMPAIGN_FILE):
        reachable = os.access(path, os.R_OK | (os.X_OK if path.name == STATE else 0), effective_ids=True)
        if not reachable and os.path.lexists(path) and (found := stranger(root)):
            raise unreadable(found)
