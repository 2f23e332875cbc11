"""`$MUSTER_HOME`: the folder of the slots, which users may share, and the private one with this user's register."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from muster.files.atomic_write import make_private_folder, make_public_folder
from muster.model.errors import UsageError
from muster.text.phrases import phrase

OWN_FOLDERS = ("campaigns", "lost")  # in a home: of one user


def slots_home() -> Path:
    """Of the slots. One that is given may be shared by several users; the usual one is this user's alone."""
    given = os.environ.get("MUSTER_HOME")
    return Path(given).absolute() if given else default_home()


def private_home() -> Path:
    """Of what concerns this user alone, as the register: never in a folder of somebody else, whatever is given.

    Fixed where it is ours: nobody else may replace what lies in it.
    """
    found = slots_home()
    try:
        facts = found.stat()
        if facts.st_uid != os.geteuid() or any(_belongs_to_other_user(found / name) for name in OWN_FOLDERS):
            return default_home()
        open_to = facts.st_mode & (0o022 if os.environ.get("MUSTER_HOME") else 0o077)
        if open_to and not (os.environ.get("MUSTER_HOME") and facts.st_mode & stat.S_ISVTX):
            found.chmod(stat.S_IMODE(facts.st_mode) & ~open_to)
    except FileNotFoundError:
        return found
    except OSError:
        return default_home()
    return found


def default_home() -> Path:
    try:
        return Path.home() / ".local" / "state" / "muster"
    except RuntimeError:
        raise UsageError(
            phrase("files.home_unknown", uid=os.getuid()),
            where="HOME",
            hint=phrase("files.set_home"),
        ) from None


def make_slots_home() -> None:
    """Others may enter one that is given, as far as our umask lets them, and put nothing into it but slots."""
    path = slots_home()
    if path.is_dir():
        return
    if os.environ.get("MUSTER_HOME"):
        make_public_folder(path, parents=True)
        with contextlib.suppress(OSError):
            path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o022)
    else:
        make_private_folder(path, parents=True)


def _belongs_to_other_user(path: Path) -> bool:
    try:
        return path.lstat().st_uid != os.geteuid()
    except FileNotFoundError:
        return False
